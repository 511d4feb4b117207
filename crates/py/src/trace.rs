// SPDX-License-Identifier: Apache-2.0

//! Traces of commands, to files and, beat by beat, to Python.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use serde_json::{json, Value};
use sim::{Time, TraceEvent, TraceSink};
use trace::TraceFile;

use crate::error::Error;

/// Creates the file of a trace.
pub fn create(path: &Path) -> PyResult<Arc<Mutex<TraceFile>>> {
    let file = TraceFile::create(path).map_err(|source| Error::Output {
        name: path.display().to_string(),
        source,
    })?;
    Ok(Arc::new(Mutex::new(file)))
}

/// Writes the rest of a trace, and returns the number of its commands.
pub fn finish(file: &Mutex<TraceFile>) -> PyResult<u64> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = file.finish();
    Ok(outcome.map_err(|source| Error::Output {
        name: format!("{}: the trace could not be written", file.path().display()),
        source,
    })?)
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
    /// Takes all events since the last call. Each is a list of time in ps, name, and what the event
    /// concerns: an offset, an address, or a mover.
    pub fn take_events(&mut self) -> Value {
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
