//! Persistent memory on a simulated host: pools, an allocator, transactions, and a B-tree on top.
//!
//! What makes a transaction whole is one of four mechanisms, each done by the CPU or by the
//! device's crash-consistency engine. See the crate's README.
#![warn(missing_docs)]

pub mod btree;
mod check;
mod config;
mod devices;
mod engine;
mod error;
mod header;
mod heap;
mod lock;
mod log;
mod mechanism;
mod memory;
mod multi_device;
mod partial_lines;
mod pool;
mod ranges;
mod recovery;
pub mod session;
mod switch_lists;
mod thread;
mod units;
mod value;

pub use check::CheckReport;
pub use config::{Costs, Layout, Mechanism, Options, Synchronisation};
pub use devices::Devices;
pub use engine::{EngineHandle, SubmittedCommand};
pub use error::{Error, Result};
pub use heap::MAX_OBJECT_BYTES;
pub use lock::Lock;
pub use memory::{ConsistencyOperation, Counts, Listener, OperationTimes};
pub use pool::Pool;
pub use thread::{Thread, Transaction};
pub use value::{Ptr, Value};
