// SPDX-License-Identifier: Apache-2.0

//! The read data channel of a port: one beat a cycle.

use std::collections::VecDeque;

/// Cycles of the read data channel that are reserved for beats that have not passed.
#[derive(Default)]
pub struct ReadBeatSlots {
    /// Sorted, without duplicates.
    cycles: VecDeque<u64>,
}

impl ReadBeatSlots {
    /// All cycles are free.
    pub fn new() -> ReadBeatSlots {
        ReadBeatSlots::default()
    }

    /// Reserves the first free cycles for `beats` beats, the first of which is available in cycle
    /// `first` and the last in `last`. Returns the cycles of the first and of the last beat.
    #[inline]
    pub fn reserve(&mut self, first: u64, last: u64, beats: u32) -> (u64, u64) {
        let beats = u64::from(beats.max(1));
        let mut wanted = first.max((last + 1).saturating_sub(beats));
        let start = self.reserve_beat(wanted);
        let mut end = start;
        for _ in 1..beats {
            wanted += 1;
            end = self.reserve_beat(wanted.max(end + 1));
        }
        (start, end)
    }

    #[inline]
    fn reserve_beat(&mut self, wanted: u64) -> u64 {
        if self.cycles.back().is_none_or(|&back| back < wanted) {
            self.cycles.push_back(wanted);
            return wanted;
        }
        let mut cycle = wanted;
        let mut i = self.cycles.len();
        while i > 0 && self.cycles[i - 1] >= wanted {
            i -= 1;
        }
        while i < self.cycles.len() && self.cycles[i] == cycle {
            cycle += 1;
            i += 1;
        }
        self.cycles.insert(i, cycle);
        cycle
    }

    /// Removes the beats that have passed by the end of `cycle`.
    #[inline]
    pub fn remove_until(&mut self, cycle: u64) {
        while self.cycles.front().is_some_and(|&first| first <= cycle) {
            self.cycles.pop_front();
        }
    }

    /// Number of reserved beats.
    #[inline]
    pub fn len(&self) -> usize {
        self.cycles.len()
    }

    /// Whether no beat is reserved.
    pub fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }

    /// The cycle of reserved beat `n`, counted from 0.
    #[inline]
    pub fn nth(&self, n: usize) -> Option<u64> {
        self.cycles.get(n).copied()
    }
}
