// SPDX-License-Identifier: Apache-2.0

//! The RTL model of a Nearside device: compiles a design with Verilator, loads it, and runs it as a
//! [`sim::Device`], exact to the clock cycle.
//!
//! [`RtlDevice::build`] makes a device from a [`DeviceConfig`], such as that of a design. The first
//! build of a design takes minutes; later ones load it.
//!
//! In reading order:
//!
//! 1. [`bitstream`]: file lists, compilation once for each content, loading, and models whose ports
//!    are found by name.
//! 2. [`axi`]: the bus models at the ports of a device: masters, memory channels, the host.
//! 3. `mmio`: from the BARs to the device's slave ports.
//! 4. `device`: [`RtlDevice`], with clock, power, resets, skipped idle time, hangs and waveforms.
//! 5. `power_up`: what registers and memories hold at power-on.
//! 6. `probe` and `order`: trace events and the order of engines, as seen at the model's ports.
//! 7. [`delay_bench`]: the delay emulator `nvm_delay` alone, to measure how exact it is.
//!
//! Not here: the link and the host (`sim`, `host`), the timing of DRAM (`sim::memctrl`), and the
//! hardware itself (`hw`).
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
pub use error::{Error, Result, TrainingError};
pub use power_up::{InitialValues, PowerUpRegisters};
pub use sim::memctrl::MemoryModel;
