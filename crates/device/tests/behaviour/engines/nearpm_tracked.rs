// SPDX-License-Identifier: Apache-2.0

//! Tracked pools: the engine makes a record of a line before the first store to it, without a
//! command. Losses of power: `crates/device/tests/nearpm.rs`.

use driver::Host;
use nearpm_model::{Engine, Memory};
use sim::{Bar, Random};
use spec::nearpm::{
    payload_crc, Command, ErrorBit, Header, LogState, Operation, RecordKind, RecordWriter,
    Tracking, INCOMPLETE, INTERNAL_RECORDS, TRACKED_LINES,
};
use spec::regs::nearpm::{TAKEN, TRACKED, UNDER_WAY};

use super::bytes;
use crate::common::design;
use crate::common::nearpm::{is_there, Kit, Pool};

/// Reads a register of the engine, after all earlier stores.
fn register(kit: &mut Kit, at: u64) -> u32 {
    let engines = design("nearpm").engines().unwrap();
    let engine = engines.iter().find(|e| e.manifest.name == "nearpm");
    let at = engine.unwrap().offset + at;
    kit.host.read32(Bar::Control, at).unwrap()
}

/// Stores, in the device and in the reference model.
struct Both {
    kit: Kit,
    pool: Pool,
    model: Engine,
    memory: Vec<u8>,
}

impl Both {
    fn new(values: &str, tracking: Tracking) -> Both {
        Both::of(Kit::new(values), Pool::new(1, 7, 1 << 20).tracked(tracking))
    }

    fn of(kit: Kit, pool: Pool) -> Both {
        let bytes = pool.media + pool.bytes;
        let mut both = Both {
            kit,
            pool,
            model: Engine::new(bytes),
            memory: vec![0; bytes as usize],
        };
        both.command(&pool.map()).unwrap();
        both.command(&pool.open(0, 1)).unwrap();
        both
    }

    fn store(&mut self, offset: u64, data: &[u8]) {
        let at = self.pool.media + offset;
        self.kit.store(at, data);
        let memory = &mut self.memory[..];
        self.model.before_store(memory, at, data.len() as u64);
        memory.write(at, data);
    }

    /// Executes a command, with the same result in both.
    fn command(&mut self, command: &Command) -> Result<u64, u32> {
        let ended = self.kit.ends(command);
        let wanted = self.model.execute(&mut self.memory[..], &command.words());
        let is = match ended.result {
            0 => Ok(ended.value),
            result => Err(result),
        };
        let wanted = wanted.map_err(|refusal| refusal as u32);
        assert_eq!(is, wanted, "{command:?}");
        is
    }

    /// Objects and logs are the same in both.
    fn compare(&mut self) {
        let Pool {
            media,
            logs,
            log_bytes,
            ..
        } = self.pool;
        for (at, bytes) in [(media, 1 << 17), (media + logs, log_bytes)] {
            let is = self.kit.load(at, bytes as usize);
            let wanted = &self.memory[at as usize..(at + bytes) as usize];
            let first = is.iter().zip(wanted).position(|(is, wanted)| is != wanted);
            assert_eq!(first, None, "from {at:#x} on");
        }
    }
}

#[test]
fn nearpm_tracked_stores_are_recorded_once_an_epoch() {
    if !is_there() {
        return;
    }
    for (tracking, kind) in [
        (Tracking::Undo, RecordKind::Undo),
        (Tracking::Checkpoint, RecordKind::Checkpoint),
    ] {
        let (mut kit, pool) = Kit::with_tracked_pool("", tracking);
        let mut random = Random::new(3);
        // Before the first epoch's records: every line of an epoch gets one.
        let old = bytes(&mut random, 1024);
        kit.store(pool.media, &old);
        kit.fine(&pool.command(Operation::Commit, 0));
        let before = register(&mut kit, TRACKED);
        assert_eq!(before, 16);
        let taken = register(&mut kit, TAKEN);
        // Two lines, one of them again, and a part of a third one.
        for (at, len) in [(64, 128), (130, 8), (100, 1), (320, 4), (324, 4)] {
            kit.store(pool.media + at, &vec![7; len]);
        }
        kit.load(pool.media, 1);
        assert_eq!(register(&mut kit, TRACKED) - before, 3);
        assert_eq!(register(&mut kit, TAKEN), taken);
        kit.fine(&pool.command(Operation::Sync, 0));
        for (number, line) in (0..).zip([1usize, 2, 5]) {
            let offset = 64 + 128 * u64::from(number);
            let (header, payload) = kit.record(&pool, 0, offset).unwrap();
            let wanted = old[64 * line..64 * line + 64].to_vec();
            let whole = Header {
                kind,
                pool: pool.number,
                thread: 0,
                writer: RecordWriter::Engine,
                generation: 2,
                object: 64 * line as u64,
                bytes: 64,
                number,
                previous: if number == 0 { 0 } else { offset - 128 },
                transaction: 0,
                payload_crc: payload_crc(&wanted),
            };
            assert_eq!((header, payload), (whole, wanted));
        }
        // A command's record follows; it does not replace one of the engine.
        assert_eq!(kit.fine(&pool.undo(0, 640, 64)), 64 + 3 * 128);
        kit.store(pool.media + 640, &[1; 8]);
        kit.fine(&pool.command(Operation::Sync, 0));
        let (header, _) = kit.record(&pool, 0, 64 + 4 * 128).unwrap();
        assert_eq!((header.object, header.number), (640, 4));
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 0)), 5);
        assert!(kit.load(pool.media, 1024) == old);
    }
}

#[test]
fn nearpm_tracked_transactions_are_written_back() {
    if !is_there() {
        return;
    }
    let mut both = Both::new("", Tracking::Undo);
    let mut random = Random::new(4);
    let pool = both.pool;
    let old = bytes(&mut random, 8192);
    both.store(0, &old);
    both.command(&pool.command(Operation::Commit, 0)).unwrap();
    for end in [Operation::Abort, Operation::Recover] {
        for (at, len) in [(0, 200), (100, 300), (4000, 1000), (8000, 192)] {
            let new = bytes(&mut random, len);
            both.store(at, &new);
        }
        both.compare();
        assert_eq!(both.command(&pool.command(end, 0)), Ok(7 + 17 + 3));
        both.compare();
        assert!(both.kit.load(pool.media, 8192) == old);
    }
    // Recovery by the media alone, after the engine has forgotten the pool.
    both.store(512, &[3; 512]);
    both.command(&pool.command(Operation::PoolUnmap, 0))
        .unwrap();
    // Without an open log nothing is recorded.
    both.store(2048, &old[2048..2112]);
    both.command(&pool.map()).unwrap();
    both.store(2112, &old[2112..2176]);
    assert_eq!(both.command(&pool.command(Operation::Recover, 0)), Ok(8));
    both.compare();
    assert!(both.kit.load(pool.media, 8192) == old);
}

#[test]
fn nearpm_tracked_stores_wait_for_their_records() {
    if !is_there() {
        return;
    }
    // Far more lines than there may be records under way, to a memory that is slow.
    let mut both = Both::new("media.profile = \"optane-dcpmm\"", Tracking::Undo);
    let mut random = Random::new(5);
    let pool = both.pool;
    let old = bytes(&mut random, 32 << 10);
    both.store(0, &old);
    both.command(&pool.command(Operation::Commit, 0)).unwrap();
    let before = register(&mut both.kit, TRACKED);
    let mut most = 0;
    for _ in 0..40 {
        let (at, len) = (random.below(30_000), 1 + random.below(2000) as usize);
        let new = bytes(&mut random, len);
        both.store(at, &new);
        // A load returns the stores before it.
        let is = both.kit.load(pool.media + at, len);
        assert!(is == new);
        most = most.max(register(&mut both.kit, UNDER_WAY));
    }
    let lines = register(&mut both.kit, TRACKED) - before;
    assert!((300..=512).contains(&lines), "{lines}");
    assert!(most <= INTERNAL_RECORDS as u32, "{most}");
    both.command(&pool.command(Operation::Sync, 0)).unwrap();
    both.compare();
    let records = both.command(&pool.command(Operation::Abort, 0));
    assert_eq!(records, Ok(lines.into()));
    both.compare();
    assert!(both.kit.load(pool.media, 32 << 10) == old);
}

#[test]
fn nearpm_tracked_epoch_without_room_closes_its_log() {
    if !is_there() {
        return;
    }
    let small = Pool {
        log_bytes: 64 + 10 * 128 + 64,
        ..Pool::new(1, 7, 1 << 20).tracked(Tracking::Undo)
    };
    let large = Pool {
        log_bytes: 256 << 10,
        ..small
    };
    for (pool, most) in [(small, 10), (large, TRACKED_LINES as u64)] {
        let mut both = Both::of(Kit::new(""), pool);
        for n in 0..most {
            both.store(64 * n, &[1; 8]);
        }
        assert_eq!(both.command(&pool.command(Operation::Sync, 0)), Ok(0));
        both.compare();
        assert_eq!(register(&mut both.kit, TRACKED), most as u32);
        // The lines that have records may change again.
        both.store(0, &[2; 64]);
        assert_eq!(register(&mut both.kit, TRACKED), most as u32);
        both.store(64 * most, &[3; 8]);
        both.store(64 * most + 64, &[4; 8]);
        // It waits for the record that could not be made.
        assert_eq!(both.kit.load(pool.media + 64 * most, 8), [3; 8]);
        assert_eq!(register(&mut both.kit, TRACKED), most as u32 + 1);
        let descriptor = both.kit.descriptor(&pool, 0).unwrap();
        let is = (descriptor.state, descriptor.records);
        assert_eq!(is, (LogState::Open, INCOMPLETE));
        let refused = |refusal: ErrorBit| Err(refusal as u32);
        let commit = pool.command(Operation::Commit, 0);
        assert_eq!(both.command(&commit), refused(ErrorBit::Unmapped));
        let recover = pool.command(Operation::Recover, 0);
        assert_eq!(both.command(&recover), refused(ErrorBit::Torn));
        both.compare();
        // A new epoch.
        both.command(&pool.open(0, 5)).unwrap();
        both.store(0, &[5; 64]);
        assert_eq!(both.command(&pool.command(Operation::Abort, 0)), Ok(1));
        both.compare();
    }
}

#[test]
fn nearpm_tracked_pools_of_other_values_are_refused() {
    if !is_there() {
        return;
    }
    let mut kit = Kit::new("");
    let pool = Pool::new(1, 7, 1 << 20);
    let with = |extra: u64| Command {
        extra,
        ..pool.map()
    };
    // More than one thread, a kind without tracking, other bits, no thread.
    for extra in [
        0x102,
        0x110,
        0x302,
        0x201,
        0x21,
        0x401,
        0x1_0101,
        0x100,
        1 << 63 | 0x101,
    ] {
        kit.refused(&with(extra), ErrorBit::Invalid);
    }
    kit.fine(&with(0x101));
    kit.fine(&with(0x101));
    for other in [1, 0x301] {
        kit.refused(&with(other), ErrorBit::Busy);
    }
    kit.fine(&pool.open(0, 1));
    kit.refused(&pool.open(1, 1), ErrorBit::Unmapped);
    // Several devices: not in a tracked pool.
    let at = spec::nearpm::register::DEVICE;
    let engines = design("nearpm").engines().unwrap();
    let engine = engines.iter().find(|e| e.manifest.name == "nearpm");
    let at = engine.unwrap().offset + at;
    kit.host.write32(Bar::Control, at, 0x100).unwrap();
    let commit = Command {
        value: 1,
        transaction: 9,
        ..pool.command(Operation::Commit, 0)
    };
    kit.refused(&commit, ErrorBit::Invalid);
    kit.fine(&pool.command(Operation::PoolUnmap, 0));
    kit.fine(&with(1));
    kit.fine(&pool.open(0, 2));
    kit.fine(&commit);
}

#[test]
fn nearpm_tracked_lines_are_those_of_objects_of_the_pool() {
    if !is_there() {
        return;
    }
    let mut both = Both::new("", Tracking::Undo);
    let pool = both.pool;
    // Another pool, which is not tracked, and lines beside the pools and in the log.
    let other = Pool::new(2, 7, 4 << 20);
    both.kit.fine(&other.map());
    both.kit.fine(&other.open(0, 1));
    both.kit.store(other.media, &[1; 64]);
    both.kit.store(pool.media - 64, &[2; 64]);
    both.kit.store(pool.media + pool.bytes, &[2; 64]);
    let log = pool.logs + pool.log_bytes - 64;
    both.store(log, &[3; 64]);
    assert_eq!(register(&mut both.kit, TRACKED), 0);
    // Across both ends of the pool, and of its log.
    both.kit.store(pool.media - 64, &[4; 128]);
    both.kit.store(pool.media + pool.bytes - 64, &[4; 128]);
    both.store(pool.logs + pool.log_bytes - 64, &[5; 128]);
    both.store(pool.logs - 64, &[5; 64]);
    assert_eq!(register(&mut both.kit, TRACKED), 4);
    assert_eq!(both.kit.fine(&pool.command(Operation::Abort, 0)), 4);
    let edges = [
        (pool.media - 64, 4),
        (pool.media, 0),
        (pool.media + pool.bytes - 64, 0),
        (pool.media + pool.bytes, 4),
        (pool.media + pool.logs + pool.log_bytes - 64, 5),
        (pool.media + pool.logs + pool.log_bytes, 0),
    ];
    for (at, value) in edges {
        assert_eq!(both.kit.load(at, 64), [value; 64], "{at:#x}");
    }
}
