// SPDX-License-Identifier: Apache-2.0

//! `nearpm` on a failing memory: nothing is forgotten, nothing wrong is reported, and nothing waits
//! forever.
//!
//! Bytes of the media can be neither read nor written for a while.

use std::fs::File;
use std::os::unix::fs::FileExt;

use driver::{DriverConfig, Host, NvmeDriver};
use sim::{Bar, FailingRange, Media, Time};
use spec::nearpm::{Command, ErrorBit, LogState, Operation, INCOMPLETE, RESERVED_BYTES};
use spec::regs::nearpm::{domain, DOMAIN, FORGET};
use spec::regs::Field;

use crate::common::nearpm::{is_there, Kit, Pool};
use crate::common::{design, factory, rest};

const PAGE: u64 = 4096;
const HEADER: usize = 64;

/// A device with bytes of the media that can fail.
pub(super) struct Bench {
    pub(super) kit: Kit,
    file: File,
    bad: FailingRange,
    bytes: u64,
    pub(super) registers: u64,
}

impl Bench {
    pub(super) fn new() -> Bench {
        let design = design("nearpm");
        let bytes = design.media.bytes.0;
        let media = Media::shared(bytes).unwrap();
        let file = media.shared_file().unwrap().try_clone_to_owned();
        let bad = media.failing_range();
        let device = factory(&design).device(media).unwrap();
        Bench {
            kit: Kit::before(device, &design),
            file: file.unwrap().into(),
            bad,
            bytes,
            registers: design.engines().unwrap()[0].offset,
        }
    }

    pub(super) fn reserved(&self) -> u64 {
        self.bytes - RESERVED_BYTES
    }

    /// Bytes of the media.
    pub(super) fn media(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    pub(super) fn change(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    /// Bytes of the media fail from this address on.
    pub(super) fn fail(&mut self, from: u64) {
        self.bad.set(from..self.bytes);
    }

    /// They work again, with their contents.
    pub(super) fn mend(&mut self) {
        self.bad.set(0..0);
    }

    pub(super) fn power_off(&mut self) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().power_off(number);
        rest(&mut self.kit.host, Time::us(20));
    }

    pub(super) fn power_on(&mut self) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().power_on(number);
        rest(&mut self.kit.host, Time::us(50));
    }

    pub(super) fn reset(&mut self) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().function_reset(number);
        rest(&mut self.kit.host, Time::us(50));
    }

    pub(super) fn domain(&mut self) -> u32 {
        let at = self.registers + DOMAIN;
        self.kit.host.read32(Bar::Control, at).unwrap()
    }

    fn forget(&mut self) {
        let at = self.registers + FORGET;
        self.kit.host.write32(Bar::Control, at, 1).unwrap();
        rest(&mut self.kit.host, Time::us(5));
    }

    /// Nothing of the media is accessible, and every access gets an error.
    fn expect_shut(mut self, pool: &Pool) -> Bench {
        assert_eq!(self.domain() & !mask(domain::UNKEPT), mask(domain::UNREAD));
        self.kit.refused(&pool.map(), ErrorBit::ReadError);
        self.kit.refused(&pool.undo(0, 0, 64), ErrorBit::ReadError);
        self.kit.host.write(Bar::Pm, 0, &[9; 64]).unwrap();
        assert!(self.kit.host.read(Bar::Pm, 0, &mut [0; 64]).is_err());
        let Bench { kit, .. } = self;
        let mut c = NvmeDriver::start(kit.host, DriverConfig::default()).unwrap();
        for outcome in [
            c.read(0, &mut [0; 4096]),
            c.write(8, &[5; 4096]),
            c.write_zeroes(0, 8),
        ] {
            let error = outcome.unwrap_err().to_string();
            let is_reported = ["Write Fault", "Unrecovered Read Error"].map(|e| error.contains(e));
            assert!(is_reported.contains(&true), "{error}");
        }
        let host = c.into_host();
        self.kit = Kit {
            host,
            page: kit.page,
        };
        assert_eq!(self.media(0, 8192), [0; 8192]);
        self
    }

    /// A thread's undo record of 64 bytes at an offset, and then a store.
    fn change_with_undo(&mut self, pool: &Pool, at: u64, value: u8) {
        self.kit.submit(&pool.undo(0, at, 64));
        self.kit.store(pool.media + at, &[value; 64]);
    }
}

pub(super) fn mask(field: Field) -> u32 {
    field.mask() as u32
}

/// A pool whose logs are in front of its objects, just before the engine's reserved range.
pub(super) fn pool_at_the_end(bench: &Bench) -> Pool {
    let media = bench.reserved() - (1 << 20);
    Pool {
        logs: 0,
        log_bytes: 1 << 17,
        ..Pool::new(1, 7, media)
    }
}

/// Objects after the logs, and objects that can be made to fail.
pub(super) const GOOD: u64 = 1 << 19;
pub(super) const BAD: u64 = (1 << 19) + (1 << 18);

mod sampled {
    use super::*;

    #[test]
    fn nearpm_torn_log_stays_torn_until_repaired() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        kit.store(pool.media, &[1; 256]);
        for n in 0..3 {
            kit.submit(&pool.undo(0, 64 * n, 64));
            kit.store(pool.media + 64 * n, &[2; 64]);
        }
        // A bit of the last header: by the media alone there would be two records.
        let at = pool.log(0) + 64 + 2 * 128 + 20;
        let byte = kit.load(at, 1)[0];
        kit.store(at, &[byte ^ 1]);
        kit.refused(&pool.command(Operation::Abort, 0), ErrorBit::Torn);
        let recover = pool.command(Operation::Recover, 0);
        kit.refused(&recover, ErrorBit::Torn);
        let number = kit.host.device();
        kit.host.system_mut().function_reset(number);
        kit.refused(&recover, ErrorBit::Torn);
        kit.fine(&pool.command(Operation::PoolUnmap, 0));
        kit.fine(&pool.map());
        kit.refused(&recover, ErrorBit::Torn);
        let descriptor = kit.descriptor(&pool, 0).unwrap();
        let is = (descriptor.generation, descriptor.state, descriptor.records);
        assert_eq!(is, (1, LogState::Open, 3));
        assert_eq!(kit.load(pool.media, 192), [2; 192]);
        kit.store(at, &[byte]);
        assert_eq!(kit.fine(&recover), 3);
        assert_eq!(kit.load(pool.media, 256), [1; 256]);
    }

    #[test]
    fn nearpm_missing_record_fails_the_ones_after_it() {
        if !is_there() {
            return;
        }
        for missing in 0..4 {
            let (mut kit, pool) = Kit::with_pool("");
            kit.store(pool.media, &[1; 256]);
            for n in 0..4 {
                kit.submit(&pool.undo(0, 64 * n, 64));
                kit.store(pool.media + 64 * n, &[2; 64]);
            }
            kit.fine(&pool.command(Operation::PoolUnmap, 0));
            kit.fine(&pool.map());
            kit.store(pool.log(0) + 64 + missing * 128, &[0; HEADER]);
            let recover = pool.command(Operation::Recover, 0);
            let now = match missing {
                // By the media alone that is a log with one record less.
                3 => {
                    assert_eq!(kit.fine(&recover), 3);
                    [[1; 192].as_slice(), &[2; 64]].concat()
                }
                _ => {
                    kit.refused(&recover, ErrorBit::Torn);
                    kit.refused(&recover, ErrorBit::Torn);
                    vec![2; 256]
                }
            };
            assert!(kit.load(pool.media, 256) == now, "{missing}");
        }
    }

    #[test]
    fn nearpm_damaged_payload_is_not_applied() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        kit.store(pool.media, &[3; 300]);
        kit.fine(&pool.redo(0, 0, 300, 8192 + 5));
        kit.fine(&pool.command(Operation::CommitRedo, 0));
        let at = pool.log(0) + 64 + 64 + 299;
        kit.store(at, &[7]);
        kit.refused(&pool.apply(0, 64, 300, 8192 + 5), ErrorBit::Torn);
        assert_eq!(kit.load(pool.media + 8192, 320), [0; 320]);
        // The log is closed, and must have its record.
        kit.refused(&pool.command(Operation::Recover, 0), ErrorBit::Torn);
        kit.refused(&pool.command(Operation::Delete, 0), ErrorBit::Unmapped);
        kit.store(at, &[3]);
        assert_eq!(kit.fine(&pool.command(Operation::Recover, 0)), 1);
        assert_eq!(kit.load(pool.media + 8192 + 5, 300), [3; 300]);
    }

    /// A save of which some lines could not be written, a header of another design, and no save at
    /// all.
    #[test]
    fn nearpm_incomplete_save_is_reported() {
        if !is_there() {
            return;
        }
        let mut bench = Bench::new();
        let pool = Pool::new(1, 7, 1 << 20);
        let reserved = bench.reserved();
        assert_eq!(bench.domain(), mask(domain::OPEN));
        bench.kit.fine(&pool.map());
        bench.kit.fine(&pool.open(0, 1));
        assert_eq!(bench.domain(), mask(domain::OPEN));
        assert_eq!(bench.media(reserved, 8), *b"NPMLIVE\x01");
        bench.power_off();
        let saved = bench.media(reserved, RESERVED_BYTES as usize);
        assert_eq!(saved[..8], *b"NPMSAVE\x01");

        // Not the lines that the header names.
        let lines = u32::from_le_bytes([saved[8], saved[9], saved[10], saved[11]]);
        bench.change(reserved + 8, &(lines + 96).to_le_bytes());
        bench.power_on();
        bench = bench.expect_shut(&pool);
        bench.power_off();
        bench.change(reserved, &saved);
        bench.power_on();
        assert_eq!(bench.domain(), mask(domain::OPEN) | mask(domain::RESTORED));
        assert_eq!(bench.kit.fine(&pool.undo(0, 0, 64)), 64);

        // A save that fails from some line on.
        bench.fail(reserved + 2 * PAGE);
        bench.power_off();
        bench.mend();
        // Left there by another life.
        bench.change(reserved + 2 * PAGE, &[1; PAGE as usize]);
        bench.power_on();
        bench = bench.expect_shut(&pool);
        // It stays so until the host allows to forget it.
        bench.reset();
        assert_eq!(bench.domain(), mask(domain::UNREAD));
        bench.forget();
        assert_eq!(bench.domain(), mask(domain::UNREAD));
        bench.reset();
        assert_eq!(bench.domain(), mask(domain::OPEN));
        bench.kit.fine(&pool.map());
        bench.kit.fine(&pool.command(Operation::Recover, 0));
        bench.kit.fine(&pool.open(0, 2));

        // No save: the header of a life remains.
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(reserved);
        bench.power_off();
        bench.mend();
        bench.power_on();
        let lost = mask(domain::OPEN) | mask(domain::LOST);
        assert_eq!(bench.domain(), lost);
        // Another life does not hide it.
        bench.reset();
        assert_eq!(bench.domain() & lost, lost);
        bench.forget();
        assert_eq!(bench.domain() & lost, mask(domain::OPEN));
        bench.reset();
        assert_eq!(bench.domain() & mask(domain::LOST), 0);
    }
}

#[test]
fn nearpm_failed_record_is_never_forgotten() {
    if !is_there() {
        return;
    }
    for last in [false, true] {
        let mut bench = Bench::new();
        let pool = pool_at_the_end(&bench);
        let end = pool.media + BAD;
        bench.kit.fine(&pool.map());
        bench.kit.fine(&pool.open(0, 1));
        bench.kit.store(pool.media + GOOD, &[1; 256]);
        bench.change_with_undo(&pool, GOOD, 2);
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(end);
        let fails = bench.kit.submit(&pool.undo(0, BAD, 64));
        if !last {
            bench.change_with_undo(&pool, GOOD + 64, 2);
        }
        let ended = bench.kit.finish(fails);
        assert_eq!(ended.result, ErrorBit::ReadError as u32);
        rest(&mut bench.kit.host, Time::us(5));
        bench.mend();
        let recover = pool.command(Operation::Recover, 0);
        for life in 0..3 {
            bench.kit.refused(&recover, ErrorBit::Torn);
            let is = bench.kit.descriptor(&pool, 0).unwrap();
            assert_eq!(
                (is.generation, is.records),
                (1, INCOMPLETE),
                "{last} {life}"
            );
            match life {
                0 => {
                    bench.power_off();
                    bench.power_on();
                }
                1 => {
                    bench.kit.fine(&pool.command(Operation::PoolUnmap, 0));
                    bench.kit.fine(&pool.map());
                }
                _ => {}
            }
        }
        assert_eq!(bench.kit.load(pool.media + GOOD, 64), [2; 64]);
        // The host may give it up.
        bench.kit.fine(&pool.open(0, 2));
        assert_eq!(bench.kit.fine(&pool.undo(0, GOOD, 64)), 64);
        assert_eq!(bench.kit.fine(&pool.command(Operation::Abort, 0)), 1);
    }
}

#[test]
fn nearpm_failed_copy_blocks_its_switch() {
    if !is_there() {
        return;
    }
    let mut bench = Bench::new();
    let pool = pool_at_the_end(&bench);
    bench.kit.fine(&pool.map());
    let other = Command {
        thread: 1,
        ..pool.switch(1, GOOD + 64, 5)
    };
    for late in [false, true] {
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(pool.media + BAD);
        let copy = bench.kit.submit(&pool.copy(0, BAD, PAGE, GOOD + PAGE));
        if late {
            rest(&mut bench.kit.host, Time::us(20));
        }
        let switch = bench.kit.submit(&pool.switch(0, GOOD, 7));
        let beside = bench.kit.submit(&other);
        assert_eq!(bench.kit.finish(copy).result, ErrorBit::ReadError as u32);
        assert_eq!(bench.kit.finish(switch).result, ErrorBit::Unmapped as u32);
        assert_eq!(bench.kit.finish(beside).result, 0);
        rest(&mut bench.kit.host, Time::us(5));
        bench.mend();
        let switch = pool.switch(0, GOOD, 8);
        bench.kit.refused(&switch, ErrorBit::Unmapped);
        bench.power_off();
        bench.power_on();
        bench.kit.refused(&switch, ErrorBit::Unmapped);
        assert_eq!(bench.kit.load(pool.media + GOOD, 8), [0; 8]);
        bench.kit.fine(&pool.open(0, 1));
        bench.kit.fine(&pool.switch(0, GOOD, 0));
        bench.kit.fine(&pool.command(Operation::PoolUnmap, 0));
        bench.kit.fine(&pool.map());
    }
}

/// An older command that fails after the command that opens the log again was taken.
#[test]
fn nearpm_reopened_log_stays_open() {
    if !is_there() {
        return;
    }
    let mut outcomes = [0; 2];
    for wait in 0..6 {
        let mut bench = Bench::new();
        let pool = pool_at_the_end(&bench);
        bench.kit.fine(&pool.map());
        bench.kit.fine(&pool.open(0, 1));
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(pool.media + BAD);
        let second = bench.kit.submit(&pool.undo(0, BAD - 60 * 1024, 61 * 1024));
        let first = bench.kit.submit(&pool.undo(0, BAD, 64));
        let ended = bench.kit.finish(first);
        assert_eq!(ended.result, ErrorBit::ReadError as u32);
        rest(&mut bench.kit.host, Time::us(4 * wait));
        let open = bench.kit.ends(&pool.open(0, 2)).result;
        bench.kit.finish(second);
        bench.mend();
        let next = bench.kit.ends(&pool.undo(0, GOOD, 64)).result;
        let unmapped = ErrorBit::Unmapped as u32;
        assert!([0, unmapped].contains(&open), "{open:#x}");
        assert_eq!(next, open, "{wait}");
        outcomes[usize::from(open == 0)] += 1;
    }
    assert!(!outcomes.contains(&0), "{outcomes:?}");
}
