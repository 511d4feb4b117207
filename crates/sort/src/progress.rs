//! How far a sort is, whether it shall go on, and whether it is watched.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Seen by who sorts and by who waits.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
    watched: bool,
}

impl Progress {
    /// Of a sort that looks at its memories' counters, for a trace.
    pub fn watched() -> Progress {
        Progress {
            watched: true,
            ..Progress::default()
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Bytes moved, and bytes to move.
    pub fn now(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// Ends the sort soon, as an error.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn go_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }
}
