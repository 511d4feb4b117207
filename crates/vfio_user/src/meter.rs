// SPDX-License-Identifier: Apache-2.0

//! How much later than modelled a client could see what its device did.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use sim::Time;

use crate::clock::{Clock, Dilation};
use crate::Error;

/// Something is late if it is later than this, in the device's time.
const TOLERANCE: Time = Time::us(1);
/// Longer errors are recorded as this one, in ns of the wall clock: 18 minutes.
const LONGEST_NS: u64 = 1 << 40;

/// What a client sees of its device.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Completion,
    Interrupt,
    Read,
}

/// Errors of one kind, in the device's time: wall-clock time divided by the dilation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    /// How many there were.
    pub count: u64,
    /// How many of them were later than the tolerance.
    pub late: u64,
    /// Mean, in ns.
    pub mean_ns: f64,
    /// Median, in ns, within 1 %, as the other percentiles.
    pub p50_ns: f64,
    /// 90th percentile, in ns.
    pub p90_ns: f64,
    /// 99th percentile, in ns.
    pub p99_ns: f64,
    /// 99.9th percentile, in ns.
    pub p999_ns: f64,
    /// Largest, in ns.
    pub max_ns: f64,
}

/// How precisely a device was paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingReport {
    /// How many times slower than modelled the device was.
    pub dilation: f64,
    /// What is later than this is late, in ns of the device's time.
    pub tolerance_ns: f64,
    /// By how much the clock of the server's devices was set back, as their simulation was too slow
    /// to follow the wall clock, in ns of the device's time.
    pub set_back_ns: f64,
    /// Writes of at most 64 bytes into the client's memory: completion queue entries.
    pub completions: Lateness,
    /// Interrupts.
    pub interrupts: Lateness,
    /// Answers to reads of registers and of the PM window.
    pub reads: Lateness,
}

/// Errors of one kind, in ns of the wall clock.
struct Errors {
    histogram: Histogram<u64>,
    late: u64,
    max_ns: u64,
}

impl Errors {
    fn new() -> Result<Errors, Error> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        Ok(Errors {
            histogram: histogram.map_err(|e| {
                let text = e.to_string();
                Error::Start("a histogram".into(), std::io::Error::other(text))
            })?,
            late: 0,
            max_ns: 0,
        })
    }

    fn report(&self, factor: f64) -> Lateness {
        let scale = |ns: f64| ns / factor;
        let percentile = |p| scale(self.histogram.value_at_percentile(p) as f64);
        // The histogram's largest value is the end of its bucket.
        let at = |p| percentile(p).min(scale(self.max_ns as f64));
        Lateness {
            count: self.histogram.len(),
            late: self.late,
            mean_ns: scale(self.histogram.mean()),
            p50_ns: at(50.0),
            p90_ns: at(90.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: scale(self.max_ns as f64),
        }
    }
}

/// The device's time on the wall clock, and the errors of all devices.
pub(crate) struct PaceMeter {
    clock: Arc<dyn Clock>,
    dilation: Dilation,
    /// The clock at the device's time zero.
    start: Duration,
    /// By how much the device's time was set back since, in ps.
    set_back: AtomicU64,
    /// By device and kind.
    errors: Mutex<Vec<[Errors; 3]>>,
}

impl PaceMeter {
    /// For a number of devices, whose time zero is now.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        dilation: Dilation,
        devices: usize,
    ) -> Result<PaceMeter, Error> {
        let mut errors = Vec::new();
        for _ in 0..devices {
            errors.push([Errors::new()?, Errors::new()?, Errors::new()?]);
        }
        Ok(PaceMeter {
            start: clock.now(),
            clock,
            dilation,
            set_back: AtomicU64::new(0),
            errors: Mutex::new(errors),
        })
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The device's time now.
    pub(crate) fn now(&self) -> Time {
        let passed = self.dilation.device_time(self.clock.now() - self.start);
        passed.saturating_sub(self.total_set_back())
    }

    /// Sets the device's time back.
    pub(crate) fn set_back(&self, span: Time) {
        self.set_back.fetch_add(span.0, Ordering::AcqRel);
    }

    fn total_set_back(&self) -> Time {
        Time(self.set_back.load(Ordering::Acquire))
    }

    /// The clock at which the device's time comes.
    pub(crate) fn wall_time(&self, time: Time) -> Duration {
        let passed = Time(time.0.saturating_add(self.total_set_back().0));
        self.start.saturating_add(self.dilation.wall_time(passed))
    }

    /// How much later than `time` it is, on the wall clock.
    pub(crate) fn lateness(&self, time: Time) -> Duration {
        self.clock.now().saturating_sub(self.wall_time(time))
    }

    /// Records how late a client could see something.
    pub(crate) fn record(&self, device: usize, kind: Kind, lateness: Duration) {
        let error = u64::try_from(lateness.as_nanos()).unwrap_or(u64::MAX);
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = &mut errors[device][kind as usize];
        errors.histogram.saturating_record(error);
        errors.max_ns = errors.max_ns.max(error);
        if lateness > self.dilation.wall_time(TOLERANCE) {
            errors.late += 1;
        }
    }

    /// The errors of each device so far.
    pub(crate) fn report(&self) -> Vec<PacingReport> {
        let factor = self.dilation.factor();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let device = |kinds: &[Errors; 3]| {
            let of = |kind: Kind| kinds[kind as usize].report(factor);
            PacingReport {
                dilation: factor,
                tolerance_ns: TOLERANCE.as_ns(),
                set_back_ns: self.total_set_back().as_ns(),
                completions: of(Kind::Completion),
                interrupts: of(Kind::Interrupt),
                reads: of(Kind::Read),
            }
        };
        errors.iter().map(device).collect()
    }
}
