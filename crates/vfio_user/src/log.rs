//! What the server has to say, to whoever runs it.

use std::io::Write;
use std::sync::Arc;

/// Takes the server's messages, a line each, from any of its threads.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Lines go to `tell`. It should not take long: a device may be waiting.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(tell))
    }

    /// Lines go to the process's standard error.
    pub fn stderr() -> Log {
        // Nobody may be reading it any more; the devices go on.
        Log::new(|line| drop(writeln!(std::io::stderr(), "nearside serve: {line}")))
    }

    /// A line about a device.
    pub(crate) fn report(&self, device: &str, line: &str) {
        (self.0)(&format!("{device}: {line}"));
    }
}
