// SPDX-License-Identifier: Apache-2.0

//! Checks of damaged pools, and growth of damaged pools.

mod common;

use std::sync::Arc;

use common::{Bench, WINDOW};
use design::Design;
use host::{CutScope, Mapping, MemoryType};
use pm::session::{PoolUse, Session, SessionPool};
use pm::{Error, Layout, Mechanism, Options, Pool};

const PLACE: u64 = 1 << 20;
const BYTES: u64 = 8 << 20;
const LOG: u64 = 64 << 10;
const PAGE: u64 = 4096;
const SPARE: u64 = 16;
/// A pool with undo logs for one thread.
const HEAP: u64 = PAGE + LOG;

fn session() -> Arc<Session> {
    let design = Design::find("nearpm").unwrap();
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n").unwrap();
    Arc::new(Session::start(&design, device::Model::Fast).unwrap())
}

fn layout(mechanism: Mechanism) -> Layout {
    Layout {
        threads: 1,
        log_bytes: LOG,
        spare_pages: SPARE,
        ..Layout::new("n").with_mechanism(mechanism)
    }
}

fn usage(offload: bool) -> PoolUse {
    PoolUse {
        offload,
        ..PoolUse::default()
    }
}

/// An object filled with one byte, as the root.
fn object(pool: &SessionPool, bytes: usize, byte: u8) -> u64 {
    let mut thread = pool.thread(0).unwrap();
    thread.begin().unwrap();
    let at = thread.alloc(bytes as u64).unwrap();
    thread.write(at, &vec![byte; bytes]).unwrap();
    thread.set_root(at).unwrap();
    thread.commit().unwrap();
    at
}

/// The error of a check with some bytes of the pool changed; the bytes are restored.
fn check_error(session: &Session, pool: &SessionPool, changes: &[(u64, &[u8])]) -> String {
    let mut old = Vec::new();
    for (at, bytes) in changes {
        let mut was = vec![0; bytes.len()];
        session.load(PLACE + at, &mut was).unwrap();
        session.store(PLACE + at, bytes).unwrap();
        old.push((PLACE + at, was));
    }
    let error = pool.check().err();
    for (at, bytes) in old {
        session.store(at, &bytes).unwrap();
    }
    pool.check().unwrap();
    match error {
        Some(Error::Corrupt(text)) => text,
        other => panic!("{other:?} with {changes:x?}"),
    }
}

/// The table is valid, but differs from the state of the transactions.
#[test]
fn check_detects_two_exchanged_pages() {
    for offload in [false, true] {
        let session = session();
        let layout = layout(Mechanism::Shadow);
        let pool = session.create(PLACE, BYTES, &layout, usage(offload));
        let pool = pool.unwrap();
        let objects = [b'A', b'B'].map(|byte| object(&pool, 8192, byte));
        let mut thread = pool.thread(0).unwrap();
        // The table follows these areas.
        for _ in 0..2 {
            thread.begin().unwrap();
            thread.set_root(objects[0]).unwrap();
            thread.commit().unwrap();
        }
        drop(thread);
        pool.check().unwrap();
        let table = PAGE + LOG;
        let word = table + (BYTES / PAGE * 8).next_multiple_of(PAGE);
        // Number, and two lists of as many pages as there are spare ones.
        let data = word + 3 * PAGE;
        let entry = |at: u64| table + (at - data) / PAGE * 8;
        let [mut a, mut b] = [[0; 8]; 2];
        session.load(PLACE + entry(objects[0]), &mut a).unwrap();
        session.load(PLACE + entry(objects[1]), &mut b).unwrap();
        let changed: [(u64, &[u8]); 2] = [(entry(objects[0]), &b), (entry(objects[1]), &a)];
        let text = check_error(&session, &pool, &changed);
        assert!(text.contains("the transactions have left it at"), "{text}");
        // A list that was not committed.
        let text = check_error(&session, &pool, &[(word, &[9])]);
        assert!(text.contains("switch list"), "{text}");
    }
}

/// A device without the line that names its part of the pool is refused.
#[test]
fn check_detects_a_foreign_part() {
    let bench = Bench::near(2);
    let cpu = bench.shared.cpu(0);
    let options = bench.options(true);
    let pool = Pool::create(&cpu, vec![0, 1], PLACE, BYTES, &Layout::new("n"), &options);
    let pool = pool.unwrap();
    let map = Mapping::pm(1, MemoryType::Uncached);
    for at in PLACE..PLACE + 64 {
        let mut byte = [0];
        cpu.read(&map, at, &mut byte).unwrap();
        cpu.write(&map, at, &[byte[0] ^ 1]).unwrap();
        cpu.fence(host::Fence::ReadBack).unwrap();
        let text = pool.check(&cpu).unwrap_err().to_string();
        assert!(text.contains("device 1 does not have part 1"), "{text}");
        cpu.write(&map, at, &byte).unwrap();
        cpu.fence(host::Fence::ReadBack).unwrap();
    }
    pool.check(&cpu).unwrap();
}

/// Metadata of chunks and objects past the end would become effective with growth.
#[test]
fn check_detects_objects_beyond_the_heap() {
    let session = session();
    let layout = layout(Mechanism::Undo);
    let pool = session.create(PLACE, 1 << 20, &layout, usage(false));
    let pool = pool.unwrap();
    // The first chunk has objects of 4096 bytes: class 18, 16 of them.
    object(&pool, 4096, 1);
    let states = |chunk: u64| HEAP + 512 + 1024 * (chunk - 1);
    let word = |chunk: u64| HEAP + 8 * chunk;
    let cases: [(u64, &[u8], &str); 8] = [
        (states(2) + 5, &[1], "the chunk has 0 objects"),
        (states(13) + 1023, &[1], "the chunk has 0 objects"),
        (states(1) + 16, &[1], "the chunk has 16 objects"),
        (states(1) + 3, &[2], "neither free nor allocated"),
        (states(1) + 3, &[1], "its objects differ from"),
        (word(1) + 1, &[17], "its objects differ from"),
        (word(40), &[0xFF; 8], "the word of chunk 40"),
        (word(40), &[1], "the word of chunk 40"),
    ];
    for (at, bytes, what) in cases {
        let text = check_error(&session, &pool, &[(at, bytes)]);
        assert!(text.contains(what), "{text}");
    }
}

fn lose_power(session: &Session) {
    session.cut_power(CutScope::All).unwrap();
    session.power_on().unwrap();
}

fn content(pool: &SessionPool) -> [u8; 8] {
    let mut thread = pool.thread(0).unwrap();
    let (at, mut bytes) = (thread.root().unwrap(), [0; 8]);
    thread.read(at, &mut bytes).unwrap();
    bytes
}

/// Growth ignores bytes past the end of the pool, and refuses damage before it.
#[test]
fn growth_refuses_damaged_metadata() {
    for offload in [false, true] {
        let session = session();
        let layout = layout(Mechanism::Undo);
        let pool = session.create(PLACE, 1 << 20, &layout, usage(offload));
        let pool = pool.unwrap();
        object(&pool, 64, 7);
        // The first chunk has objects; the second is free.
        session.store(PLACE + HEAP + 8 * 2, &[0xFF; 8]).unwrap();
        assert!(matches!(pool.resize(BYTES), Err(Error::Corrupt(_))));
        session.store(PLACE + HEAP + 8 * 2, &[0; 8]).unwrap();
        let checked = pool.check().unwrap();
        assert_eq!((checked.bytes, checked.generation), (1 << 20, 1));
        // Bytes of chunk 40, past the end: growth clears these.
        for at in [8 * 40, 512 + 1024 * 39] {
            session.store(PLACE + HEAP + at, &[0xFF; 8]).unwrap();
        }
        assert!(matches!(pool.check(), Err(Error::Corrupt(_))));
        pool.resize(BYTES).unwrap();
        assert_eq!(pool.check().unwrap().bytes, BYTES);
        lose_power(&session);
        let pool = session.open(PLACE, "n", usage(offload)).unwrap();
        assert_eq!(content(&pool), [7; 8]);
        assert_eq!(pool.check().unwrap().bytes, BYTES);
    }
}

/// A power loss during growth leaves the old pool or the new one.
#[test]
fn growth_survives_power_loss() {
    for offload in [false, true] {
        let grow = |part: Option<u64>| {
            let session = session();
            let layout = layout(Mechanism::Redo);
            let pool = session.create(PLACE, 1 << 20, &layout, usage(offload));
            let pool = pool.unwrap();
            object(&pool, 64, 7);
            let begin = session.now();
            if let Some(part) = part {
                session.cut_power_after(sim::Time(part)).unwrap();
            }
            let grown = pool.resize(BYTES);
            let span = session.now() - begin;
            if part.is_none() {
                grown.unwrap();
                return (span.0, BYTES);
            }
            assert!(grown.is_err());
            lose_power(&session);
            let pool = session.open(PLACE, "n", usage(offload)).unwrap();
            assert_eq!(content(&pool), [7; 8]);
            let bytes = pool.check().unwrap().bytes;
            // It can still grow, or has grown.
            pool.resize(BYTES).unwrap();
            assert_eq!(content(&pool), [7; 8]);
            pool.check().unwrap();
            (span.0, bytes)
        };
        let (span, _) = grow(None);
        let steps = 40;
        let ends: Vec<u64> = (0..steps)
            .map(|n| grow(Some(1 + span * n / steps)).1)
            .collect();
        assert!(ends.iter().all(|bytes| [1 << 20, BYTES].contains(bytes)));
        assert!(ends.is_sorted() && ends[0] == 1 << 20, "{ends:?}");
    }
}

/// The engine reserves the end of the media.
#[test]
fn pool_in_the_reserved_range_is_refused() {
    let session = session();
    let window = session.window_bytes();
    for (mechanism, offload) in Mechanism::ALL.into_iter().zip([false, true, false, true]) {
        let layout = layout(mechanism);
        let refused = session.create(window - BYTES + PAGE, BYTES, &layout, usage(offload));
        let text = refused.err().unwrap().to_string();
        assert!(
            text.contains("the engine reserves the 131072 after"),
            "{text}"
        );
        let pool = session.create(window - BYTES, BYTES, &layout, usage(offload));
        let pool = pool.unwrap();
        object(&pool, 4096, 1);
        pool.check().unwrap();
        assert!(pool.resize(BYTES + PAGE).is_err());
        pool.close().unwrap();
    }
    assert!(session.load(window, &mut [0]).is_err());
    // The same without a session, if the options name an engine.
    let bench = Bench::empty();
    let cpu = bench.shared.cpu(0);
    let create = |place: u64, options: &Options| {
        Pool::create(&cpu, 0, place, 4 << 20, &layout(Mechanism::Undo), options).err()
    };
    let place = WINDOW - (4 << 20);
    let text = create(place, &bench.options(true)).unwrap().to_string();
    assert!(text.contains("last 131072 bytes to the engine"), "{text}");
    assert_eq!(create(place - (128 << 10), &bench.options(true)), None);
    assert_eq!(create(place, &bench.options(false)), None);
}
