//! The way of read data back through a port, one beat a cycle: [`sim::memctrl::ReadBeatSlots`], as runs of beats.

use std::collections::VecDeque;

/// Cycles in which beats of read data pass, of reads that have been given a place and have not come.
#[derive(Default)]
pub struct Returns {
    /// First and last cycle of each run, sorted, with a free cycle between them at least.
    runs: VecDeque<(u64, u64)>,
    beats: usize,
}

impl Returns {
    /// Gives `beats` beats the first cycles that are free, when the first of them is there in cycle `first` and the last in `last`.
    /// Returns the cycle of the last.
    #[inline]
    pub fn take(&mut self, first: u64, last: u64, beats: u32) -> u64 {
        let count = u64::from(beats.max(1));
        self.beats += count as usize;
        let mut wanted = first.max((last + 1).saturating_sub(count));
        match self.runs.back_mut() {
            // Within the last run, or at its end: all go behind it.
            Some((start, end)) if *start <= wanted && wanted <= *end + 1 => {
                *end += count;
                *end
            }
            Some((_, end)) if wanted <= *end => {
                let mut end = self.one(wanted);
                for _ in 1..count {
                    wanted += 1;
                    end = self.one(wanted.max(end + 1));
                }
                end
            }
            _ => {
                self.runs.push_back((wanted, wanted + count - 1));
                wanted + count - 1
            }
        }
    }

    fn one(&mut self, wanted: u64) -> u64 {
        let mut i = self.runs.len();
        while i > 0 && self.runs[i - 1].1 >= wanted {
            i -= 1;
        }
        // The first run that ends at the cycle or behind it; the cycle is within it, or before it.
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

    /// Forgets the beats that have passed by the end of `cycle`.
    #[inline]
    pub fn forget(&mut self, cycle: u64) {
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

    /// Beats that have not been forgotten.
    #[inline]
    pub fn len(&self) -> usize {
        self.beats
    }

    /// The cycle of the `n`th of them, counted from 0.
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
    fn runs_are_the_beats_of_the_port() {
        let mut random = Random::new(5);
        let (mut runs, mut beats) = (Returns::default(), sim::memctrl::ReadBeatSlots::new());
        let mut now = 0;
        for _ in 0..100_000 {
            now += random.below(12);
            let first = now + 1 + random.below(60);
            let last = first + random.below(20);
            let count = 1 + random.below(8) as u32;
            assert_eq!(
                runs.take(first, last, count),
                beats.reserve(first, last, count).1
            );
            runs.forget(now);
            beats.remove_until(now);
            assert_eq!(runs.len(), beats.len());
            let n = random.below(40) as usize;
            assert_eq!(runs.nth(n), beats.nth(n));
        }
    }
}
