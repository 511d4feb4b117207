//! A pool's bytes as one CPU sees them, and what is counted.

use std::ops::Range;

use host::{Cpu, Fence, Kind, Mapping};
use sim::Time;
use spec::nearpm::LINE;

use crate::{Error, Options, Result};

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
    /// Objects that were allocated.
    pub allocations: u64,
    /// Simulated time within transactions.
    pub time: Time,
    /// The part of it in code that is there for crash consistency: logs, copies of pages, flushes, fences, commands.
    pub consistency: Time,
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
    map: Mapping,
    direct: Mapping,
    /// Offset of the pool in the window.
    place: u64,
    bytes: u64,
}

impl Memory {
    pub fn new(cpu: &Cpu, device: usize, place: u64, bytes: u64, options: &Options) -> Memory {
        Memory {
            cpu: cpu.clone(),
            counts: Counts::default(),
            options: options.clone(),
            map: Mapping::pm(device, Kind::WriteBack),
            direct: Mapping::pm(device, Kind::Uncached),
            place,
            bytes,
        }
    }

    /// The pool has another size from now on.
    pub fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Offset in the window of one in the pool.
    fn at(&self, offset: u64, len: usize) -> Result<u64> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.bytes => Ok(self.place + offset),
            _ => Err(Error::Invalid(format!(
                "{len} bytes at {offset:#x}: the pool has {:#x} bytes",
                self.bytes
            ))),
        }
    }

    /// Reads through the cache.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let at = self.at(offset, out.len())?;
        Ok(self.cpu.read(&self.map, at, out)?)
    }

    /// Reads what the device has, whatever the cache has.
    pub fn read_direct(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let at = self.at(offset, out.len())?;
        Ok(self.cpu.read(&self.direct, at, out)?)
    }

    /// A line of what the device has.
    pub fn line_direct(&self, offset: u64) -> Result<[u8; LINE as usize]> {
        let mut line = [0; LINE as usize];
        self.read_direct(offset, &mut line)?;
        Ok(line)
    }

    /// Stores through the cache.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let at = self.at(offset, data.len())?;
        Ok(self.cpu.write(&self.map, at, data)?)
    }

    /// Copies with non-temporal stores.
    pub fn stream(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let at = self.at(offset, data.len())?;
        for (n, part) in data.chunks(LINE as usize).enumerate() {
            self.cpu.ntstore(&self.map, at + n as u64 * LINE, part)?;
        }
        self.counts.copied += data.len() as u64;
        Ok(())
    }

    /// `clwb` of all lines of a range.
    pub fn flush(&mut self, range: Range<u64>) -> Result<()> {
        for line in lines(range) {
            let at = self.at(line, 1)?;
            self.cpu.clwb(&self.map, at)?;
            self.counts.lines += 1;
        }
        Ok(())
    }

    /// Writes the lines of a range back, and drops them: the device is going to change what stands there.
    pub fn drop_lines(&self, range: Range<u64>) -> Result<()> {
        for line in lines(range) {
            let at = self.at(line, 1)?;
            self.cpu.clflushopt(&self.map, at)?;
        }
        Ok(())
    }

    /// Waits until all that was flushed or streamed is persistent.
    pub fn fence(&mut self) -> Result<()> {
        self.counts.fences += 1;
        Ok(self.cpu.fence(self.options.fence)?)
    }

    /// Waits until all that was flushed or streamed is on its way in front of a command.
    pub fn order(&mut self) -> Result<()> {
        self.counts.orders += 1;
        Ok(self.cpu.fence(Fence::Posted)?)
    }

    /// A fence behind commands: these are persistent, too, as is all that was ordered before them.
    pub fn fence_commands(&mut self) -> Result<()> {
        let at = self.at(0, 4)?;
        self.cpu.note_store(&self.direct, at)?;
        self.fence()
    }

    /// Stores a line such that a crash leaves it old or new, and flushes it.
    pub fn put_line(&mut self, offset: u64, line: &[u8; LINE as usize]) -> Result<()> {
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
