// SPDX-License-Identifier: Apache-2.0

//! Latencies of single commands, all of which are kept, so that percentiles are exact.

use sim::Time;

/// A set of latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    samples: Vec<u64>,
}

impl Latencies {
    /// Adds a latency.
    pub fn record(&mut self, latency: Time) {
        self.samples.push(latency.0);
    }

    /// The number of latencies.
    pub fn count(&self) -> usize {
        self.samples.len()
    }

    /// Adds the latencies of another set.
    pub fn merge(&mut self, other: &Latencies) {
        self.samples.extend_from_slice(&other.samples);
    }

    /// The latencies with these indexes, in the order in which they were added; indexes past the
    /// end are ignored.
    pub fn subset(&self, range: std::ops::Range<usize>) -> Latencies {
        let end = range.end.min(self.samples.len());
        let samples = self
            .samples
            .get(range.start..end)
            .unwrap_or_default()
            .to_vec();
        Latencies { samples }
    }

    /// Mean, percentiles and extremes; `None` without samples.
    pub fn summary(&self) -> Option<LatencySummary> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        // Nearest rank: the smallest sample that at least the fraction p of all samples does not
        // exceed.
        let at =
            |p: f64| sorted[((p * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1];
        let ns = |ps: u64| ps as f64 / 1e3;
        Some(LatencySummary {
            count: sorted.len() as u64,
            mean_ns: sorted.iter().map(|&s| s as f64).sum::<f64>() / sorted.len() as f64 / 1e3,
            min_ns: ns(min),
            p50_ns: ns(at(0.5)),
            p99_ns: ns(at(0.99)),
            p999_ns: ns(at(0.999)),
            max_ns: ns(max),
        })
    }
}

/// A summary of latencies, in ns of simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencySummary {
    /// The number of samples.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Smallest.
    pub min_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Largest.
    pub max_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_percentiles_use_the_nearest_rank() {
        let mut latency = Latencies::default();
        assert_eq!(latency.summary(), None);
        for n in (1..=1000).rev() {
            latency.record(Time::ns(n));
        }
        let s = latency.summary().unwrap();
        assert_eq!((s.p50_ns, s.p99_ns, s.p999_ns), (500.0, 990.0, 999.0));
        assert_eq!((s.min_ns, s.max_ns, s.mean_ns), (1.0, 1000.0, 500.5));
    }
}
