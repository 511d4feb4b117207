//! Traces of commands, to files and, beat by beat, to Python.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use serde_json::{json, Value};
use sim::{Time, TraceEvent, TraceSink};
use trace::TraceFile;

use crate::error::raise;

/// A file for a trace.
pub fn create(path: &Path) -> PyResult<Arc<Mutex<TraceFile>>> {
    let file =
        TraceFile::create(path).map_err(|e| raise(format!("{}: {}", path.display(), told(&e))))?;
    Ok(Arc::new(Mutex::new(file)))
}

/// Writes what is left; returns the number of commands.
pub fn finish(file: &Mutex<TraceFile>) -> PyResult<u64> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = file.finish();
    outcome.map_err(|e| {
        let path = file.path().display();
        raise(format!(
            "{path}: the trace could not be written: {}",
            told(&e)
        ))
    })
}

/// What an error says, without its number.
fn told(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// Keeps all events of a single command, data beat by beat.
#[derive(Default)]
pub struct Events(Vec<(Time, TraceEvent)>);

impl TraceSink for Events {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        self.0.push((time, event.clone()));
    }
}

impl Events {
    /// All of them since the last call, as lists of time in ps, name, and what the event concerns (an offset, or an
    /// address, or a mover).
    pub fn take(&mut self) -> Value {
        let list = self.0.drain(..).filter_map(|(time, event)| {
            let (name, what) = match event {
                TraceEvent::Stored { offset, .. } => ("stored", offset),
                TraceEvent::Arrived { offset, .. } => ("arrived", offset),
                TraceEvent::Decoded { slot, .. } => ("decoded", slot.into()),
                TraceEvent::Started { slot } => ("started", slot.into()),
                TraceEvent::Read { mover } => ("read", mover.into()),
                TraceEvent::Beat { mover } => ("beat", mover.into()),
                TraceEvent::Done { slot } => ("done", slot.into()),
                TraceEvent::Sent { addr, .. } => ("sent", addr),
                TraceEvent::Landed { addr, .. } => ("landed", addr),
                TraceEvent::HostRead { addr } => ("host_read", addr),
                TraceEvent::HostData => ("host_data", 0),
                TraceEvent::HostWrite => ("host_write", 0),
                _ => return None,
            };
            Some(json!([time.0, name, what]))
        });
        Value::from(list.collect::<Vec<_>>())
    }
}
