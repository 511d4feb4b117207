//! The decoder of dictionaries (hw/engine/dict_decode): keys as Parquet writes them to the values that they stand for.

mod keys;
mod table;

use std::collections::VecDeque;

use spec::nvme::{status, Status};
use spec::regs::dict_decode::{kind_lo, result};

use crate::controller::EngineCommand;

use self::keys::{Keys, Next, Wrong};
use self::table::{Table, DICT_BYTES};
use super::ports::Ports;
use super::{End, Engine, Job, Range, BLOCK_BITS, UNIT_BITS};

const MOST_VALUES: u64 = 1 << 31;
const MOST_ENTRIES: u64 = 1 << 16;
const MOST_BYTES: u64 = 1 << 40;
const BEAT: u64 = 64;
/// Bytes of a burst.
const BURST: u64 = 4096;
/// Bytes that wait to be written.
const DEPTH: u64 = 4 * BURST;

/// Cycles from the start to the first read, and from the last answer to the end.
const CHECK: u64 = 6;
const FINISH: u64 = 4;
/// Through the crossbar, from a channel to where beats are taken, and from keys to beats that can be written.
const CROSSBAR: u64 = 2;
const BACK: u64 = 9;
const PIPE: u64 = 12;

/// What a wake-up is about.
const BEGIN: u32 = 0;
const OVER: u32 = 1;
const GO_ON: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Check,
    Work,
    /// What is under way ends.
    Drain,
    Over,
}

/// What is decoded.
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
    /// That of a job; `None`: there is no such column.
    fn of(job: &Job) -> Option<Column> {
        let [dict, entries, src, bytes, dst, count, kind] = job.arguments;
        let known = kind_lo::WIDTH.mask()
            | kind_lo::SIZE.mask()
            | kind_lo::PLAIN.mask()
            | kind_lo::PACKED_KEYS.mask();
        let column = Column {
            dict,
            entries,
            src,
            bytes,
            dst,
            count,
            width: kind_lo::WIDTH.get(kind) as u32,
            size: 1 << kind_lo::SIZE.get(kind),
            plain: kind_lo::PLAIN.is_set(kind),
            fixed: kind_lo::PACKED_KEYS.is_set(kind),
        };
        let dictionary =
            (1..=MOST_ENTRIES).contains(&entries) && entries * column.size <= DICT_BYTES;
        let fine = !job.malformed
            && kind & !known == 0
            && column.width <= 32
            && (1..=MOST_VALUES).contains(&count)
            && bytes <= MOST_BYTES
            && !(column.fixed && (column.plain || ![8, 16, 32].contains(&column.width)))
            && (column.plain || dictionary);
        (fine && column.is_apart()).then_some(column)
    }

    /// Ranges stand where they may, and none of them overlaps another one; those that are not used have no bytes.
    fn is_apart(&self) -> bool {
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
        places && pairs.all(|(n, a)| used[..n].iter().all(|b| a.is_apart(b)))
    }
}

/// A read burst.
struct Read {
    data: Vec<u8>,
    addr: u64,
    /// When it came, and whether it could be read.
    here: Option<(u64, bool)>,
}

/// One column at a time.
pub(super) struct DictDecode {
    state: State,
    column: Option<Column>,
    stopped: bool,
    wrong: Option<Wrong>,
    write_error: bool,
    keys: Keys,
    table: Table,
    /// Read bursts in their order, the number of the first one, bytes asked for, of dictionary and source together, and taken.
    reads: VecDeque<Read>,
    first_read: u64,
    asked: u64,
    taken: u64,
    read_free: u64,
    /// Up to when beats have been taken, and rows decoded.
    take_free: u64,
    made: u64,
    /// Values decoded, and their bytes that have not been written.
    position: u64,
    decoded: bool,
    out: Vec<u8>,
    /// When the last byte of each write burst was there, of those that have not begun; of the last one, `made`.
    whole: VecDeque<u64>,
    /// Bytes whose write has begun; write bursts under way, when the next one may begin.
    written: u64,
    writes: Vec<bool>,
    next_write: usize,
    write_free: u64,
    planned: u64,
    ended: Option<End>,
}

impl DictDecode {
    /// With so many bursts under way or in the buffer, of reads and of writes.
    pub(super) fn new(bursts: usize) -> DictDecode {
        DictDecode {
            state: State::Idle,
            column: None,
            stopped: false,
            wrong: None,
            write_error: false,
            keys: Keys::new(0, false, 0, 0),
            table: Table::default(),
            reads: VecDeque::with_capacity(bursts),
            first_read: 0,
            asked: 0,
            taken: 0,
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
            planned: 0,
            ended: None,
        }
    }

    fn wake(&mut self, cycle: u64, ports: &mut Ports) {
        let now = ports.now();
        if self.planned <= now || cycle < self.planned {
            self.planned = cycle;
            ports.wake(cycle, GO_ON);
        }
    }

    /// Bytes of the dictionary, and of what is read behind it.
    fn sizes(&self, column: &Column) -> (u64, u64) {
        match column.plain {
            true => (0, column.count * column.size),
            false => (self.table.bytes(), self.keys.bytes()),
        }
    }

    /// Does all that can be done by now.
    fn go_on(&mut self, ports: &mut Ports) {
        let Some(column) = self.column else { return };
        if self.state == State::Work {
            while self.take(&column, ports)
                | self.decode(&column, ports)
                | self.write(&column, ports)
            {}
            self.ask(&column, ports);
            let all = self.decoded && self.written == column.count * column.size;
            if all || self.stopped || self.wrong.is_some() {
                self.state = State::Drain;
                if all {
                    self.stopped = false;
                    self.position = column.count;
                }
            }
        }
        let rests = self.writes.iter().all(|&open| !open)
            && self.reads.iter().all(|read| read.here.is_some());
        if self.state == State::Drain && rests {
            self.state = State::Over;
            ports.wake(ports.now() + FINISH, OVER);
        }
    }

    fn ask(&mut self, column: &Column, ports: &mut Ports) {
        let (dict, source) = self.sizes(column);
        while self.state == State::Work
            && self.asked < dict + source
            && self.reads.len() < self.writes.len()
        {
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.wake(cycle, ports);
            }
            let (addr, left) = match self.asked < dict {
                true => (column.dict + self.asked, dict - self.asked),
                false => (column.src + (self.asked - dict), dict + source - self.asked),
            };
            let len = (BURST - addr % BURST).min(left);
            let slot = (self.first_read + self.reads.len() as u64) % self.writes.len() as u64;
            self.reads.push_back(Read {
                data: vec![0; len as usize],
                addr,
                here: None,
            });
            self.asked += len;
            self.read_free = ports.now() + 1;
            ports.read(CROSSBAR, slot as u16, addr, len as u32, slot as u32);
        }
    }

    /// Takes the oldest read burst, if it is here.
    fn take(&mut self, column: &Column, ports: &mut Ports) -> bool {
        let Some(read) = self.reads.front() else {
            return false;
        };
        let Some((here, fine)) = read.here else {
            return false;
        };
        if self.wrong.is_some() || self.out.len() as u64 >= DEPTH {
            return false;
        }
        let beats = read.data.len().div_ceil(BEAT as usize) as u64;
        let done = self.take_free.max(here + BACK) + beats;
        if done > ports.now() {
            self.wake(done, ports);
            return false;
        }
        self.take_free = done;
        let Some(read) = self.reads.pop_front() else {
            return false;
        };
        self.first_read += 1;
        let (dict, _) = self.sizes(column);
        if self.taken < dict {
            if !fine {
                self.wrong = Some(Wrong::ReadError);
            }
            let cycles = self.table.push(&read.data);
            self.take_free += cycles.saturating_sub(beats);
            self.made = self.take_free;
        } else if column.plain {
            match fine {
                false => self.wrong = Some(Wrong::ReadError),
                true => {
                    self.position += read.data.len() as u64 / column.size;
                    self.made = done;
                    let before = self.out.len();
                    self.out.extend_from_slice(&read.data);
                    self.note_whole(column, before);
                }
            }
        } else {
            self.keys.push(&read.data, fine);
            self.made = self.made.max(done);
        }
        self.taken += read.data.len() as u64;
        self.decoded |= column.plain && self.taken == column.count * column.size;
        true
    }

    /// Decodes what is here.
    fn decode(&mut self, column: &Column, ports: &mut Ports) -> bool {
        let (dict, _) = self.sizes(column);
        if column.plain || self.decoded || self.wrong.is_some() || self.taken < dict {
            return false;
        }
        let mut any = false;
        while (self.out.len() as u64) < DEPTH {
            let next = self.keys.next();
            if next == Next::Wait {
                return any;
            }
            if !any {
                self.made = self.made.max(ports.now());
            }
            match next {
                Next::Wait => {}
                Next::Header => self.made += 1,
                Next::Row(mut row) => {
                    let good = row.iter().position(|&key| !self.table.has(key));
                    if let Some(good) = good {
                        row.truncate(good);
                        self.wrong = Some(Wrong::BadKey);
                    }
                    self.position += row.len() as u64;
                    let beats = (row.len() as u64 * column.size).div_ceil(BEAT).max(1);
                    let before = self.out.len();
                    self.made += self.table.look_up(&row, &mut self.out).max(beats);
                    self.note_whole(column, before);
                }
                Next::End(Err(wrong)) => self.wrong = Some(wrong),
                Next::End(Ok(())) => self.decoded = true,
            }
            any = true;
            if self.decoded || self.wrong.is_some() {
                break;
            }
        }
        any
    }

    /// Looks which write bursts have got their last byte since there were so many that wait.
    fn note_whole(&mut self, column: &Column, before: usize) {
        let bursts = |waiting: usize| {
            (column.dst.wrapping_add(self.written + waiting as u64) / BURST) as usize
        };
        let more = bursts(self.out.len()).saturating_sub(bursts(before));
        self.whole.extend(std::iter::repeat_n(self.made, more));
    }

    fn write(&mut self, column: &Column, ports: &mut Ports) -> bool {
        let bytes = column.count * column.size;
        let addr = column.dst.wrapping_add(self.written);
        let len = (BURST - addr % BURST).min(bytes - self.written);
        if len == 0
            || (self.out.len() as u64) < len
            || self.writes[self.next_write]
            || self.wrong.is_some()
        {
            return false;
        }
        let made = self.whole.front().copied().unwrap_or(self.made);
        let when = self.write_free.max(made + PIPE);
        if when > ports.now() {
            self.wake(when, ports);
            return false;
        }
        let id = self.next_write as u16;
        self.writes[self.next_write] = true;
        if ports.write(CROSSBAR, id, addr, len as u32, id.into()) {
            self.write_error |= !ports.store(addr, &self.out[..len as usize]);
        }
        self.out.drain(..len as usize);
        self.whole.pop_front();
        self.next_write = (self.next_write + 1) % self.writes.len();
        self.written += len;
        self.write_free = ports.now() + len.div_ceil(BEAT);
        true
    }

    fn result(&self) -> End {
        let mut end = End::default();
        let is = |wrong: Wrong| self.wrong == Some(wrong);
        let bits = [
            (result::READ_ERROR, is(Wrong::ReadError)),
            (result::STOPPED, self.stopped && self.wrong.is_none()),
            (result::INVALID, self.column.is_none()),
            (result::WRITE_ERROR, self.write_error),
            (result::BAD_KEY, is(Wrong::BadKey)),
            (result::TRUNCATED, is(Wrong::Truncated)),
            (result::OVERRUN, is(Wrong::Overrun)),
        ];
        for (bit, on) in bits {
            end.result |= if on { bit.mask() as u32 } else { 0 };
        }
        end.outputs[0] = self.position;
        end
    }

    fn begin(&mut self, ports: &mut Ports) {
        let Some(column) = self.column else { return };
        self.state = State::Work;
        let now = ports.now();
        (self.read_free, self.take_free, self.made, self.write_free) = (now, now, now, now);
        let here = column.bytes / column.size;
        if column.plain && here < column.count {
            (self.position, self.wrong) = (here, Some(Wrong::Truncated));
        }
        self.go_on(ports);
    }
}

impl Engine for DictDecode {
    fn judge(&self, command: &EngineCommand) -> Result<Job, Status> {
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

    fn stopped(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn answer(&self, end: &End) -> (Status, u32) {
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

    fn start(&mut self, job: &Job, ports: &mut Ports) {
        self.column = Column::of(job);
        (self.stopped, self.wrong, self.write_error) = (false, None, false);
        (self.asked, self.taken, self.position, self.written) = (0, 0, 0, 0);
        self.decoded = false;
        self.reads.clear();
        self.out.clear();
        self.whole.clear();
        if let Some(column) = self.column.filter(|column| !column.plain) {
            self.keys = Keys::new(column.width, column.fixed, column.count, column.bytes);
            self.table = Table::new(column.size, column.entries);
        }
        self.state = State::Check;
        ports.wake(ports.now() + CHECK, BEGIN);
    }

    fn stop(&mut self, ports: &mut Ports) {
        match self.state {
            State::Check => self.stopped |= self.column.is_some(),
            State::Work if self.wrong.is_none() => {
                self.stopped = true;
                self.go_on(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut Ports) {
        match what {
            BEGIN if self.column.is_none() || self.stopped => {
                self.state = State::Over;
                ports.wake(ports.now() + 1, OVER);
            }
            BEGIN => self.begin(ports),
            OVER => {
                self.state = State::Idle;
                self.ended = Some(self.result());
                (self.keys, self.table) = (Keys::new(0, false, 0, 0), Table::default());
            }
            _ => self.go_on(ports),
        }
    }

    fn read(&mut self, burst: u32, end: bool, fine: bool, ports: &mut Ports) {
        if !end {
            return;
        }
        let bursts = self.writes.len() as u64;
        let place = (u64::from(burst) + bursts - self.first_read % bursts) % bursts;
        if let Some(read) = self.reads.get_mut(place as usize) {
            let fine = fine && ports.load(read.addr, &mut read.data);
            read.here = Some((ports.now(), fine));
        }
        self.go_on(ports);
    }

    fn written(&mut self, burst: u32, fine: bool, ports: &mut Ports) {
        self.writes[burst as usize] = false;
        self.write_error |= !fine;
        self.go_on(ports);
    }

    fn progress(&self) -> u64 {
        self.position
    }

    fn ended(&mut self) -> Option<End> {
        self.ended.take()
    }
}
