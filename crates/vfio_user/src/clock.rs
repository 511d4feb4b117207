// SPDX-License-Identifier: Apache-2.0

//! The wall clock of paced devices, and how much slower than it they are.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sim::Time;

use crate::Error;

/// A wait ends this long before its time, and the thread spins for the rest. The kernel wakes a
/// sleeping thread some 10 us late, more on a loaded machine.
const SPIN: Duration = Duration::from_micros(50);

/// A clock that paced devices follow. It never goes backwards.
pub trait Clock: Send + Sync {
    /// The time since some moment before the start of the server.
    fn now(&self) -> Duration;

    /// Called once by the thread that is going to wait.
    fn prepare(&self) {}

    /// Waits until a time, or without a limit, or until [`Clock::wake`]. Returns at once if
    /// `wake` was called since the last wait.
    fn wait(&self, until: Option<Duration>);

    /// Ends the wait of another thread, or the next one.
    fn wake(&self);
}

/// The machine's monotonic clock. A wait sleeps until 50 us before its end, and then spins.
pub struct MonotonicClock {
    start: Instant,
    woken: AtomicBool,
    sleeping: Mutex<()>,
    changed: Condvar,
}

impl Default for MonotonicClock {
    fn default() -> MonotonicClock {
        MonotonicClock {
            start: Instant::now(),
            woken: AtomicBool::new(false),
            sleeping: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn prepare(&self) {
        // Otherwise the kernel wakes the thread up to 50 us late to save energy. A failure costs
        // precision only.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }

    fn wait(&self, until: Option<Duration>) {
        let mut guard = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.woken.swap(false, Ordering::AcqRel) {
            let Some(until) = until else {
                let waited = self.changed.wait(guard);
                guard = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let sleep = until.saturating_sub(self.now()).saturating_sub(SPIN);
            if sleep.is_zero() {
                drop(guard);
                while self.now() < until && !self.woken.swap(false, Ordering::AcqRel) {
                    std::hint::spin_loop();
                }
                return;
            }
            let waited = self.changed.wait_timeout(guard, sleep);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        // The other thread is either before its check, or waits already.
        drop(self.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// How many times slower than modelled devices are on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dilation {
    thousandths: u64,
}

impl Dilation {
    /// As fast as modelled.
    pub const NONE: Dilation = Dilation { thousandths: 1000 };
    /// The factors that are allowed.
    pub const ALLOWED: RangeInclusive<f64> = 0.01..=100_000.0;

    /// Devices that are `factor` times slower than modelled, rounded to 0.001. Factors below 1 make
    /// them faster.
    pub fn new(factor: f64) -> Result<Dilation, Error> {
        match Dilation::ALLOWED.contains(&factor) {
            true => Ok(Dilation {
                thousandths: (factor * 1000.0).round() as u64,
            }),
            false => Err(Error::Dilation(factor)),
        }
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.thousandths as f64 / 1000.0
    }

    /// The device's time at a time of the wall clock.
    pub fn device_time(self, wall: Duration) -> Time {
        let ps = wall.as_nanos() * 1_000_000 / u128::from(self.thousandths);
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// The first time of the wall clock, in ns, at which the device's time has come.
    pub fn wall_time(self, device: Time) -> Duration {
        let ns = (u128::from(device.0) * u128::from(self.thousandths)).div_ceil(1_000_000);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn dilation_is_never_early_and_less_than_a_nanosecond_late() {
        for factor in [0.01, 0.7, 1.0, 1.5, 10.0, 999.999, 100_000.0] {
            let dilation = Dilation::new(factor).unwrap();
            assert_eq!(dilation.factor(), factor);
            for ps in [0, 1, 999, 1000, 20_123_457, 3_600_000_000_000_001] {
                let wall = dilation.wall_time(Time(ps));
                assert!(dilation.device_time(wall) >= Time(ps), "{factor} {ps}");
                let before = wall.saturating_sub(Duration::from_nanos(1));
                assert!(
                    wall.is_zero() || dilation.device_time(before) < Time(ps),
                    "{factor} {ps}"
                );
            }
        }
    }

    #[test]
    fn dilation_is_positive_and_bounded() {
        for factor in [0.0, -1.0, 0.009, 100_001.0, f64::NAN, f64::INFINITY] {
            let error = Dilation::new(factor).unwrap_err().to_string();
            assert!(error.contains("0.01 to 100000"), "{error}");
        }
    }

    #[test]
    fn monotonic_clock_waits_until_its_time_or_a_wake() {
        let clock = Arc::new(MonotonicClock::default());
        let until = clock.now() + Duration::from_millis(2);
        clock.wait(Some(until));
        assert!(clock.now() >= until);
        // Before the wait, and during it.
        clock.wake();
        clock.wait(None);
        let other = clock.clone();
        let thread = std::thread::spawn(move || other.wait(None));
        clock.wake();
        thread.join().unwrap();
    }
}
