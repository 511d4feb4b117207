// SPDX-License-Identifier: Apache-2.0

//! The dictionary decoder (hw/engine/dict_decode): replaces keys as Parquet writes them by their
//! values.

mod key_decoder;
mod table;

use std::collections::VecDeque;

use spec::nvme::{status, Status};
use spec::regs::dict_decode::{kind, result};
use spec::tables::{DICTIONARY_BYTES, DICTIONARY_VALUES};

use crate::controller::EngineCommand;

use self::key_decoder::{DecodeError, DecodeStep, KeyDecoder};
use self::table::Table;
use super::ports::EnginePorts;
use super::{Engine, Job, JobResult, Range, BLOCK_BITS, UNIT_BITS};

const MAX_VALUES: u64 = 1 << 31;
const MAX_BYTES: u64 = 1 << 40;
const BEAT: u64 = 64;
/// Bytes of a burst.
const BURST: u64 = 4096;
/// Maximum number of bytes that wait to be written.
const DEPTH: u64 = 4 * BURST;

/// Cycles from the start to the first read, and from the last answer to the end.
const CHECK_CYCLES: u64 = 6;
const FINISH_CYCLES: u64 = 4;
/// Cycles through the crossbar, from a channel to the beat input, and from keys to beats that can
/// be written.
const CROSSBAR_CYCLES: u64 = 2;
const RETURN_CYCLES: u64 = 9;
const PIPE: u64 = 12;

/// Wake-up numbers.
const BEGIN: u32 = 0;
const DONE: u32 = 1;
const ADVANCE: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum DecodeState {
    Idle,
    Checking,
    Decoding,
    /// Open requests are drained.
    Draining,
    Finished,
}

/// The column to decode.
#[derive(Clone, Copy)]
struct Column {
    dict: u64,
    entries: u64,
    src: u64,
    bytes: u64,
    dst: u64,
    count: u64,
    /// Bits of a key; bytes of a value.
    width: u32,
    size: u64,
    plain: bool,
    fixed: bool,
}

impl Column {
    /// The column of a job; `None`: it is invalid.
    fn of(job: &Job) -> Option<Column> {
        let [dict, entries, src, bytes, dst, count, kind] = job.arguments;
        let known =
            kind::WIDTH.mask() | kind::SIZE.mask() | kind::PLAIN.mask() | kind::PACKED_KEYS.mask();
        let column = Column {
            dict,
            entries,
            src,
            bytes,
            dst,
            count,
            width: kind::WIDTH.get(kind) as u32,
            size: 1 << kind::SIZE.get(kind),
            plain: kind::PLAIN.is_set(kind),
            fixed: kind::PACKED_KEYS.is_set(kind),
        };
        let dictionary =
            (1..=DICTIONARY_VALUES).contains(&entries) && entries * column.size <= DICTIONARY_BYTES;
        let ok = !job.malformed
            && kind & !known == 0
            && column.width <= 32
            && (1..=MAX_VALUES).contains(&count)
            && bytes <= MAX_BYTES
            && !(column.fixed && (column.plain || ![8, 16, 32].contains(&column.width)))
            && (column.plain || dictionary);
        (ok && column.is_disjoint()).then_some(column)
    }

    /// The ranges are where they may be and do not overlap. Ranges that are not used are empty.
    fn is_disjoint(&self) -> bool {
        let dict = if self.plain {
            0
        } else {
            self.entries * self.size
        };
        let ranges = [
            Range::new(self.dict, dict),
            Range::new(self.src, self.bytes),
            Range::new(self.dst, self.count * self.size),
        ];
        let used: Vec<&Range> = ranges.iter().filter(|range| !range.is_empty()).collect();
        let places = used
            .iter()
            .all(|range| range.begin % BEAT == 0 && range.fits());
        let mut pairs = used.iter().enumerate();
        places && pairs.all(|(n, a)| used[..n].iter().all(|b| a.is_disjoint(b)))
    }
}

/// A read burst.
struct ReadBurst {
    data: Vec<u8>,
    addr: u64,
    /// Arrival time, and whether the read succeeded.
    arrival: Option<(u64, bool)>,
}

/// One column at a time.
pub(super) struct DictDecode {
    state: DecodeState,
    column: Option<Column>,
    stopped: bool,
    error: Option<DecodeError>,
    write_error: bool,
    keys: KeyDecoder,
    table: Table,
    /// Read bursts in order, number of the first one, and bytes requested and accepted, of
    /// dictionary and source together.
    reads: VecDeque<ReadBurst>,
    first_read: u64,
    requested: u64,
    accepted: u64,
    read_free: u64,
    /// Edges up to which beats have been accepted, and rows decoded.
    take_free: u64,
    made: u64,
    /// Number of values decoded, and their bytes that have not been written.
    position: u64,
    decoded: bool,
    out: Vec<u8>,
    /// Completion time of each write burst that has not started; `made`: that of the last byte.
    whole: VecDeque<u64>,
    /// Bytes whose write has started, open write bursts, and the next free edge of a write.
    written: u64,
    writes: Vec<bool>,
    next_write: usize,
    write_free: u64,
    scheduled: u64,
    finished: Option<JobResult>,
}

impl DictDecode {
    /// A decoder with a maximum of `bursts` read bursts, open or buffered, and as many write
    /// bursts.
    pub(super) fn new(bursts: usize) -> DictDecode {
        DictDecode {
            state: DecodeState::Idle,
            column: None,
            stopped: false,
            error: None,
            write_error: false,
            keys: KeyDecoder::new(0, false, 0, 0),
            table: Table::default(),
            reads: VecDeque::with_capacity(bursts),
            first_read: 0,
            requested: 0,
            accepted: 0,
            read_free: 0,
            take_free: 0,
            made: 0,
            position: 0,
            decoded: false,
            out: Vec::new(),
            whole: VecDeque::new(),
            written: 0,
            writes: vec![false; bursts],
            next_write: 0,
            write_free: 0,
            scheduled: 0,
            finished: None,
        }
    }

    fn schedule_wake_up(&mut self, cycle: u64, ports: &mut EnginePorts) {
        let now = ports.now();
        if self.scheduled <= now || cycle < self.scheduled {
            self.scheduled = cycle;
            ports.wake(cycle, ADVANCE);
        }
    }

    /// Bytes of the dictionary, and of the source that is read after it.
    fn sizes(&self, column: &Column) -> (u64, u64) {
        match column.plain {
            true => (0, column.count * column.size),
            false => (self.table.bytes(), self.keys.bytes()),
        }
    }

    /// Does all work that is possible up to the current edge.
    fn advance(&mut self, ports: &mut EnginePorts) {
        // A wake-up of the job before may come after the start of an invalid one.
        let Some(column) = self.column else { return };
        if self.state == DecodeState::Decoding {
            while self.take_burst(&column, ports)
                | self.decode(&column, ports)
                | self.issue_write(&column, ports)
            {}
            self.issue_reads(&column, ports);
            let all = self.decoded && self.written == column.count * column.size;
            if all || self.stopped || self.error.is_some() {
                self.state = DecodeState::Draining;
                if all {
                    self.stopped = false;
                    self.position = column.count;
                }
            }
        }
        let is_drained = self.writes.iter().all(|&open| !open)
            && self.reads.iter().all(|read| read.arrival.is_some());
        if self.state == DecodeState::Draining && is_drained {
            self.state = DecodeState::Finished;
            ports.wake(ports.now() + FINISH_CYCLES, DONE);
        }
    }

    fn issue_reads(&mut self, column: &Column, ports: &mut EnginePorts) {
        let (dict, source) = self.sizes(column);
        while self.state == DecodeState::Decoding
            && self.requested < dict + source
            && self.reads.len() < self.writes.len()
        {
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.schedule_wake_up(cycle, ports);
            }
            let (addr, left) = match self.requested < dict {
                true => (column.dict + self.requested, dict - self.requested),
                false => (
                    column.src + (self.requested - dict),
                    dict + source - self.requested,
                ),
            };
            let len = (BURST - addr % BURST).min(left);
            let slot = (self.first_read + self.reads.len() as u64) % self.writes.len() as u64;
            self.reads.push_back(ReadBurst {
                data: vec![0; len as usize],
                addr,
                arrival: None,
            });
            self.requested += len;
            self.read_free = ports.now() + 1;
            ports.read(CROSSBAR_CYCLES, slot as u16, addr, len as u32, slot as u32);
        }
    }

    /// Accepts the oldest read burst if it has arrived.
    fn take_burst(&mut self, column: &Column, ports: &mut EnginePorts) -> bool {
        let Some(read) = self.reads.front() else {
            return false;
        };
        let Some((arrived, ok)) = read.arrival else {
            return false;
        };
        if self.error.is_some() || self.out.len() as u64 >= DEPTH {
            return false;
        }
        let beats = read.data.len().div_ceil(BEAT as usize) as u64;
        let done = self.take_free.max(arrived + RETURN_CYCLES) + beats;
        if done > ports.now() {
            self.schedule_wake_up(done, ports);
            return false;
        }
        self.take_free = done;
        let read = self.reads.pop_front().expect("it is the first one");
        self.first_read += 1;
        let (dict, _) = self.sizes(column);
        if self.accepted < dict {
            if !ok {
                self.error = Some(DecodeError::ReadError);
            }
            let cycles = self.table.push(&read.data);
            self.take_free += cycles.saturating_sub(beats);
            self.made = self.take_free;
        } else if column.plain {
            match ok {
                false => self.error = Some(DecodeError::ReadError),
                true => {
                    self.position += read.data.len() as u64 / column.size;
                    self.made = done;
                    let before = self.out.len();
                    self.out.extend_from_slice(&read.data);
                    self.record_full_bursts(column, before);
                }
            }
        } else {
            self.keys.push(&read.data, ok);
            self.made = self.made.max(done);
        }
        self.accepted += read.data.len() as u64;
        self.decoded |= column.plain && self.accepted == column.count * column.size;
        true
    }

    /// Decodes the keys that have arrived.
    fn decode(&mut self, column: &Column, ports: &mut EnginePorts) -> bool {
        let (dict, _) = self.sizes(column);
        if column.plain || self.decoded || self.error.is_some() || self.accepted < dict {
            return false;
        }
        let mut any = false;
        while (self.out.len() as u64) < DEPTH {
            let next = self.keys.next();
            if next == DecodeStep::Wait {
                return any;
            }
            if !any {
                self.made = self.made.max(ports.now());
            }
            match next {
                DecodeStep::Wait => unreachable!("it has just been handled"),
                DecodeStep::Header => self.made += 1,
                DecodeStep::Row(mut row) => {
                    let good = row.iter().position(|&key| !self.table.has(key));
                    if let Some(good) = good {
                        row.truncate(good);
                        self.error = Some(DecodeError::BadKey);
                    }
                    self.position += row.len() as u64;
                    let beats = (row.len() as u64 * column.size).div_ceil(BEAT).max(1);
                    let before = self.out.len();
                    self.made += self.table.look_up(&row, &mut self.out).max(beats);
                    self.record_full_bursts(column, before);
                }
                DecodeStep::End(Err(error)) => self.error = Some(error),
                DecodeStep::End(Ok(())) => self.decoded = true,
            }
            any = true;
            if self.decoded || self.error.is_some() {
                break;
            }
        }
        any
    }

    /// Records the time of write bursts that became complete after `before` bytes were waiting.
    fn record_full_bursts(&mut self, column: &Column, before: usize) {
        let bursts = |waiting: usize| {
            (column.dst.wrapping_add(self.written + waiting as u64) / BURST) as usize
        };
        let more = bursts(self.out.len()).saturating_sub(bursts(before));
        self.whole.extend(std::iter::repeat_n(self.made, more));
    }

    fn issue_write(&mut self, column: &Column, ports: &mut EnginePorts) -> bool {
        let bytes = column.count * column.size;
        let addr = column.dst.wrapping_add(self.written);
        let len = (BURST - addr % BURST).min(bytes - self.written);
        if len == 0
            || (self.out.len() as u64) < len
            || self.writes[self.next_write]
            || self.error.is_some()
        {
            return false;
        }
        let made = self.whole.front().copied().unwrap_or(self.made);
        let when = self.write_free.max(made + PIPE);
        if when > ports.now() {
            self.schedule_wake_up(when, ports);
            return false;
        }
        let id = self.next_write as u16;
        self.writes[self.next_write] = true;
        if ports.write(CROSSBAR_CYCLES, id, addr, len as u32, id.into()) {
            self.write_error |= !ports.store(addr, &self.out[..len as usize]);
        }
        self.out.drain(..len as usize);
        self.whole.pop_front();
        self.next_write = (self.next_write + 1) % self.writes.len();
        self.written += len;
        self.write_free = ports.now() + len.div_ceil(BEAT);
        true
    }

    fn result(&self) -> JobResult {
        let mut end = JobResult::default();
        let is = |error: DecodeError| self.error == Some(error);
        let bits = [
            (result::READ_ERROR, is(DecodeError::ReadError)),
            (result::STOPPED, self.stopped && self.error.is_none()),
            (result::INVALID, self.column.is_none()),
            (result::WRITE_ERROR, self.write_error),
            (result::BAD_KEY, is(DecodeError::BadKey)),
            (result::TRUNCATED, is(DecodeError::Truncated)),
            (result::OVERRUN, is(DecodeError::Overrun)),
        ];
        for (bit, on) in bits {
            end.result |= if on { bit.mask() as u32 } else { 0 };
        }
        end.outputs[0] = self.position;
        end
    }

    fn begin(&mut self, ports: &mut EnginePorts) {
        let column = self.column.expect("only a valid job begins");
        self.state = DecodeState::Decoding;
        let now = ports.now();
        (self.read_free, self.take_free, self.made, self.write_free) = (now, now, now, now);
        let available = column.bytes / column.size;
        if column.plain && available < column.count {
            (self.position, self.error) = (available, Some(DecodeError::Truncated));
        }
        self.advance(ports);
    }
}

impl Engine for DictDecode {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        let [dict, src, dst, count, bytes] = [10, 11, 12, 13, 14].map(|n| u64::from(dw[n]));
        let kind = dw[15];
        if kind >> 28 != 0 || kind >> 22 & 3 != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        let entries = u64::from(kind & 0xFFFF) + 1;
        let (width, size) = (u64::from(kind >> 16 & 0x3F), u64::from(kind >> 24 & 3));
        let (plain, fixed) = (u64::from(kind >> 26 & 1), u64::from(kind >> 27 & 1));
        let places = [dict, src, dst].map(|unit| unit << UNIT_BITS);
        let sizes = [
            if plain == 1 { 0 } else { entries << size },
            bytes,
            count << size,
        ];
        let most = command.blocks << BLOCK_BITS;
        let beyond = |(place, size): (u64, u64)| size != 0 && place + size > most;
        if places.into_iter().zip(sizes).any(beyond) {
            return Err(status::LBA_OUT_OF_RANGE.dnr());
        }
        let [dict, src, dst] = places.map(|place| (command.base << BLOCK_BITS).wrapping_add(place));
        let kind = width | size << 8 | plain << 16 | fixed << 17;
        Ok(Job {
            arguments: [dict, entries, src, bytes, dst, count, kind],
            ..Job::default()
        })
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        let is = |bit: spec::regs::Field| bit.is_set(end.result.into());
        let field = [result::BAD_KEY, result::TRUNCATED, result::OVERRUN];
        let status = if is(result::INVALID) {
            status::INVALID_FIELD.dnr()
        } else if is(result::WRITE_ERROR) {
            status::WRITE_FAULT
        } else if is(result::READ_ERROR) {
            status::UNRECOVERED_READ_ERROR
        } else if field.into_iter().any(is) {
            status::INVALID_FIELD.dnr()
        } else {
            status::SUCCESS
        };
        (status, end.outputs[0] as u32)
    }

    fn start(&mut self, job: &Job, ports: &mut EnginePorts) {
        self.column = Column::of(job);
        (self.stopped, self.error, self.write_error) = (false, None, false);
        (self.requested, self.accepted, self.position, self.written) = (0, 0, 0, 0);
        self.decoded = false;
        self.reads.clear();
        self.out.clear();
        self.whole.clear();
        if let Some(column) = self.column.filter(|column| !column.plain) {
            self.keys = KeyDecoder::new(column.width, column.fixed, column.count, column.bytes);
            self.table = Table::new(column.size, column.entries);
        }
        self.state = DecodeState::Checking;
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        match self.state {
            DecodeState::Checking => self.stopped |= self.column.is_some(),
            DecodeState::Decoding if self.error.is_none() => {
                self.stopped = true;
                self.advance(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        match what {
            BEGIN if self.column.is_none() || self.stopped => {
                self.state = DecodeState::Finished;
                ports.wake(ports.now() + 1, DONE);
            }
            BEGIN => self.begin(ports),
            DONE => {
                self.state = DecodeState::Idle;
                self.finished = Some(self.result());
                (self.keys, self.table) = (KeyDecoder::new(0, false, 0, 0), Table::default());
            }
            _ => self.advance(ports),
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        if !end {
            return;
        }
        let bursts = self.writes.len() as u64;
        let place = (u64::from(burst) + bursts - self.first_read % bursts) % bursts;
        let read = &mut self.reads[place as usize];
        let ok = ok && ports.load(read.addr, &mut read.data);
        read.arrival = Some((ports.now(), ok));
        self.advance(ports);
    }

    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        self.writes[burst as usize] = false;
        self.write_error |= !ok;
        self.advance(ports);
    }

    fn progress(&self) -> u64 {
        self.position
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }
}
