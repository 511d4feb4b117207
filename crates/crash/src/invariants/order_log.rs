// SPDX-License-Identifier: Apache-2.0

//! The log of a machine, checked as its events occur.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{HostEvent, Machine};
use sim::{OrderEvent, OrderSink, OrderWatch, Time};

use super::{Checker, DeviceEvent, LogEntry, Violation};

/// Passes the events of a machine's CPUs and devices to a [`Checker`].
#[derive(Clone)]
pub(crate) struct OrderLog(Arc<Mutex<Checker>>);

/// Receives the events of a device.
struct DeviceListener(OrderLog, usize);

impl OrderSink for DeviceListener {
    fn event(&mut self, time: Time, event: OrderEvent) {
        self.0.check_entry(time, LogEntry::Device(self.1, event));
    }
}

impl OrderLog {
    /// The log of a machine whose devices have the engines' command pages at `page` of BAR4. The
    /// caller passes the events of CPUs to [`OrderLog::host`]. `None` if the devices do not report
    /// their order.
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

    /// Adds an event of a CPU.
    pub fn host(&self, at: Time, event: &HostEvent) {
        // Events within a CPU are no accesses of a device.
        if !matches!(
            event,
            HostEvent::Stored { .. } | HostEvent::Flushed { .. } | HostEvent::Fenced { .. }
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

    /// Number of checked entries.
    pub fn entries(&self) -> u64 {
        self.lock().entries()
    }

    /// The first violation, and the events of devices before it.
    pub fn violation(&self) -> Option<(Violation, Vec<DeviceEvent>)> {
        let checker = self.lock();
        let violation = checker.violation()?.clone();
        Some((violation, checker.recent().copied().collect()))
    }
}
