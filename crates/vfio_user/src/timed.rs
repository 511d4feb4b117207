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

use sim::{guard, Bar, HostConfig, Mmio, System, Time};

use crate::attached::{ArrivedInterrupt, AttachedDevices};
use crate::doorbells::Doorbells;
use crate::port::DevicePort;
use crate::served::ServedDevice;
use crate::shared::SharedState;
use crate::time_page::TimePage;
use crate::Error;

/// How long a device may take for the register writes after a reset.
const SETUP_LIMIT: Time = Time::us(100);

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
    attached: AttachedDevices,
    /// Interrupts that have arrived and were not signalled.
    pending: VecDeque<ArrivedInterrupt>,
    page: Arc<TimePage>,
    /// The system's time at the emulator's time zero.
    origin: Time,
}

impl TimedHost {
    /// Powers the devices. Their states are shared with connections.
    pub(crate) fn new(
        host: &HostConfig,
        served: Vec<(ServedDevice, Arc<SharedState>)>,
        page: Arc<TimePage>,
    ) -> Result<TimedHost, Error> {
        let mut timed = TimedHost {
            attached: AttachedDevices::new(host, served, None)?,
            pending: VecDeque::new(),
            page,
            origin: Time::ZERO,
        };
        for device in 0..timed.attached.count() {
            timed.reset(device);
        }
        Ok(timed)
    }

    /// An emulator has connected: its time zero is now.
    pub(crate) fn start_clock(&mut self) {
        self.origin = self.attached.system.now();
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
                false => self.relative(self.attached.system.now()),
            },
            interrupts,
            next,
        }
    }

    /// Lets time pass until an interrupt arrives; false if none did until `limit`.
    fn wait(&mut self, limit: Time) -> bool {
        if self.attached.stopped {
            return false;
        }
        let woken = self.attached.system.wait(limit);
        let woken = woken.unwrap_or_else(|error| {
            self.attached.stop(&error);
            false
        });
        self.pending.extend(self.attached.take_interrupts());
        woken
    }

    /// Signals what is pending; returns the number of interrupts.
    fn signal(&mut self) -> u64 {
        let arrived = self.pending.drain(..);
        arrived
            .filter(|&interrupt| self.attached.signal(interrupt))
            .count() as u64
    }

    /// Tells the emulator the earliest time at which a device may do something that it sees.
    fn publish_next(&mut self) -> Time {
        if !self.attached.stopped {
            if let Err(error) = self.attached.system.run_ahead() {
                self.attached.stop(&error);
            }
        }
        let next = match (self.pending.is_empty(), self.attached.stopped) {
            (false, _) => self.relative(self.attached.system.now()),
            (true, true) => Time::MAX,
            (true, false) => self.relative(self.attached.system.next_effect()),
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

    /// Performs an access at the emulator's time, and tells the emulator how long it took.
    fn access<T>(
        &mut self,
        perform: impl FnOnce(&mut System) -> Result<T, sim::Error>,
    ) -> Option<T> {
        guard::install_handler();
        let begin = self.origin + self.page.now();
        let mut result = None;
        if !self.attached.stopped {
            let done = self.attached.system.advance_until(begin);
            match done.and_then(|()| perform(&mut self.attached.system)) {
                Ok(value) => result = Some(value),
                Err(error @ sim::Error::Fault { .. }) => self.attached.stop(&error),
                // A read that fails or times out, as on a bus.
                Err(_) => {}
            }
            self.pending.extend(self.attached.take_interrupts());
        }
        let stall = self.attached.system.now().0.saturating_sub(begin.0);
        self.page.add_stall(Time(stall));
        self.publish_next();
        result
    }

    /// Sends register writes to a device.
    fn send(&mut self, device: usize, writes: Vec<Mmio>) {
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
        let writes = self.attached.reset(device);
        self.settle(device, writes);
    }

    /// The client of a device is gone.
    fn disconnect(&mut self, device: usize) {
        let writes = self.attached.disconnect(device);
        self.settle(device, writes);
    }

    /// Sends the register writes after a reset. The client finds the device set up.
    fn settle(&mut self, device: usize, writes: Vec<Mmio>) {
        self.pending.retain(|interrupt| interrupt.device != device);
        self.send(device, writes);
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
        self.attached.finish();
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
        self.state.lock().disconnect(self.device);
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
        let attached = &mut host.attached;
        let writes = attached.set_interrupts(self.device, enable, mask, open);
        host.send(self.device, writes);
    }

    fn reset(&mut self) {
        self.state.lock().reset(self.device);
    }
}
