// SPDX-License-Identifier: Apache-2.0

//! The engines of tables: sorter, gatherer of rows, decoder of dictionaries.

mod beside;
mod cuts;
mod decode;
mod nvme;
mod pipeline;
mod shuffle;
mod sort;

use std::ops::Range;

use crate::common::designs;

use super::*;

/// Engines of [`designs::tables`].
const SORT: usize = 0;
const SHUFFLE: usize = 1;
const DECODE: usize = 2;
/// The range of the media that they may access: the second namespace.
const REACH: Range<u64> = 2 * MIB..10 * MIB;
const MEDIA: u64 = 16 * MIB;
/// The local memory.
const LOCAL: u64 = MEDIA;

/// Bits of the return values; those of the copy are different.
const READ: u32 = 1;
const HALT: u32 = 2;
const WRONG: u32 = 4;
const WRITE: u32 = 8;
const BAD: u32 = 16;
const TRUNCATED: u32 = 32;
const OVERRUN: u32 = 64;

/// A device with these engines.
fn bench() -> Bench {
    Bench::of(&designs::tables())
}

fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn load(host: &mut SimHost, at: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    for (n, piece) in (0..).zip(data.chunks_mut(4096)) {
        host.read(Bar::Pm, at + 4096 * n, piece).unwrap();
    }
    data
}

fn store(host: &mut SimHost, at: u64, data: &[u8]) {
    for (n, piece) in (0..).zip(data.chunks(4096)) {
        host.write(Bar::Pm, at + 4096 * n, piece).unwrap();
    }
}

impl Bench {
    /// Return value and output.
    fn launch_outputs(&mut self, engine: usize, arguments: &[u64]) -> (u32, u64) {
        let result = self.launch(engine, arguments);
        let registers = self.registers(engine);
        let count = arguments.len();
        let outputs = registers.outputs(&mut self.host, count, 1).unwrap();
        (result, outputs[0])
    }

    /// The output of a job. 64 bytes on either side stay as they are.
    fn made(&mut self, engine: usize, arguments: &[u64], (dst, len): (u64, usize)) -> Vec<u8> {
        let guard = [0xC3; 64];
        self.store(dst - 64, &guard);
        self.store(dst + len as u64, &guard);
        let (result, _) = self.launch_outputs(engine, arguments);
        assert_eq!(result, 0, "{arguments:x?}");
        let found = self.load(dst - 64, len + 128);
        assert!(found[..64] == guard, "before {arguments:x?}");
        assert!(found[64 + len..] == guard, "after {arguments:x?}");
        found[64..64 + len].to_vec()
    }

    fn pass(&mut self, ns: u64) {
        common::rest(&mut self.host, Time::ns(ns));
    }
}

/// Bytes outside of the reach, which no engine may read or write.
struct Fence(Vec<(u64, Vec<u8>)>);

impl Fence {
    fn new(b: &mut Bench) -> Fence {
        let mut random = Random::new(77);
        let places = [0, REACH.start - 8192, REACH.end, MEDIA - 8192];
        let pieces = places.map(|at| (at, bytes(&mut random, 8192)));
        for (at, data) in &pieces {
            b.store(*at, data);
        }
        Fence(pieces.to_vec())
    }

    fn check(&self, b: &mut Bench, what: &str) {
        for (at, data) in &self.0 {
            assert!(b.load(*at, data.len()) == *data, "{at:#x}: {what}");
        }
    }
}
