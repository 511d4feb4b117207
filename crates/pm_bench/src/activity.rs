// SPDX-License-Identifier: Apache-2.0

//! Records the activity of CPU and devices during transactions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::SharedMachine;
use pm::{ConsistencyOperation, Listener};
use sim::{Time, TraceEvent, TraceSink, Tracer};

/// An operation for crash consistency, with its begin and end.
pub(crate) type TimedOperation = (ConsistencyOperation, Time, Time);

/// Records operations of the library, and events of the devices.
pub(crate) struct ActivityRecorder {
    parts: Arc<Mutex<Vec<TimedOperation>>>,
    devices: Vec<Arc<Mutex<EngineEvents>>>,
}

/// The execution of a command by a unit.
pub(crate) struct UnitCommand {
    pub unit: u8,
    /// Number of the operation.
    pub operation: u8,
    pub begin: Time,
    pub end: Time,
}

/// The events of a device's engine.
#[derive(Default)]
struct EngineEvents(Vec<(Time, TraceEvent)>);

impl TraceSink for EngineEvents {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        let wanted = matches!(
            event,
            TraceEvent::UnitBegins { .. }
                | TraceEvent::UnitEnds { .. }
                | TraceEvent::PeerNotified { .. }
                | TraceEvent::LogDeleted { .. }
        );
        if wanted {
            self.0.push((time, event.clone()));
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ActivityRecorder {
    /// A recorder for a number of devices.
    pub fn new(devices: usize) -> ActivityRecorder {
        ActivityRecorder {
            parts: Arc::default(),
            devices: (0..devices).map(|_| Arc::default()).collect(),
        }
    }

    /// The listener for the options of a pool.
    pub fn listener(&self) -> Listener {
        let parts = self.parts.clone();
        Arc::new(move |part, begin, end| locked(&parts).push((part, begin, end)))
    }

    /// Discards all records, and starts recording the devices.
    pub fn start(&self, machine: &SharedMachine) {
        for (device, events) in self.devices.iter().enumerate() {
            let tracer = Tracer::new(events.clone(), false);
            machine.with_machine(|machine| machine.system_mut().set_tracer(device, Some(tracer)));
        }
        locked(&self.parts).clear();
    }

    /// The operations of the library.
    pub fn parts(&self) -> Vec<TimedOperation> {
        locked(&self.parts).clone()
    }

    /// The events of each device, in the order of their times.
    pub fn events(&self) -> impl Iterator<Item = Vec<(Time, TraceEvent)>> + '_ {
        self.devices.iter().map(|events| locked(events).0.clone())
    }
}

/// The commands that have ended in the units of a device, in the order of their ends.
pub(crate) fn unit_commands(events: &[(Time, TraceEvent)]) -> Vec<UnitCommand> {
    let mut under_way: Vec<UnitCommand> = Vec::new();
    let mut ended = Vec::new();
    for (time, event) in events {
        match event {
            TraceEvent::UnitBegins {
                unit, operation, ..
            } => under_way.push(UnitCommand {
                unit: *unit,
                operation: *operation,
                begin: *time,
                end: *time,
            }),
            TraceEvent::UnitEnds { unit } => {
                if let Some(n) = under_way.iter().position(|one| one.unit == *unit) {
                    let work = under_way.swap_remove(n);
                    ended.push(UnitCommand { end: *time, ..work });
                }
            }
            _ => {}
        }
    }
    ended
}
