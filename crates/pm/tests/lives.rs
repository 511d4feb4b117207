// SPDX-License-Identifier: Apache-2.0

//! Pools through several lives of the host: with alternating executors, created and grown over
//! former pools, and with numbers at their limits.

mod common;

use std::sync::Arc;

use common::Bench;
use design::Design;
use host::CutScope;
use pm::session::{PoolUse, Session};
use pm::{Error, Layout, Mechanism, Options, Pool, Synchronisation};
use sim::Time;
use spec::nearpm::{Descriptor, LogState};

const MIB: u64 = 1 << 20;
const BYTES: usize = 12_288;

const BY_CPU: PoolUse = PoolUse {
    offload: false,
    fence: host::Fence::ReadBack,
    number: 0,
    engine_recovers: false,
    group_commit: None,
    words: false,
};
const OFFLOADED: PoolUse = PoolUse {
    offload: true,
    ..BY_CPU
};
const BY_ENGINE: PoolUse = PoolUse {
    engine_recovers: true,
    ..OFFLOADED
};

fn session(devices: usize) -> Arc<Session> {
    let design = Design::find("nearpm").unwrap();
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n").unwrap();
    let model = device::Model::Fast;
    let session = Session::start_with_devices(&design, model, devices, Synchronisation::default());
    Arc::new(session.unwrap())
}

fn layout(name: &str, mechanism: Mechanism) -> Layout {
    Layout::new(name).with_mechanism(mechanism)
}

/// A pool with an object filled with one byte, as the root.
fn filled(session: &Arc<Session>, place: u64, layout: &Layout, usage: PoolUse, byte: u8) -> u64 {
    let pool = session.create(place, 4 * MIB, layout, usage).unwrap();
    let mut thread = pool.thread(0).unwrap();
    thread.begin().unwrap();
    let at = thread.alloc(BYTES as u64).unwrap();
    thread.write(at, &[byte; BYTES]).unwrap();
    thread.set_root(at).unwrap();
    thread.commit().unwrap();
    thread.finish().unwrap();
    at
}

fn change(pool: &pm::session::SessionPool, byte: u8) -> Result<(), Error> {
    let mut thread = pool.thread(0)?;
    let at = thread.root()?;
    thread.begin()?;
    thread.write(at, &[byte; BYTES])?;
    thread.commit()
}

/// The byte that fills the object.
fn content(pool: &pm::session::SessionPool) -> u8 {
    let mut thread = pool.thread(0).unwrap();
    let (at, mut bytes) = (thread.root().unwrap(), vec![0; BYTES]);
    thread.read(at, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn");
    bytes[0]
}

fn lose_power(session: &Session, devices_too: bool) {
    let cut = if devices_too {
        CutScope::All
    } else {
        CutScope::Host
    };
    session.cut_power(cut).unwrap();
    session.power_on().unwrap();
}

/// The engine still has the state of the logs from before the CPU used the pool. The content of the
/// logs counts.
#[test]
#[ignore = "takes seconds"]
fn recovery_by_the_engine_of_logs_of_the_cpu() {
    for mechanism in Mechanism::ALL {
        for cut in 0..40 {
            let session = session(1);
            filled(&session, 0, &layout("n", mechanism), OFFLOADED, 1);
            lose_power(&session, true);
            let pool = session.open(0, "n", BY_CPU).unwrap();
            change(&pool, 2).unwrap();
            let before = session.now();
            change(&pool, 3).unwrap();
            let span = session.now() - before;
            session.cut_power_after(Time(span.0 * cut / 40)).unwrap();
            // The growth fails, unless the power fails after it.
            let _ = change(&pool, 4);
            lose_power(&session, false);
            for usage in [BY_ENGINE, BY_CPU, BY_ENGINE] {
                let pool = session.open(0, "n", usage).unwrap();
                let is = content(&pool);
                assert!([3, 4].contains(&is), "{mechanism:?}, cut {cut}: {is}");
                pool.check().unwrap();
                pool.close().unwrap();
            }
        }
    }
}

/// A pool is created over an interrupted creation of the same shape.
#[test]
fn creation_replaces_an_interrupted_one() {
    for (devices, usage) in [
        (1, BY_ENGINE),
        (1, OFFLOADED),
        (2, BY_ENGINE),
        (2, OFFLOADED),
    ] {
        for mechanism in Mechanism::ALL {
            let session = session(devices);
            let layout = layout("n", mechanism);
            filled(&session, 0, &layout, usage, 1);
            let pool = session.open(0, "n", usage);
            assert!(pool.is_ok(), "nobody has it any more");
            let pool = pool.unwrap();
            session.cut_power_after(Time::us(2)).unwrap();
            let _ = change(&pool, 2);
            lose_power(&session, false);
            filled(&session, 0, &layout, usage, 5);
            let pool = session.open(0, "n", usage).unwrap();
            assert_eq!(content(&pool), 5);
            change(&pool, 6).unwrap();
            assert_eq!(content(&pool), 6);
        }
    }
}

/// A refused creation changes nothing.
#[test]
fn creation_refused_changes_nothing() {
    let session = session(1);
    let layout = layout("precious", Mechanism::Undo);
    filled(&session, 0, &layout, OFFLOADED, 7);
    for usage in [OFFLOADED, BY_CPU] {
        let usage = PoolUse {
            number: 16,
            ..usage
        };
        let made = session.create(0, 4 * MIB, &layout, usage);
        assert!(matches!(made, Err(Error::Invalid(_))));
        let pool = session.open(0, "precious", OFFLOADED).unwrap();
        assert_eq!(content(&pool), 7);
    }
    // A pool that only the engine has, which overlaps the next one.
    let pool = session.open(0, "precious", OFFLOADED).unwrap();
    let engines = std::slice::from_ref(session.engine().unwrap());
    let options = pm::Options {
        pool: 1,
        ..pm::Options::with_engines(engines)
    };
    let made = pm::Pool::create(&session.cpu(0).unwrap(), 0, 0, 4 * MIB, &layout, &options);
    assert!(matches!(made, Err(Error::Refused(..))));
    assert_eq!(content(&pool), 7);
}

/// Engines keep pools from before a power loss; these block no other pool.
#[test]
fn stale_pool_on_the_engine_blocks_no_other() {
    for devices in [1, 2] {
        let session = session(devices);
        let usage = PoolUse {
            number: 1,
            ..OFFLOADED
        };
        filled(&session, 0, &layout("a", Mechanism::Undo), OFFLOADED, 1);
        filled(&session, 8 * MIB, &layout("b", Mechanism::Undo), usage, 2);
        lose_power(&session, true);
        let a = session.open(0, "a", OFFLOADED).unwrap();
        a.resize(8 * MIB * devices as u64 + 4 * MIB).unwrap();
        assert_eq!(content(&a), 1);
        change(&a, 3).unwrap();
        a.close().unwrap();
        lose_power(&session, true);
        filled(&session, 4 * MIB, &layout("c", Mechanism::Redo), usage, 4);
        lose_power(&session, true);
        let c = session.open(4 * MIB, "c", usage).unwrap();
        assert_eq!(content(&c), 4);
    }
}

/// A pool whose growth is refused stays as it was, and its transactions have logs.
#[test]
fn growth_refused_leaves_the_pool_usable() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint] {
        let session = session(1);
        filled(&session, 0, &layout("a", mechanism), OFFLOADED, 1);
        // A pool that a program has mapped itself is not stale.
        let map = spec::nearpm::Command {
            address: 1 << 40,
            bytes: MIB,
            target: 8 * MIB,
            value: 4096,
            extra: 1,
            ..spec::nearpm::Command::new(spec::nearpm::Operation::PoolMap, 9, 5, 0)
        };
        session.command(&map).unwrap();
        let pool = session.open(0, "a", OFFLOADED).unwrap();
        assert!(pool.resize(10 * MIB).is_err());
        assert_eq!(pool.bytes(), 4 * MIB);
        change(&pool, 2).unwrap();
        let before = session.now();
        change(&pool, 3).unwrap();
        let span = session.now() - before;
        for part in 1..8 {
            let pool = session
                .open(0, "a", OFFLOADED)
                .unwrap_or_else(|_| pool.clone());
            let was = content(&pool);
            session.cut_power_after(Time(span.0 * part / 8)).unwrap();
            assert!(change(&pool, was + 1).is_err());
            lose_power(&session, false);
            let pool = session.open(0, "a", OFFLOADED).unwrap();
            let is = content(&pool);
            assert!([was, was + 1].contains(&is), "{mechanism:?}: {was}, {is}");
            pool.check().unwrap();
        }
    }
}

/// Numbers out of range are damage, and are not continued.
#[test]
fn generation_limits_are_reported() {
    let top = u64::MAX;
    let cases = [
        (1, BY_CPU, top, 5),
        (1, OFFLOADED, top - 2, 5),
        (1, BY_ENGINE, top - 2, 5),
        (1, OFFLOADED, 7, top),
        (2, OFFLOADED, top, 7),
        (2, OFFLOADED, 7, top - 1),
        (2, OFFLOADED, 7, (1 << 48) - 3),
        (2, BY_ENGINE, 7, (1 << 48) + 5),
    ];
    for (devices, usage, generation, transaction) in cases {
        let session = session(devices);
        filled(&session, 0, &layout("n", Mechanism::Undo), usage, 1);
        let pool = session.open(0, "n", usage).unwrap();
        pool.close().unwrap();
        let mut line = [0; 64];
        session.load(4096, &mut line).unwrap();
        assert!(Descriptor::from_line(&line).is_some());
        let descriptor = Descriptor {
            generation,
            state: LogState::Open,
            records: 0,
            transaction,
        };
        session.store(4096, &descriptor.to_line()).unwrap();
        let opened = session.open(0, "n", usage);
        let refusal = opened.err();
        assert!(
            matches!(refusal, Some(Error::Corrupt(_))),
            "{devices}, {generation}, {transaction}: {refusal:?}"
        );
    }
}

/// A check within a transaction is refused.
#[test]
fn check_needs_no_transaction_under_way() {
    for mechanism in Mechanism::ALL {
        let session = session(1);
        filled(&session, 0, &layout("n", mechanism), BY_CPU, 1);
        let pool = session.open(0, "n", BY_CPU).unwrap();
        let mut thread = pool.thread(0).unwrap();
        thread.begin().unwrap();
        assert!(matches!(pool.check(), Err(Error::Invalid(_))));
        assert!(thread.set_root(u64::MAX - 63).is_err());
        thread.commit().unwrap();
        pool.check().unwrap();
    }
}

/// A scheduled cut that has taken place is not postponed.
#[test]
fn power_stays_off_after_a_loss() {
    let session = session(1);
    filled(&session, 0, &layout("n", Mechanism::Undo), BY_CPU, 1);
    let pool = session.open(0, "n", BY_CPU).unwrap();
    session.cut_power_after(Time::us(1)).unwrap();
    assert!(change(&pool, 2).is_err());
    assert!(!session.has_power());
    assert!(session.cut_power_after(Time::ms(1)).is_err());
    assert!(!session.has_power());
    session.power_on().unwrap();
    let pool = session.open(0, "n", BY_CPU).unwrap();
    assert_eq!(content(&pool), 1);
}

/// A pool that is opened with another number is recovered, or it is refused and stays recoverable.
#[test]
fn recovery_with_another_pool_number_loses_nothing() {
    let (mut refused, mut opened) = (0, 0);
    for (devices, usage, cut) in [1, 2]
        .into_iter()
        .flat_map(|devices| [OFFLOADED, BY_ENGINE].map(|usage| (devices, usage)))
        .flat_map(|(devices, usage)| (0..8).map(move |cut| (devices, usage, cut)))
    {
        let session = session(devices);
        filled(&session, 0, &layout("n", Mechanism::Undo), usage, 1);
        let pool = session.open(0, "n", usage).unwrap();
        let before = session.now();
        change(&pool, 2).unwrap();
        let span = session.now() - before;
        session.cut_power_after(Time(span.0 * cut / 8)).unwrap();
        let _ = change(&pool, 3);
        lose_power(&session, true);
        for number in [1, 0, 1] {
            match session.open(0, "n", PoolUse { number, ..usage }) {
                Ok(pool) => {
                    let is = content(&pool);
                    assert!([2, 3].contains(&is), "{devices} {cut} {number}: {is}");
                    pool.check().unwrap();
                    pool.close().unwrap();
                    opened += number;
                }
                Err(error) => {
                    let text = error.to_string();
                    // The CPU recovers one device by the records alone.
                    let needed = devices > 1 || usage.engine_recovers;
                    assert!(number == 1 && needed, "{devices} {cut}: {text}");
                    assert!(text.contains("number 0"), "{devices} {cut}: {text}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 5 && opened > 32, "{refused} {opened}");
}

/// The engines still have the pool from before the power loss, under its former number.
#[test]
fn session_unmaps_a_stale_pool_under_another_number() {
    for (devices, usage, create) in [1, 2, 4]
        .into_iter()
        .flat_map(|devices| [OFFLOADED, BY_ENGINE].map(|usage| (devices, usage)))
        .flat_map(|(devices, usage)| [false, true].map(|create| (devices, usage, create)))
    {
        let session = session(devices);
        filled(&session, 0, &layout("n", Mechanism::Undo), usage, 1);
        lose_power(&session, true);
        let other = PoolUse { number: 1, ..usage };
        if create {
            filled(&session, 0, &layout("m", Mechanism::Undo), other, 2);
        }
        let name = if create { "m" } else { "n" };
        let pool = session.open(0, name, other).unwrap();
        assert_eq!(content(&pool), 1 + u8::from(create), "{devices}");
        change(&pool, 3).unwrap();
        assert_eq!(content(&pool), 3);
        pool.close().unwrap();
    }
}

/// A thread of a session from before a power loss, dropped or closed, leaves the pool as it was
/// recovered.
#[test]
fn old_thread_of_a_session_stores_nothing() {
    for mechanism in Mechanism::ALL {
        for (usage, close) in [BY_CPU, OFFLOADED]
            .into_iter()
            .flat_map(|usage| [(usage, false), (usage, true)])
        {
            let session = session(1);
            let at = filled(&session, 0, &layout("n", mechanism), usage, 1);
            let pool = session.open(0, "n", usage).unwrap();
            let mut old = pool.thread(0).unwrap();
            for byte in [2, 3] {
                old.begin().unwrap();
                old.write(at, &[byte; BYTES]).unwrap();
                old.commit_later().unwrap();
            }
            lose_power(&session, true);
            let pool = session.open(0, "n", usage).unwrap();
            let recovered = content(&pool);
            match close {
                true => drop(old.close().unwrap()),
                false => drop(old),
            }
            pool.close().unwrap();
            let pool = session.open(0, "n", usage).unwrap();
            assert_eq!(content(&pool), recovered, "{mechanism:?}, {usage:?}");
            pool.check().unwrap();
        }
    }
}

/// The same without a session: whatever is called, nothing is stored, and no transaction of the
/// former life becomes durable.
#[test]
fn old_thread_is_void() {
    const PLACE: u64 = 64 << 10;
    for mechanism in Mechanism::ALL {
        for (offloaded, words) in [(false, false), (true, false), (true, true)] {
            let what = format!("{mechanism:?}, offloaded: {offloaded}, words: {words}");
            let bench = Bench::near(1);
            let cpu = bench.shared.cpu(0);
            let options = Options {
                words,
                ..bench.options(offloaded)
            };
            let layout = layout("n", mechanism);
            let old_pool = Pool::create(&cpu, 0, PLACE, 3 * MIB, &layout, &options).unwrap();
            let mut old = old_pool.thread(&cpu).unwrap();
            let created = old.run(|tx| tx.create(&[0u64; 20]));
            let at = created.unwrap_or_else(|e: Error| panic!("{e}"));
            for value in 1..4 {
                let later = old.run_later(|tx| tx.set(at, &[value; 20]));
                let (_, ticket) = later.unwrap_or_else(|e: Error| panic!("{e}"));
                if !old.is_durable(ticket) {
                    let called = |_| panic!("durable after the power was lost");
                    old.when_durable(ticket, called).unwrap();
                }
            }
            let crash = |machine: &mut host::Machine| machine.crash(CutScope::All);
            bench.shared.with_machine(crash).unwrap();
            bench.restart();

            let pool = Pool::open(&cpu, 0, PLACE, "n", &options).unwrap();
            let mut thread = pool.thread(&cpu).unwrap();
            let found = thread.get(at).unwrap();
            let is_power = |result: pm::Result<()>| matches!(result, Err(Error::Power(_)));
            assert!(is_power(old.poll().map(drop)), "{what}");
            assert!(is_power(old.sync()), "{what}");
            assert!(is_power(old.run(|tx| tx.set(at, &[9; 20]))), "{what}");
            drop((old, old_pool));
            assert_eq!(thread.get(at).unwrap(), found, "{what}");
            let next = thread.run(|tx| tx.set(at, &[5; 20]));
            next.unwrap_or_else(|e: Error| panic!("{what}: {e}"));
            drop(thread);
            pool.check(&cpu).unwrap();
        }
    }
}
