// SPDX-License-Identifier: Apache-2.0

//! Shadow paging: lines are read where they are cached, and reads return the last stores.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::Bench;
use host::{Cpu, CutScope, Program};
use pm::{Error, Layout, Mechanism, Options, Pool};
use sim::{Random, Time};

const PLACE: u64 = 64 << 10;

fn create(cpu: &Cpu, devices: usize, options: &Options, spare_pages: u64) -> Pool {
    let layout = Layout {
        spare_pages,
        ..Layout::new("test").with_mechanism(Mechanism::Shadow)
    };
    let devices: Vec<usize> = (0..devices).collect();
    Pool::create(cpu, devices, PLACE, 8 << 20, &layout, options).unwrap()
}

/// An engine has copied the page of an object with one changed line: no line is loaded from the new
/// place.
#[test]
fn shadow_keeps_lines_of_a_copied_page_cached() {
    let bench = Bench::near(1);
    let cpu = bench.shared.cpu(0);
    let pool = create(&cpu, 1, &bench.options(true), 64);
    let mut thread = pool.thread(&cpu).unwrap();
    let at = thread.run(|tx| tx.alloc_bytes(2048)).unwrap().offset();
    thread.run(|tx| tx.write(at, &[1; 2048])).unwrap();
    let mut bytes = [0; 2048];
    thread.read(at, &mut bytes).unwrap();
    for n in 2..70 {
        let line = at + u64::from(n) % 32 * 64;
        thread.run(|tx| tx.write(line, &[n; 64])).unwrap();
        cpu.compute(Time::us(2)).unwrap();
        for other in (at..at + 2048).step_by(64) {
            let begin = cpu.now();
            let mut found = [0; 64];
            thread.read(other, &mut found).unwrap();
            let took = cpu.now().saturating_sub(begin);
            assert!(
                took < Time::ns(50),
                "{took:?} for line {other:#x} after {line:#x}"
            );
            assert_eq!(found[0] == n, other == line);
        }
    }
}

/// Bytes stored in a transaction are not loaded from the device, nor is the content of a new
/// object.
#[test]
fn shadow_does_not_load_new_lines() {
    for offloaded in [false, true] {
        let bench = Bench::near(1);
        let cpu = bench.shared.cpu(0);
        let pool = create(&cpu, 1, &bench.options(offloaded), 64);
        let mut thread = pool.thread(&cpu).unwrap();
        thread.run(|tx| tx.alloc_bytes(64)).unwrap();
        let stored = thread.run(|tx| {
            let at = tx.alloc_bytes(512)?.offset();
            let begin = cpu.now();
            for n in 0..8 {
                tx.write(at + 64 * n + 8, &[n as u8 + 1; 8])?;
            }
            let mut found = [0; 512];
            tx.read(at, &mut found)?;
            Ok::<_, Error>((at, found, cpu.now().saturating_sub(begin)))
        });
        let (at, stored, took) = stored.unwrap();
        // A spare page is taken and a command submitted, without waiting for a load.
        assert!(took < Time::ns(430), "{took:?}, offloaded: {offloaded}");
        let mut found = [0; 512];
        thread.read(at, &mut found).unwrap();
        assert_eq!(found, stored);
        for n in 0..8 {
            assert_eq!(found[64 * n + 8..64 * n + 16], [n as u8 + 1; 8]);
        }
    }
}

/// Transactions store to any of these pages, some are aborted. Reads within and between them are
/// compared with the expected bytes.
fn random(devices: usize, offloaded: bool, spare_pages: u64, seed: u64) {
    const PAGES: u64 = 12;
    const OBJECT: u64 = 2048;
    let bench = Bench::near(devices);
    let cpu = bench.shared.cpu(0);
    let options = bench.options(offloaded);
    let pool = create(&cpu, devices, &options, spare_pages);
    let mut random = Random::new(seed);
    let mut thread = pool.thread(&cpu).unwrap();
    let mut objects = Vec::new();
    for n in 0..2 * PAGES {
        let made = thread.run(|tx| {
            let at = tx.alloc_bytes(OBJECT)?.offset();
            tx.write(at, &[n as u8; OBJECT as usize])?;
            Ok::<_, Error>(at)
        });
        objects.push((made.unwrap(), vec![n as u8; OBJECT as usize]));
    }
    // A part of an object: short, or whole lines.
    let part = |random: &mut Random| {
        let object = random.below(2 * PAGES) as usize;
        let len = match random.below(3) {
            0 => 64,
            1 => 1 + random.below(100),
            _ => 64 * (1 + random.below(8)),
        };
        let from = random.below(OBJECT - len + 1);
        let from = if len % 64 == 0 { from / 64 * 64 } else { from };
        (object, from as usize..(from + len) as usize)
    };
    for n in 0..400 {
        let before = objects.clone();
        let aborts = random.below(5) == 0;
        let ran = thread.run(|tx| {
            for _ in 0..1 + random.below(4) {
                let (object, range) = part(&mut random);
                let (at, bytes) = &mut objects[object];
                let data: Vec<u8> = range.clone().map(|_| random.below(256) as u8).collect();
                tx.write(*at + range.start as u64, &data)?;
                bytes[range].copy_from_slice(&data);
            }
            for _ in 0..6 {
                let (object, range) = part(&mut random);
                let mut found = vec![0; range.len()];
                tx.read(objects[object].0 + range.start as u64, &mut found)?;
                assert_eq!(found, objects[object].1[range], "within transaction {n}");
            }
            match aborts {
                true => Err(Error::Invalid("aborted".into())),
                false => Ok(()),
            }
        });
        assert_eq!(ran.is_err(), aborts, "{ran:?}");
        if aborts {
            objects = before;
        }
        for _ in 0..6 {
            let (object, range) = part(&mut random);
            let mut found = vec![0; range.len()];
            let at = objects[object].0 + range.start as u64;
            thread.read(at, &mut found).unwrap();
            assert_eq!(found, objects[object].1[range], "after transaction {n}");
        }
        if n % 100 == 50 {
            pool.check(&cpu).unwrap();
        }
    }
    drop(thread);
    drop(pool);
    let crash = |machine: &mut host::Machine| machine.crash(CutScope::All);
    bench.shared.with_machine(crash).unwrap();
    bench.restart();
    let pool = Pool::open(
        &cpu,
        (0..devices).collect::<Vec<_>>(),
        PLACE,
        "test",
        &options,
    )
    .unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    for (at, bytes) in &objects {
        let mut found = vec![0; bytes.len()];
        thread.read(*at, &mut found).unwrap();
        assert_eq!(&found, bytes, "after the loss of power");
    }
}

#[test]
fn shadow_reads_what_was_stored_last() {
    for (devices, offloaded) in [(1, false), (1, true), (2, true)] {
        for spare_pages in [6, 9, 64] {
            random(devices, offloaded, spare_pages, 7 + spare_pages);
        }
    }
}

/// A program that reads all the time, from a page whose former place is the only spare one, does
/// not block transactions.
#[test]
fn shadow_readers_leave_a_needed_place() {
    const ROUNDS: usize = 20;
    for offloaded in [false, true] {
        let bench = Bench::near(1);
        let cpu = bench.shared.cpu(0);
        let pool = create(&cpu, 1, &bench.options(offloaded), 1);
        let mut thread = pool.thread(&cpu).unwrap();
        let [read, written] =
            [0, 1].map(|_| thread.run(|tx| tx.alloc_bytes(2048)).unwrap().offset());
        assert_eq!(read / 4096, written / 4096);
        thread.run(|tx| tx.write(read, &[7; 2048])).unwrap();
        drop(thread);
        let done = AtomicUsize::new(0);
        let writer: Program<'_, ()> = Box::new(|cpu: &Cpu| {
            let mut thread = pool.thread(cpu).unwrap();
            for n in 0..ROUNDS {
                thread.run(|tx| tx.write(written, &[n as u8; 64])).unwrap();
                done.store(n + 1, Ordering::Relaxed);
            }
        });
        let reader: Program<'_, ()> = Box::new(|cpu: &Cpu| {
            let mut thread = pool.thread(cpu).unwrap();
            let until = cpu.now() + Time::us(500);
            while done.load(Ordering::Relaxed) < ROUNDS && cpu.now() < until {
                let mut bytes = [0; 2048];
                thread.read(read, &mut bytes).unwrap();
                assert_eq!(bytes, [7; 2048]);
            }
            let done = done.load(Ordering::Relaxed);
            assert_eq!(done, ROUNDS, "transactions, offloaded: {offloaded}");
        });
        bench.shared.run(vec![(0, writer), (1, reader)]).unwrap();
    }
}

/// A commit with an error may have taken effect, so the pool is not used any further.
#[test]
fn shadow_commit_with_an_error_is_not_treated_as_aborted() {
    for offloaded in [false, true] {
        let mut committed = 0;
        for step in 0..60 {
            let bench = Bench::near(1);
            let cpu = bench.shared.cpu(0);
            let options = bench.options(offloaded);
            let pool = create(&cpu, 1, &options, 64);
            let mut thread = pool.thread(&cpu).unwrap();
            let at = thread.run(|tx| tx.alloc_bytes(128)).unwrap().offset();
            thread.run(|tx| tx.write(at, &[7; 128])).unwrap();
            let cut = cpu.now() + Time::ns(100 * step);
            bench
                .shared
                .with_machine(|machine| machine.cut_at(Some(cut)));
            if thread.run(|tx| tx.write(at, &[8; 128])).is_ok() {
                break;
            }
            let crash = |machine: &mut host::Machine| machine.crash(CutScope::Host);
            bench.shared.with_machine(crash).unwrap();
            bench.restart();
            let is_used_on = thread.run(|_| Ok::<_, Error>(())).is_ok();
            drop(thread);
            drop(pool);
            let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
            let mut found = [0; 128];
            let mut thread = pool.thread(&cpu).unwrap();
            thread.read(at, &mut found).unwrap();
            if found == [8; 128] {
                committed += 1;
                assert!(!is_used_on, "step {step}, offloaded: {offloaded}");
            }
        }
        assert!(committed > 2, "{committed}, offloaded: {offloaded}");
    }
}

/// A pool that is used after a power loss has what was committed before.
#[test]
fn shadow_pages_keep_their_places_after_power_loss() {
    for offloaded in [false, true] {
        let bench = Bench::near(1);
        let cpu = bench.shared.cpu(0);
        let options = bench.options(offloaded);
        let pool = create(&cpu, 1, &options, 64);
        let mut thread = pool.thread(&cpu).unwrap();
        let [first, other] =
            [0, 1].map(|_| thread.run(|tx| tx.alloc_bytes(4096)).unwrap().offset());
        thread.run(|tx| tx.write(first, &[9; 4096])).unwrap();
        let crash = |machine: &mut host::Machine| machine.crash(CutScope::Host);
        bench.shared.with_machine(crash).unwrap();
        bench.restart();
        for n in 0..4 {
            thread.run(|tx| tx.write(other, &[n; 4096])).unwrap();
        }
        drop(thread);
        pool.check(&cpu).unwrap();
        drop(pool);
        let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
        let mut thread = pool.thread(&cpu).unwrap();
        for (at, byte) in [(first, 9), (other, 3)] {
            let mut found = [0; 4096];
            thread.read(at, &mut found).unwrap();
            assert_eq!(found, [byte; 4096], "offloaded: {offloaded}");
        }
    }
}
