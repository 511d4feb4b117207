// SPDX-License-Identifier: Apache-2.0

//! Result of a run.

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct RunResult {
    /// Commands or accesses of a CPU second.
    pub per_second: f64,
    /// Bytes that have been compared with what was written.
    pub compared: u64,
    /// Simulated time in ns.
    pub simulated: f64,
    /// Latencies, simulated.
    pub p50_ns: u64,
    /// See above.
    pub p99_ns: u64,
    /// Of all completions and their simulated times: a change that only makes the model faster
    /// leaves it as it is.
    pub hash: Hash,
    /// Events of the model for each.
    pub events: f64,
    /// Resident memory when everything has been touched; not a number in a run that is shorter.
    pub warm_mb: f64,
    /// And at the end.
    pub end_mb: f64,
}

/// A sum in which the order counts; cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Longer latencies count as this one.
pub const LONGEST_NS: u64 = 10_000_000_000;
