//! A log of a machine, from its events as they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{HostEvent, Machine};
use sim::{OrderEvent, OrderSink, OrderWatch, Time};

use super::{Checker, Entry, Told, Violation};

/// What the machine's CPUs and devices do goes through a [`Checker`].
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Checker>>);

/// Hears of a device's events.
struct Ear(Log, usize);

impl OrderSink for Ear {
    fn event(&mut self, time: Time, event: OrderEvent) {
        self.0.take(time, Entry::Device(self.1, event));
    }
}

impl Log {
    /// Of the devices of a machine, whose engines have their command pages at this offset of BAR4; who hears of what the CPUs do tells them by
    /// [`Log::host`]. `None` if the devices do not tell of their order.
    pub fn of(machine: &mut Machine, page: u64) -> Option<Log> {
        let system = machine.system_mut();
        let devices = system.devices();
        let log = Log(Arc::new(Mutex::new(Checker::new(devices, page))));
        for device in 0..devices {
            let watch = OrderWatch::new(Ear(log.clone(), device));
            if !system.watch_order(device, Some(watch)) {
                return None;
            }
        }
        Some(log)
    }

    fn lock(&self) -> MutexGuard<'_, Checker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, at: Time, entry: Entry) {
        self.lock().take(at, entry);
    }

    /// A CPU does something.
    pub fn host(&self, at: Time, event: &HostEvent) {
        // What stays in a CPU is no access of a device.
        if !matches!(
            event,
            HostEvent::Stored { .. } | HostEvent::Flushed { .. } | HostEvent::Fenced { .. }
        ) {
            self.take(at, Entry::Host(event));
        }
    }

    /// A transaction has returned to its program.
    pub fn returned(&self, at: Time) {
        self.take(at, Entry::Returned);
    }

    /// The host has its power back.
    pub fn restarted(&self, at: Time) {
        self.take(at, Entry::Restarted);
    }

    /// Entries that were held against the invariants.
    pub fn entries(&self) -> u64 {
        self.lock().entries()
    }

    /// The first violation, and what devices did until then.
    pub fn violation(&self) -> Option<(Violation, Vec<Told>)> {
        let checker = self.lock();
        let violation = checker.violation()?.clone();
        Some((violation, checker.recent().copied().collect()))
    }
}
