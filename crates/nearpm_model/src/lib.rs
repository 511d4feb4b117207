// SPDX-License-Identifier: Apache-2.0

//! The reference model of the engine `nearpm`, written from `docs/hardware/nearpm.md`: the result
//! of each command, and its effect on memory, pools and logs. It has no time: commands are executed
//! one after another, in the order that the conflict filter and the table maintain.
//!
//! It predicts the commands of
//!
//! - the fuzzer;
//! - random programs in `crates/device/tests/behaviour`;
//! - the benches in `hw/engine/nearpm/dv`, through `examples/nearpm_model_c.rs`.
//!
//! In a tracked pool, [`Engine::before_store`] makes the records that a store of the host needs.
//!
//! It executes the commands of the fake device in `crates/pm/tests/common/fake.rs`.
//!
//! # What it leaves out
//!
//! - Errors of the memory.
//! - Order and power cuts: which commands are executed at a moment.
//! - Several devices: this one has no number, so a commit with participants is invalid.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use spec::nearpm::{
    next_record, padded, payload_crc, Command, Descriptor, ErrorBit, Header, LogState, Operation,
    RecordKind, RecordWriter, Tracking, ALIGN, COMMANDS, FIRST_RECORD, INCOMPLETE, LINE, MAX_BYTES,
    MIN_LOG_BYTES, POOLS, THREADS, TRACKED_LINES,
};

/// The words of a command's line; the second one has its operation.
pub type Words = [u64; 8];

/// The result of a command: its value, which is 0 if the operation has none.
pub type CommandResult = Result<u64, ErrorBit>;

/// The memory that commands access. All ranges are inside it.
pub trait Memory {
    /// Reads bytes.
    fn read(&self, at: u64, bytes: u64) -> Vec<u8>;
    /// Writes bytes. A command's writes come in the order in which they become persistent.
    fn write(&mut self, at: u64, data: &[u8]);

    /// Reads a line.
    fn line(&self, at: u64) -> [u8; LINE as usize] {
        let mut line = [0; LINE as usize];
        line.copy_from_slice(&self.read(at, LINE));
        line
    }
}

impl Memory for [u8] {
    fn read(&self, at: u64, bytes: u64) -> Vec<u8> {
        self[at as usize..(at + bytes) as usize].to_vec()
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        self[at as usize..at as usize + data.len()].copy_from_slice(data);
    }
}

/// A record of a log.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Offset in the log.
    pub at: u64,
    /// Contents of the record.
    pub kind: RecordKind,
    /// Offset of the object in the pool.
    pub object: u64,
    /// Bytes of the object.
    pub bytes: u64,
}

/// An open log.
#[derive(Clone, Debug)]
pub struct Log {
    /// Generation of the records.
    pub generation: u64,
    /// The redo records are to be applied.
    pub committed: bool,
    /// Offset of the next record.
    pub next: u64,
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// In a tracked pool: lines of the media that need no further record.
    recorded: BTreeSet<u64>,
}

impl Log {
    fn empty(generation: u64) -> Log {
        Log {
            generation,
            committed: false,
            next: FIRST_RECORD,
            records: Vec::new(),
            recorded: BTreeSet::new(),
        }
    }
}

/// A mapped pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The command that has mapped it.
    pub map: Command,
    /// The log of each thread, if it is open.
    pub logs: Vec<Option<Log>>,
    /// Threads whose log an error has closed, one bit each.
    failed: u16,
    threads: u8,
    tracking: Tracking,
}

/// The state of an engine.
#[derive(Debug)]
pub struct Engine {
    /// The pools, by number.
    pub pools: Vec<Option<Pool>>,
    /// Bytes of the media that may hold pools.
    media: u64,
}

impl Engine {
    /// An engine whose pools are in the first `media` bytes.
    pub fn new(media: u64) -> Engine {
        Engine {
            pools: vec![None; POOLS.into()],
            media,
        }
    }

    /// Executes a command.
    pub fn execute<M: Memory + ?Sized>(&mut self, memory: &mut M, words: &Words) -> CommandResult {
        let command = Command::from_words(words).filter(well_formed);
        let c = &command.ok_or(ErrorBit::Invalid)?;
        if c.operation == Operation::PoolMap {
            return self.map(c);
        }
        let own = &mut self.pools[usize::from(c.pool)];
        let pool = own.as_mut().ok_or(ErrorBit::Unmapped)?;
        if pool.map.process != c.process {
            return Err(ErrorBit::WrongProcess);
        }
        let base = pool.map.target;
        match c.operation {
            Operation::PoolUnmap => *own = None,
            Operation::Copy => {
                let from = base + pool.offset(c.address, c.bytes)?;
                let to = base + pool.offset(c.target, c.bytes)?;
                if from.abs_diff(to) < c.bytes {
                    return Err(ErrorBit::Invalid);
                }
                let data = memory.read(from, c.bytes);
                memory.write(to, &data);
            }
            Operation::Switch if pool.failed >> c.thread & 1 == 1 => {
                return Err(ErrorBit::Unmapped);
            }
            Operation::Switch => {
                let to = base + pool.offset(c.target, 8)?;
                memory.write(to, &c.value.to_le_bytes());
            }
            _ => return pool.execute(memory, c),
        }
        Ok(0)
    }

    /// Makes the records that a store of the host to `bytes` bytes needs, before the store.
    pub fn before_store<M: Memory + ?Sized>(&mut self, memory: &mut M, at: u64, bytes: u64) {
        let lines = at / LINE..(at + bytes.max(1)).div_ceil(LINE);
        for line in lines {
            let contains = |pool: &&mut Pool| {
                let map = &pool.map;
                (map.target..map.target + map.bytes).contains(&(line * LINE))
            };
            if let Some(pool) = self.pools.iter_mut().flatten().find(contains) {
                pool.record_line(memory, line);
            }
        }
    }

    fn map(&mut self, c: &Command) -> CommandResult {
        let fits = |begin: u64, bytes: u64, end: u64| {
            begin.checked_add(bytes).is_some_and(|last| last <= end)
        };
        let (threads, tracking) = Tracking::from_extra(c.extra).ok_or(ErrorBit::Invalid)?;
        let logs = c.value.checked_mul(threads.into());
        let inside = fits(c.target, c.bytes, self.media)
            && fits(c.address, c.bytes - 1, u64::MAX)
            && logs.is_some_and(|logs| fits(c.transaction, logs, c.bytes));
        if !inside {
            return Err(ErrorBit::OutOfPool);
        }
        let overlaps = |other: &Pool| {
            let other = &other.map;
            other.target < c.target + c.bytes && c.target < other.target + other.bytes
        };
        for (n, other) in self.pools.iter().enumerate() {
            if n != usize::from(c.pool) && other.as_ref().is_some_and(overlaps) {
                return Err(ErrorBit::Busy);
            }
        }
        let map = Command { thread: 0, ..*c };
        let new = Pool {
            map,
            logs: vec![None; THREADS.into()],
            failed: 0,
            threads,
            tracking,
        };
        let own = self.pools[usize::from(c.pool)].get_or_insert(new);
        match own.map == map {
            true => Ok(0),
            false => Err(ErrorBit::Busy),
        }
    }
}

impl Pool {
    /// Offset in the pool of a virtual range.
    pub fn offset(&self, address: u64, bytes: u64) -> Result<u64, ErrorBit> {
        let at = address.checked_sub(self.map.address);
        let end = at.and_then(|at| at.checked_add(bytes));
        match (at, end) {
            (Some(at), Some(end)) if end <= self.map.bytes => Ok(at),
            _ => Err(ErrorBit::OutOfPool),
        }
    }

    /// Makes the record of a line that the host is going to store to, if it is tracked.
    fn record_line<M: Memory + ?Sized>(&mut self, memory: &mut M, line: u64) {
        let operation = match self.tracking.record_kind() {
            None => return,
            Some(RecordKind::Checkpoint) => Operation::Checkpoint,
            Some(_) => Operation::Undo,
        };
        let place = self.map.target + self.map.transaction;
        let logs = place..place + self.map.value;
        let Some(log) = self.logs[0].as_mut().filter(|log| !log.committed) else {
            return;
        };
        if logs.contains(&(line * LINE)) || log.recorded.contains(&line) {
            return;
        }
        let command = Command::new(operation, self.map.process, self.map.pool, 0);
        let media = LogMedia {
            map: self.map,
            command: &command,
            place,
        };
        let object = line * LINE - self.map.target;
        let has_room = log.recorded.len() < TRACKED_LINES;
        log.recorded.insert(line);
        let made = has_room.then(|| media.make_records(memory, log, &[(object, object, LINE)]));
        if !matches!(made, Some(Ok(_))) {
            // As after a record that was accepted and could not be made.
            media.describe(memory, log.generation, LogState::Open, INCOMPLETE);
            self.logs[0] = None;
            self.failed |= 1;
        }
    }

    /// Executes an operation on the log of a thread.
    fn execute<M: Memory + ?Sized>(&mut self, memory: &mut M, c: &Command) -> CommandResult {
        let thread = usize::from(c.thread);
        if c.thread >= self.threads {
            return Err(ErrorBit::Unmapped);
        }
        let logs = self.map.target + self.map.transaction;
        let media = LogMedia {
            map: self.map,
            command: c,
            place: logs + u64::from(c.thread) * self.map.value,
        };
        let (address, target) = (
            self.offset(c.address, c.bytes),
            self.offset(c.target, c.bytes),
        );
        let log = &mut self.logs[thread];
        match c.operation {
            Operation::LogOpen if log.is_some() => return Err(ErrorBit::Busy),
            Operation::LogOpen => {
                *log = Some(Log::empty(c.value));
                self.failed &= !(1 << thread);
                media.describe(memory, c.value, LogState::Open, 0);
                return Ok(0);
            }
            Operation::Recover => return self.restore(memory, &media),
            _ => {}
        }
        let log = log.as_mut().ok_or(ErrorBit::Unmapped)?;
        match c.operation {
            Operation::Undo | Operation::Redo | Operation::Checkpoint => {
                let source = address?;
                let object = match c.operation {
                    Operation::Redo => target?,
                    _ => source,
                };
                media.make_records(memory, log, &[(source, object, c.bytes)])
            }
            Operation::UndoRanges | Operation::CheckpointRanges => {
                let ranges = c.used_ranges().iter();
                let made: Vec<_> = ranges.map(|r| (r.offset, r.offset, r.bytes)).collect();
                if made
                    .iter()
                    .any(|(at, _, bytes)| at + bytes > self.map.bytes)
                {
                    return Err(ErrorBit::OutOfPool);
                }
                media.make_records(memory, log, &made)
            }
            Operation::Apply => {
                let target = target?;
                let inside = (FIRST_RECORD..log.next).contains(&c.value)
                    && next_record(c.value, c.bytes) <= log.next;
                if !inside {
                    return Err(ErrorBit::OutOfPool);
                }
                let header = media.header(memory, c.value, log.generation).filter(|h| {
                    (h.kind, h.object) == (RecordKind::Redo, target)
                        && u64::from(h.bytes) == c.bytes
                });
                match header.and_then(|header| media.payload(memory, c.value, &header)) {
                    Some(payload) => {
                        memory.write(self.map.target + target, &payload);
                        Ok(0)
                    }
                    None => self.fail(c.thread),
                }
            }
            Operation::Commit | Operation::Abort if log.committed => Err(ErrorBit::Busy),
            Operation::Abort => self.restore(memory, &media),
            Operation::Commit | Operation::Delete => {
                let generation = log.generation.wrapping_add(1);
                *log = Log::empty(generation);
                media.describe(memory, generation, LogState::Open, 0);
                Ok(generation)
            }
            Operation::CommitRedo => {
                log.committed = true;
                let records = log.records.len() as u32;
                media.describe(memory, log.generation, LogState::Committed, records);
                Ok(0)
            }
            // Sync; the others are not for an open log.
            _ => Ok(0),
        }
    }

    /// Abort and recover: writes records back, or applies them.
    fn restore<M: Memory + ?Sized>(&mut self, memory: &mut M, media: &LogMedia) -> CommandResult {
        let thread = media.command.thread;
        let log = &mut self.logs[usize::from(thread)];
        let is_abort = media.command.operation == Operation::Abort;
        let found = Descriptor::from_line(&memory.line(media.place));
        let known = match log {
            Some(log) if is_abort => Some((log.generation, LogState::Open)),
            Some(log) => found
                .filter(|d| d.generation == log.generation)
                .map(|d| (d.generation, d.state)),
            None => found.map(|d| (d.generation, d.state)),
        };
        // The number of records, if it is known.
        let has_count = |d: &Descriptor| d.records != 0 || d.state != LogState::Open;
        let count = match log {
            Some(log) => Some(log.records.len() as u32),
            None => found.filter(has_count).map(|d| d.records),
        };
        let Some((generation, state)) = known else {
            return self.fail(thread);
        };
        let Some(mut records) = media.records(memory, generation, count) else {
            if let (Some(_), LogState::Open, Some(count @ 1..)) = (log, state, count) {
                media.describe(memory, generation, LogState::Open, count);
            }
            return self.fail(thread);
        };
        let is_redo = state == LogState::Committed;
        records.retain(|(header, _)| (header.kind == RecordKind::Redo) == is_redo);
        if !is_redo {
            records.reverse();
        }
        for (header, payload) in &records {
            memory.write(self.map.target + header.object, payload);
        }
        let generation = generation.wrapping_add(1);
        media.describe(memory, generation, LogState::Open, 0);
        if let Some(log) = log {
            *log = Log::empty(generation);
        }
        Ok(records.len() as u64)
    }

    /// A record is torn: the log is closed.
    fn fail(&mut self, thread: u8) -> CommandResult {
        self.logs[usize::from(thread)] = None;
        self.failed |= 1 << thread;
        Err(ErrorBit::Torn)
    }
}

/// The log of a command's thread on the media.
struct LogMedia<'a> {
    map: Command,
    command: &'a Command,
    /// Address of the descriptor.
    place: u64,
}

impl LogMedia<'_> {
    /// Makes records of ranges, all or none: offset of the bytes, offset of the object, bytes.
    /// Returns the offset of the first record in the log.
    fn make_records<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        log: &mut Log,
        ranges: &[(u64, u64, u64)],
    ) -> CommandResult {
        let c = self.command;
        let kind = match c.operation {
            Operation::Undo | Operation::UndoRanges => RecordKind::Undo,
            Operation::Redo => RecordKind::Redo,
            _ => RecordKind::Checkpoint,
        };
        if log.committed {
            return Err(ErrorBit::Busy);
        }
        let end = |at, (_, _, bytes): &(u64, u64, u64)| next_record(at, *bytes);
        if ranges.iter().fold(log.next, end) > self.map.value {
            return Err(ErrorBit::LogFull);
        }
        let first = log.next;
        for (source, object, bytes) in ranges.iter().copied() {
            let at = log.next;
            let mut payload = memory.read(self.map.target + source, bytes);
            let header = Header {
                kind,
                pool: c.pool,
                thread: c.thread,
                writer: RecordWriter::Engine,
                generation: log.generation,
                object,
                bytes: bytes as u32,
                number: log.records.len() as u32,
                previous: log.records.last().map_or(0, |record| record.at),
                transaction: c.transaction,
                payload_crc: payload_crc(&payload),
            };
            log.records.push(Record {
                at,
                kind,
                object,
                bytes,
            });
            log.next = next_record(at, bytes);
            payload.resize(padded(bytes) as usize, 0);
            memory.write(self.place + at + LINE, &payload);
            memory.write(self.place + at, &header.to_line());
        }
        Ok(first)
    }

    fn describe<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        generation: u64,
        state: LogState,
        records: u32,
    ) {
        let descriptor = Descriptor {
            generation,
            state,
            records,
            transaction: self.command.transaction,
        };
        memory.write(self.place, &descriptor.to_line());
    }

    /// The header at an offset, if it belongs to this generation of the log.
    fn header<M: Memory + ?Sized>(&self, memory: &M, at: u64, generation: u64) -> Option<Header> {
        let belongs = |h: &Header| {
            let end = h.object.checked_add(h.bytes.into());
            (h.pool, h.thread) == (self.command.pool, self.command.thread)
                && h.generation == generation
                && (1..=MAX_BYTES).contains(&h.bytes.into())
                && end.is_some_and(|end| end <= self.map.bytes)
        };
        Header::from_line(&memory.line(self.place + at)).filter(belongs)
    }

    /// The payload of the record at an offset, if it is valid.
    fn payload<M: Memory + ?Sized>(&self, memory: &M, at: u64, header: &Header) -> Option<Vec<u8>> {
        let mut payload = memory.read(self.place + at + LINE, padded(header.bytes.into()));
        let is_valid = payload_crc(&payload) == header.payload_crc;
        payload.truncate(header.bytes as usize);
        is_valid.then_some(payload)
    }

    /// The records of a generation, the oldest first. There are `count` of them; an unknown number
    /// of records ends at the first header that is not valid. `None`: one of them is torn.
    fn records<M: Memory + ?Sized>(
        &self,
        memory: &M,
        generation: u64,
        count: Option<u32>,
    ) -> Option<Vec<(Header, Vec<u8>)>> {
        let mut records = Vec::new();
        let (mut at, mut previous, mut number) = (FIRST_RECORD, 0, 0);
        while count != Some(number) {
            if at + 2 * LINE > self.map.value {
                return count.is_none().then_some(records);
            }
            let follows = |h: &Header| {
                (h.number, h.previous) == (number, previous)
                    && next_record(at, h.bytes.into()) <= self.map.value
            };
            let Some(header) = self.header(memory, at, generation).filter(follows) else {
                let is_last = count.is_none() && !self.has_later(memory, at, generation, number);
                return is_last.then_some(records);
            };
            records.push((header, self.payload(memory, at, &header)?));
            (previous, at) = (at, next_record(at, header.bytes.into()));
            number += 1;
        }
        Some(records)
    }

    /// A later header exists, so that the record at this offset is missing.
    fn has_later<M: Memory + ?Sized>(
        &self,
        memory: &M,
        at: u64,
        generation: u64,
        number: u32,
    ) -> bool {
        let bytes = (self.map.value - at).min(COMMANDS as u64 * MAX_BYTES);
        let lines = memory.read(self.place + at, bytes);
        let (pool, thread) = (self.command.pool, self.command.thread);
        let is_later = |line: &[u8]| {
            let line = line.try_into();
            line.is_ok_and(|line| Header::is_later(line, pool, thread, generation, number))
        };
        lines.chunks_exact(LINE as usize).any(is_later)
    }
}

/// The operation exists with these lengths and alignments, and no other arguments are given.
fn well_formed(c: &Command) -> bool {
    use Operation::*;
    let copied = (1..=MAX_BYTES).contains(&c.bytes);
    let aligned = |values: &[u64]| values.iter().all(|value| value % ALIGN == 0);
    // Address, bytes, target, value, extra.
    let (used, fits) = match c.operation {
        PoolMap => (
            [true; 5],
            aligned(&[c.address, c.bytes, c.target, c.transaction])
                && c.bytes > 0
                && c.value % LINE == 0
                && (MIN_LOG_BYTES..1 << 32).contains(&c.value)
                && Tracking::from_extra(c.extra).is_some(),
        ),
        LogOpen => ([false, false, false, true, false], true),
        Undo => ([true, true, false, false, false], copied),
        Checkpoint => (
            [true, true, false, false, false],
            copied && aligned(&[c.address, c.bytes]),
        ),
        UndoRanges => ([false; 5], true),
        CheckpointRanges => {
            let mut ranges = c.used_ranges().iter();
            ([false; 5], ranges.all(|r| aligned(&[r.offset, r.bytes])))
        }
        Redo | Copy => ([true, true, true, false, false], copied),
        Apply => (
            [false, true, true, true, false],
            copied && c.value % LINE == 0,
        ),
        Switch => ([false, false, true, true, false], c.target % 8 == 0),
        PoolUnmap | Sync | Commit | CommitRedo | Delete | Abort | Recover => ([false; 5], true),
    };
    let given = [c.address, c.bytes, c.target, c.value, c.extra];
    fits && given
        .iter()
        .zip(used)
        .all(|(value, used)| used || *value == 0)
}
