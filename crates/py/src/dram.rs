// SPDX-License-Identifier: Apache-2.0

//! One channel of the DDR4 model, for measurements of the model itself.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use serde_json::json;
use sim::dram::{Channel, Request};
use sim::Time;

use crate::build::Design;
use crate::document::Document;
use crate::error::raise;
use crate::process::alone;

/// Longest step of time in ps. Each refresh within it is simulated.
const MOST_STEP: u64 = 1_000_000_000_000;

/// A DDR4 channel of a design. Times are in ps and never decrease.
#[pyclass(frozen, module = "nearside._native")]
pub struct DramChannel {
    state: Mutex<ChannelState>,
    config: sim::DramConfig,
}

struct ChannelState {
    channel: Channel,
    /// The latest time of a call.
    now: u64,
}

impl ChannelState {
    /// Advances to `now`.
    fn advance_to(&mut self, now: u64) -> PyResult<Time> {
        let (from, to) = (
            self.now,
            self.now.saturating_add(MOST_STEP).min(u64::MAX / 2),
        );
        if !(from..=to).contains(&now) {
            return Err(raise(format!("now = {now} ps: allowed are {from} to {to}")));
        }
        self.now = now;
        Ok(Time(now))
    }
}

impl DramChannel {
    fn lock(&self) -> PyResult<MutexGuard<'_, ChannelState>> {
        alone(&self.state, "channel")
    }
}

#[pymethods]
impl DramChannel {
    /// A channel. `refresh` enables refresh.
    #[new]
    #[pyo3(signature = (design, refresh=true))]
    fn new(design: &Design, refresh: bool) -> PyResult<DramChannel> {
        let mut config = design.inner.dram.clone();
        if !refresh {
            config.refresh_mode = 0;
        }
        config.validate().map_err(raise)?;
        let channel = Channel::new(&config);
        let state = ChannelState { channel, now: 0 }.into();
        Ok(DramChannel { state, config })
    }

    /// Timing constraints in clocks, fixed latencies and peak bandwidth.
    fn timing(&self) -> PyResult<Document> {
        let state = self.lock()?;
        let t = state.channel.timing();
        Ok(Document(json!({
            "cl": t.cl, "rcd": t.rcd, "rp": t.rp, "burst": t.burst,
            "data_rate_mts": self.config.data_rate_mts,
            "frontend_ns": self.config.frontend_ns, "backend_ns": self.config.backend_ns,
            "peak_gb_s": self.config.peak_bytes_per_ns(),
        })))
    }

    /// Adds a request of 64 bytes. Returns false if the queue is full.
    fn push(&self, now: u64, addr: u64, is_write: bool) -> PyResult<bool> {
        let bytes = self.config.bytes();
        if addr >= bytes {
            return Err(raise(format!(
                "addr = {addr}: allowed are 0 to {}",
                bytes - 1
            )));
        }
        let mut state = self.lock()?;
        let now = state.advance_to(now)?;
        let tag = addr;
        let request = Request {
            tag,
            addr,
            is_write,
        };
        Ok(state.channel.push(now, request))
    }

    /// A completion that is due: (address, time).
    fn poll(&self, now: u64) -> PyResult<Option<(u64, u64)>> {
        let mut state = self.lock()?;
        let now = state.advance_to(now)?;
        Ok(state.channel.poll(now).map(|c| (c.tag, c.time.0)))
    }

    /// The time of the next `poll`.
    fn next_event(&self) -> PyResult<Option<u64>> {
        Ok(self.lock()?.channel.next_event().map(|t| t.0))
    }
}
