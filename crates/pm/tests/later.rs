// SPDX-License-Identifier: Apache-2.0

//! Transactions that become durable later, without power losses.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::Bench;
use pm::btree::Tree;
use pm::{Error, Layout, Mechanism, Options, Pool, Ptr, Thread, Ticket};
use sim::Random;
use spec::nearpm::{Command, Operation};

const PLACE: u64 = 64 << 10;
const BYTES: u64 = 3 << 20;

struct Case {
    bench: Bench,
    pool: Pool,
    mechanism: Mechanism,
    offloaded: bool,
}

impl Case {
    fn thread(&self) -> Thread {
        self.pool.thread(&self.bench.shared.cpu(0)).unwrap()
    }
}

fn layout(mechanism: Mechanism) -> Layout {
    Layout::new("later").with_mechanism(mechanism)
}

fn each(group_commit: Option<u64>, layout: impl Fn(Mechanism) -> Layout, work: impl Fn(&Case)) {
    for mechanism in Mechanism::ALL {
        for offloaded in [false, true] {
            println!("{mechanism:?}, offloaded: {offloaded}");
            let bench = Bench::empty();
            let cpu = bench.shared.cpu(0);
            let options = Options {
                group_commit,
                ..bench.options(offloaded)
            };
            let pool = Pool::create(&cpu, 0, PLACE, BYTES, &layout(mechanism), &options).unwrap();
            work(&Case {
                bench,
                pool,
                mechanism,
                offloaded,
            });
        }
    }
}

fn store(thread: &mut Thread, at: Ptr<u64>, value: u64) -> Ticket {
    let done = thread.run_later(|tx| tx.set(at, &value));
    done.unwrap_or_else(|error: Error| panic!("{error}")).1
}

#[test]
fn tickets_are_durable_after_wait_and_sync() {
    each(None, layout, |case| {
        let mut thread = case.thread();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        let fences = thread.counts().fences;
        let called = Arc::<Mutex<Vec<u64>>>::default();
        let tickets: Vec<Ticket> = (2..6).map(|n| store(&mut thread, at, n)).collect();
        for ticket in &tickets {
            let called = called.clone();
            let note = move |ticket: Ticket| called.lock().unwrap().push(ticket.number());
            thread.when_durable(*ticket, note).unwrap();
        }
        let numbers: Vec<u64> = tickets.iter().map(|ticket| ticket.number()).collect();
        assert_eq!(numbers, (2..6).collect::<Vec<_>>());
        // Of undo logs and checkpoints the CPU waits for the first record.
        let waited = thread.counts().fences - fences;
        let record =
            !case.offloaded && !matches!(case.mechanism, Mechanism::Redo | Mechanism::Shadow);
        assert_eq!(waited, u64::from(record));
        assert!(thread.is_durable(Ticket::from_number(1)), "of `run`");
        assert!(!thread.is_durable(tickets[0]) && called.lock().unwrap().is_empty());
        // Changes are visible at once, within and outside of transactions.
        assert_eq!(thread.get(at), Ok(5));
        let (seen, ticket) = thread.run_later(|tx| tx.get(at)).unwrap();
        assert_eq!(
            (seen, ticket),
            (5, tickets[3]),
            "it has read changes up to that ticket"
        );
        let unknown = thread.wait(Ticket::from_number(6)).unwrap_err().to_string();
        assert_eq!(
            unknown,
            "ticket 6: allowed are tickets of this thread, up to 5"
        );
        let check = case.pool.check(&case.bench.shared.cpu(0)).unwrap_err();
        assert!(
            check.to_string().contains("`sync` waits for them"),
            "{check}"
        );
        thread.wait(tickets[1]).unwrap();
        assert!(tickets.iter().all(|ticket| thread.is_durable(*ticket)));
        assert_eq!(*called.lock().unwrap(), numbers);
        let counts = thread.counts();
        thread.sync().unwrap();
        assert_eq!(thread.counts(), counts, "there is nothing to wait for");
        let late = called.clone();
        thread
            .when_durable(tickets[0], move |_| late.lock().unwrap().push(0))
            .unwrap();
        assert_eq!(called.lock().unwrap().last(), Some(&0), "called at once");
        case.pool.check(&case.bench.shared.cpu(0)).unwrap();
    });
}

#[test]
fn groups_limit_the_transactions_that_are_not_durable() {
    each(Some(3), layout, |case| {
        let mut thread = case.thread();
        let at = thread.run(|tx| tx.create(&0u64)).unwrap();
        let mut open = Vec::new();
        for n in 0..7 {
            let ticket = store(&mut thread, at, n);
            open.push(ticket.number() - thread.durable().number());
        }
        assert_eq!(open, [1, 2, 0, 1, 2, 0, 1]);
        // A transaction of `run` makes all before it durable, even if it changes nothing.
        thread.run(|tx| tx.get(at)).unwrap();
        assert!(thread.is_durable(thread.last_ticket()));
    });
    let bench = Bench::empty();
    let options = Options {
        group_commit: Some(0),
        ..Options::default()
    };
    let cpu = bench.shared.cpu(0);
    let none = Pool::create(&cpu, 0, PLACE, BYTES, &layout(Mechanism::Undo), &options);
    let text = none.err().map(|error| error.to_string());
    assert_eq!(
        text.as_deref(),
        Some("group_commit = 0: allowed are 1 and more")
    );
}

#[test]
fn dropped_thread_leaves_durable_transactions() {
    each(None, layout, |case| {
        let mut thread = case.thread();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        store(&mut thread, at, 2);
        drop(thread);
        let cpu = case.bench.shared.cpu(0);
        case.pool.check(&cpu).unwrap();
        assert_eq!(case.thread().get(at), Ok(2));
    });
}

/// Several threads have no group: the engine's commits are posted, the CPU's are durable.
#[test]
fn several_threads_have_no_group() {
    each(None, layout, |case| {
        let cpu = case.bench.shared.cpu(1);
        let mut thread = case.thread();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        let ticket = store(&mut thread, at, 2);
        // They are a group, which a power loss would undo as a whole.
        let refused = case.pool.thread(&cpu).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("after its `sync`")));
        assert!(!thread.is_durable(ticket));
        thread.sync().unwrap();
        let mut second = case.pool.thread(&cpu).unwrap();
        let ticket = store(&mut second, at, 3);
        assert_eq!(second.is_durable(ticket), !case.offloaded);
        assert_eq!(thread.get(at), Ok(3));
        let fences = second.counts().fences;
        second.sync().unwrap();
        assert_eq!(second.counts().fences - fences, u64::from(case.offloaded));
        assert!(second.is_durable(ticket));
    });
}

/// Random transactions with aborts, and logs so small that groups fill them.
#[test]
fn random_groups_agree_with_a_map() {
    let small = |mechanism: Mechanism| Layout {
        log_bytes: if mechanism == Mechanism::Checkpoint {
            64 << 10
        } else {
            8 << 10
        },
        spare_pages: 12,
        ..layout(mechanism)
    };
    for group in [None, Some(4)] {
        each(group, small, |case| {
            let mut thread = case.thread();
            let tree = thread.run(Tree::create).unwrap();
            let mut random = Random::new(3);
            let mut map = BTreeMap::new();
            for _ in 0..400 {
                let mut next = map.clone();
                let abort = random.below(4) == 0;
                let later = random.below(8) > 0;
                let body = |tx: &mut pm::Transaction<'_>| {
                    for _ in 0..1 + random.below(3) {
                        let (key, value) = (random.below(40), random.next());
                        match (tree.get(tx, key)?, random.below(3)) {
                            (Some(old), 0) => {
                                tree.remove(tx, key)?;
                                tx.free(Ptr::<u8>::at(old))?;
                                next.remove(&key);
                            }
                            (Some(old), _) => {
                                tx.set(Ptr::at(old), &value)?;
                                next.insert(key, value);
                            }
                            (None, _) => {
                                let at = tx.create(&[value; 20])?;
                                tree.insert(tx, key, at.offset())?;
                                next.insert(key, value);
                            }
                        }
                    }
                    if abort {
                        Err(Error::Aborted)
                    } else {
                        Ok(())
                    }
                };
                let done = match later {
                    true => thread.run_later(body).map(drop),
                    false => thread.run(body),
                };
                match done {
                    Ok(()) => {
                        map = next;
                        assert!(later || thread.is_durable(thread.last_ticket()));
                    }
                    Err(Error::Aborted) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            thread.sync().unwrap();
            tree.check(&mut thread).unwrap();
            let mut found = BTreeMap::new();
            for item in tree.items(&mut thread).unwrap() {
                let value: [u64; 20] = thread.get(Ptr::at(item.value)).unwrap();
                found.insert(item.key, value[0]);
            }
            assert_eq!(found, map);
            case.pool.check(&case.bench.shared.cpu(0)).unwrap();
        });
    }
}

/// Places of freed objects stay until the free is durable; an allocation that needs them waits.
#[test]
fn freed_places_are_used_again() {
    each(None, layout, |case| {
        let mut thread = case.thread();
        let bytes = 1 << 20;
        let mut at = thread.run(|tx| tx.alloc_bytes(bytes)).unwrap();
        for _ in 0..6 {
            let moved = thread.run_later(|tx| {
                tx.free(at)?;
                tx.alloc_bytes(bytes)
            });
            match moved {
                Ok((new, _)) => at = new,
                // Two large objects may not fit at a time.
                Err(Error::Full(_)) => {
                    thread.run_later(|tx| tx.free(at)).unwrap();
                    at = thread.run_later(|tx| tx.alloc_bytes(bytes)).unwrap().0;
                }
                Err(error) => panic!("{error}"),
            }
        }
        drop(thread);
        let report = case.pool.check(&case.bench.shared.cpu(0)).unwrap();
        assert_eq!(report.objects.len(), 1);
    });
}

/// An engine that does not accept a commit reports so in the load that waits for it: the
/// transaction is not said to be durable.
#[test]
fn refused_commit_is_no_success() {
    for mechanism in Mechanism::ALL {
        for tracked in [false, true] {
            for later in [false, true] {
                if tracked && mechanism == Mechanism::Redo {
                    continue;
                }
                let what = format!("{mechanism:?}, tracked: {tracked}, later: {later}");
                let bench = Bench::near(1);
                let (cpu, other) = (bench.shared.cpu(0), bench.shared.cpu(1));
                let layout = match tracked {
                    true => layout(mechanism).with_tracking(),
                    false => layout(mechanism),
                };
                let options = bench.options(true);
                let pool = Pool::create(&cpu, 0, PLACE, BYTES, &layout, &options).unwrap();
                let mut thread = pool.thread(&cpu).unwrap();
                let at = thread
                    .run(|tx| tx.create(&1u64))
                    .unwrap_or_else(|e: Error| panic!("{e}"));
                let unmap = Command::new(Operation::PoolUnmap, options.process, options.pool, 0);
                let body = |tx: &mut pm::Transaction<'_>| {
                    tx.set(at, &2)?;
                    bench.engine.launch(&other, &unmap).map(drop)
                };
                let done = match later {
                    false => thread.run(body),
                    true => thread
                        .run_later(body)
                        .and_then(|(_, ticket)| thread.wait(ticket)),
                };
                let text = done.expect_err(&what).to_string();
                assert!(text.contains("refused"), "{what}: {text}");
                let again = thread.run(|tx| tx.set(at, &3));
                assert!(again.is_err(), "{what}: the pool has to be opened again");
            }
        }
    }
}
