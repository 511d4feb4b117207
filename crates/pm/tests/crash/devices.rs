// SPDX-License-Identifier: Apache-2.0

//! Pools over several devices, each of which fails at its time, or not at all.

use std::sync::{Arc, Mutex};

use host::Cpu;
use pm::{Counts, Error, Listener, Mechanism, Options, Pool, Synchronisation, Thread};
use sim::Time;

use super::common::Bench;
use super::{any_time, cases, layout, Case, On, NAME, PLACE, WINDOW};

fn over(devices: usize, seed: u64) -> impl Iterator<Item = Case> {
    cases(seed, 8).map(move |case| Case {
        on: On::Near,
        devices,
        ..case
    })
}

fn some(devices: usize, cuts: usize) {
    for case in over(devices, 5) {
        any_time(case, cuts);
    }
}

/// The tests of `crates/crash` have far more of these.
#[test]
#[ignore = "takes seconds"]
fn crash_of_two_and_four_devices_leaves_n_or_one_more() {
    some(2, 6);
    some(4, 2);
}

#[test]
fn crash_of_host_synchronised_devices_leaves_n_or_one_more() {
    let kinds = [Mechanism::Undo, Mechanism::Checkpoint];
    let cases = over(2, 6).filter(|c| c.offloaded && kinds.contains(&c.mechanism));
    for case in cases {
        let synchronise = Synchronisation::Host;
        any_time(
            Case {
                synchronise,
                ..case
            },
            6,
        );
    }
}

/// Bytes of the pool that are on one device, before the next device has as many.
const STRIPE: u64 = 4096;
/// The content of the objects after a transaction.
const NEW: u64 = 0x5EED;

/// The change of a transaction.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Stores in one stripe of an object.
    One,
    /// Stores in two stripes, which are on two devices.
    Both,
    /// Allocates an object of two stripes, and fills this one of them, without a record.
    Fresh(u64),
}

/// A pool over two devices, with an object in two stripes.
struct Two {
    bench: Bench,
    cpu: Cpu,
    options: Options,
    pool: Pool,
    object: u64,
    /// The end of each operation for crash consistency.
    ends: Arc<Mutex<Vec<Time>>>,
}

impl Two {
    fn new(mechanism: Mechanism) -> Two {
        let bench = Bench::near(2);
        let cpu = bench.shared.cpu(0);
        let ends = Arc::<Mutex<Vec<Time>>>::default();
        let heard = ends.clone();
        let listener: Listener = Arc::new(move |_, _, end| heard.lock().unwrap().push(end));
        let options = Options {
            listener: Some(listener),
            ..bench.options(true)
        };
        let layout = layout(mechanism);
        let pool = Pool::create(&cpu, vec![0, 1], PLACE, 2 * WINDOW, &layout, &options).unwrap();
        let mut thread = pool.thread(&cpu).unwrap();
        let object = thread.run(|tx| {
            let object = tx.alloc_bytes(2 * STRIPE)?.offset();
            tx.write(object, &[0; 2 * STRIPE as usize])?;
            Ok::<_, Error>(object)
        });
        thread.finish().unwrap();
        drop(thread);
        ends.lock().unwrap().clear();
        Two {
            bench,
            cpu,
            options,
            pool,
            object: object.unwrap(),
            ends,
        }
    }

    fn change(&self, thread: &mut Thread, change: Change) -> pm::Result<()> {
        let new = NEW.to_le_bytes().repeat(STRIPE as usize / 8);
        thread.run(|tx| {
            let (at, stripes, bytes) = match change {
                Change::One => (self.object, 0..1, 8),
                Change::Both => (self.object, 0..2, 8),
                Change::Fresh(n) => (tx.alloc_bytes(2 * STRIPE)?.offset(), n..n + 1, new.len()),
            };
            for stripe in stripes {
                tx.write(at + stripe * STRIPE, &new[..bytes])?;
            }
            Ok(())
        })
    }

    /// The counts of a transaction.
    fn counts(mechanism: Mechanism, change: Change) -> Counts {
        let two = Two::new(mechanism);
        let mut thread = two.pool.thread(&two.cpu).unwrap();
        two.change(&mut thread, change).unwrap();
        thread.counts()
    }

    /// True if the transaction is found after a power loss; else the violation.
    fn is_there(&self, change: Change) -> Result<bool, String> {
        let text = |error: Error| error.to_string();
        let open = Pool::open(&self.cpu, vec![0, 1], PLACE, NAME, &self.options);
        let pool = open.map_err(text)?;
        let mut thread = pool.thread(&self.cpu).map_err(text)?;
        let mut word = |at: u64| {
            let mut word = [0; 8];
            thread.read(at, &mut word).map_err(text)?;
            Ok::<_, String>(u64::from_le_bytes(word) == NEW)
        };
        let objects = pool.check(&self.cpu).map_err(text)?.objects;
        let new = objects.iter().find(|(at, _)| *at != self.object);
        let parts = match (change, new) {
            (Change::One, _) => vec![word(self.object)?],
            (Change::Both, _) => vec![word(self.object)?, word(self.object + STRIPE)?],
            (Change::Fresh(_), None) => vec![false],
            (Change::Fresh(n), Some((at, _))) => {
                let words = (0..STRIPE).step_by(8).map(|w| word(at + n * STRIPE + w));
                std::iter::once(Ok(true))
                    .chain(words)
                    .collect::<Result<_, _>>()?
            }
        };
        match parts.iter().filter(|part| **part).count() {
            0 => Ok(false),
            n if n == parts.len() => Ok(true),
            n => Err(format!("{n} parts of {} are there", parts.len())),
        }
    }
}

/// One device fails with the host, and the other one accepts everything sent to it: at each time at
/// which a store was sent or proven.
fn one_is_lost(mechanism: Mechanism, change: Change) {
    let ends = {
        let two = Two::new(mechanism);
        let mut thread = two.pool.thread(&two.cpu).unwrap();
        two.change(&mut thread, change).unwrap();
        let ends = two.ends.lock().unwrap();
        ends.clone()
    };
    let mut outcomes = [0; 2];
    for end in &ends {
        for lost in 0..2 {
            let two = Two::new(mechanism);
            let mut thread = two.pool.thread(&two.cpu).unwrap();
            let at = Time(end.0 + 1);
            two.bench.shared.with_machine(|m| m.cut_at(Some(at)));
            let returned = two.change(&mut thread, change).is_ok();
            drop(thread);
            let mut later = [Time::MAX; 2];
            later[lost] = Time::ZERO;
            two.bench
                .shared
                .with_machine(|m| m.crash_staggered(&later))
                .unwrap();
            two.bench.restart();
            let there = two.is_there(change);
            let case = format!("{mechanism:?}, {change:?}, device {lost} fails at {at}");
            let there = there.unwrap_or_else(|why| panic!("{case}: {why}"));
            assert!(there || !returned, "{case}: it had returned");
            outcomes[usize::from(there)] += 1;
        }
    }
    println!("{mechanism:?}, {change:?}: {outcomes:?}");
    assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
}

/// A new object has stripes on two devices, of which one has all records of the transaction. The
/// counts differ by the device that is stored to.
fn fresh(mechanism: Mechanism, costs: impl Fn(&Counts) -> u64) -> [u64; 2] {
    let mut all = [0, 1].map(|n| costs(&Two::counts(mechanism, Change::Fresh(n))));
    all.sort_unstable();
    all
}

/// One device's commit of redo records commits those of all devices, so it is sent when all have
/// their records and in-place stores.
#[test]
#[ignore = "takes seconds"]
fn redo_commit_waits_for_the_records_of_all_devices() {
    for change in [Change::Both, Change::Fresh(0), Change::Fresh(1)] {
        one_is_lost(Mechanism::Redo, change);
    }
    let fences = |counts: &Counts| counts.fences;
    let stored = |change| fences(&Two::counts(Mechanism::Redo, change));
    assert_eq!([Change::One, Change::Both].map(stored), [1, 2]);
    assert_eq!(fresh(Mechanism::Redo, fences), [1, 2]);
}

/// Stores take part in the transaction as records do.
#[test]
#[ignore = "takes seconds"]
fn commit_includes_devices_that_were_only_stored_to() {
    for change in [Change::Fresh(0), Change::Fresh(1)] {
        one_is_lost(Mechanism::Undo, change);
    }
    assert_eq!(fresh(Mechanism::Undo, |counts| counts.spanning), [0, 1]);
}

/// The device that switches pages can't know whether another one has its copies, so the host does.
#[test]
#[ignore = "takes seconds"]
fn shadow_switch_waits_for_the_copies_of_all_devices() {
    for change in [Change::One, Change::Both] {
        one_is_lost(Mechanism::Shadow, change);
    }
}
