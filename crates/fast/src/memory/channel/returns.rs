// SPDX-License-Identifier: Apache-2.0

//! The return path of read data, one beat a cycle: [`sim::memctrl::ReadBeatSlots`] as runs of
//! beats.

use std::collections::VecDeque;

/// Reserved cycles of a return path.
#[derive(Default)]
pub struct ReturnPath {
    /// First and last cycle of each run, sorted. Runs are separated by at least one free cycle.
    runs: VecDeque<(u64, u64)>,
    beats: usize,
}

impl ReturnPath {
    /// Reserves the first free cycles for `beats` beats. The first beat is available in cycle
    /// `first`, the last in `last`. Returns the cycle of the last beat.
    #[inline]
    pub fn reserve(&mut self, first: u64, last: u64, beats: u32) -> u64 {
        let count = u64::from(beats.max(1));
        self.beats += count as usize;
        let mut wanted = first.max((last + 1).saturating_sub(count));
        match self.runs.back_mut() {
            // Within the last run or at its end: all beats are appended to it.
            Some((start, end)) if *start <= wanted && wanted <= *end + 1 => {
                *end += count;
                *end
            }
            Some((_, end)) if wanted <= *end => {
                let mut end = self.reserve_one(wanted);
                for _ in 1..count {
                    wanted += 1;
                    end = self.reserve_one(wanted.max(end + 1));
                }
                end
            }
            _ => {
                self.runs.push_back((wanted, wanted + count - 1));
                wanted + count - 1
            }
        }
    }

    fn reserve_one(&mut self, wanted: u64) -> u64 {
        let mut i = self.runs.len();
        while i > 0 && self.runs[i - 1].1 >= wanted {
            i -= 1;
        }
        // The first run that ends at `wanted` or later. `wanted` is within it or before it.
        let cycle = match self.runs.get(i) {
            Some(&(start, end)) if start <= wanted => {
                i += 1;
                end + 1
            }
            _ => wanted,
        };
        let joins = i > 0 && self.runs[i - 1].1 + 1 == cycle;
        match self.runs.get(i) {
            Some(&(start, end)) if start == cycle + 1 => {
                if joins {
                    self.runs[i - 1].1 = end;
                    self.runs.remove(i);
                } else {
                    self.runs[i].0 = cycle;
                }
            }
            _ if joins => self.runs[i - 1].1 = cycle,
            _ => self.runs.insert(i, (cycle, cycle)),
        }
        cycle
    }

    /// Releases the cycles up to the end of `cycle`.
    #[inline]
    pub fn release_until(&mut self, cycle: u64) {
        while let Some((start, end)) = self.runs.front_mut() {
            if *end <= cycle {
                self.beats -= (*end + 1 - *start) as usize;
                self.runs.pop_front();
                continue;
            }
            if *start <= cycle {
                self.beats -= (cycle + 1 - *start) as usize;
                *start = cycle + 1;
            }
            return;
        }
    }

    /// Number of reserved beats.
    #[inline]
    pub fn len(&self) -> usize {
        self.beats
    }

    /// The cycle of the `n`th reserved beat, counted from 0.
    #[inline]
    pub fn nth(&self, n: usize) -> Option<u64> {
        let mut n = n as u64;
        for &(start, end) in &self.runs {
            if n <= end - start {
                return Some(start + n);
            }
            n -= end + 1 - start;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn return_path_runs_agree_with_single_beats() {
        let mut random = Random::new(5);
        let (mut runs, mut beats) = (ReturnPath::default(), sim::memctrl::ReadBeatSlots::new());
        let mut now = 0;
        for _ in 0..100_000 {
            now += random.below(12);
            let first = now + 1 + random.below(60);
            let last = first + random.below(20);
            let count = 1 + random.below(8) as u32;
            assert_eq!(
                runs.reserve(first, last, count),
                beats.reserve(first, last, count).1
            );
            runs.release_until(now);
            beats.remove_until(now);
            assert_eq!(runs.len(), beats.len());
            let n = random.below(40) as usize;
            assert_eq!(runs.nth(n), beats.nth(n));
        }
    }
}
