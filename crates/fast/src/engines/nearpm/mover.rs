// SPDX-License-Identifier: Apache-2.0

//! Moves of a unit, one at a time: copies, loads and stores of any alignment, and small records.

use spec::nearpm::{padded, payload_crc, Header, HEADER_BYTES, LINE};

use super::super::ports::EnginePorts;

/// Bytes of a burst.
const BURST: u64 = 512;
/// Maximum number of open bursts in each direction.
const MAX_BURSTS: usize = 8;
/// Burst numbers of a mover: reads, then writes.
pub(super) const NUMBERS: u32 = 2 * MAX_BURSTS as u32;
/// Lines that a unit reads in 1024 cycles without other limits.
const FULL_RATE: u64 = 1024;
/// Cycles of an access through the engine's multiplexers.
const CROSSBAR_CYCLES: u64 = 2;
/// Cycles from the last line of a record's payload to its header.
const HEADER_CYCLES: u64 = 8;

/// The limits of a unit's moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoveLimits {
    /// Maximum number of open bursts in each direction.
    bursts: usize,
    /// Maximum number of lines read in 1024 cycles.
    lines: u64,
}

impl MoveLimits {
    /// The limits for this number of units and channels. The IDs of the memory bus are split
    /// between the masters; each burst has an ID.
    pub(super) fn new(units: u32, channels: u32, lines: u64) -> MoveLimits {
        let per_bus = units.div_ceil(4);
        let masters = units.div_ceil(per_bus) + 1;
        let bits = 4 + channels.ilog2() - masters.next_power_of_two().ilog2();
        MoveLimits {
            bursts: 1 << bits.min(3),
            lines,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// The time of the next read at a rate, in 1/1024 cycles.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadRate(u64);

/// A read burst: its address, its offset in the data, and whether it has arrived.
#[derive(Clone, Copy)]
struct ReadBurst {
    source: u64,
    at: u64,
    len: u64,
    arrived: bool,
}

/// A range to be read, its offset in the data, and the header in front of it, if it is a record.
#[derive(Clone, Copy, Debug)]
struct Segment {
    source: u64,
    bytes: u64,
    at: u64,
    header: Option<Header>,
}

#[derive(Default)]
pub(super) struct Mover {
    /// The number of its first burst.
    number: u32,
    /// Maximum number of lines read in 1024 cycles.
    lines: u64,
    pub(super) rate: ReadRate,
    target: u64,
    /// The ranges to read. Of these, `requested` bytes of number `segment` are requested, and
    /// `arrived` bytes of number `filled` are there.
    segments: Vec<Segment>,
    segment: usize,
    requested: u64,
    filled: usize,
    arrived: u64,
    /// Bytes to write.
    length: u64,
    /// Bytes that were read, or that are to be written; of these, the first `have` are there.
    data: Vec<u8>,
    have: u64,
    sent: u64,
    /// One entry for each burst number.
    reads: Vec<Option<ReadBurst>>,
    head: usize,
    tail: usize,
    writes: Vec<bool>,
    errors: Errors,
    busy: bool,
}

impl Mover {
    /// A mover with burst numbers from `number` on.
    pub(super) fn new(number: u32, limits: MoveLimits) -> Mover {
        let bursts = limits.bursts.min(MAX_BURSTS);
        Mover {
            number,
            lines: limits.lines,
            reads: vec![None; bursts],
            writes: vec![false; bursts],
            ..Mover::default()
        }
    }

    /// Starts a move that writes `length` bytes of the data.
    fn start_move(&mut self, target: u64, length: u64, ports: &mut EnginePorts) {
        (self.target, self.length) = (target, length);
        (self.segment, self.requested) = (0, 0);
        (self.filled, self.arrived, self.sent) = (0, 0, 0);
        self.have = match self.segments.is_empty() {
            true => length,
            false => 0,
        };
        (self.head, self.tail) = (0, 0);
        self.errors = Errors::default();
        self.busy = true;
        self.advance(ports);
    }

    fn read_range(&mut self, source: u64, bytes: u64, length: u64) {
        self.segments.clear();
        self.segments.push(Segment {
            source,
            bytes,
            at: 0,
            header: None,
        });
        self.data.resize(bytes.max(length) as usize, 0);
        self.data[bytes as usize..].fill(0);
    }

    /// Copies a range; with `pad` zeros fill the last line of the target.
    pub(super) fn copy(
        &mut self,
        source: u64,
        target: u64,
        bytes: u64,
        pad: bool,
        ports: &mut EnginePorts,
    ) {
        let length = if pad { padded(bytes) } else { bytes };
        self.read_range(source, bytes, length);
        self.start_move(target, length, ports);
    }

    /// Reads a range.
    pub(super) fn load(&mut self, source: u64, bytes: u64, ports: &mut EnginePorts) {
        self.read_range(source, bytes, 0);
        self.start_move(0, 0, ports);
    }

    /// Makes consecutive records from `target` on: of each its source and its header without the
    /// CRC of the payload.
    pub(super) fn make_records(
        &mut self,
        target: u64,
        records: impl Iterator<Item = (u64, Header)>,
        ports: &mut EnginePorts,
    ) {
        self.segments.clear();
        let mut length = 0;
        for (source, header) in records {
            let bytes = header.bytes.into();
            self.segments.push(Segment {
                source,
                bytes,
                at: length + HEADER_BYTES,
                header: Some(header),
            });
            length += HEADER_BYTES + padded(bytes);
        }
        self.data.clear();
        self.data.resize(length as usize, 0);
        self.start_move(target, length, ports);
    }

    /// Writes bytes of a line.
    pub(super) fn store(&mut self, target: u64, bytes: &[u8], ports: &mut EnginePorts) {
        self.segments.clear();
        self.data.clear();
        self.data.extend_from_slice(bytes);
        self.start_move(target, bytes.len() as u64, ports);
    }

    /// The first line of the read bytes.
    pub(super) fn line(&self) -> [u8; LINE as usize] {
        let mut line = [0; LINE as usize];
        let len = self.data.len().min(line.len());
        line[..len].copy_from_slice(&self.data[..len]);
        line
    }

    /// The read bytes, including the padding.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The move makes records. It ends when all that can be written is.
    fn makes_records(&self) -> bool {
        let first = self.segments.first();
        first.is_some_and(|segment| segment.header.is_some())
    }

    /// Takes the result of the move if it has ended.
    pub(super) fn take_finished(&mut self) -> Option<Errors> {
        let reads = self.reads.iter().all(Option::is_none);
        let writes = !self.writes.contains(&true);
        let done = self.filled == self.segments.len() && self.sent == self.length;
        let failed = self.errors != Errors::default() && !self.makes_records();
        let ended = self.busy && reads && writes && (done || failed);
        ended.then(|| {
            self.busy = false;
            self.errors
        })
    }

    /// Cycles until a read of `bytes` may be issued.
    fn read_delay(&mut self, bytes: u64, now: u64) -> u64 {
        if self.lines == FULL_RATE {
            return 0;
        }
        let begins = self.rate.0.max(now * FULL_RATE);
        self.rate.0 = begins + bytes.div_ceil(LINE) * FULL_RATE * FULL_RATE / self.lines;
        (begins - now * FULL_RATE).div_ceil(FULL_RATE)
    }

    /// Issues all reads and writes that are possible.
    fn advance(&mut self, ports: &mut EnginePorts) {
        if self.errors != Errors::default() && !self.makes_records() {
            return;
        }
        while let Some(segment) = self.segments.get(self.segment) {
            if self.reads[self.head].is_some() {
                break;
            }
            let at = segment.source + self.requested;
            let len = (BURST - at % BURST).min(segment.bytes - self.requested);
            self.reads[self.head] = Some(ReadBurst {
                source: at,
                at: segment.at + self.requested,
                len,
                arrived: false,
            });
            self.requested += len;
            if self.requested == segment.bytes {
                (self.segment, self.requested) = (self.segment + 1, 0);
            }
            let burst = self.number + self.head as u32;
            let wait = self.read_delay(at % LINE + len, ports.now());
            ports.read(CROSSBAR_CYCLES + wait, burst as u16, at, len as u32, burst);
            self.head = (self.head + 1) % self.reads.len();
        }
        let delay = if self.makes_records() {
            HEADER_CYCLES
        } else {
            0
        };
        while self.sent < self.length {
            let at = self.target + self.sent;
            let len = (BURST - at % BURST).min(self.length - self.sent);
            let Some(place) = self.writes.iter().position(|busy| !busy) else {
                return;
            };
            if self.have < self.sent + len {
                return;
            }
            self.writes[place] = true;
            let burst = self.number + (MAX_BURSTS + place) as u32;
            let cycles = CROSSBAR_CYCLES + delay;
            let inside = ports.write(cycles, burst as u16, at, len as u32, burst);
            let (from, to) = (self.sent as usize, (self.sent + len) as usize);
            if inside && !ports.store(at, &self.data[from..to]) {
                self.errors.write = true;
            }
            self.sent += len;
        }
    }

    /// A burst has ended. Its number counts from the mover's first one.
    pub(super) fn burst_answered(&mut self, burst: usize, ok: bool, ports: &mut EnginePorts) {
        if burst >= MAX_BURSTS {
            self.writes[burst - MAX_BURSTS] = false;
            self.errors.write |= !ok;
        } else {
            let read = self.reads[burst].as_mut().expect("the burst is open");
            read.arrived = true;
            let place = &mut self.data[read.at as usize..(read.at + read.len) as usize];
            if !ok || !ports.load(read.source, place) {
                self.errors.read = true;
                // Neither a record that can't be read nor one after it is written.
                let of_read = |segment: &&Segment| segment.at <= read.at;
                let failed = self.segments.iter().rev().find(of_read);
                if let Some(Segment {
                    at,
                    header: Some(_),
                    ..
                }) = failed
                {
                    self.length = self.length.min(at - HEADER_BYTES);
                }
            }
        }
        while let Some(read) = self.reads[self.tail].filter(|read| read.arrived) {
            self.reads[self.tail] = None;
            self.fill(read.len);
            self.tail = (self.tail + 1) % self.reads.len();
        }
        self.advance(ports);
    }

    /// The next bytes of the ranges are there.
    fn fill(&mut self, len: u64) {
        let segment = self.segments[self.filled];
        self.arrived += len;
        if segment.header.is_none() {
            self.have += len;
        }
        if self.arrived < segment.bytes {
            return;
        }
        (self.filled, self.arrived) = (self.filled + 1, 0);
        match segment.header {
            Some(header) => {
                let (from, to) = (segment.at as usize, (segment.at + segment.bytes) as usize);
                let header = Header {
                    payload_crc: payload_crc(&self.data[from..to]),
                    ..header
                };
                let line = header.to_line();
                self.data[from - line.len()..from].copy_from_slice(&line);
                self.have = segment.at + padded(segment.bytes);
            }
            // Zeros follow.
            None => self.have = self.length.max(segment.bytes),
        }
    }
}
