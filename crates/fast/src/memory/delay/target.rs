// SPDX-License-Identifier: Apache-2.0

//! Target latency of each transaction: `nvm_delay_target`.

use super::registers::{CommittedRegisters, REGIONS, TIME_FRACTION};

/// Cycles of 1/phi in Q0.16.
const GOLDEN: u16 = 40_503;
/// Least cycles from an address to its response while the delay is on.
pub const MIN_LATENCY: u64 = 7;

/// Target latency of a transaction in 1/4096 of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyTarget {
    /// Base and dither.
    base: u64,
    /// Time of each beat.
    beat: u32,
    /// The emulated delay was off.
    pub off: bool,
}

impl LatencyTarget {
    /// Cycles from the address to beat `beats` of the answer, counted from 1, or to the response to
    /// that many beats.
    #[inline]
    pub fn cycles(&self, beats: u32) -> u64 {
        let sum = self.base + u64::from(self.beat) * u64::from(beats);
        sum.min(u32::MAX.into()) >> TIME_FRACTION
    }

    /// All beats are due together.
    #[inline]
    pub fn together(&self) -> bool {
        self.off || self.beat == 0
    }
}

/// Targets of one direction.
#[derive(Clone, Debug, Default)]
pub struct LatencyTargets {
    /// Spread evenly over [0, 1), in steps of the golden ratio.
    dither: u16,
}

impl LatencyTargets {
    /// The target of the next transaction. `first` is the index of the direction's times: 0 for
    /// reads, 2 for writes.
    #[inline]
    pub fn next(
        &mut self,
        committed: &CommittedRegisters,
        addr: u64,
        first: usize,
    ) -> LatencyTarget {
        if !committed.enable {
            return LatencyTarget {
                off: true,
                ..LatencyTarget::default()
            };
        }
        let times = &committed.times[place(committed, addr)];
        let dither = u64::from(self.dither >> (16 - TIME_FRACTION));
        self.dither = self.dither.wrapping_add(GOLDEN);
        LatencyTarget {
            base: u64::from(times[first]) + dither,
            beat: times[first + 1],
            off: false,
        }
    }
}

/// The lowest enabled region that contains an address, or the index of all other addresses.
#[inline]
fn place(committed: &CommittedRegisters, addr: u64) -> usize {
    if committed.regions == 0 {
        return REGIONS;
    }
    let page = addr >> 12;
    (0..REGIONS)
        .find(|&r| {
            let [first, last] = committed.pages[r].map(u64::from);
            committed.regions >> r & 1 != 0 && (first..=last).contains(&page)
        })
        .unwrap_or(REGIONS)
}
