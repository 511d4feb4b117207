//! What zeroes or verifies ranges of the media, one command at a time (nvme_ranges, nvme_sweep, nvme_fill): Write Zeroes, Verify,
//! Dataset Management, and the formats.
//!
//! What has less than [`SMALL`] blocks goes through the movers, 4 KiB at a time; the rest is asked of the memories, a region at
//! a time, which write zeros at their own speed.

use std::collections::VecDeque;

use nvme::dataset::{Range, RANGE};
use nvme::{Namespace, Step, Walker, BLOCK_BYTES};

use sim::memctrl::MemoryModel;

use crate::config::Config;
use crate::cx::{Cx, Event};
use crate::memory::Memories;
use crate::port::{Arrival, Purpose, BEAT};

use super::data::{Data, Outcome};
use super::timing;

/// Blocks from which on the memories zero by themselves.
const SMALL: u64 = 128;
/// Bytes that a channel zeroes for one request.
const REGION: u64 = 512 << 10;
/// Bytes of a job.
const SPAN: u64 = 4096;

/// What is asked for.
pub(crate) enum What {
    /// Zeros: (address on the media, bytes).
    Zero(u64, u64),
    /// Reads: the same.
    Verify(u64, u64),
    /// The ranges of a list in host memory.
    Deallocate {
        walker: Walker,
        bytes: u64,
        namespace: Namespace,
    },
}

struct Work {
    slot: u16,
    what: What,
}

/// The list of a Dataset Management that is being read.
struct List {
    walker: Walker,
    bytes: Vec<u8>,
    wanted: usize,
    namespace: Namespace,
    /// What is left of the present piece: address, bytes.
    piece: (u64, u64),
}

struct Present {
    slot: u16,
    list: Option<List>,
    ranges: VecDeque<(u64, u64)>,
    /// Where the walk through the first range is.
    at: u64,
    verify: bool,
    /// It is to end like this.
    end: Option<Outcome>,
    /// A memory is zeroing: number, begin, address, bytes, cycles.
    fill: Option<Fill>,
}

#[derive(Clone, Copy)]
struct Fill {
    number: u32,
    since: u64,
    addr: u64,
    bytes: u64,
    cycles: u64,
}

impl Fill {
    /// Bytes that are zero by now: the memories end at a block's end.
    fn done(&self, now: u64, line_cycles: u64, channels: u64) -> u64 {
        let lines = now.saturating_sub(self.since) * 256 / line_cycles * channels;
        (lines * BEAT / BLOCK_BYTES * BLOCK_BYTES).min(self.bytes)
    }
}

pub(crate) struct Zeroing {
    waiting: VecDeque<Work>,
    present: Option<Present>,
    fills: u32,
    region: u64,
    channels: u64,
    /// A channel zeroes a line of 64 bytes in so many cycles, times 256.
    line_cycles: u64,
    /// A sweep is planned for this edge.
    planned: Option<u64>,
}

impl Zeroing {
    pub(crate) fn new(config: &Config) -> Zeroing {
        let channels = u64::from(config.storage.channels);
        let granule = config.storage.granule;
        let line_cycles = match &config.storage.dram {
            MemoryModel::Ddr4(dram) => {
                // A line a clock, if the pins carry so much; refreshes take their share.
                let per_cycle = dram.peak_bytes_per_ns() * config.clock.ns(1.0) * 0.93;
                (256.0 * (BEAT as f64 / per_cycle).max(1.0)) as u64
            }
            _ => 256,
        };
        Zeroing {
            waiting: VecDeque::new(),
            present: None,
            fills: 0,
            region: channels * REGION.max(granule),
            channels,
            line_cycles,
            planned: None,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.present.is_none()
    }

    /// Takes a command, whose transfer is open already.
    pub(crate) fn start(&mut self, slot: u16, what: What, cx: &mut Cx) {
        self.waiting.push_back(Work { slot, what });
        self.plan(cx.now + timing::WALK, cx);
    }

    fn plan(&mut self, cycle: u64, cx: &mut Cx) {
        if self
            .planned
            .is_none_or(|planned| planned > cycle || planned < cx.now)
        {
            self.planned = Some(cycle);
            cx.plan(cycle, Event::Sweep);
        }
    }

    /// Ends a command, if it is here; false if it is not.
    pub(crate) fn abort(&mut self, slot: u16, deleted: bool, data: &mut Data, cx: &mut Cx) -> bool {
        let why = match deleted {
            true => Outcome::Deleted,
            false => Outcome::Aborted,
        };
        if self.present.as_ref().is_some_and(|p| p.slot == slot) {
            self.end_present(why, data, cx);
            return true;
        }
        let Some(place) = self.waiting.iter().position(|work| work.slot == slot) else {
            return false;
        };
        self.waiting.remove(place);
        data.swept(slot, why, cx);
        true
    }

    /// The controller is being stopped: all end.
    pub(crate) fn stop(&mut self, data: &mut Data, cx: &mut Cx) {
        self.end_present(Outcome::Interrupted, data, cx);
        for work in std::mem::take(&mut self.waiting) {
            data.swept(work.slot, Outcome::Interrupted, cx);
        }
    }

    /// The function is reset, or the power fails: what the memories have zeroed is zero.
    pub(crate) fn cut(&self, now: u64, memory: &mut Memories) {
        if let Some(fill) = self.present.as_ref().and_then(|present| present.fill) {
            memory.zero(fill.addr, fill.done(now, self.line_cycles, self.channels));
        }
    }

    fn end_present(&mut self, why: Outcome, data: &mut Data, cx: &mut Cx) {
        let Some(present) = &mut self.present else {
            return;
        };
        if present.end.is_some() {
            return;
        }
        present.end = Some(why);
        if let Some(fill) = present.fill {
            let done = fill.done(cx.now, self.line_cycles, self.channels);
            if done < fill.bytes {
                let fine = cx.memory.zero(fill.addr, done);
                present.fill = None;
                self.finish(if fine { why } else { Outcome::WriteFault }, data, cx);
                return;
            }
        }
        // A list is being read: the line that was asked for comes first.
        let reading = present
            .list
            .as_ref()
            .is_some_and(|list| list.piece.1 != 0 || list.bytes.len() < list.wanted);
        if !reading && present.fill.is_none() {
            self.plan(cx.now + 1, cx);
        }
    }

    /// The present command hands on no further range.
    fn finish(&mut self, outcome: Outcome, data: &mut Data, cx: &mut Cx) {
        if let Some(present) = self.present.take() {
            data.swept(present.slot, outcome, cx);
        }
        if !self.waiting.is_empty() {
            self.plan(cx.now + timing::WALK, cx);
        }
    }

    /// Goes on, as far as movers and memories take it.
    pub(crate) fn sweep(&mut self, data: &mut Data, cx: &mut Cx) {
        self.planned = None;
        if self.present.is_none() {
            let Some(work) = self.waiting.pop_front() else {
                return;
            };
            self.begin(work, data, cx);
        }
        loop {
            let Some(present) = &mut self.present else {
                return;
            };
            if present.fill.is_some() {
                return;
            }
            if let Some(why) = present.end {
                if present.list.is_some() {
                    return;
                }
                self.finish(why, data, cx);
                return;
            }
            if present.list.is_some() {
                return;
            }
            let Some(&(addr, bytes)) = present.ranges.front() else {
                self.finish(Outcome::Ok, data, cx);
                return;
            };
            let left = addr + bytes - present.at;
            if left == 0 {
                present.ranges.pop_front();
                present.at = present.ranges.front().map_or(0, |range| range.0);
                continue;
            }
            // What the memories do by themselves goes past an access hook.
            if !present.verify && cx.hook.is_none() && bytes / BLOCK_BYTES >= SMALL {
                let part = left.min(self.region - present.at % self.region);
                self.fills += 1;
                let lines = part.div_ceil(BEAT * self.channels);
                let cycles = (lines * self.line_cycles).div_ceil(256).max(1) + timing::WRITE_ISSUE;
                present.fill = Some(Fill {
                    number: self.fills,
                    since: cx.now,
                    addr: present.at,
                    bytes: part,
                    cycles,
                });
                cx.after(cycles, Event::Zeroed(self.fills));
                return;
            }
            let part = left.min(SPAN - present.at % SPAN);
            if !data.sweep(present.slot, present.at, part as u32, cx) {
                return; // it is called again when there is room
            }
            present.at += part;
        }
    }

    fn begin(&mut self, work: Work, data: &mut Data, cx: &mut Cx) {
        let mut present = Present {
            slot: work.slot,
            list: None,
            ranges: VecDeque::new(),
            at: 0,
            verify: false,
            end: None,
            fill: None,
        };
        match work.what {
            What::Zero(addr, bytes) | What::Verify(addr, bytes) => {
                present.verify = matches!(work.what, What::Verify(..));
                present.ranges.push_back((addr, bytes));
                present.at = addr;
                self.present = Some(present);
            }
            What::Deallocate {
                walker,
                bytes,
                namespace,
            } => {
                present.list = Some(List {
                    walker,
                    bytes: Vec::new(),
                    wanted: bytes as usize,
                    namespace,
                    piece: (0, 0),
                });
                self.present = Some(present);
                self.next_line(data, cx);
            }
        }
    }

    /// What the memories have zeroed has ended.
    pub(crate) fn zeroed(&mut self, number: u32, data: &mut Data, cx: &mut Cx) {
        let Some(present) = &mut self.present else {
            return;
        };
        let Some(fill) = present.fill.filter(|fill| fill.number == number) else {
            return;
        };
        debug_assert!(cx.now >= fill.since + fill.cycles);
        present.fill = None;
        present.at += fill.bytes;
        if !cx.memory.zero(fill.addr, fill.bytes) {
            self.finish(Outcome::WriteFault, data, cx);
            return;
        }
        self.sweep(data, cx);
    }

    /// Reads on in the list.
    fn next_line(&mut self, data: &mut Data, cx: &mut Cx) {
        let outcome = loop {
            let Some(present) = &mut self.present else {
                return;
            };
            let Some(list) = &mut present.list else {
                return;
            };
            if let Some(why) = present.end {
                break why;
            }
            if list.piece.1 > 0 {
                let addr = list.piece.0;
                let first = addr & !(BEAT - 1);
                cx.read(timing::LIST, Purpose::Ranges, first, BEAT as u32);
                return;
            }
            match list.walker.step() {
                Step::Data(piece) => list.piece = (piece.addr, piece.len),
                Step::Drop(_) => {}
                Step::NeedList(wanted) => {
                    let first = wanted.addr & !(BEAT - 1);
                    list.piece = (0, 0);
                    cx.read(timing::LIST, Purpose::RangesList, first, BEAT as u32);
                    return;
                }
                Step::Fault(fault) => break Outcome::Walk(fault),
                Step::Done => {
                    let bytes = std::mem::take(&mut list.bytes);
                    let namespace = list.namespace;
                    let ranges: Vec<Range> = bytes
                        .chunks_exact(RANGE)
                        .map(|chunk| {
                            let mut bytes = [0; RANGE];
                            bytes.copy_from_slice(chunk);
                            Range::from_bytes(&bytes)
                        })
                        .collect();
                    if !ranges
                        .iter()
                        .all(|r| namespace.holds(r.lba, r.blocks.into()))
                    {
                        break Outcome::OutOfRange;
                    }
                    present.list = None;
                    present.ranges = ranges
                        .iter()
                        .map(|r| {
                            let addr = (namespace.base + r.lba) * BLOCK_BYTES;
                            (addr, u64::from(r.blocks) * BLOCK_BYTES)
                        })
                        .collect();
                    present.at = present.ranges.front().map_or(0, |range| range.0);
                    self.plan(cx.now + timing::WALK, cx);
                    return;
                }
            }
        };
        if let Some(present) = &mut self.present {
            present.list = None;
        }
        self.finish(outcome, data, cx);
    }

    /// A line of the list, or of the segment that describes where it lies, has come.
    pub(crate) fn line_arrived(&mut self, arrival: &Arrival, data: &mut Data, cx: &mut Cx) {
        let Some(list) = self.present.as_mut().and_then(|p| p.list.as_mut()) else {
            return;
        };
        let of_list = arrival.purpose == Purpose::Ranges;
        match &arrival.data {
            None if of_list => {
                let why = self.present.as_ref().and_then(|p| p.end);
                if let Some(present) = &mut self.present {
                    present.list = None;
                }
                self.finish(why.unwrap_or(Outcome::HostError), data, cx);
                return;
            }
            None => list.walker.fail(),
            Some(bytes) if of_list => {
                let (addr, left) = list.piece;
                let first = addr & !(BEAT - 1);
                let skip = (addr - first).saturating_sub(arrival.offset.into()) as usize;
                let here = bytes.get(skip..).unwrap_or(&[]);
                let some = (here.len() as u64).min(left);
                list.bytes.extend_from_slice(&here[..some as usize]);
                list.piece = (addr.wrapping_add(some), left - some);
            }
            Some(bytes) => {
                let addr = list.walker.wanted().map_or(0, |wanted| wanted.addr);
                let first = addr & !(BEAT - 1);
                // Of a piece that begins behind the qwords wanted nothing is skipped.
                let at = u64::from(arrival.offset);
                let skip = (addr - first).saturating_sub(at) as usize;
                for qword in bytes.get(skip..).unwrap_or(&[]).chunks_exact(8) {
                    let mut word = [0; 8];
                    word.copy_from_slice(qword);
                    list.walker.feed(&[u64::from_le_bytes(word)]);
                }
            }
        }
        if arrival.last {
            cx.plan(arrival.cycle + timing::LIST_BACK, Event::Ranges);
        }
    }

    /// The line that has come is looked at.
    pub(crate) fn ranges(&mut self, data: &mut Data, cx: &mut Cx) {
        self.next_line(data, cx);
    }
}
