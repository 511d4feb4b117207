// SPDX-License-Identifier: Apache-2.0

//! A CPU of a shared host: the operations of a program.

use sim::{Bar, Time};

use crate::access::{collect_load, issue_load, load, ntstore, prefetch, store, PendingLoad};
use crate::events::Fence;
use crate::flush::{fence, fence_with_lines, write_back};
use crate::in_flight::begin_instruction;
use crate::mapping::{Mapping, LINE};
use crate::{Error, Result, SharedMachine, Turn, WakeCondition};

/// One CPU. Each operation takes the time that the host's profile states, plus the time of link and
/// device where it needs them.
///
/// Offsets are within the mapping's window. Accesses outside of it fail where they reach the
/// device.
#[derive(Clone)]
pub struct Cpu {
    shared: SharedMachine,
    number: usize,
}

impl Cpu {
    pub(crate) fn new(shared: SharedMachine, number: usize) -> Cpu {
        Cpu { shared, number }
    }

    /// The number of the CPU.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The host.
    pub fn shared(&self) -> &SharedMachine {
        &self.shared
    }

    /// The present time of the CPU: the end of its work so far.
    pub fn now(&self) -> Time {
        self.shared
            .with_machine(|machine| machine.time(self.number))
    }

    /// Spends time on computation, at most 1000 s.
    pub fn compute(&self, time: Time) -> Result<()> {
        if time > MOST_WORK {
            return Err(Error::Access(format!(
                "work that takes {time}: allowed are at most 1000 s"
            )));
        }
        self.shared.turn()?.machine().spend(self.number, time);
        Ok(())
    }

    /// Spends the time of `loads` dependent loads of host memory that miss all caches.
    pub fn spend_dram_loads(&self, loads: u64) -> Result<()> {
        let one = self.shared.with_machine(|machine| machine.costs.dram);
        self.compute(Time(one.0.saturating_mul(loads)))
    }

    /// Spends the time of a copy of `bytes` bytes within host memory.
    pub fn spend_copy(&self, bytes: u64) -> Result<()> {
        let ps = self
            .shared
            .with_machine(|machine| machine.costs.copy_ps_per_byte);
        self.compute(Time((ps * bytes as f64).round() as u64))
    }

    /// Loads a line of host memory that a device writes. `known` is the line as this CPU has loaded
    /// it last: the load hits the cache if the device has not written to the line since. An error
    /// if the device has lost stores, as with a fence that reads back.
    pub fn load_host_line(
        &self,
        device: usize,
        address: u64,
        known: &mut [u8; LINE],
    ) -> Result<()> {
        let mut turn = self.shared.turn()?;
        begin_instruction(&mut turn, self.number)?;
        let machine = turn.machine();
        let before = *known;
        machine
            .system
            .memory()
            .read(address, known)
            .map_err(|error| Error::Access(error.to_string()))?;
        let time = match *known == before {
            true => machine.costs.hit,
            false => machine.costs.dram,
        };
        machine.spend(self.number, machine.costs.issue + time);
        machine.check_lost_stores(self.number, device)
    }

    /// Sleeps until `time`, at most 1000 s from now.
    pub fn sleep_until(&self, time: Time) -> Result<()> {
        let mut turn = self.shared.turn()?;
        let now = turn.machine().time(self.number);
        if time.saturating_sub(now) > MOST_WORK {
            return Err(Error::Access(format!(
                "a sleep until {time}: allowed are at most 1000 s from {now}"
            )));
        }
        let until = time.max(now);
        turn.wait_for(WakeCondition::At(until))?;
        begin_instruction(&mut turn, self.number)
    }

    /// Loads 1 to 64 bytes.
    pub fn load(&self, mapping: &Mapping, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut turn = self.shared.turn()?;
        load(&mut turn, self.number, mapping, offset, out)
    }

    /// Starts a load of 1 to 64 bytes. An uncached load waits for its data here, others only for a
    /// fill buffer.
    pub fn issue_load(&self, mapping: &Mapping, offset: u64, len: usize) -> Result<PendingLoad> {
        let mut turn = self.shared.turn()?;
        issue_load(&mut turn, self.number, mapping, offset, len)
    }

    /// `prefetcht0`: fetches the line of a byte into the cache, without waiting for it. No effect
    /// on mappings that are not write-back.
    pub fn prefetch(&self, mapping: &Mapping, offset: u64) -> Result<()> {
        let mut turn = self.shared.turn()?;
        prefetch(&mut turn, self.number, mapping, offset)
    }

    /// Makes the next fence include the device of a window, as after a store at `offset`. For
    /// stores that this CPU does not see, such as those to a command page.
    pub fn note_store(&self, mapping: &Mapping, offset: u64) -> Result<()> {
        let mut turn = self.shared.turn()?;
        let machine = turn.machine();
        machine
            .system
            .check_access(mapping.device, mapping.bar, offset, 1)?;
        machine.note_unfenced(self.number, &mapping.line(offset), offset);
        Ok(())
    }

    /// Waits for the data of a load. A load issued on another CPU is waited for here.
    pub fn finish_load(&self, pending: PendingLoad) -> Result<Vec<u8>> {
        let mut turn = self.shared.turn()?;
        collect_load(&mut turn, self.number, pending)
    }

    /// Stores 1 to 64 bytes.
    pub fn store(&self, mapping: &Mapping, offset: u64, data: &[u8]) -> Result<()> {
        let mut turn = self.shared.turn()?;
        store(&mut turn, self.number, mapping, offset, data)
    }

    /// A non-temporal store of 1 to 64 bytes through a write-combining buffer, for any mapping
    /// except an uncached one.
    pub fn ntstore(&self, mapping: &Mapping, offset: u64, data: &[u8]) -> Result<()> {
        let mut turn = self.shared.turn()?;
        ntstore(&mut turn, self.number, mapping, offset, data)
    }

    /// `clwb`: writes the line of a byte back if it is dirty; the line stays in the cache.
    pub fn clwb(&self, mapping: &Mapping, offset: u64) -> Result<()> {
        let mut turn = self.shared.turn()?;
        write_back(&mut turn, self.number, mapping, offset, false)
    }

    /// `clflushopt`: writes the line of a byte back if it is dirty; the line leaves the cache.
    pub fn clflushopt(&self, mapping: &Mapping, offset: u64) -> Result<()> {
        let mut turn = self.shared.turn()?;
        write_back(&mut turn, self.number, mapping, offset, true)
    }

    /// `sfence`, and the further wait that `what` requests.
    pub fn fence(&self, what: Fence) -> Result<()> {
        let mut turn = self.shared.turn()?;
        fence(&mut turn, self.number, what)
    }

    /// As [`Fence::ReadBack`], but loads the line of 64 bytes at each of these places, a device, a
    /// window and an offset, instead of 4 bytes from that device. Returns the lines.
    pub fn fence_with_lines(&self, places: &[(usize, Bar, u64)]) -> Result<Vec<Vec<u8>>> {
        let mut turn = self.shared.turn()?;
        fence_with_lines(&mut turn, self.number, places)
    }

    /// Loads any number of bytes, with as many lines in flight as there are fill buffers.
    pub fn read(&self, mapping: &Mapping, offset: u64, out: &mut [u8]) -> Result<()> {
        check_range(offset, out.len())?;
        let ahead = self
            .shared
            .with_machine(|machine| machine.costs.fill_buffers);
        let mut under_way = std::collections::VecDeque::new();
        let mut done = 0;
        for (from, len) in lines(offset, out.len()) {
            if under_way.len() >= ahead {
                if let Some(pending) = under_way.pop_front() {
                    done += self.finish_into(pending, &mut out[done..])?;
                }
            }
            under_way.push_back(self.issue_load(mapping, offset + from as u64, len)?);
        }
        for pending in under_way {
            done += self.finish_into(pending, &mut out[done..])?;
        }
        Ok(())
    }

    fn finish_into(&self, pending: PendingLoad, out: &mut [u8]) -> Result<usize> {
        let data = self.finish_load(pending)?;
        out[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    /// Stores any number of bytes, line by line.
    pub fn write(&self, mapping: &Mapping, offset: u64, data: &[u8]) -> Result<()> {
        check_range(offset, data.len())?;
        lines(offset, data.len()).try_for_each(|(from, len)| {
            self.store(mapping, offset + from as u64, &data[from..from + len])
        })
    }

    /// Writes all lines of a range back: `clwb` of each.
    pub fn flush(&self, mapping: &Mapping, offset: u64, len: usize) -> Result<()> {
        check_range(offset, len)?;
        lines(offset, len).try_for_each(|(from, _)| self.clwb(mapping, offset + from as u64))
    }
}

/// The longest time that one call spends.
const MOST_WORK: Time = Time(1_000_000_000_000_000);

/// Refuses ranges that end past 2^64.
fn check_range(offset: u64, len: usize) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(_) => Ok(()),
        None => Err(Error::Access(format!(
            "{len} bytes at {offset:#x}: allowed are ranges that end below 2^64"
        ))),
    }
}

/// Splits a range into its lines: offset within the range, and length.
fn lines(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = offset.wrapping_add(from as u64);
        let here = (LINE - (at % LINE as u64) as usize).min(len - from);
        from += here;
        (here > 0).then_some((from - here, here))
    })
}
