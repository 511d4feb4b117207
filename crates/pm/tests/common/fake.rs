// SPDX-License-Identifier: Apache-2.0

//! A fake device: persistent memory with a crash-consistency engine that follows the engine's
//! specification. Each access and command is executed, and persistent, at once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sim::{Bar, Counter, Device, Fault, HostPort, Mmio, Time};
use spec::nearpm::{
    next_record, padded, payload_crc, Command, Descriptor, ErrorBit, Header, LogState, Operation,
    RecordKind, RecordWriter, ReturnValue, ALIGN, COMMANDS, FIRST_RECORD, LINE, MAX_BYTES,
    MIN_LOG_BYTES,
};

pub type Image = Arc<Mutex<Vec<u8>>>;

/// All changes of the memory: time, place, and new bytes. A load is a change of no bytes: it comes
/// after all stores before it.
pub type Journal = Arc<Mutex<Option<Vec<(Time, u64, Vec<u8>)>>>>;

#[derive(Clone, Copy)]
struct FakeLog {
    generation: u64,
    records: u32,
    next: u64,
    previous: u64,
}

#[derive(Clone)]
struct FakePool {
    map: Command,
    logs: [Option<FakeLog>; 16],
}

/// The engine: everything that survives a power loss.
struct FakeEngine {
    image: Image,
    journal: Journal,
    pools: [Option<FakePool>; 16],
    now: Time,
}

type CommandResult = Result<u64, ErrorBit>;

impl FakeEngine {
    fn write(&mut self, at: u64, data: &[u8]) {
        let mut image = self.image.lock().unwrap();
        image[at as usize..at as usize + data.len()].copy_from_slice(data);
        if let Some(journal) = self.journal.lock().unwrap().as_mut() {
            journal.push((self.now, at, data.to_vec()));
        }
    }

    fn read(&self, at: u64, bytes: u64) -> Vec<u8> {
        self.image.lock().unwrap()[at as usize..(at + bytes) as usize].to_vec()
    }

    fn line(&self, at: u64) -> [u8; 64] {
        self.read(at, LINE).try_into().unwrap()
    }

    fn pool(&mut self, c: &Command) -> Result<&mut FakePool, ErrorBit> {
        match &mut self.pools[usize::from(c.pool)] {
            None => Err(ErrorBit::Unmapped),
            Some(pool) if pool.map.process != c.process => Err(ErrorBit::WrongProcess),
            Some(pool) => Ok(pool),
        }
    }

    /// The place on the media of a virtual range.
    fn place(&mut self, c: &Command, address: u64, bytes: u64) -> Result<u64, ErrorBit> {
        let map = self.pool(c)?.map;
        let offset = address
            .checked_sub(map.address)
            .ok_or(ErrorBit::OutOfPool)?;
        let end = offset.checked_add(bytes).ok_or(ErrorBit::OutOfPool)?;
        match end <= map.bytes {
            true => Ok(map.target + offset),
            false => Err(ErrorBit::OutOfPool),
        }
    }

    fn log(&mut self, c: &Command) -> Result<&mut FakeLog, ErrorBit> {
        let thread = usize::from(c.thread);
        self.pool(c)?.logs[thread]
            .as_mut()
            .ok_or(ErrorBit::Unmapped)
    }

    fn log_place(&mut self, c: &Command) -> Result<u64, ErrorBit> {
        let map = self.pool(c)?.map;
        Ok(map.target + map.transaction + u64::from(c.thread) * map.value)
    }

    fn record(&mut self, c: &Command, kind: RecordKind, from: u64, object: u64) -> CommandResult {
        if c.bytes == 0 || c.bytes > MAX_BYTES {
            return Err(ErrorBit::Invalid);
        }
        let map = self.pool(c)?.map;
        let place = self.log_place(c)?;
        let log = *self.log(c)?;
        let next = next_record(log.next, c.bytes);
        if next > map.value {
            return Err(ErrorBit::LogFull);
        }
        let payload = self.read(from, c.bytes);
        let header = Header {
            kind,
            pool: c.pool,
            thread: c.thread,
            writer: RecordWriter::Engine,
            generation: log.generation,
            object: object - map.target,
            bytes: c.bytes as u32,
            number: log.records,
            previous: log.previous,
            transaction: c.transaction,
            payload_crc: payload_crc(&payload),
        };
        let mut lines = payload;
        lines.resize(padded(c.bytes) as usize, 0);
        self.write(place + log.next + LINE, &lines);
        self.write(place + log.next, &header.to_line());
        *self.log(c)? = FakeLog {
            generation: log.generation,
            records: log.records + 1,
            next,
            previous: log.next,
        };
        Ok(log.next)
    }

    fn describe(&mut self, c: &Command, state: LogState, generation: u64) -> Result<(), ErrorBit> {
        let place = self.log_place(c)?;
        let records = match state {
            LogState::Open => 0,
            LogState::Committed | LogState::Pending(_) => self.log(c)?.records,
        };
        let transaction = c.transaction;
        let descriptor = Descriptor {
            generation,
            state,
            records,
            transaction,
        };
        self.write(place, &descriptor.to_line());
        Ok(())
    }

    /// Empties the log, with the next generation.
    fn empty(&mut self, c: &Command) -> CommandResult {
        let generation = self.log(c)?.generation + 1;
        self.describe(c, LogState::Open, generation)?;
        *self.log(c)? = FakeLog {
            generation,
            records: 0,
            next: FIRST_RECORD,
            previous: 0,
        };
        Ok(generation)
    }

    /// The records of a log; an error if one is incomplete.
    fn records(&mut self, c: &Command) -> Result<Vec<(Header, Vec<u8>)>, ErrorBit> {
        let place = self.log_place(c)?;
        let log = *self.log(c)?;
        let (mut at, mut all) = (FIRST_RECORD, Vec::new());
        for number in 0..log.records {
            let header = Header::from_line(&self.line(place + at)).ok_or(ErrorBit::Torn)?;
            let payload = self.read(place + at + LINE, header.bytes.into());
            let whole = payload_crc(&payload) == header.payload_crc;
            if header.generation != log.generation || header.number != number || !whole {
                return Err(ErrorBit::Torn);
            }
            at = next_record(at, header.bytes.into());
            all.push((header, payload));
        }
        Ok(all)
    }

    fn abort(&mut self, c: &Command) -> CommandResult {
        let target = self.pool(c)?.map.target;
        let mut done = 0;
        for (header, payload) in self.records(c)?.into_iter().rev() {
            if header.kind != RecordKind::Redo {
                self.write(target + header.object, &payload);
                done += 1;
            }
        }
        self.empty(c)?;
        Ok(done)
    }

    /// A closed log is recovered from the media, and stays closed.
    fn recover(&mut self, c: &Command) -> CommandResult {
        let closed = self.log(c).is_err();
        if closed {
            self.look(c)?;
        }
        let result = self.recover_open(c);
        if closed {
            let thread = usize::from(c.thread);
            self.pool(c)?.logs[thread] = None;
        }
        result
    }

    /// Reads the state of a log from its descriptor and the headers of its records.
    fn look(&mut self, c: &Command) -> Result<(), ErrorBit> {
        let place = self.log_place(c)?;
        let descriptor = Descriptor::from_line(&self.line(place)).ok_or(ErrorBit::Torn)?;
        let bytes = self.pool(c)?.map.value;
        let mut log = FakeLog {
            generation: descriptor.generation,
            records: 0,
            next: FIRST_RECORD,
            previous: 0,
        };
        while log.next + LINE <= bytes {
            let header = Header::from_line(&self.line(place + log.next));
            let follows = |header: &Header| {
                header.generation == log.generation
                    && header.number == log.records
                    && next_record(log.next, header.bytes.into()) <= bytes
            };
            let Some(header) = header.filter(follows) else {
                break;
            };
            log.previous = log.next;
            log.next = next_record(log.next, header.bytes.into());
            log.records += 1;
        }
        if descriptor.state != LogState::Open {
            log.records = descriptor.records;
        }
        let thread = usize::from(c.thread);
        self.pool(c)?.logs[thread] = Some(log);
        Ok(())
    }

    fn recover_open(&mut self, c: &Command) -> CommandResult {
        let place = self.log_place(c)?;
        self.log(c)?;
        let descriptor = Descriptor::from_line(&self.line(place)).ok_or(ErrorBit::Torn)?;
        if descriptor.state == LogState::Open {
            return self.abort(c);
        }
        let target = self.pool(c)?.map.target;
        let all = self.records(c)?;
        for (header, payload) in &all {
            if header.kind == RecordKind::Redo {
                self.write(target + header.object, payload);
            }
        }
        self.empty(c)?;
        Ok(all.len() as u64)
    }

    fn map(&mut self, c: &Command) -> CommandResult {
        let aligned = [c.address, c.bytes, c.target, c.transaction];
        if aligned.iter().any(|n| n % ALIGN != 0)
            || c.value % LINE != 0
            || c.value < MIN_LOG_BYTES
            || !(1..=16).contains(&c.extra)
        {
            return Err(ErrorBit::Invalid);
        }
        let media = self.image.lock().unwrap().len() as u64;
        if c.target + c.bytes > media || c.transaction + c.extra * c.value > c.bytes {
            return Err(ErrorBit::OutOfPool);
        }
        match &self.pools[usize::from(c.pool)] {
            Some(pool) if pool.map == *c => Ok(0),
            Some(pool) if pool.map.process != c.process => Err(ErrorBit::WrongProcess),
            Some(_) => Err(ErrorBit::Busy),
            None => {
                let logs = [None; 16];
                self.pools[usize::from(c.pool)] = Some(FakePool { map: *c, logs });
                Ok(0)
            }
        }
    }

    fn execute(&mut self, c: &Command) -> CommandResult {
        match c.operation {
            Operation::PoolMap => self.map(c),
            Operation::PoolUnmap => {
                self.pool(c)?;
                self.pools[usize::from(c.pool)] = None;
                Ok(0)
            }
            Operation::LogOpen => {
                if self.log(c).is_ok() {
                    return Err(ErrorBit::Busy);
                }
                let map = self.pool(c)?.map;
                if u64::from(c.thread) >= map.extra {
                    return Err(ErrorBit::Unmapped);
                }
                let log = FakeLog {
                    generation: c.value,
                    records: 0,
                    next: FIRST_RECORD,
                    previous: 0,
                };
                self.pool(c)?.logs[usize::from(c.thread)] = Some(log);
                self.describe(c, LogState::Open, c.value)?;
                Ok(0)
            }
            Operation::Sync => self.log(c).map(|_| 0),
            Operation::Undo | Operation::Checkpoint => {
                let kind = match c.operation {
                    Operation::Undo => RecordKind::Undo,
                    _ => RecordKind::Checkpoint,
                };
                if kind == RecordKind::Checkpoint
                    && (c.address % ALIGN != 0 || c.bytes % ALIGN != 0)
                {
                    return Err(ErrorBit::Invalid);
                }
                let from = self.place(c, c.address, c.bytes)?;
                self.record(c, kind, from, from)
            }
            Operation::Redo => {
                let from = self.place(c, c.address, c.bytes)?;
                let object = self.place(c, c.target, c.bytes)?;
                self.record(c, RecordKind::Redo, from, object)
            }
            Operation::Commit | Operation::Delete => self.empty(c),
            Operation::CommitRedo => {
                let generation = self.log(c)?.generation;
                self.describe(c, LogState::Committed, generation)?;
                Ok(0)
            }
            Operation::Apply => {
                let log = self.log_place(c)?;
                self.log(c)?;
                let header = Header::from_line(&self.line(log + c.value)).ok_or(ErrorBit::Torn)?;
                let target = self.place(c, c.target, c.bytes)?;
                let payload = self.read(log + c.value + LINE, c.bytes);
                let base = self.pool(c)?.map.target;
                if header.object + base != target || u64::from(header.bytes) != c.bytes {
                    return Err(ErrorBit::Invalid);
                }
                self.write(target, &payload);
                Ok(0)
            }
            Operation::Abort => self.abort(c),
            Operation::Recover => self.recover(c),
            Operation::Copy => {
                let from = self.place(c, c.address, c.bytes)?;
                let to = self.place(c, c.target, c.bytes)?;
                if c.bytes == 0 || c.bytes > MAX_BYTES || from.abs_diff(to) < c.bytes {
                    return Err(ErrorBit::Invalid);
                }
                let data = self.read(from, c.bytes);
                self.write(to, &data);
                Ok(0)
            }
            Operation::Switch => {
                let target = self.place(c, c.target, 8)?;
                if c.target % 8 != 0 {
                    return Err(ErrorBit::Invalid);
                }
                self.write(target, &c.value.to_le_bytes());
                Ok(0)
            }
        }
    }
}

/// The content of a line of the command page.
#[derive(Clone, Copy, Default)]
struct CommandLine {
    done: Option<Time>,
    result: u32,
    value: u64,
}

pub struct FakeDevice {
    now: Time,
    pub image: Image,
    pub journal: Journal,
    engine: FakeEngine,
    lines: [CommandLine; COMMANDS],
    latency: Time,
    powered: bool,
    answers: VecDeque<(Time, u32, Vec<u8>)>,
}

/// How long the host can't reuse a line after its command.
const BUSY: Time = Time::ns(1000);

impl FakeDevice {
    pub fn new(bytes: Vec<u8>, latency: Time) -> FakeDevice {
        let image = Arc::new(Mutex::new(bytes));
        let journal = Journal::default();
        FakeDevice {
            now: Time::ZERO,
            engine: FakeEngine {
                image: image.clone(),
                journal: journal.clone(),
                pools: Default::default(),
                now: Time::ZERO,
            },
            image,
            journal,
            lines: [CommandLine::default(); COMMANDS],
            latency,
            powered: true,
            answers: VecDeque::new(),
        }
    }

    fn command(&mut self, offset: u64, data: &[u8]) {
        let n = ((offset - super::PAGE) / LINE) as usize;
        assert_eq!((offset % LINE, data.len()), (0, 64), "one store a command");
        let line = self.lines[n];
        assert!(
            line.done.is_none_or(|at| at <= self.now),
            "line {n} is busy"
        );
        let long = |n: usize| u64::from_le_bytes(data[8 * n..8 * n + 8].try_into().unwrap());
        assert_eq!(long(0), 0);
        let command = Command::from_arguments(&std::array::from_fn(|n| long(n + 1)));
        let outcome = match command {
            Some(command) => self.engine.execute(&command),
            None => Err(ErrorBit::Invalid),
        };
        let (result, value) = match outcome {
            Ok(value) => (0, value),
            Err(refusal) => (ReturnValue::from(refusal).0, 0),
        };
        self.lines[n] = CommandLine {
            done: Some(self.now + BUSY),
            result,
            value,
        };
    }

    fn status(&self, offset: u64) -> Vec<u8> {
        let line = self.lines[((offset - super::PAGE) / LINE) as usize];
        let mut out = vec![0; LINE as usize];
        let state: u32 = match line.done {
            None => 0,
            Some(at) if at <= self.now => 2,
            Some(_) => 1,
        };
        out[..4].copy_from_slice(&state.to_le_bytes());
        if state == 2 {
            out[4..8].copy_from_slice(&line.result.to_le_bytes());
            out[8..16].copy_from_slice(&line.value.to_le_bytes());
        }
        out
    }

    fn take(&mut self, mmio: Mmio) {
        self.engine.now = self.now;
        match mmio {
            Mmio::Write { .. } if !self.powered => {}
            Mmio::Write {
                bar: Bar::Control,
                offset,
                data,
            } => self.command(offset, &data),
            Mmio::Write { offset, data, .. } => self.engine.write(offset, &data),
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } => {
                let data = match bar {
                    Bar::Control => {
                        let line = offset - offset % LINE;
                        let at = (offset - line) as usize;
                        self.status(line)[at..at + len as usize].to_vec()
                    }
                    _ => self.engine.read(offset, len.into()),
                };
                if let Some(journal) = self.journal.lock().unwrap().as_mut() {
                    journal.push((self.now, 0, Vec::new()));
                }
                self.answers.push_back((self.now + self.latency, tag, data));
            }
        }
    }
}

impl Device for FakeDevice {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        loop {
            let arrival = host.next_mmio().map(|t| t.max(self.now));
            let answer = self.answers.front().map(|a| a.0);
            let next = [arrival, answer].into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if answer.is_some_and(|due| due <= self.now) {
                if let Some((_, tag, data)) = self.answers.pop_front() {
                    host.mmio_data(self.now, tag, self.powered.then_some(data));
                }
                continue;
            }
            if let Some(mmio) = host.mmio(self.now) {
                self.take(mmio);
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn idle(&self) -> bool {
        self.answers.is_empty()
    }

    fn power_off(&mut self) {
        self.powered = false;
        self.answers.clear();
        // Pools, logs and the memory stay.
        self.lines = [CommandLine::default(); COMMANDS];
    }

    fn power_on(&mut self) {
        self.powered = true;
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}
