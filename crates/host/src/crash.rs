//! What a loss of power takes with it.

use sim::Time;

use crate::in_flight::{DeferredAccess, LoadInFlight};
use crate::machine::Machine;
use crate::mapping::{CacheLine, LINE};
use crate::wc::mask;
use crate::Result;

/// Whose power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutScope {
    /// The host's, and that of the devices only after they have taken all that was posted to them.
    Host,
    /// The host's and the devices' at the same time: what is on its way between them is lost.
    All,
}

/// Stores that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStores {
    /// Their line.
    pub line: CacheLine,
    /// A bit for each byte that was stored.
    pub bytes: u64,
    /// The line; of the bytes whose bit isn't set nothing is said.
    pub data: [u8; LINE],
}

/// What the host held when its power failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// When.
    pub at: Time,
    /// Dirty lines of the cache, those on their way to it, and those that waited for their link.
    pub dirty: Vec<LostStores>,
    /// What had gathered in write-combining buffers; of one that was just leaving, a part may have
    /// been posted.
    pub gathered: Vec<LostStores>,
    /// When each device's power failed, by the device's own time, which may be ahead by as much as
    /// the link takes; of those that kept it when the host's did.
    pub devices: Vec<Time>,
}

impl Machine {
    /// Lets the power fail at a time: no CPU does anything then or later, and programs end with
    /// [`crate::Error::PowerCut`]. `None` takes that back.
    pub fn cut_at(&mut self, time: Option<Time>) {
        self.cut = time;
    }

    /// The power fails: at the time of [`Machine::cut_at`], or now. Everything that the host holds
    /// is lost; the devices are without power afterwards. See [`Machine::restart`].
    pub fn crash(&mut self, cut: CutScope) -> Result<CrashReport> {
        let mut crash = self.begin_crash()?;
        if cut == CutScope::Host {
            self.deliver_posted()?;
        }
        for device in 0..self.system.devices() {
            self.fail_device(device, &mut crash);
        }
        if cut == CutScope::All {
            // What is on its way finds devices without power, and none of it the next life.
            self.deliver_posted()?;
        }
        self.collect_arrivals();
        Ok(crash)
    }

    /// The same, and each device's power fails so much later than the host's, as for a device that
    /// draws on a supply of its own: it takes what reaches it until then. Devices without a time
    /// fail with the host; with `Time::MAX` one keeps its power.
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

    /// The host's power fails.
    fn begin_crash(&mut self) -> Result<CrashReport> {
        if let Some(at) = self.cut {
            self.system.advance_until(at)?;
        }
        let at = self.system.now();
        self.cut = Some(at);
        self.probe = None;
        let mut crash = self.drop_volatile(at);
        crash.devices = vec![at; self.system.devices()];
        Ok(crash)
    }

    /// Gives power back to host and devices that have none. The CPUs begin anew at the present
    /// time.
    pub fn restart(&mut self) {
        self.cut = None;
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

    /// Waits until all that was posted has arrived.
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
        // The answers still come, and find nobody.
        for flight in &mut self.loads_in_flight {
            crash.dirty.extend(waiting_stores(flight));
            flight.steps.clear();
            flight.fill = None;
        }
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
