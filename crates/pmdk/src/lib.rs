//! Unmodified programs with libpmemobj: a library that is preloaded into them, whose traces are
//! read here. See `README.md`.
#![warn(missing_docs)]

mod cost;
mod instructions;
mod trace;

pub use cost::{replay, Cost};
pub use instructions::{find, Effect, FoundInstruction, InstructionList};
pub use trace::{parse, Event};

/// The shared library that is preloaded into such a program.
pub const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnearside_pmdk.so"));
