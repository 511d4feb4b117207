// SPDX-License-Identifier: Apache-2.0

//! Turns panics of libraries into errors: readers of damaged files may panic.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

use crate::{Error, Result};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read`. A panic in it becomes `error`, and prints nothing.
pub fn guarded<T>(error: &str, read: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                other(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    QUIET.set(before);
    outcome.unwrap_or_else(|_| Err(Error::new(error)))
}
