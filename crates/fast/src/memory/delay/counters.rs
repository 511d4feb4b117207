// SPDX-License-Identifier: Apache-2.0

//! Counters of one direction: `nvm_delay_stats`.

/// Buckets of a histogram.
pub const BUCKETS: usize = 64;
/// Latencies are counted modulo this many cycles.
const MODULO: u64 = 1 << 24;

/// The counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Answered transactions.
    pub transactions: u64,
    /// Beats of read data sent, or of write data received.
    pub beats: u64,
    /// Answers after their deadline.
    pub late: u64,
    /// Sum of latencies in cycles.
    pub sum: u64,
    /// The smallest latency; all ones if there was none.
    pub min: u32,
    /// The largest latency.
    pub max: u32,
    /// Transactions by latency; see [`bucket`].
    pub buckets: [u32; BUCKETS],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            transactions: 0,
            beats: 0,
            late: 0,
            sum: 0,
            min: u32::MAX,
            max: 0,
            buckets: [0; BUCKETS],
        }
    }
}

impl Counters {
    /// Counts a transaction.
    #[inline]
    pub fn count(&mut self, latency: u64, late: bool) {
        let latency = (latency % MODULO) as u32;
        self.transactions += 1;
        self.late += u64::from(late);
        self.sum = self.sum.wrapping_add(latency.into());
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        let bucket = &mut self.buckets[bucket(latency)];
        *bucket = bucket.wrapping_add(1);
    }

    /// Word `index` of the counters before the buckets, in the order of the registers.
    pub fn word(&self, index: u64) -> u32 {
        let wide = |value: u64| (value >> (32 * (index & 1))) as u32;
        match index {
            0 | 1 => wide(self.transactions),
            2 | 3 => wide(self.beats),
            4 | 5 => wide(self.late),
            6 | 7 => wide(self.sum),
            8 => self.min,
            9 => self.max,
            _ => 0,
        }
    }
}

/// The bucket of a latency: one for each cycle below 4, four for each octave, and the last for all
/// longer ones.
#[inline]
pub fn bucket(latency: u32) -> usize {
    match latency {
        0..4 => latency as usize,
        4..0x2_0000 => {
            let octave = latency.ilog2();
            (4 * (octave - 1) + (latency >> (octave - 2) & 3)) as usize
        }
        _ => BUCKETS - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_buckets_are_those_of_the_readme() {
        assert_eq!([0, 1, 2, 3].map(bucket), [0, 1, 2, 3]);
        for b in 4..BUCKETS as u32 {
            let (e, m) = (b / 4 + 1, b % 4);
            let start = (1 << e) * (4 + m) / 4;
            assert_eq!(bucket(start), b as usize);
            assert_eq!(bucket(start - 1), b as usize - 1);
        }
        assert_eq!(bucket(114_688), BUCKETS - 1);
        assert_eq!(bucket(0xFF_FFFF), BUCKETS - 1);
    }
}
