//! What CPU and devices are seen to do while transactions run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pm::{ConsistencyOperation, Listener};
use sim::{Time, TraceEvent, TraceSink, Tracer};

use crate::Bench;

/// Something that the library does for crash consistency, and when.
pub(crate) type Did = (ConsistencyOperation, Time, Time);

/// Hears of what is done.
pub(crate) struct Watched {
    parts: Arc<Mutex<Vec<Did>>>,
    devices: Vec<Arc<Mutex<Events>>>,
}

/// A command in a unit.
pub(crate) struct Work {
    pub unit: u8,
    /// Number of the operation.
    pub operation: u8,
    pub begin: Time,
    pub end: Time,
}

/// Events of a device's engine.
#[derive(Default)]
struct Events(Vec<(Time, TraceEvent)>);

impl TraceSink for Events {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        let wanted = matches!(
            event,
            TraceEvent::UnitBegins { .. }
                | TraceEvent::UnitEnds { .. }
                | TraceEvent::PeerTold { .. }
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

impl Watched {
    /// Of so many devices.
    pub fn new(devices: usize) -> Watched {
        Watched {
            parts: Arc::default(),
            devices: (0..devices).map(|_| Arc::default()).collect(),
        }
    }

    /// For the options of a pool.
    pub fn watch(&self) -> Listener {
        let parts = self.parts.clone();
        Arc::new(move |part, begin, end| locked(&parts).push((part, begin, end)))
    }

    /// Forgets what has been, and hears of the devices from now on.
    pub fn start(&self, bench: &Bench) {
        for (device, events) in self.devices.iter().enumerate() {
            let tracer = Tracer::new(events.clone(), false);
            bench
                .shared
                .with(|machine| machine.system_mut().set_tracer(device, Some(tracer)));
        }
        locked(&self.parts).clear();
    }

    /// What the library has done.
    pub fn parts(&self) -> Vec<Did> {
        locked(&self.parts).clone()
    }

    /// What each of the devices has told of, in the order of their times.
    pub fn events(&self) -> impl Iterator<Item = Vec<(Time, TraceEvent)>> + '_ {
        self.devices.iter().map(|events| locked(events).0.clone())
    }
}

/// The commands that have ended in the units of a device, in the order of their ends.
pub(crate) fn works(events: &[(Time, TraceEvent)]) -> Vec<Work> {
    let mut under_way: Vec<Work> = Vec::new();
    let mut ended = Vec::new();
    for (time, event) in events {
        match event {
            TraceEvent::UnitBegins {
                unit, operation, ..
            } => under_way.push(Work {
                unit: *unit,
                operation: *operation,
                begin: *time,
                end: *time,
            }),
            TraceEvent::UnitEnds { unit } => {
                if let Some(n) = under_way.iter().position(|one| one.unit == *unit) {
                    let work = under_way.swap_remove(n);
                    ended.push(Work { end: *time, ..work });
                }
            }
            _ => {}
        }
    }
    ended
}
