//! What a hostile review tried: tests that fail show a flaw.

mod common;

use common::Bench;
use host::{Cpu, Cut, Program};
use pm::{Error, Layout, Mechanism, Pool};
use sim::Random;

const PLACE: u64 = 64 << 10;

/// Threads have parts of one object each, which nobody else writes or reads: their transactions commit and abort beside each other.
fn beside(bench: &Bench, mechanism: Mechanism, offloaded: bool, own: u64, seed: u64) -> Result<(), String> {
    let cpu = bench.shared.cpu(0);
    let options = bench.options(offloaded);
    let layout = Layout::new("test").with(mechanism);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let at = thread
        .run(|tx| {
            let at = tx.alloc_bytes(own * 4)?.offset();
            tx.write(at, &vec![0; own as usize * 4])?;
            Ok::<_, Error>(at)
        })
        .unwrap();
    thread.finish().unwrap();
    drop(thread);
    let programs = (0..4u64)
        .map(|n| {
            let pool = pool.clone();
            let work: Program<'_, Result<u8, String>> = Box::new(move |cpu: &Cpu| {
                let mut thread = pool.thread(cpu).unwrap();
                let mut random = Random::new(seed * 10 + n);
                let mut value = 0u8;
                let mine = at + own * n;
                for round in 1..60u8 {
                    let fails = random.below(2) == 0;
                    let done = thread.run(|tx| {
                        tx.write(mine, &vec![round; own as usize])?;
                        match fails {
                            true => Err(Error::Aborted),
                            false => Ok(()),
                        }
                    });
                    match done {
                        Ok(()) => value = round,
                        Err(Error::Aborted) => {}
                        Err(error) => return Err(format!("thread {n}, round {round}: {error}")),
                    }
                    let mut bytes = vec![0; own as usize];
                    thread.read(mine, &mut bytes).map_err(|e| e.to_string())?;
                    if bytes != vec![value; own as usize] {
                        return Err(format!(
                            "thread {n}, round {round} ({}): {value} was committed last, {:?} is there",
                            if fails { "aborted" } else { "committed" },
                            bytes
                        ));
                    }
                }
                thread.finish().unwrap();
                Ok(value)
            });
            (n as usize, work)
        })
        .collect();
    let values = bench.shared.run(programs).unwrap();
    let values: Vec<u8> = values.into_iter().collect::<Result<_, _>>()?;
    let look = |pool: &Pool, when: &str| {
        let mut thread = pool.thread(&cpu).unwrap();
        for (n, value) in values.iter().enumerate() {
            let mut bytes = vec![0; own as usize];
            thread.read(at + own * n as u64, &mut bytes).unwrap();
            if bytes != vec![*value; own as usize] {
                return Err(format!("{when}: of thread {n} {bytes:?} is there, not {value}"));
            }
        }
        Ok(())
    };
    look(&pool, "at the end")?;
    drop(pool);
    bench.shared.with(|machine| machine.crash(Cut::All)).unwrap();
    bench.restart();
    let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
    look(&pool, "after a loss of power")
}

#[test]
fn transactions_beside_each_other_in_one_line() {
    let mut wrong = Vec::new();
    for (name, bench) in [("double", Bench::empty as fn() -> Bench), ("near", || Bench::near(1))] {
        for mechanism in Mechanism::ALL {
            for offloaded in [false, true] {
                for own in [8, 16, 40, 300, 1000] {
                    for seed in 0..3 {
                        if let Err(text) = beside(&bench(), mechanism, offloaded, own, seed) {
                            wrong.push(format!("{name} {mechanism:?} offloaded {offloaded} {own} bytes seed {seed}: {}", &text[..text.len().min(160)]));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two threads allocate and free, each objects of its own: nothing of them is shared by the program. What is taken is what has been committed.
fn allocate(bench: &Bench, mechanism: Mechanism, offloaded: bool, many: usize, seed: u64) -> Result<(), String> {
    let cpu = bench.shared.cpu(0);
    let options = bench.options(offloaded);
    let layout = Layout::new("test").with(mechanism);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let programs = (0..2)
        .map(|n| {
            let pool = pool.clone();
            let work: Program<'_, Result<Vec<u64>, String>> = Box::new(move |cpu: &Cpu| {
                let mut thread = pool.thread(cpu).unwrap();
                let mut random = Random::new(seed * 10 + n);
                let mut mine: Vec<u64> = Vec::new();
                for _ in 0..if n == 0 { 12 } else { 250 } {
                    let most = if n == 0 { many } else { 1 };
                    let old = mine.clone();
                    let gives = !old.is_empty() && random.below(2) == 0;
                    let done = thread.run(|tx| {
                        let mut now = old.clone();
                        if gives {
                            for at in now.drain(..most.min(old.len())) {
                                tx.free(pm::Ptr::<u8>::at(at))?;
                            }
                        } else {
                            for _ in 0..most {
                                now.push(tx.alloc_bytes(64)?.offset());
                            }
                        }
                        Ok::<_, Error>(now)
                    });
                    mine = done.map_err(|e| e.to_string())?;
                }
                thread.finish().unwrap();
                Ok(mine)
            });
            (n as usize, work)
        })
        .collect();
    let all = bench.shared.run(programs).unwrap();
    let all: Vec<Vec<u64>> = all.into_iter().collect::<Result<_, _>>()?;
    let mut all: Vec<u64> = all.into_iter().flatten().collect();
    all.sort_unstable();
    let checked = pool.check(&cpu).map(drop);
    drop(pool);
    bench.shared.with(|machine| machine.crash(Cut::All)).unwrap();
    bench.restart();
    let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
    let objects = pool.check(&cpu).unwrap().objects;
    let found: Vec<u64> = objects.into_iter().map(|(at, _)| at).collect();
    let lost = all.iter().filter(|at| !found.contains(at)).count();
    let leaked = found.iter().filter(|at| !all.contains(at)).count();
    match (lost, leaked, checked) {
        (0, 0, Ok(())) => Ok(()),
        (lost, leaked, checked) => Err(format!(
            "of {} objects that were committed {lost} are free after a loss of power, {leaked} are leaked; check before: {checked:?}",
            all.len()
        )),
    }
}

#[test]
fn what_threads_have_allocated_is_theirs() {
    let mut wrong = Vec::new();
    for (name, bench) in [("double", Bench::empty as fn() -> Bench), ("near", || Bench::near(1))] {
        for mechanism in [Mechanism::Redo] {
            for offloaded in [false, true] {
                for many in [300] {
                    for seed in 0..if name == "near" && offloaded { 20 } else { 10 } {
                        if let Err(text) = allocate(&bench(), mechanism, offloaded, many, seed) {
                            wrong.push(format!("{name} {mechanism:?} offloaded {offloaded} {many} objects seed {seed}: {text}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Many readers outside of transactions, and a writer that has as many spare pages as it changes: what is read is one value, and never an older one.
fn read_often(bench: &Bench, offloaded: bool, spare_pages: u64, readers: usize, fails: bool) -> Result<(), String> {
    let cpu = bench.shared.cpu(0);
    let layout = Layout {
        spare_pages,
        ..Layout::new("test").with(Mechanism::Shadow)
    };
    let options = bench.options(offloaded);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let mut objects = Vec::new();
    for _ in 0..3 {
        let made = thread.run(|tx| {
            let at = tx.alloc_bytes(4096)?.offset();
            tx.write(at, &[0; 4096])?;
            Ok::<_, Error>(at)
        });
        objects.push(made.unwrap());
    }
    drop(thread);
    let objects = &objects;
    let done = &std::sync::atomic::AtomicBool::new(false);
    let mut programs: Vec<(usize, Program<'_, Result<(), String>>)> = Vec::new();
    let pool2 = pool.clone();
    programs.push((
        0,
        Box::new(move |cpu: &Cpu| {
            let mut thread = pool2.thread(cpu).unwrap();
            for n in 1..60u8 {
                let work = |tx: &mut pm::Transaction<'_>, n: u8, fail: bool| {
                    for at in objects {
                        tx.write(*at, &[n; 4096])?;
                    }
                    if fail { Err(Error::Aborted) } else { Ok(()) }
                };
                if fails {
                    let _ = thread.run(|tx| work(tx, 200, true));
                }
                thread.run(|tx| work(tx, n, false)).map_err(|e| format!("write {n}: {e}"))?;
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        }),
    ));
    for r in 1..=readers {
        let pool = pool.clone();
        programs.push((
            r,
            Box::new(move |cpu: &Cpu| {
                let mut thread = pool.thread(cpu).map_err(|e| e.to_string())?;
                let mut last = [0u8; 3];
                let mut random = Random::new(r as u64);
                for _ in 0..4000 {
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    let which = random.below(3) as usize;
                    let (from, len) = [(0, 4096), (64, 64), (1000, 2000)][random.below(3) as usize];
                    let mut bytes = vec![0; len];
                    thread.read(objects[which] + from, &mut bytes).map_err(|e| e.to_string())?;
                    if bytes.iter().any(|b| *b != bytes[0]) {
                        return Err(format!("reader {r}: a mixture from {from}: {:?}", (bytes[0], bytes[len - 1])));
                    }
                    if bytes[0] < last[which] || bytes[0] >= 200 {
                        return Err(format!("reader {r}: {} behind {}", bytes[0], last[which]));
                    }
                    last[which] = bytes[0];
                }
                Ok(())
            }),
        ));
    }
    let all = bench.shared.run(programs).unwrap();
    all.into_iter().collect::<Result<Vec<()>, _>>()?;
    pool.check(&cpu).map_err(|e| e.to_string())?;
    let mut thread = pool.thread(&cpu).unwrap();
    for at in objects {
        let mut bytes = [0; 4096];
        thread.read(*at, &mut bytes).unwrap();
        if bytes != [59; 4096] {
            return Err("at the end".into());
        }
    }
    Ok(())
}

#[test]
fn many_readers_and_few_spare_pages() {
    let mut wrong = Vec::new();
    for (name, bench) in [("double", Bench::empty as fn() -> Bench), ("near", || Bench::near(1))] {
        for offloaded in [false, true] {
            for spare in [4, 6] {
                for readers in [1, 3] {
                    for fails in [false, true] {
                        if let Err(text) = read_often(&bench(), offloaded, spare, readers, fails) {
                            wrong.push(format!("{name} offloaded {offloaded} {spare} spare, {readers} readers, fails {fails}: {text}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A reader outside of transactions looks at an object of 1000 bytes that one writer changes. What the writer has committed stays committed.
fn watched(bench: &Bench, mechanism: Mechanism, offloaded: bool) -> Result<(), String> {
    let cpu = bench.shared.cpu(0);
    let options = bench.options(offloaded);
    let layout = Layout::new("test").with(mechanism);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let at = thread
        .run(|tx| {
            let at = tx.alloc_bytes(1024)?.offset();
            tx.write(at, &[0; 1024])?;
            Ok::<_, Error>(at)
        })
        .unwrap();
    thread.finish().unwrap();
    drop(thread);
    let writer_pool = pool.clone();
    let done = &std::sync::atomic::AtomicBool::new(false);
    let writer: Program<'_, Result<u8, String>> = Box::new(move |cpu: &Cpu| {
        let mut thread = writer_pool.thread(cpu).unwrap();
        let mut last = 0;
        let mut result = Ok(0);
        for n in 1..100u8 {
            let fails = n % 2 == 0;
            let ended = thread.run(|tx| {
                tx.write(at, &[n; 1024])?;
                match fails {
                    true => Err(Error::Aborted),
                    false => Ok(()),
                }
            });
            if ended.is_ok() {
                last = n;
            }
            let mut bytes = [0; 1024];
            thread.read(at, &mut bytes).map_err(|e| e.to_string())?;
            if let Some(n) = bytes.iter().position(|b| *b != last) {
                result = Err(format!("{last} was committed last, {} is at {n}", bytes[n]));
                break;
            }
            result = Ok(last);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        result
    });
    let reader_pool = pool.clone();
    let reader: Program<'_, Result<u8, String>> = Box::new(move |cpu: &Cpu| {
        let mut thread = reader_pool.thread(cpu).unwrap();
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let mut bytes = [0; 1024];
            thread.read(at, &mut bytes).map_err(|e| e.to_string())?;
        }
        Ok(0)
    });
    let all = bench.shared.run(vec![(0, writer), (1, reader)]).unwrap();
    let last = all.into_iter().collect::<Result<Vec<u8>, _>>()?[0];
    drop(pool);
    bench.shared.with(|machine| machine.crash(Cut::All)).unwrap();
    bench.restart();
    let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
    let mut bytes = [0; 1024];
    pool.thread(&cpu).unwrap().read(at, &mut bytes).unwrap();
    match bytes == [last; 1024] {
        true => Ok(()),
        false => Err("after a loss of power".into()),
    }
}

#[test]
fn a_reader_changes_nothing() {
    let mut wrong = Vec::new();
    for (name, bench) in [("double", Bench::empty as fn() -> Bench), ("near", || Bench::near(1))] {
        for mechanism in Mechanism::ALL {
            for offloaded in [false, true] {
                if let Err(text) = watched(&bench(), mechanism, offloaded) {
                    wrong.push(format!("{name} {mechanism:?} offloaded {offloaded}: {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same, and the writer changes 8 bytes behind it: what it had committed before is lost for ever, as the line in the cache is an old one.
fn lost_for_ever(bench: &Bench, mechanism: Mechanism, offloaded: bool) -> Result<(), String> {
    let cpu = bench.shared.cpu(0);
    let options = bench.options(offloaded);
    let layout = Layout::new("test").with(mechanism);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let at = thread
        .run(|tx| {
            let at = tx.alloc_bytes(1024)?.offset();
            tx.write(at, &[0; 1024])?;
            Ok::<_, Error>(at)
        })
        .unwrap();
    thread.finish().unwrap();
    drop(thread);
    let writer_pool = pool.clone();
    let done = &std::sync::atomic::AtomicBool::new(false);
    let writer: Program<'_, ()> = Box::new(move |cpu: &Cpu| {
        let mut thread = writer_pool.thread(cpu).unwrap();
        for n in 1..100u8 {
            thread.run(|tx| tx.write(at, &[n; 1024])).unwrap();
            let aborted = thread.run(|tx| {
                tx.write(at, &[200; 1024])?;
                Err::<(), _>(Error::Aborted)
            });
            assert_eq!(aborted, Err(Error::Aborted));
        }
        // The last word of each line, which keeps what it has.
        for line in 0..16 {
            thread.run(|tx| tx.write(at + 64 * line + 56, &[99; 8])).unwrap();
        }
        thread.finish().unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let reader_pool = pool.clone();
    let reader: Program<'_, ()> = Box::new(move |cpu: &Cpu| {
        let mut thread = reader_pool.thread(cpu).unwrap();
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            thread.read(at, &mut [0; 1024]).unwrap();
        }
    });
    bench.shared.run(vec![(0, writer), (1, reader)]).unwrap();
    drop(pool);
    bench.shared.with(|machine| machine.crash(Cut::All)).unwrap();
    bench.restart();
    let pool = Pool::open(&cpu, 0, PLACE, "test", &options).unwrap();
    let mut bytes = [0; 1024];
    pool.thread(&cpu).unwrap().read(at, &mut bytes).unwrap();
    match bytes.iter().filter(|b| **b != 99).count() {
        0 => Ok(()),
        wrong => Err(format!(
            "after a loss of power {wrong} of 1024 bytes are not what was committed, as {:?}",
            bytes.iter().find(|b| **b != 99)
        )),
    }
}

#[test]
fn a_reader_loses_nothing_for_ever() {
    let mut wrong = Vec::new();
    for (name, bench) in [("double", Bench::empty as fn() -> Bench), ("near", || Bench::near(1))] {
        for mechanism in Mechanism::ALL {
            for offloaded in [false, true] {
                if let Err(text) = lost_for_ever(&bench(), mechanism, offloaded) {
                    wrong.push(format!("{name} {mechanism:?} offloaded {offloaded}: {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
