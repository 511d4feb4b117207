// SPDX-License-Identifier: Apache-2.0

//! Objects that belong to one process.

use std::mem;
use std::ops::Deref;
use std::process;
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::PyResult;

use crate::error::raise;

/// An object with threads, file locks or mappings, which belongs to the process that created it. A
/// forked process (`multiprocessing` forks) has none of the threads and shares the rest. There the
/// object can't be used, and Python's destructor leaves it untouched.
pub struct ProcessOwned<T: Default> {
    value: T,
    process: u32,
}

impl<T: Default> ProcessOwned<T> {
    /// An object of this process.
    pub fn new(value: T) -> ProcessOwned<T> {
        let process = process::id();
        ProcessOwned { value, process }
    }

    /// True if another process has created it.
    pub fn is_foreign(&self) -> bool {
        self.process != process::id()
    }

    /// Returns an error in another process.
    pub fn check(&self) -> PyResult<()> {
        if self.is_foreign() {
            let owner = self.process;
            return Err(raise(format!(
                "this belongs to process {owner}, which has forked this one off: make one of this \
                    process's own"
            )));
        }
        Ok(())
    }
}

/// Locks what only one call at a time may use. A second call, from a thread or from a progress
/// callback, is an error.
pub fn alone<'a, T>(mutex: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(raise(format!(
            "the {what} is in use by another call, of a thread or around a progress callback: one \
                at a time"
        ))),
    }
}

/// Access without a check. Callers check first.
impl<T: Default> Deref for ProcessOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.is_foreign() {
            mem::forget(mem::take(&mut self.value));
        }
    }
}
