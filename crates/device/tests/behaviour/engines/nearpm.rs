// SPDX-License-Identifier: Apache-2.0

//! Crash consistency near memory: effects of commands, refusals, and the order of commands and
//! accesses. Losses of power: `crates/device/tests/nearpm.rs`.

use nearpm_model::{Engine, Memory};
use spec::nearpm::{
    payload_crc, Command, ErrorBit, Header, LogState, Operation, RecordKind, RecordWriter,
};

use super::bytes;
use crate::common::nearpm::{is_there, Kit, Pool};
use sim::Random;

mod sampled {
    use super::*;

    #[test]
    fn nearpm_records_hold_old_bytes_in_sequence() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        let mut random = Random::new(3);
        let old = bytes(&mut random, 3 * 4096);
        kit.store(pool.media, &old);
        let mut offset = 64;
        let mut previous = 0;
        for (number, (at, len)) in (0..).zip([(5, 1), (64, 64), (100, 300), (4095, 4097)]) {
            let undo = Command {
                transaction: 77,
                ..pool.undo(0, at, len)
            };
            assert_eq!(kit.fine(&undo), offset);
            let (header, payload) = kit.record(&pool, 0, offset).unwrap();
            let mut wanted = old[at as usize..(at + len) as usize].to_vec();
            let whole = Header {
                kind: RecordKind::Undo,
                pool: pool.number,
                thread: 0,
                writer: RecordWriter::Engine,
                generation: 1,
                object: at,
                bytes: len as u32,
                number,
                previous,
                transaction: 77,
                payload_crc: payload_crc(&wanted),
            };
            wanted.resize(payload.len(), 0);
            assert_eq!((header, payload), (whole, wanted));
            previous = offset;
            offset = spec::nearpm::next_record(offset, len);
        }
        let redo = pool.redo(0, 10, 100, 5000);
        assert_eq!(kit.fine(&redo), offset);
        let (header, payload) = kit.record(&pool, 0, offset).unwrap();
        let is = (header.kind, header.object, header.previous, header.number);
        assert_eq!(is, (RecordKind::Redo, 5000, previous, 4));
        assert!(payload[..100] == old[10..110]);
        let commit = Command {
            transaction: 78,
            ..pool.command(Operation::Commit, 0)
        };
        assert_eq!(kit.fine(&commit), 2);
        let descriptor = kit.descriptor(&pool, 0).unwrap();
        let is = (descriptor.generation, descriptor.state, descriptor.records);
        assert_eq!((is, descriptor.transaction), ((2, LogState::Open, 0), 78));
        // The log is empty.
        assert_eq!(kit.fine(&pool.undo(0, 0, 64)), 64);
    }

    #[test]
    fn nearpm_abort_writes_back_the_newest_record_first() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        let mut random = Random::new(4);
        let old = bytes(&mut random, 8192);
        kit.store(pool.media, &old);
        for (at, len) in [(0, 200), (100, 300), (0, 64), (4000, 1000)] {
            kit.submit(&pool.undo(0, at, len));
            let new = bytes(&mut random, len as usize);
            kit.store(pool.media + at, &new);
        }
        let checkpoint = Command {
            operation: Operation::Checkpoint,
            ..pool.undo(0, 4096, 4096)
        };
        kit.submit(&checkpoint);
        kit.store(pool.media + 4096, &[1; 4096]);
        // Redo records do not belong to it.
        kit.submit(&pool.redo(0, 0, 64, 8192));
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 0)), 5);
        assert!(kit.load(pool.media, 8192) == old);
        assert_eq!(kit.load(pool.media + 8192, 64), [0; 64]);
        assert_eq!(kit.descriptor(&pool, 0).unwrap().generation, 2);
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 0)), 0);
    }

    #[test]
    fn nearpm_redo_records_are_applied() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        let mut random = Random::new(5);
        let new = bytes(&mut random, 1000);
        kit.store(pool.media, &new);
        kit.submit(&pool.redo(0, 0, 1000, 100_001));
        kit.submit(&pool.redo(0, 500, 10, 100_001));
        kit.submit(&pool.command(Operation::CommitRedo, 0));
        kit.submit(&pool.apply(0, 64, 1000, 100_001));
        let second = 64 + 64 + 1024;
        kit.submit(&pool.apply(0, second, 10, 100_001));
        assert_eq!(kit.fine(&pool.command(Operation::Delete, 0)), 2);
        let mut wanted = new.clone();
        wanted.copy_within(500..510, 0);
        assert!(kit.load(pool.media + 100_001, 1000) == wanted);
        // The same by recover. Without commit_redo nothing is applied.
        for committed in [true, false] {
            kit.store(pool.media + 100_001, &[0; 1000]);
            kit.submit(&pool.redo(0, 0, 1000, 100_001));
            kit.submit(&pool.redo(0, 500, 10, 100_001));
            if committed {
                kit.fine(&pool.command(Operation::CommitRedo, 0));
                let descriptor = kit.descriptor(&pool, 0).unwrap();
                let is = (descriptor.state, descriptor.records);
                assert_eq!(is, (LogState::Committed, 2));
            }
            let count = kit.fine(&pool.command(Operation::Recover, 0));
            let is = kit.load(pool.media + 100_001, 1000);
            match committed {
                true => assert!(count == 2 && is == wanted),
                false => assert!(count == 0 && is == [0; 1000]),
            }
        }
        assert_eq!(kit.descriptor(&pool, 0).unwrap().generation, 4);
    }

    #[test]
    fn nearpm_undo_records_earlier_stores_only() {
        if !is_there() {
            return;
        }
        let (mut kit, pool) = Kit::with_pool("");
        let mut random = Random::new(6);
        let mut offset = 64;
        for turn in 0..20 {
            let len = [64, 8, 500, 4096][turn % 4];
            let at = random.below(8192);
            let place = pool.media + at;
            let (before, after) = (bytes(&mut random, len), bytes(&mut random, len));
            kit.store(place, &before);
            kit.submit(&pool.undo(0, at, len as u64));
            kit.store(place, &after);
            // A load returns the store before it, which may be in the queue.
            assert!(kit.load(place, len) == after);
            let (_, payload) = kit.record(&pool, 0, offset).unwrap();
            assert!(payload[..len] == before, "turn {turn}");
            offset += 64 + payload.len() as u64;
        }
    }

    #[test]
    fn nearpm_wrong_commands_are_refused_without_effect() {
        if !is_there() {
            return;
        }
        refusals();
    }
}

fn refusals() {
    use Operation::*;
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &[9; 256]);
    let first = pool.undo(0, 0, 64);
    assert_eq!(kit.fine(&first), 64);
    let other = Pool { process: 8, ..pool };
    let nobody = Pool { number: 2, ..pool };
    let map = pool.map();
    let media = 1u64 << 30;
    let last = pool.bytes;
    for (command, refusal) in [
        (Command { bytes: 0, ..first }, ErrorBit::Invalid),
        (
            Command {
                bytes: 65_537,
                ..first
            },
            ErrorBit::Invalid,
        ),
        (Command { value: 1, ..first }, ErrorBit::Invalid),
        (
            Command {
                target: 64,
                ..first
            },
            ErrorBit::Invalid,
        ),
        (Command { extra: 1, ..first }, ErrorBit::Invalid),
        (
            Command {
                bytes: u64::MAX,
                ..first
            },
            ErrorBit::Invalid,
        ),
        (pool.undo(0, last - 63, 64), ErrorBit::OutOfPool),
        (pool.undo(0, u64::MAX - 10, 64), ErrorBit::OutOfPool),
        (pool.undo(0, 0u64.wrapping_sub(1), 64), ErrorBit::OutOfPool),
        (pool.undo(1, 0, 64), ErrorBit::Unmapped),
        (pool.undo(4, 0, 64), ErrorBit::Unmapped),
        (nobody.undo(0, 0, 64), ErrorBit::Unmapped),
        (other.undo(0, 0, 64), ErrorBit::WrongProcess),
        // Whose log is not open, either.
        (other.undo(1, 0, 64), ErrorBit::WrongProcess),
        (other.command(PoolUnmap, 0), ErrorBit::WrongProcess),
        (
            Command {
                operation: Checkpoint,
                ..first
            },
            ErrorBit::Invalid,
        ),
        (
            Command {
                operation: Checkpoint,
                address: pool.at(64),
                bytes: 4096,
                ..first
            },
            ErrorBit::Invalid,
        ),
        (pool.copy(0, 0, 64, 63), ErrorBit::Invalid),
        (pool.copy(0, 0, 64, 64 + last), ErrorBit::OutOfPool),
        (pool.switch(0, 4, 1), ErrorBit::Invalid),
        (pool.switch(0, last, 1), ErrorBit::OutOfPool),
        (pool.redo(0, 0, 64, last - 8), ErrorBit::OutOfPool),
        (pool.apply(0, 128, 64, 0), ErrorBit::OutOfPool),
        (pool.apply(0, 65, 1, 0), ErrorBit::Invalid),
        (pool.apply(0, 0, 1, 0), ErrorBit::OutOfPool),
        (pool.open(0, 9), ErrorBit::Busy),
        (
            Command {
                bytes: 2 << 20,
                ..map
            },
            ErrorBit::Busy,
        ),
        (other.map(), ErrorBit::Busy),
        // Bytes of another pool, for any process: its last page, its first one, all of it.
        (
            Command {
                pool: 4,
                process: 9,
                target: map.target + map.bytes - 4096,
                ..map
            },
            ErrorBit::Busy,
        ),
        (
            Command {
                pool: 4,
                target: map.target - map.bytes + 4096,
                ..map
            },
            ErrorBit::Busy,
        ),
        (Command { pool: 0, ..map }, ErrorBit::Busy),
        (Command { extra: 17, ..map }, ErrorBit::Invalid),
        (Command { extra: 0, ..map }, ErrorBit::Invalid),
        (Command { value: 128, ..map }, ErrorBit::Invalid),
        (Command { value: 200, ..map }, ErrorBit::Invalid),
        (Command { target: 64, ..map }, ErrorBit::Invalid),
        (
            Command {
                pool: 3,
                target: media,
                ..map
            },
            ErrorBit::OutOfPool,
        ),
        // The reserved range belongs to no pool.
        (
            Command {
                pool: 3,
                target: media - (1 << 20),
                ..map
            },
            ErrorBit::OutOfPool,
        ),
        (
            Command {
                pool: 3,
                transaction: 1 << 20,
                ..map
            },
            ErrorBit::OutOfPool,
        ),
        (
            Command {
                pool: 3,
                value: (1 << 32) - 64,
                ..map
            },
            ErrorBit::OutOfPool,
        ),
        (
            Command {
                pool: 3,
                value: 1 << 32,
                ..map
            },
            ErrorBit::Invalid,
        ),
        (
            Command {
                pool: 3,
                address: u64::MAX - 4095,
                ..map
            },
            ErrorBit::OutOfPool,
        ),
    ] {
        kit.refused(&command, refusal);
    }
    // Bits that have to be 0, and unknown operations.
    for word in [
        0x10 | 1 << 24,
        0x10 | 1 << 48,
        0x10 | 16 << 8,
        0x10 | 16 << 16,
        0x00,
        0x22,
        0xFF,
    ] {
        let mut arguments = first.arguments();
        arguments[0] = word | 7 << 32 | arguments[0] & 0xF00;
        let submitted = kit.page.submit(&mut kit.host, &arguments).unwrap();
        assert_eq!(
            kit.finish(submitted).result,
            ErrorBit::Invalid as u32,
            "{word:#x}"
        );
    }
    // The same mapping again is accepted, and the log continues where it was.
    kit.fine(&map);
    assert_eq!(kit.fine(&pool.undo(0, 0, 1)), 192);
    assert!(kit.load(pool.media, 256) == [9; 256]);
    // After the unmap nothing can access it.
    kit.fine(&pool.command(PoolUnmap, 0));
    kit.refused(&first, ErrorBit::Unmapped);
    kit.fine(&other.map());
    kit.refused(&other.undo(0, 0, 64), ErrorBit::Unmapped);
    kit.fine(&other.open(0, 5));
    assert_eq!(kit.fine(&other.undo(0, 0, 64)), 64);
    kit.refused(&first, ErrorBit::WrongProcess);
}

#[test]
fn nearpm_full_and_torn_logs_are_left_alone() {
    if !is_there() {
        return;
    }
    let mut kit = Kit::new("");
    let pool = Pool {
        log_bytes: 64 + 2 * 128,
        ..Pool::new(0, 0, 0)
    };
    kit.fine(&pool.map());
    for thread in 0..2 {
        kit.fine(&pool.open(thread, 10));
        kit.refused(&pool.undo(thread, 0, 200), ErrorBit::LogFull);
        kit.fine(&pool.undo(thread, 0, 64));
        kit.fine(&pool.undo(thread, 64, 1));
        kit.refused(&pool.undo(thread, 0, 1), ErrorBit::LogFull);
    }
    kit.store(pool.media, &[5; 128]);
    // A bit of the first record's payload.
    let at = pool.log(0) + 128 + 7;
    let byte = kit.load(at, 1)[0];
    kit.store(at, &[byte ^ 4]);
    kit.refused(&pool.command(Operation::Abort, 0), ErrorBit::Torn);
    kit.refused(&pool.undo(0, 0, 64), ErrorBit::Unmapped);
    assert!(kit.load(pool.media, 128) == [5; 128]);
    assert_eq!(kit.descriptor(&pool, 0).unwrap().generation, 10);
    // The other thread's log is whole.
    assert_eq!(kit.fine(&pool.command(Operation::Abort, 1)), 2);
    assert_eq!(kit.load(pool.media, 65), [0; 65]);
    assert_eq!(kit.load(pool.media + 65, 63), [5; 63]);
    // By the media alone it is damaged, too.
    kit.refused(&pool.command(Operation::Recover, 0), ErrorBit::Torn);
    assert!(kit.load(pool.media, 64) == [0; 64]);
    // Repaired, it can be recovered from the media, although it is closed.
    kit.store(at, &[byte]);
    kit.store(pool.media, &[6; 128]);
    assert_eq!(kit.fine(&pool.command(Operation::Recover, 0)), 2);
    assert_eq!(kit.load(pool.media, 65), [0; 65]);
    assert_eq!(kit.descriptor(&pool, 0).unwrap().generation, 11);
    // A redo record that does not match the command.
    kit.fine(&pool.open(0, 20));
    kit.fine(&pool.redo(0, 0, 64, 512));
    kit.refused(&pool.apply(0, 64, 64, 513), ErrorBit::Torn);
    assert_eq!(kit.load(pool.media + 512, 65), [0; 65]);
}

/// Seven ranges are recorded by one command, or none: with one outside of the pool the log is
/// unchanged.
#[test]
fn nearpm_ranges_of_a_command_are_recorded_all_or_none() {
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    let data = bytes(&mut Random::new(5), 16_384);
    kit.store(pool.media, &data);
    // In both channels, across pages, over each other; the last one is not small.
    for last in [448, 449] {
        let ranges = [
            (0, 8),
            (4090, 12),
            (4096, 64),
            (4100, 64),
            (8191, 2),
            (100, 1),
            (9000, last),
        ];
        for bad in 0..ranges.len() {
            let mut wrong = ranges;
            wrong[bad].0 = pool.bytes - 1;
            wrong[bad].1 = 2;
            kit.refused(&pool.undo_ranges(0, &wrong), ErrorBit::OutOfPool);
        }
        assert_eq!(
            kit.fine(&pool.undo_ranges(0, &ranges)),
            64,
            "the first record"
        );
        kit.store(pool.media, &[9; 16_384]);
        let mut at = 64;
        for (n, (offset, bytes)) in ranges.into_iter().enumerate() {
            let (header, payload) = kit.record(&pool, 0, at).unwrap();
            assert_eq!((header.number, header.object), (n as u32, offset));
            assert!(payload[..bytes as usize] == data[offset as usize..(offset + bytes) as usize]);
            at = spec::nearpm::next_record(at, bytes);
        }
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 0)), 7);
        for (offset, bytes) in ranges {
            let back = kit.load(pool.media + offset, bytes as usize);
            assert!(back == data[offset as usize..(offset + bytes) as usize]);
        }
        kit.store(pool.media, &data);
    }
}

#[test]
fn nearpm_random_programs_match_the_ordered_model() {
    if !is_there() {
        return;
    }
    let rounds = crate::common::rounds(24, 2);
    for seed in 0..rounds {
        run_random_program(seed, ["dram", "optane-dcpmm"][seed as usize % 2]);
    }
}

/// Stores, loads and commands at addresses that often overlap, without waiting for any.
fn run_random_program(seed: u64, profile: &str) {
    let (mut kit, pool) = Kit::with_pool(&format!("media.profile = \"{profile}\""));
    let mut random = Random::new(100 + seed);
    // Objects in a few granules, so in both channels.
    let span = [512, 4096, 40_000][seed as usize % 3];
    let (mut engine, mut memory) = (Engine::new(2 << 20), vec![0; 2 << 20]);
    let mut expect = |memory: &mut [u8], command: &Command| {
        let value = engine.execute(memory, &command.words()).unwrap();
        let logs = &engine.pools[usize::from(pool.number)]
            .as_ref()
            .unwrap()
            .logs;
        (value, logs[0].as_ref().map_or(0, |log| log.next))
    };
    expect(&mut memory, &pool.map());
    let (_, mut next) = expect(&mut memory, &pool.open(0, 1));
    let mut under_way: Vec<(Command, driver::page::SubmittedCommand, u64)> = Vec::new();
    for step in 0..300 {
        let len = [8, 64, 64, 200, 1500][random.below(5) as usize];
        let at = random.below(span);
        let mut commands = Vec::new();
        match random.below(10) {
            0..=3 => {
                let data = bytes(&mut random, len as usize);
                kit.store(pool.media + at, &data);
                memory.write(pool.media + at, &data);
            }
            4 => assert!(
                kit.load(pool.media + at, len as usize) == memory.read(pool.media + at, len),
                "seed {seed}, step {step}: {len} bytes at {at}"
            ),
            5 => commands.push(pool.undo(0, at, len)),
            6 => {
                let ranges = [(at, len), (random.below(span), 64), (random.below(span), 1)];
                commands.push(pool.undo_ranges(0, &ranges));
            }
            7 => {
                let to = random.below(span);
                if to.abs_diff(at) < len {
                    continue;
                }
                commands.push(pool.copy(0, at, len, to));
            }
            8 => commands.push(pool.switch(0, at & !7, random.next())),
            _ => {
                let to = random.below(span);
                if next + 4096 > pool.log_bytes {
                    continue;
                }
                commands.push(pool.redo(0, at, len, to));
                commands.push(pool.apply(0, next, len, to));
            }
        }
        for command in commands {
            let value;
            (value, next) = expect(&mut memory, &command);
            under_way.push((command, kit.submit(&command), value));
        }
        if next + 8192 > pool.log_bytes || under_way.len() > 50 {
            for (command, submitted, value) in under_way.drain(..) {
                let ended = kit.finish(submitted);
                assert_eq!((ended.result, ended.value), (0, value), "{command:?}");
            }
            if next + 8192 > pool.log_bytes {
                break;
            }
        }
    }
    let objects = |memory: &[u8]| memory.read(pool.media, 1 << 17);
    assert!(
        kit.load(pool.media, 1 << 17) == objects(&memory),
        "seed {seed}"
    );
    let abort = pool.command(Operation::Abort, 0);
    let (count, _) = expect(&mut memory, &abort);
    assert_eq!(kit.fine(&abort), count);
    assert!(
        kit.load(pool.media, 1 << 17) == objects(&memory),
        "seed {seed}: abort"
    );
}

#[test]
fn nearpm_full_queue_keeps_stores_in_order() {
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &[1; 65_536]);
    // A long command, and after it more lines than the queues of both channels hold.
    kit.submit(&pool.undo(0, 0, 65_536));
    for value in 2..5 {
        kit.store(pool.media, &[value; 16_384]);
    }
    kit.store(pool.media + (1 << 17), &[9; 64]);
    assert!(kit.load(pool.media, 16_384) == [4; 16_384]);
    let (_, payload) = kit.record(&pool, 0, 64).unwrap();
    assert!(payload == [1; 65_536]);
    assert_eq!(kit.load(pool.media + (1 << 17), 64), [9; 64]);
}

#[test]
fn nearpm_logs_are_separate_by_thread_pool_and_process() {
    if !is_there() {
        return;
    }
    let mut kit = Kit::new("");
    let pools: Vec<Pool> = (0..16)
        .map(|n| Pool::new(n, 100 + u16::from(n), u64::from(n) << 20))
        .collect();
    let logs: Vec<(usize, u8)> = (0..16).flat_map(|n| (0..4).map(move |t| (n, t))).collect();
    for pool in &pools {
        kit.fine(&pool.map());
    }
    for &(n, thread) in &logs {
        kit.fine(&pools[n].open(thread, 1 + n as u64));
    }
    for turn in 0..2u8 {
        for &(n, thread) in &logs {
            let (pool, offset) = (pools[n], u64::from(thread) * 4096);
            kit.submit(&pool.undo(thread, offset, 100));
            kit.store(pool.media + offset, &[1 + turn; 100]);
        }
    }
    // In each pool one thread commits, and one aborts.
    for pool in &pools {
        kit.fine(&pool.command(Operation::Commit, 0));
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 1)), 2);
        assert_eq!(kit.load(pool.media, 100), [2; 100]);
        assert_eq!(kit.load(pool.media + 4096, 100), [0; 100]);
        assert_eq!(kit.load(pool.media + 8192, 100), [2; 100]);
    }
    for pool in &pools {
        assert_eq!(kit.fine(&pool.command(Operation::Abort, 2)), 2);
        assert_eq!(kit.load(pool.media + 8192, 100), [0; 100]);
    }
}

#[test]
fn nearpm_reserved_range_is_not_accessible() {
    if !is_there() {
        return;
    }
    use driver::Host;
    use sim::Bar;
    let mut kit = Kit::new("");
    let end = 1u64 << 30;
    kit.store(end - (128 << 10) - 64, &[3; 64]);
    kit.store(end - (128 << 10), &[3; 64]);
    assert_eq!(kit.load(end - (128 << 10) - 64, 64), [3; 64]);
    for at in [end - (128 << 10), end - 64] {
        let mut data = [1; 64];
        // The host reads an error of the bus as ones, or as an error.
        let read = kit.host.read(Bar::Pm, at, &mut data);
        assert!(read.is_err() || data == [0xFF; 64], "{at:#x}");
    }
}

#[test]
fn nearpm_nvme_commands_follow_earlier_commands() {
    if !is_there() {
        return;
    }
    for profile in ["dram", "optane-dcpmm"] {
        nvme_in_order(profile);
    }
}

fn nvme_in_order(profile: &str) {
    use driver::NvmeDriver;
    const LEN: u64 = 65_536;
    let (mut kit, pool) = Kit::with_pool(&format!("media.profile = \"{profile}\""));
    let place = pool.media;
    let (old, new) = (vec![1; LEN as usize], vec![2; LEN as usize]);
    kit.store(place, &old);
    let Kit { host, mut page } = kit;
    let config = driver::DriverConfig {
        io_queues: 1,
        ..driver::DriverConfig::default()
    };
    let mut c = NvmeDriver::start(host, config).unwrap();
    // All units are busy for long. A Write after an undo: the record has the old bytes.
    for n in 3..7 {
        let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
        page.submit(c.host_mut(), &busy.arguments()).unwrap();
    }
    let undo = page.submit(c.host_mut(), &pool.undo(0, 0, LEN).arguments());
    c.write(place / 512, &new).unwrap();
    // A copy after a Write copies the new bytes, and a Read after a copy returns what it wrote.
    let copy = pool.copy(0, 0, LEN, 2 * LEN);
    page.submit(c.host_mut(), &copy.arguments()).unwrap();
    let mut is = vec![0; LEN as usize];
    c.read((place + 2 * LEN) / 512, &mut is).unwrap();
    assert!(is == new, "{profile}");
    let host = c.into_host();
    let mut kit = Kit { host, page };
    assert_eq!(kit.finish(undo.unwrap()).result, 0);
    let (_, payload) = kit.record(&pool, 0, 64).unwrap();
    assert!(payload == old, "{profile}");
    assert!(kit.load(place, LEN as usize) == new);
}

#[test]
fn nearpm_hostile_commands_change_nothing_outside_of_pools() {
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    let outside = [0, pool.media - 4096, pool.media + pool.bytes, 512 << 20];
    for at in outside {
        kit.store(at, &[7; 4096]);
    }
    let mut random = Random::new(11);
    let edges = [
        0,
        1,
        63,
        64,
        4096,
        65_536,
        65_537,
        1 << 20,
        1 << 30,
        1 << 44,
        u64::MAX,
    ];
    let mut drawn = [0u32; 10];
    for _ in 0..3000 {
        let number = |random: &mut Random| match random.below(4) {
            0 => edges[random.below(edges.len() as u64) as usize],
            1 => pool.at(random.below(pool.bytes + 64) & !63),
            2 => 64 * random.below(20),
            _ => random.next() >> random.below(64),
        };
        let thread = random.below(6) as u8;
        let offset = random.below(pool.bytes + 4096);
        let (to, bytes) = (random.below(pool.bytes), 1 + random.below(10_000));
        let command = match random.below(8) {
            0 => pool.undo(thread, offset, bytes),
            1 => pool.redo(thread, offset, bytes, to),
            2 => pool.copy(thread, offset, bytes, to),
            3 => pool.apply(thread, offset & !63, bytes, to),
            4 => pool.switch(thread, offset & !7, bytes),
            5 => pool.open(thread, bytes),
            6 => Command {
                operation: Operation::Checkpoint,
                ..pool.undo(thread, offset & !4095, 4096)
            },
            _ => pool.command(Operation::ALL[1 + random.below(16) as usize], thread),
        };
        let mut arguments = command.arguments();
        if random.below(4) == 0 {
            let place = random.below(7) as usize;
            arguments[place] = number(&mut random);
        }
        // Mostly of the process that has the pool.
        arguments[0] ^= u64::from(random.below(16) == 0) << 32;
        // A mapping that was undone is made again.
        kit.fine(&pool.map());
        let submitted = kit.page.submit(&mut kit.host, &arguments).unwrap();
        let ended = kit.finish(submitted);
        assert!(
            ended.result < 1 << 9 && ended.result.count_ones() <= 2,
            "{arguments:x?}"
        );
        drawn[(32 - ended.result.leading_zeros()) as usize] += 1;
    }
    for at in outside {
        assert!(kit.load(at, 4096) == [7; 4096], "{at:#x}");
    }
    // Each of these results was frequent: success, invalid, not mapped, another process, outside of
    // the pool.
    let often = [drawn[0], drawn[3], drawn[4], drawn[6]];
    assert!(often.iter().all(|count| *count > 10), "{drawn:?}");
}

#[test]
fn nearpm_times_are_near_those_of_the_memory() {
    if !is_there() {
        return;
    }
    for profile in ["dram", "optane-dcpmm"] {
        let (mut kit, pool) = Kit::with_pool(&format!("media.profile = \"{profile}\""));
        let load = timed(&mut kit, |kit| drop(kit.load(pool.media + 4096, 64)));
        // A load of what a command writes is answered when the command has ended.
        let mut after = |command: Command, at: u64| {
            let whole = timed(&mut kit, |kit| {
                kit.submit(&command);
                kit.load(at, 64);
            });
            whole.0.saturating_sub(load.0) / 1000
        };
        let undo = after(pool.undo(0, 0, 64), pool.log(0) + 64);
        let copy = after(pool.copy(0, 0, 16_384, 1 << 17), pool.media + (1 << 17));
        println!(
            "{profile}: undo of 64 bytes {undo} ns, copy of 16 KiB {copy} ns, beyond a load \
            of {load}"
        );
        let (most_undo, most_copy) = match profile {
            "dram" => (1000, 4000),
            _ => (1600, 12_000),
        };
        assert!((100..most_undo).contains(&undo), "{profile}: {undo} ns");
        assert!((1000..most_copy).contains(&copy), "{profile}: {copy} ns");
    }
}

fn timed(kit: &mut Kit, work: impl FnOnce(&mut Kit)) -> sim::Time {
    use driver::Host;
    let begin = kit.host.now();
    work(kit);
    kit.host.now() - begin
}

#[test]
fn nearpm_commands_are_restored_on_the_other_model() {
    if !is_there() {
        return;
    }
    // The other model is used only if this test runs on the RTL model, which has to be built.
    let own = crate::common::model();
    moves(own, own);
    if own == device::Model::Rtl {
        moves(device::Model::Rtl, device::Model::Fast);
        moves(device::Model::Fast, device::Model::Rtl);
    }

    use crate::common::design;
    use sim::Media;

    fn moves(first: device::Model, second: device::Model) {
        let design = design("nearpm");
        let kit_on = |model, media: Media| {
            let mut progress = ::rtl::bitstream::stderr_progress("nearpm");
            let options = device::RtlOptions::default();
            let factory = device::Factory::new(&design, model, &options, &mut progress).unwrap();
            let device = factory.device(media).unwrap();
            Kit::before(device, &design)
        };
        let path = crate::window::scratch(&format!("nearpm-{first}-{second}"));
        let media = || Media::file(&path, design.media.bytes.0).unwrap();
        let mut kit = kit_on(first, media());
        let pool = Pool::new(3, 5, 4 << 20);
        kit.fine(&pool.map());
        kit.fine(&pool.open(1, 8));
        kit.store(pool.media, &[1; 40_000]);
        // Commands that wait for each other, and stores that wait for these.
        for at in (0..40_000).step_by(8000) {
            kit.submit(&pool.undo(1, at, 8000));
            kit.store(pool.media + at, &[2; 64]);
            kit.submit(&pool.copy(1, at, 64, at + 64));
            kit.store(pool.media + at + 128, &[3; 8]);
        }
        kit.load(0, 1);
        let number = kit.host.device();
        kit.host.system_mut().power_off(number);
        drop(kit);
        let mut kit = kit_on(second, media());
        kit.fine(&pool.map());
        for at in (0..40_000).step_by(8000) {
            let is = kit.load(pool.media + at, 136);
            assert!(is[..128] == [2; 128] && is[128..] == [3; 8], "{at}");
        }
        assert_eq!(kit.fine(&pool.undo(1, 0, 64)), 64 + 5 * 8064);
        assert_eq!(kit.fine(&pool.command(Operation::Recover, 1)), 6);
        assert!(kit.load(pool.media, 40_000) == [1; 40_000]);
    }
}

#[test]
fn nearpm_registers_show_commands_under_way() {
    use driver::Host;
    use sim::Bar;
    use spec::regs::nearpm::{domain, CONTROL, DOMAIN, REFUSED, TAKEN, UNDER_WAY};
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    let base = spec::bar4::REGISTERS.start;
    let word = |kit: &mut Kit, at: u64| kit.host.read32(Bar::Control, base + at).unwrap();
    kit.refused(&pool.undo(0, 0, 0), ErrorBit::Invalid);
    let is = [TAKEN, REFUSED, UNDER_WAY, CONTROL].map(|at| word(&mut kit, at));
    assert_eq!(is, [3, 1, 0, 4]);
    let open = domain::OPEN.mask() as u32;
    assert_eq!(word(&mut kit, DOMAIN), open);
    for n in 0..6 {
        kit.submit(&pool.copy(0, n, 65_536, 200_000));
    }
    assert!(word(&mut kit, UNDER_WAY) > 0 && word(&mut kit, CONTROL) == 0);
    let number = kit.host.device();
    kit.load(0, 1);
    kit.host.system_mut().function_reset(number);
    // The load is answered when the window is open.
    kit.load(0, 1);
    assert_eq!(
        word(&mut kit, DOMAIN),
        domain::RESTORED.mask() as u32 | open
    );
    assert_eq!(word(&mut kit, UNDER_WAY), 0);
}

#[test]
fn nearpm_failed_record_blocks_its_log() {
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &[1; 128]);
    kit.fine(&pool.undo(0, 0, 64));
    kit.store(pool.media, &[2; 128]);
    // A bit of the record's payload.
    kit.store(pool.log(0) + 130, &[4]);
    let all = [
        pool.command(Operation::Abort, 0),
        pool.undo(0, 64, 64),
        pool.command(Operation::Commit, 0),
        pool.copy(0, 0, 64, 4096),
    ];
    let all = all.map(|command| kit.submit(&command));
    let ended = all.map(|submitted| kit.finish(submitted).result);
    let unmapped = ErrorBit::Unmapped as u32;
    assert_eq!(ended, [ErrorBit::Torn as u32, unmapped, unmapped, 0]);
    assert_eq!(kit.descriptor(&pool, 0).unwrap().generation, 1);
    assert!(kit.load(pool.media, 128) == [2; 128]);
}

#[test]
fn nearpm_committed_log_accepts_only_its_end() {
    if !is_there() {
        return;
    }
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &[1; 64]);
    kit.fine(&pool.redo(0, 0, 64, 4096));
    kit.fine(&pool.command(Operation::CommitRedo, 0));
    for command in [
        pool.undo(0, 0, 64),
        pool.redo(0, 0, 64, 128),
        pool.command(Operation::Commit, 0),
        pool.command(Operation::Abort, 0),
    ] {
        kit.refused(&command, ErrorBit::Busy);
    }
    assert_eq!(kit.fine(&pool.command(Operation::Recover, 0)), 1);
    assert_eq!(kit.load(pool.media + 4096, 64), [1; 64]);
    assert_eq!(kit.fine(&pool.undo(0, 0, 64)), 64);
}

/// A media file without its end. Nothing is restored, and nothing is lost for the reset that finds
/// the file whole again.
#[test]
fn nearpm_unreadable_range_is_neither_restored_nor_lost() {
    if !is_there() {
        return;
    }
    use std::os::unix::fs::FileExt;

    use crate::common::{design, model, rest};
    use driver::Host;
    use sim::{Bar, Media, Time};
    use spec::regs::nearpm::{domain, DOMAIN};

    let (design, path) = (design("nearpm"), crate::window::scratch("nearpm-unread"));
    let bytes = design.media.bytes.0;
    let mut progress = ::rtl::bitstream::stderr_progress("nearpm");
    let options = ::device::RtlOptions::default();
    let factory = ::device::Factory::new(&design, model(), &options, &mut progress).unwrap();
    let media = Media::file(&path, bytes).unwrap();
    let mut kit = Kit::before(factory.device(media).unwrap(), &design);
    let at = design.engines().unwrap()[0].offset + DOMAIN;
    let mask = |field: spec::regs::Field| field.mask() as u32;
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    kit.fine(&pool.open(0, 1));
    let number = kit.host.device();
    kit.host.system_mut().power_off(number);
    rest(&mut kit.host, Time::us(20));

    // The header and the first 16 KiB are there.
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let cut = bytes - (128 << 10) + (16 << 10);
    // A journal may follow the media.
    let whole = file.metadata().unwrap().len();
    let mut end = vec![0; (whole - cut) as usize];
    file.read_exact_at(&mut end, cut).unwrap();
    file.set_len(cut).unwrap();
    kit.host.system_mut().power_on(number);
    rest(&mut kit.host, Time::us(50));
    assert_eq!(
        kit.host.read32(Bar::Control, at).unwrap(),
        mask(domain::UNREAD)
    );

    file.write_all_at(&end, cut).unwrap();
    kit.host.system_mut().function_reset(number);
    rest(&mut kit.host, Time::us(50));
    assert_eq!(
        kit.host.read32(Bar::Control, at).unwrap(),
        mask(domain::RESTORED) | mask(domain::OPEN)
    );
    // The log is still open, and empty.
    assert_eq!(kit.fine(&pool.undo(0, 0, 64)), 64);
}
