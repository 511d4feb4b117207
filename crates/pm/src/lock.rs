//! A lock between programs of one host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use host::Cpu;
use sim::Time;

use crate::Result;

/// How long a CPU pauses between two looks at a lock.
pub(crate) const SPIN_INTERVAL: Time = Time::ns(50);

/// A lock that a program spins on, in simulated time. It is volatile: a loss of power gives it back.
#[derive(Clone, Debug, Default)]
pub struct Lock(Arc<AtomicBool>);

/// The right that a [`Lock`] gives, until this is dropped.
#[derive(Debug)]
pub struct LockGuard(Arc<AtomicBool>);

impl Lock {
    /// A lock that nobody has.
    pub fn new() -> Lock {
        Lock::default()
    }

    /// True while somebody has it.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Takes it, as soon as nobody else has it.
    pub fn acquire(&self, cpu: &Cpu) -> Result<LockGuard> {
        // A look costs what a hit of the cache does.
        cpu.compute(Time::ns(2))?;
        // All others that are behind act before.
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
