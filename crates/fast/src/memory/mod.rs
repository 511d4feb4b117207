// SPDX-License-Identifier: Apache-2.0

//! Memory channels: credits, `nvm_delay`, DRAM.
//!
//! Time is in clock cycles of the device; only the DRAM uses picoseconds. Every stage has the size
//! and the latency of its module in `hw`. The cycles of a burst in a stage are computed once, when
//! it may pass the stage.

pub mod channel;
mod clock_converter;
pub mod delay;
mod memories;
mod memory_timing;

pub(crate) use channel::ReturnPath;
pub use channel::{Channel, ChannelConfig, ChannelEvent, ChannelStages};
pub(crate) use memories::{master, Memories};

pub use crate::qos::Credits;
