// SPDX-License-Identifier: Apache-2.0

//! Progress of a sort: bytes moved, stop requests, and whether the channels are sampled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::Error;

/// Shared by the thread that sorts and the one that waits.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
    sampled: bool,
    /// The error of the host that stopped the sort, if there was one.
    failed: Mutex<Option<Error>>,
}

impl Progress {
    /// A sort that samples the counters of the memory channels, for a trace.
    pub fn with_samples() -> Progress {
        Progress {
            sampled: true,
            ..Progress::default()
        }
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Bytes moved so far, and bytes to move.
    pub fn bytes_moved(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// True once the sort is to stop. Readers of files check it.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Stops the sort soon. It ends with an error.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Stops the sort after an error of the host.
    pub(crate) fn fail(&self, error: Error) {
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert(error);
        }
        self.stop();
    }

    /// The error of the host, if there was one.
    pub(crate) fn failed(&self) -> Option<Error> {
        self.failed.lock().ok().and_then(|failed| failed.clone())
    }

    /// Why the sort stopped: the error of the host, else an interruption of `who`.
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
