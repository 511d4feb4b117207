// SPDX-License-Identifier: Apache-2.0

//! DDR4 timing: a memory controller and one rank of DRAM per channel. No data is stored here.
//!
//! Requests are 64-byte lines (64 data pins, BL8). The controller keeps pages open and schedules
//! FR-FCFS: ready row hits first, then the oldest request, until one has waited too long. It
//! buffers writes, drains them in batches, answers reads of buffered writes itself, and refreshes
//! all banks on time. Commands obey the JEDEC constraints of [`Timing`], one command a clock. The
//! content of the memory is in [`crate::Media`].
//!
//! [`Channel`] simulates the commands clock by clock. [`BurstChannel`] computes the time of a whole
//! burst when it is requested.

mod bursts;
mod calendar;
mod channel;
mod config;
mod map;

pub use bursts::{BurstChannel, ReadTimes, WriteTimes};
pub use channel::{Channel, ChannelStats, Completion, Request};
pub use config::{DramConfig, Timing};
