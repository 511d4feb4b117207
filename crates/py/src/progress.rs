// SPDX-License-Identifier: Apache-2.0

//! Reports progress to Python, and checks for Ctrl-C.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Interval of calls of Python.
const INTERVAL: Duration = Duration::from_millis(50);

/// A callback `f(done, total)`, called at intervals while Python's lock is released.
pub struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    last: Instant,
    /// The exception of Python: KeyboardInterrupt, or that of the callback.
    pub raised: Option<PyErr>,
}

impl ProgressReporter {
    /// A reporter, with an optional callback.
    pub fn new(callback: Option<Py<PyAny>>) -> ProgressReporter {
        ProgressReporter {
            callback,
            last: Instant::now(),
            raised: None,
        }
    }

    /// Reports progress. Returns false to stop the work.
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

    /// The exception of Python if there is one, else the result.
    pub fn finish<T, E: Into<crate::error::Error>>(self, outcome: Result<T, E>) -> PyResult<T> {
        match self.raised {
            Some(error) => Err(error),
            None => outcome.map_err(crate::error::raise),
        }
    }
}

/// Runs `part` on pieces (start, length) of `total` units of work, and checks for Ctrl-C between
/// them. No piece crosses a multiple of `most`, counted from `skew` units before the start.
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
