// SPDX-License-Identifier: Apache-2.0

//! A set-associative write-back cache: the lines present, and their content.

use sim::Random;

use crate::mapping::{CacheLine, LINE};
use crate::parameters::{CacheParameters, ReplacementPolicy};

/// A line of the cache.
#[derive(Clone, Debug)]
pub(crate) struct CachedLine {
    pub line: CacheLine,
    pub data: [u8; LINE],
    /// A bit for each byte that was stored since the line last equalled the device's.
    pub dirty: u64,
    /// The time of the last use, in accesses of the cache.
    used: u64,
}

/// The lines of all CPUs of a host.
pub(crate) struct Cache {
    /// Empty until the first line is inserted, because few hosts use the cache.
    sets: Vec<Vec<CachedLine>>,
    count: usize,
    ways: usize,
    policy: ReplacementPolicy,
    random: Random,
    uses: u64,
}

impl Cache {
    pub fn new(parameters: CacheParameters, seed: u64) -> Cache {
        Cache {
            sets: Vec::new(),
            count: parameters.sets.max(1),
            ways: parameters.ways.max(1),
            policy: parameters.policy,
            random: Random::new(seed),
            uses: 0,
        }
    }

    fn set(&self, line: &CacheLine) -> usize {
        // Devices begin in different sets.
        let number = line.offset / LINE as u64 + 0x55 * line.device as u64;
        (number % self.count as u64) as usize
    }

    pub fn contains(&self, line: &CacheLine) -> bool {
        let set = self.sets.get(self.set(line));
        set.is_some_and(|lines| lines.iter().any(|e| e.line == *line))
    }

    /// Looks a line up and marks it as used now.
    pub fn get(&mut self, line: &CacheLine) -> Option<&mut CachedLine> {
        self.uses += 1;
        let (set, uses) = (self.set(line), self.uses);
        let lines = self.sets.get_mut(set)?;
        let entry = lines.iter_mut().find(|e| e.line == *line)?;
        entry.used = uses;
        Some(entry)
    }

    /// Inserts a line that is not present; returns the evicted one.
    pub fn insert(&mut self, line: CacheLine, data: [u8; LINE], dirty: u64) -> Option<CachedLine> {
        self.uses += 1;
        let set = self.set(&line);
        if self.sets.is_empty() {
            self.sets.resize_with(self.count, Vec::new);
        }
        let lines = &mut self.sets[set];
        let leaves = (lines.len() >= self.ways).then(|| match self.policy {
            ReplacementPolicy::Random => self.random.below(lines.len() as u64) as usize,
            ReplacementPolicy::Lru => {
                let oldest = (0..lines.len()).min_by_key(|&n| lines[n].used);
                oldest.unwrap_or(0)
            }
        });
        let victim = leaves.map(|n| lines.swap_remove(n));
        lines.push(CachedLine {
            line,
            data,
            dirty,
            used: self.uses,
        });
        victim
    }

    /// Removes a line.
    pub fn remove(&mut self, line: &CacheLine) -> Option<CachedLine> {
        let set = self.set(line);
        let lines = self.sets.get_mut(set)?;
        let place = lines.iter().position(|e| e.line == *line)?;
        Some(lines.swap_remove(place))
    }

    /// All lines, by position.
    pub fn entries(&mut self) -> impl Iterator<Item = &mut CachedLine> {
        self.sets.iter_mut().flatten()
    }

    /// Removes all lines; returns the dirty ones in order of address.
    pub fn clear(&mut self) -> Vec<CachedLine> {
        let lines = self.sets.iter_mut().flat_map(std::mem::take);
        let mut dirty: Vec<CachedLine> = lines.filter(|e| e.dirty != 0).collect();
        dirty.sort_by_key(|e| (e.line.device, e.line.offset));
        dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Bar;

    fn cache(policy: ReplacementPolicy) -> Cache {
        let (sets, ways) = (4, 2);
        Cache::new(CacheParameters { sets, ways, policy }, 1)
    }

    fn line(n: u64) -> CacheLine {
        CacheLine {
            device: 0,
            bar: Bar::Pm,
            offset: 64 * n,
        }
    }

    #[test]
    fn cache_evicts_the_least_recently_used_line() {
        let mut cache = cache(ReplacementPolicy::Lru);
        // Lines 0, 4, 8 share a set of two.
        assert!(cache.insert(line(0), [0; LINE], 0).is_none());
        assert!(cache.insert(line(4), [4; LINE], 1).is_none());
        assert!(cache.insert(line(1), [1; LINE], 0).is_none());
        assert!(cache.get(&line(0)).is_some());
        let victim = cache.insert(line(8), [8; LINE], 0).unwrap();
        assert_eq!((victim.line, victim.dirty), (line(4), 1));
        assert!(cache.contains(&line(0)) && !cache.contains(&line(4)));
        assert!(cache.remove(&line(8)).is_some() && cache.remove(&line(8)).is_none());
        assert!(cache.clear().is_empty() && !cache.contains(&line(0)));
    }

    #[test]
    fn cache_random_eviction_repeats_with_the_seed() {
        let leave = || {
            let mut cache = cache(ReplacementPolicy::Random);
            let victims = (0..40).map(|n| cache.insert(line(4 * n), [0; LINE], 0));
            victims
                .map(|v| v.map(|v| v.line.offset))
                .collect::<Vec<_>>()
        };
        assert_eq!(leave(), leave());
        let first = leave()[2].unwrap();
        assert!(leave()[2..].iter().any(|v| v.unwrap() != first));
    }
}
