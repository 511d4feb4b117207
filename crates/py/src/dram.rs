//! One channel of the DDR4 model, for measurements of the model itself.

use pyo3::prelude::*;
use serde_json::json;
use sim::dram::{Channel, Request};
use sim::Time;

use crate::build::Design;
use crate::error::raise;

/// Longest step of time, ps: every refresh in it is gone through.
const MOST_STEP: u64 = 1_000_000_000_000;

/// A DDR4 channel as a design has it. Times are in ps and never go back.
#[pyclass(module = "nearside._native")]
pub struct DramChannel {
    channel: Channel,
    config: sim::DramConfig,
    /// The latest time that was named.
    now: u64,
}

impl DramChannel {
    /// Goes on to `now`.
    fn at(&mut self, now: u64) -> PyResult<Time> {
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

#[pymethods]
impl DramChannel {
    /// A channel; `refresh` false switches refresh off.
    #[new]
    #[pyo3(signature = (design, refresh=true))]
    fn new(design: &Design, refresh: bool) -> PyResult<DramChannel> {
        let mut config = design.inner.dram.clone();
        if !refresh {
            config.refresh_mode = 0;
        }
        config.validate().map_err(raise)?;
        Ok(DramChannel {
            channel: Channel::new(&config),
            config,
            now: 0,
        })
    }

    /// Timing constraints in clocks, fixed latencies and peak bandwidth, as JSON.
    fn timing(&self) -> String {
        let t = self.channel.timing();
        json!({
            "cl": t.cl, "rcd": t.rcd, "rp": t.rp, "burst": t.burst, "data_rate_mts": self.config.data_rate_mts,
            "frontend_ns": self.config.frontend_ns, "backend_ns": self.config.backend_ns,
            "peak_gb_s": self.config.peak_bytes_per_ns(),
        })
        .to_string()
    }

    /// Hands in a request of 64 bytes; false when the queue is full.
    fn push(&mut self, now: u64, addr: u64, is_write: bool) -> PyResult<bool> {
        let bytes = self.config.bytes();
        if addr >= bytes {
            return Err(raise(format!(
                "addr = {addr}: allowed are 0 to {}",
                bytes - 1
            )));
        }
        let now = self.at(now)?;
        let tag = addr;
        let request = Request {
            tag,
            addr,
            is_write,
        };
        Ok(self.channel.push(now, request))
    }

    /// A completion that is due: (address, time).
    fn poll(&mut self, now: u64) -> PyResult<Option<(u64, u64)>> {
        let now = self.at(now)?;
        Ok(self.channel.poll(now).map(|c| (c.tag, c.time.0)))
    }

    /// When to call `poll` next.
    fn next_event(&self) -> Option<u64> {
        self.channel.next_event().map(|t| t.0)
    }
}
