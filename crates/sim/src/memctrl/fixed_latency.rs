// SPDX-License-Identifier: Apache-2.0

//! A memory with one fixed latency.

use std::collections::VecDeque;

use super::MemoryTiming;
use crate::Time;

/// The simplest memory: every access takes the same time.
pub struct FixedLatency {
    latency: Time,
    accesses: VecDeque<(Time, u32)>,
}

impl FixedLatency {
    /// A memory with this latency.
    pub fn new(latency: Time) -> FixedLatency {
        FixedLatency {
            latency,
            accesses: VecDeque::new(),
        }
    }
}

impl MemoryTiming for FixedLatency {
    fn ready(&self, _write: bool) -> bool {
        true
    }

    fn push(&mut self, now: Time, token: u32, _addr: u64, _write: bool) {
        self.accesses.push_back((now + self.latency, token));
    }

    fn advance(&mut self, now: Time, done: &mut Vec<u32>) {
        while let Some(&(time, token)) = self.accesses.front() {
            if time > now {
                break;
            }
            done.push(token);
            self.accesses.pop_front();
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.accesses.front().map(|&(time, _)| time)
    }
}
