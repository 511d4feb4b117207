//! A user-space NVMe host driver, generic over the machine that it runs on.
//!
//! [`Controller`] starts a controller, identifies it, creates I/O queues and runs commands: one at a time, or many in
//! flight on several queues ([`engine`], [`workload`]). The machine below is a [`Host`]; [`SimHost`] is the simulated one,
//! [`SharedHost`] one that others use at the same time.
//! Whatever a controller answers, the driver reports an error and does not panic.

mod blocks;
pub mod control;
mod controller;
pub mod engine;
mod error;
mod exercise;
mod format;
mod fused;
mod host;
mod latency;
pub mod launch;
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

pub use self::host::{Host, Work};
pub use blocks::{split_ranges, Range};
pub use control::STORAGE;
pub use controller::{Config, Controller, Io};
pub use engine::Report;
pub use error::{Error, Result};
pub use exercise::exercise;
pub use format::Erase;
pub use latency::{Latency, Summary};
pub use prp::Buffer;
pub use qos::{MasterQos, Qos};
pub use queue::Completion;
pub use shared_host::SharedHost;
pub use sim_host::SimHost;
pub use spec::nvme::identify::Namespace;
pub use spec::nvme::{Priority, Weights, ALL_NAMESPACES};

#[cfg(test)]
mod double;
#[cfg(test)]
mod tests;
