// SPDX-License-Identifier: Apache-2.0

//! Access to a pool's bytes by one CPU, with its counters.

use std::ops::Range;
use std::sync::Arc;

use host::{Cpu, Fence, Mapping, MemoryType, PendingLoad};
use sim::Time;
use spec::nearpm::LINE;

use crate::devices::{bits, Devices, StripeSegment};
use crate::lock::SPIN_INTERVAL;
use crate::{EngineHandle, Error, Options, Result};

/// Lines that are prefetched while a commit waits: at most the number of fill buffers of a CPU.
pub(crate) const PREFETCH_LINES: usize = 10;

/// Simulated time of operations for crash consistency, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// Fences of either kind.
    pub fences: Time,
    /// Copies of old and new bytes: loads of logged bytes, non-temporal stores.
    pub copies: Time,
    /// Write-backs of lines.
    pub flushes: Time,
    /// Commands to the engine.
    pub commands: Time,
}

/// An operation that exists for crash consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConsistencyOperation {
    /// A fence.
    Fence,
    /// A copy of old or new bytes.
    Copy,
    /// Write-backs of lines.
    Flush,
    /// A command to the engine.
    Command,
}

/// Is called after each operation with its begin and end:
/// [`Options::listener`](crate::Options::listener).
pub type Listener = Arc<dyn Fn(ConsistencyOperation, Time, Time) + Send + Sync>;

impl OperationTimes {
    fn of(&mut self, part: ConsistencyOperation) -> &mut Time {
        match part {
            ConsistencyOperation::Fence => &mut self.fences,
            ConsistencyOperation::Copy => &mut self.copies,
            ConsistencyOperation::Flush => &mut self.flushes,
            ConsistencyOperation::Command => &mut self.commands,
        }
    }
}

/// Counters of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Committed transactions.
    pub transactions: u64,
    /// Aborted transactions.
    pub aborts: u64,
    /// Fences that waited for persistence, as [`Options::fence`] says.
    pub fences: u64,
    /// Fences that only order a command after stores; a posted fence is enough.
    pub orders: u64,
    /// Flushed lines.
    pub lines: u64,
    /// Bytes that the CPU copied with non-temporal stores: log records, pages.
    pub copied: u64,
    /// Log records, of the CPU or the engine.
    pub records: u64,
    /// Payload of these records.
    pub payload: u64,
    /// Commands to the engine.
    pub commands: u64,
    /// Commits by engines of several devices in which more than one device takes part.
    pub spanning: u64,
    /// Allocated objects.
    pub allocations: u64,
    /// Simulated time within transactions.
    pub time: Time,
    /// The part of it in code for crash consistency: logs, copies of pages, flushes, fences,
    /// commands.
    pub consistency: Time,
    /// The part of that until the copies of old content have been requested and stores may follow:
    /// undo records, checkpoints, copies of pages. It is what the code of NearPM's artifact times
    /// as a region, with the CPU's waits. Not counted for redo logs.
    pub creation: Time,
    /// `consistency`, by operation; the rest is the library's own code.
    pub by_operation: OperationTimes,
}

impl Counts {
    /// The fraction of the time that crash consistency takes.
    pub fn fraction(&self) -> f64 {
        match self.time {
            Time::ZERO => 0.0,
            time => self.consistency.0 as f64 / time.0 as f64,
        }
    }
}

/// The bytes of a pool, by their offset in it.
pub(crate) struct Memory {
    pub cpu: Cpu,
    pub counts: Counts,
    pub options: Options,
    devices: Devices,
    /// Offset of each device's share in its window.
    place: u64,
    bytes: u64,
    /// Lines that are fetched while the next fence waits.
    next_lines: Vec<u64>,
    /// Commits by an engine wait until they are durable.
    pub waits: bool,
    /// An engine has commits that no fence has proven to be durable.
    pub unproven: bool,
    /// The present transaction has a commit of which an engine reports the end.
    pub posted: bool,
    /// An engine reports its commits, and the program alone waits for them: each is posted.
    pub words: bool,
    /// No other thread uses the pool.
    pub alone: bool,
    /// The engine's numbers of this thread's logs.
    pub threads: Range<u8>,
    /// Time is being counted as that of crash consistency.
    pub counts_time: bool,
    /// All transactions before the one under way have become durable.
    pub settled: bool,
}

impl Memory {
    pub fn new(cpu: &Cpu, devices: &Devices, place: u64, bytes: u64, options: &Options) -> Memory {
        Memory {
            cpu: cpu.clone(),
            counts: Counts::default(),
            options: options.clone(),
            devices: devices.clone(),
            place,
            bytes,
            next_lines: Vec::new(),
            waits: true,
            unproven: false,
            posted: false,
            words: false,
            alone: true,
            threads: 0..0,
            counts_time: false,
            settled: false,
        }
    }

    /// Sets the size of the pool.
    pub fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Runs an action on one device's share of the pool; offsets are those in the share.
    pub fn on_device<R>(
        &mut self,
        index: usize,
        what: impl FnOnce(&mut Memory) -> Result<R>,
    ) -> Result<R> {
        let one = Devices::from(self.devices.number(index));
        let bytes = self.bytes / self.devices.count() as u64;
        let devices = std::mem::replace(&mut self.devices, one);
        let whole = std::mem::replace(&mut self.bytes, bytes);
        let result = what(self);
        (self.devices, self.bytes) = (devices, whole);
        result
    }

    fn check(&self, offset: u64, len: usize) -> Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Error::Invalid(format!(
                "{len} bytes at {offset:#x}: the pool has {:#x} bytes",
                self.bytes
            ))),
        }
    }

    /// The mapping and offset of bytes that are on one device.
    fn mapping_at(&self, offset: u64, len: usize, kind: MemoryType) -> Result<(Mapping, u64)> {
        self.check(offset, len)?;
        let (index, local) = self.devices.locate(offset);
        let mapping = Mapping::pm(self.devices.number(index), kind);
        Ok((mapping, self.place + local))
    }

    /// Runs an action for each segment of an access, with its mapping and offset.
    fn for_each_segment(
        &self,
        offset: u64,
        len: usize,
        kind: MemoryType,
        mut each: impl FnMut(&Mapping, u64, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.check(offset, len)?;
        let mut segments = self.devices.segments(offset, len);
        segments.try_for_each(
            |StripeSegment {
                 index,
                 offset,
                 part,
             }| {
                let mapping = Mapping::pm(self.devices.number(index), kind);
                each(&mapping, self.place + offset, part)
            },
        )
    }

    fn read_as(&self, offset: u64, out: &mut [u8], kind: MemoryType) -> Result<()> {
        self.for_each_segment(offset, out.len(), kind, |map, at, part| {
            Ok(self.cpu.read(map, at, &mut out[part])?)
        })
    }

    /// Reads through the cache.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, MemoryType::WriteBack)
    }

    /// Prefetches a line into the cache.
    pub fn prefetch(&self, offset: u64) -> Result<()> {
        let (map, at) = self.mapping_at(offset, 1, MemoryType::WriteBack)?;
        Ok(self.cpu.prefetch(&map, at)?)
    }

    /// Reads from the device, past the cache.
    pub fn read_direct(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, MemoryType::Uncached)
    }

    /// The same, several lines at a time: for data that do not change meanwhile.
    pub fn read_media(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, MemoryType::WriteCombining)
    }

    /// Reads a line from the device.
    pub fn read_line_direct(&self, offset: u64) -> Result<[u8; LINE as usize]> {
        let mut line = [0; LINE as usize];
        self.read_direct(offset, &mut line)?;
        Ok(line)
    }

    /// Starts a load from one device, past the cache.
    pub fn issue_load(&self, offset: u64, bytes: u64) -> Result<PendingLoad> {
        let (map, at) = self.mapping_at(offset, bytes as usize, MemoryType::WriteCombining)?;
        Ok(self.cpu.issue_load(&map, at, bytes as usize)?)
    }

    /// Stores through the cache.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.for_each_segment(
            offset,
            data.len(),
            MemoryType::WriteBack,
            |map, at, part| Ok(self.cpu.write(map, at, &data[part])?),
        )
    }

    /// Runs an operation, and counts its time.
    pub fn timed<R>(
        &mut self,
        part: ConsistencyOperation,
        what: impl FnOnce(&mut Memory) -> Result<R>,
    ) -> Result<R> {
        let begin = self.cpu.now();
        let result = what(self);
        let end = self.cpu.now();
        *self.counts.by_operation.of(part) += end.saturating_sub(begin);
        if let Some(listener) = &self.options.listener {
            listener(part, begin, end);
        }
        result
    }

    /// Reads bytes that are going to be logged or copied.
    pub fn read_old(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.timed(ConsistencyOperation::Copy, |m| m.read(offset, out))
    }

    /// Copies with non-temporal stores.
    pub fn stream(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(offset, data.len())?;
        self.counts.copied += data.len() as u64;
        let lines = |m: &mut Memory| {
            for (n, part) in data.chunks(LINE as usize).enumerate() {
                let line = offset + n as u64 * LINE;
                let (map, at) = m.mapping_at(line, part.len(), MemoryType::WriteBack)?;
                m.cpu.ntstore(&map, at, part)?;
            }
            Ok(())
        };
        self.timed(ConsistencyOperation::Copy, lines)
    }

    /// `clwb` of all lines of a range.
    pub fn flush(&mut self, range: Range<u64>) -> Result<()> {
        let all = |m: &mut Memory| {
            for line in lines(range) {
                let (map, at) = m.mapping_at(line, 1, MemoryType::WriteBack)?;
                m.cpu.clwb(&map, at)?;
                m.counts.lines += 1;
            }
            Ok(())
        };
        self.timed(ConsistencyOperation::Flush, all)
    }

    /// Writes the lines of a range back and invalidates them: the device is going to change these
    /// bytes.
    pub fn drop_lines(&mut self, range: Range<u64>) -> Result<()> {
        let all = |m: &mut Memory| {
            for line in lines(range) {
                let (map, at) = m.mapping_at(line, 1, MemoryType::WriteBack)?;
                m.cpu.clflushopt(&map, at)?;
            }
            Ok(())
        };
        self.timed(ConsistencyOperation::Flush, all)
    }

    /// Lets other programs run.
    pub fn pause(&self) -> Result<()> {
        Ok(self.cpu.sleep_until(self.cpu.now() + SPIN_INTERVAL)?)
    }

    /// Has these lines fetched now, if no fence waits.
    pub fn fetch_next_lines(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.next_lines);
        lines.into_iter().try_for_each(|line| self.prefetch(line))
    }

    /// Waits until all flushed and streamed bytes are persistent.
    pub fn fence(&mut self) -> Result<()> {
        self.counts.fences += 1;
        self.fetch_next_lines()?;
        let what = self.options.fence;
        self.wait_fence(what)
    }

    /// Orders later stores after all flushed and streamed bytes.
    pub fn fence_between(&mut self) -> Result<()> {
        match self.options.ordered && self.options.engine.is_none() {
            true => self.fence_posted(),
            false => self.fence(),
        }
    }

    /// Orders a command after all flushed and streamed bytes.
    pub fn fence_posted(&mut self) -> Result<()> {
        self.counts.orders += 1;
        self.wait_fence(Fence::Posted)
    }

    /// Has lines fetched into the cache while the next fence waits for persistence: the next
    /// transaction is going to store to them.
    pub fn fetch_with_fence(&mut self, lines: Vec<u64>) {
        self.next_lines = lines;
    }

    fn wait_fence(&mut self, what: Fence) -> Result<()> {
        self.timed(ConsistencyOperation::Fence, |m| Ok(m.cpu.fence(what)?))
    }

    /// A fence after commands to devices, a bit for each: the commands are persistent, and all that
    /// was ordered before them. An error if the engines have refused a command of this thread. If
    /// commits do not wait, a later fence proves that.
    pub fn fence_commands(&mut self, devices: u64) -> Result<()> {
        let all: Vec<_> = self.options.engines().cloned().collect();
        let engines: Vec<_> = bits(devices).filter_map(|index| all.get(index)).collect();
        if self.waits && self.options.fence == Fence::ReadBack {
            self.counts.fences += 1;
            self.fetch_next_lines()?;
            self.timed(ConsistencyOperation::Fence, |m| {
                EngineHandle::fence_with_status(&m.cpu, &engines)
            })?;
            self.unproven = false;
            let (pool, threads) = (self.options.pool, &self.threads);
            let refused = |engine: &&Arc<EngineHandle>| engine.check_refusals(pool, threads);
            return engines.iter().try_for_each(refused);
        }
        match self.waits {
            true => {
                for index in bits(devices) {
                    let map = Mapping::pm(self.devices.number(index), MemoryType::Uncached);
                    self.cpu.note_store(&map, self.place)?;
                }
                self.fence()?;
                self.unproven = false;
            }
            false => {
                self.unproven = true;
                self.posted = true;
                self.fetch_next_lines()?;
            }
        }
        self.timed(ConsistencyOperation::Command, |m| {
            let prefetch = |engine: &&Arc<EngineHandle>| engine.prefetch_status(&m.cpu);
            engines.iter().try_for_each(prefetch)
        })
    }

    /// Proves that the commands to the engine of a single device are persistent: the device answers
    /// a load of the command page after all of them.
    pub fn prove_commands(&mut self) -> Result<()> {
        match self.unproven {
            true => self.fence_commands(1),
            false => Ok(()),
        }
    }

    /// Stores a line, atomically with respect to a crash, and flushes it.
    pub fn write_line(&mut self, offset: u64, line: &[u8; LINE as usize]) -> Result<()> {
        self.write(offset, line)?;
        self.flush(offset..offset + LINE)
    }

    /// Spends time of the library's own code.
    pub fn spend(&self, time: Time) -> Result<()> {
        Ok(self.cpu.compute(time)?)
    }
}

/// The first bytes of the lines of a range.
pub(crate) fn lines(range: Range<u64>) -> impl Iterator<Item = u64> {
    let first = range.start - range.start % LINE;
    (first..range.end).step_by(LINE as usize)
}
