// SPDX-License-Identifier: Apache-2.0

//! The bound: the same bytes, copied between the same amounts of memory and nothing else.

use sim::Random;

use crate::process::cpu_seconds;

/// Number of copies of `bytes` bytes in a CPU second, from random places among `span` bytes into
/// `buffers` other places.
pub fn copies(bytes: usize, span: usize, buffers: usize) -> f64 {
    let from = vec![1u8; span];
    let mut to = vec![0u8; bytes * buffers];
    let mut random = Random::new(2);
    let places = (span / bytes) as u64;
    let count = ((1usize << 30) / bytes).min(4 << 20);
    // Which places is decided before: that is no part of a copy.
    let places: Vec<u32> = (0..count).map(|_| random.below(places) as u32).collect();
    let mut go = || {
        for (n, &place) in places.iter().enumerate() {
            let (at, slot) = (place as usize * bytes, n % buffers * bytes);
            to[slot..slot + bytes].copy_from_slice(&from[at..at + bytes]);
        }
        std::hint::black_box(&mut to);
    };
    go();
    let start = cpu_seconds();
    go();
    count as f64 / (cpu_seconds() - start)
}
