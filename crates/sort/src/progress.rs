//! How far a sort is, whether it shall go on, and whether it is sampled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::Error;

/// Seen by who sorts and by who waits.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
    sampled: bool,
    /// Why it was stopped, if nobody asked for it.
    failed: Mutex<Option<Error>>,
}

impl Progress {
    /// Of a sort that samples at its memories' counters, for a trace.
    pub fn with_samples() -> Progress {
        Progress {
            sampled: true,
            ..Progress::default()
        }
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Bytes moved, and bytes to move.
    pub fn bytes_moved(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// True when it shall end: for who reads bytes.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Ends the sort soon, as an error.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Ends it, as the host fails.
    pub(crate) fn fail(&self, error: Error) {
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert(error);
        }
        self.stop();
    }

    /// How the host has failed, if it has.
    pub(crate) fn failed(&self) -> Option<Error> {
        self.failed.lock().ok().and_then(|failed| failed.clone())
    }

    /// Why it has ended: `who` was interrupted, if the host has not failed.
    pub(crate) fn stop_reason(&self, who: &str) -> Error {
        let asked = || Error::new(format!("{who}interrupted"));
        self.failed().unwrap_or_else(asked)
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn should_continue(&self) -> bool {
        !self.stop.load(Relaxed)
    }
}
