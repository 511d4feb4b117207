// SPDX-License-Identifier: Apache-2.0

//! The fast model of a device: the same registers, bytes and statuses as the RTL model, transaction
//! by transaction, in about a hundredth of its time.
//!
//! [`FastDevice`] is a [`sim::Device`]. `nearside-lockstep` compares it with the RTL model step by
//! step, and `docs/correlation.md` compares their latencies and bandwidths.
//!
//! Modules in reading order:
//!
//! - [`config`]: the parameters of a device, taken from its design.
//! - `device`: [`FastDevice`], which runs events in the order of their clock edges. `calendar` is
//!   the queue of these events, `context` what the blocks share while they handle one.
//! - `port`, `completion_timeout`, `msix`: the device's side of the PCIe link.
//! - `bridge`, `status`, `qos`: accesses of the host to the BARs.
//! - [`controller`]: the NVMe controller, one module for each of the RTL's.
//! - [`memory`]: the channels of the memories, with arbitration, `nvm_delay` and DDR4.
//! - `engines`: the accelerators. `engines::nearpm` has the conflict filter.
//! - `error`: why there is no device.
//! - `slab`: numbered items whose numbers are used again.
//!
//! Left out: clock-by-clock signals, waveforms, and engines that exist only in RTL, which
//! [`FastDevice::new`] refuses by name. Timing is that of the RTL in the mean, not in each cycle.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod bridge;
mod calendar;
mod completion_timeout;
pub mod config;
mod context;
pub mod controller;
mod device;
mod engines;
mod error;
pub mod memory;
mod msix;
mod port;
mod qos;
mod slab;
mod status;

pub use config::{Config, FaultInjection};
pub use device::FastDevice;
pub use error::Error;
