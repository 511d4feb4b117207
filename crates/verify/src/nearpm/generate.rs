// SPDX-License-Identifier: Apache-2.0

//! Random commands of the engine `nearpm`: mostly valid, a quarter corrupted.

use nearpm_model::{Engine, Pool, Record, Words};
use sim::Random;
use spec::nearpm::{
    Command, ErrorBit, ObjectRange, Operation, RecordKind, ALIGN, LINE, MAX_BYTES, RANGES,
    RANGES_TRANSACTION_BITS,
};

use super::ARENA;
use crate::random::{chance, pick};

/// Bytes of a pool; its second half holds the logs.
const POOL: u64 = 64 << 10;
/// Number of pools, and of processes.
const POOLS: u64 = 4;

/// A random offset in the object half of a pool, with room for `bytes` bytes.
fn offset(random: &mut Random, pool: &Pool, bytes: u64) -> u64 {
    let room = pool.map.transaction.saturating_sub(bytes) + 1;
    // Near each other, so that ranges overlap.
    let most = [512, 8192, room][random.below(3) as usize];
    random.below(room.min(most))
}

fn length(random: &mut Random) -> u64 {
    match random.below(8) {
        0..4 => 1 + random.below(64),
        4 | 5 => LINE * (1 + random.below(4)),
        6 => 1 + random.below(2048),
        _ => 4096,
    }
}

/// Maps a pool of a process at one of a few places. The same number may be mapped at several
/// places.
fn map(random: &mut Random) -> Command {
    let (number, place) = (random.below(POOLS), random.below(ARENA / POOL));
    let process = 1 + number as u16;
    Command {
        address: 0x7F00_0000_0000 + (number << 32),
        bytes: POOL,
        target: place * POOL,
        transaction: POOL / 2,
        value: [8192, 192, 4096 + 64][random.below(3) as usize],
        extra: 1 + random.below(3),
        ..Command::new(Operation::PoolMap, process, number as u8, 0)
    }
}

/// A mostly valid command.
fn mostly_valid(random: &mut Random, model: &Engine) -> Command {
    let mapped: Vec<&Pool> = model.pools.iter().flatten().collect();
    let Some(pool) =
        (!mapped.is_empty()).then(|| mapped[random.below(mapped.len() as u64) as usize])
    else {
        return map(random);
    };
    let none = u64::from(chance(random, 5));
    let thread = random.below(pool.map.extra + none) as u8;
    let own = |operation| Command::new(operation, pool.map.process, pool.map.pool, thread);
    let log = pool.logs.get(usize::from(thread)).and_then(Option::as_ref);
    let Some(log) = log else {
        return match random.below(7) {
            0 => map(random),
            1 => own(Operation::Recover),
            // Operations that need an open log.
            2 => own(match random.below(3) {
                0 => Operation::Sync,
                1 => Operation::Abort,
                _ => Operation::Delete,
            }),
            _ => Command {
                value: random.next(),
                ..own(Operation::LogOpen)
            },
        };
    };
    let bytes = length(random);
    let [from, to] = [0; 2].map(|_| pool.map.address + offset(random, pool, bytes));
    match random.below(40) {
        0..4 => with_ranges(random, pool, own(Operation::UndoRanges)),
        4 => with_ranges(random, pool, own(Operation::CheckpointRanges)),
        5..10 => Command {
            address: from,
            bytes,
            ..own(Operation::Undo)
        },
        10..15 => Command {
            address: from,
            bytes,
            target: to,
            ..own(Operation::Redo)
        },
        15 | 16 => {
            let address = from - from % ALIGN;
            Command {
                address,
                bytes: ALIGN,
                ..own(Operation::Checkpoint)
            }
        }
        17..21 => Command {
            address: from,
            bytes,
            target: to,
            ..own(Operation::Copy)
        },
        21..24 => Command {
            target: to - to % 8,
            value: random.next(),
            ..own(Operation::Switch)
        },
        24..28 => {
            let redo = log.records.iter().filter(|r| r.kind == RecordKind::Redo);
            let redo: Vec<_> = redo.collect();
            match redo.get(random.below(redo.len() as u64) as usize) {
                None => own(Operation::Sync),
                Some(record) => Command {
                    bytes: record.bytes,
                    target: pool.map.address + record.object,
                    value: record.at,
                    ..own(Operation::Apply)
                },
            }
        }
        28..31 => own(Operation::Commit),
        31 => own(Operation::CommitRedo),
        32 | 33 => own(Operation::Delete),
        34 | 35 => own(Operation::Abort),
        36 => own(Operation::Recover),
        37 => own(Operation::Sync),
        38 => map(random),
        _ => match chance(random, 20) {
            true => own(Operation::PoolUnmap),
            false => own(Operation::Sync),
        },
    }
}

/// A command with 1 to 7 ranges, which may overlap. Some are outside the pool.
fn with_ranges(random: &mut Random, pool: &Pool, mut command: Command) -> Command {
    let count = 1 + random.below(RANGES as u64) as usize;
    for range in &mut command.ranges[..count] {
        let bytes = length(random);
        let at = offset(random, pool, bytes);
        *range = match command.operation {
            Operation::CheckpointRanges => ObjectRange {
                offset: at - at % ALIGN,
                bytes: ALIGN,
            },
            _ => ObjectRange { offset: at, bytes },
        };
        if chance(random, 2) {
            range.offset = pick(random, &[POOL - 1, POOL, 1 << 39]) & !(ALIGN - 1);
        }
    }
    command
}

/// Corrupts a word of a command, or replaces it by another that may be valid.
fn corrupt(random: &mut Random, words: &mut Words) {
    let edge = [
        0,
        1,
        63,
        64,
        4096,
        POOL / 2,
        POOL,
        POOL + 1,
        MAX_BYTES,
        MAX_BYTES + 1,
        1 << 32,
        1 << 44,
        1 << 63,
        u64::MAX - 63,
        u64::MAX,
    ];
    match random.below(11) {
        0 => words[1] = words[1] & !0xFF | random.below(256),
        1 => words[1] ^= 1 << random.below(64),
        2 => words[1] ^= (1 + random.below(15)) << 8,
        3 => words[1] ^= (1 + random.below(15)) << 16,
        4 => words[1] ^= (1 + random.below(7)) << 32,
        5 => {
            // An address of another pool, or just outside of it.
            let n = pick(random, &[2, 4]);
            let other = 0x7F00_0000_0000 + (random.below(POOLS) << 32);
            words[n] = other.wrapping_add(pick(random, &[0, POOL - 1, POOL, u64::MAX, 8]));
        }
        6 => words[3] = pick(random, &edge),
        7 => {
            let n = pick(random, &[2, 4]);
            words[n] = pick(random, &edge);
        }
        8 => {
            let n = pick(random, &[2, 3, 4, 6, 7]);
            words[n] ^= 1 << random.below(64);
        }
        9 => words[0] = pick(random, &edge),
        _ => {
            let n = pick(random, &[2, 3, 4, 6, 7]);
            words[n] = words[n].wrapping_add(pick(random, &edge));
        }
    }
}

/// True if the result of a command does not depend on its order relative to concurrent commands. So
/// no copy changes the content of logs, no pool lies outside the arena, and no apply lacks its
/// record.
fn has_determined_result(model: &Engine, words: &Words) -> bool {
    let Some(c) = Command::from_words(words) else {
        return true;
    };
    if c.operation == Operation::PoolMap {
        let in_arena = c
            .target
            .checked_add(c.bytes)
            .is_some_and(|end| end <= ARENA);
        let logs = c
            .value
            .checked_mul(c.extra)
            .and_then(|logs| logs.checked_add(c.transaction));
        // A refused command may name any place.
        return in_arena || logs.is_none() || c.target >= 1 << 40 || c.bytes >= 1 << 40;
    }
    let Some(pool) = &model.pools[usize::from(c.pool)] else {
        return true;
    };
    let objects = |address: u64, bytes: u64| match pool.offset(address, bytes) {
        Ok(at) => at + bytes <= pool.map.transaction,
        Err(ErrorBit::OutOfPool) => true,
        Err(_) => false,
    };
    let log = pool
        .logs
        .get(usize::from(c.thread))
        .and_then(Option::as_ref);
    match c.operation {
        Operation::Undo | Operation::Checkpoint => objects(c.address, c.bytes),
        Operation::UndoRanges | Operation::CheckpointRanges => c.used_ranges().iter().all(|r| {
            let end = r.offset + r.bytes;
            end <= pool.map.transaction || end > pool.map.bytes
        }),
        Operation::Redo | Operation::Copy => {
            objects(c.address, c.bytes) && objects(c.target, c.bytes)
        }
        Operation::Switch => objects(c.target, 8),
        Operation::Apply => {
            let fits = |record: &Record| {
                (record.at, record.bytes, record.kind) == (c.value, c.bytes, RecordKind::Redo)
                    && pool.map.address + record.object == c.target
            };
            let outside = |next: u64| c.value < LINE || c.value >= next;
            objects(c.target, c.bytes)
                && log.is_none_or(|log| outside(log.next) || log.records.iter().any(fits))
        }
        _ => true,
    }
}

/// The next command.
pub fn command(random: &mut Random, model: &Engine) -> Words {
    loop {
        let mut command = mostly_valid(random, model);
        command.transaction = random.next();
        if command.operation.has_ranges() {
            command.transaction &= (1 << RANGES_TRANSACTION_BITS) - 1;
        }
        let mut words = command.words();
        if chance(random, 25) {
            corrupt(random, &mut words);
        }
        if command.operation == Operation::PoolMap {
            // No transaction has this number.
            words[5] = match Command::from_words(&words) {
                Some(c) if c.operation == Operation::PoolMap && !chance(random, 5) => POOL / 2,
                _ => words[5],
            };
        }
        if has_determined_result(model, &words) {
            return words;
        }
    }
}
