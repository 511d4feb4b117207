// SPDX-License-Identifier: Apache-2.0

//! Simulated time in integer picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a duration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The start of simulated time.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// `n` nanoseconds.
    pub const fn ns(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// `n` microseconds.
    pub const fn us(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// `n` milliseconds.
    pub const fn ms(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }
    /// This time in nanoseconds.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// This time in seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// `self - other`, or zero where `other` is later.
    pub fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps", self.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ps if ps < 10_000 => write!(f, "{ps} ps"),
            ps if ps < 10_000_000 => write!(f, "{:.1} ns", ps as f64 / 1e3),
            ps if ps < 10_000_000_000 => write!(f, "{:.2} us", ps as f64 / 1e6),
            ps => write!(f, "{:.3} ms", ps as f64 / 1e9),
        }
    }
}
