// SPDX-License-Identifier: Apache-2.0

//! Observation of the CPUs, and of power cuts, for crash tests.

use sim::{Bar, Time};

use crate::flush::Fence;
use crate::machine::{Machine, Victim};
use crate::mapping::CacheLine;

/// An action of a CPU, or traffic that has left the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A CPU has stored to the cache.
    Stored {
        /// The CPU.
        cpu: usize,
        /// The line.
        line: CacheLine,
        /// First byte within the line, and number of bytes.
        bytes: (usize, usize),
    },
    /// A CPU has requested the write-back of a line.
    Flushed {
        /// The CPU.
        cpu: usize,
        /// The line.
        line: CacheLine,
    },
    /// A CPU has executed a fence.
    Fenced {
        /// The CPU.
        cpu: usize,
        /// The condition of the fence.
        what: Fence,
    },
    /// A write was posted to a device: it may still be lost.
    Posted {
        /// The device.
        device: usize,
        /// The window.
        bar: Bar,
        /// The offset in the window.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A load was sent to a device, after everything posted to it.
    Issued {
        /// The device.
        device: usize,
        /// Identifies the load.
        tag: u32,
    },
    /// The load was answered, so everything posted before it has arrived.
    Answered {
        /// Identifies the load.
        tag: u32,
    },
}

/// Receives each event with its time.
pub type Observer = Box<dyn FnMut(Time, HostEvent) + Send>;

/// Called when the power is about to fail. Returning a later time postpones the cut to that time.
pub type CrashProbe = Box<dyn FnMut(&mut Machine) -> Option<Time> + Send>;

impl Machine {
    /// Reports the actions of the CPUs to `observer` from now on, or to none.
    pub fn observe(&mut self, observer: Option<Observer>) {
        self.observer = observer;
    }

    /// Reports an event that happens now.
    pub(crate) fn record(&mut self, event: impl FnOnce() -> HostEvent) {
        let now = self.system.now();
        if let Some(observer) = &mut self.observer {
            observer(now, event());
        }
    }

    /// Reports an event at the time of a CPU.
    pub(crate) fn record_at(&mut self, cpu: usize, event: impl FnOnce() -> HostEvent) {
        let time = self.time(cpu);
        if let Some(observer) = &mut self.observer {
            observer(time, event());
        }
    }

    /// Calls `probe` at the time of [`Machine::cut_at`], before the power fails.
    pub fn set_probe(&mut self, probe: Option<CrashProbe>) {
        self.probe = probe;
    }

    /// True if a probe has postponed the cut past the present.
    pub(crate) fn is_spared(&mut self) -> bool {
        while self.cut.is_some_and(|cut| self.system.now() >= cut) {
            let Some(mut probe) = self.probe.take() else {
                return false;
            };
            let Some(next) = probe(self) else {
                return false;
            };
            self.cut = Some(next);
            self.probe.get_or_insert(probe);
        }
        true
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
    pub(crate) fn post(
        &mut self,
        device: usize,
        bar: Bar,
        offset: u64,
        data: &[u8],
    ) -> Result<(), sim::Error> {
        self.record(|| HostEvent::Posted {
            device,
            bar,
            offset,
            data: data.to_vec(),
        });
        self.system.mmio_write(device, bar, offset, data)
    }
}
