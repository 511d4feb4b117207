// SPDX-License-Identifier: Apache-2.0

//! Redis's and memcached's protocols in front of persistent memory.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kv_server::{Access, Config, Endpoint, Limits, Store};
use pyo3::prelude::*;
use sim::Time;

use crate::build::Design;
use crate::document::Document;
use crate::error::raise;
use crate::process::ProcessOwned;

/// A key-value store that dedicated threads serve until `stop`.
#[pyclass(frozen, module = "nearside._native")]
pub struct Front {
    running: ProcessOwned<Mutex<Option<kv_server::Server>>>,
}

#[pymethods]
impl Front {
    /// Creates an empty store, or opens that of the design's media file. Serves it at a port of an
    /// address of this machine (0: any port), or at a Unix socket.
    #[new]
    #[allow(clippy::too_many_arguments)] // the command's options
    fn new(
        py: Python<'_>,
        protocol: &str,
        design: &Design,
        model: &str,
        mechanism: &str,
        by: &str,
        bytes: u64,
        host: &str,
        port: u16,
        socket: Option<PathBuf>,
        password: Option<String>,
        protected: bool,
        cut_after: Option<u64>,
        cut_at_ps: Option<u64>,
    ) -> PyResult<Front> {
        let protocol = protocol.parse().map_err(raise)?;
        let model = model.parse().map_err(raise)?;
        let offload = match by {
            "cpu" => false,
            "device" => true,
            _ => return Err(raise(format!("by = {by:?}: allowed are cpu, device"))),
        };
        let config = Config {
            mechanism: mechanism.parse().map_err(raise)?,
            offload,
            bytes,
            cut_after,
            cut_at: cut_at_ps.map(Time),
        };
        let host: IpAddr = host.parse().map_err(|_| {
            raise(format!(
                "host = {host:?}: allowed are IP addresses of this machine, as 127.0.0.1 or ::1"
            ))
        })?;
        let access = Access {
            endpoint: socket.map_or(Endpoint::Tcp(host, port), Endpoint::Unix),
            password,
            protected,
        };
        access.validate(protocol).map_err(raise)?;
        let server = py.detach(|| {
            let store = Store::create(&design.inner, model, config);
            let store = store.map_err(|e| e.to_string())?;
            // Standard error may be closed. The store continues.
            let tell = |line: &str| drop(writeln!(std::io::stderr(), "nearside pm serve: {line}"));
            let bad = |e| format!("{}: {e}", access.endpoint);
            kv_server::Server::start(store, protocol, &access, Limits::default(), tell).map_err(bad)
        });
        let running = ProcessOwned::new(Mutex::new(Some(server.map_err(raise)?)));
        Ok(Front { running })
    }

    /// The port. `None` with a Unix socket.
    #[getter]
    fn port(&self) -> PyResult<Option<u16>> {
        self.running.check()?;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(running.as_ref().and_then(kv_server::Server::port))
    }

    /// Ends all connections, and returns the store's counters. A second call returns nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<Document>> {
        self.running.check()?;
        Ok(py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.take().map(|server| Document(server.report()))
        }))
    }
}
