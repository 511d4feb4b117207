// SPDX-License-Identifier: Apache-2.0

//! Pools and transactions without power losses: valid use, errors, and random programs against a
//! map.

mod common;

use std::collections::BTreeMap;

use common::{Bench, WINDOW};
use host::{Cpu, Program};
use pm::btree::Tree;
use pm::{Error, Layout, Lock, Mechanism, Options, Pool, Ptr, Thread};
use sim::{Random, Time};

const PLACE: u64 = 64 << 10;
const BYTES: u64 = 3 << 20;
const SIDES: [bool; 2] = [false, true];

fn layout(mechanism: Mechanism) -> Layout {
    Layout::new("test").with_mechanism(mechanism)
}

fn create(bench: &Bench, cpu: &Cpu, mechanism: Mechanism, offloaded: bool) -> Pool {
    let options = bench.options(offloaded);
    Pool::create(cpu, 0, PLACE, BYTES, &layout(mechanism), &options).unwrap()
}

/// For each mechanism, by the CPU and by the engine.
fn each(work: impl Fn(&Bench, &Cpu, &Pool, Mechanism, bool)) {
    for mechanism in Mechanism::ALL {
        for offloaded in SIDES {
            println!("{mechanism:?}, offloaded: {offloaded}");
            let bench = Bench::empty();
            let cpu = bench.shared.cpu(0);
            let pool = create(&bench, &cpu, mechanism, offloaded);
            work(&bench, &cpu, &pool, mechanism, offloaded);
        }
    }
}

#[test]
fn open_refuses_other_names_and_damage() {
    let bench = Bench::empty();
    let cpu = bench.shared.cpu(0);
    let options = Options::default();
    let open = |place, name: &str| Pool::open(&cpu, 0, place, name, &options).err();
    assert!(matches!(open(PLACE, "test"), Some(Error::NoPool(_))));
    let pool = create(&bench, &cpu, Mechanism::Undo, false);
    assert_eq!(
        (pool.bytes(), pool.layout()),
        (BYTES, layout(Mechanism::Undo))
    );
    assert_eq!(open(PLACE, "test"), None);
    let text = open(PLACE, "others").unwrap().to_string();
    assert_eq!(text, "the pool holds `test`, not `others`");
    let text = open(PLACE + 64, "test").unwrap().to_string();
    assert_eq!(text, "a pool at 0x10040: allowed are multiples of 4096");
    assert!(matches!(open(WINDOW, "test"), Some(Error::Invalid(_))));
    let beyond = Pool::create(&cpu, 0, PLACE, WINDOW, &layout(Mechanism::Undo), &options);
    assert!(matches!(beyond.err(), Some(Error::Invalid(_))));
    // Each damage at the start of the pool is reported.
    for at in [0u64, 8, 12, 16, 47, 60, 64, 100, 124, 4096, 4104, 4156] {
        bench.image.lock().unwrap()[(PLACE + at) as usize] ^= 4;
        let error = open(PLACE, "test").unwrap_or_else(|| panic!("byte {at}"));
        assert!(
            matches!(error, Error::NoPool(_) | Error::Corrupt(_)),
            "{error}"
        );
        assert!(!error.to_string().contains('\n'));
        bench.image.lock().unwrap()[(PLACE + at) as usize] ^= 4;
    }
    assert_eq!(open(PLACE, "test"), None);
}

/// Mechanisms of tracked pools.
const TRACKED: [Mechanism; 3] = [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow];

fn create_tracked(bench: &Bench, cpu: &Cpu, mechanism: Mechanism, offloaded: bool) -> Pool {
    let (layout, options) = (layout(mechanism).with_tracking(), bench.options(offloaded));
    Pool::create(cpu, 0, PLACE, BYTES, &layout, &options).unwrap()
}

#[test]
fn tracked_pool_is_undone_after_a_panic() {
    for mechanism in TRACKED {
        let bench = Bench::empty();
        let cpu = bench.shared.cpu(0);
        let pool = create_tracked(&bench, &cpu, mechanism, true);
        let mut thread = pool.thread(&cpu).unwrap();
        let at = thread.run(|tx| tx.create(&[1u64; 512])).unwrap();
        let work = std::panic::AssertUnwindSafe(|| {
            thread.run(|tx| {
                tx.set(at, &[2; 512])?;
                // Only the cache has this.
                match tx.get(at)? {
                    [2, ..] => panic!("on purpose"),
                    _ => Ok::<_, Error>(()),
                }
            })
        });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let panicked = std::panic::catch_unwind(work);
        std::panic::set_hook(hook);
        assert!(panicked.is_err());
        drop(thread);
        let options = bench.options(true);
        let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
        assert_eq!(pool.thread(&cpu).unwrap().get(at), Ok([1; 512]));
        pool.check(&cpu).unwrap();
    }
}

#[test]
fn tracked_transaction_has_one_command() {
    for mechanism in TRACKED {
        let bench = Bench::empty();
        let cpu = bench.shared.cpu(0);
        let pool = create_tracked(&bench, &cpu, mechanism, true);
        let mut thread = pool.thread(&cpu).unwrap();
        let at = thread.run(|tx| tx.create(&[1u64; 64])).unwrap();
        let mut cost = |stores: usize| {
            let before = thread.counts();
            thread
                .run(|tx| {
                    tx.add_range(at.offset(), 512)?;
                    (0..stores).try_for_each(|n| tx.set(at.element(8 * n), &2))
                })
                .unwrap();
            let now = thread.counts();
            let [commands, fences, orders, records] = [
                now.commands - before.commands,
                now.fences - before.fences,
                now.orders - before.orders,
                now.records - before.records,
            ];
            (commands, fences, orders, records)
        };
        assert_eq!(cost(0), (0, 0, 0, 0));
        assert_eq!(cost(1), (1, 1, 1, 1));
        assert_eq!(cost(8), (1, 1, 1, 8));
        thread.finish().unwrap();
    }
}

#[test]
fn tracked_transaction_with_too_many_lines_is_refused_before_its_store() {
    for (log_bytes, most) in [(8192, 63), (256 << 10, 1024)] {
        let bench = Bench::empty();
        let cpu = bench.shared.cpu(0);
        let layout = Layout {
            log_bytes,
            ..layout(Mechanism::Undo).with_tracking()
        };
        let options = bench.options(true);
        let pool = Pool::create(&cpu, 0, PLACE, BYTES, &layout, &options).unwrap();
        let mut thread = pool.thread(&cpu).unwrap();
        let at = thread.run(|tx| tx.alloc_bytes(128 << 10)).unwrap();
        let mut stores = |first: u64, lines: u64| {
            thread.run(|tx| {
                (first..first + lines).try_for_each(|n| tx.write(at.offset() + 64 * n, &[9; 64]))
            })
        };
        assert_eq!(stores(0, most), Ok(()));
        let error = stores(most, most + 1).unwrap_err();
        let text = format!(
            "transaction has {} lines: allowed are {most} in this tracked pool",
            most + 1
        );
        assert_eq!(error, Error::Full(text));
        // It was undone, and the log is open.
        let mut line = [0; 64];
        thread.read(at.offset() + 64 * most, &mut line).unwrap();
        assert_ne!(line, [9; 64]);
        // The allocator's lines count, too.
        let all = thread.run(|tx| {
            tx.free(at)?;
            (0..most).try_for_each(|n| tx.write(at.offset() + 64 * n, &[8; 64]))
        });
        assert!(matches!(all, Err(Error::Full(_))), "{all:?}");
        thread.finish().unwrap();
        thread.read(at.offset(), &mut line).unwrap();
        assert_eq!(line, [9; 64]);
        drop(thread);
        pool.check(&cpu).unwrap();
    }
}

#[test]
fn tracked_pool_grows_with_its_contents() {
    for mechanism in TRACKED {
        let bench = Bench::empty();
        let cpu = bench.shared.cpu(0);
        let pool = create_tracked(&bench, &cpu, mechanism, true);
        let mut thread = pool.thread(&cpu).unwrap();
        let at = thread.run(|tx| tx.create(&[1u64; 8])).unwrap();
        drop(thread);
        pool.resize(&cpu, BYTES + (1 << 20)).unwrap();
        let mut thread = pool.thread(&cpu).unwrap();
        thread.run(|tx| tx.set(at.element(0), &2)).unwrap();
        let failed = thread.run(|tx| {
            tx.set(at.element(1), &3)?;
            Err::<(), _>(Error::Aborted)
        });
        assert_eq!(failed, Err(Error::Aborted));
        thread.finish().unwrap();
        drop(thread);
        pool.clone().close(&cpu).unwrap();
        // In another life, by the CPU, which finds what the engine has left.
        let other = Bench::new(bench.bytes());
        let cpu = other.shared.cpu(0);
        let pool = Pool::open(&cpu, 0, PLACE, "test", &Options::default()).unwrap();
        assert_eq!(pool.layout(), layout(mechanism).with_tracking());
        let got = pool.thread(&cpu).unwrap().get(at).unwrap();
        assert_eq!(got[..3], [2, 1, 1]);
    }
}

#[test]
fn tracked_transaction_commits_all_or_aborts_all() {
    for mechanism in TRACKED {
        for offloaded in SIDES {
            println!("{mechanism:?}, offloaded: {offloaded}");
            let bench = Bench::empty();
            let cpu = bench.shared.cpu(0);
            let pool = create_tracked(&bench, &cpu, mechanism, offloaded);
            commits_all_or_aborts_all(&bench, &cpu, &pool, mechanism, offloaded);
        }
    }
}

#[test]
fn transaction_commits_all_or_aborts_all() {
    each(commits_all_or_aborts_all);
}

fn commits_all_or_aborts_all(
    bench: &Bench,
    cpu: &Cpu,
    pool: &Pool,
    mechanism: Mechanism,
    offloaded: bool,
) {
    let mut thread = pool.thread(cpu).unwrap();
    let at = thread
        .run(|tx| {
            let at = tx.create(&[1u64; 20])?;
            tx.set_root(at)?;
            Ok::<_, Error>(at)
        })
        .unwrap();
    let failed = thread.run(|tx| {
        tx.set(at.element(3), &7)?;
        assert_eq!(tx.get(at.element(3))?, 7);
        let other = tx.create(&5u64)?;
        tx.set_root(other)?;
        tx.free(at)?;
        Err::<(), _>(Error::Invalid("no".into()))
    });
    assert_eq!(failed, Err(Error::Invalid("no".into())));
    assert_eq!(thread.get(at).unwrap(), [1; 20]);
    assert_eq!(thread.root::<[u64; 20]>().unwrap(), at);
    thread
        .run(|tx| {
            tx.set(at.element(3), &8)?;
            tx.set(at.element(4), &9)
        })
        .unwrap();
    let counts = thread.counts();
    assert_eq!((counts.transactions, counts.aborts), (2, 1));
    assert!(counts.time > counts.consistency && counts.consistency > Time::ZERO);
    assert_eq!(counts.commands > 0, offloaded);
    thread.finish().unwrap();
    drop(thread);
    assert_eq!(pool.check(cpu).unwrap().objects.len(), 1);
    // In another life.
    let other = Bench::new(bench.bytes());
    let cpu = other.shared.cpu(0);
    let options = other.options(!offloaded);
    let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let mut want = [1; 20];
    (want[3], want[4]) = (8, 9);
    assert_eq!(thread.get(at).unwrap(), want, "{mechanism:?}");
}

/// The counts of a transaction that stores 8 bytes, and of one that also allocates an object:
/// fences, `sfence`s before commands, lines, records, commands.
#[test]
fn transaction_counts_stay_within_bounds() {
    each(|_, cpu, pool, mechanism, offloaded| {
        let mut thread = pool.thread(cpu).unwrap();
        let at = thread.run(|tx| tx.create(&[0u64; 8])).unwrap();
        let mut cost = |allocate: bool| {
            let before = thread.counts();
            thread
                .run(|tx| {
                    if allocate {
                        tx.create(&[0u64; 8])?;
                    }
                    tx.set(at, &[1; 8])
                })
                .unwrap();
            let now = thread.counts();
            (
                now.fences - before.fences,
                now.orders - before.orders,
                now.lines - before.lines,
                now.records - before.records,
                now.commands - before.commands,
            )
        };
        let (small, more) = match (mechanism, offloaded) {
            // Records, data, descriptor.
            (Mechanism::Undo, false) => ((3, 0, 2, 1, 0), (3, 0, 4, 2, 0)),
            // One command for both records.
            (Mechanism::Undo, true) => ((1, 1, 1, 1, 2), (1, 1, 3, 2, 2)),
            // Records, descriptor, data, descriptor.
            (Mechanism::Redo, false) => ((4, 0, 3, 1, 0), (4, 0, 5, 2, 0)),
            (Mechanism::Redo, true) => ((1, 2, 1, 1, 3), (1, 2, 3, 2, 4)),
            (Mechanism::Checkpoint, false) => ((3, 0, 2, 1, 0), (3, 0, 4, 2, 0)),
            (Mechanism::Checkpoint, true) => ((1, 1, 1, 1, 2), (1, 1, 3, 2, 3)),
            // Lines of the table that the last list has changed, first two, then one; copies and
            // this list; its number.
            (Mechanism::Shadow, false) => ((2, 0, 3, 0, 0), (2, 0, 2, 0, 0)),
            (Mechanism::Shadow, true) => ((1, 1, 2, 0, 2), (1, 1, 1, 0, 3)),
        };
        assert_eq!(
            (cost(false), cost(true)),
            (small, more),
            "{mechanism:?}, offloaded: {offloaded}"
        );
    });
}

#[test]
fn access_outside_objects_is_refused() {
    each(|_, cpu, pool, _, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let null = thread.run(|tx| tx.get(Ptr::<u64>::NULL)).unwrap_err();
        assert!(
            null.to_string().starts_with("8 bytes at 0x0: allowed are"),
            "{null}"
        );
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        for wrong in [BYTES - 4, u64::MAX - 3, 4096, 64, at.offset() - (64 << 10)] {
            let error = thread.run(|tx| tx.write(wrong, &[1; 8])).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{wrong:#x}: {error}");
            assert!(thread.read(wrong, &mut [0; 8]).is_err());
        }
        for wrong in [
            at.field::<u64>(8),
            at.field(64),
            Ptr::NULL,
            Ptr::at(u64::MAX),
        ] {
            let error = thread.run(|tx| tx.free(wrong)).unwrap_err();
            assert!(error.to_string().contains("no object"), "{error}");
        }
        let twice = thread.run(|tx| {
            tx.free(at)?;
            tx.free(at)
        });
        assert!(twice.is_err());
        thread.run(|tx| tx.free(at)).unwrap();
        assert!(thread.run(|tx| tx.free(at)).is_err());
        let error = thread.run(|tx| tx.alloc_bytes(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an object of 0 bytes: allowed are 1 to 4128768"
        );
        assert!(thread.run(|tx| tx.alloc_bytes(u64::MAX)).is_err());
        let error = thread.run(|tx| tx.alloc_bytes(4_128_768)).map(|_| ());
        assert!(error.is_ok() || matches!(error, Err(Error::Full(_))));
        drop(thread);
        pool.check(cpu).unwrap();
    });
}

#[test]
fn allocation_without_room_is_reported_and_undone() {
    each(|_, cpu, pool, mechanism, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let big = thread.run(|tx| tx.alloc_bytes(1 << 20)).unwrap();
        thread.run(|tx| tx.write(big.offset(), &[3; 256])).unwrap();
        // More than a log and the spare pages have room for.
        let full = thread.run(|tx| {
            for n in 0..100u64 {
                tx.write(big.offset() + n * 8192, &[4; 4096])?;
            }
            Ok::<_, Error>(())
        });
        let error = full.expect_err("no room");
        assert!(matches!(error, Error::Full(_)), "{mechanism:?}: {error}");
        let mut out = [0; 256];
        thread.read(big.offset(), &mut out).unwrap();
        assert_eq!(out, [3; 256]);
        let full = thread.run(|tx| {
            loop {
                tx.alloc_bytes(1 << 19)?;
            }
            #[allow(unreachable_code)]
            Ok::<_, Error>(())
        });
        assert!(matches!(full, Err(Error::Full(_))));
        thread.run(|tx| tx.free(big)).unwrap();
        thread.finish().unwrap();
        drop(thread);
        assert_eq!(pool.check(cpu).unwrap().objects, []);
    });
}

#[test]
fn nested_failure_aborts_the_transaction() {
    each(|_, cpu, pool, _, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        let done = thread.run(|tx| {
            tx.set(at, &2)?;
            tx.nested(|tx| tx.set(at, &3))?;
            tx.get(at)
        });
        assert_eq!(done, Ok(3));
        let done = thread.run(|tx| {
            tx.set(at, &4)?;
            let inner = tx.nested(|tx| {
                tx.set(at, &5)?;
                Err::<(), _>(Error::Invalid("inner".into()))
            });
            assert!(inner.is_err());
            Ok::<_, Error>(())
        });
        assert_eq!(done, Err(Error::Aborted));
        assert_eq!(thread.get(at), Ok(3));
    });
}

#[test]
fn panic_in_a_transaction_makes_the_pool_unusable() {
    each(|bench, cpu, pool, _, offloaded| {
        let mut thread = pool.thread(cpu).unwrap();
        let mut other = pool.thread(cpu).unwrap();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        let work = std::panic::AssertUnwindSafe(|| {
            thread.run(|tx| {
                tx.set(at, &2)?;
                if tx.get(at)? == 2 {
                    panic!("on purpose");
                }
                Ok::<_, Error>(())
            })
        });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let panicked = std::panic::catch_unwind(work);
        std::panic::set_hook(hook);
        assert!(panicked.is_err());
        assert!(thread.run(|tx| tx.set(at, &3)).is_err());
        assert!(other.run(|tx| tx.set(at, &3)).is_err());
        assert!(pool.thread(cpu).is_err());
        drop((thread, other));
        let options = bench.options(offloaded);
        let pool = Pool::open(cpu, 0, PLACE, "test", &options).unwrap();
        assert_eq!(pool.thread(cpu).unwrap().get(at), Ok(1));
        pool.check(cpu).unwrap();
    });
}

#[test]
fn close_applies_to_all_copies_of_a_pool() {
    each(|bench, cpu, pool, _, offloaded| {
        let mut thread = pool.thread(cpu).unwrap();
        let at = thread.run(|tx| tx.create(&1u64)).unwrap();
        assert!(pool.clone().close(cpu).is_err());
        drop(thread);
        pool.clone().close(cpu).unwrap();
        assert!(pool.thread(cpu).is_err());
        assert!(pool.check(cpu).is_err());
        assert!(pool.resize(cpu, 2 * BYTES).is_err());
        let pool = Pool::open(cpu, 0, PLACE, "test", &bench.options(offloaded)).unwrap();
        assert_eq!(pool.thread(cpu).unwrap().get(at), Ok(1));
    });
}

#[test]
fn store_across_an_old_and_a_new_object() {
    each(|_, cpu, pool, _, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let old = thread.run(|tx| tx.alloc_bytes(64)).unwrap().offset();
        let mut read = [[0; 64]; 2];
        let new = thread.run(|tx| {
            let new = tx.alloc_bytes(64)?.offset();
            tx.write(old.min(new), &[1; 128])?;
            tx.write(new, &[2; 64])?;
            tx.read(new, &mut read[0])?;
            Ok::<_, Error>(new)
        });
        let new = new.unwrap();
        assert_eq!(old.abs_diff(new), 64);
        thread.read(new, &mut read[1]).unwrap();
        assert_eq!(read, [[2; 64]; 2]);
        thread.read(old, &mut read[0]).unwrap();
        assert_eq!(read[0], [1; 64]);
    });
}

#[test]
fn growth_keeps_the_contents() {
    each(|bench, cpu, pool, mechanism, offloaded| {
        let mut thread = pool.thread(cpu).unwrap();
        let at = thread.run(|tx| tx.create(&77u64)).unwrap();
        assert!(
            pool.resize(cpu, BYTES + (1 << 20)).is_err(),
            "a thread has it"
        );
        drop(thread);
        assert!(pool.resize(cpu, BYTES - 4096).is_err());
        assert!(pool.resize(cpu, BYTES + 1).is_err());
        let grown = pool.resize(cpu, BYTES + (4 << 20));
        if mechanism == Mechanism::Shadow {
            assert!(grown.unwrap_err().to_string().contains("keeps its size"));
            return;
        }
        grown.unwrap();
        let mut thread = pool.thread(cpu).unwrap();
        assert_eq!(thread.get(at), Ok(77));
        // Two zones have room for this.
        let all = thread.run(|tx| {
            let all = [0; 2].map(|_| tx.alloc_bytes(2 << 20));
            all.into_iter().collect::<pm::Result<Vec<_>>>()
        });
        let all = all.unwrap();
        thread
            .run(|tx| tx.write(all[1].offset(), &[9; 64]))
            .unwrap();
        thread.finish().unwrap();
        drop(thread);
        let before = pool.check(cpu).unwrap();
        assert_eq!((before.bytes, before.generation), (BYTES + (4 << 20), 2));
        let other = Bench::new(bench.bytes());
        let cpu = other.shared.cpu(0);
        let options = other.options(offloaded);
        let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
        assert_eq!(pool.check(&cpu).unwrap(), before);
    });
}

/// A random transaction on a tree and on a map; values are objects that contain their key.
fn random_transaction(
    thread: &mut Thread,
    tree: Tree,
    model: &mut BTreeMap<u64, u64>,
    random: &mut Random,
    keys: u64,
) {
    let mut next = model.clone();
    let abort = random.below(6) == 0;
    let done = thread.run(|tx| {
        for _ in 0..1 + random.below(4) {
            let key = random.below(keys);
            if random.below(2) == 0 {
                let value = tx.create(&[key; 8])?;
                let old = tree.insert(tx, key, value.offset())?;
                assert_eq!(old, next.insert(key, value.offset()));
                old.map_or(Ok(()), |old| tx.free(Ptr::<u8>::at(old)))?;
            } else {
                let old = tree.remove(tx, key)?;
                assert_eq!(old, next.remove(&key));
                old.map_or(Ok(()), |old| tx.free(Ptr::<u8>::at(old)))?;
            }
            assert_eq!(tree.len(tx)?, next.len() as u64);
            let key = random.below(keys);
            assert_eq!(tree.get(tx, key)?, next.get(&key).copied());
        }
        match abort {
            true => Err(Error::Aborted),
            false => Ok(()),
        }
    });
    if abort {
        assert_eq!(done, Err(Error::Aborted));
    } else {
        done.unwrap();
        *model = next;
    }
}

/// The tree agrees with the map, and only the tree is allocated.
fn compare(pool: &Pool, thread: &mut Thread, tree: Tree, model: &BTreeMap<u64, u64>) {
    let items = tree.items(thread).unwrap();
    let items: Vec<(u64, u64)> = items.iter().map(|item| (item.key, item.value)).collect();
    let want: Vec<(u64, u64)> = model.iter().map(|(k, v)| (*k, *v)).collect();
    assert_eq!(items, want);
    for (key, value) in items {
        assert_eq!(thread.get(Ptr::<[u64; 8]>::at(value)).unwrap(), [key; 8]);
    }
    let mut all = tree.check(thread).unwrap();
    all.extend(model.values());
    all.sort_unstable();
    let cpu = thread.cpu().clone();
    let objects = pool.check(&cpu).unwrap().objects;
    let objects: Vec<u64> = objects.into_iter().map(|o| o.0).collect();
    assert_eq!(objects, all);
}

#[test]
fn btree_agrees_with_a_map() {
    each(|_, cpu, pool, mechanism, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let tree = thread.run(Tree::create).unwrap();
        let mut model = BTreeMap::new();
        let mut random = Random::new(3);
        // Insertions prevail, so that the tree grows; then removals, so that it shrinks again.
        let rounds = if mechanism.is_paged() { 60 } else { 150 };
        for (keys, rounds) in [(500, 2 * rounds), (12, rounds), (500, 10)] {
            for round in 0..rounds {
                random_transaction(&mut thread, tree, &mut model, &mut random, keys);
                if round % 20 == 0 {
                    thread.finish().unwrap();
                    compare(pool, &mut thread, tree, &model);
                }
            }
        }
        // All items are removed.
        for key in model.keys().copied().collect::<Vec<_>>() {
            let old = thread.run(|tx| {
                let old = tree.remove(tx, key)?.unwrap_or(0);
                tx.free(Ptr::<u8>::at(old))?;
                Ok::<_, Error>(old)
            });
            assert_eq!(old.ok(), model.remove(&key));
        }
        thread.finish().unwrap();
        compare(pool, &mut thread, tree, &model);
    });
}

#[test]
fn threads_use_separate_trees_and_a_shared_one() {
    each(|bench, cpu, pool, mechanism, _| {
        let mut thread = pool.thread(cpu).unwrap();
        let trees: Vec<Tree> = (0..4).map(|_| thread.run(Tree::create).unwrap()).collect();
        drop(thread);
        let shared_tree = trees[3];
        let lock = Lock::new();
        let rounds = if mechanism.is_paged() { 15 } else { 40 };
        let programs = (0..3)
            .map(|n| {
                let (pool, lock, tree) = (pool.clone(), lock.clone(), trees[n]);
                let work: Program<'_, BTreeMap<u64, u64>> = Box::new(move |cpu| {
                    let mut thread = pool.thread(cpu).unwrap();
                    let mut random = Random::new(n as u64);
                    let mut model = BTreeMap::new();
                    for round in 0..rounds {
                        random_transaction(&mut thread, tree, &mut model, &mut random, 50);
                        let held = lock.acquire(cpu).unwrap();
                        let key = round * 3 + n as u64;
                        thread
                            .run(|tx| {
                                let value = tx.create(&[key; 8])?;
                                shared_tree.insert(tx, key, value.offset())
                            })
                            .unwrap();
                        thread.cpu().sleep_until(thread.cpu().now()).unwrap();
                        drop(held);
                    }
                    thread.finish().unwrap();
                    model
                });
                (n, work)
            })
            .collect();
        let models = bench.shared.run(programs).unwrap();
        let mut thread = pool.thread(cpu).unwrap();
        let mut all = Vec::new();
        for (tree, model) in trees.iter().zip(&models) {
            let items = tree.items(&mut thread).unwrap();
            let items: Vec<_> = items.iter().map(|item| (item.key, item.value)).collect();
            assert_eq!(
                items,
                model.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>()
            );
            all.extend(tree.check(&mut thread).unwrap());
            all.extend(model.values());
        }
        let items = shared_tree.items(&mut thread).unwrap();
        assert!(items.iter().map(|item| item.key).eq(0..3 * rounds));
        all.extend(items.iter().map(|item| item.value));
        all.extend(shared_tree.check(&mut thread).unwrap());
        all.sort_unstable();
        let objects = pool.check(cpu).unwrap().objects;
        assert_eq!(objects.into_iter().map(|o| o.0).collect::<Vec<_>>(), all);
    });
}

#[test]
fn freed_objects_are_reused_only_after_the_commit() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo] {
        for offloaded in SIDES {
            let bench = Bench::empty();
            let cpu = bench.shared.cpu(0);
            let pool = create(&bench, &cpu, mechanism, offloaded);
            let mut one = pool.thread(&cpu).unwrap();
            let mut other = pool.thread(&cpu).unwrap();
            // A chunk for both.
            let first = one.run(|tx| tx.create(&1u64)).unwrap();
            let old = one.run(|tx| tx.create(&2u64)).unwrap();
            let mut theirs = Vec::new();
            let aborted = one.run(|tx| {
                let own = tx.create(&3u64)?;
                tx.free(own)?;
                tx.free(old)?;
                assert!(tx.free(own).is_err() && tx.free(old).is_err());
                for n in 0..3u64 {
                    theirs.push(other.run(|tx| tx.create(&n))?);
                }
                Err::<(), _>(Error::Aborted)
            });
            assert_eq!(aborted, Err(Error::Aborted));
            one.finish().unwrap();
            let mut want: Vec<u64> = theirs
                .iter()
                .chain([&first, &old])
                .map(|p| p.offset())
                .collect();
            want.sort_unstable();
            want.dedup();
            assert_eq!(want.len(), 5);
            let objects = pool.check(&cpu).unwrap().objects;
            let found: Vec<u64> = objects.into_iter().map(|o| o.0).collect();
            assert_eq!(found, want, "{mechanism:?}, offloaded: {offloaded}");
        }
    }
}

#[test]
fn threads_are_limited_by_the_layout() {
    let bench = Bench::empty();
    let cpu = bench.shared.cpu(0);
    let pool = create(&bench, &cpu, Mechanism::Undo, false);
    let threads: Vec<_> = (0..4).map(|_| pool.thread(&cpu).unwrap()).collect();
    let error = pool.thread(&cpu).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the pool has logs for 4 threads, all in use"
    );
    drop(threads);
    pool.thread(&cpu).unwrap();
}

#[test]
fn engine_serves_pools_of_two_processes() {
    let bench = Bench::empty();
    let cpu = bench.shared.cpu(0);
    let options = |pool, process| Options {
        pool,
        process,
        ..bench.options(true)
    };
    let layout = layout(Mechanism::Undo);
    let make =
        |n: u64, options: &Options| Pool::create(&cpu, 0, n * (2 << 20), 1 << 20, &layout, options);
    let pools = [
        make(0, &options(0, 1)).unwrap(),
        make(1, &options(5, 2)).unwrap(),
    ];
    // Pool 5 belongs to the other process.
    let error = make(2, &options(5, 1)).err().unwrap();
    let text = "the device refused PoolUnmap: the pool belongs to another process";
    assert_eq!(error.to_string(), text);
    for (n, pool) in pools.iter().enumerate() {
        let mut thread = pool.thread(&cpu).unwrap();
        let at = thread.run(|tx| tx.create(&(n as u64))).unwrap();
        let _ = thread.run(|tx| {
            tx.set(at, &9)?;
            Err::<(), _>(Error::Aborted)
        });
        assert_eq!(thread.get(at), Ok(n as u64));
    }
    for pool in pools {
        pool.close(&cpu).unwrap();
    }
    make(2, &options(5, 1)).unwrap();
}

/// A pool over two devices is opened on both, grows, and keeps its contents.
#[test]
fn pool_over_two_devices_opens_and_grows() {
    for offloaded in SIDES {
        let bench = Bench::near(2);
        let cpu = bench.shared.cpu(0);
        let options = bench.options(offloaded);
        let layout = layout(Mechanism::Undo);
        let both = || vec![0, 1];
        let pool = Pool::create(&cpu, both(), PLACE, 4 << 20, &layout, &options).unwrap();
        let mut thread = pool.thread(&cpu).unwrap();
        // In more than one stripe.
        let words: [u64; 1500] = std::array::from_fn(|n| n as u64);
        let at = thread.run(|tx| tx.create(&words)).unwrap();
        for n in 0..5 {
            let changed = words.map(|word| word + n);
            thread.run(|tx| tx.set(at, &changed)).unwrap();
        }
        let aborted = thread.run(|tx| {
            tx.set(at, &words)?;
            Err::<(), _>(Error::Aborted)
        });
        assert_eq!(aborted, Err(Error::Aborted));
        thread.finish().unwrap();
        drop(thread);
        pool.resize(&cpu, 6 << 20).unwrap();
        pool.close(&cpu).unwrap();
        let pool = Pool::open(&cpu, both(), PLACE, "test", &options).unwrap();
        let found = pool.thread(&cpu).unwrap().get(at).unwrap();
        assert_eq!(found, words.map(|word| word + 4));
        assert_eq!(pool.check(&cpu).unwrap().objects.len(), 1);
        pool.close(&cpu).unwrap();
        let none = Options::default();
        let open = |devices: Vec<usize>| Pool::open(&cpu, devices, PLACE, "test", &none).err();
        let text = open(vec![0]).unwrap().to_string();
        assert_eq!(text, "the pool is over 2 devices, not 1");
        for wrong in [vec![1, 0], vec![1]] {
            assert!(matches!(open(wrong), Some(Error::NoPool(_))));
        }
        let text = open(vec![0, 1, 2]).unwrap().to_string();
        assert!(text.contains("allowed are 1, 2 or 4"), "{text}");
    }
}
