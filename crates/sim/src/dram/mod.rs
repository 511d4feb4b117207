//! DDR4: a memory controller and one rank of DRAM per [`Channel`], timing only.
//!
//! Requests are 64-byte lines (64 data pins, BL8). The controller keeps pages open, takes ready row
//! hits first and then the oldest (FR-FCFS) until one has waited too long, buffers writes and
//! drains them in batches, answers reads of buffered writes itself, and refreshes all banks on
//! time. Commands keep to the JEDEC constraints of [`Timing`], one command a clock. What the memory
//! holds is in [`crate::Media`].

mod bursts;
mod calendar;
mod channel;
mod config;
mod map;

pub use bursts::{BurstChannel, ReadTimes, WriteTimes};
pub use channel::{Channel, ChannelStats, Completion, Request};
pub use config::{DramConfig, Timing};
