// SPDX-License-Identifier: Apache-2.0

//! A load of a device, and what happens when it has arrived.

use crate::mapping::CacheLine;

/// An access that waits for a load, in program order.
#[derive(Clone, Debug)]
pub(crate) enum DeferredAccess {
    /// A load reads bytes.
    Read {
        ticket: u64,
        start: usize,
        len: usize,
    },
    /// A store changes bytes.
    Store { start: usize, data: Vec<u8> },
    /// A write-combining buffer was sent to the device, with bytes that the load may not have seen.
    Patch { start: usize, data: Vec<u8> },
}

/// Actions on a line after it has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct FillActions {
    /// CPUs that have requested a write-back.
    pub cpus: Vec<usize>,
    /// The line does not stay in the cache.
    pub leaves: bool,
}

/// A load of a device.
#[derive(Clone, Debug)]
pub(crate) struct LoadInFlight {
    /// The tag in the system.
    pub tag: u32,
    /// The owner of the fill buffer.
    pub cpu: usize,
    /// The line to insert into the cache, if any.
    pub fill: Option<CacheLine>,
    pub steps: Vec<DeferredAccess>,
    pub after: FillActions,
}
