// SPDX-License-Identifier: Apache-2.0

//! Error reports of the engine `nearpm`, and early accesses to it: the same on both models.

use driver::Host;
use sim::{Bar, Media, Time};
use spec::nearpm::{register, Command, ErrorBit, LogState, Operation};
use spec::regs::nearpm::{domain, DOMAIN, FORGET, REFUSED, TAKEN, UNDER_WAY};

use super::nearpm_faults::{mask, pool_at_the_end, Bench, BAD, GOOD};
use crate::common::nearpm::{is_there, Kit, Pool};
use crate::common::{design, factory, model, rest};

const LEN: u64 = 65_536;
/// Lines of logs in the saved range.
const LINE: u64 = 8192;

/// After power-on the host allows at once to forget what is lost or unread. The range is not read
/// by then.
fn forgotten_at_once(bench: &mut Bench) {
    let number = bench.kit.host.device();
    bench.kit.host.system_mut().power_on(number);
    let at = bench.registers + FORGET;
    bench.kit.host.write32(Bar::Control, at, 1).unwrap();
    rest(&mut bench.kit.host, Time::us(50));
}

mod sampled {
    use super::*;

    #[test]
    fn nearpm_queue_line_write_error_is_reported() {
        if !is_there() {
            return;
        }
        let mut bench = Bench::new();
        let pool = pool_at_the_end(&bench);
        bench.kit.fine(&pool.map());
        let last = GOOD + LEN - 64;
        let copy = bench.kit.submit(&pool.copy(0, GOOD, LEN, GOOD + LEN));
        // It waits for the copy, and is answered before that ends.
        bench.kit.store(pool.media + last, &[7; 64]);
        rest(&mut bench.kit.host, Time::us(1));
        bench.fail(pool.media + last);
        assert_ne!(bench.kit.finish(copy).result, 0);
        rest(&mut bench.kit.host, Time::us(20));
        bench.mend();
        assert_eq!(bench.media(pool.media + last, 64), [0; 64]);
        let flags = mask(domain::OPEN) | mask(domain::LINE_ERROR);
        assert_eq!(bench.domain(), flags);
        bench.reset();
        assert_eq!(bench.domain() & mask(domain::LINE_ERROR), 0);
    }

    /// All devices have completed a transaction, and the log cannot be emptied.
    #[test]
    fn nearpm_log_that_cannot_be_emptied_is_closed() {
        if !is_there() {
            return;
        }
        let mut bench = Bench::new();
        let pool = pool_at_the_end(&bench);
        let registers = bench.registers;
        let host = &mut bench.kit.host;
        host.write32(
            Bar::Control,
            registers + register::DEVICE,
            register::DEVICE_IS_SET,
        )
        .unwrap();
        bench.kit.fine(&pool.map());
        bench.kit.fine(&pool.open(0, 1));
        bench.kit.fine(&pool.undo(0, GOOD, 64));
        let commit = Command {
            value: 0b11,
            transaction: 5,
            ..pool.command(Operation::Commit, 0)
        };
        bench.kit.fine(&commit);
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(pool.media);
        let word = u64::from(pool.number) << 60 | commit.transaction;
        let at = registers + register::DONE + 8;
        let host = &mut bench.kit.host;
        host.write(Bar::Control, at, &word.to_le_bytes()).unwrap();
        rest(host, Time::us(20));
        bench.mend();
        let is = bench.kit.descriptor(&pool, 0).unwrap();
        assert_eq!((is.generation, is.state), (1, LogState::Pending(0b11)));
        let next = pool.undo(0, GOOD + 64, 64);
        bench.kit.refused(&next, ErrorBit::Unmapped);
        assert_eq!(bench.kit.fine(&pool.command(Operation::Recover, 0)), 1);
    }

    #[test]
    fn nearpm_forget_before_the_range_is_read_counts() {
        if !is_there() {
            return;
        }
        let mut bench = Bench::new();
        let pool = Pool::new(1, 7, 1 << 20);
        bench.kit.fine(&pool.map());
        rest(&mut bench.kit.host, Time::us(5));
        // The flag for what is lost, with something to restore, so that it takes a while.
        bench.fail(bench.reserved());
        bench.power_off();
        bench.mend();
        bench.power_on();
        bench.kit.fine(&pool.map());
        let lost = mask(domain::OPEN) | mask(domain::LOST);
        assert_eq!(bench.domain(), lost);
        bench.power_off();
        forgotten_at_once(&mut bench);
        let fine = mask(domain::OPEN) | mask(domain::RESTORED);
        assert_eq!(bench.domain(), fine);
        // The flag for what is unread.
        bench.power_off();
        bench.change(bench.reserved() + LINE, &[1; 64]);
        forgotten_at_once(&mut bench);
        assert_eq!(bench.domain(), mask(domain::UNREAD));
        bench.reset();
        assert_eq!(bench.domain(), mask(domain::OPEN));
    }

    #[test]
    fn nearpm_refusals_are_counted_after_a_failed_restore() {
        if !is_there() {
            return;
        }
        let mut bench = Bench::new();
        let pool = Pool::new(1, 7, 1 << 20);
        bench.kit.fine(&pool.map());
        bench.power_off();
        bench.change(bench.reserved() + LINE, &[1; 64]);
        bench.power_on();
        for _ in 0..2 {
            bench.kit.refused(&pool.map(), ErrorBit::ReadError);
        }
        let registers = bench.registers;
        let counts = [TAKEN, REFUSED, UNDER_WAY].map(|at| {
            let word = bench.kit.host.read32(Bar::Control, registers + at);
            word.unwrap()
        });
        assert_eq!(counts, [2, 2, 0]);
    }
}

/// Stores, a command and loads while the range is read, which is incomplete. All of them end, with
/// errors.
#[test]
fn nearpm_early_accesses_fail_when_the_restore_fails() {
    if !is_there() {
        return;
    }
    for wait in 0..4 {
        let mut bench = Bench::new();
        let pool = Pool::new(1, 7, 1 << 20);
        bench.kit.fine(&pool.map());
        bench.power_off();
        bench.change(bench.reserved() + LINE, &[1; 64]);
        let number = bench.kit.host.device();
        bench.kit.host.system_mut().power_on(number);
        rest(&mut bench.kit.host, Time::us(wait));
        for n in 0..40 {
            bench.kit.store(4096 * n, &[9; 4096]);
        }
        let map = bench.kit.submit(&pool.map());
        let mut line = [0; 64];
        assert!(bench.kit.host.read(Bar::Pm, 0, &mut line).is_err());
        let ended = bench.kit.finish(map);
        assert_eq!(ended.result, ErrorBit::ReadError as u32);
        bench.kit.store(0, &[9; 4096]);
        assert!(bench.kit.host.read(Bar::Pm, 4096, &mut line).is_err());
        assert_eq!(bench.media(0, 8192), [0; 8192]);
        assert_eq!(bench.domain(), mask(domain::UNREAD));
    }
}

/// An older copy or switch that fails closes its thread's log, but not after the log was opened
/// again.
#[test]
fn nearpm_older_errors_do_not_close_a_reopened_log() {
    if !is_there() {
        return;
    }
    let mut bench = Bench::new();
    let pool = pool_at_the_end(&bench);
    let copy = pool.copy(0, BAD - 3 * 4096, 3 * 4096 + 64, GOOD);
    // It waits for a copy of another thread.
    let other = pool.copy(1, BAD - 2 * 4096, 4096, BAD - 4096);
    let switch = pool.switch(0, BAD, 5);
    let mut outcomes = [0; 2];
    for wait in 0..30 {
        bench.kit.fine(&pool.map());
        rest(&mut bench.kit.host, Time::us(5));
        bench.fail(pool.media + BAD);
        let fails = match wait % 2 {
            0 => vec![bench.kit.submit(&copy)],
            _ => vec![bench.kit.submit(&other), bench.kit.submit(&switch)],
        };
        rest(&mut bench.kit.host, Time::ns(200 * wait));
        let open = bench.kit.submit(&pool.open(0, 2));
        let open = bench.kit.finish(open).result;
        let next = bench.kit.ends(&pool.undo(0, GOOD + LEN, 64)).result;
        for command in fails {
            bench.kit.finish(command);
        }
        let late = bench.kit.ends(&pool.undo(0, GOOD + LEN, 64)).result;
        bench.mend();
        bench.kit.fine(&pool.command(Operation::PoolUnmap, 0));
        assert_eq!([next, late], [open; 2], "{wait}");
        outcomes[usize::from(open == 0)] += 1;
    }
    assert!(!outcomes.contains(&0), "{outcomes:?}");
}

/// A device ends while the disk is full. Its journal has what it would have written.
#[test]
fn nearpm_full_disk_at_exit_loses_nothing() {
    if model() != ::device::Model::Fast {
        return;
    }
    let values = "media.bytes = \"32 MiB\"\nnvme.namespaces = [\"4 MiB\"]";
    let design = design("nearpm").with_values(values).unwrap();
    let path = crate::window::scratch("nearpm-full");
    let pool = Pool::new(1, 7, 1 << 20);
    let bytes = design.media.bytes.0;
    let media = Media::file(&path, bytes).unwrap();
    let bad = media.failing_range();
    let mut kit = Kit::before(factory(&design).device(media).unwrap(), &design);
    kit.fine(&pool.map());
    kit.submit(&pool.copy(0, 0, LEN, LEN));
    // It waits in the queue; the load shows that it is answered.
    kit.store(pool.media + LEN - 64, &[7; 64]);
    kit.load(pool.media + 4 * LEN, 1);
    bad.set(0..bytes);
    drop(kit);
    assert!(std::fs::metadata(&path).unwrap().len() > bytes);
    let media = Media::file(&path, bytes).unwrap();
    let mut kit = Kit::before(factory(&design).device(media).unwrap(), &design);
    rest(&mut kit.host, Time::us(50));
    let at = design.engines().unwrap()[0].offset + DOMAIN;
    let fine = mask(domain::OPEN) | mask(domain::RESTORED);
    assert_eq!(kit.host.read32(Bar::Control, at).unwrap(), fine);
    assert_eq!(kit.load(pool.media + LEN - 64, 64), [7; 64]);
    assert_eq!(kit.load(pool.media + 2 * LEN - 64, 64), [0; 64]);
    drop(kit);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
}
