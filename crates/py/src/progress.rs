//! Tells Python how far a long run is, and hears of Ctrl-C.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Between two calls of Python.
const INTERVAL: Duration = Duration::from_millis(50);

/// A callback `f(done, total)`, called now and then while Python's lock is released.
pub struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    last: Instant,
    /// What Python raised: KeyboardInterrupt, or whatever the callback did.
    pub raised: Option<PyErr>,
}

impl ProgressReporter {
    /// A reporter, with a callback or none.
    pub fn new(callback: Option<Py<PyAny>>) -> ProgressReporter {
        ProgressReporter {
            callback,
            last: Instant::now(),
            raised: None,
        }
    }

    /// Reports; false asks to stop.
    pub fn report(&mut self, done: u64, total: u64) -> bool {
        if self.raised.is_some() {
            return false;
        }
        if self.last.elapsed() < INTERVAL && done < total {
            return true;
        }
        self.last = Instant::now();
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            match &self.callback {
                Some(f) => f.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        match outcome {
            Ok(()) => true,
            Err(error) => {
                self.raised = Some(error);
                false
            }
        }
    }

    /// What Python raised, else the outcome.
    pub fn finish<T, E: std::fmt::Display>(self, outcome: Result<T, E>) -> PyResult<T> {
        match self.raised {
            Some(error) => Err(error),
            None => outcome.map_err(crate::error::raise),
        }
    }
}

/// Runs `part` on pieces (start, length) of `total` units of work; Ctrl-C is heard between two. No piece spans a multiple of `most`,
/// counted from `skew` units before the start.
pub fn in_pieces(
    py: Python<'_>,
    skew: u64,
    total: u64,
    most: u64,
    mut part: impl FnMut(u64, u64) -> driver::Result<()> + Send,
) -> PyResult<()> {
    let mut reporter = ProgressReporter::new(None);
    let outcome = py.detach(|| {
        let mut at = 0;
        while at < total {
            let here = (most - (skew + at) % most).min(total - at);
            part(at, here)?;
            at += here;
            if at < total && !reporter.report(at, total) {
                return Err(driver::Error::Interrupted);
            }
        }
        Ok(())
    });
    reporter.finish(outcome)
}
