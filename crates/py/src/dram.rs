//! One channel of the DDR4 model, for measurements of the model itself.

use pyo3::prelude::*;
use serde_json::json;
use sim::dram::{Channel, Request};
use sim::Time;

use crate::build::Design;
use crate::error::raise;

/// A DDR4 channel as a design has it. Times are in ps and never go back.
#[pyclass(module = "nearside._native")]
pub struct DramChannel {
    channel: Channel,
    config: sim::DramConfig,
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
    fn push(&mut self, now: u64, addr: u64, is_write: bool) -> bool {
        self.channel.push(
            Time(now),
            Request {
                tag: addr,
                addr,
                is_write,
            },
        )
    }

    /// A completion that is due: (address, time).
    fn poll(&mut self, now: u64) -> Option<(u64, u64)> {
        self.channel.poll(Time(now)).map(|c| (c.tag, c.time.0))
    }

    /// When to call `poll` next.
    fn next_event(&self) -> Option<u64> {
        self.channel.next_event().map(|t| t.0)
    }
}
