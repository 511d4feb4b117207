// SPDX-License-Identifier: Apache-2.0

//! Conversion between clock cycles and picoseconds, without divisions where the clock allows it.

use sim::{Clock, Time};

/// In this many picoseconds a clock has as many cycles as its frequency in kHz.
const PS: u64 = 1_000_000_000;

/// A converter for one clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockConverter {
    clock: Clock,
    /// The period if it is a whole number of ps, otherwise 0.
    period: u64,
    /// 2^64 divided by the period, rounded up.
    inverse: u128,
}

impl ClockConverter {
    /// A converter for `clock`.
    pub fn new(clock: Clock) -> ClockConverter {
        let khz = u64::from(clock.khz());
        let period = if PS % khz == 0 { PS / khz } else { 0 };
        ClockConverter {
            clock,
            period,
            inverse: (1u128 << 64).div_ceil(u128::from(period.max(1))),
        }
    }

    /// The time of edge `cycle`.
    #[inline]
    pub fn edge_time(&self, cycle: u64) -> Time {
        if self.period != 0 {
            return Time(cycle.saturating_mul(self.period));
        }
        self.clock.edge(cycle)
    }

    /// The first edge at or after `time`.
    #[inline]
    pub fn first_edge_from(&self, time: Time) -> u64 {
        let Some(before) = time.0.checked_sub(1) else {
            return 0;
        };
        // The inverse is exact enough below 2^52 ps, which is an hour.
        if self.period != 0 && before < 1 << 52 {
            return ((u128::from(before) * self.inverse) >> 64) as u64 + 1;
        }
        self.clock.edge_before(Time(before)) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn clock_converter_agrees_with_the_clock() {
        for khz in [1_000, 33_333, 250_000, 300_000, 999_999, 1_000_000] {
            let clock = Clock::from_khz(khz).unwrap();
            let converter = ClockConverter::new(clock);
            let mut random = Random::new(3);
            for bits in 1..62 {
                for _ in 0..200 {
                    let time = Time(random.below(1 << bits));
                    let after = converter.first_edge_from(time);
                    assert!(clock.edge(after) >= time, "{khz} {time}");
                    assert!(after == 0 || clock.edge(after - 1) < time, "{khz} {time}");
                    assert_eq!(converter.edge_time(after), clock.edge(after));
                }
            }
        }
    }
}
