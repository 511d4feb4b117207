//! The cycle-accurate engine: compiles a design with Verilator, loads it, and runs it as a
//! [`sim::Device`].
#![warn(missing_docs)]

pub mod axi;
pub mod bitstream;
pub mod delay_bench;
mod device;
mod error;
mod mmio;
mod order;
mod power_up;
mod probe;

pub use device::{DeviceConfig, HoldUp, LocalMemory, RtlDevice, TraceWindow};
pub use error::{Error, Result};
pub use power_up::{InitialValues, PowerUpRegisters};
pub use sim::memctrl::MemoryModel;
