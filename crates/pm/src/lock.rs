// SPDX-License-Identifier: Apache-2.0

//! A lock between programs of one host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use host::Cpu;
use sim::Time;

use crate::Result;

/// Pause of a CPU between two attempts to acquire a lock.
pub(crate) const SPIN_INTERVAL: Time = Time::ns(50);

/// A spinlock in simulated time. It is volatile: a power loss releases it.
#[derive(Clone, Debug, Default)]
pub struct Lock(Arc<AtomicBool>);

/// A held [`Lock`], released on drop.
#[derive(Debug)]
pub struct LockGuard(Arc<AtomicBool>);

impl Lock {
    /// A lock that is not held.
    pub fn new() -> Lock {
        Lock::default()
    }

    /// True while it is held.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Acquires it, as soon as it is free.
    pub fn acquire(&self, cpu: &Cpu) -> Result<LockGuard> {
        // An attempt costs a cache hit.
        cpu.compute(Time::ns(2))?;
        // CPUs with an earlier time act first.
        cpu.sleep_until(cpu.now())?;
        while self.0.swap(true, Ordering::AcqRel) {
            let until = cpu.now() + SPIN_INTERVAL;
            cpu.sleep_until(until)?;
        }
        Ok(LockGuard(self.0.clone()))
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
