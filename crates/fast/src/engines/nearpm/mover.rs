// SPDX-License-Identifier: Apache-2.0

//! Moves of a unit, one at a time: copies, loads and stores of any alignment.

use spec::nearpm::{padded, LINE};

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

/// A read burst: its offset in the move, and whether it has arrived.
#[derive(Clone, Copy)]
struct ReadBurst {
    at: u64,
    len: u64,
    arrived: bool,
}

#[derive(Default)]
pub(super) struct Mover {
    /// The number of its first burst.
    number: u32,
    /// Maximum number of lines read in 1024 cycles, and the time of the next read in 1/1024 cycles.
    lines: u64,
    free: u64,
    source: u64,
    target: u64,
    /// Bytes to read, and to write.
    bytes: u64,
    length: u64,
    /// Bytes that were read, or that are to be written.
    data: Vec<u8>,
    requested: u64,
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

    fn start_move(
        &mut self,
        source: u64,
        target: u64,
        bytes: u64,
        length: u64,
        ports: &mut EnginePorts,
    ) {
        (self.source, self.target) = (source, target);
        (self.bytes, self.length) = (bytes, length);
        (self.requested, self.have, self.sent) = (0, 0, 0);
        (self.head, self.tail) = (0, 0);
        self.errors = Errors::default();
        self.busy = true;
        self.data.resize(bytes.max(length) as usize, 0);
        self.data[bytes as usize..].fill(0);
        self.advance(ports);
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
        self.start_move(source, target, bytes, length, ports);
    }

    /// Reads a range.
    pub(super) fn load(&mut self, source: u64, bytes: u64, ports: &mut EnginePorts) {
        self.start_move(source, 0, bytes, 0, ports);
    }

    /// Writes bytes of a line.
    pub(super) fn store(&mut self, target: u64, bytes: &[u8], ports: &mut EnginePorts) {
        self.data.clear();
        self.data.extend_from_slice(bytes);
        let length = bytes.len() as u64;
        (self.source, self.target, self.bytes, self.length) = (0, target, length, length);
        (self.requested, self.have, self.sent) = (length, length, 0);
        self.errors = Errors::default();
        self.busy = true;
        self.advance(ports);
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

    /// Takes the result of the move if it has ended.
    pub(super) fn take_finished(&mut self) -> Option<Errors> {
        let reads = self.reads.iter().all(Option::is_none);
        let writes = !self.writes.contains(&true);
        let done =
            self.have == self.bytes && self.requested == self.bytes && self.sent == self.length;
        let failed = self.errors != Errors::default();
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
        let begins = self.free.max(now * FULL_RATE);
        self.free = begins + bytes.div_ceil(LINE) * FULL_RATE * FULL_RATE / self.lines;
        (begins - now * FULL_RATE).div_ceil(FULL_RATE)
    }

    /// Issues all reads and writes that are possible.
    fn advance(&mut self, ports: &mut EnginePorts) {
        if self.errors != Errors::default() {
            return;
        }
        while self.requested < self.bytes && self.reads[self.head].is_none() {
            let at = self.source + self.requested;
            let len = (BURST - at % BURST).min(self.bytes - self.requested);
            self.reads[self.head] = Some(ReadBurst {
                at: self.requested,
                len,
                arrived: false,
            });
            let burst = self.number + self.head as u32;
            let wait = self.read_delay(at % LINE + len, ports.now());
            ports.read(CROSSBAR_CYCLES + wait, burst as u16, at, len as u32, burst);
            self.requested += len;
            self.head = (self.head + 1) % self.reads.len();
        }
        while self.sent < self.length {
            let at = self.target + self.sent;
            let len = (BURST - at % BURST).min(self.length - self.sent);
            // Zeros follow the read bytes.
            let wanted = (self.sent + len).min(self.bytes);
            let Some(place) = self.writes.iter().position(|busy| !busy) else {
                return;
            };
            if self.have < wanted {
                return;
            }
            self.writes[place] = true;
            let burst = self.number + (MAX_BURSTS + place) as u32;
            let inside = ports.write(CROSSBAR_CYCLES, burst as u16, at, len as u32, burst);
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
            if !ok || !ports.load(self.source + read.at, place) {
                self.errors.read = true;
            }
        }
        while let Some(read) = self.reads[self.tail].filter(|read| read.arrived) {
            self.reads[self.tail] = None;
            self.have += read.len;
            self.tail = (self.tail + 1) % self.reads.len();
        }
        self.advance(ports);
    }
}
