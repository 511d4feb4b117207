//! The device of a design, transaction by transaction: the same registers, bytes and statuses as the RTL, in a hundredth of its time.

#![warn(missing_docs)]

mod bridge;
mod calendar;
pub mod config;
mod control;
pub mod controller;
mod cx;
mod device;
mod engines;
pub mod memory;
mod msix;
mod patience;
mod port;
mod qos;
mod slab;

pub use config::{Config, FaultInjection};
pub use device::FastDevice;
