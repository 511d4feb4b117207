// SPDX-License-Identifier: Apache-2.0

//! The effects of a power cut.

use sim::Time;

use crate::load::{DeferredAccess, LoadInFlight};
use crate::machine::Machine;
use crate::mapping::{CacheLine, LINE};
use crate::wc::mask;
use crate::Result;

/// The scope of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutScope {
    /// The host first; the devices only after they have accepted everything posted to them.
    Host,
    /// The host and the devices at the same time: what is in flight between them is lost.
    All,
}

/// Stores that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStores {
    /// The line.
    pub line: CacheLine,
    /// A bit for each byte that was stored.
    pub bytes: u64,
    /// The content of the line; bytes whose bit is not set are undefined.
    pub data: [u8; LINE],
}

/// The state that the host lost in a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// The time of the cut.
    pub at: Time,
    /// Dirty lines of the cache, lines being fetched with pending stores, and lines that waited for
    /// their link.
    pub dirty: Vec<LostStores>,
    /// Contents of write-combining buffers; a part of a buffer that was being sent may have been
    /// posted.
    pub gathered: Vec<LostStores>,
    /// The time at which each device lost power, in the device's time, which may be ahead by up to
    /// the link's latency. For a device that kept its power: the time of the host's cut.
    pub devices: Vec<Time>,
}

impl Machine {
    /// Schedules a power cut of the host: no CPU does anything from then on, and programs end with
    /// [`crate::Error::PowerCut`]. `None` cancels it.
    pub fn cut_at(&mut self, time: Option<Time>) {
        self.cut = time;
    }

    /// Cuts the power at the time of [`Machine::cut_at`], or now. All state of the host is lost,
    /// and the devices are without power afterwards. See [`Machine::restart`].
    pub fn crash(&mut self, cut: CutScope) -> Result<CrashReport> {
        let mut crash = self.begin_crash()?;
        if cut == CutScope::Host {
            self.deliver_posted()?;
        }
        for device in 0..self.system.devices() {
            self.fail_device(device, &mut crash);
        }
        if cut == CutScope::All {
            // Accesses in flight reach devices without power, so the next life sees none of them.
            self.deliver_posted()?;
        }
        self.collect_arrivals();
        Ok(crash)
    }

    /// As [`Machine::crash`], but each device loses power later than the host by its time in
    /// `later`, as with a separate supply. It accepts what reaches it until then. Devices without a
    /// time fail with the host; with `Time::MAX` a device keeps its power.
    pub fn crash_staggered(&mut self, later: &[Time]) -> Result<CrashReport> {
        let mut crash = self.begin_crash()?;
        let devices = 0..self.system.devices();
        let time = |device: usize| later.get(device).copied().unwrap_or(Time::ZERO);
        let fails = devices.filter(|n| time(*n) < Time::MAX);
        let mut order: Vec<(Time, usize)> = fails.map(|n| (crash.at + time(n), n)).collect();
        order.sort_unstable();
        for (at, device) in order {
            self.system.advance_until(at)?;
            self.fail_device(device, &mut crash);
        }
        self.deliver_posted()?;
        self.collect_arrivals();
        Ok(crash)
    }

    fn fail_device(&mut self, device: usize, crash: &mut CrashReport) {
        let time = self.system.device(device).map(|device| device.now());
        let failed = crash.devices.get_mut(device);
        if let (Some(failed), Some(time)) = (failed, time) {
            *failed = time;
        }
        self.system.power_off(device);
    }

    /// Cuts the host's power.
    fn begin_crash(&mut self) -> Result<CrashReport> {
        if let Some(at) = self.cut {
            loop {
                let next = self.post_due_stores()?.min(at);
                self.system.advance_until(next)?;
                if next == at {
                    break;
                }
            }
        }
        let at = self.system.now();
        self.cut = Some(at);
        self.probe = None;
        let mut crash = self.drop_volatile(at);
        crash.devices = vec![at; self.system.devices()];
        Ok(crash)
    }

    /// How often power was restored. What a program knew of devices before is void.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Restores the power of the host and of devices without it. The CPUs start at the present
    /// time.
    pub fn restart(&mut self) {
        self.cut = None;
        self.restarts += 1;
        for device in 0..self.system.devices() {
            self.system.power_on(device);
        }
        let now = self.system.now();
        for core in &mut self.cores {
            core.busy = now;
            core.accepted = now;
            core.failed = None;
            core.unfenced.clear();
        }
    }

    /// Waits until everything posted has arrived.
    fn deliver_posted(&mut self) -> Result<()> {
        let limit = self.completion_deadline();
        for device in 0..self.system.devices() {
            let Some(mark) = self.system.mark(device) else {
                continue;
            };
            while self.system.completed(device, mark).is_none() && self.system.now() < limit {
                self.system.wait_event(limit, false)?;
            }
        }
        Ok(())
    }

    fn drop_volatile(&mut self, at: Time) -> CrashReport {
        let mut crash = CrashReport {
            at,
            ..CrashReport::default()
        };
        for victim in std::mem::take(&mut self.victims) {
            crash.dirty.push(LostStores {
                line: victim.line,
                bytes: victim.dirty,
                data: victim.data,
            });
        }
        for entry in self.cache.clear() {
            crash.dirty.push(LostStores {
                line: entry.line,
                bytes: entry.dirty,
                data: entry.data,
            });
        }
        // Their answers still arrive, and are dropped.
        for flight in &mut self.loads_in_flight {
            crash.dirty.extend(waiting_stores(flight));
            flight.steps.clear();
            flight.fill = None;
        }
        self.cores.iter_mut().for_each(|core| core.stores.clear());
        for core in &mut self.cores {
            for buffer in core.sending.take().into_iter().chain(core.wc.clear()) {
                crash.gathered.push(LostStores {
                    line: buffer.line,
                    bytes: buffer.valid,
                    data: buffer.data,
                });
            }
        }
        self.found.clear();
        crash
    }
}

/// The stores that waited for a line.
fn waiting_stores(flight: &LoadInFlight) -> Option<LostStores> {
    let mut lost = LostStores {
        line: flight.fill?,
        bytes: 0,
        data: [0; LINE],
    };
    for step in &flight.steps {
        if let DeferredAccess::Store { start, data } = step {
            lost.data[*start..*start + data.len()].copy_from_slice(data);
            lost.bytes |= mask(*start, data.len());
        }
    }
    (lost.bytes != 0).then_some(lost)
}
