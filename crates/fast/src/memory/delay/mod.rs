// SPDX-License-Identifier: Apache-2.0

//! The emulated delay of a channel, `nvm_delay`: registers, target latencies, bandwidth caps and
//! counters. Its queues are in [`super::channel`].

mod cap;
mod counters;
mod registers;
mod target;

pub use cap::BandwidthCap;
pub use counters::{bucket, Counters, BUCKETS};
pub use registers::{timing_copy, Commands, CommittedRegisters, Registers, REGIONS, TIME_FRACTION};
pub use target::{LatencyTarget, LatencyTargets, MIN_LATENCY};

use design::media::DelaySizes;

/// Index of reads, where there is one value for each direction.
pub const READ: usize = 0;
/// Index of writes.
pub const WRITE: usize = 1;

/// State of an `nvm_delay`, except for transactions in flight.
#[derive(Clone, Debug)]
pub struct Delay {
    registers: Registers,
    committed: CommittedRegisters,
    targets: [LatencyTargets; 2],
    /// Bandwidth caps, reads first.
    pub caps: [BandwidthCap; 2],
    /// Live counters, reads first.
    pub counters: [Counters; 2],
}

impl Delay {
    /// An `nvm_delay` after reset: off.
    pub fn new(sizes: DelaySizes) -> Delay {
        Delay {
            registers: Registers::new(sizes),
            committed: CommittedRegisters::default(),
            targets: Default::default(),
            caps: Default::default(),
            counters: Default::default(),
        }
    }

    /// Reads a register; see [`Registers::read`].
    pub fn read(&self, offset: u64, in_flight: [usize; 2]) -> u32 {
        self.registers.read(offset, in_flight)
    }

    /// Writes a register in `cycle`. A command takes effect at once.
    pub fn write(&mut self, cycle: u64, offset: u64, value: u32, strobe: u8) {
        let commands = self.registers.write(offset, value, strobe);
        if commands.commit {
            self.committed = self.registers.commit();
            for (cap, rate) in self.caps.iter_mut().zip(self.committed.caps) {
                cap.set_rate(cycle, rate);
            }
        }
        if commands.snapshot {
            self.registers.snapshot(&self.counters);
        }
        if commands.clear {
            self.counters = Default::default();
        }
    }

    /// The target of the next transaction of a direction.
    #[inline]
    pub fn target(&mut self, direction: usize, addr: u64) -> LatencyTarget {
        self.targets[direction].next(&self.committed, addr, 2 * direction)
    }
}
