// SPDX-License-Identifier: Apache-2.0

//! A unit executes one command at a time (hw/engine/nearpm, nearpm_unit).
//!
//! Small records are written as they lie in the log, all of a command at once. A larger one is its
//! payload, then its header. Abort and recover first read all records and change
//! nothing unless all are valid; the descriptor is written last. So each command can start again
//! after an interruption at any point. If the number of records is unknown, the unit searches for
//! records after the first missing header. A command that fails writes the required number of
//! records into the descriptor.

use spec::nearpm::{
    next_record, padded, payload_crc, Descriptor, ErrorBit, Header, LogState, Operation,
    RecordKind, RecordWriter, FIRST_RECORD, HEADER_BYTES, INCOMPLETE, LINE, MAX_BYTES,
};

use super::super::ports::EnginePorts;
use super::mover::{Errors, MoveLimits, Mover, ReadRate, NUMBERS};
use super::unit_command::{NewRecord, UnitCommand, UNKNOWN};

/// Cycles from a command to its first move, and from its last one to its end.
const BEGIN: u64 = 2;
const END: u64 = 2;
/// Most bytes of a small record, which is a burst with its header. A command with small records
/// alone reads all ranges at once and writes each with its header.
const MAX_SMALL_BYTES: u32 = 448;
/// Maximum number of `MAX_BYTES` pieces of a log that are searched for another record.
const MAX_SEEKS: u32 = 64;
/// Wake-up numbers, in the bits after the unit's number.
pub(super) const BEGINS: u32 = 0;
pub(super) const ENDS: u32 = 1;

/// The current step of a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitStep {
    Idle,
    Begin,
    /// Makes small records.
    MakeRecords,
    /// Copies the payload, or the bytes of a copy.
    Copy,
    WriteHeader,
    WriteDescriptor,
    WriteSwitch,
    /// Recover: reads the descriptor.
    ReadDescriptor,
    /// Reads the header of a record.
    ReadHeader,
    /// First pass: reads the payload.
    ReadPayload,
    /// Second pass: copies the payload to the object.
    WriteBack,
    /// Searches for another record.
    Seek,
    /// The command has failed: writes the descriptor.
    MarkFailure,
    End,
}

/// The position of abort, recover or apply among the records.
#[derive(Clone, Copy, Default)]
struct LogWalk {
    /// From the first record onwards; otherwise from the last one backwards.
    forward: bool,
    /// Second pass.
    write: bool,
    /// Redo records are applied; otherwise the others are written back.
    committed: bool,
    generation: u64,
    /// Offset of the current record, and its expected number.
    at: u32,
    number: u32,
    /// Forwards: offset of the previous record.
    previous: u32,
    /// Backwards: offset of the record after this one; 0: there is none.
    next: u32,
    /// Number of records written back or applied.
    count: u32,
    /// The required number of records, if known.
    limit: Option<u32>,
    /// Pieces that have been searched.
    seeks: u32,
}

/// The result of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandResult {
    pub(super) command: u8,
    pub(super) job: UnitCommand,
    pub(super) result: u32,
    pub(super) value: u64,
    /// The required number of records could not be written into the descriptor.
    pub(super) log_inconsistent: bool,
}

/// Its commands make records.
fn makes_records(operation: Operation) -> bool {
    use Operation::*;
    matches!(
        operation,
        Undo | Redo | Checkpoint | UndoRanges | CheckpointRanges
    )
}

/// The header of a record.
fn header(job: &UnitCommand, record: &NewRecord, payload_crc: u32) -> Header {
    let kind = match job.operation {
        Operation::Undo | Operation::UndoRanges => RecordKind::Undo,
        Operation::Redo => RecordKind::Redo,
        _ => RecordKind::Checkpoint,
    };
    Header {
        kind,
        pool: job.log >> 4,
        thread: job.log & 15,
        writer: RecordWriter::Engine,
        generation: job.value,
        object: record.object,
        bytes: record.bytes,
        number: record.number,
        previous: record.previous.into(),
        transaction: job.transaction,
        payload_crc,
    }
}

pub(super) struct Unit {
    /// The unit's number.
    number: u32,
    command: u8,
    job: Option<UnitCommand>,
    step: UnitStep,
    walk: LogWalk,
    /// The record that is being made.
    new_record: Option<NewRecord>,
    header: Option<Header>,
    /// Number of records that the log must have from now on if the command fails.
    required_records: Option<u32>,
    log_inconsistent: bool,
    result: u32,
    mover: Mover,
}

impl Unit {
    /// A unit.
    pub(super) fn new(number: u32, limits: MoveLimits) -> Unit {
        Unit {
            number,
            command: 0,
            job: None,
            step: UnitStep::Idle,
            walk: LogWalk::default(),
            new_record: None,
            header: None,
            required_records: None,
            log_inconsistent: false,
            result: 0,
            mover: Mover::new(number * NUMBERS, limits),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.step == UnitStep::Idle
    }

    /// The rate of its reads, which other units may share.
    pub(super) fn rate(&self) -> ReadRate {
        self.mover.rate
    }

    pub(super) fn set_rate(&mut self, rate: ReadRate) {
        self.mover.rate = rate;
    }

    /// It executes the command, or a part of it.
    pub(super) fn executes(&self, command: u8) -> bool {
        !self.is_idle() && self.command == command
    }

    /// The command's result will contain the errors of another part as well.
    pub(super) fn add_errors(&mut self, result: u32) {
        self.result |= result;
    }

    /// Starts a command, or a part of it, after `delay` cycles.
    pub(super) fn begin(
        &mut self,
        command: u8,
        job: UnitCommand,
        delay: u64,
        ports: &mut EnginePorts,
    ) {
        self.command = command;
        self.job = Some(job);
        self.step = UnitStep::Begin;
        self.result = 0;
        self.header = None;
        self.log_inconsistent = false;
        self.required_records = match job.operation {
            operation if makes_records(operation) => Some(INCOMPLETE),
            Operation::Abort => Some(job.number).filter(|records| *records != 0),
            _ => None,
        };
        self.walk = LogWalk {
            generation: job.value,
            ..LogWalk::default()
        };
        ports.wake(ports.now() + delay + BEGIN, self.number << 1 | BEGINS);
    }

    /// A wake-up is due. Returns the command's result if it has ended.
    pub(super) fn wake(&mut self, about: u32, ports: &mut EnginePorts) -> Option<CommandResult> {
        let job = self.job.expect("a unit wakes up for its command");
        match about {
            BEGINS => {
                self.start_command(&job, ports);
                None
            }
            _ => {
                self.step = UnitStep::Idle;
                self.job = None;
                let value = match self.result {
                    0 => self.return_value(&job),
                    _ => 0,
                };
                Some(CommandResult {
                    command: self.command,
                    job,
                    result: self.result,
                    value,
                    log_inconsistent: self.log_inconsistent,
                })
            }
        }
    }

    /// The return value of a successful command.
    fn return_value(&self, job: &UnitCommand) -> u64 {
        use Operation::*;
        match job.operation {
            operation if makes_records(operation) => job.target - job.base,
            // A log of several devices keeps its generation for now.
            Commit if job.bytes != 0 => job.value,
            Commit | Delete => job.value.wrapping_add(1),
            Abort | Recover => self.walk.count.into(),
            _ => 0,
        }
    }

    /// A burst has ended. Its number counts from the unit's first one.
    pub(super) fn burst_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        self.mover.burst_answered(burst as usize, ok, ports);
        let job = self.job.expect("moves end before their command");
        if let Some(errors) = self.mover.take_finished() {
            self.move_done(&job, errors, ports);
        }
    }

    fn schedule_end(&mut self, ports: &mut EnginePorts) {
        self.step = UnitStep::End;
        ports.wake(ports.now() + END, self.number << 1 | ENDS);
    }

    fn fail(&mut self, refusal: ErrorBit, ports: &mut EnginePorts) {
        self.result |= refusal as u32;
        self.give_up(ports);
    }

    /// Ends the command with an error, after the required number of records is on the media.
    fn give_up(&mut self, ports: &mut EnginePorts) {
        let (Some(job), Some(records)) = (self.job, self.required_records.take()) else {
            return self.schedule_end(ports);
        };
        let descriptor = Descriptor {
            generation: self.walk.generation,
            state: LogState::Open,
            records,
            transaction: job.transaction,
        };
        self.step = UnitStep::MarkFailure;
        self.mover.store(job.base, &descriptor.to_line(), ports);
    }

    fn start_command(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        use Operation::*;
        match job.operation {
            // An internal record without room.
            Undo | Checkpoint if job.bytes == 0 => self.fail(ErrorBit::LogFull, ports),
            Undo | Redo | Checkpoint | UndoRanges | CheckpointRanges => {
                let first = job.first_record();
                match job.records().all(|record| record.bytes <= MAX_SMALL_BYTES) {
                    true => {
                        self.step = UnitStep::MakeRecords;
                        let records = job.records();
                        let records =
                            records.map(|record| (record.source, header(job, &record, 0)));
                        self.mover.make_records(first.header, records, ports);
                    }
                    false => self.make_record(first, ports),
                }
            }
            Copy => {
                self.step = UnitStep::Copy;
                let bytes = job.bytes.into();
                self.mover.copy(job.source, job.target, bytes, false, ports);
            }
            LogOpen | Commit | CommitRedo | Delete => self.write_descriptor(job, ports),
            Switch => {
                self.step = UnitStep::WriteSwitch;
                self.mover
                    .store(job.target, &job.value.to_le_bytes(), ports);
            }
            Apply => self.read_header(job, ports),
            Abort => {
                self.walk.at = job.previous;
                self.walk.number = job.number.wrapping_sub(1);
                self.visit_record(job, ports);
            }
            Recover => {
                self.walk.forward = true;
                self.walk.at = FIRST_RECORD as u32;
                self.step = UnitStep::ReadDescriptor;
                self.mover.load(job.base, LINE, ports);
            }
            Sync | PoolMap | PoolUnmap => self.schedule_end(ports),
        }
    }

    /// A move has ended.
    fn move_done(&mut self, job: &UnitCommand, errors: Errors, ports: &mut EnginePorts) {
        if errors.read || errors.write {
            self.result |= u32::from(errors.read) * ErrorBit::ReadError as u32;
            self.result |= u32::from(errors.write) * ErrorBit::WriteError as u32;
            self.log_inconsistent |= self.step == UnitStep::MarkFailure;
            return self.give_up(ports);
        }
        match self.step {
            UnitStep::Copy if job.operation != Operation::Copy => self.write_header(job, ports),
            UnitStep::WriteHeader => {
                let made = self.new_record();
                match job.record_after(&made) {
                    Some(record) => self.make_record(record, ports),
                    None => self.schedule_end(ports),
                }
            }
            UnitStep::ReadDescriptor => self.descriptor_read(job, ports),
            UnitStep::ReadHeader => self.check_header(job, ports),
            UnitStep::ReadPayload => {
                if self.record().payload_crc != payload_crc(self.mover.data()) {
                    return self.fail(ErrorBit::Torn, ports);
                }
                if job.operation == Operation::Apply {
                    return self.write_back(job, ports);
                }
                self.record_done(job, ports);
            }
            UnitStep::Seek => self.seek_done(job, ports),
            UnitStep::WriteBack => {
                self.walk.count += 1;
                if job.operation == Operation::Apply {
                    return self.schedule_end(ports);
                }
                self.record_done(job, ports);
            }
            _ => self.schedule_end(ports),
        }
    }

    /// The record that is being made.
    fn new_record(&self) -> NewRecord {
        self.new_record.expect("a record is being made")
    }

    fn make_record(&mut self, record: NewRecord, ports: &mut EnginePorts) {
        self.new_record = Some(record);
        self.step = UnitStep::Copy;
        let (target, bytes) = (record.header + HEADER_BYTES, record.bytes.into());
        self.mover.copy(record.source, target, bytes, true, ports);
    }

    fn write_header(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let record = self.new_record();
        let header = header(job, &record, payload_crc(self.mover.data()));
        self.step = UnitStep::WriteHeader;
        self.mover.store(record.header, &header.to_line(), ports);
    }

    fn write_descriptor(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        use Operation::*;
        let state = match job.operation {
            CommitRedo => LogState::Committed,
            Commit if job.bytes != 0 => LogState::Pending(job.bytes as u8),
            _ => LogState::Open,
        };
        let ends = matches!(job.operation, Commit | Delete | Abort | Recover);
        let is_open = state == LogState::Open;
        let descriptor = Descriptor {
            generation: self.walk.generation.wrapping_add((ends && is_open).into()),
            state,
            records: if is_open { 0 } else { job.number },
            transaction: job.transaction,
        };
        self.step = UnitStep::WriteDescriptor;
        self.mover.store(job.base, &descriptor.to_line(), ports);
    }

    /// Recover: the descriptor has been read.
    fn descriptor_read(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let Some(found) = Descriptor::from_line(&self.mover.line()) else {
            return self.fail(ErrorBit::Torn, ports);
        };
        let known = job.number != UNKNOWN;
        let next = job.value.wrapping_add(1);
        if known && found.generation == next && found.state == LogState::Open {
            // It was interrupted after its last line.
            return self.schedule_end(ports);
        }
        let has_no_count = found.state == LogState::Open && found.records == 0;
        let is_inconsistent = !known && job.previous != 0 && has_no_count;
        if is_inconsistent || known && found.generation != job.value {
            return self.fail(ErrorBit::Torn, ports);
        }
        self.walk.generation = found.generation;
        self.walk.committed = found.state == LogState::Committed;
        self.walk.limit = match known {
            true => Some(job.number),
            false => Some(found.records).filter(|n| *n != 0 || found.state != LogState::Open),
        };
        // The descriptor gives the number of records.
        let lacks_count = known && job.number != 0 && found.state == LogState::Open;
        self.required_records = lacks_count.then_some(job.number);
        self.visit_record(job, ports);
    }

    /// The number of records is unknown: searches for another record, a piece of the log at a time.
    fn seek(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let at = u64::from(self.walk.at);
        self.step = UnitStep::Seek;
        self.mover
            .load(job.base + at, (job.object - at).min(MAX_BYTES), ports);
    }

    /// A piece has been searched.
    fn seek_done(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let walk = &mut self.walk;
        let (pool, thread) = (job.log >> 4, job.log & 15);
        let is_later = |line: &[u8]| {
            let line = line.try_into();
            line.is_ok_and(|line| {
                Header::is_later(line, pool, thread, walk.generation, walk.number)
            })
        };
        if self.mover.data().chunks(LINE as usize).any(is_later) {
            return self.fail(ErrorBit::Torn, ports);
        }
        walk.seeks += 1;
        if job.object - u64::from(walk.at) <= MAX_BYTES || walk.seeks == MAX_SEEKS {
            return self.pass_done(job, ports);
        }
        walk.at += MAX_BYTES as u32;
        self.seek(job, ports);
    }

    /// Reads the record at the current position, if there is one.
    fn visit_record(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let walk = self.walk;
        let no_room = u64::from(walk.at) + HEADER_BYTES + LINE > job.object;
        let ended = match (walk.forward, walk.limit) {
            (true, Some(limit)) => walk.number == limit,
            (true, None) => no_room,
            (false, _) => walk.at == 0,
        };
        if ended {
            return self.pass_done(job, ports);
        }
        if walk.forward && no_room {
            return self.fail(ErrorBit::Torn, ports);
        }
        self.read_header(job, ports);
    }

    fn read_header(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        self.step = UnitStep::ReadHeader;
        self.mover.load(self.record_address(job), LINE, ports);
    }

    /// Address of the record's header.
    fn record_address(&self, job: &UnitCommand) -> u64 {
        match job.operation {
            Operation::Apply => job.source,
            _ => job.base + u64::from(self.walk.at),
        }
    }

    /// The header is valid and belongs to the log.
    fn belongs_to_log(&self, job: &UnitCommand, header: &Header) -> bool {
        let size = job.pool_last - job.pool + 1;
        let object = header.object.checked_add(header.bytes.into());
        header.pool == job.log >> 4
            && header.thread == job.log & 15
            && header.generation == self.walk.generation
            && (1..=MAX_BYTES).contains(&header.bytes.into())
            && object.is_some_and(|end| end <= size)
    }

    /// The record is at the expected position.
    fn in_place(&self, job: &UnitCommand, header: &Header) -> bool {
        let walk = &self.walk;
        let at = u64::from(walk.at);
        let before = match walk.number {
            0 => header.previous == 0,
            _ => header.previous != 0 && header.previous < at && header.previous % LINE == 0,
        };
        let end = next_record(at, header.bytes.into());
        let fits =
            end <= job.object && (walk.forward || walk.next == 0 || end == u64::from(walk.next));
        header.number == walk.number
            && before
            && fits
            && (!walk.forward || header.previous == u64::from(walk.previous))
    }

    /// A header has been read.
    fn check_header(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let header = Header::from_line(&self.mover.line());
        let header = header.filter(|header| self.belongs_to_log(job, header));
        if job.operation == Operation::Apply {
            let wanted = |h: &Header| {
                h.kind == RecordKind::Redo && h.object == job.object && h.bytes == job.bytes
            };
            self.header = header.filter(wanted);
            return match self.header {
                Some(_) => self.read_payload(job, ports),
                None => self.fail(ErrorBit::Torn, ports),
            };
        }
        self.header = header.filter(|header| self.in_place(job, header));
        match self.header {
            // After the last record there is none.
            None if self.walk.forward && self.walk.limit.is_none() => self.seek(job, ports),
            None => self.fail(ErrorBit::Torn, ports),
            Some(_) if !self.walk.write => self.read_payload(job, ports),
            Some(header) if (header.kind == RecordKind::Redo) == self.walk.committed => {
                self.write_back(job, ports);
            }
            Some(_) => self.record_done(job, ports),
        }
    }

    /// The header of the current record.
    fn record(&self) -> Header {
        self.header.expect("the header was checked")
    }

    fn read_payload(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let bytes = self.record().bytes.into();
        self.step = UnitStep::ReadPayload;
        let payload = self.record_address(job) + HEADER_BYTES;
        self.mover.load(payload, padded(bytes), ports);
    }

    fn write_back(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let header = self.record();
        self.step = UnitStep::WriteBack;
        let (from, to) = (
            self.record_address(job) + HEADER_BYTES,
            job.pool + header.object,
        );
        self.mover.copy(from, to, header.bytes.into(), false, ports);
    }

    /// The record is finished in this pass.
    fn record_done(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        let header = self.record();
        let walk = &mut self.walk;
        if walk.forward {
            walk.previous = walk.at;
            walk.at = next_record(walk.at.into(), header.bytes.into()) as u32;
            walk.number += 1;
        } else {
            walk.next = walk.at;
            walk.at = header.previous as u32;
            walk.number = walk.number.wrapping_sub(1);
        }
        self.visit_record(job, ports);
    }

    /// A pass is finished.
    fn pass_done(&mut self, job: &UnitCommand, ports: &mut EnginePorts) {
        if self.walk.write {
            return self.write_descriptor(job, ports);
        }
        let walk = &mut self.walk;
        walk.write = true;
        if walk.committed {
            (walk.at, walk.number, walk.previous) = (FIRST_RECORD as u32, 0, 0);
        } else {
            let (last, records) = match walk.forward {
                true => (walk.previous, walk.number),
                false => (job.previous, job.number),
            };
            (walk.forward, walk.next) = (false, 0);
            (walk.at, walk.number) = (last, records.wrapping_sub(1));
        }
        self.visit_record(job, ports);
    }
}
