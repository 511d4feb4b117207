// SPDX-License-Identifier: Apache-2.0

//! A clock without accumulated rounding error, whatever its frequency.

use crate::Time;

/// Picoseconds in which a clock has as many cycles as its frequency in kHz.
const PS: u64 = 1_000_000_000;

/// A clock of 1 to 1000 MHz. Edge k is at floor(k * 10^9 / f) ps for f kHz. Where the period is not
/// a whole number of picoseconds, each edge is rounded down separately, so the error never
/// accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    khz: u32,
    /// Picoseconds of a cycle where that is a whole number, else 0. A whole period needs no
    /// division.
    period: u32,
}

impl Clock {
    /// The lowest frequency, kHz.
    pub const MIN_KHZ: u32 = 1_000;
    /// The highest frequency, kHz.
    pub const MAX_KHZ: u32 = 1_000_000;

    /// A clock of `mhz` MHz; `None` if that is not 1 to 1000.
    pub fn from_mhz(mhz: u32) -> Option<Clock> {
        Clock::from_khz(mhz.checked_mul(1000)?)
    }

    /// A clock of `khz` kHz; `None` if that is not 1 to 1000 MHz.
    pub fn from_khz(khz: u32) -> Option<Clock> {
        (Clock::MIN_KHZ..=Clock::MAX_KHZ)
            .contains(&khz)
            .then(|| Clock::new(khz))
    }

    fn new(khz: u32) -> Clock {
        let whole = PS % u64::from(khz) == 0;
        let period = if whole { PS as u32 / khz } else { 0 };
        Clock { khz, period }
    }

    /// The frequency in kHz.
    pub fn khz(self) -> u32 {
        self.khz
    }

    /// The time of edge `k`. Edge 0 is at time zero.
    #[inline]
    pub fn edge(self, k: u64) -> Time {
        if self.period != 0 {
            return Time(k * u64::from(self.period));
        }
        let f = u64::from(self.khz);
        Time(k / f * PS + k % f * PS / f)
    }

    /// The number of the last edge at or before `time`.
    #[inline]
    pub fn edge_before(self, time: Time) -> u64 {
        if self.period != 0 {
            return time.0 / u64::from(self.period);
        }
        // Edge k is at or before t when k * PS / f < t + 1.
        let (f, end) = (u64::from(self.khz), time.0.saturating_add(1));
        end / PS * f + (end % PS * f).div_ceil(PS) - 1
    }

    /// The number of the last edge before `time`; edge 0 for time zero.
    #[inline]
    pub fn edge_strictly_before(self, time: Time) -> u64 {
        self.edge_before(Time(time.0.saturating_sub(1)))
    }

    /// The duration of `cycles` in ns, averaged over their phase.
    pub fn ns(self, cycles: f64) -> f64 {
        cycles * 1e6 / f64::from(self.khz)
    }

    /// The number of cycles in `ns`.
    pub fn cycles(self, ns: f64) -> f64 {
        ns * f64::from(self.khz) / 1e6
    }
}

impl Default for Clock {
    /// 250 MHz.
    fn default() -> Clock {
        Clock::new(250_000)
    }
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} MHz", f64::from(self.khz) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const MHZ: [u32; 12] = [1, 2, 3, 7, 99, 133, 150, 250, 300, 333, 999, 1000];

    /// Edge k in exact arithmetic.
    fn exact(k: u64, khz: u32) -> u128 {
        u128::from(k) * 1_000_000_000 / u128::from(khz)
    }

    /// The first edge after `time` in exact arithmetic, found from below and above.
    fn check_around(clock: Clock, time: u64) {
        let k = clock.edge_before(Time(time));
        let (here, next) = (exact(k, clock.khz()), exact(k + 1, clock.khz()));
        assert!(
            here <= time.into() && u128::from(time) < next,
            "{clock} at {time} ps: {k}"
        );
        assert_eq!(u128::from(clock.edge(k).0), here);
        let before = clock.edge_strictly_before(Time(time));
        let expected = if here == time.into() {
            k.saturating_sub(1)
        } else {
            k
        };
        assert_eq!(before, expected, "{clock} before {time} ps");
    }

    #[test]
    fn clock_edges_are_exact_from_first_to_last() {
        for khz in MHZ
            .map(|mhz| mhz * 1000)
            .into_iter()
            .chain([1001, 33_333, 999_999])
        {
            let clock = Clock::from_khz(khz).unwrap();
            let mut random = Random::new(khz.into());
            let last = (u128::from(u64::MAX) * u128::from(khz) / 1_000_000_000) as u64;
            let far = (0..2000).map(|_| random.below(last));
            for k in (0..4000).chain(last - 50..last).chain(far) {
                assert_eq!(
                    u128::from(clock.edge(k).0),
                    exact(k, khz),
                    "{clock}, edge {k}"
                );
            }
            let near: Vec<u64> = (0..4000).map(|_| random.below(10_000_000)).collect();
            let ends = [0, 1, 999, 1000, u64::MAX / 2, u64::MAX - 2_000_000];
            let far: Vec<u64> = (0..2000).map(|_| random.next() / 2).collect();
            let edges = (1..200)
                .flat_map(|k| [-1i64, 0, 1].map(|d| clock.edge(k).0.wrapping_add_signed(d)));
            for time in near.into_iter().chain(ends).chain(far).chain(edges) {
                check_around(clock, time);
            }
        }
    }

    #[test]
    fn clock_cycles_differ_by_one_picosecond_and_fill_a_second() {
        for mhz in MHZ {
            let clock = Clock::from_mhz(mhz).unwrap();
            let period = 1_000_000 / u64::from(mhz);
            for k in 0..10_000 {
                let span = clock.edge(k + 1).0 - clock.edge(k).0;
                assert!(
                    span == period || span == period + 1,
                    "{clock}, cycle {k}: {span} ps"
                );
            }
            assert_eq!(clock.edge(u64::from(mhz) * 1_000_000), Time::ms(1000));
        }
    }

    #[test]
    fn clock_conversions_are_inverse() {
        for mhz in MHZ {
            let clock = Clock::from_mhz(mhz).unwrap();
            assert!((clock.ns(f64::from(mhz)) - 1000.0).abs() < 1e-9);
            assert!((clock.cycles(1000.0) - f64::from(mhz)).abs() < 1e-9);
            assert!((clock.cycles(clock.ns(305.0)) - 305.0).abs() < 1e-9);
        }
    }

    #[test]
    fn clock_refuses_frequencies_out_of_range() {
        for mhz in [0, 1001, u32::MAX] {
            assert_eq!(Clock::from_mhz(mhz), None);
        }
        for khz in [0, 999, 1_000_001] {
            assert_eq!(Clock::from_khz(khz), None);
        }
    }
}
