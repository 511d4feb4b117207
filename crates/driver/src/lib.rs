// SPDX-License-Identifier: Apache-2.0

//! A user-space NVMe host driver, generic over the host that it runs on.
//!
//! [`NvmeDriver`] starts a controller, identifies it, creates I/O queues and runs commands: one at
//! a time, or several in flight on several queues ([`io_loop`], [`workload`]). If a controller
//! violates the specification, the driver reports an error and does not panic.
//!
//! ```
//! use design::Design;
//! use device::Model;
//! use driver::{DriverConfig, NvmeDriver};
//! use testbed::Testbed;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let design = Design::find("default")?;
//! let testbed = Testbed::builder(&design).model(Model::Fast).build()?;
//! let host = testbed.into_sim_host(0);
//!
//! let mut nvme = NvmeDriver::start(host, DriverConfig::default())?;
//! nvme.write(8, &[0x5A; 4096])?;
//! let mut data = [0; 4096];
//! nvme.read(8, &mut data)?;
//! assert_eq!(data, [0x5A; 4096]);
//! assert!(nvme.compare(8, &data)?);
//! nvme.shutdown()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, in reading order
//!
//! - [`Host`]: the services that the driver needs. [`SimHost`] is a simulated host for one driver,
//!   [`SharedHost`] one with other users.
//! - [`NvmeDriver`]: start, queues, commands and shutdown of a controller. Its commands are also in
//!   `blocks` (Write Zeroes, Verify, Compare, Dataset Management), `fused` (Compare and Write) and
//!   `format` (Format NVM).
//! - `queue`: a queue pair and its doorbells. [`prp`] and [`sgl`]: the data pointers of commands.
//! - [`io_loop`]: keeps commands in flight on several queues.
//! - [`workload`]: jobs like those of fio, and whole transfers of data. [`replay`]: recorded
//!   commands at their times.
//! - [`window`]: streams of loads and stores of the PM window.
//! - [`control`]: the status block of BAR4, and the registers of `nvm_delay`. [`Qos`]: limits of
//!   the masters of a channel.
//! - [`launch`] and [`page`]: jobs of engines, by registers and by command pages.
//!
//! # Left out
//!
//! Namespace management, metadata and protection information, reservations, shadow doorbells,
//! Asynchronous Event Requests, and logical blocks over 64 KiB.

#![forbid(unsafe_code)]

mod blocks;
pub mod control;
mod error;
mod format;
mod fused;
mod host;
pub mod io_loop;
mod latency;
pub mod launch;
mod nvme_driver;
pub mod page;
mod port;
pub mod prp;
mod qos;
mod queue;
pub mod replay;
pub mod sgl;
mod shared_host;
mod sim_host;
pub mod window;
pub mod workload;

pub use self::host::{CpuWork, Host, HostCosts};
pub use blocks::{split_ranges, BlockRange};
pub use control::STORAGE;
pub use error::{CallerError, Error, Result};
pub use format::Erase;
pub use io_loop::RunReport;
pub use latency::{Latencies, LatencySummary};
pub use nvme_driver::{DriverConfig, IoCommand, NvmeDriver};
pub use prp::Buffer;
pub use qos::{MasterQos, Qos};
pub use queue::Completion;
pub use shared_host::SharedHost;
pub use sim_host::SimHost;
pub use spec::nvme::identify::Namespace;
pub use spec::nvme::{Priority, Weights, ALL_NAMESPACES};

#[cfg(test)]
mod fake_device;
#[cfg(test)]
mod tests;
