// SPDX-License-Identifier: Apache-2.0

//! The latency of transactions until they are acknowledged.

use std::collections::VecDeque;

use pm::{Thread, Ticket};
use sim::Time;

/// Times from the begin of transactions to the moment that the program knows them to be durable.
#[derive(Default)]
pub(crate) struct Latencies {
    pending: VecDeque<(Ticket, Time)>,
    known: Vec<Time>,
}

impl Latencies {
    /// Records a transaction that has returned, and which ones are known to be durable by now.
    pub fn add(&mut self, thread: &Thread, begin: Time) {
        self.pending.push_back((thread.last_ticket(), begin));
        self.note_durable(thread);
    }

    /// Records which transactions are known to be durable by now.
    pub fn note_durable(&mut self, thread: &Thread) {
        let now = thread.cpu().now();
        let durable = |one: &&(Ticket, Time)| thread.is_durable(one.0);
        let count = self.pending.iter().take_while(durable).count();
        let known = self.pending.drain(..count);
        self.known
            .extend(known.map(|(_, begin)| now.saturating_sub(begin)));
    }

    /// Adds those of another thread.
    pub fn extend(&mut self, other: Latencies) {
        self.known.extend(other.known);
    }

    /// The mean and the 99th percentile, ns.
    pub fn mean_and_p99(mut self) -> (f64, f64) {
        self.known.sort_unstable();
        let count = self.known.len();
        if count == 0 {
            return (0.0, 0.0);
        }
        let sum: f64 = self.known.iter().map(|time| time.as_ns()).sum();
        let rank = (count * 99).div_ceil(100) - 1;
        (sum / count as f64, self.known[rank].as_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_smallest_value_that_99_of_100_do_not_exceed() {
        for (count, p99) in [(1, 1), (99, 99), (100, 99), (200, 198)] {
            let known = (1..=count).rev().map(Time::ns).collect();
            let latencies = Latencies {
                known,
                ..Latencies::default()
            };
            let mean = (count + 1) as f64 / 2.0;
            assert_eq!(latencies.mean_and_p99(), (mean, p99 as f64));
        }
    }
}
