// SPDX-License-Identifier: Apache-2.0

//! Sets of byte ranges of a pool.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// The parts of a range that are not in the set.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut out = Vec::new();
        let mut at = range.start;
        let before = self.0.range(..=range.start).next_back();
        if let Some((_, &end)) = before {
            at = at.max(end);
        }
        for (&start, &end) in self.0.range(range.start..range.end) {
            if at < start {
                out.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            out.push(at..range.end);
        }
        out
    }

    /// True if a byte of a range is in the set.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let before = self.0.range(..range.end).next_back();
        !range.is_empty() && before.is_some_and(|(_, end)| *end > range.start)
    }

    /// True without ranges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        while let Some((&first, &last)) = self.0.range(..=end).next_back() {
            if last < start {
                break;
            }
            self.0.remove(&first);
            start = start.min(first);
            end = end.max(last);
        }
        self.0.insert(start, end);
    }

    /// The ranges, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(&start, &end)| start..end)
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn ranges_agree_with_a_map_of_bytes() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut set, mut bytes) = (Ranges::default(), [false; 100]);
            for _ in 0..20 {
                let start = random.below(100);
                let end = start + random.below(101 - start);
                let mut want = Vec::new();
                for at in (start..end).filter(|&at| !bytes[at as usize]) {
                    want.push(at);
                }
                let missing = set.missing(start..end);
                assert!(missing.iter().all(|r| !r.is_empty()));
                assert_eq!(missing.into_iter().flatten().collect::<Vec<_>>(), want);
                let overlaps = want.len() as u64 != end - start;
                assert_eq!(set.overlaps(&(start..end)), overlaps);
                set.add(start..end);
                bytes[start as usize..end as usize].fill(true);
                let all: Vec<u64> = set.iter().flatten().collect();
                let want: Vec<u64> = (0..100).filter(|&at| bytes[at as usize]).collect();
                assert_eq!(all, want);
                let ranges: Vec<_> = set.iter().collect();
                assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}
