//! Which process something lives in.

use std::mem;
use std::ops::Deref;
use std::process;
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::PyResult;

use crate::error::raise;

/// What has threads, locks on files and mappings of them, and so belongs to the process that has made it. One that was forked
/// off (`multiprocessing` does so) has none of the threads and shares the rest: there it is not used, and what Python
/// throws away at that process's end stays as it is.
pub struct Owned<T: Default> {
    value: T,
    process: u32,
}

impl<T: Default> Owned<T> {
    /// This process's.
    pub fn new(value: T) -> Owned<T> {
        let process = process::id();
        Owned { value, process }
    }

    /// Whether another process has made it.
    pub fn is_foreign(&self) -> bool {
        self.process != process::id()
    }

    /// An error in another process.
    pub fn check(&self) -> PyResult<()> {
        if self.is_foreign() {
            let owner = self.process;
            return Err(raise(format!(
                "this belongs to process {owner}, which has forked this one off: make one of this process's own"
            )));
        }
        Ok(())
    }
}

/// What one call at a time may use; an error for another one meanwhile, of a thread or around a progress callback.
pub fn alone<'a, T>(mutex: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(raise(format!(
            "the {what} is in use by another call, of a thread or around a progress callback: one at a time"
        ))),
    }
}

/// For who has checked.
impl<T: Default> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.is_foreign() {
            mem::forget(mem::take(&mut self.value));
        }
    }
}
