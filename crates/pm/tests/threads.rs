// SPDX-License-Identifier: Apache-2.0

//! Threads that share cache lines. The commits and aborts of one thread, and the engine's writes
//! past the cache, do not affect the bytes of others.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::Bench;
use host::{Cpu, CutScope, Program};
use pm::{Error, Layout, Mechanism, Options, Pool, Ptr, Thread};
use sim::{Random, Time};

const PLACE: u64 = 64 << 10;

/// A pool of a mechanism, by the CPU or offloaded, on a fake device or on one with the engine, of
/// the model `NEARSIDE_MODEL`.
struct Case {
    bench: Bench,
    options: Options,
    pool: Pool,
    name: String,
}

/// One thread of a program.
type Part<'a> = Box<dyn FnOnce(&mut Thread) -> Result<(), String> + Send + 'a>;

fn text(error: Error) -> String {
    error.to_string()
}

impl Case {
    fn all(each: impl Fn(&mut Case) -> Result<(), String>, mechanisms: &[Mechanism]) {
        let mut wrong = Vec::new();
        for (device, bench) in [
            ("double", Bench::empty as fn() -> Bench),
            ("device", || Bench::near(1)),
        ] {
            for (mechanism, offloaded) in mechanisms.iter().flat_map(|m| [(m, false), (m, true)]) {
                let bench = bench();
                let options = bench.options(offloaded);
                let layout = Layout::new("test").with_mechanism(*mechanism);
                let pool = Pool::create(&bench.shared.cpu(0), 0, PLACE, 4 << 20, &layout, &options)
                    .unwrap();
                let name = format!("{device}, {mechanism:?}, offloaded {offloaded}");
                let mut case = Case {
                    bench,
                    options,
                    pool,
                    name,
                };
                if let Err(text) = each(&mut case) {
                    wrong.push(format!("{}: {text}", case.name));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Each part on a separate CPU, with a thread of the pool.
    fn run<'a>(&self, parts: Vec<Part<'a>>) -> Result<(), String> {
        let mut programs: Vec<(usize, Program<'a, Result<(), String>>)> = Vec::new();
        for (n, part) in parts.into_iter().enumerate() {
            let pool = self.pool.clone();
            let program = move |cpu: &Cpu| {
                let mut thread = pool.thread(cpu).map_err(text)?;
                part(&mut thread)?;
                thread.finish().map_err(text)
            };
            programs.push((n, Box::new(program)));
        }
        let ended = self.bench.shared.run(programs).unwrap();
        ended.into_iter().collect()
    }

    /// The same on one CPU.
    fn alone(&self, part: impl FnOnce(&mut Thread) -> Result<(), String>) -> Result<(), String> {
        let mut thread = self.pool.thread(&self.bench.shared.cpu(0)).map_err(text)?;
        part(&mut thread)?;
        thread.finish().map_err(text)
    }

    /// An object of zeros.
    fn object(&self, bytes: u64) -> Result<u64, String> {
        let mut object = 0;
        let zeros = vec![0; bytes as usize];
        self.alone(|thread| {
            let made = thread.run(|tx| {
                let at = tx.alloc_bytes(bytes)?.offset();
                tx.write(at, &zeros)?;
                Ok::<_, Error>(at)
            });
            object = made.map_err(text)?;
            Ok(())
        })?;
        Ok(object)
    }

    /// The power fails, and the pool is opened again.
    fn crash(&mut self) {
        self.bench
            .shared
            .with_machine(|machine| machine.crash(CutScope::All))
            .unwrap();
        self.bench.restart();
        let cpu = self.bench.shared.cpu(0);
        self.pool = Pool::open(&cpu, 0, PLACE, "test", &self.options).unwrap();
    }
}

/// Asserts that each byte read has this value.
fn is_all(thread: &mut Thread, at: u64, bytes: u64, value: u8, when: &str) -> Result<(), String> {
    let mut found = vec![0; bytes as usize];
    thread.read(at, &mut found).map_err(text)?;
    match found.iter().position(|byte| *byte != value) {
        Some(n) => Err(format!(
            "{when}: byte {n} of {at:#x} is {}, not {value}",
            found[n]
        )),
        None => Ok(()),
    }
}

/// Stores a value to all bytes, then commits or aborts; returns whether it committed.
fn fill(thread: &mut Thread, at: u64, bytes: u64, value: u8, fails: bool) -> Result<bool, String> {
    let ended = thread.run(|tx| {
        tx.write(at, &vec![value; bytes as usize])?;
        match fails {
            true => Err(Error::Aborted),
            false => Ok(()),
        }
    });
    match ended {
        Ok(()) => Ok(true),
        Err(Error::Aborted) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
#[ignore = "takes seconds"]
fn threads_write_parts_of_one_object() {
    for (own, seed) in [(8, 0), (8, 1), (16, 2), (40, 0), (300, 1), (1000, 2)] {
        Case::all(
            |case| {
                let object = case.object(own * 4)?;
                let values: Vec<_> = (0..4).map(|_| std::sync::Mutex::new(0)).collect();
                let part = |n: usize| -> Part<'_> {
                    let value = &values[n];
                    Box::new(move |thread| {
                        let mut random = Random::new(seed * 10 + n as u64);
                        let mine = object + own * n as u64;
                        for round in 1..60 {
                            if fill(thread, mine, own, round, random.below(2) == 0)? {
                                *value.lock().unwrap() = round;
                            }
                            let last = *value.lock().unwrap();
                            is_all(thread, mine, own, last, &format!("round {round}"))?;
                        }
                        Ok(())
                    })
                };
                case.run((0..4).map(part).collect())?;
                let look = |case: &Case, when: &str| {
                    case.alone(|thread| {
                        (0..4).try_for_each(|n| {
                            let last = *values[n].lock().unwrap();
                            is_all(thread, object + own * n as u64, own, last, when)
                        })
                    })
                };
                look(case, "at the end")?;
                case.crash();
                look(case, "after a loss of power")
            },
            &Mechanism::ALL,
        );
    }
}

/// A large allocation changes adjacent bytes of the heap's table, which the engine applies; the
/// bytes around them belong to another thread.
#[test]
#[ignore = "takes seconds"]
fn threads_own_what_they_allocated() {
    for seed in [0, 6, 8, 13] {
        Case::all(
            |case| {
                let left = std::sync::Mutex::new(Vec::new());
                let part = |n: u64| -> Part<'_> {
                    let (rounds, most) = [(12, 300), (250, 1)][n as usize];
                    let left = &left;
                    Box::new(move |thread| {
                        let mut random = Random::new(seed * 10 + n);
                        let mut mine: Vec<u64> = Vec::new();
                        for _ in 0..rounds {
                            let old = mine.clone();
                            let gives = !old.is_empty() && random.below(2) == 0;
                            let done = thread.run(|tx| {
                                let mut now = old.clone();
                                if gives {
                                    for at in now.drain(..most.min(old.len())) {
                                        tx.free(Ptr::<u8>::at(at))?;
                                    }
                                } else {
                                    for _ in 0..most {
                                        now.push(tx.alloc_bytes(64)?.offset());
                                    }
                                }
                                Ok::<_, Error>(now)
                            });
                            mine = done.map_err(text)?;
                        }
                        left.lock().unwrap().extend(mine);
                        Ok(())
                    })
                };
                case.run(vec![part(0), part(1)])?;
                case.pool.check(&case.bench.shared.cpu(0)).map_err(text)?;
                case.crash();
                let checked = case.pool.check(&case.bench.shared.cpu(0)).map_err(text)?;
                let mut found: Vec<u64> = checked.objects.into_iter().map(|(at, _)| at).collect();
                let mut all = left.into_inner().unwrap();
                found.sort_unstable();
                all.sort_unstable();
                match found == all {
                    true => Ok(()),
                    false => Err(format!(
                        "{} objects were committed, {} are there",
                        all.len(),
                        found.len()
                    )),
                }
            },
            &[Mechanism::Undo, Mechanism::Redo],
        );
    }
}

/// A reader beside a writer caches lines that the engine changes.
#[test]
#[ignore = "takes seconds"]
fn reader_changes_nothing() {
    Case::all(
        |case| {
            const BYTES: u64 = 1024;
            let object = case.object(BYTES)?;
            let done = AtomicBool::new(false);
            let writer: Part<'_> = Box::new(|thread| {
                let work = |thread: &mut Thread| {
                    for n in 1..60 {
                        fill(thread, object, BYTES, n, false)?;
                        is_all(thread, object, BYTES, n, "after a commit")?;
                        fill(thread, object, BYTES, 200, true)?;
                        is_all(thread, object, BYTES, n, "after an abort")?;
                    }
                    // The last word of each line, which keeps the cached content.
                    (0..BYTES / 64).try_for_each(|n| {
                        fill(thread, object + 64 * n + 56, 8, 59, false).map(drop)
                    })
                };
                let ended = work(thread);
                done.store(true, Ordering::Relaxed);
                ended
            });
            let reader: Part<'_> = Box::new(|thread| {
                while !done.load(Ordering::Relaxed) {
                    thread
                        .read(object, &mut [0; BYTES as usize])
                        .map_err(text)?;
                }
                Ok(())
            });
            case.run(vec![writer, reader])?;
            case.crash();
            case.alone(|thread| is_all(thread, object, BYTES, 59, "after a loss of power"))
        },
        &Mechanism::ALL,
    );
}

/// The progress of a thread when the power fails.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The last committed value.
    committed: u8,
    /// The value that is being committed.
    tries: Option<u8>,
}

#[test]
#[ignore = "takes seconds"]
fn threads_writing_parts_of_one_object_survive_power_loss() {
    for own in [8, 300] {
        Case::all(
            |case| {
                let object = case.object(own * 4)?;
                let mut random = Random::new(own);
                let mut at = [Progress::default(); 4].map(std::sync::Mutex::new);
                let mut length = None;
                for cut in 0..if case.name.starts_with("device") {
                    6
                } else {
                    12
                } {
                    let begin = case.bench.now();
                    let limit = length.map(|length: u64| Time(begin.0 + 1 + random.below(length)));
                    case.bench
                        .shared
                        .with_machine(|machine| machine.cut_at(limit));
                    let part = |n: usize| -> Part<'_> {
                        let (at, seed) = (&at[n], cut * 10 + n as u64);
                        Box::new(move |thread| {
                            let mut random = Random::new(seed);
                            for _ in 0..12 {
                                let fails = random.below(2) == 0;
                                let value = 1 + random.below(200) as u8;
                                let set = |to: Progress| *at.lock().unwrap() = to;
                                let committed = at.lock().unwrap().committed;
                                let tries = (!fails).then_some(value);
                                set(Progress { committed, tries });
                                let mine = object + own * n as u64;
                                if fill(thread, mine, own, value, fails)? {
                                    set(Progress {
                                        committed: value,
                                        tries: None,
                                    });
                                }
                            }
                            Ok(())
                        })
                    };
                    let ended = case.run((0..4).map(part).collect());
                    let Some(limit) = limit else {
                        ended?;
                        length = Some(case.bench.now().0 - begin.0);
                        continue;
                    };
                    if let Some(other) = ended.err().filter(|text| !text.contains("power was cut"))
                    {
                        return Err(other);
                    }
                    case.crash();
                    for (n, at) in at.iter_mut().enumerate() {
                        let at = at.get_mut().unwrap();
                        let mut found = 0;
                        case.alone(|thread| {
                            let mine = object + own * n as u64;
                            let mut first = [0];
                            thread.read(mine, &mut first).map_err(text)?;
                            found = first[0];
                            is_all(thread, mine, own, found, &format!("cut {cut} at {limit}"))
                        })?;
                        if found != at.committed && Some(found) != at.tries {
                            let (was, tries) = (at.committed, at.tries);
                            return Err(format!(
                                "cut {cut} at {limit}: {found} of thread {n}, not \
                                {was} or {tries:?}"
                            ));
                        }
                        *at = Progress {
                            committed: found,
                            tries: None,
                        };
                    }
                }
                Ok(())
            },
            &Mechanism::ALL,
        );
    }
}
