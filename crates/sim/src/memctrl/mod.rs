// SPDX-License-Identifier: Apache-2.0

//! A DDR4 controller and its memory: request queues of the AXI4 port, timing models, address maps.
//!
//! [`PortQueues`] queues the requests of one AXI4 port, clock by clock. A [`MemoryTiming`] answers
//! it line by line.

mod fixed_latency;
mod map;
mod port_queues;
mod random_latency;
mod read_beats;

pub use fixed_latency::FixedLatency;
pub use map::AddressMap;
pub use port_queues::{PortQueues, MAX_READS, MAX_RESPONSES, MAX_WRITES};
pub use random_latency::RandomLatency;
pub use read_beats::ReadBeatSlots;

use crate::{DramConfig, Time};

/// The timing model of a channel's memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryModel {
    /// DDR4 controller and DRAM.
    Ddr4(DramConfig),
    /// Every access takes the same time.
    Fixed(Time),
    /// Every access takes a random time up to `max`, drawn by `seed`.
    Random {
        /// The longest latency.
        max: Time,
        /// The seed.
        seed: u64,
    },
}

impl MemoryModel {
    /// The timing model of one channel.
    pub fn timing(&self) -> Box<dyn MemoryTiming + Send> {
        match self {
            MemoryModel::Ddr4(config) => Box::new(crate::dram::Channel::new(config)),
            MemoryModel::Fixed(latency) => Box::new(FixedLatency::new(*latency)),
            MemoryModel::Random { max, seed } => Box::new(RandomLatency::new(*max, *seed)),
        }
    }
}

/// Timing of a memory that serves 64-byte accesses. It moves no data.
pub trait MemoryTiming {
    /// Whether an access of this direction would be accepted now.
    fn ready(&self, write: bool) -> bool;

    /// Accepts an access to the 64-byte line at `addr`; call only if [`MemoryTiming::ready`]. The
    /// `token` is returned when a read has its data or a write is in the controller. Writes return
    /// in order.
    fn push(&mut self, now: Time, token: u32, addr: u64, write: bool);

    /// Advances to `now` and appends the tokens that have returned by then.
    fn advance(&mut self, now: Time, done: &mut Vec<u32>);

    /// The next time at which something may happen, if anything is in flight. A time not after now
    /// means at once.
    fn next_event(&self) -> Option<Time>;
}

/// The DDR4 controller and DRAM of `sim`.
impl MemoryTiming for crate::dram::Channel {
    #[inline]
    fn ready(&self, write: bool) -> bool {
        self.can_accept(write)
    }

    #[inline]
    fn push(&mut self, now: Time, token: u32, addr: u64, write: bool) {
        let request = crate::dram::Request {
            tag: token.into(),
            addr,
            is_write: write,
        };
        let taken = crate::dram::Channel::push(self, now, request);
        debug_assert!(taken);
    }

    #[inline]
    fn advance(&mut self, now: Time, done: &mut Vec<u32>) {
        while let Some(completion) = self.poll(now) {
            done.push(completion.tag as u32);
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        crate::dram::Channel::next_event(self)
    }
}
