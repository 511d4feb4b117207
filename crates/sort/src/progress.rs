// SPDX-License-Identifier: Apache-2.0

//! Progress of a sort: bytes moved, stop requests, and whether the channels are sampled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Shared by the thread that sorts and the one that waits.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
    sampled: bool,
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
