//! The host side of a simulated system: CPUs with a time each, write combining, a write-back cache,
//! and programs that share them.
#![warn(missing_docs)]

mod access;
mod cache;
mod cpu;
mod crash;
mod error;
mod flush;
mod in_flight;
mod machine;
mod mapping;
pub mod register;
mod shared;
mod watch;
mod wc;

pub use access::PendingLoad;
pub use cpu::Cpu;
pub use crash::{CrashReport, CutScope, LostStores};
pub use error::{Error, Result};
pub use flush::Fence;
pub use machine::{HostCounters, Machine, Turn, WakeCondition};
pub use mapping::{CacheLine, Mapping, MemoryType, LINE};
pub use shared::{Program, SharedMachine, TurnGuard};
pub use watch::{CrashProbe, HostEvent, Observer};
