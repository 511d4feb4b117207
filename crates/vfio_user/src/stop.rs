// SPDX-License-Identifier: Apache-2.0

//! The end of the server, for its threads.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{eventfd, EventfdFlags};

/// Ends the accept loops.
pub(crate) struct StopSignal {
    flag: AtomicBool,
    event: OwnedFd,
}

impl StopSignal {
    pub(crate) fn new() -> std::io::Result<StopSignal> {
        Ok(StopSignal {
            flag: AtomicBool::new(false),
            event: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Readable once the server ends.
    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }
}
