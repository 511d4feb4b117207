//! Moves of a unit, one at a time: ranges of any alignment, lines, and checksums of what passes.

use spec::nearpm::{padded, LINE};

use super::super::ports::EnginePorts;

/// Bytes of a burst.
const BURST: u64 = 512;
/// Most bursts under way each way.
const MAX_BURSTS: usize = 8;
/// Numbers of bursts of a mover: reads, then writes.
pub(super) const NUMBERS: u32 = 2 * MAX_BURSTS as u32;
/// LineRange that a unit reads in 1024 cycles where nothing holds it back.
const FULL_RATE: u64 = 1024;
/// Cycles that an access takes through the engine's own multiplexers.
const CROSSBAR_CYCLES: u64 = 2;

/// What bounds a unit's moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Bursts under way each way.
    bursts: usize,
    /// LineRange that it may read in 1024 cycles.
    lines: u64,
}

impl Rates {
    /// With so many units and channels: the IDs of the memory's bus are those of bursts, and what is left of them tells masters apart.
    pub(super) fn new(units: u32, channels: u32, lines: u64) -> Rates {
        let per_bus = units.div_ceil(4);
        let masters = units.div_ceil(per_bus) + 1;
        let bits = 4 + channels.ilog2() - masters.next_power_of_two().ilog2();
        Rates {
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

/// A read burst: its place in the move, and whether it has come.
#[derive(Clone, Copy)]
struct ReadBurst {
    at: u64,
    len: u64,
    here: bool,
}

#[derive(Default)]
pub(super) struct Mover {
    /// The number of its first burst.
    number: u32,
    /// LineRange that it may read in 1024 cycles, and when the next ones may be requested for, in 1/1024 cycles.
    lines: u64,
    free: u64,
    source: u64,
    target: u64,
    /// Bytes to read, and to write.
    bytes: u64,
    length: u64,
    /// What has been read, or is to be written.
    data: Vec<u8>,
    requested: u64,
    have: u64,
    sent: u64,
    /// As many as may be under way.
    reads: Vec<Option<ReadBurst>>,
    head: usize,
    tail: usize,
    writes: Vec<bool>,
    errors: Errors,
    busy: bool,
}

impl Mover {
    /// One whose bursts are numbered from `number` on.
    pub(super) fn new(number: u32, rates: Rates) -> Mover {
        let bursts = rates.bursts.min(MAX_BURSTS);
        Mover {
            number,
            lines: rates.lines,
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

    /// Copies a range; with `pad` what is written is made whole lines with zeros.
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

    /// The first line of what was read.
    pub(super) fn line(&self) -> [u8; LINE as usize] {
        let mut line = [0; LINE as usize];
        let len = self.data.len().min(line.len());
        line[..len].copy_from_slice(&self.data[..len]);
        line
    }

    /// What was read, padding included.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Takes how the move has ended, if it has.
    pub(super) fn take_finished(&mut self) -> Option<Errors> {
        let reads = self.reads.iter().all(Option::is_none);
        let writes = !self.writes.contains(&true);
        let done =
            self.have == self.bytes && self.requested == self.bytes && self.sent == self.length;
        let failed = self.errors != Errors::default();
        let over = self.busy && reads && writes && (done || failed);
        over.then(|| {
            self.busy = false;
            self.errors
        })
    }

    /// Cycles that a read of so many bytes has to wait for.
    fn read_delay(&mut self, bytes: u64, now: u64) -> u64 {
        if self.lines == FULL_RATE {
            return 0;
        }
        let begins = self.free.max(now * FULL_RATE);
        self.free = begins + bytes.div_ceil(LINE) * FULL_RATE * FULL_RATE / self.lines;
        (begins - now * FULL_RATE).div_ceil(FULL_RATE)
    }

    /// ReadyCommand what may begin.
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
                here: false,
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
            // Zeros stand behind what has been read.
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

    /// A burst has ended; its number counts from the mover's first one on.
    pub(super) fn burst_answered(&mut self, burst: usize, ok: bool, ports: &mut EnginePorts) {
        if burst >= MAX_BURSTS {
            self.writes[burst - MAX_BURSTS] = false;
            self.errors.write |= !ok;
        } else if let Some(read) = &mut self.reads[burst] {
            read.here = true;
            let place = &mut self.data[read.at as usize..(read.at + read.len) as usize];
            if !ok || !ports.load(self.source + read.at, place) {
                self.errors.read = true;
            }
        }
        while let Some(read) = self.reads[self.tail].filter(|read| read.here) {
            self.reads[self.tail] = None;
            self.have += read.len;
            self.tail = (self.tail + 1) % self.reads.len();
        }
        self.advance(ports);
    }
}
