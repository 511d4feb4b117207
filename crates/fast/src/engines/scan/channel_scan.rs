// SPDX-License-Identifier: Apache-2.0

//! The part of a range that is in one channel: a range of that channel's addresses (scan_channel,
//! ns_dma_read).

use super::super::ports::EnginePorts;
use super::bitmap::{Bitmap, BitmapLine};
use super::values::Bounds;

/// Bytes of a burst.
const BURST: u64 = 256;
/// Maximum number of read bursts that are open or buffered.
pub(super) const BURSTS: usize = 16;
/// A range is read in sections that end at multiples of this size, so that a stop takes effect
/// soon.
const SECTION_BYTES: u64 = 4096;
const BEAT: u64 = 64;
/// Number of waiting bitmap lines at which no more beats are accepted.
const LINES: usize = 8;
/// Cycles from a channel to the buffer, and through the buffer.
const RETURN_CYCLES: u64 = 4;
/// Cycles from the buffer to the counted values.
const COUNT: u64 = 3;

#[derive(Clone, Copy, Default)]
struct ReadSlot {
    /// Channel address.
    at: u64,
    len: u64,
    /// Arrival time, and whether the read succeeded.
    arrival: Option<(u64, bool)>,
    /// One bit for each value between the bounds.
    hits: u64,
}

/// One channel's part of the scan.
pub(super) struct ChannelScan {
    number: u32,
    channels: u32,
    granule: u64,
    bounds: Bounds,
    /// Next address to read, and end of the current section.
    at: u64,
    end: u64,
    section: u64,
    halted: bool,
    failed: bool,
    matches: u64,
    slots: [ReadSlot; BURSTS],
    head: usize,
    tail: usize,
    used: usize,
    /// There is a bitmap.
    filter: bool,
    map: Bitmap,
    /// Next free edges of reads, and of forwarded beats.
    read_free: u64,
    count_free: u64,
    scheduled: u64,
}

impl ChannelScan {
    pub(super) fn new(number: u32, channels: u32, granule: u64) -> ChannelScan {
        ChannelScan {
            number,
            channels,
            granule,
            bounds: Bounds::default(),
            at: 0,
            end: 0,
            section: 0,
            halted: false,
            failed: false,
            matches: 0,
            slots: [ReadSlot::default(); BURSTS],
            head: 0,
            tail: 0,
            used: 0,
            filter: false,
            map: Bitmap::new(),
            read_free: 0,
            count_free: 0,
            scheduled: 0,
        }
    }

    /// Resets the counts.
    pub(super) fn clear(&mut self) {
        (self.matches, self.failed) = (0, false);
    }

    /// Starts with a range of the channel, and the bitmap address of its first bits.
    pub(super) fn start(&mut self, at: u64, bytes: u64, bounds: Bounds, map: Option<u64>) {
        (self.at, self.section) = (at, at);
        self.end = at + bytes;
        self.bounds = bounds;
        self.halted = false;
        self.filter = map.is_some();
        self.map.start(map.unwrap_or(0));
    }

    /// Starts no further section.
    pub(super) fn halt(&mut self) {
        self.halted = true;
    }

    /// Reads are open, or bitmap lines wait.
    pub(super) fn is_busy(&self) -> bool {
        self.used > 0 || self.has_reads() || self.has_line()
    }

    /// There are bytes left to read.
    fn has_reads(&self) -> bool {
        self.at < self.section || (self.at < self.end && !self.halted)
    }

    /// A read has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Number of values between the bounds.
    pub(super) fn matches(&self) -> u64 {
        self.matches
    }

    /// A bitmap line waits.
    pub(super) fn has_line(&self) -> bool {
        self.map.waiting() > 0
    }

    /// Takes the oldest waiting line.
    pub(super) fn take_line(&mut self) -> Option<BitmapLine> {
        self.map.take_line()
    }

    fn schedule_wake_up(&mut self, cycle: u64, ports: &mut EnginePorts) {
        let now = ports.now();
        if self.scheduled <= now || cycle < self.scheduled {
            self.scheduled = cycle;
            ports.wake(cycle, self.number);
        }
    }

    /// The device address of a channel address; above all memories if there is none.
    fn addr(&self, at: u64) -> u64 {
        let row = u128::from(at / self.granule) * u128::from(self.channels);
        let addr = (row + u128::from(self.number)) * u128::from(self.granule);
        u64::try_from(addr + u128::from(at % self.granule)).unwrap_or(u64::MAX - BURST)
    }

    /// Does all work that is possible up to the current edge.
    pub(super) fn advance(&mut self, ports: &mut EnginePorts) {
        while self.count_oldest(ports) {}
        while self.issue_read(ports) {}
    }

    /// Issues a read burst.
    fn issue_read(&mut self, ports: &mut EnginePorts) -> bool {
        if self.used == BURSTS || !self.has_reads() {
            return false;
        }
        if self.read_free > ports.now() {
            let cycle = self.read_free;
            self.schedule_wake_up(cycle, ports);
            return false;
        }
        if self.at == self.section {
            let room = SECTION_BYTES - self.at % SECTION_BYTES;
            self.section = self.at + room.min(self.end - self.at);
        }
        let (at, id) = (self.at, (self.number as usize * BURSTS + self.head) as u32);
        let len = (BURST - at % BURST).min(self.section - at);
        self.slots[self.head] = ReadSlot {
            at,
            len,
            ..ReadSlot::default()
        };
        let slot = self.head as u16;
        self.head = (self.head + 1) % BURSTS;
        self.used += 1;
        self.at += len;
        self.read_free = ports.now() + 1;
        ports.read(0, slot, self.addr(at), len as u32, id);
        true
    }

    /// A burst has arrived. Its number counts from the part's first one.
    pub(super) fn arrived(&mut self, burst: usize, ok: bool, ports: &mut EnginePorts) {
        let addr = self.addr(self.slots[burst].at);
        let slot = &mut self.slots[burst];
        let mut data = [0; BURST as usize];
        let data = &mut data[..slot.len as usize];
        let ok = ok && ports.load(addr, data);
        slot.hits = if ok { self.bounds.hits(data) } else { 0 };
        slot.arrival = Some((ports.now(), ok));
        if burst == self.tail {
            self.advance(ports);
        }
    }

    /// Counts the values of the oldest burst.
    fn count_oldest(&mut self, ports: &mut EnginePorts) -> bool {
        if self.used == 0 || self.map.waiting() > LINES {
            return false;
        }
        let slot = self.slots[self.tail];
        let Some((arrived, ok)) = slot.arrival else {
            return false;
        };
        let beats = (slot.at % BEAT + slot.len).div_ceil(BEAT);
        let late = if self.filter { COUNT } else { 0 };
        let done = (self.count_free + beats).max(arrived + RETURN_CYCLES + late);
        if done > ports.now() {
            self.schedule_wake_up(done, ports);
            return false;
        }
        self.count_free = done;
        self.tail = (self.tail + 1) % BURSTS;
        self.used -= 1;
        self.matches = self.matches.wrapping_add(u64::from(slot.hits.count_ones()));
        if !ok {
            (self.halted, self.failed) = (true, true);
        }
        if self.filter {
            let per = self.bounds.per_map_byte();
            let end = slot.at + slot.len;
            let beat = BEAT / per;
            // The bytes of a beat are written as a whole.
            let bytes = (beats * beat) as usize;
            let granule_end = end % self.granule == 0;
            let jump = match granule_end {
                true => (u64::from(self.channels) - 1) * (self.granule / per),
                false => 0,
            };
            let whole = granule_end || end == self.end;
            self.map
                .push(&slot.hits.to_le_bytes()[..bytes], jump, whole);
        }
        true
    }
}
