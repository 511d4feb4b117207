//! The host side of a simulated system: CPUs with a time each, write combining, a write-back cache, and programs that share them.
#![warn(missing_docs)]

mod access;
mod cache;
mod cpu;
mod crash;
mod error;
mod flight;
mod flush;
mod machine;
mod mapping;
pub mod register;
mod shared;
mod watch;
mod wc;

pub use access::Pending;
pub use cpu::Cpu;
pub use crash::{Crash, Cut, Lost};
pub use error::{Error, Result};
pub use flush::Fence;
pub use machine::{Counts, Machine, Turn, Wake};
pub use mapping::{Kind, Line, Mapping, LINE};
pub use shared::{Guard, Program, Shared};
pub use watch::{Event, Observer, Probe};
