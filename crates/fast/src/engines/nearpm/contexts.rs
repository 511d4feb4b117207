// SPDX-License-Identifier: Apache-2.0

//! Pools and logs: the state with which commands are checked and translated.

use spec::nearpm::{
    next_record, Command, Descriptor, ErrorBit, LogState, ObjectRange, Operation, RecordKind,
    Tracking, ALIGN, DEVICES, FIRST_RECORD, LINE, MAX_BYTES, MIN_LOG_BYTES, POOLS, RANGES,
    SEQUENCE_BITS, THREADS,
};

use super::bits::{Reader, Writer};
use super::peers::Peers;
use super::tracking::Epoch;
use super::unit_command::{UnitCommand, UNKNOWN};

/// Bits of a media address in saved state.
const MEDIA_BITS: u32 = 44;
/// Lowest bit of tracking in the arguments of pool_map, and the number of its bits.
const TRACKING: u32 = 8;
const TRACKING_BITS: u32 = 2;
/// Bytes of a log's context in saved state.
pub(super) const LOG_BYTES: usize = 32;

/// `pool_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pool {
    mapped: bool,
    process: u16,
    /// Virtual address.
    base: u64,
    media: u64,
    bytes: u64,
    /// Offset of the logs, bytes of each thread's log, number of threads.
    logs: u64,
    log_bytes: u64,
    threads: u8,
    /// Records that the engine makes without commands.
    tracking: Tracking,
}

/// `log_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    open: bool,
    /// Closed by an error: dependent commands fail until the log is opened again.
    closed: bool,
    /// Closed, and the descriptor does not hold the required number of records.
    inconsistent: bool,
    /// commit_redo has been accepted.
    committed: bool,
    /// A commit of several devices has been accepted, and its records are not deleted yet.
    pending: Option<PendingCommit>,
    generation: u64,
    /// Offsets of the next record and of the last one; 0: there is none.
    next: u32,
    last: u32,
    records: u32,
}

/// A transaction of several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingCommit {
    pub(super) sequence: u64,
    /// One bit for each participating device.
    pub(super) participants: u8,
}

impl Log {
    /// An empty log of a generation.
    fn empty(generation: u64) -> Log {
        Log {
            open: true,
            generation,
            next: FIRST_RECORD as u32,
            ..Log::default()
        }
    }
}

/// The effect of a valid command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    /// It has ended.
    Ended,
    /// A unit executes it.
    Unit(UnitCommand),
}

/// All pools and logs.
pub(super) struct Contexts {
    /// Bytes of the media where pools may be.
    media: u64,
    pub(super) pools: Vec<Pool>,
    pub(super) logs: Vec<Log>,
    /// The present epoch of each tracked pool. It is not saved.
    epochs: Vec<Epoch>,
}

/// Arguments that an operation uses in addition to the transaction: address, bytes, target, value,
/// extra.
fn used_arguments(operation: Operation) -> [bool; 5] {
    use Operation::*;
    match operation {
        PoolMap => [true; 5],
        Commit => [false, false, false, true, false],
        PoolUnmap | Sync | CommitRedo | Delete | Abort | Recover | UndoRanges
        | CheckpointRanges => [false; 5],
        LogOpen => [false, false, false, true, false],
        Undo | Checkpoint => [true, true, false, false, false],
        Redo | Copy => [true, true, true, false, false],
        Apply => [false, true, true, true, false],
        Switch => [false, false, true, true, false],
    }
}

/// Lengths and alignments are valid for the operation.
fn well_formed(command: &Command) -> bool {
    use Operation::*;
    let Command {
        address,
        bytes,
        target,
        transaction,
        value,
        extra,
        ..
    } = *command;
    let given = [address, bytes, target, value, extra];
    let used = used_arguments(command.operation);
    if given
        .iter()
        .zip(used)
        .any(|(value, used)| *value != 0 && !used)
    {
        return false;
    }
    let aligned = |value: u64, to: u64| value % to == 0;
    let copied = (1..=MAX_BYTES).contains(&bytes);
    match command.operation {
        PoolMap => {
            [address, bytes, target, transaction]
                .iter()
                .all(|v| aligned(*v, ALIGN))
                && aligned(value, LINE)
                && (MIN_LOG_BYTES..1 << 32).contains(&value)
                && Tracking::from_extra(extra).is_some()
                && bytes > 0
        }
        Undo | Redo | Copy => copied,
        Apply => copied && aligned(value, LINE),
        Checkpoint => copied && aligned(bytes, ALIGN) && aligned(address, ALIGN),
        CheckpointRanges => {
            let mut ranges = command.used_ranges().iter();
            ranges.all(|range| aligned(range.offset | range.bytes, ALIGN))
        }
        Switch => aligned(target, 8),
        Commit => value < 1 << DEVICES && (value == 0 || transaction < 1 << SEQUENCE_BITS),
        _ => true,
    }
}

impl Pool {
    /// Media address of a thread's log.
    fn log(&self, thread: u8) -> u64 {
        self.media + self.logs + u64::from(thread) * self.log_bytes
    }

    /// A byte of the media belongs to the pool.
    fn contains(&self, at: u64) -> bool {
        self.mapped && (self.media..self.media + self.bytes).contains(&at)
    }

    /// A byte of the pool belongs to its logs.
    fn is_in_logs(&self, at: u64) -> bool {
        let logs = self.log(0)..self.log(self.threads);
        logs.contains(&at)
    }

    /// Media address of a range.
    fn place(&self, address: u64, bytes: u64) -> Result<u64, ErrorBit> {
        let offset = address.checked_sub(self.base);
        let inside = offset.filter(|at| at.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        inside.map(|at| self.media + at).ok_or(ErrorBit::OutOfPool)
    }
}

impl Contexts {
    /// No pools are mapped; pools may be in the first `media` bytes.
    pub(super) fn new(media: u64) -> Contexts {
        Contexts {
            media,
            pools: vec![Pool::default(); POOLS.into()],
            logs: vec![Log::default(); usize::from(POOLS) * usize::from(THREADS)],
            epochs: vec![Epoch::default(); POOLS.into()],
        }
    }

    /// The tracked pool with a line of the media, if stores to the line need records.
    fn tracked_pool(&self, line: u64) -> Option<usize> {
        let at = line * LINE;
        let number = self.pools.iter().position(|pool| pool.contains(at))?;
        let pool = &self.pools[number];
        let log = &self.logs[number * usize::from(THREADS)];
        let makes_records = log.open && !log.committed && log.pending.is_none();
        let is_tracked = pool.tracking != Tracking::Disabled && !pool.is_in_logs(at);
        (makes_records && is_tracked).then_some(number)
    }

    /// A tracked pool is mapped.
    pub(super) fn has_tracked_pool(&self) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.mapped && pool.tracking != Tracking::Disabled)
    }

    /// Stores to a line of the media need records.
    pub(super) fn is_tracked(&self, line: u64) -> bool {
        self.tracked_pool(line).is_some()
    }

    /// The tracked pool, if any, whose present epoch has no record of a line of the media.
    pub(super) fn pool_without_record(&self, line: u64) -> Option<usize> {
        let found = self.tracked_pool(line);
        found.filter(|number| !self.epochs[*number].has(line))
    }

    /// Adds the internal record of a line to the log of a tracked pool. If it has no room, the
    /// command fails as one whose record was accepted and could not be made.
    pub(super) fn record_line(&mut self, number: usize, line: u64) -> UnitCommand {
        let pool = &self.pools[number];
        let log = &mut self.logs[number * usize::from(THREADS)];
        let epoch = &mut self.epochs[number];
        let next = next_record(log.next.into(), LINE);
        let fits = next <= pool.log_bytes && !epoch.is_full();
        let source = line * LINE;
        let base = pool.log(0);
        let job = UnitCommand {
            operation: match pool.tracking.record_kind() {
                Some(RecordKind::Checkpoint) => Operation::Checkpoint,
                _ => Operation::Undo,
            },
            log: (number as u8) << 4,
            source,
            target: if fits {
                base + u64::from(log.next)
            } else {
                base
            },
            bytes: if fits { LINE as u32 } else { 0 },
            object: source - pool.media,
            value: log.generation,
            transaction: 0,
            number: log.records,
            previous: log.last,
            base,
            pool: pool.media,
            pool_last: pool.media + pool.bytes - 1,
            more: [0; RANGES - 1],
        };
        if fits {
            (log.last, log.next) = (log.next, next as u32);
            log.records += 1;
            epoch.add(line);
        } else {
            epoch.give_up();
        }
        job
    }

    /// A unit could not execute a command of a thread. `log_inconsistent`: the descriptor could not
    /// be updated either.
    pub(super) fn close(&mut self, log: u8, log_inconsistent: bool) {
        let log = &mut self.logs[usize::from(log)];
        (log.open, log.pending) = (false, None);
        log.closed = true;
        log.inconsistent |= log_inconsistent;
    }

    /// There is a pool.
    pub(super) fn is_used(&self) -> bool {
        self.pools.iter().any(|pool| pool.mapped)
    }

    /// A commit of several devices has ended on this device. Returns the transaction if the log is
    /// unchanged since.
    pub(super) fn completed_commit(&self, job: &UnitCommand) -> Option<PendingCommit> {
        let log = &self.logs[usize::from(job.log)];
        log.pending.filter(|_| log.generation == job.value)
    }

    /// The transaction of several devices of a log that is not complete on all devices.
    pub(super) fn pending(&self, log: u8) -> Option<PendingCommit> {
        self.logs[usize::from(log)].pending
    }

    /// The transaction is complete on all devices: the log becomes empty. Returns the descriptor's
    /// address and new contents.
    pub(super) fn delete(&mut self, log: u8, sequence: u64) -> (u64, Descriptor) {
        let pool = self.pools[usize::from(log >> 4)];
        let own = &mut self.logs[usize::from(log)];
        *own = Log::empty(own.generation.wrapping_add(1));
        let descriptor = Descriptor {
            generation: own.generation,
            state: LogState::Open,
            records: 0,
            transaction: sequence,
        };
        (pool.log(log & 15), descriptor)
    }

    /// Accepts a command; `None`: the operation is unknown.
    pub(super) fn accept_command(
        &mut self,
        command: Option<Command>,
        peers: &Peers,
    ) -> Result<Accepted, ErrorBit> {
        use Operation::*;
        let Some(command) = command.filter(well_formed) else {
            return Err(ErrorBit::Invalid);
        };
        let Command {
            operation,
            thread,
            process,
            address,
            bytes,
            target,
            value,
            transaction,
            ..
        } = command;
        let number = usize::from(command.pool);
        let log_number = command.pool << 4 | thread;
        if operation == PoolMap {
            return self.map(&command);
        }
        if operation == Commit && value != 0 {
            let own = peers.device().is_some_and(|own| value >> own & 1 == 1);
            let other = self.pools[number];
            let tracked = other.mapped && other.tracking != Tracking::Disabled;
            if !own || tracked || transaction <= peers.own_progress(log_number) {
                return Err(ErrorBit::Invalid);
            }
        }
        let pool = self.pools[number];
        if !pool.mapped {
            return Err(ErrorBit::Unmapped);
        }
        if pool.process != process {
            return Err(ErrorBit::WrongProcess);
        }
        let mut job = UnitCommand {
            operation,
            log: log_number,
            source: 0,
            target: 0,
            bytes: bytes as u32,
            object: 0,
            value: 0,
            transaction,
            number: 0,
            previous: 0,
            base: 0,
            pool: pool.media,
            pool_last: pool.media + pool.bytes - 1,
            more: [0; RANGES - 1],
        };
        match operation {
            PoolUnmap => {
                self.pools[number].mapped = false;
                self.close_all(number);
                return Ok(Accepted::Unit(job));
            }
            Copy => {
                job.source = pool.place(address, bytes)?;
                job.target = pool.place(target, bytes)?;
                if address.abs_diff(target) < bytes {
                    return Err(ErrorBit::Invalid);
                }
                return Ok(Accepted::Unit(job));
            }
            Switch => {
                if self.logs[usize::from(log_number)].closed {
                    return Err(ErrorBit::Unmapped);
                }
                job.target = pool.place(target, 8)?;
                job.value = value;
                return Ok(Accepted::Unit(job));
            }
            _ => {}
        }
        // All other operations are about the thread's log.
        if thread >= pool.threads {
            return Err(ErrorBit::Unmapped);
        }
        job.base = pool.log(thread);
        let log = &mut self.logs[usize::from(log_number)];
        match operation {
            LogOpen if log.open => return Err(ErrorBit::Busy),
            LogOpen | Recover => {}
            _ if !log.open => return Err(ErrorBit::Unmapped),
            _ => {}
        }
        // A log in this state accepts only operations that do not need its records.
        let is_busy = match operation {
            Undo | Redo | Checkpoint | UndoRanges | CheckpointRanges | Commit | Abort => {
                log.committed || log.pending.is_some()
            }
            Apply | CommitRedo | Delete => log.pending.is_some(),
            _ => false,
        };
        job.value = log.generation;
        job.object = pool.log_bytes;
        match operation {
            LogOpen => {
                *log = Log::empty(value);
                job.value = value;
                self.epochs[number].begin();
            }
            Sync => {}
            Undo | Redo | Checkpoint => {
                job.source = pool.place(address, bytes)?;
                let object = match operation {
                    Redo => pool.place(target, bytes)?,
                    _ => job.source,
                };
                if is_busy {
                    return Err(ErrorBit::Busy);
                }
                let next = next_record(log.next.into(), bytes);
                if next > pool.log_bytes {
                    return Err(ErrorBit::LogFull);
                }
                job.object = object - pool.media;
                job.target = job.base + u64::from(log.next);
                (job.number, job.previous) = (log.records, log.last);
                log.last = log.next;
                log.next = next as u32;
                log.records += 1;
            }
            UndoRanges | CheckpointRanges => {
                let ranges = command.used_ranges();
                let inside = |range: &ObjectRange| range.offset + range.bytes <= pool.bytes;
                if !ranges.iter().all(inside) {
                    return Err(ErrorBit::OutOfPool);
                }
                if is_busy {
                    return Err(ErrorBit::Busy);
                }
                let mut last = 0;
                let next = ranges.iter().fold(u64::from(log.next), |at, range| {
                    last = at;
                    next_record(at, range.bytes)
                });
                if next > pool.log_bytes {
                    return Err(ErrorBit::LogFull);
                }
                job.set_ranges(ranges);
                job.target = job.base + u64::from(log.next);
                (job.number, job.previous) = (log.records, log.last);
                (log.last, log.next) = (last as u32, next as u32);
                log.records += ranges.len() as u32;
            }
            Apply => {
                job.target = pool.place(target, bytes)?;
                job.object = job.target - pool.media;
                let inside = value >= FIRST_RECORD
                    && value < u64::from(log.next)
                    && next_record(value, bytes) <= log.next.into();
                if !inside {
                    return Err(ErrorBit::OutOfPool);
                }
                if is_busy {
                    return Err(ErrorBit::Busy);
                }
                job.source = job.base + value;
                job.number = log.records;
            }
            _ if is_busy => return Err(ErrorBit::Busy),
            CommitRedo => {
                job.number = log.records;
                log.committed = true;
            }
            Commit if value != 0 => {
                (job.number, job.bytes) = (log.records, value as u32);
                log.pending = Some(PendingCommit {
                    sequence: transaction,
                    participants: value as u8,
                });
            }
            Recover if !log.open => {
                // The descriptor holds the log's state.
                (job.value, job.number, job.previous) = (0, UNKNOWN, log.inconsistent.into());
            }
            _ => {
                (job.number, job.previous) = (log.records, log.last);
                *log = Log::empty(log.generation.wrapping_add(1));
                self.epochs[number].begin();
            }
        }
        Ok(Accepted::Unit(job))
    }

    fn close_all(&mut self, pool: usize) {
        let threads = usize::from(THREADS);
        let logs = &mut self.logs[pool * threads..(pool + 1) * threads];
        logs.fill(Log::default());
    }

    fn map(&mut self, command: &Command) -> Result<Accepted, ErrorBit> {
        let found = Tracking::from_extra(command.extra);
        let (threads, tracking) = found.ok_or(ErrorBit::Invalid)?;
        let pool = Pool {
            mapped: true,
            process: command.process,
            base: command.address,
            media: command.target,
            bytes: command.bytes,
            logs: command.transaction,
            log_bytes: command.value,
            threads,
            tracking,
        };
        let fits = |begin: u64, bytes: u64, end: u64| {
            let last = begin.checked_add(bytes);
            last.is_some_and(|last| last <= end)
        };
        let logs = command.value.checked_mul(threads.into());
        let inside = fits(pool.media, pool.bytes, self.media)
            && fits(pool.base, pool.bytes - 1, u64::MAX)
            && logs.is_some_and(|logs| fits(pool.logs, logs, pool.bytes));
        if !inside {
            return Err(ErrorBit::OutOfPool);
        }
        let number = usize::from(command.pool);
        let others =
            (self.pools.iter().enumerate()).filter(|(n, other)| *n != number && other.mapped);
        let end = pool.media + pool.bytes;
        let overlaps = |other: &Pool| other.media < end && pool.media < other.media + other.bytes;
        if others.into_iter().any(|(_, other)| overlaps(other)) {
            return Err(ErrorBit::Busy);
        }
        let own = &mut self.pools[number];
        if own.mapped && *own != pool {
            return Err(ErrorBit::Busy);
        }
        if !own.mapped {
            *own = pool;
            self.close_all(number);
        }
        Ok(Accepted::Ended)
    }
}

impl Pool {
    /// The saved line.
    pub(super) fn to_line(self) -> [u8; 64] {
        let mut line = [0; 64];
        let mut bits = Writer::new(&mut line);
        for (value, width) in [
            (self.tracking.bits() >> TRACKING, TRACKING_BITS),
            (self.threads.into(), 5),
            (self.log_bytes, MEDIA_BITS),
            (self.logs, MEDIA_BITS),
            (self.bytes, MEDIA_BITS),
            (self.media, MEDIA_BITS),
            (self.base, 64),
            (self.process.into(), 16),
            (self.mapped.into(), 1),
        ] {
            bits.write(value, width);
        }
        line
    }

    pub(super) fn from_line(line: &[u8]) -> Pool {
        let mut bits = Reader::new(line);
        // Only valid values are saved.
        let tracking = Tracking::from_extra(bits.read(TRACKING_BITS) << TRACKING | 1);
        Pool {
            tracking: tracking.map_or(Tracking::Disabled, |(_, tracking)| tracking),
            threads: bits.read(5) as u8,
            log_bytes: bits.read(MEDIA_BITS),
            logs: bits.read(MEDIA_BITS),
            bytes: bits.read(MEDIA_BITS),
            media: bits.read(MEDIA_BITS),
            base: bits.read(64),
            process: bits.read(16) as u16,
            mapped: bits.read(1) == 1,
        }
    }
}

impl Log {
    /// The saved half line.
    pub(super) fn to_bytes(self) -> [u8; LOG_BYTES] {
        let mut line = [0; LOG_BYTES];
        let mut bits = Writer::new(&mut line);
        for (value, width) in [
            (self.records.into(), 32),
            (self.last.into(), 32),
            (self.next.into(), 32),
            (self.generation, 64),
            (self.committed.into(), 1),
            (self.pending.map_or(0, |p| p.sequence), SEQUENCE_BITS),
            (self.pending.map_or(0, |p| p.participants.into()), 4),
            (self.pending.is_some().into(), 1),
            (self.open.into(), 1),
            (self.closed.into(), 1),
            (self.inconsistent.into(), 1),
        ] {
            bits.write(value, width);
        }
        line
    }

    pub(super) fn from_bytes(line: &[u8]) -> Log {
        let mut bits = Reader::new(line);
        let (records, last, next) = (bits.read(32), bits.read(32), bits.read(32));
        let (generation, committed) = (bits.read(64), bits.read(1) == 1);
        let pending = PendingCommit {
            sequence: bits.read(SEQUENCE_BITS),
            participants: bits.read(4) as u8,
        };
        // A closed log has no transaction, whatever the other bits are; in the RTL only the last
        // bit marks it.
        let is_pending = bits.read(1) == 1;
        let open = bits.read(1) == 1;
        let closed = bits.read(1) == 1;
        let inconsistent = bits.read(1) == 1;
        Log {
            closed,
            inconsistent,
            records: records as u32,
            last: last as u32,
            next: next as u32,
            generation,
            committed,
            pending: (open && is_pending).then_some(pending),
            open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts with a tracked pool of 64 KiB at 1 MiB, whose log has room for `records` records.
    fn tracked(records: u64) -> Contexts {
        let mut contexts = Contexts::new(1 << 24);
        let (peers, map) = (Peers::new(), Command::new(Operation::PoolMap, 1, 3, 0));
        let map = Command {
            bytes: 1 << 16,
            target: 1 << 20,
            transaction: 1 << 15,
            value: FIRST_RECORD + 128 * records,
            extra: Tracking::Undo.bits() | 1,
            ..map
        };
        let open = Command::new(Operation::LogOpen, 1, 3, 0);
        for command in [map, open] {
            assert!(contexts.accept_command(Some(command), &peers).is_ok());
        }
        contexts
    }

    #[test]
    fn tracked_pool_is_saved_with_its_tracking_in_the_lowest_bits() {
        for (tracking, bits) in [
            (Tracking::Disabled, 0),
            (Tracking::Undo, 1),
            (Tracking::Checkpoint, 3),
        ] {
            let pool = Pool {
                tracking,
                threads: 1,
                log_bytes: (1 << MEDIA_BITS) - 64,
                process: u16::MAX,
                mapped: true,
                ..Pool::default()
            };
            let line = pool.to_line();
            assert_eq!(line[0], bits | 1 << 2);
            // 264 bits; the sets of commands are at 54 and 56.
            assert_eq!((line[32], &line[33..]), (0xFF, &[0; 31][..]));
            assert_eq!(Pool::from_line(&line), pool);
        }
    }

    #[test]
    fn tracked_lines_get_one_record_each_until_the_next_epoch() {
        let mut contexts = tracked(3);
        let line = (1 << 20) / LINE;
        let record = |contexts: &mut Contexts, line: u64| {
            let pool = contexts.pool_without_record(line)?;
            Some(contexts.record_line(pool, line))
        };
        // Before the pool, in its log, after it.
        for other in [line - 1, line + (1 << 15) / LINE, line + (1 << 16) / LINE] {
            assert_eq!(record(&mut contexts, other), None, "{other}");
        }
        for generation in [0, 1] {
            for n in 0..3u64 {
                let made = record(&mut contexts, line + 5 * n).unwrap();
                assert_eq!((made.bytes, made.value), (64, generation));
                assert_eq!((made.number, made.object), (n as u32, 320 * n));
                assert_eq!(made.target - made.base, FIRST_RECORD + 128 * n);
                assert_eq!(record(&mut contexts, line + 5 * n), None);
            }
            let full = record(&mut contexts, line + 1).unwrap();
            assert_eq!((full.bytes, full.target), (0, full.base));
            // Nothing more until the next epoch.
            assert!(contexts.is_tracked(line + 2));
            assert_eq!(record(&mut contexts, line + 2), None);
            let abort = Command::new(Operation::Abort, 1, 3, 0);
            let accepted = contexts.accept_command(Some(abort), &Peers::new());
            let Ok(Accepted::Unit(job)) = accepted else {
                panic!("{accepted:?}");
            };
            assert_eq!((job.number, job.value), (3, generation));
        }
        contexts.close(3 << 4, false);
        assert_eq!(record(&mut contexts, line), None);
    }

    #[test]
    fn log_context_restores_a_closed_log_as_not_pending() {
        let pending = Some(PendingCommit {
            sequence: 5,
            participants: 0b11,
        });
        for open in [false, true] {
            let log = Log {
                pending,
                open,
                ..Log::empty(7)
            };
            let again = Log::from_bytes(&log.to_bytes());
            assert_eq!((again.generation, again.open), (7, open));
            assert_eq!(again.pending.is_some(), open);
        }
    }
}
