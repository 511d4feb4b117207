// SPDX-License-Identifier: Apache-2.0

//! A model of the engine `nearpm`, written from its documentation. It executes one command after
//! another: the order that the conflict filter and the table maintain.

use spec::nearpm::{
    next_record, padded, payload_crc, Command, Descriptor, ErrorBit, Header, LogState, Operation,
    RecordKind, RecordWriter, ALIGN, FIRST_RECORD, LINE, MAX_BYTES, MIN_LOG_BYTES, THREADS,
};

/// Arguments of a command, the first one its operation.
pub type Arguments = [u64; 7];

/// A record of a log.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub at: u64,
    pub kind: RecordKind,
    /// Offset in the pool.
    pub object: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Log {
    pub generation: u64,
    pub committed: bool,
    pub next: u64,
    pub records: Vec<Record>,
}

#[derive(Clone, Debug)]
pub struct Pool {
    /// The command that has mapped it.
    pub map: Command,
    pub logs: Vec<Option<Log>>,
}

impl Pool {
    /// Offset of the log of a thread.
    pub fn log_at(&self, thread: u8) -> u64 {
        self.map.transaction + u64::from(thread) * self.map.value
    }

    /// Offset in the pool of a virtual range.
    pub fn offset(&self, address: u64, bytes: u64) -> Result<u64, ErrorBit> {
        let at = address.checked_sub(self.map.address);
        let end = at.and_then(|at| at.checked_add(bytes));
        match (at, end) {
            (Some(at), Some(end)) if end <= self.map.bytes => Ok(at),
            _ => Err(ErrorBit::OutOfPool),
        }
    }
}

/// The state of an engine, and the media that it can access.
pub struct Model {
    pub arena: Vec<u8>,
    pub pools: Vec<Option<Pool>>,
    /// Bytes of the media that may hold pools.
    media: u64,
}

/// The result of a command: its return value, if it has one.
pub type CommandResult = Result<Option<u64>, ErrorBit>;

impl Model {
    pub fn new(arena: u64, media: u64) -> Model {
        Model {
            arena: vec![0; arena as usize],
            pools: vec![None; spec::nearpm::POOLS.into()],
            media,
        }
    }

    pub fn read(&self, at: u64, bytes: u64) -> &[u8] {
        &self.arena[at as usize..(at + bytes) as usize]
    }

    pub fn write(&mut self, at: u64, data: &[u8]) {
        self.arena[at as usize..at as usize + data.len()].copy_from_slice(data);
    }

    fn line(&self, at: u64) -> [u8; LINE as usize] {
        let mut line = [0; LINE as usize];
        line.copy_from_slice(self.read(at, LINE));
        line
    }

    /// Executes a command.
    pub fn execute(&mut self, arguments: &Arguments) -> CommandResult {
        let command = Command::from_arguments(arguments).ok_or(ErrorBit::Invalid)?;
        well_formed(&command)?;
        let c = &command;
        if c.operation == Operation::PoolMap {
            return self.map(c);
        }
        let pool = self.pools[usize::from(c.pool)].as_mut();
        let pool = pool.ok_or(ErrorBit::Unmapped)?;
        if pool.map.process != c.process {
            return Err(ErrorBit::WrongProcess);
        }
        let base = pool.map.target;
        match c.operation {
            Operation::PoolUnmap => {
                self.pools[usize::from(c.pool)] = None;
                return Ok(None);
            }
            Operation::Copy => {
                let from = base + pool.offset(c.address, c.bytes)?;
                let to = base + pool.offset(c.target, c.bytes)?;
                if from.abs_diff(to) < c.bytes {
                    return Err(ErrorBit::Invalid);
                }
                let data = self.read(from, c.bytes).to_vec();
                self.write(to, &data);
                return Ok(None);
            }
            Operation::Switch => {
                let to = base + pool.offset(c.target, 8)?;
                self.write(to, &c.value.to_le_bytes());
                return Ok(None);
            }
            _ => {}
        }
        if u64::from(c.thread) >= pool.map.extra {
            return Err(ErrorBit::Unmapped);
        }
        let place = base + pool.log_at(c.thread);
        let (log_bytes, map) = (pool.map.value, pool.map);
        let thread = usize::from(c.thread);
        match (c.operation, &pool.logs[thread]) {
            (Operation::LogOpen, Some(_)) => return Err(ErrorBit::Busy),
            (Operation::LogOpen, None) => {
                pool.logs[thread] = Some(Log {
                    generation: c.value,
                    committed: false,
                    next: FIRST_RECORD,
                    records: Vec::new(),
                });
                self.describe(place, c.value, LogState::Open, 0, c.transaction);
                return Ok(None);
            }
            (Operation::Recover, None) => return self.recover_closed(c, place, &map),
            (_, None) => return Err(ErrorBit::Unmapped),
            _ => {}
        }
        let ranges = [(c.address, c.bytes), (c.target, c.bytes)];
        let significant_bits: &[usize] = match c.operation {
            Operation::Undo | Operation::Checkpoint => &[0],
            Operation::Redo => &[0, 1],
            Operation::Apply => &[1],
            _ => &[],
        };
        for n in significant_bits {
            pool.offset(ranges[*n].0, ranges[*n].1)?;
        }
        let log = pool.logs[thread].as_mut().ok_or(ErrorBit::Unmapped)?;
        match c.operation {
            Operation::Undo | Operation::Redo | Operation::Checkpoint => {
                if log.committed {
                    return Err(ErrorBit::Busy);
                }
                let next = next_record(log.next, c.bytes);
                if next > log_bytes {
                    return Err(ErrorBit::LogFull);
                }
                let (kind, object) = match c.operation {
                    Operation::Undo => (RecordKind::Undo, c.address),
                    Operation::Redo => (RecordKind::Redo, c.target),
                    _ => (RecordKind::Checkpoint, c.address),
                };
                let header = Header {
                    kind,
                    pool: c.pool,
                    thread: c.thread,
                    writer: RecordWriter::Engine,
                    generation: log.generation,
                    object: object - map.address,
                    bytes: c.bytes as u32,
                    number: log.records.len() as u32,
                    previous: log.records.last().map_or(0, |record| record.at),
                    transaction: c.transaction,
                    payload_crc: 0,
                };
                let at = log.next;
                log.records.push(Record {
                    at,
                    kind,
                    object: header.object,
                    bytes: c.bytes,
                });
                log.next = next;
                let payload = self.read(base + c.address - map.address, c.bytes).to_vec();
                let header = Header {
                    payload_crc: payload_crc(&payload),
                    ..header
                };
                let mut lines = payload;
                lines.resize(padded(c.bytes) as usize, 0);
                self.write(place + at + LINE, &lines);
                self.write(place + at, &header.to_line());
                Ok(Some(at))
            }
            Operation::Apply => {
                if c.value < FIRST_RECORD || next_record(c.value, c.bytes) > log.next {
                    return Err(ErrorBit::OutOfPool);
                }
                let payload = self.read(place + c.value + LINE, c.bytes).to_vec();
                self.write(base + c.target - map.address, &payload);
                Ok(None)
            }
            Operation::CommitRedo => {
                log.committed = true;
                let (generation, count) = (log.generation, log.records.len() as u32);
                self.describe(place, generation, LogState::Committed, count, c.transaction);
                Ok(None)
            }
            Operation::Commit | Operation::Abort if log.committed => Err(ErrorBit::Busy),
            Operation::Sync => Ok(None),
            operation => {
                let old = log.clone();
                let generation = log.generation.wrapping_add(1);
                *log = Log {
                    generation,
                    committed: false,
                    next: FIRST_RECORD,
                    records: Vec::new(),
                };
                let mut done = Vec::new();
                if matches!(operation, Operation::Abort | Operation::Recover) {
                    let redo = |r: &&Record| (r.kind == RecordKind::Redo) == old.committed;
                    done.extend(old.records.iter().filter(redo).copied());
                }
                if !old.committed {
                    done.reverse();
                }
                for record in &done {
                    let payload = self.read(place + record.at + LINE, record.bytes).to_vec();
                    self.write(base + record.object, &payload);
                }
                self.describe(place, generation, LogState::Open, 0, c.transaction);
                Ok(Some(match operation {
                    Operation::Abort | Operation::Recover => done.len() as u64,
                    _ => generation,
                }))
            }
        }
    }

    fn describe(
        &mut self,
        place: u64,
        generation: u64,
        state: LogState,
        records: u32,
        transaction: u64,
    ) {
        let descriptor = Descriptor {
            generation,
            state,
            records,
            transaction,
        };
        self.write(place, &descriptor.to_line());
    }

    fn map(&mut self, c: &Command) -> CommandResult {
        let fits = |begin: u64, bytes: u64, end: u64| {
            begin.checked_add(bytes).is_some_and(|last| last <= end)
        };
        let logs = c.value.checked_mul(c.extra);
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
        let own = &mut self.pools[usize::from(c.pool)];
        let same = |pool: &Pool| {
            Command {
                thread: 0,
                ..pool.map
            } == Command { thread: 0, ..*c }
        };
        match own {
            Some(pool) if same(pool) => Ok(None),
            Some(_) => Err(ErrorBit::Busy),
            None => {
                *own = Some(Pool {
                    map: *c,
                    logs: vec![None; THREADS.into()],
                });
                Ok(None)
            }
        }
    }

    /// Recovers a log that only the media hold.
    fn recover_closed(&mut self, c: &Command, place: u64, map: &Command) -> CommandResult {
        let old = Descriptor::from_line(&self.line(place)).ok_or(ErrorBit::Torn)?;
        let mut records = Vec::new();
        let (mut at, mut previous) = (FIRST_RECORD, 0);
        while at + LINE <= map.value {
            let header = Header::from_line(&self.line(place + at));
            let follows = |h: &Header| {
                h.generation == old.generation
                    && h.number == records.len() as u32
                    && h.previous == previous
                    && (h.pool, h.thread) == (c.pool, c.thread)
                    && next_record(at, h.bytes.into()) <= map.value
                    && h.object + u64::from(h.bytes) <= map.bytes
            };
            let Some(header) = header.filter(follows) else {
                break;
            };
            let payload = self.read(place + at + LINE, padded(header.bytes.into()));
            let whole = payload_crc(&payload[..header.bytes as usize]) == header.payload_crc;
            if !whole || old.state == LogState::Committed && records.len() as u32 == old.records {
                break;
            }
            let payload = payload[..header.bytes as usize].to_vec();
            records.push((header, payload));
            (previous, at) = (at, next_record(at, header.bytes.into()));
        }
        let committed = old.state == LogState::Committed;
        if committed && (records.len() as u32) < old.records {
            return Err(ErrorBit::Torn);
        }
        records.retain(|(header, _)| (header.kind == RecordKind::Redo) == committed);
        if !committed {
            records.reverse();
        }
        for (header, payload) in &records {
            self.write(map.target + header.object, payload);
        }
        let generation = old.generation.wrapping_add(1);
        self.describe(place, generation, LogState::Open, 0, c.transaction);
        Ok(Some(records.len() as u64))
    }
}

/// Refuses operations with impossible arguments.
fn well_formed(c: &Command) -> Result<(), ErrorBit> {
    use Operation::*;
    let copied = (1..=MAX_BYTES).contains(&c.bytes);
    let aligned = |values: &[u64]| values.iter().all(|value| value % ALIGN == 0);
    let rest = |given: [u64; 5], significant_bits: [bool; 5]| {
        given
            .iter()
            .zip(significant_bits)
            .all(|(value, significant_bits)| significant_bits || *value == 0)
    };
    let given = [c.address, c.bytes, c.target, c.value, c.extra];
    let (significant_bits, fits) = match c.operation {
        PoolMap => (
            [true; 5],
            aligned(&[c.address, c.bytes, c.target, c.transaction])
                && c.bytes > 0
                && c.value % LINE == 0
                && (MIN_LOG_BYTES..1 << 32).contains(&c.value)
                && (1..=u64::from(THREADS)).contains(&c.extra),
        ),
        LogOpen => ([false, false, false, true, false], true),
        Undo => ([true, true, false, false, false], copied),
        Checkpoint => (
            [true, true, false, false, false],
            copied && aligned(&[c.address, c.bytes]),
        ),
        Redo | Copy => ([true, true, true, false, false], copied),
        Apply => (
            [false, true, true, true, false],
            copied && c.value % LINE == 0,
        ),
        Switch => ([false, false, true, true, false], c.target % 8 == 0),
        PoolUnmap | Sync | Commit | CommitRedo | Delete | Abort | Recover => ([false; 5], true),
    };
    match rest(given, significant_bits) && fits {
        true => Ok(()),
        false => Err(ErrorBit::Invalid),
    }
}
