//! A log of a machine, from its events as they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{Event, Machine};
use sim::{OrderEvent, OrderSink, OrderWatch, Time};

use super::{Checker, DeviceEvent, LogEntry, Violation};

/// What the machine's CPUs and devices do goes through a [`Checker`].
#[derive(Clone)]
pub(crate) struct OrderLog(Arc<Mutex<Checker>>);

/// Hears of a device's events.
struct DeviceListener(OrderLog, usize);

impl OrderSink for DeviceListener {
    fn event(&mut self, time: Time, event: OrderEvent) {
        self.0.check_entry(time, LogEntry::Device(self.1, event));
    }
}

impl OrderLog {
    /// Of the devices of a machine, whose engines have their command pages at this offset of BAR4; who hears of what the CPUs do tells them by
    /// [`OrderLog::host`]. `None` if the devices do not tell of their order.
    pub fn of(machine: &mut Machine, page: u64) -> Option<OrderLog> {
        let system = machine.system_mut();
        let devices = system.devices();
        let log = OrderLog(Arc::new(Mutex::new(Checker::new(devices, page))));
        for device in 0..devices {
            let watch = OrderWatch::new(DeviceListener(log.clone(), device));
            if !system.watch_order(device, Some(watch)) {
                return None;
            }
        }
        Some(log)
    }

    fn lock(&self) -> MutexGuard<'_, Checker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_entry(&self, at: Time, entry: LogEntry) {
        self.lock().check_entry(at, entry);
    }

    /// A CPU does something.
    pub fn host(&self, at: Time, event: &Event) {
        // What stays in a CPU is no access of a device.
        if !matches!(
            event,
            Event::Stored { .. } | Event::Flushed { .. } | Event::Fenced { .. }
        ) {
            self.check_entry(at, LogEntry::Host(event));
        }
    }

    /// A transaction has returned to its program.
    pub fn returned(&self, at: Time) {
        self.check_entry(at, LogEntry::Returned);
    }

    /// The host has its power back.
    pub fn restarted(&self, at: Time) {
        self.check_entry(at, LogEntry::Restarted);
    }

    /// Entries that were held against the invariants.
    pub fn entries(&self) -> u64 {
        self.lock().entries()
    }

    /// The first violation, and what devices did until then.
    pub fn violation(&self) -> Option<(Violation, Vec<DeviceEvent>)> {
        let checker = self.lock();
        let violation = checker.violation()?.clone();
        Some((violation, checker.recent().copied().collect()))
    }
}
