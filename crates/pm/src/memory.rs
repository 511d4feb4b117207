//! A pool's bytes as one CPU sees them, and what is counted.

use std::ops::Range;
use std::sync::Arc;

use host::{Cpu, Fence, Kind, Mapping, Pending};
use sim::Time;
use spec::nearpm::LINE;

use crate::devices::{bits, Devices, StripeSegment};
use crate::lock::SPIN_INTERVAL;
use crate::{EngineHandle, Error, Options, Result};

/// Simulated time of what is there for crash consistency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// Fences of either kind.
    pub fences: Time,
    /// Copies of old and new bytes: loads of what is kept, non-temporal stores.
    pub copies: Time,
    /// Write-backs of lines.
    pub flushes: Time,
    /// Commands to the engine.
    pub commands: Time,
}

/// What code that is there for crash consistency does.
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

/// Hears of each part, when it began and when it ended: [`Options::listener`](crate::Options::watch).
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

/// What a thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions that were aborted.
    pub aborts: u64,
    /// Fences that waited for persistence, as [`Options::fence`] says.
    pub fences: u64,
    /// Fences that only put a command behind stores, which a posted fence is enough for.
    pub orders: u64,
    /// Lines that were flushed.
    pub lines: u64,
    /// Bytes that the CPU copied with non-temporal stores: log records, pages.
    pub copied: u64,
    /// Log records that the CPU or the engine was to make.
    pub records: u64,
    /// Payload of these.
    pub payload: u64,
    /// Commands to the engine.
    pub commands: u64,
    /// Commits that were left to engines of several devices, with something to do for more than one of them.
    pub spanning: u64,
    /// Objects that were allocated.
    pub allocations: u64,
    /// Simulated time within transactions.
    pub time: Time,
    /// The part of it in code that is there for crash consistency: logs, copies of pages, flushes, fences, commands.
    pub consistency: Time,
    /// What it goes to; the rest is the library's own code.
    pub by_operation: OperationTimes,
}

impl Counts {
    /// The part of the time that crash consistency takes.
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
    /// Offset in the window of what each device has of the pool.
    place: u64,
    bytes: u64,
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
        }
    }

    /// The pool has another size from now on.
    pub fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Does something with what one of the devices has of the pool: offsets are those there.
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

    /// The window, and the offset in it, of bytes of the pool that one device has.
    fn mapping_at(&self, offset: u64, len: usize, kind: Kind) -> Result<(Mapping, u64)> {
        self.check(offset, len)?;
        let (index, local) = self.devices.locate(offset);
        let mapping = Mapping::pm(self.devices.number(index), kind);
        Ok((mapping, self.place + local))
    }

    /// Does something with each piece of an access: its window, and the offset in it.
    fn for_each_segment(
        &self,
        offset: u64,
        len: usize,
        kind: Kind,
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

    fn read_as(&self, offset: u64, out: &mut [u8], kind: Kind) -> Result<()> {
        self.for_each_segment(offset, out.len(), kind, |map, at, part| {
            Ok(self.cpu.read(map, at, &mut out[part])?)
        })
    }

    /// Reads through the cache.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, Kind::WriteBack)
    }

    /// Has a line brought to the cache.
    pub fn prefetch(&self, offset: u64) -> Result<()> {
        let (map, at) = self.mapping_at(offset, 1, Kind::WriteBack)?;
        Ok(self.cpu.prefetch(&map, at)?)
    }

    /// Reads what the device has, whatever the cache has.
    pub fn read_direct(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, Kind::Uncached)
    }

    /// The same, many lines at a time: for much that nobody changes meanwhile.
    pub fn read_media(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_as(offset, out, Kind::WriteCombining)
    }

    /// A line of what the device has.
    pub fn read_line_direct(&self, offset: u64) -> Result<[u8; LINE as usize]> {
        let mut line = [0; LINE as usize];
        self.read_direct(offset, &mut line)?;
        Ok(line)
    }

    /// Starts a load of what one device has without waiting for it.
    pub fn issue_load(&self, offset: u64, bytes: u64) -> Result<Pending> {
        let (map, at) = self.mapping_at(offset, bytes as usize, Kind::WriteCombining)?;
        Ok(self.cpu.issue(&map, at, bytes as usize)?)
    }

    /// Stores through the cache.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.for_each_segment(offset, data.len(), Kind::WriteBack, |map, at, part| {
            Ok(self.cpu.write(map, at, &data[part])?)
        })
    }

    /// Does something whose time is counted for itself.
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

    /// Reads what is going to be kept elsewhere.
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
                let (map, at) = m.mapping_at(line, part.len(), Kind::WriteBack)?;
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
                let (map, at) = m.mapping_at(line, 1, Kind::WriteBack)?;
                m.cpu.clwb(&map, at)?;
                m.counts.lines += 1;
            }
            Ok(())
        };
        self.timed(ConsistencyOperation::Flush, all)
    }

    /// Writes the lines of a range back, and drops them: the device is going to change what stands there.
    pub fn drop_lines(&mut self, range: Range<u64>) -> Result<()> {
        let all = |m: &mut Memory| {
            for line in lines(range) {
                let (map, at) = m.mapping_at(line, 1, Kind::WriteBack)?;
                m.cpu.clflushopt(&map, at)?;
            }
            Ok(())
        };
        self.timed(ConsistencyOperation::Flush, all)
    }

    /// Lets others go on for a moment.
    pub fn pause(&self) -> Result<()> {
        Ok(self.cpu.sleep_until(self.cpu.now() + SPIN_INTERVAL)?)
    }

    /// Waits until all that was flushed or streamed is persistent.
    pub fn fence(&mut self) -> Result<()> {
        self.counts.fences += 1;
        let what = self.options.fence;
        self.wait_fence(what)
    }

    /// What is stored from now on does not become persistent before all that was flushed or streamed.
    pub fn fence_between(&mut self) -> Result<()> {
        match self.options.ordered && self.options.engine.is_none() {
            true => self.fence_posted(),
            false => self.fence(),
        }
    }

    /// Waits until all that was flushed or streamed is on its way in front of a command.
    pub fn fence_posted(&mut self) -> Result<()> {
        self.counts.orders += 1;
        self.wait_fence(Fence::Posted)
    }

    fn wait_fence(&mut self, what: Fence) -> Result<()> {
        self.timed(ConsistencyOperation::Fence, |m| Ok(m.cpu.fence(what)?))
    }

    /// A fence behind commands to some of the devices, a bit for each: these are persistent, too, as is all that was ordered before them.
    pub fn fence_commands(&mut self, devices: u64) -> Result<()> {
        for index in bits(devices) {
            let map = Mapping::pm(self.devices.number(index), Kind::Uncached);
            self.cpu.note_store(&map, self.place)?;
        }
        self.fence()?;
        let engines: Vec<_> = self.options.engines().cloned().collect();
        let prefetch = |engine: &Arc<EngineHandle>, m: &Memory| engine.prefetch_status(&m.cpu);
        let prefetch_all = |m: &mut Memory| {
            let own = bits(devices).filter_map(|index| engines.get(index));
            own.into_iter().try_for_each(|engine| prefetch(engine, m))
        };
        self.timed(ConsistencyOperation::Command, prefetch_all)
    }

    /// Stores a line such that a crash leaves it old or new, and flushes it.
    pub fn write_line(&mut self, offset: u64, line: &[u8; LINE as usize]) -> Result<()> {
        self.write(offset, line)?;
        self.flush(offset..offset + LINE)
    }

    /// Time of the library's own code.
    pub fn spend(&self, time: Time) -> Result<()> {
        Ok(self.cpu.compute(time)?)
    }
}

/// The first bytes of the lines of a range.
pub(crate) fn lines(range: Range<u64>) -> impl Iterator<Item = u64> {
    let first = range.start - range.start % LINE;
    (first..range.end).step_by(LINE as usize)
}
