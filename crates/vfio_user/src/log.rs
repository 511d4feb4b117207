// SPDX-License-Identifier: Apache-2.0

//! Log lines of the server.

use std::io::Write;
use std::sync::Arc;

/// Receives the server's log lines, from any of its threads.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Lines are passed to `write`. It has to be fast, as a device may wait for it.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(tell))
    }

    /// Lines go to standard error.
    pub fn stderr() -> Log {
        // Standard error may be closed. The devices continue.
        Log::new(|line| drop(writeln!(std::io::stderr(), "nearside serve: {line}")))
    }

    /// Writes a line about a device.
    pub(crate) fn report(&self, device: &str, line: &str) {
        (self.0)(&format!("{device}: {line}"));
    }
}
