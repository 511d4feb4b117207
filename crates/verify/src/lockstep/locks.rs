// SPDX-License-Identifier: Apache-2.0

//! Locks on blocks: commands and jobs of a step use separate blocks, or blocks that may hold either
//! content.

use std::ops::Range;

use sim::Random;

use crate::lockstep::content::around;

/// Locks on block ranges that commands of the same step use.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    /// Ranges that are read, and ranges that are written.
    used: [Vec<Range<u64>>; 2],
    /// Exclusive ranges of engines: reads, writes.
    exclusive: [Vec<Range<u64>>; 2],
    /// Ranges may overlap, except with exclusive ones.
    pub shared: bool,
}

fn overlap(all: &[Range<u64>], one: &Range<u64>) -> bool {
    all.iter().any(|r| r.start < one.end && one.start < r.end)
}

impl RangeLocks {
    /// No locks yet. Ranges that are `shared` may overlap, except with exclusive ones.
    pub fn new(shared: bool) -> RangeLocks {
        RangeLocks {
            shared,
            ..RangeLocks::default()
        }
    }

    /// True if a range conflicts with those of other commands.
    pub fn is_locked(&self, blocks: &Range<u64>, write: bool, exclusive: bool) -> bool {
        let meets = |[reads, writes]: &[Vec<Range<u64>>; 2]| {
            overlap(writes, blocks) || write && overlap(reads, blocks)
        };
        meets(&self.exclusive) || (exclusive || !self.shared) && meets(&self.used)
    }

    fn lock(&mut self, blocks: Range<u64>, write: bool, exclusive: bool) {
        if exclusive {
            self.exclusive[usize::from(write)].push(blocks.clone());
        }
        self.used[usize::from(write)].push(blocks);
    }

    /// Locks a range against all later commands, even if ranges may overlap otherwise. False if
    /// another command conflicts with it.
    pub fn lock_exclusive(&mut self, blocks: Range<u64>, write: bool) -> bool {
        let free = !self.is_locked(&blocks, write, true);
        if free {
            self.lock(blocks, write, true);
        }
        free
    }

    /// Locks ranges that a command reads, and ranges that it writes. False if another command
    /// conflicts with one of them.
    pub fn lock_all(&mut self, ranges: [Vec<Range<u64>>; 2], exclusive: bool) -> bool {
        let all = || {
            (0..)
                .zip(&ranges)
                .flat_map(|(n, all)| all.iter().map(move |r| (r, n == 1)))
        };
        if all().any(|(range, write)| self.is_locked(range, write, exclusive)) {
            return false;
        }
        all().for_each(|(range, write)| self.lock(range.clone(), write, exclusive));
        true
    }

    /// An aligned place for `bytes` bytes in a range, without conflicts.
    pub fn place(
        &mut self,
        random: &mut Random,
        (reach, bytes, unit): (Range<u64>, u64, u64),
        write: bool,
    ) -> Option<u64> {
        let most = (reach.end - reach.start).checked_sub(bytes)? / unit + 1;
        (0..12).find_map(|_| {
            let at = match random.below(8) {
                0 => most - 1,
                _ => random.below(most),
            };
            let at = reach.start + at * unit;
            let blocks = around(&(at..at + bytes));
            self.lock_exclusive(blocks, write).then_some(at)
        })
    }
}
