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

use sim::{guard, Bar, HostConfig, Link, Mmio, System, Time};

use crate::attached::{ArrivedInterrupt, AttachedDevices};
use crate::doorbells::Doorbells;
use crate::port::DevicePort;
use crate::served::ServedDevice;
use crate::shared::SharedState;
use crate::stop::StopSignal;
use crate::time_page::{TimePage, NEVER};
use crate::Error;

/// The last time of the system. Times of an emulator that are beyond it come at it.
const END: Time = Time(2 * NEVER);
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
    stop: Arc<StopSignal>,
}

impl TimedHost {
    /// Powers the devices. Their states are shared with connections.
    pub(crate) fn new(
        host: &HostConfig,
        served: Vec<(ServedDevice, Arc<SharedState>)>,
        page: Arc<TimePage>,
        stop: Arc<StopSignal>,
    ) -> Result<TimedHost, Error> {
        let mut timed = TimedHost {
            attached: AttachedDevices::new(host, served, None)?,
            pending: VecDeque::new(),
            page,
            origin: Time::ZERO,
            stop,
        };
        for device in 0..timed.attached.count() {
            let writes = timed.attached.reset(device);
            timed.settle(device, writes);
        }
        Ok(timed)
    }

    /// An emulator has connected: its time zero is now.
    pub(crate) fn start_clock(&mut self) {
        self.origin = self.attached.system.now();
        self.page.reset();
    }

    /// Advances to `until` of the emulator. With `idle`, stops at the first interrupt. Once
    /// `cancel` is true, nobody needs the reply.
    pub(crate) fn advance(
        &mut self,
        until: Time,
        idle: bool,
        cancel: &mut dyn FnMut() -> bool,
    ) -> Advanced {
        let limit = match until {
            Time::MAX => Time::MAX,
            until => self.absolute(until),
        };
        let mut interrupts = self.signal();
        let mut waits = !idle || interrupts == 0;
        while waits {
            let woken = self.wait(limit, cancel);
            interrupts += self.signal();
            waits = woken && !(idle && interrupts > 0);
        }
        let never = until == Time::MAX && interrupts == 0;
        let next = self.publish_next();
        Advanced {
            reached: match (never, self.attached.stopped && interrupts == 0) {
                (true, _) => Time::MAX,
                // The devices stand still, but time passes, so that a program's timeout comes.
                (false, true) => until,
                (false, false) => self.relative(self.attached.system.now()),
            },
            interrupts,
            next,
        }
    }

    /// Lets time pass until an interrupt arrives; false if none did until `limit`.
    fn wait(&mut self, limit: Time, cancel: &mut dyn FnMut() -> bool) -> bool {
        if self.attached.stopped {
            return false;
        }
        let mut cancel = || self.stop.is_set() || cancel();
        let woken = self.attached.system.wait_unless(limit, &mut cancel);
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

    /// The system's time at a time of the emulator.
    fn absolute(&self, time: Time) -> Time {
        Time(self.origin.0.saturating_add(time.0)).min(END)
    }

    fn relative(&self, time: Time) -> Time {
        match time {
            Time::MAX => Time::MAX,
            time => Time(time.0.saturating_sub(self.origin.0)),
        }
    }

    /// Lets the devices come to the emulator's time.
    fn catch_up(&mut self) {
        guard::install_handler();
        let now = self.absolute(self.page.now());
        if !self.attached.stopped {
            let stop = &self.stop;
            let mut cancel = || stop.is_set();
            if let Err(error) = self.attached.system.advance_unless(now, &mut cancel) {
                self.attached.stop(&error);
            }
            self.pending.extend(self.attached.take_interrupts());
        }
    }

    /// Performs an access at the emulator's time, and tells the emulator how long it took.
    fn access<T>(
        &mut self,
        perform: impl FnOnce(&mut System) -> Result<T, sim::Error>,
    ) -> Option<T> {
        self.catch_up();
        // Later than the emulator's time if what a client does is no access, such as its end.
        let begin = self.attached.system.now();
        let mut result = None;
        if !self.attached.stopped {
            match perform(&mut self.attached.system) {
                Ok(value) => result = Some(value),
                Err(error @ sim::Error::Fault { .. }) => self.attached.stop(&error),
                // A read that fails or times out, as on a bus.
                Err(_) => {}
            }
            self.pending.extend(self.attached.take_interrupts());
        }
        let stall = self.attached.system.now().saturating_sub(begin);
        self.page.add_stall(stall);
        self.publish_next();
        result
    }

    /// Lets a message of the client, which is no access of a window, cross the link. A device may
    /// have run ahead, but not further. So it gets the message at the same time in any case.
    fn cross_link(&mut self, device: usize) {
        self.access(|system| {
            let latency = system.link(device).map_or(Time::ZERO, Link::latency);
            system.advance_by(Time::ns(system.host().mmio_ns) + latency)
        });
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
        self.cross_link(device);
        let writes = self.attached.reset(device);
        self.settle(device, writes);
    }

    /// The client of a device is gone.
    fn disconnect(&mut self, device: usize) {
        self.cross_link(device);
        let writes = self.attached.disconnect(device);
        self.settle(device, writes);
    }

    /// Sends the register writes after a reset. The client finds the device set up.
    fn settle(&mut self, device: usize, writes: Vec<Mmio>) {
        self.pending.retain(|interrupt| interrupt.device != device);
        self.send(device, writes);
        self.access(|system| {
            let limit = system.now() + SETUP_LIMIT;
            let Some(mark) = system.mark(device) else {
                return Ok(());
            };
            while system.peek_completed(device, mark).is_none() && system.now() < limit {
                system.advance_by(Time::us(1))?;
            }
            system.completed(device, mark);
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

    fn catch_up(&mut self) {
        self.state.lock().catch_up();
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
        if !host.attached.has_msix(self.device, enable, mask) {
            host.cross_link(self.device);
        }
        let attached = &mut host.attached;
        let writes = attached.set_interrupts(self.device, enable, mask, open);
        host.send(self.device, writes);
    }

    fn reset(&mut self) {
        self.state.lock().reset(self.device);
    }
}
