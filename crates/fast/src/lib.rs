// SPDX-License-Identifier: Apache-2.0

//! The fast model of a device: the same registers, bytes and statuses as the RTL model, transaction
//! by transaction, in about a hundredth of its time.
//!
//! [`FastDevice`] is a [`sim::Device`]. `nearside-verify` compares it with the RTL model step by
//! step, and `docs/correlation.md` compares their latencies and bandwidths.
//!
//! Modules in reading order:
//!
//! - [`config`]: the parameters of a device, taken from its design.
//! - `device`: [`FastDevice`], which runs events in the order of their clock edges. `calendar` is
//!   the queue of these events, `context` what the blocks share while they handle one.
//! - `host_port`: the arbiter of accesses to host memory, and the PCIe link below it; `msix`.
//! - `bridge`, `status`, `qos`: accesses of the host to the BARs.
//! - [`controller`]: the NVMe controller, one module for each of the RTL's.
//! - [`memory`]: the channels of the memories, with arbitration, `nvm_delay` and DDR4.
//! - `engines`: the accelerators. `conflict_filter` is what one of them, `engines::nearpm`,
//!   implements for the other blocks.
//! - `error`: why there is no device.
//!
//! Left out: clock-by-clock signals, waveforms, and engines that exist only in RTL, which
//! [`FastDevice::new`] refuses by name. Timing is that of the RTL in the mean, not in each cycle.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod bridge;
mod calendar;
pub mod config;
mod conflict_filter;
mod context;
pub mod controller;
mod device;
mod engines;
mod error;
mod host_port;
pub mod memory;
mod msix;
mod qos;
mod status;

pub use config::{Config, FaultInjection};
pub use device::FastDevice;
pub use error::Error;
