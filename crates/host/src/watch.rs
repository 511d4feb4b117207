//! What the CPUs do, and when the power may fail, for whoever wants to know: crash tests.

use sim::{Bar, Time};

use crate::flush::Fence;
use crate::machine::{Machine, Victim};
use crate::mapping::CacheLine;

/// Something that a CPU has done, or that has left the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A CPU has stored to the cache.
    Stored {
        /// Which one.
        cpu: usize,
        /// The line.
        line: CacheLine,
        /// First byte within the line, and their number.
        bytes: (usize, usize),
    },
    /// A CPU has asked to have a line written back.
    Flushed {
        /// Which one.
        cpu: usize,
        /// The line.
        line: CacheLine,
    },
    /// A CPU has come to a fence.
    Fenced {
        /// Which one.
        cpu: usize,
        /// What it waits for.
        what: Fence,
    },
    /// A write was posted to a device: it may still be lost.
    Posted {
        /// The device.
        device: usize,
        /// The window.
        bar: Bar,
        /// Where in it.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A load was sent to a device, behind all that was posted to it.
    Issued {
        /// The device.
        device: usize,
        /// Names it.
        tag: u32,
    },
    /// The load has come back, so that all that was posted in front of it has arrived.
    Answered {
        /// Names it.
        tag: u32,
    },
}

/// Hears of each event, and when it was.
pub type Observer = Box<dyn FnMut(Time, HostEvent) + Send>;

/// Is asked when the power is to fail: another time lets it all go on up to then.
pub type CrashProbe = Box<dyn FnMut(&mut Machine) -> Option<Time> + Send>;

impl Machine {
    /// From now on somebody is told what the CPUs do, or nobody is.
    pub fn observe(&mut self, observer: Option<Observer>) {
        self.observer = observer;
    }

    /// Tells of something that happens now.
    pub(crate) fn record(&mut self, event: impl FnOnce() -> HostEvent) {
        let now = self.system.now();
        if let Some(observer) = &mut self.observer {
            observer(now, event());
        }
    }

    /// Tells of something that a CPU does at its time.
    pub(crate) fn record_at(&mut self, cpu: usize, event: impl FnOnce() -> HostEvent) {
        let time = self.time(cpu);
        if let Some(observer) = &mut self.observer {
            observer(time, event());
        }
    }

    /// Has somebody asked at the time of [`Machine::cut_at`], before the power fails.
    pub fn set_probe(&mut self, probe: Option<CrashProbe>) {
        self.probe = probe;
    }

    /// True when the power is not to fail by now, after all.
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

    /// Dirty lines leave the cache by themselves, as they may at any time: those that are chosen,
    /// as far as there is room on their way. They stay as clean copies. Says how many were dirty.
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
            // Others that have asked for a line post it themselves.
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

    /// Posts a write, for which there is room.
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
