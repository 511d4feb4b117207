// SPDX-License-Identifier: Apache-2.0

//! Programs with transactions on a device with the engine `nearpm`, cut off at many moments of one
//! run.
//!
//! A loss of power, a reset of the function, or a second loss during the recovery of the device or
//! the program cuts them off. This is a separate program for the reason of `forks.rs`.

#[allow(dead_code)] // some of what `behaviour` uses
#[path = "behaviour/common/mod.rs"]
mod common;

use std::sync::{Mutex, PoisonError};

use sim::fork::Fork;
use sim::Time;
use spec::nearpm::{Command, Operation, Tracking};

use common::nearpm::{is_there, Kit, Pool};
use common::rounds;

/// Objects that a transaction changes: offset, bytes. They are in both channels, and one in two of
/// them at a time.
const OBJECTS: [(u64, usize); 4] = [(0, 64), (3000, 2000), (8200, 8), (12_288, 4096)];
const TRANSACTIONS: u8 = 24;
/// Where new values are prepared, and pages for shadow copies.
const STAGE: u64 = 65_536;
const PAGES: [u64; 2] = [131_072, 135_168];
const POINTER: u64 = 262_144;

/// How objects are changed atomically.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mechanism {
    Undo,
    /// Commands with several ranges, small ones and larger ones.
    UndoRanges,
    Redo,
    Checkpoint,
    Shadow,
    /// Stores alone: the engine makes the records by itself.
    Tracked(Tracking),
    /// Not at all, which has to be noticed.
    Nothing,
}

/// The answer of a copy that has found some objects changed and others not.
const TORN: u8 = 0xFF;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CutKind {
    Power,
    FunctionReset,
    /// Again while the device restores what it had.
    Restoring,
    /// Again while the program recovers.
    Recovering,
}

const CUTS: [CutKind; 4] = [
    CutKind::Power,
    CutKind::FunctionReset,
    CutKind::Restoring,
    CutKind::Recovering,
];

struct Run {
    kit: Option<Kit>,
    pool: Pool,
    /// The pool of another program.
    other: Pool,
    mechanism: Mechanism,
    /// Copies that are cut off.
    cuts: Vec<Fork>,
    moments: u64,
    every: u64,
    /// The last transaction that a read has proven to be persistent, and the last one that is
    /// completely under way.
    sure: u8,
    sent: u8,
    next: u64,
}

impl Run {
    fn new(mechanism: Mechanism, every: u64) -> Run {
        let (mut kit, pool) = match mechanism {
            Mechanism::Tracked(tracking) => Kit::with_tracked_pool("", tracking),
            _ => Kit::with_pool(""),
        };
        let other = Pool::new(2, 9, 8 << 20);
        kit.fine(&other.map());
        kit.fine(&other.open(3, 40));
        // Its transaction is always under way.
        kit.store(other.media, &[1; 5000]);
        kit.fine(&other.undo(3, 0, 5000));
        kit.store(other.media, &[2; 5000]);
        kit.load(other.media, 1);
        Run {
            kit: Some(kit),
            pool,
            other,
            mechanism,
            cuts: Vec::new(),
            moments: 0,
            every,
            sure: 0,
            sent: 0,
            next: 64,
        }
    }

    fn kit(&mut self) -> &mut Kit {
        self.kit.as_mut().unwrap()
    }

    /// A moment at which one copy may end.
    fn moment(&mut self) {
        self.moments += 1;
        if self.moments % self.every == 0 {
            let cut = CUTS[(self.moments / self.every) as usize % CUTS.len()];
            let moments = self.moments;
            let fork = Fork::start(|| vec![self.cut(cut, moments)]).unwrap();
            self.cuts.push(fork);
        }
    }

    fn submit(&mut self, command: Command) {
        self.kit().submit(&command);
        self.moment();
    }

    fn store(&mut self, offset: u64, data: &[u8]) {
        let at = self.pool.media + offset;
        self.kit().store(at, data);
        self.moment();
    }

    /// Changes all objects to a value.
    fn transaction(&mut self, value: u8) {
        let pool = self.pool;
        match self.mechanism {
            Mechanism::Undo => {
                for (at, len) in OBJECTS {
                    self.submit(pool.undo(0, at, len as u64));
                    self.store(at, &vec![value; len]);
                }
                self.submit(pool.command(Operation::Commit, 0));
            }
            Mechanism::UndoRanges => {
                let [first, second, third, fourth] = OBJECTS.map(|(at, len)| (at, len as u64));
                for ranges in [[first, third], [second, fourth]] {
                    self.submit(pool.undo_ranges(0, &ranges));
                    for (at, len) in ranges {
                        self.store(at, &vec![value; len as usize]);
                    }
                }
                self.submit(pool.command(Operation::Commit, 0));
            }
            Mechanism::Checkpoint => {
                for page in 0..4 {
                    let checkpoint = Command {
                        operation: Operation::Checkpoint,
                        ..pool.undo(0, 4096 * page, 4096)
                    };
                    self.submit(checkpoint);
                }
                for (at, len) in OBJECTS {
                    self.store(at, &vec![value; len]);
                }
                self.submit(pool.command(Operation::Commit, 0));
            }
            Mechanism::Nothing => {
                for (at, len) in OBJECTS {
                    self.store(at, &vec![value; len]);
                }
            }
            Mechanism::Tracked(_) => {
                for (at, len) in OBJECTS {
                    self.store(at, &vec![value; len]);
                }
                self.submit(pool.command(Operation::Commit, 0));
            }
            Mechanism::Redo => {
                self.next = 64;
                let mut records = Vec::new();
                for (at, len) in OBJECTS {
                    self.store(STAGE + at, &vec![value; len]);
                    self.submit(pool.redo(0, STAGE + at, len as u64, at));
                    records.push(self.next);
                    self.next = spec::nearpm::next_record(self.next, len as u64);
                }
                self.submit(pool.command(Operation::CommitRedo, 0));
                for ((at, len), record) in OBJECTS.into_iter().zip(records) {
                    self.submit(pool.apply(0, record, len as u64, at));
                }
                self.submit(pool.command(Operation::Delete, 0));
            }
            Mechanism::Shadow => {
                let way = usize::from(value % 2);
                let (from, to) = (PAGES[1 - way], PAGES[way]);
                self.submit(pool.copy(0, from, 4096, to));
                self.store(to + 100, &[value; 1000]);
                self.store(to + 4000, &[value; 96]);
                self.submit(pool.switch(0, POINTER, to));
            }
        }
    }

    /// The value that all objects have, if they agree.
    fn value(&mut self) -> u8 {
        let pool = self.pool;
        let mechanism = self.mechanism;
        let kit = self.kit();
        if mechanism == Mechanism::Shadow {
            let pointer = kit.load(pool.media + POINTER, 8);
            let page = u64::from_le_bytes(pointer.try_into().unwrap());
            if page == 0 {
                return 0;
            }
            let page = kit.load(pool.media + page, 4096);
            let value = page[100];
            let whole = page[100..1100] == [value; 1000] && page[4000..] == [value; 96];
            return if whole { value } else { TORN };
        }
        let objects = OBJECTS.map(|(at, len)| kit.load(pool.media + at, len));
        let value = objects[0][0];
        let whole = objects.iter().flatten().all(|byte| *byte == value);
        if whole {
            value
        } else {
            TORN
        }
    }

    fn power(&mut self, cut: CutKind) {
        let kit = self.kit();
        let number = kit.host.device();
        if cut == CutKind::FunctionReset {
            // A host that resets a function has waited for what is on its way there.
            kit.load(0, 1);
            kit.host.system_mut().function_reset(number);
            kit.page = Kit::page_of(&common::design("nearpm"));
        } else {
            power(kit, Time::ZERO);
        }
    }

    fn advance(&mut self, time: Time) {
        let system = self.kit().host.system_mut();
        system.advance_until(system.now() + time).unwrap();
    }

    /// One end of the run; the value that is there after the recovery.
    fn cut(&mut self, cut: CutKind, moment: u64) -> u8 {
        if cut == CutKind::FunctionReset {
            self.sure = self.sent;
        }
        self.advance(Time::ns(61 * (moment % 32)));
        self.power(cut);
        let (pool, other) = (self.pool, self.other);
        // 0 to 12 us, the first part of which is the device's restore.
        let soon = Time::ns(97 * (moment % 128));
        match cut {
            CutKind::Restoring => {
                self.advance(soon);
                self.power(cut);
            }
            CutKind::Recovering => {
                self.kit().submit(&pool.command(Operation::Recover, 0));
                self.advance(soon);
                self.power(cut);
            }
            _ => {}
        }
        let kit = self.kit();
        // The pools are there as they were.
        recover(kit, &pool, 0);
        assert!(kit.load(other.media, 5000) == [2; 5000]);
        let value = self.value();
        if self.mechanism == Mechanism::Nothing {
            return value;
        }
        assert!(
            value != TORN,
            "some objects are changed, others not: {cut:?}"
        );
        assert!(value >= self.sure, "{value} after {}: {cut:?}", self.sure);
        // The program continues from there.
        let kit = self.kit();
        assert_eq!(kit.fine(&pool.undo(0, 0, 64)), 64);
        assert_eq!(kit.fine(&other.command(Operation::Recover, 3)), 1);
        assert!(kit.load(other.media, 5000) == [1; 5000]);
        value
    }

    /// Runs everything. Returns the values that copies were left with.
    fn all(mut self) -> Vec<u8> {
        for value in 1..=TRANSACTIONS {
            self.transaction(value);
            self.sent = value;
            if value % 3 == 0 {
                let at = self.other.media;
                self.kit().load(at, 1);
                self.sure = value;
            }
        }
        for _ in 0..20 {
            self.advance(Time::ns(100));
            self.moment();
        }
        assert_eq!(self.value(), TRANSACTIONS);
        let cuts = std::mem::take(&mut self.cuts);
        let values = cuts.into_iter().map(|cut| cut.answer().unwrap()[0]);
        values.collect()
    }
}

/// The device loses its power some time from now, with everything that is on its way there.
fn power(kit: &mut Kit, wait: Time) {
    common::rest(&mut kit.host, wait);
    let number = kit.host.device();
    kit.host.system_mut().power_off(number);
    common::rest(&mut kit.host, Time::us(5));
    kit.host.system_mut().power_on(number);
    kit.page = Kit::page_of(&common::design("nearpm"));
}

/// Copies have only the thread that makes them: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Recovers a pool and a log of it, as a host does after a loss of power:
/// docs/hardware/nearpm.md.
fn recover(kit: &mut Kit, pool: &Pool, thread: u8) {
    kit.fine(&pool.map());
    kit.fine(&pool.command(Operation::Recover, thread));
    let descriptor = kit.descriptor(pool, thread).expect("a descriptor");
    let ended = kit.ends(&pool.open(thread, descriptor.generation));
    let open = [0, spec::nearpm::ErrorBit::Busy as u32];
    assert!(open.contains(&ended.result), "{ended:?}");
}

/// The values that are left by the copies of one run.
fn program(mechanism: Mechanism, every: u64) -> Vec<u8> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let values = Run::new(mechanism, every).all();
    let different = (0..=TRANSACTIONS).filter(|value| values.contains(value));
    let different = different.count();
    println!(
        "{mechanism:?}: {} cuts, {different} different ends",
        values.len()
    );
    assert!(different > 3, "{values:?}");
    values
}

fn survives(mechanism: Mechanism) {
    if is_there() {
        program(mechanism, rounds(1, 13));
    }
}

mod sampled {
    use super::*;

    #[test]
    #[ignore = "takes seconds"]
    fn crash_with_undo_logs_is_recovered() {
        survives(Mechanism::Undo);
    }

    #[test]
    fn crash_with_several_ranges_a_command_is_recovered() {
        survives(Mechanism::UndoRanges);
    }

    #[test]
    fn crash_with_redo_logs_is_recovered() {
        survives(Mechanism::Redo);
    }

    /// Figure 4a of the paper. The host stores to an object as soon as it has sent the command that
    /// logs it. The power fails while the engine copies, while the stores wait for that, or when
    /// they are persistent.
    #[test]
    fn crash_after_a_store_that_follows_its_log_command_is_undone() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        let mut changed = Vec::new();
        kit.store(pool.media, &[1; 4096]);
        for wait in [0, 60, 150, 400, 700, 1000, 1400, 5000] {
            kit.load(pool.media, 1);
            kit.submit(&pool.undo(0, 0, 4096));
            kit.store(pool.media, &[2; 4096]);
            power(&mut kit, Time::ns(wait));
            let now = kit.load(pool.media, 4096);
            changed.push(now.iter().filter(|byte| **byte == 2).count());
            recover(&mut kit, &pool, 0);
            let back = kit.load(pool.media, 4096);
            assert!(back == [1; 4096], "{wait} ns: {changed:?}");
        }
        assert_eq!(changed.last(), Some(&4096), "{changed:?}");
        assert!(changed[0] < 4096, "{changed:?}");
    }
}

#[test]
fn crash_with_checkpoints_is_recovered() {
    survives(Mechanism::Checkpoint);
}

#[test]
fn crash_with_shadow_pages_is_recovered() {
    survives(Mechanism::Shadow);
}

#[test]
fn crash_with_tracked_stores_is_recovered() {
    survives(Mechanism::Tracked(Tracking::Undo));
}

#[test]
#[ignore = "takes seconds"]
fn crash_with_tracked_checkpoints_is_recovered() {
    survives(Mechanism::Tracked(Tracking::Checkpoint));
}

#[test]
fn crash_without_a_mechanism_is_noticed() {
    if is_there() {
        let values = program(Mechanism::Nothing, 1);
        assert!(values.contains(&TORN), "{values:?}");
    }
}
