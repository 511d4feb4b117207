// SPDX-License-Identifier: Apache-2.0

//! Power losses at every persist point of a run and at random times, also during recovery.

mod common;
#[path = "crash/completion.rs"]
mod completion;
#[path = "crash/devices.rs"]
mod devices;
#[path = "crash/later.rs"]
mod later;
#[path = "crash/ordered.rs"]
mod ordered;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use common::Bench;
use host::{Cpu, CutScope, Fence, Program};
use pm::btree::Tree;
use pm::{
    Error, Layout, Mechanism, Options, Pool, Ptr, Synchronisation, Thread, Ticket, Transaction,
};
use sim::{Random, Time};

const PLACE: u64 = 4096;
const WINDOW: u64 = 2 << 20;
const BYTES: u64 = WINDOW - PLACE;
/// Objects from this size on are changed in longer pieces.
const LARGE: u64 = 640;
const NAME: &str = "crash";

type Model = BTreeMap<u64, u64>;

/// The expected contents of the tree after each transaction, and when each transaction had
/// returned.
#[derive(Clone, Default)]
struct Oracle {
    /// After n transactions: the first element of each value by its key.
    states: Vec<Model>,
    /// When transaction n was known to be durable.
    ends: Vec<Time>,
    /// When it had returned.
    returns: Vec<Time>,
}

#[derive(Clone, Copy, PartialEq)]
enum On {
    Fake,
    /// The default device on the fast model.
    Fast,
    /// A device with the crash-consistency engine.
    Near,
    /// A device of one channel on the fast model.
    Single,
    /// The same, with stores that the CPU takes as ordered.
    Ordered,
    /// The fake, with stores that the CPU takes as ordered although any may be lost.
    Unordered,
    /// A device that completes each store.
    Cxl,
    /// The same, with fences that do not wait for completions.
    CxlPosted,
}

#[derive(Clone, Copy)]
struct Case {
    mechanism: Mechanism,
    tracked: bool,
    offloaded: bool,
    snapshots: bool,
    seed: u64,
    transactions: usize,
    on: On,
    /// Devices that the pool spans.
    devices: usize,
    synchronise: Synchronisation,
    /// Transactions become durable later, this number of them at a time.
    group: Option<u64>,
    /// They wait for a proof that they are durable.
    proofs: bool,
}

impl Case {
    fn options(&self, bench: &Bench) -> Options {
        Options {
            snapshots: self.snapshots,
            synchronise: self.synchronise,
            group_commit: self.group,
            proofs: self.proofs,
            ordered: matches!(self.on, On::Ordered | On::Unordered),
            fence: match self.on {
                On::Cxl => Fence::Completion,
                On::CxlPosted => Fence::Posted,
                _ => Fence::ReadBack,
            },
            ..bench.options(self.offloaded)
        }
    }

    fn bytes(&self) -> u64 {
        match self.devices {
            1 => BYTES,
            count => count as u64 * WINDOW,
        }
    }

    fn devices(&self) -> Vec<usize> {
        (0..self.devices).collect()
    }

    /// The lost lines. Each of several devices has a separate power supply; some keep their power.
    fn crash(&self, bench: &Bench, n: usize, random: &mut Random) {
        bench.shared.with_machine(|machine| match self.devices {
            1 => machine
                .crash([CutScope::All, CutScope::Host][n % 2])
                .unwrap(),
            count => {
                let mut later = |_| match random.below(3) {
                    0 => Time::ZERO,
                    1 => Time::MAX,
                    _ => Time(random.below(3_000_000)),
                };
                let later: Vec<Time> = (0..count).map(&mut later).collect();
                machine.crash_staggered(&later).unwrap()
            }
        });
        bench.restart();
    }
}

/// The layout of a case's pool.
fn layout_of(case: &Case) -> Layout {
    match case.tracked {
        true => layout(case.mechanism).with_tracking(),
        false => layout(case.mechanism),
    }
}

fn layout(mechanism: Mechanism) -> Layout {
    Layout {
        threads: 2,
        log_bytes: 32 << 10,
        spare_pages: 24,
        ..Layout::new(NAME).with_mechanism(mechanism)
    }
}

/// A pool with an empty tree.
fn prepare(case: &Case) -> (Bench, Pool, Tree) {
    let bench = match case.on {
        On::Fake | On::Unordered => Bench::sized(WINDOW + spec::nearpm::RESERVED_BYTES),
        On::Single | On::Ordered => Bench::single(),
        On::Fast => Bench::fast(WINDOW),
        On::Near => Bench::near(case.devices),
        On::Cxl | On::CxlPosted => Bench::cxl(),
    };
    let cpu = bench.shared.cpu(0);
    let layout = layout_of(case);
    let pool = Pool::create(
        &cpu,
        case.devices(),
        PLACE,
        case.bytes(),
        &layout,
        &case.options(&bench),
    )
    .unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    let tree = thread
        .run(|tx| {
            let tree = Tree::create(tx)?;
            tx.set_root(tree.root())?;
            Ok::<_, Error>(tree)
        })
        .unwrap();
    drop(thread);
    (bench, pool, tree)
}

/// The content of an object: its number, the size, the number's complement; a large one has more.
fn content(number: u64, bytes: u64) -> Vec<u8> {
    let words = if bytes >= LARGE { LARGE / 8 } else { 8 };
    let mut all = vec![number; words as usize];
    (all[1], all[7]) = (bytes, !number);
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A transaction: inserts keys, removes keys, changes values in place.
fn transaction(
    thread: &mut Thread,
    tree: Tree,
    model: &Model,
    random: &mut Random,
    aborts: bool,
    later: bool,
) -> Result<Option<(Model, Ticket)>, Error> {
    let mut next = model.clone();
    let abort = random.below(5) == 0 && aborts;
    let body = |tx: &mut Transaction<'_>| {
        for _ in 0..1 + random.below(3) {
            let key = random.below(20);
            let number = random.next();
            match (tree.get(tx, key)?, random.below(3)) {
                (Some(old), 0) => {
                    tree.remove(tx, key)?;
                    tx.free(Ptr::<u8>::at(old))?;
                    next.remove(&key);
                }
                (Some(old), _) => {
                    // Changes in place: pieces of the value, or a long one.
                    let at: Ptr<[u64; 8]> = Ptr::at(old);
                    let bytes = tx.get(at.element(1))?;
                    if bytes >= LARGE {
                        tx.write(old, &content(number, bytes))?;
                    } else {
                        tx.set(at.element(0), &number)?;
                        tx.set(at.element(7), &!number)?;
                    }
                    next.insert(key, number);
                }
                (None, _) => {
                    // Sizes of several classes, and large ones.
                    let bytes = [64, 64, 64, 700, 5000, 70_000][random.below(6) as usize];
                    let at = tx.alloc_bytes(bytes)?;
                    tx.write(at.offset(), &content(number, bytes))?;
                    tree.insert(tx, key, at.offset())?;
                    next.insert(key, number);
                }
            }
        }
        match abort {
            true => Err(Error::Aborted),
            false => Ok(()),
        }
    };
    let done = match later {
        true => thread.run_later(body).map(|done| done.1),
        false => thread.run(body).map(|()| thread.last_ticket()),
    };
    match done {
        Ok(ticket) => Ok(Some((next, ticket))),
        Err(Error::Aborted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs a case's transactions until they end or the power fails.
fn run(case: &Case, bench: &Bench, cpu: &Cpu, pool: &Pool, tree: Tree) -> Oracle {
    let mut oracle = Oracle {
        states: vec![Model::new()],
        ends: vec![bench.now()],
        returns: vec![bench.now()],
    };
    let mut random = Random::new(case.seed);
    let Ok(mut thread) = pool.thread(cpu) else {
        return oracle;
    };
    let mut tickets = VecDeque::new();
    let learn = |thread: &mut Thread, tickets: &mut VecDeque<Ticket>, oracle: &mut Oracle| {
        // Without power nothing is learned.
        let _ = thread.poll();
        while tickets.front().is_some_and(|one| thread.is_durable(*one)) {
            tickets.pop_front();
            oracle.ends.push(cpu.now());
        }
    };
    while oracle.states.len() <= case.transactions {
        let model = oracle.states.last().cloned().unwrap_or_default();
        // Without snapshots a transaction can't be aborted.
        let aborts = case.snapshots;
        let later = case.group.is_some();
        match transaction(&mut thread, tree, &model, &mut random, aborts, later) {
            Ok(Some((next, ticket))) => {
                oracle.states.push(next);
                oracle.returns.push(cpu.now());
                tickets.push_back(ticket);
            }
            Ok(None) => {}
            Err(Error::Host(_)) => {
                // The power has failed before the end of the call.
                return oracle;
            }
            Err(error) => panic!("{error}"),
        }
        learn(&mut thread, &mut tickets, &mut oracle);
    }
    match thread.sync() {
        Ok(()) => learn(&mut thread, &mut tickets, &mut oracle),
        Err(Error::Host(_)) => {}
        Err(error) => panic!("{error}"),
    }
    oracle
}

/// Opens the pool after a crash; returns the state that it has, or the damage.
fn inspect(cpu: &Cpu, devices: usize, options: &Options) -> Result<Model, String> {
    let text = |error: Error| error.to_string();
    let devices: Vec<usize> = (0..devices).collect();
    let pool = Pool::open(cpu, devices, PLACE, NAME, options).map_err(text)?;
    let mut thread = pool.thread(cpu).map_err(text)?;
    let tree = Tree::at(thread.root().map_err(text)?);
    let mut all = tree.check(&mut thread).map_err(text)?;
    let mut model = Model::new();
    for item in tree.items(&mut thread).map_err(text)? {
        let value: [u64; 8] = thread.get(Ptr::at(item.value)).map_err(text)?;
        let mut whole = vec![0; content(0, value[1]).len()];
        thread.read(item.value, &mut whole).map_err(text)?;
        let long = whole[64..].chunks(8).all(|word| word == &whole[..8]);
        if value[7] != !value[0] || !long {
            return Err(format!("the value of {} is torn", item.key));
        }
        all.push(item.value);
        model.insert(item.key, value[0]);
    }
    all.sort_unstable();
    let found: Vec<u64> = pool
        .check(cpu)
        .map_err(text)?
        .objects
        .into_iter()
        .map(|object| object.0)
        .collect();
    if found != all {
        return Err(format!("objects {found:x?} are taken, not {all:x?}"));
    }
    // One transaction more.
    thread
        .run(|tx| {
            let value = tx.create(&[1u64, 1, 1, 1, 1, 1, 1, !1])?;
            tree.insert(tx, 1000, value.offset())
        })
        .map_err(text)?;
    match tree.get(&mut thread, 1000) {
        Ok(Some(_)) => Ok(model),
        other => Err(format!("{other:?}")),
    }
}

/// The violation of a state found at a time.
fn violation(oracle: &Oracle, at: Time, found: &Result<Model, String>) -> Option<String> {
    let found = match found {
        Ok(model) => model,
        Err(text) => return Some(text.clone()),
    };
    let done = oracle.ends.iter().filter(|end| **end <= at).count() - 1;
    let returned = oracle.returns.iter().filter(|end| **end <= at).count() - 1;
    let next = (returned + 1).min(oracle.states.len() - 1);
    let fits = oracle.states[done..=next].contains(found);
    (!fits).then(|| format!("it is not what {done} to {next} transactions have left"))
}

/// Drops a random number of the last unproven stores of each line.
fn scattered(image: &[u8], since: &[(Time, u64, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    let mut left = BTreeMap::new();
    for (_, offset, _) in since {
        *left.entry(offset / 64).or_insert(0) += 1;
    }
    left.values_mut()
        .for_each(|count| *count = random.below(*count + 1));
    let mut out = image.to_vec();
    for (_, offset, data) in since {
        let left = left.get_mut(&(offset / 64)).unwrap();
        if *left > 0 {
            *left -= 1;
            out[*offset as usize..*offset as usize + data.len()].copy_from_slice(data);
        }
    }
    out
}

/// The states of the memory at all persist points of a run, for ordered stores. With the CPU as the
/// executor also states with lost stores.
fn every_point(case: Case, stride: usize, mut see: impl FnMut(Option<String>)) {
    let (bench, pool, tree) = prepare(&case);
    let cpu = bench.shared.cpu(0);
    // The state at the last load.
    let mut image = bench.bytes();
    let mut since: Vec<(Time, u64, Vec<u8>)> = Vec::new();
    *bench.journal.lock().unwrap() = Some(Vec::new());
    let oracle = run(&case, &bench, &cpu, &pool, tree);
    assert_eq!(oracle.states.len(), case.transactions + 1);
    let journal = bench.journal.lock().unwrap().take().unwrap();
    let mut random = Random::new(case.seed);
    let write = |image: &mut [u8], at: u64, data: &[u8]| {
        image[at as usize..at as usize + data.len()].copy_from_slice(data);
    };
    for (n, event) in journal.into_iter().enumerate() {
        let at = event.0;
        // The store before this one.
        let changed = n == 0 || !since.is_empty();
        if changed && n % stride == case.seed as usize % stride {
            let mut in_order = image.clone();
            since.iter().for_each(|e| write(&mut in_order, e.1, &e.2));
            let mut images = vec![in_order];
            if !case.offloaded {
                images.push(scattered(&image, &since, &mut random));
            }
            for image in images {
                let other = Bench::new(image);
                let options = Options {
                    engine: None,
                    snapshots: true,
                    ..case.options(&other)
                };
                let found = inspect(&other.shared.cpu(0), 1, &options);
                let why = violation(&oracle, Time(at.0 - 1), &found);
                see(why.map(|why| format!("before write {n} at {at}: {why}")));
            }
        }
        match event.2.is_empty() {
            true => since.drain(..).for_each(|e| write(&mut image, e.1, &e.2)),
            false => since.push(event),
        }
    }
}

fn cases(seed: u64, transactions: usize) -> impl Iterator<Item = Case> {
    let sides = Mechanism::ALL
        .into_iter()
        .flat_map(|mechanism| [false, true].map(|offloaded| (mechanism, offloaded)));
    sides.map(move |(mechanism, offloaded)| Case {
        mechanism,
        tracked: false,
        offloaded,
        snapshots: true,
        seed,
        transactions,
        on: On::Fake,
        devices: 1,
        synchronise: Synchronisation::Devices,
        group: None,
        proofs: true,
    })
}

/// The same for tracked pools, which are not for redo.
fn tracked_cases(seed: u64, transactions: usize) -> impl Iterator<Item = Case> {
    let all = cases(seed, transactions);
    let able = all.filter(|case| case.mechanism != Mechanism::Redo);
    able.map(|case| Case {
        tracked: true,
        ..case
    })
}

/// The extent of a test: a sample in `make test`, all of it in `make test-all`.
fn extent<T>(sample: T, all: T) -> T {
    match std::env::var("NEARSIDE_LONG").as_deref() {
        Ok("1") => all,
        _ => sample,
    }
}

/// The fake executes each command at once; the engine's tests cover cuts within commands.
#[test]
#[ignore = "takes seconds"]
fn crash_at_every_persist_point_leaves_n_or_one_more() {
    every_point_holds(cases(1, 12));
}

#[test]
#[ignore = "takes seconds"]
fn crash_of_a_tracked_pool_at_every_persist_point_leaves_n_or_one_more() {
    every_point_holds(tracked_cases(1, 4));
}

fn every_point_holds(cases: impl Iterator<Item = Case>) {
    for case in cases {
        let mut count = 0;
        every_point(
            case,
            1 + 2 * usize::from(case.mechanism.is_paged()),
            |why| {
                count += 1;
                let (mechanism, offloaded) = (case.mechanism, case.offloaded);
                assert_eq!(why, None, "{mechanism:?}, offloaded: {offloaded}");
            },
        );
        println!(
            "{:?}, offloaded: {}: {count} points",
            case.mechanism, case.offloaded
        );
        assert!(count > 20, "{count}");
    }
}

#[test]
#[ignore = "takes seconds"]
fn crash_without_snapshots_finds_violations() {
    for case in cases(1, 12) {
        let case = Case {
            snapshots: false,
            ..case
        };
        let (mut count, mut broken) = (0, 0);
        every_point(case, 1, |why| {
            count += 1;
            broken += usize::from(why.is_some());
        });
        let (mechanism, offloaded) = (case.mechanism, case.offloaded);
        println!("{mechanism:?}, offloaded: {offloaded}: {broken} of {count} broken");
        assert!(
            broken > 10,
            "{mechanism:?}, offloaded: {offloaded}: {broken}"
        );
    }
}

/// Cuts the power of a run at random times, recovers on the same host, cuts the power of the
/// recovery, and recovers again.
fn each_cut(case: Case, cuts: usize, mut see: impl FnMut(String)) {
    let (begin, end, all) = {
        let (bench, pool, tree) = prepare(&case);
        let begin = bench.now();
        let all = run(&case, &bench, &bench.shared.cpu(0), &pool, tree);
        (begin, bench.now(), all.states)
    };
    let mut random = Random::new(case.seed);
    for n in 0..cuts {
        let (bench, pool, tree) = prepare(&case);
        assert_eq!(bench.now(), begin);
        let at = Time(begin.0 + 1 + random.below(end.0 - begin.0));
        bench.shared.with_machine(|m| m.cut_at(Some(at)));
        let cpu = bench.shared.cpu(0);
        let mut oracle = run(&case, &bench, &cpu, &pool, tree);
        // The interrupted transaction is repeated.
        oracle.states.clone_from(&all);
        case.crash(&bench, n, &mut random);
        let options = |n: usize| Options {
            engine_recovers: n % 4 < 2,
            ..case.options(&bench)
        };
        // The power fails during recovery.
        for again in 0..2 {
            let now = bench.now();
            let at = Time(now.0 + 1 + random.below(60_000_000));
            bench.shared.with_machine(|m| m.cut_at(Some(at)));
            let opened = Pool::open(&cpu, case.devices(), PLACE, NAME, &options(n + again));
            let cut_off = matches!(opened, Err(Error::Host(_)));
            assert!(opened.is_ok() || cut_off, "{:?}", opened.err());
            drop(opened);
            case.crash(&bench, 0, &mut random);
        }
        let found = inspect(&cpu, case.devices, &options(n));
        if let Some(why) = violation(&oracle, at, &found) {
            let (mechanism, offloaded) = (case.mechanism, case.offloaded);
            see(format!(
                "{mechanism:?}, offloaded: {offloaded}, cut {n} at {at}: {why}"
            ));
        }
    }
}

/// The same on the fast model, without a violation.
fn any_time(case: Case, cuts: usize) {
    each_cut(case, cuts, |why| panic!("{why}"));
}

#[test]
#[ignore = "takes seconds"]
fn crash_at_any_time_and_during_recovery_leaves_n_or_one_more() {
    let cuts = extent(12, 24);
    cases(2, 10).for_each(|case| any_time(case, cuts));
}

#[test]
fn crash_of_a_tracked_pool_leaves_n_or_one_more() {
    tracked_cases(2, 8).for_each(|case| any_time(case, 8));
    for case in tracked_cases(5, 8).filter(|case| case.offloaded) {
        let on = On::Near;
        any_time(Case { on, ..case }, 8);
    }
}

#[test]
fn crash_of_the_fast_model_leaves_n_or_one_more() {
    for case in cases(4, 8).filter(|case| !case.offloaded) {
        any_time(
            Case {
                on: On::Fast,
                ..case
            },
            10,
        );
    }
}

/// The device's engine, with its order of accesses and partial commands.
fn engine(cuts: usize) {
    for case in cases(4, 8).filter(|case| case.offloaded) {
        any_time(
            Case {
                on: On::Near,
                ..case
            },
            cuts,
        );
    }
}

mod sampled {
    #[test]
    fn crash_of_a_device_with_the_engine_leaves_n_or_one_more() {
        super::engine(4);
    }
}

#[test]
#[ignore = "takes seconds"]
fn crash_of_a_device_with_the_engine_several_times() {
    engine(10);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "takes minutes"]
    fn crash_of_a_device_with_the_engine_many_times() {
        engine(40);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn crash_of_a_tracked_pool_many_times() {
        for case in tracked_cases(6, 12).filter(|case| case.offloaded) {
            let on = On::Near;
            any_time(Case { on, ..case }, 60);
        }
    }

    #[test]
    #[ignore = "takes minutes"]
    fn later_on_the_fast_model_many_times() {
        super::later::on_the_fast_model(24);
    }
}

/// Two threads with separate trees, and a crash: each tree has n transactions or one more.
#[test]
#[ignore = "takes seconds"]
fn recovery_brings_each_thread_to_its_last_transaction() {
    each_thread(cases(3, 8));
}

fn each_thread(cases: impl Iterator<Item = Case>) {
    for case in cases {
        let mut random = Random::new(9);
        let mut whole: Option<(Time, BTreeMap<usize, Oracle>)> = None;
        for n in 0..12 {
            let (bench, pool, tree) = prepare(&case);
            let cpu = bench.shared.cpu(0);
            let mut thread = pool.thread(&cpu).unwrap();
            let other = thread.run(Tree::create).unwrap();
            drop(thread);
            let begin = bench.now();
            let at = whole
                .as_ref()
                .map(|(end, _)| Time(begin.0 + 1 + random.below(end.0 - begin.0)));
            bench.shared.with_machine(|m| m.cut_at(at));
            let oracles = Mutex::new(BTreeMap::new());
            let programs = [tree, other]
                .into_iter()
                .enumerate()
                .map(|(n, tree)| {
                    let (bench, pool, oracles) = (&bench, &pool, &oracles);
                    let case = Case {
                        seed: case.seed + n as u64,
                        ..case
                    };
                    let work: Program<'_, ()> = Box::new(move |cpu| {
                        let oracle = run(&case, bench, cpu, pool, tree);
                        oracles.lock().unwrap().insert(n, oracle);
                    });
                    (n, work)
                })
                .collect();
            bench.shared.run(programs).unwrap();
            let oracles = oracles.into_inner().unwrap();
            let (Some(at), Some((_, all))) = (at, &whole) else {
                whole = Some((bench.now(), oracles));
                continue;
            };
            let cut = [CutScope::All, CutScope::Host][n % 2];
            bench.shared.with_machine(|m| m.crash(cut)).unwrap();
            bench.restart();
            // The tree at the root; the other one is inspected by itself.
            let options = case.options(&bench);
            let pool = Pool::open(&cpu, 0, PLACE, NAME, &options).unwrap();
            let mut thread = pool.thread(&cpu).unwrap();
            let mut taken = Vec::new();
            for (n, tree) in [tree, other].into_iter().enumerate() {
                taken.extend(tree.check(&mut thread).unwrap());
                let mut model = Model::new();
                for item in tree.items(&mut thread).unwrap() {
                    let value: [u64; 8] = thread.get(Ptr::at(item.value)).unwrap();
                    assert_eq!(value[7], !value[0]);
                    taken.push(item.value);
                    model.insert(item.key, value[0]);
                }
                let oracle = Oracle {
                    states: all[&n].states.clone(),
                    ..oracles[&n].clone()
                };
                let why = violation(&oracle, at, &Ok(model));
                let (mechanism, offloaded) = (case.mechanism, case.offloaded);
                assert_eq!(
                    why, None,
                    "{mechanism:?}, offloaded: {offloaded}, cut at {at}"
                );
            }
            taken.sort_unstable();
            let objects = pool.check(&cpu).unwrap().objects;
            assert_eq!(objects.into_iter().map(|o| o.0).collect::<Vec<_>>(), taken);
        }
    }
}

/// A growing pool has its old size or its new one, and its contents.
#[test]
fn crash_during_creation_or_growth_leaves_all_or_nothing() {
    let bench = Bench::sized(8 << 20);
    let cpu = bench.shared.cpu(0);
    let record = || {
        let begin = bench.bytes();
        *bench.journal.lock().unwrap() = Some(Vec::new());
        begin
    };
    let each = |begin: Vec<u8>, see: &mut dyn FnMut(&Bench)| {
        let journal = bench.journal.lock().unwrap().take().unwrap();
        let mut image = begin;
        for (n, (_, offset, data)) in journal.iter().enumerate() {
            let near = n < 8 || n + 8 > journal.len();
            if near || n % 101 == 0 {
                see(&Bench::new(image.clone()));
            }
            image[*offset as usize..*offset as usize + data.len()].copy_from_slice(data);
        }
        see(&Bench::new(image));
    };
    let open =
        |bench: &Bench| Pool::open(&bench.shared.cpu(0), 0, PLACE, NAME, &Options::default());
    let layout = layout(Mechanism::Undo);
    let options = Options::default();
    // A pool in the place of an older one, whose object is gone with the new pool.
    let old = Layout::new(NAME);
    let pool = Pool::create(&cpu, 0, PLACE, BYTES, &old, &options).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    thread.run(|tx| tx.create(&5u64)).unwrap();
    drop(thread);
    let begin = record();
    let pool = Pool::create(&cpu, 0, PLACE, BYTES, &layout, &options).unwrap();
    let mut states = [0; 3];
    each(begin, &mut |bench| match open(bench) {
        Ok(pool) => {
            let objects = pool.check(&bench.shared.cpu(0)).unwrap().objects;
            assert_eq!(objects.is_empty(), pool.layout() == layout);
            states[objects.len()] += 1;
        }
        Err(Error::NoPool(_)) => states[2] += 1,
        Err(error) => panic!("{error}"),
    });
    assert!(states.iter().all(|n| *n > 0), "{states:?}");

    let mut thread = pool.thread(&cpu).unwrap();
    let at = thread.run(|tx| tx.create(&7u64)).unwrap();
    drop(thread);
    let begin = record();
    pool.resize(&cpu, 7 << 20).unwrap();
    let mut sizes = BTreeMap::new();
    each(begin, &mut |bench| {
        let cpu = bench.shared.cpu(0);
        let pool = open(bench).unwrap();
        *sizes.entry(pool.check(&cpu).unwrap().bytes).or_insert(0) += 1;
        assert_eq!(pool.thread(&cpu).unwrap().get(at), Ok(7));
    });
    assert_eq!(sizes.keys().copied().collect::<Vec<_>>(), [BYTES, 7 << 20]);
}
