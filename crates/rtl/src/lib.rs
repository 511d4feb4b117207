//! The cycle-accurate engine: compiles a design with Verilator, loads it, and runs it as a [`sim::Device`].
#![warn(missing_docs)]

pub mod bitstream;
mod error;

pub use error::{Error, Result};
