//! A user-space NVMe host driver, generic over the machine that it runs on.
//!
//! [`NvmeDriver`] starts a controller, identifies it, creates I/O queues and runs commands: one at
//! a time, or many in flight on several queues ([`io_loop`], [`workload`]). The machine below is a
//! [`Host`]; [`SimHost`] is the simulated one, [`SharedHost`] one that others use at the same time.
//! Whatever a controller answers, the driver reports an error and does not panic.

mod blocks;
pub mod control;
mod error;
mod exercise;
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
pub mod sgl;
mod shared_host;
mod sim_host;
pub mod window;
pub mod workload;

pub use self::host::{CpuWork, Host};
pub use blocks::{split_ranges, BlockRange};
pub use control::STORAGE;
pub use error::{Error, Result};
pub use exercise::exercise;
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
