// SPDX-License-Identifier: Apache-2.0

//! A device for tests: a clock and a step function.

use sim::{Counter, Device, Fault, HostPort, Time};

/// The work of a device in one clock; returns whether it is busy.
pub trait Step {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool;
    fn power(&mut self, _on: bool) {}
}

impl<F: FnMut(Time, &mut dyn HostPort) -> bool> Step for F {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool {
        self(now, host)
    }
}

/// Steps `S` every `period`, and skips idle time.
pub struct Clocked<S> {
    now: Time,
    period: u64,
    idle: bool,
    step: S,
}

impl<S: Step> Clocked<S> {
    pub fn new(period: Time, step: S) -> Self {
        Clocked {
            now: Time::ZERO,
            period: period.0,
            idle: false,
            step,
        }
    }
}

impl<S: Step> Device for Clocked<S> {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        assert!(until >= self.now, "time goes back");
        loop {
            let mut next = self.now.0 + self.period;
            if self.idle {
                let arrival = host
                    .next_arrival()
                    .unwrap_or(Time::MAX)
                    .min(until + Time(self.period));
                next = next.max(arrival.0.div_ceil(self.period) * self.period);
            }
            if next > until.0 {
                if self.idle {
                    self.now = Time(until.0 / self.period * self.period);
                }
                return Ok(());
            }
            self.now = Time(next);
            self.idle = !self.step.step(self.now, host);
        }
    }

    fn idle(&self) -> bool {
        self.idle
    }

    fn power_off(&mut self) {
        self.step.power(false);
    }

    fn power_on(&mut self) {
        self.idle = false;
        self.step.power(true);
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}
