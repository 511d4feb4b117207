//! Simulated time, the Device contract, host memory, PCIe link, DDR4 and media.
#![warn(missing_docs)]

mod device;
mod time;

pub use device::{Bar, Counter, Device, Fault, HostPort, Mmio, ReadData};
pub use time::Time;
