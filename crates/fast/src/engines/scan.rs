// SPDX-License-Identifier: Apache-2.0

//! The scan engine (hw/engine/scan): counts the values of a range that are between two bounds, and
//! can write a bitmap of them.

mod bitmap;
mod channel_scan;
mod values;

use spec::nvme::{status, Status};
use spec::regs::scan::{kind, result};

use crate::config::Config;
use crate::controller::EngineCommand;

use self::bitmap::BitmapLine;
use self::channel_scan::{ChannelScan, BURSTS};
use self::values::Bounds;
use super::ports::EnginePorts;
use super::{Engine, Job, JobResult, BLOCK_BITS};

/// Log2 of the blocks in the unit in which an NVMe command gives the bitmap's address.
const UNIT_BITS: u32 = 3;
/// The NVMe opcode that writes a bitmap.
const FILTER: u8 = 1;
/// Cycles from the start to the first read.
const CHECK_CYCLES: u64 = 3;
/// Cycles from the last value to the end, in addition to one for each channel's count.
const FINISH_CYCLES: u64 = 4;
/// Cycles of a bitmap line from the channel that scans to the channel that stores it.
const LINE: u64 = 2;
/// Maximum number of lines without a response.
const LINES: u16 = 16;
/// Wake-up numbers, in addition to the channel numbers.
const BEGIN: u32 = 1 << 16;
const DONE: u32 = 2 << 16;
const WRITER: u32 = 3 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Idle,
    Checking,
    Scanning,
    Finished,
}

/// The range to scan.
#[derive(Clone, Copy, Default)]
struct ScanRange {
    src: u64,
    bytes: u64,
    dst: u64,
    filter: bool,
    bounds: Bounds,
}

impl ScanRange {
    /// The range of a job; `None`: it is invalid.
    fn of(job: &Job) -> Option<ScanRange> {
        let [src, bytes, low, high, kind, dst, _] = job.arguments;
        let wide = kind::WIDE.is_set(kind);
        let filter = kind::FILTER.is_set(kind);
        let (size, all) = (if wide { 8 } else { 4 }, 1u128 << 64);
        let known = kind::WIDE.mask() | kind::IS_SIGNED.mask() | kind::FILTER.mask();
        let bits = u128::from(bytes).div_ceil(if wide { 64 } else { 32 });
        let ok = !job.malformed
            && kind & !known == 0
            && bytes != 0
            && (src | bytes) % size == 0
            && u128::from(src) + u128::from(bytes) <= all;
        // Bits of a beat are whole bytes, so the byte addresses are exact.
        let map =
            !filter || (src % 64 == 0 && (wide || dst % 2 == 0) && u128::from(dst) + bits <= all);
        let signed = kind::IS_SIGNED.is_set(kind);
        (ok && map).then_some(ScanRange {
            src,
            bytes,
            dst,
            filter,
            bounds: Bounds::new(wide, signed, low, high),
        })
    }
}

/// One scan at a time. Each channel scans its part of the range independently.
pub(super) struct Scan {
    granule: u64,
    state: ScanState,
    /// `None`: it is invalid.
    range: Option<ScanRange>,
    stopped: bool,
    write_error: bool,
    channels: Vec<ChannelScan>,
    /// Open lines of the bitmap, the ID of the next one, the next channel in round-robin order, and
    /// the edge of the next line.
    open: u16,
    id: u16,
    next: usize,
    write_free: u64,
    write_planned: u64,
    finished: Option<JobResult>,
}

impl Scan {
    pub(super) fn new(config: &Config) -> Scan {
        let (channels, granule) = (config.storage.channels, config.storage.granule);
        let channel = |number| ChannelScan::new(number, channels, granule);
        Scan {
            granule,
            state: ScanState::Idle,
            range: None,
            stopped: false,
            write_error: false,
            channels: (0..channels).map(channel).collect(),
            open: 0,
            id: 0,
            next: 0,
            write_free: 0,
            write_planned: 0,
            finished: None,
        }
    }

    /// Bytes of a channel below an address of the media.
    fn below(&self, addr: u128, channel: usize) -> u64 {
        let (granule, channels) = (u128::from(self.granule), self.channels.len() as u128);
        let (row, at) = (addr / (granule * channels), addr % (granule * channels));
        let more = (at.saturating_sub(channel as u128 * granule)).min(granule);
        // For one channel this may be 2^64, which no address reaches.
        u64::try_from(row * granule + more).unwrap_or(u64::MAX)
    }

    fn begin(&mut self, ports: &mut EnginePorts) {
        let Some(range) = self.range.filter(|_| !self.stopped) else {
            self.finish(1, ports);
            return;
        };
        self.state = ScanState::Scanning;
        let end = u128::from(range.src) + u128::from(range.bytes);
        let (first, channels) = (range.src / self.granule, self.channels.len() as u64);
        for channel in 0..self.channels.len() {
            let (from, to) = (
                self.below(range.src.into(), channel),
                self.below(end, channel),
            );
            // The channel's first granule: the one where the range begins, or `later` granules
            // after it.
            let later = (channel as u64).wrapping_sub(first) % channels;
            let distance = match later {
                0 => 0,
                _ => later * self.granule - range.src % self.granule,
            };
            let place = range
                .dst
                .wrapping_add(distance / range.bounds.per_map_byte());
            let map = range.filter.then_some(place);
            self.channels[channel].start(from, to - from, range.bounds, map);
            self.channels[channel].advance(ports);
        }
        self.check_done(ports);
    }

    /// Writes as many lines of the bitmap as may be open.
    fn write(&mut self, ports: &mut EnginePorts) {
        while self.open < LINES {
            let channels = self.channels.len();
            let mut order = (0..channels).map(|n| (self.next + n) % channels);
            let Some(channel) = order.find(|&n| self.channels[n].has_line()) else {
                return;
            };
            if self.write_free > ports.now() {
                if self.write_planned <= ports.now() || self.write_free < self.write_planned {
                    self.write_planned = self.write_free;
                    ports.wake(self.write_free, WRITER);
                }
                return;
            }
            self.next = (channel + 1) % channels;
            self.write_free = ports.now() + 1;
            let line = self.channels[channel].take_line();
            self.write_line(&line.expect("the channel has a line"), ports);
            self.channels[channel].advance(ports);
        }
    }

    fn write_line(&mut self, line: &BitmapLine, ports: &mut EnginePorts) {
        let id = self.id;
        self.id = (id + 1) % LINES;
        self.open += 1;
        let data = &line.data[..line.len];
        if ports.write(LINE, id, line.at, line.len as u32, id.into()) {
            self.write_error |= !ports.store(line.at, data);
        }
    }

    /// Ends the scan if all work is done.
    fn check_done(&mut self, ports: &mut EnginePorts) {
        self.write(ports);
        if self.is_done() {
            let channels = self.channels.len() as u64;
            self.finish(FINISH_CYCLES + channels, ports);
        }
    }

    fn is_done(&self) -> bool {
        self.state == ScanState::Scanning
            && self.open == 0
            && !self.channels.iter().any(ChannelScan::is_busy)
    }

    fn finish(&mut self, cycles: u64, ports: &mut EnginePorts) {
        self.state = ScanState::Finished;
        ports.wake(ports.now() + cycles, DONE);
    }

    fn result(&self) -> JobResult {
        let mut end = JobResult::default();
        let begun = self.range.is_some();
        let bits = [
            (
                result::READ_ERROR,
                self.channels.iter().any(ChannelScan::has_failed),
            ),
            (result::WRITE_ERROR, self.write_error),
            (result::STOPPED, self.stopped),
            (result::INVALID, !begun),
        ];
        for (bit, on) in bits {
            end.result |= if on { bit.mask() as u32 } else { 0 };
        }
        let counts = self.channels.iter().map(ChannelScan::matches);
        end.outputs[0] = counts.fold(0, u64::wrapping_add);
        end
    }
}

impl Engine for Scan {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        let double = |n: usize| u64::from(dw[n + 1]) << 32 | u64::from(dw[n]);
        let (first, less) = (double(10), u64::from(dw[12] & 0xFF_FFFF));
        let filter = command.command == FILTER;
        let map = u64::from(dw[13] >> 2) << UNIT_BITS;
        if dw[12] >> 24 != 0 || (!filter && map != 0) {
            return Err(status::INVALID_FIELD.dnr());
        }
        let wide = kind::WIDE.is_set(dw[13].into());
        let map_last = map + (less >> if wide { 6 } else { 5 });
        let last = match first.checked_add(less) {
            Some(last) if last < command.blocks && !(filter && map_last >= command.blocks) => last,
            _ => return Err(status::LBA_OUT_OF_RANGE.dnr()),
        };
        if filter && map <= last && first <= map_last {
            return Err(status::INVALID_FIELD.dnr());
        }
        let mut job = Job::default();
        let kind = u64::from(dw[13] & 3) | kind::FILTER.mask() * u64::from(filter);
        job.arguments = [
            (command.base + first) << BLOCK_BITS,
            (less + 1) << BLOCK_BITS,
            double(2),
            double(14),
            kind,
            (command.base + map) << BLOCK_BITS,
            0,
        ];
        Ok(job)
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        let is = |bit: spec::regs::Field| bit.is_set(end.result.into());
        let status = if is(result::WRITE_ERROR) {
            status::WRITE_FAULT
        } else if is(result::READ_ERROR) {
            status::UNRECOVERED_READ_ERROR
        } else {
            status::SUCCESS
        };
        (status, end.outputs[0] as u32)
    }

    fn start(&mut self, job: &Job, ports: &mut EnginePorts) {
        self.range = ScanRange::of(job);
        (self.stopped, self.write_error) = (false, false);
        self.channels.iter_mut().for_each(ChannelScan::clear);
        self.state = ScanState::Checking;
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        match self.state {
            ScanState::Checking => self.stopped |= self.range.is_some(),
            ScanState::Scanning if !self.stopped => {
                self.stopped = true;
                self.channels.iter_mut().for_each(ChannelScan::halt);
                self.check_done(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        match what {
            BEGIN => self.begin(ports),
            DONE => {
                self.state = ScanState::Idle;
                self.finished = Some(self.result());
            }
            WRITER => self.check_done(ports),
            number => {
                self.channels[number as usize].advance(ports);
                self.check_done(ports);
            }
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        let burst = burst as usize;
        if end {
            self.channels[burst / BURSTS].arrived(burst % BURSTS, ok, ports);
            self.check_done(ports);
        }
    }

    fn write_answered(&mut self, _burst: u32, ok: bool, ports: &mut EnginePorts) {
        self.open -= 1;
        self.write_error |= !ok;
        self.check_done(ports);
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }
}
