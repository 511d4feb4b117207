// SPDX-License-Identifier: Apache-2.0

//! A wall clock that a test sets.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use vfio_user::Clock;

use super::TEST_TIMEOUT;

#[derive(Default)]
struct State {
    now: Duration,
    woken: bool,
    wakes: u64,
    /// The pacing thread waits for something later than the present time, until this one.
    waiting: Option<Option<Duration>>,
    /// Time passes whenever the pacing thread waits for it.
    running: bool,
}

/// A clock that stands still unless a test says otherwise.
#[derive(Default)]
pub struct ManualClock {
    state: Mutex<State>,
    changed: Condvar,
}

impl ManualClock {
    /// A clock that is at once where the pacing thread waits for it.
    pub fn running() -> ManualClock {
        let clock = ManualClock::default();
        clock.state.lock().unwrap().running = true;
        clock
    }

    /// Waits until the pacing thread has done everything that is due, and returns the time that it
    /// waits for. `None`: it waits for a request.
    pub fn settle(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap();
        self.settled(state).waiting.flatten()
    }

    /// Lets time pass without waiting for anything.
    pub fn add(&self, span: Duration) {
        let mut state = self.state.lock().unwrap();
        state.now += span;
        if state
            .waiting
            .flatten()
            .is_some_and(|until| until <= state.now)
        {
            state.waiting = None;
        }
        self.changed.notify_all();
    }

    /// How often the pacing thread was woken: once for each request.
    pub fn wakes(&self) -> u64 {
        self.state.lock().unwrap().wakes
    }

    fn settled<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let busy = |state: &mut State| state.waiting.is_none();
        let waited = self.changed.wait_timeout_while(state, TEST_TIMEOUT, busy);
        let (state, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "the pacing thread does not wait");
        state
    }

    /// Sets the clock, and waits until everything that is due has been done.
    pub fn set(&self, now: Duration) {
        let mut state = self.settled(self.state.lock().unwrap());
        assert!(now >= state.now);
        state.now = now;
        if state.waiting.flatten().is_some_and(|until| until <= now) {
            state.waiting = None;
        }
        self.changed.notify_all();
        drop(self.settled(state));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.state.lock().unwrap().now
    }

    fn wait(&self, until: Option<Duration>) {
        let mut state = self.state.lock().unwrap();
        if let (true, false, Some(until)) = (state.running, state.woken, until) {
            state.now = state.now.max(until);
        }
        while !state.woken && until.is_none_or(|until| state.now < until) {
            state.waiting = Some(until);
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
        state.woken = false;
        state.waiting = None;
    }

    fn wake(&self) {
        let mut state = self.state.lock().unwrap();
        state.woken = true;
        state.wakes += 1;
        state.waiting = None;
        self.changed.notify_all();
    }
}
