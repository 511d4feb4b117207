// SPDX-License-Identifier: Apache-2.0

//! The log of a thread, written by the CPU or by the engine. The format is the same, so one code
//! recovers both.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use host::{Cpu, PendingLoad};
use spec::nearpm::{
    next_record, padded, payload_crc, register, Command, Completion, Descriptor, Header, LogState,
    ObjectRange, Operation, RecordKind, RecordWriter, FIRST_RECORD, LINE, MAX_BYTES, OFFSET_BITS,
    RANGES, RANGES_TRANSACTION_BITS,
};

use crate::devices::{bits, Devices};
use crate::memory::{self, Memory};
use crate::partial_lines;
use crate::ranges::Ranges;
use crate::recovery::{is_pending, wait_until_empty, PEER_TIMEOUT};
use crate::{EngineHandle, Error, Result, SubmittedCommand, Synchronisation};

/// Virtual address of the PM window in a process.
const WINDOW: u64 = 0x1000_0000_0000;

/// Most bytes of a redo record that the CPU applies instead of the engine: about as many as two
/// commands take.
const CPU_APPLY_BYTES: u64 = 256;

/// Most bytes of a range that shares a command with others. An engine makes records of this size
/// in one burst each; larger ones are made sooner by several units.
const MAX_GATHERED_BYTES: u64 = 448;

/// Most bytes from the first to the last byte of a command's ranges. The engine holds all stores
/// between them until the command has ended. With longer spans the queue fills with 4 threads.
const MAX_SPAN: u64 = 128 << 10;

/// How many of the first ranges one command records.
fn near_ranges(ranges: &[ObjectRange]) -> usize {
    let (mut low, mut high) = (u64::MAX, 0);
    let near = ranges.iter().take_while(|range| {
        low = low.min(range.offset);
        high = high.max(range.offset + range.bytes);
        high - low <= MAX_SPAN
    });
    near.count().max(1)
}

/// The virtual address of an offset in the window.
pub(crate) fn address(place: u64) -> u64 {
    WINDOW + place
}

/// The engines of a pool, as its logs use them.
pub(crate) struct Offload {
    /// One for each device of the pool.
    pub engines: Vec<Arc<EngineHandle>>,
    pub devices: Devices,
    pub synchronise: Synchronisation,
    pub pool: u8,
    pub process: u16,
    /// Place of the pool in each device's window.
    pub place: u64,
}

impl Offload {
    /// A command for the log of a thread.
    pub fn command(&self, operation: Operation, thread: u8) -> Command {
        Command::new(operation, self.process, self.pool, thread)
    }

    /// The virtual address of an offset in a device's share of the pool.
    pub fn address(&self, offset: u64) -> u64 {
        address(self.place + offset)
    }

    /// Indices of the pool's devices.
    pub fn indices(&self) -> std::ops::Range<usize> {
        0..self.engines.len()
    }

    /// A set of the pool's devices, as the engines number them.
    pub fn participants(&self, devices: u64) -> u64 {
        bits(devices)
            .map(|index| 1 << self.devices.number(index))
            .sum()
    }

    /// Notifies devices of the pool that all of them have completed a transaction of a log.
    pub fn notify_peers(&self, cpu: &Cpu, devices: u64, thread: u8, sequence: u64) -> Result<()> {
        let log = self.pool << 4 | thread;
        let word = Completion { log, sequence }.to_word().to_le_bytes();
        for device in bits(devices) {
            for peer in bits(devices).filter(|peer| *peer != device) {
                let register = register::DONE + 8 * self.devices.number(peer) as u64;
                self.engines[device].write_register(cpu, register, &word)?;
            }
        }
        Ok(())
    }
}

/// The place of a record of this transaction.
#[derive(Clone, Copy, Debug)]
struct RecordPlacement {
    /// Offset in the log.
    at: u64,
    /// Offset of the logged bytes in the pool; for an engine's record in its device's share.
    object: u64,
    bytes: u64,
    /// It holds old bytes.
    old: bool,
}

/// The state of a log, as far as its thread needs it.
struct ThreadLog {
    generation: u64,
    made: Vec<RecordPlacement>,
    next: u64,
    /// Its device may still wait for others before it empties it.
    pending: bool,
    /// A load of its descriptor that is under way.
    descriptor_load: Option<PendingLoad>,
}

impl ThreadLog {
    fn new(generation: u64) -> ThreadLog {
        ThreadLog {
            generation,
            made: Vec::new(),
            next: FIRST_RECORD,
            pending: false,
            descriptor_load: None,
        }
    }

    /// The log is empty, of the next generation: at once, or when other devices are complete, too.
    fn empty(&mut self, pending: bool) {
        *self = ThreadLog {
            pending,
            ..ThreadLog::new(self.generation + 1)
        };
    }
}

/// The places of a thread's logs.
pub(crate) struct LogPlacement {
    /// Offset of the thread's first log: the CPU's log in the pool, the engine's log on each
    /// device.
    pub log: u64,
    pub bytes: u64,
    /// Staging area on each device: new bytes before the engine makes redo records of them. It is
    /// as long as a log.
    pub staging: u64,
}

/// The log of a thread. With several devices it is two logs, which transactions use in turns.
pub(crate) struct Log {
    placement: LogPlacement,
    /// Number of the first log.
    number: u8,
    /// The logs of each turn: the CPU's, or that of each device.
    states: Vec<Vec<ThreadLog>>,
    turn: usize,
    transaction: u64,
    /// Ranges whose records the CPU has written, and that may not be persistent yet; or that the
    /// engine gets with the next command.
    unpersisted: Ranges,
    /// For each device, ranges that the next command records.
    gathered: Vec<Vec<ObjectRange>>,
    offload: Option<Arc<Offload>>,
    snapshots: bool,
    /// The engine makes the records of all stores by itself.
    tracked: bool,
}

impl Log {
    /// The empty log of a thread. `generations` are those of each device's logs, turn by turn.
    pub fn new(
        placement: LogPlacement,
        thread: u8,
        generations: &[Vec<u64>],
        offload: Option<Arc<Offload>>,
    ) -> Log {
        let parts = |turn: &Vec<u64>| turn.iter().map(|n| ThreadLog::new(*n)).collect();
        let devices = generations.first().map_or(0, Vec::len);
        Log {
            placement,
            number: thread * generations.len() as u8,
            states: generations.iter().map(parts).collect(),
            turn: 0,
            transaction: 0,
            unpersisted: Ranges::default(),
            gathered: vec![Vec::new(); devices],
            offload,
            snapshots: true,
            tracked: false,
        }
    }

    /// An engine makes records without commands.
    pub fn track(&mut self) {
        self.tracked = true;
    }

    /// Makes no more records: see [`crate::Options::snapshots`].
    pub fn disable_snapshots(&mut self) {
        self.snapshots = false;
    }

    /// Begins a transaction.
    pub fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        self.transaction = transaction;
        let Some(offload) = self.offload.clone() else {
            return Ok(());
        };
        let threads = self.thread(0)..self.thread(self.states.len());
        for engine in &offload.engines {
            engine.check_refusals(offload.pool, &threads)?;
        }
        self.wait_until_empty(m, self.turn)
    }

    pub fn is_offloaded(&self) -> bool {
        self.offload.is_some()
    }

    /// The engine's number of a turn's log.
    fn thread(&self, turn: usize) -> u8 {
        self.number + turn as u8
    }

    /// Offset of a turn's log.
    fn place(&self, turn: usize) -> u64 {
        self.placement.log + turn as u64 * self.placement.bytes
    }

    fn state(&mut self, index: usize) -> &mut ThreadLog {
        &mut self.states[self.turn][index]
    }

    /// A bit for each device on which this transaction has records.
    fn devices_with_records(&self) -> u64 {
        let parts = self.states[self.turn].iter().enumerate();
        let kept = parts.filter(|(_, part)| !part.made.is_empty());
        kept.map(|(index, _)| 1 << index).sum()
    }

    /// A bit for each device that has records of a transaction which has stored in `dirty`.
    fn devices_with_records_of(&self, dirty: &Ranges) -> u64 {
        match &self.offload {
            Some(offload) if self.tracked => touched(offload, dirty),
            _ => self.devices_with_records(),
        }
    }

    /// Starts loads of the descriptors of logs that wait for other devices.
    fn prefetch_descriptors(&mut self, m: &mut Memory) -> Result<()> {
        for turn in (0..self.states.len()).filter(|turn| *turn != self.turn) {
            let place = self.place(turn);
            for (index, part) in self.states[turn].iter_mut().enumerate() {
                if part.pending && part.descriptor_load.is_none() {
                    part.descriptor_load = Some(m.on_device(index, |m| m.issue_load(place, LINE))?);
                }
            }
        }
        Ok(())
    }

    /// Waits until no log of a turn waits for other devices.
    fn wait_until_empty(&mut self, m: &mut Memory, turn: usize) -> Result<()> {
        let (place, thread) = (self.place(turn), self.thread(turn));
        for (index, part) in self.states[turn].iter_mut().enumerate() {
            if !std::mem::take(&mut part.pending) {
                continue;
            }
            let is_empty = match part.descriptor_load.take() {
                Some(load) => {
                    let mut line = [0; LINE as usize];
                    line.copy_from_slice(&m.cpu.finish_load(load)?);
                    !is_pending(&Descriptor::from_line(&line))
                }
                None => false,
            };
            if !is_empty {
                m.on_device(index, |m| wait_until_empty(m, place, thread))?;
            }
        }
        Ok(())
    }

    /// Reserves room for a record.
    fn reserve(&mut self, index: usize, kind: RecordKind, object: u64, bytes: u64) -> Result<u64> {
        let most = self.placement.bytes;
        let part = self.state(index);
        let next = next_record(part.next, bytes);
        if next > most {
            return Err(Error::Full(format!(
                "the transaction's log has no room for {bytes} bytes more: a log of this pool has \
                 {most} bytes"
            )));
        }
        let at = std::mem::replace(&mut part.next, next);
        let old = kind != RecordKind::Redo;
        part.made.push(RecordPlacement {
            at,
            object,
            bytes,
            old,
        });
        Ok(at)
    }

    /// Logs the old bytes of a range.
    pub fn snapshot(&mut self, m: &mut Memory, kind: RecordKind, range: Range<u64>) -> Result<()> {
        if !self.snapshots {
            return Ok(());
        }
        let Some(offload) = self.offload.clone() else {
            for (start, bytes) in record_ranges(range) {
                let mut old = vec![0; bytes as usize];
                m.read_old(start, &mut old)?;
                self.append_record(m, kind, start, &old)?;
            }
            return Ok(());
        };
        for index in offload.indices() {
            for (start, bytes) in record_ranges(offload.devices.local_range(index, &range)) {
                self.reserve(index, kind, start, bytes)?;
                m.counts.records += 1;
                m.counts.payload += bytes;
                self.gather(m, index, kind, start, bytes)?;
            }
        }
        self.unpersisted.add(range);
        Ok(())
    }

    /// Adds a range to those that the next command to a device records.
    fn gather(
        &mut self,
        m: &mut Memory,
        index: usize,
        kind: RecordKind,
        offset: u64,
        bytes: u64,
    ) -> Result<()> {
        let fits = kind == RecordKind::Undo
            && bytes <= MAX_GATHERED_BYTES
            && offset >> OFFSET_BITS == 0
            && self.transaction >> RANGES_TRANSACTION_BITS == 0;
        let range = ObjectRange { offset, bytes };
        if !fits {
            // Records have the order of their ranges.
            self.submit_gathered(m, index)?;
            return self.record_one(m, index, kind, range);
        }
        self.gathered[index].push(range);
        match self.gathered[index].len() < RANGES {
            true => Ok(()),
            false => self.submit_gathered(m, index),
        }
    }

    /// Submits a command that records one range.
    fn record_one(
        &mut self,
        m: &mut Memory,
        index: usize,
        kind: RecordKind,
        range: ObjectRange,
    ) -> Result<()> {
        let operation = match kind {
            RecordKind::Checkpoint => Operation::Checkpoint,
            _ => Operation::Undo,
        };
        let submitted = self.command(m, index, operation, |offload, command| {
            command.address = offload.address(range.offset);
            command.bytes = range.bytes;
        });
        submitted.map(drop)
    }

    /// Submits the command that records the gathered ranges of a device.
    fn submit_gathered(&mut self, m: &mut Memory, index: usize) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered[index]);
        let mut rest = gathered.as_slice();
        while !rest.is_empty() {
            let (ranges, later) = rest.split_at(near_ranges(rest));
            rest = later;
            match ranges {
                [range] => self.record_one(m, index, RecordKind::Undo, *range)?,
                ranges => {
                    let fill = |_: &Offload, command: &mut Command| {
                        command.ranges[..ranges.len()].copy_from_slice(ranges);
                    };
                    self.command(m, index, Operation::UndoRanges, fill)?;
                }
            }
        }
        Ok(())
    }

    /// Submits the commands that record the gathered ranges of all devices.
    fn submit_all_gathered(&mut self, m: &mut Memory) -> Result<()> {
        self.unpersisted.clear();
        (0..self.gathered.len()).try_for_each(|index| self.submit_gathered(m, index))
    }

    /// Writes a record by the CPU. It is persistent after [`Log::persist_records`].
    fn append_record(
        &mut self,
        m: &mut Memory,
        kind: RecordKind,
        object: u64,
        payload: &[u8],
    ) -> Result<()> {
        let part = self.state(0);
        let number = part.made.len() as u32;
        let previous = part.made.last().map_or(0, |made| made.at);
        let generation = part.generation;
        let at = self.reserve(0, kind, object, payload.len() as u64)?;
        let writer = match self.unpersisted.is_empty() {
            true => RecordWriter::CpuOrdered,
            false => RecordWriter::Cpu,
        };
        let header = Header {
            kind,
            pool: m.options.pool,
            thread: self.number,
            writer,
            generation,
            object,
            bytes: payload.len() as u32,
            number,
            previous,
            transaction: self.transaction,
            payload_crc: payload_crc(payload),
        };
        let mut record = header.to_line().to_vec();
        record.extend_from_slice(payload);
        record.resize((LINE + padded(payload.len() as u64)) as usize, 0);
        let costs = m.options.costs;
        m.spend(costs.record)?;
        m.spend(sim::Time(costs.crc_line.0 * (record.len() as u64 / LINE)))?;
        m.stream(self.placement.log + at, &record)?;
        m.counts.records += 1;
        m.counts.payload += payload.len() as u64;
        self.unpersisted.add(object..object + payload.len() as u64);
        Ok(())
    }

    /// After this a logged range may be changed. The CPU's records of it are persistent; the engine
    /// makes its records before it accepts later stores.
    pub fn persist_records(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        if !self.unpersisted.overlaps(&range) {
            return Ok(());
        }
        if self.is_offloaded() {
            return self.submit_all_gathered(m);
        }
        self.unpersisted.clear();
        m.fence_between()
    }

    /// Submits a command to the engine of a device.
    fn command(
        &mut self,
        m: &mut Memory,
        index: usize,
        operation: Operation,
        fill: impl FnOnce(&Offload, &mut Command),
    ) -> Result<Option<SubmittedCommand>> {
        let Some(offload) = &self.offload else {
            return Ok(None);
        };
        let mut command = offload.command(operation, self.thread(self.turn));
        command.transaction = self.transaction;
        fill(offload, &mut command);
        m.counts.commands += 1;
        let submit = |m: &mut Memory| {
            m.spend(m.options.costs.record)?;
            offload.engines[index].submit(&m.cpu, &command).map(Some)
        };
        m.timed(memory::ConsistencyOperation::Command, submit)
    }

    /// Writes the descriptor by the CPU.
    fn write_descriptor(&mut self, m: &mut Memory, state: LogState, generation: u64) -> Result<()> {
        let records = match state {
            LogState::Open => 0,
            LogState::Committed | LogState::Pending(_) => self.state(0).made.len() as u32,
        };
        let descriptor = Descriptor {
            generation,
            state,
            records,
            transaction: self.transaction,
        };
        m.write_line(self.placement.log, &descriptor.to_line())
    }

    /// Empties the CPU's log.
    fn write_empty_descriptor(&mut self, m: &mut Memory) -> Result<()> {
        let generation = self.state(0).generation + 1;
        self.write_descriptor(m, LogState::Open, generation)?;
        m.fence()?;
        self.state(0).empty(false);
        self.unpersisted.clear();
        Ok(())
    }

    /// Commits: what was stored in `dirty` is persistent, and the records are void.
    pub fn commit(&mut self, m: &mut Memory, dirty: &Ranges) -> Result<()> {
        for range in dirty.iter() {
            m.flush(range)?;
        }
        self.commit_flushed(m, dirty)
    }

    /// The same after all of `dirty` has been written back.
    pub fn commit_flushed(&mut self, m: &mut Memory, dirty: &Ranges) -> Result<()> {
        if self.devices_with_records_of(dirty) == 0 {
            let any = !dirty.is_empty();
            return if any { m.fence() } else { Ok(()) };
        }
        let Some(offload) = self.offload.clone() else {
            m.fence_between()?;
            return self.write_empty_descriptor(m);
        };
        // Nothing was stored to the ranges that are left.
        self.submit_all_gathered(m)?;
        m.fence_posted()?;
        // A device with stores but no records takes part, too: when it has completed its part, its
        // stores are persistent.
        let devices = self.devices_with_records_of(dirty) | touched(&offload, dirty);
        m.counts.spanning += u64::from(devices.count_ones() > 1);
        let alone = devices.count_ones() == 1 || offload.synchronise == Synchronisation::Disabled;
        let mut commits = Vec::new();
        for index in bits(devices) {
            let commit = self.command(m, index, Operation::Commit, |offload, command| {
                if !alone {
                    command.value = offload.participants(devices);
                }
            })?;
            commits.extend(commit.map(|commit| (&offload.engines[index], commit)));
        }
        self.prefetch_descriptors(m)?;
        if !alone && offload.synchronise == Synchronisation::Host {
            m.counts.fences += 1;
            let wait = |m: &mut Memory| wait_until_ended(m, &commits);
            m.timed(memory::ConsistencyOperation::Fence, wait)?;
            let (thread, transaction) = (self.thread(self.turn), self.transaction);
            let notify =
                |m: &mut Memory| offload.notify_peers(&m.cpu, devices, thread, transaction);
            m.timed(memory::ConsistencyOperation::Command, notify)?;
        } else {
            m.fence_commands(devices)?;
        }
        for index in bits(devices) {
            self.state(index).empty(!alone);
        }
        if !alone {
            self.turn = (self.turn + 1) % self.states.len();
        }
        Ok(())
    }

    /// Aborts: what was stored in `dirty` is undone from the records.
    pub fn abort(&mut self, m: &mut Memory, dirty: &Ranges) -> Result<()> {
        let kept = self.devices_with_records_of(dirty);
        if kept == 0 {
            return Ok(());
        }
        if let Some(offload) = self.offload.clone() {
            self.submit_all_gathered(m)?;
            return self.abort_offloaded(m, &offload, kept, dirty);
        }
        // Redo records hold bytes that were not applied.
        let made = self.state(0).made.clone();
        for made in made.iter().rev().filter(|made| made.old) {
            let mut old = vec![0; made.bytes as usize];
            m.read(self.placement.log + made.at + LINE, &mut old)?;
            m.write(made.object, &old)?;
            m.flush(made.object..made.object + made.bytes)?;
        }
        m.fence_between()?;
        self.write_empty_descriptor(m)
    }

    /// The engine writes old bytes back, past the cache. Other threads may use the rest of a line
    /// that a record covers in part. So the CPU writes these lines first, and the cache has what
    /// the engine writes. The other lines leave the cache before the command, and once more after
    /// it, since threads may fetch them before the engine has it.
    fn abort_offloaded(
        &mut self,
        m: &mut Memory,
        offload: &Offload,
        kept: u64,
        dirty: &Ranges,
    ) -> Result<()> {
        let mut shared = BTreeSet::new();
        for index in bits(kept) {
            shared.extend(self.write_partial_lines_back(m, index)?);
        }
        let whole: Vec<u64> = dirty
            .iter()
            .flat_map(memory::lines)
            .filter(|line| !shared.contains(&offload.devices.locate(*line)))
            .collect();
        let drop_whole = |m: &mut Memory| {
            let mut lines = whole.iter();
            lines.try_for_each(|line| m.drop_lines(*line..*line + LINE))
        };
        drop_whole(m)?;
        m.fence_posted()?;
        for index in bits(kept) {
            self.command(m, index, Operation::Abort, |_, command| {
                if offload.engines.len() > 1 {
                    // A descriptor of several devices names the last committed transaction.
                    command.transaction = 0;
                }
            })?;
            self.state(index).empty(false);
        }
        m.fence_posted()?;
        drop_whole(m)?;
        if self.tracked {
            // All changed lines have left the cache. The loads follow the command.
            let first = whole.iter().take(memory::PREFETCH_LINES);
            return first.into_iter().try_for_each(|line| m.prefetch(*line));
        }
        Ok(())
    }

    /// Writes back the partial lines of a device's records; returns the places of these lines.
    fn write_partial_lines_back(
        &mut self,
        m: &mut Memory,
        index: usize,
    ) -> Result<Vec<(usize, u64)>> {
        let place = self.place(self.turn);
        let part = self.state(index);
        let generation = part.generation;
        let old = part.made.iter().rev().filter(|made| made.old);
        let records: Vec<_> = old
            .map(|made| (place + made.at, made.object..made.object + made.bytes))
            .collect();
        let lines = m.on_device(index, |m| {
            partial_lines::write_back(m, generation, &records)
        })?;
        Ok(lines.into_iter().map(|line| (index, line)).collect())
    }

    /// Commits new bytes: they are applied completely or not at all, together with the stores in
    /// `dirty`.
    pub fn redo(
        &mut self,
        m: &mut Memory,
        dirty: &Ranges,
        new_data: &[(u64, Vec<u8>)],
    ) -> Result<()> {
        let parts = || {
            new_data.iter().flat_map(|(at, data)| {
                let chunks = data.chunks(MAX_BYTES as usize).enumerate();
                chunks.map(move |(n, part)| (at + n as u64 * MAX_BYTES, part))
            })
        };
        let flush = |m: &mut Memory| dirty.iter().try_for_each(|range| m.flush(range));
        if new_data.is_empty() || !self.snapshots {
            for (at, data) in new_data {
                m.write(*at, data)?;
                m.flush(*at..at + data.len() as u64)?;
            }
            flush(m)?;
            let any = dirty.iter().next().is_some() || !new_data.is_empty();
            return if any { m.fence() } else { Ok(()) };
        }
        if let Some(offload) = self.offload.clone() {
            return self.redo_offloaded(m, &offload, dirty, parts());
        }
        for (at, part) in parts() {
            self.append_record(m, RecordKind::Redo, at, part)?;
        }
        flush(m)?;
        m.fence_between()?;
        let generation = self.state(0).generation;
        self.write_descriptor(m, LogState::Committed, generation)?;
        m.fence_between()?;
        for (at, part) in parts() {
            m.write(at, part)?;
            m.flush(at..at + part.len() as u64)?;
        }
        m.fence_between()?;
        // Persistent before the log is written again.
        self.write_empty_descriptor(m)
    }

    fn redo_offloaded<'a>(
        &mut self,
        m: &mut Memory,
        offload: &Offload,
        dirty: &Ranges,
        parts: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> Result<()> {
        let mut new_data = Vec::new();
        for (at, data) in parts {
            // No command is written unless all records have room.
            for piece in offload.devices.segments(at, data.len()) {
                let (at, data) = (at + piece.part.start as u64, &data[piece.part]);
                let bytes = data.len() as u64;
                self.reserve(piece.index, RecordKind::Redo, piece.offset, bytes)?;
                let made = self.state(piece.index).made.last().copied();
                new_data.extend(made.map(|made| (piece.index, made, at, data)));
            }
        }
        // A record's new bytes have the same offset in the staging area as the record in the log.
        let staging = self.placement.staging;
        for (index, made, _, data) in &new_data {
            let mut lines = data.to_vec();
            lines.resize(padded(made.bytes) as usize, 0);
            m.on_device(*index, |m| m.stream(staging + made.at, &lines))?;
        }
        dirty.iter().try_for_each(|range| m.flush(range))?;
        m.fence_posted()?;
        for (index, made, ..) in &new_data {
            m.counts.records += 1;
            m.counts.payload += made.bytes;
            self.command(m, *index, Operation::Redo, |offload, command| {
                command.address = offload.address(staging + made.at);
                command.bytes = made.bytes;
                command.target = offload.address(made.object);
            })?;
        }
        let kept = self.devices_with_records();
        let all = kept | touched(offload, dirty);
        if all.count_ones() > 1 {
            m.counts.spanning += 1;
            // One device that accepts the commit commits all. So all devices must have their
            // records and in-place stores before.
            m.fence_commands(all)?;
        }
        for index in bits(kept) {
            self.command(m, index, Operation::CommitRedo, |_, _| ())?;
        }
        // The CPU applies a small record, in order after the commit, which leaves the lines in the
        // cache. The engine applies a large one, except for its partial lines: other threads may
        // use these.
        let (small, large): (Vec<_>, Vec<_>) = new_data
            .iter()
            .partition(|(_, made, ..)| made.bytes <= CPU_APPLY_BYTES);
        for (_, made, at, data) in &small {
            m.write(*at, data)?;
            m.flush(*at..at + made.bytes)?;
        }
        let mut whole = Vec::new();
        for (_, _, at, data) in &large {
            let range = *at..at + data.len() as u64;
            for edge in partial_lines::partial_ranges(&range) {
                let part = (edge.start - at) as usize..(edge.end - at) as usize;
                m.write(edge.start, &data[part])?;
                m.flush(edge)?;
            }
            whole.push(partial_lines::whole_lines(&range));
        }
        let drop_whole = |m: &mut Memory| {
            whole
                .iter()
                .try_for_each(|range| m.drop_lines(range.clone()))
        };
        drop_whole(m)?;
        m.fence_posted()?;
        for (index, made, ..) in &large {
            self.command(m, *index, Operation::Apply, |offload, command| {
                command.value = made.at;
                command.bytes = made.bytes;
                command.target = offload.address(made.object);
            })?;
        }
        for index in bits(kept) {
            self.command(m, index, Operation::Delete, |_, _| ())?;
        }
        m.fence_commands(kept)?;
        if !m.waits && !whole.is_empty() {
            // Loads of these lines come after the commands from here on.
            m.fence_posted()?;
        }
        // Other threads may have fetched them before the engine had the commands.
        drop_whole(m)?;
        bits(kept).for_each(|index| self.state(index).empty(false));
        Ok(())
    }

    /// Copies a page by the engine of the device that has both places.
    pub fn shadow_copy(&mut self, m: &mut Memory, from: u64, to: u64, bytes: u64) -> Result<()> {
        let Some(offload) = self.offload.clone() else {
            return Ok(());
        };
        let ((index, from), (_, to)) = (offload.devices.locate(from), offload.devices.locate(to));
        let copied = self.command(m, index, Operation::Copy, |offload, command| {
            command.address = offload.address(from);
            command.bytes = bytes;
            command.target = offload.address(to);
        });
        copied.map(drop)
    }

    /// Has the engine store 8 bytes after all data in `before`, and after the commands that produce
    /// them. Returns a bit for its device.
    pub fn commit_switch(
        &mut self,
        m: &mut Memory,
        target: u64,
        value: u64,
        before: &Ranges,
    ) -> Result<u64> {
        let Some(offload) = self.offload.clone() else {
            return Ok(0);
        };
        let (index, target) = offload.devices.locate(target);
        let devices = touched(&offload, before);
        match devices & !(1 << index) {
            0 => m.fence_posted()?,
            // The device that switches does not know the state of the others.
            _ => {
                m.counts.spanning += 1;
                m.fence_commands(devices)?;
            }
        }
        self.command(m, index, Operation::Switch, |offload, command| {
            command.target = offload.address(target);
            command.value = value;
        })?;
        Ok(1 << index)
    }

    /// Waits until all commands of this log have ended and no device waits for another one. An
    /// error if a command was refused.
    pub fn finish(&mut self, m: &mut Memory) -> Result<()> {
        let Some(offload) = self.offload.clone() else {
            return Ok(());
        };
        for turn in 0..self.states.len() {
            for engine in &offload.engines {
                let command = offload.command(Operation::Sync, self.thread(turn));
                engine.sync(&m.cpu, &command)?;
            }
            self.wait_until_empty(m, turn)?;
        }
        Ok(())
    }
}

/// A bit for each device that has a part of these ranges.
fn touched(offload: &Offload, ranges: &Ranges) -> u64 {
    let each = ranges
        .iter()
        .map(|range| offload.devices.touched_by(&range));
    each.fold(0, |all, one| all | one)
}

/// Splits a range into parts of at most a record's bytes.
fn record_ranges(range: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let end = range.end;
    let starts = range.step_by(MAX_BYTES as usize);
    starts.map(move |start| (start, (end - start).min(MAX_BYTES)))
}

/// Waits until commands of several engines have ended.
fn wait_until_ended(m: &Memory, commands: &[(&Arc<EngineHandle>, SubmittedCommand)]) -> Result<()> {
    let limit = m.cpu.now() + PEER_TIMEOUT;
    let mut left = commands.to_vec();
    while !left.is_empty() {
        let mut loads = Vec::new();
        for (engine, submitted) in &left {
            loads.push(engine.issue_line_load(&m.cpu, *submitted)?);
        }
        let mut still = Vec::new();
        for ((engine, submitted), load) in left.into_iter().zip(loads) {
            if !engine.has_ended(&m.cpu, submitted, load)? {
                still.push((engine, submitted));
            }
        }
        left = still;
        if m.cpu.now() > limit {
            let text = format!("a commit has not ended within {PEER_TIMEOUT}");
            return Err(Error::Invalid(text));
        }
    }
    Ok(())
}
