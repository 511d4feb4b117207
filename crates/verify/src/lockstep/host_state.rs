// SPDX-License-Identifier: Apache-2.0

//! State of the hosts, common to both.

use std::collections::BTreeSet;
use std::ops::Range;

/// State of the hosts, common to both.
pub struct HostState {
    /// Asynchronous Event Requests that wait.
    pub parked: BTreeSet<u16>,
    /// Number of errors in the log since its start.
    pub errors: u64,
    /// Unordered errors, by their numbers.
    pub groups: Vec<Range<u64>>,
    /// Counts of the logs are not determined, as they depend on the results of some commands.
    pub loose_logs: bool,
    /// Counts of memory traffic are not determined, as they depend on the progress of some
    /// commands.
    pub loose_counts: bool,
    /// Vectors that are masked.
    pub masked: BTreeSet<u16>,
    /// CC.
    pub cc: u32,
    /// Interrupts may be coalesced.
    pub coalesced: bool,
    /// Engines whose last job may have ended with several results, by number: return values and
    /// outputs are not compared.
    pub loose_engines: BTreeSet<usize>,
    /// The identifier of the next command.
    pub cid: u16,
}
