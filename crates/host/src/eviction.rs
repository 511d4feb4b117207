// SPDX-License-Identifier: Apache-2.0

//! Evicted lines on their way to their devices, and posted writes.

use sim::{Bar, Time};

use crate::events::HostEvent;
use crate::machine::{Machine, Victim};
use crate::mapping::CacheLine;
use crate::uncached;
use crate::{Error, Result, Turn, WakeCondition};

/// Posts the evicted lines, in the order of their eviction.
pub(crate) fn post_victims<T: Turn>(turn: &mut T) -> Result<()> {
    if !turn.machine().victims.is_empty() {
        uncached::drain_all(turn)?;
    }
    while let Some(victim) = turn.machine().victims.front() {
        let device = victim.line.device;
        if !turn.machine().system.has_room(device) {
            let limit = turn.machine().completion_deadline();
            turn.wait_for(WakeCondition::Room(device, limit))?;
            if turn.machine().system.now() >= limit {
                // Removed, so that the error is reported once.
                let line = turn.machine().victims.pop_front().map(|v| v.line);
                let (bar, offset) = line.map_or((Bar::Pm, 0), |l| (l.bar, l.offset));
                return Err(Error::System(sim::Error::Timeout {
                    device,
                    bar,
                    offset,
                }));
            }
            // Another CPU may have posted it.
            continue;
        }
        let machine = turn.machine();
        let Some(Victim {
            line, data, cpus, ..
        }) = machine.victims.pop_front()
        else {
            return Ok(());
        };
        machine.post(line.device, line.bar, line.offset, &data)?;
        let drain = machine.costs.clwb_drain;
        for cpu in cpus {
            machine.note_sent(cpu, &line, line.offset, drain);
        }
    }
    Ok(())
}

impl Machine {
    /// Records that a CPU has sent something to a device, which the host's fabric accepts after
    /// `drain`.
    pub(crate) fn note_sent(&mut self, cpu: usize, line: &CacheLine, offset: u64, drain: Time) {
        let way = Time::ns(self.system.host().mmio_ns);
        let taken = self.time(cpu) + drain + way;
        let core = self.core(cpu);
        core.accepted = core.accepted.max(taken);
        self.note_unfenced(cpu, line, offset);
    }

    /// Makes the next fence of a CPU include a device.
    pub(crate) fn note_unfenced(&mut self, cpu: usize, line: &CacheLine, offset: u64) {
        let core = self.core(cpu);
        match core.unfenced.iter_mut().find(|u| u.0 == line.device) {
            Some(last) => *last = (line.device, line.bar, offset),
            None => core.unfenced.push((line.device, line.bar, offset)),
        }
    }
    /// Evicts the dirty lines that `chosen` selects, as far as their links have space; they stay as
    /// clean copies. A cache may evict lines at any time. Returns the number of dirty lines.
    pub fn evict(&mut self, mut chosen: impl FnMut(&CacheLine) -> bool) -> usize {
        let mut dirty = 0;
        for entry in self.cache.entries().filter(|entry| entry.dirty != 0) {
            dirty += 1;
            if chosen(&entry.line) {
                self.victims.push_back(Victim {
                    line: entry.line,
                    data: entry.data,
                    dirty: std::mem::take(&mut entry.dirty),
                    cpus: Vec::new(),
                });
                self.counts.evictions += 1;
            }
        }
        while let Some(victim) = self.victims.front() {
            if !self.store_buffers_are_empty() {
                break;
            }
            let (line, data) = (victim.line, victim.data);
            let room = self.system.has_room(line.device);
            // A line requested by another CPU is posted by that CPU.
            if !room || !victim.cpus.is_empty() {
                break;
            }
            self.victims.pop_front();
            if self
                .post(line.device, line.bar, line.offset, &data)
                .is_err()
            {
                break;
            }
        }
        dirty
    }

    /// Posts a write, for which there is space.
    pub(crate) fn post(&mut self, device: usize, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        self.record(|| HostEvent::Posted {
            device,
            bar,
            offset,
            data: data.to_vec(),
        });
        Ok(self.system.mmio_write(device, bar, offset, data)?)
    }
}
