// SPDX-License-Identifier: Apache-2.0

//! Devices in simulated time: they run as far as the client's emulator says, and no further.
//!
//! All devices of a server are attached to one [`sim::System`], each by its link. The system's
//! memory is what the clients share. Time passes in three cases:
//!
//! - An access of a client carries the emulator's time. The system advances to that time first.
//! - A read, or a write that finds the link's queue full, takes time. The emulator adds it to its
//!   clock: the stall.
//! - The emulator says how far it has come, or that its CPU is idle ([`crate::channel`]).
//!
//! Interrupts are signalled only in the third case, while the emulator waits for the reply. What
//! arrives during an access is signalled at the next request, which the emulator makes at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sim::{guard, Bar, ExternalMemory, HostConfig, Mmio, System, Time, MSI_BASE};

use crate::doorbells::Doorbells;
use crate::port::DevicePort;
use crate::served::ServedDevice;
use crate::setup;
use crate::shared::SharedState;
use crate::time_page::TimePage;
use crate::{Error, RegisterWrite, BAR0_BYTES, BAR4_BYTES};

/// How long a device may take for the register writes after a reset.
const SETUP_LIMIT: Time = Time::us(100);

/// The memory that each device's client shares with it.
struct ClientMemory(Vec<Arc<SharedState>>);

impl ExternalMemory for ClientMemory {
    fn write(&mut self, device: usize, addr: u64, data: &[u8]) -> bool {
        let shared = &self.0[device];
        let written = shared.memory.write(addr, data);
        match written {
            true => shared.stats.bytes_written.add(data.len() as u64),
            false => shared.refuse_access(true, addr, data.len()),
        }
        written
    }

    fn read(&mut self, device: usize, addr: u64, out: &mut [u8]) -> bool {
        let shared = &self.0[device];
        let found = shared.memory.read(addr, out);
        match found {
            true => shared.stats.bytes_read.add(out.len() as u64),
            false => shared.refuse_access(false, addr, out.len()),
        }
        found
    }
}

/// What does not change of a device.
struct TimedDevice {
    shared: Arc<SharedState>,
    setup: Vec<RegisterWrite>,
    vectors: u16,
    msix: (bool, bool),
    open: Vec<bool>,
}

/// The reply to a request for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advanced {
    /// The time that was reached; [`Time::MAX`] if nothing will ever happen.
    pub reached: Time,
    /// Interrupts that were signalled.
    pub interrupts: u64,
    /// No access of a device reaches the client before that time, if the client does nothing.
    pub next: Time,
}

/// Devices of one host in simulated time.
pub(crate) struct TimedHost {
    system: System,
    devices: Vec<TimedDevice>,
    /// Interrupts that have arrived and were not signalled: device and vector.
    pending: VecDeque<(usize, usize)>,
    page: Arc<TimePage>,
    /// The system's time at the emulator's time zero.
    origin: Time,
    /// A device can't continue, and all of them stand still until a reset.
    stopped: bool,
}

impl TimedHost {
    /// Powers the devices. Their states are shared with connections.
    pub(crate) fn new(
        host: &HostConfig,
        served: Vec<(ServedDevice, Arc<SharedState>)>,
        page: Arc<TimePage>,
    ) -> Result<TimedHost, Error> {
        let states = served.iter().map(|(_, shared)| shared.clone()).collect();
        let memory = Box::new(ClientMemory(states));
        let mut system = System::with_external_memory(host, memory).map_err(Error::System)?;
        let mut devices = Vec::new();
        for (served, shared) in served {
            let function = served.function;
            let windows = [
                (Bar::Nvme, BAR0_BYTES),
                (Bar::Pm, function.pm_bytes),
                (Bar::Control, BAR4_BYTES),
            ];
            let device = system.add_device(served.device, &function.link, &windows);
            let device = device.map_err(Error::System)?;
            system.set_tracer(device, served.tracer);
            devices.push(TimedDevice {
                shared,
                setup: served.setup,
                vectors: function.vectors,
                msix: (false, false),
                open: vec![false; usize::from(function.vectors)],
            });
        }
        let mut timed = TimedHost {
            system,
            devices,
            pending: VecDeque::new(),
            page,
            origin: Time::ZERO,
            stopped: false,
        };
        for device in 0..timed.devices.len() {
            timed.reset(device);
        }
        Ok(timed)
    }

    /// An emulator has connected: its time zero is now.
    pub(crate) fn start_clock(&mut self) {
        self.origin = self.system.now();
        self.page.reset();
    }

    /// Advances to `until` of the emulator. With `idle`, stops at the first interrupt.
    pub(crate) fn advance(&mut self, until: Time, idle: bool) -> Advanced {
        let limit = match until {
            Time::MAX => Time::MAX,
            until => self.origin + until,
        };
        let mut interrupts = self.signal();
        let mut waits = !idle || interrupts == 0;
        while waits {
            let woken = self.wait(limit);
            interrupts += self.signal();
            waits = woken && !(idle && interrupts > 0);
        }
        let never = until == Time::MAX && interrupts == 0;
        let next = self.publish_next();
        Advanced {
            reached: match never {
                true => Time::MAX,
                false => self.relative(self.system.now()),
            },
            interrupts,
            next,
        }
    }

    /// Lets time pass until an interrupt arrives; false if none did until `limit`.
    fn wait(&mut self, limit: Time) -> bool {
        if self.stopped {
            return false;
        }
        let woken = self.system.wait(limit);
        let woken = woken.unwrap_or_else(|error| self.stop(&error));
        self.collect();
        woken
    }

    /// Moves interrupts that have arrived to `pending`.
    fn collect(&mut self) {
        for device in 0..self.devices.len() {
            let arrived = self.system.interrupts(device).into_iter();
            // The table of the device has these messages.
            let vectors = arrived.filter(|message| message.addr == MSI_BASE);
            let vectors = vectors.map(|message| (device, message.data as usize));
            self.pending.extend(vectors);
        }
    }

    /// Signals what is pending; returns the number of interrupts.
    fn signal(&mut self) -> u64 {
        let mut signalled = 0;
        for (device, vector) in self.pending.drain(..) {
            let shared = &self.devices[device].shared;
            if shared.memory.bus_master() && shared.vectors.signal(vector) {
                shared.stats.interrupts.add(1);
                signalled += 1;
            }
        }
        signalled
    }

    /// Tells the emulator the earliest time at which a device may do something that it sees.
    fn publish_next(&mut self) -> Time {
        if !self.stopped {
            if let Err(error) = self.system.run_ahead() {
                self.stop(&error);
            }
        }
        let next = match (self.pending.is_empty(), self.stopped) {
            (false, _) => self.relative(self.system.now()),
            (true, true) => Time::MAX,
            (true, false) => self.relative(self.system.next_effect()),
        };
        self.page.set_next(next);
        next
    }

    fn relative(&self, time: Time) -> Time {
        match time {
            Time::MAX => Time::MAX,
            time => Time(time.0.saturating_sub(self.origin.0)),
        }
    }

    /// Reports an error of the system. It stands still until a reset.
    fn stop(&mut self, error: &sim::Error) -> bool {
        let (device, text) = match error {
            sim::Error::Fault { device, fault } => (*device, fault.to_string()),
            other => (0, other.to_string()),
        };
        self.devices[device].shared.report_fault(&text);
        self.stopped = true;
        false
    }

    /// Performs an access at the emulator's time, and tells the emulator how long it took.
    fn access<T>(
        &mut self,
        perform: impl FnOnce(&mut System) -> Result<T, sim::Error>,
    ) -> Option<T> {
        guard::install_handler();
        let begin = self.origin + self.page.now();
        let mut result = None;
        if !self.stopped {
            let done = self.system.advance_until(begin);
            match done.and_then(|()| perform(&mut self.system)) {
                Ok(value) => result = Some(value),
                Err(error @ sim::Error::Fault { .. }) => _ = self.stop(&error),
                // A read that fails or times out, as on a bus.
                Err(_) => {}
            }
            self.collect();
        }
        let stall = self.system.now().0.saturating_sub(begin.0);
        self.page.add_stall(Time(stall));
        self.publish_next();
        result
    }

    /// Sends register writes to a device.
    fn send(&mut self, device: usize, writes: impl IntoIterator<Item = Mmio>) {
        let writes: Vec<Mmio> = writes.into_iter().collect();
        self.access(|system| {
            for write in &writes {
                if let Mmio::Write { bar, offset, data } = write {
                    system.mmio_write(device, *bar, *offset, data)?;
                }
            }
            Ok(())
        });
    }

    /// Resets a function, and restores the set-up that the client expects.
    fn reset(&mut self, device: usize) {
        guard::install_handler();
        self.system.function_reset(device);
        self.stopped = false;
        self.pending.retain(|(of, _)| *of != device);
        let TimedDevice {
            msix,
            setup,
            vectors,
            open,
            ..
        } = &self.devices[device];
        if let Some(device) = self.system.device_mut(device) {
            device.set_msix(msix.0, msix.1);
        }
        let masks = open.iter().enumerate();
        let masks = masks.map(|(vector, open)| setup::mask_vector(vector, !open));
        let writes: Vec<Mmio> = setup::after_reset(setup, *vectors).chain(masks).collect();
        self.send(device, writes);
        // The client finds the device set up.
        self.access(|system| {
            let limit = system.now() + SETUP_LIMIT;
            while system.next_effect() != Time::MAX && system.now() < limit {
                system.advance_by(Time::us(1))?;
            }
            Ok(())
        });
    }

    /// Completes and flushes the files of the devices.
    pub(crate) fn finish(&mut self) {
        if let Err(error) = self.system.finish() {
            self.stop(&error);
        }
    }
}

/// The devices, and whether an emulator has connected.
pub(crate) struct TimedState {
    host: Mutex<TimedHost>,
    /// An emulator is connected to the channel for time.
    pub clocked: AtomicBool,
}

impl TimedState {
    pub(crate) fn new(host: TimedHost) -> TimedState {
        TimedState {
            host: Mutex::new(host),
            clocked: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TimedHost> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device in simulated time, for its connection.
pub(crate) struct TimedPort {
    pub state: Arc<TimedState>,
    pub device: usize,
    pub shared: Arc<SharedState>,
}

impl DevicePort for TimedPort {
    fn connect(&mut self) -> std::io::Result<Option<Arc<Doorbells>>> {
        match self.state.clocked.load(Ordering::Acquire) {
            // A doorbell has to arrive at its time, so it is a message.
            true => Ok(None),
            false => Err(std::io::Error::other(
                "the device runs in simulated time, and no emulator has connected to the channel \
                 for time before: start the guest with `nearside guest`",
            )),
        }
    }

    fn disconnect(&mut self) {
        let mut host = self.state.lock();
        let device = &mut host.devices[self.device];
        device.msix = (false, false);
        device.open.fill(false);
        host.reset(self.device);
        self.shared.report_unmet_accesses();
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.shared.stats.register_accesses.add(1);
        let device = self.device;
        let mut host = self.state.lock();
        host.access(|system| system.mmio_write(device, bar, offset, data));
    }

    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.shared.stats.register_accesses.add(1);
        let (device, len) = (self.device, out.len());
        let mut host = self.state.lock();
        match host.access(|system| system.mmio_read(device, bar, offset, len)) {
            Some(data) => out.copy_from_slice(&data),
            None => out.fill(0xFF),
        }
    }

    fn set_interrupts(&mut self, enable: bool, mask: bool, open: Vec<bool>) {
        let mut host = self.state.lock();
        if let Some(device) = host.system.device_mut(self.device) {
            device.set_msix(enable, mask);
        }
        let device = &mut host.devices[self.device];
        device.msix = (enable, mask);
        let before = std::mem::replace(&mut device.open, open);
        let after = device.open.iter().enumerate();
        let changed = after.filter(|&(vector, open)| before.get(vector) != Some(open));
        let writes: Vec<Mmio> = changed
            .map(|(vector, open)| setup::mask_vector(vector, !open))
            .collect();
        host.send(self.device, writes);
    }

    fn reset(&mut self) {
        self.state.lock().reset(self.device);
    }
}
