//! A thread's log: written by the CPU or by the engine, in the same format, so that either is recovered by the same code.

use std::ops::Range;
use std::sync::Arc;

use spec::nearpm::{
    next_record, padded, payload_crc, Command, Descriptor, Header, Kind, Operation, State,
    FIRST_RECORD, LINE, MAX_BYTES,
};

use crate::memory::{Memory, Part};
use crate::ranges::Ranges;
use crate::{Engine, Error, Result};

/// Where a process has the start of the PM window.
const WINDOW: u64 = 0x1000_0000_0000;

/// Most bytes of a redo record that the CPU applies where the engine could: about what two commands take, in lines.
const SMALL: u64 = 256;

/// The virtual address of a place in the window.
pub(crate) fn address(place: u64) -> u64 {
    WINDOW + place
}

/// What a log needs to know of the engine.
#[derive(Clone)]
pub(crate) struct Offload {
    pub engine: Arc<Engine>,
    pub pool: u8,
    pub process: u16,
    /// Place of the pool in the window.
    pub place: u64,
}

impl Offload {
    /// A command of a thread.
    pub fn command(&self, operation: Operation, thread: u8) -> Command {
        Command::new(operation, self.process, self.pool, thread)
    }

    /// The virtual address of an offset in the pool.
    pub fn address(&self, offset: u64) -> u64 {
        address(self.place + offset)
    }
}

/// A record that this transaction has made.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// Offset in the log.
    at: u64,
    /// Offset in the pool of what it is of.
    object: u64,
    bytes: u64,
    /// It holds what was there before.
    old: bool,
}

/// A thread's log.
pub(crate) struct Log {
    /// Offset in the pool.
    place: u64,
    bytes: u64,
    /// Where new bytes stand before the engine makes redo records of them: as many as the log has.
    staging: u64,
    thread: u8,
    generation: u64,
    transaction: u64,
    made: Vec<Made>,
    next: u64,
    /// Records were written that may not be persistent yet.
    unsettled: bool,
    offload: Option<Offload>,
    snapshots: bool,
}

impl Log {
    /// The log of a thread, which is empty.
    pub fn new(
        place: u64,
        bytes: u64,
        staging: u64,
        thread: u8,
        generation: u64,
        offload: Option<Offload>,
    ) -> Log {
        Log {
            place,
            bytes,
            staging,
            thread,
            generation,
            transaction: 0,
            made: Vec::new(),
            next: FIRST_RECORD,
            unsettled: false,
            offload,
            snapshots: true,
        }
    }

    /// Makes no records from now on: see [`crate::Options::snapshots`].
    pub fn leave_out(&mut self) {
        self.snapshots = false;
    }

    /// A transaction begins.
    pub fn begin(&mut self, transaction: u64) -> Result<()> {
        self.transaction = transaction;
        match &self.offload {
            Some(offload) => offload.engine.refused(offload.pool, self.thread),
            None => Ok(()),
        }
    }

    pub fn is_offloaded(&self) -> bool {
        self.offload.is_some()
    }

    /// Room for a record.
    fn reserve(&mut self, kind: Kind, object: u64, bytes: u64) -> Result<u64> {
        let next = next_record(self.next, bytes);
        if next > self.bytes {
            return Err(Error::Full(format!(
                "the transaction's log has no room for {bytes} bytes more: a log of this pool has {} bytes",
                self.bytes
            )));
        }
        let at = std::mem::replace(&mut self.next, next);
        let old = kind != Kind::Redo;
        self.made.push(Made {
            at,
            object,
            bytes,
            old,
        });
        Ok(at)
    }

    /// Keeps the old bytes of a range.
    pub fn keep(&mut self, m: &mut Memory, kind: Kind, range: Range<u64>) -> Result<()> {
        if !self.snapshots {
            return Ok(());
        }
        for start in range.clone().step_by(MAX_BYTES as usize) {
            let bytes = (range.end - start).min(MAX_BYTES);
            if self.offload.is_none() {
                let mut old = vec![0; bytes as usize];
                m.read_old(start, &mut old)?;
                self.append(m, kind, start, &old)?;
                continue;
            }
            self.reserve(kind, start, bytes)?;
            let operation = match kind {
                Kind::Checkpoint => Operation::Checkpoint,
                _ => Operation::Undo,
            };
            m.counts.records += 1;
            m.counts.payload += bytes;
            self.command(m, operation, |offload, command| {
                command.address = offload.address(start);
                command.bytes = bytes;
            })?;
        }
        Ok(())
    }

    /// The CPU writes a record: persistent after [`Log::settle`].
    fn append(&mut self, m: &mut Memory, kind: Kind, object: u64, payload: &[u8]) -> Result<()> {
        let number = self.made.len() as u32;
        let previous = self.made.last().map_or(0, |made| made.at);
        let at = self.reserve(kind, object, payload.len() as u64)?;
        let header = Header {
            kind,
            pool: m.options.pool,
            thread: self.thread,
            generation: self.generation,
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
        m.stream(self.place + at, &record)?;
        m.counts.records += 1;
        m.counts.payload += payload.len() as u64;
        self.unsettled = true;
        Ok(())
    }

    /// What was kept may be changed: the CPU's records are persistent; the engine's are made before it takes what is stored from now on.
    pub fn settle(&mut self, m: &mut Memory) -> Result<()> {
        if std::mem::take(&mut self.unsettled) {
            m.fence()?;
        }
        Ok(())
    }

    /// Gives the engine a command.
    fn command(
        &mut self,
        m: &mut Memory,
        operation: Operation,
        fill: impl FnOnce(&Offload, &mut Command),
    ) -> Result<()> {
        let Some(offload) = &self.offload else {
            return Ok(());
        };
        let mut command = offload.command(operation, self.thread);
        command.transaction = self.transaction;
        fill(offload, &mut command);
        m.counts.commands += 1;
        let give = |m: &mut Memory| {
            m.spend(m.options.costs.record)?;
            offload.engine.submit(&m.cpu, &command).map(drop)
        };
        m.timed(Part::Command, give)
    }

    /// The log is empty, of the next generation.
    fn empty(&mut self) {
        self.generation += 1;
        self.made.clear();
        self.next = FIRST_RECORD;
        self.unsettled = false;
    }

    /// The CPU writes the descriptor.
    fn describe(&self, m: &mut Memory, state: State, generation: u64) -> Result<()> {
        let records = match state {
            State::Open => 0,
            State::Committed | State::Pending(_) => self.made.len() as u32,
        };
        let descriptor = Descriptor {
            generation,
            state,
            records,
            transaction: self.transaction,
        };
        m.put_line(self.place, &descriptor.to_line())
    }

    /// What was stored in `dirty` stays, whatever happens: what was kept is void.
    pub fn commit(&mut self, m: &mut Memory, dirty: &Ranges) -> Result<()> {
        let mut any = false;
        for range in dirty.iter() {
            m.flush(range)?;
            any = true;
        }
        if self.made.is_empty() {
            return if any { m.fence() } else { Ok(()) };
        }
        if self.offload.is_some() {
            m.order()?;
            self.command(m, Operation::Commit, |_, _| ())?;
            m.fence_commands()?;
        } else {
            m.fence()?;
            self.describe(m, State::Open, self.generation + 1)?;
            m.fence()?;
        }
        self.empty();
        Ok(())
    }

    /// What was stored in `dirty` is undone by what was kept.
    pub fn abort(&mut self, m: &mut Memory, dirty: &Ranges) -> Result<()> {
        if self.made.is_empty() {
            return Ok(());
        }
        if self.offload.is_some() {
            // The cache must have none of what the engine changes.
            for range in dirty.iter() {
                m.drop_lines(range)?;
            }
            m.order()?;
            self.command(m, Operation::Abort, |_, _| ())?;
        } else {
            // Redo records hold what has not come to be.
            for made in self.made.iter().rev().filter(|made| made.old) {
                let mut old = vec![0; made.bytes as usize];
                m.read(self.place + made.at + LINE, &mut old)?;
                m.write(made.object, &old)?;
                m.flush(made.object..made.object + made.bytes)?;
            }
            m.fence()?;
            self.describe(m, State::Open, self.generation + 1)?;
            m.fence()?;
        }
        self.empty();
        Ok(())
    }

    /// The new bytes get to their places, all or none of them, together with what was stored in `dirty`.
    pub fn redo(&mut self, m: &mut Memory, dirty: &Ranges, news: &[(u64, Vec<u8>)]) -> Result<()> {
        let parts = || {
            news.iter().flat_map(|(at, data)| {
                let chunks = data.chunks(MAX_BYTES as usize).enumerate();
                chunks.map(move |(n, part)| (at + n as u64 * MAX_BYTES, part))
            })
        };
        let flush = |m: &mut Memory| dirty.iter().try_for_each(|range| m.flush(range));
        if news.is_empty() || !self.snapshots {
            for (at, data) in news {
                m.write(*at, data)?;
                m.flush(*at..at + data.len() as u64)?;
            }
            flush(m)?;
            let any = dirty.iter().next().is_some() || !news.is_empty();
            return if any { m.fence() } else { Ok(()) };
        }
        if self.offload.is_some() {
            self.redo_offloaded(m, &flush, &parts().collect::<Vec<_>>())?;
        } else {
            for (at, part) in parts() {
                self.append(m, Kind::Redo, at, part)?;
            }
            flush(m)?;
            m.fence()?;
            self.describe(m, State::Committed, self.generation)?;
            m.fence()?;
            for (at, part) in parts() {
                m.write(at, part)?;
                m.flush(at..at + part.len() as u64)?;
            }
            m.fence()?;
            self.describe(m, State::Open, self.generation + 1)?;
            // Before anything is written into the log again.
            m.fence()?;
        }
        self.empty();
        Ok(())
    }

    fn redo_offloaded(
        &mut self,
        m: &mut Memory,
        flush: &dyn Fn(&mut Memory) -> Result<()>,
        parts: &[(u64, &[u8])],
    ) -> Result<()> {
        // No command is written unless all have room.
        for (at, part) in parts {
            self.reserve(Kind::Redo, *at, part.len() as u64)?;
        }
        // New bytes stand in the staging area where their records stand in the log.
        for (made, (_, part)) in self.made.clone().iter().zip(parts) {
            let mut lines = part.to_vec();
            lines.resize(padded(made.bytes) as usize, 0);
            m.stream(self.staging + made.at, &lines)?;
        }
        flush(m)?;
        m.order()?;
        let made = self.made.clone();
        let staging = self.staging;
        for made in &made {
            m.counts.records += 1;
            m.counts.payload += made.bytes;
            self.command(m, Operation::Redo, |offload, command| {
                command.address = offload.address(staging + made.at);
                command.bytes = made.bytes;
                command.target = offload.address(made.object);
            })?;
        }
        self.command(m, Operation::CommitRedo, |_, _| ())?;
        // A small record is applied by the CPU, in order behind the commit, which leaves the lines in the cache; a large one by the engine.
        let small = |made: &Made| made.bytes <= SMALL;
        let mut any = false;
        for (made, (at, part)) in made.iter().zip(parts).filter(|(made, _)| small(made)) {
            m.write(*at, part)?;
            m.flush(made.object..made.object + made.bytes)?;
            any = true;
        }
        for made in made.iter().filter(|made| !small(made)) {
            m.drop_lines(made.object..made.object + made.bytes)?;
        }
        if any {
            m.order()?;
        }
        for made in made.iter().filter(|made| !small(made)) {
            self.command(m, Operation::Apply, |offload, command| {
                command.value = made.at;
                command.bytes = made.bytes;
                command.target = offload.address(made.object);
            })?;
        }
        self.command(m, Operation::Delete, |_, _| ())?;
        m.fence_commands()
    }

    /// A shadow copy by the engine.
    pub fn copy(&mut self, m: &mut Memory, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.command(m, Operation::Copy, |offload, command| {
            command.address = offload.address(from);
            command.bytes = bytes;
            command.target = offload.address(to);
        })
    }

    /// 8 bytes are stored by the engine.
    pub fn switch(&mut self, m: &mut Memory, target: u64, value: u64) -> Result<()> {
        self.command(m, Operation::Switch, |offload, command| {
            command.target = offload.address(target);
            command.value = value;
        })
    }

    /// Commands of this log have ended, and none of them was refused.
    pub fn finish(&mut self, m: &mut Memory) -> Result<()> {
        match &self.offload {
            Some(offload) => {
                let command = offload.command(Operation::Sync, self.thread);
                offload.engine.settle(&m.cpu, &command)
            }
            None => Ok(()),
        }
    }
}

/// The descriptor of a log.
pub(crate) fn descriptor(m: &Memory, place: u64, thread: u8) -> Result<Descriptor> {
    Descriptor::from_line(&m.line_direct(place)?).ok_or_else(|| {
        Error::Corrupt(format!(
            "the log of thread {thread} is damaged: its first line is no descriptor"
        ))
    })
}

/// A record that was found.
struct Found {
    header: Header,
    payload: Vec<u8>,
}

/// The record at an offset of a log, if it is the one that follows.
fn record(m: &Memory, place: u64, bytes: u64, at: u64, expected: &Header) -> Result<Option<Found>> {
    if at + LINE > bytes {
        return Ok(None);
    }
    let Some(header) = Header::from_line(&m.line_direct(place + at)?) else {
        return Ok(None);
    };
    let follows = header.generation == expected.generation
        && header.number == expected.number
        && header.previous == expected.previous
        && header.thread == expected.thread
        && u64::from(header.bytes) <= MAX_BYTES
        && next_record(at, header.bytes.into()) <= bytes;
    if !follows {
        return Ok(None);
    }
    let mut payload = vec![0; padded(header.bytes.into()) as usize];
    m.read_direct(place + at + LINE, &mut payload)?;
    let whole = crc32c::crc32c(&payload) == header.payload_crc;
    payload.truncate(header.bytes as usize);
    Ok(whole.then_some(Found { header, payload }))
}

/// Whether a log has anything to be recovered.
pub(crate) fn is_empty(m: &Memory, place: u64, bytes: u64, thread: u8) -> Result<bool> {
    let descriptor = descriptor(m, place, thread)?;
    Ok(
        descriptor.state == State::Open
            && scan(m, place, bytes, thread, &descriptor, 1)?.is_empty(),
    )
}

/// The valid records of a log, from the oldest on, at most so many.
fn scan(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    descriptor: &Descriptor,
    most: usize,
) -> Result<Vec<Found>> {
    let mut expected = Header {
        kind: Kind::Undo,
        pool: 0,
        thread,
        generation: descriptor.generation,
        object: 0,
        bytes: 0,
        number: 0,
        previous: 0,
        transaction: 0,
        payload_crc: 0,
    };
    let mut at = FIRST_RECORD;
    let mut all = Vec::new();
    while all.len() < most {
        let Some(found) = record(m, place, bytes, at, &expected)? else {
            break;
        };
        expected.previous = at;
        expected.number += 1;
        at = next_record(at, found.header.bytes.into());
        all.push(found);
    }
    Ok(all)
}

/// Brings a log to the end of its transaction, or to its start; returns its generation from then on. Nothing else uses the pool.
pub(crate) fn recover(
    m: &mut Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    objects: Range<u64>,
) -> Result<u64> {
    let descriptor = descriptor(m, place, thread)?;
    let most = match descriptor.state {
        State::Open => usize::MAX,
        State::Committed => descriptor.records as usize,
        State::Pending(_) => {
            let text = format!(
                "the log of thread {thread} waits for other devices: a pool has one device only"
            );
            return Err(Error::Corrupt(text));
        }
    };
    let mut all = scan(m, place, bytes, thread, &descriptor, most)?;
    let corrupt =
        |text: String| Error::Corrupt(format!("the log of thread {thread} is damaged: {text}"));
    if descriptor.state == State::Committed && all.len() < most {
        let text = format!("{most} records were committed, {} are whole", all.len());
        return Err(corrupt(text));
    }
    if descriptor.state == State::Open {
        all.retain(|found| found.header.kind != Kind::Redo);
        all.reverse();
    } else {
        all.retain(|found| found.header.kind == Kind::Redo);
    }
    for Found { header, payload } in &all {
        let end = header.object.checked_add(header.bytes.into());
        if header.object < objects.start || end.is_none_or(|end| end > objects.end) {
            let text = format!("a record of {} bytes at {:#x}", header.bytes, header.object);
            return Err(corrupt(text));
        }
        m.write(header.object, payload)?;
        m.flush(header.object..header.object + u64::from(header.bytes))?;
    }
    m.fence()?;
    let next = Descriptor {
        generation: descriptor.generation + 1,
        state: State::Open,
        records: 0,
        transaction: descriptor.transaction,
    };
    m.put_line(place, &next.to_line())?;
    m.fence()?;
    Ok(next.generation)
}
