//! Channels of a memory: credits, `nvm_delay`, DRAM.
//!
//! Time is clock cycles of the device; only the DRAM counts in picoseconds. Every stage has the size and the latency of its module
//! in `hw`: what a burst takes is found once, when it may pass the stage, and not cycle by cycle.

pub mod channel;
mod clock_converter;
pub mod delay;
mod memories;
mod memory_timing;

pub(crate) use channel::ReturnPath;
pub use channel::{Channel, ChannelConfig, ChannelEvent, Stages};
pub(crate) use memories::{master, Memories};

pub use crate::qos::Credits;
