//! The data channel of a port: one beat a cycle.

use std::collections::VecDeque;

/// Cycles in which beats of read data pass a port, of reads that have been given a place and have
/// not come.
#[derive(Default)]
pub struct ReadBeatSlots {
    /// Sorted, none twice.
    cycles: VecDeque<u64>,
}

impl ReadBeatSlots {
    /// Nothing is under way.
    pub fn new() -> ReadBeatSlots {
        ReadBeatSlots::default()
    }

    /// Gives `beats` beats the first cycles that are free, when the first of them is there in cycle
    /// `first` and the last in `last`. ReadBeatSlots the cycles of the first and of the last.
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

    /// Forgets the beats that have passed by the end of `cycle`.
    #[inline]
    pub fn remove_until(&mut self, cycle: u64) {
        while self.cycles.front().is_some_and(|&first| first <= cycle) {
            self.cycles.pop_front();
        }
    }

    /// Beats that have not been forgotten.
    #[inline]
    pub fn len(&self) -> usize {
        self.cycles.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }

    /// The cycle of the `n`th of them, counted from 0.
    #[inline]
    pub fn nth(&self, n: usize) -> Option<u64> {
        self.cycles.get(n).copied()
    }
}
