//! Simulated time, the Device contract, host memory, PCIe link, DDR4 and media.
#![warn(missing_docs)]

pub mod axi;
mod clock;
pub mod config;
mod device;
pub mod dram;
pub mod fork;
pub mod guard;
mod journal;
mod media;
pub mod memctrl;
mod memory;
mod order;
mod output;
mod pcie;
mod prefetch;
mod random;
mod system;
mod time;
mod trace;

pub use clock::Clock;
pub use config::{HostConfig, LinkConfig};
pub use device::{Bar, Counter, Device, Fault, HostPort, Mmio, ReadData, SplitCompletions};
pub use dram::DramConfig;
pub use media::{FailingRange, Media, MediaError};
pub use memory::{HostMemory, Interrupt, Unmapped, Watch, MSI_BASE, MSI_LAST};
pub use order::{LineRange, OrderEvent, OrderSink, OrderWatch, OrderedCommand};
pub use output::Output;
pub use pcie::{DirectionStats, Link, LinkStats};
pub use prefetch::prefetch;
pub use random::Random;
pub use system::{CompletedLoad, Error, ObservedTlp, System, WINDOW_BASE};
pub use time::Time;
pub use trace::{TraceEvent, TraceSink, Tracer};
