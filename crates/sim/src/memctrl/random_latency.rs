// SPDX-License-Identifier: Apache-2.0

//! A memory with random latencies.

use std::collections::BTreeMap;

use super::MemoryTiming;
use crate::{Random, Time};

/// Each access takes a random time up to a maximum, drawn by seed. Writes complete in order, reads
/// in any order.
pub struct RandomLatency {
    most: Time,
    random: Random,
    /// When the last write is in the memory controller.
    written: Time,
    /// Accesses in flight, by completion time.
    accesses: BTreeMap<(Time, u64), u32>,
    count: u64,
}

impl RandomLatency {
    /// A memory with this longest latency.
    pub fn new(most: Time, seed: u64) -> RandomLatency {
        RandomLatency {
            most,
            random: Random::new(seed),
            written: Time::ZERO,
            accesses: BTreeMap::new(),
            count: 0,
        }
    }
}

impl MemoryTiming for RandomLatency {
    fn ready(&self, _write: bool) -> bool {
        true
    }

    fn push(&mut self, now: Time, token: u32, _addr: u64, write: bool) {
        let mut end = now + Time(1 + self.random.below(self.most.0));
        if write {
            end = end.max(self.written);
            self.written = end;
        }
        self.count += 1;
        self.accesses.insert((end, self.count), token);
    }

    fn advance(&mut self, now: Time, done: &mut Vec<u32>) {
        while let Some(first) = self.accesses.first_entry() {
            if first.key().0 > now {
                break;
            }
            done.push(first.remove());
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.accesses.first_key_value().map(|(&(time, _), _)| time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_latency_reorders_reads_and_keeps_writes_in_order() {
        let mut memory = RandomLatency::new(Time::us(3), 1);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for n in 0..64 {
            memory.push(Time::ns(n), n as u32, 0, n % 2 == 1);
        }
        while let Some(time) = memory.next_event() {
            assert!(time <= Time::us(4));
            let mut done = Vec::new();
            memory.advance(time, &mut done);
            assert!(!done.is_empty());
            for token in done {
                if token % 2 == 1 {
                    &mut writes
                } else {
                    &mut reads
                }
                .push(token);
            }
        }
        assert_eq!((reads.len(), writes.len()), (32, 32));
        assert!(writes.is_sorted() && !reads.is_sorted());
    }
}
