// SPDX-License-Identifier: Apache-2.0

//! Hazards between reads and writes of a channel's media (nvme_hazard): accesses to the same 4 KiB
//! are not outstanding at a time.

use std::collections::VecDeque;

/// Granularity of the comparison.
const HAZARD_BYTES: u64 = 4096;

/// Reads or writes of a channel.
#[derive(Default)]
struct DirectionState {
    /// Outstanding accesses, by granule. They end in order.
    open: VecDeque<u64>,
    /// The granule of the access that waits.
    waiting_for: Option<u64>,
    /// The other direction uses the granule. This direction gets it next.
    has_priority: bool,
}

impl DirectionState {
    /// Starts the next access if it may start. If the other direction waits for the same granule,
    /// it has priority from then on.
    fn try_begin(&mut self, granule: u64, other: &mut DirectionState) -> bool {
        let both = other.waiting_for == Some(granule);
        self.waiting_for = Some(granule);
        if both && other.has_priority {
            return false;
        }
        if other.open.contains(&granule) {
            self.has_priority = true;
            return false;
        }
        (self.waiting_for, self.has_priority) = (None, false);
        other.has_priority |= both;
        self.open.push_back(granule);
        true
    }
}

/// Outstanding reads and writes of a channel.
#[derive(Default)]
pub(crate) struct Hazard {
    reads: DirectionState,
    writes: DirectionState,
}

impl Hazard {
    /// Starts a read at an address, if it may start.
    pub(crate) fn begin_read(&mut self, at: u64) -> bool {
        self.reads.try_begin(at / HAZARD_BYTES, &mut self.writes)
    }

    /// Starts a write at an address, if it may start.
    pub(crate) fn begin_write(&mut self, at: u64) -> bool {
        self.writes.try_begin(at / HAZARD_BYTES, &mut self.reads)
    }

    /// Ends the oldest read.
    pub(crate) fn end_read(&mut self) {
        let read = self.reads.open.pop_front();
        debug_assert!(read.is_some(), "a read is outstanding");
    }

    /// Ends the oldest write.
    pub(crate) fn end_write(&mut self) {
        let write = self.writes.open.pop_front();
        debug_assert!(write.is_some(), "a write is outstanding");
    }

    /// Number of outstanding reads.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.open.len() as u32
    }

    /// Number of outstanding writes.
    pub(crate) fn writes(&self) -> u32 {
        self.writes.open.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazard_alternates_reads_and_writes_of_a_granule() {
        let mut hazard = Hazard::default();
        assert!(hazard.begin_read(0) && hazard.begin_read(8192));
        assert!(!hazard.begin_write(512));
        // The write has priority: a further read of the granule waits, other reads do not.
        assert!(!hazard.begin_read(0));
        assert!(hazard.begin_read(4096));
        hazard.end_read();
        assert!(hazard.begin_write(512));
        assert!(!hazard.begin_read(0));
        // A second write follows that read, but precedes a second read.
        assert!(!hazard.begin_write(0));
        hazard.end_write();
        assert!(hazard.begin_read(0));
        assert!(!hazard.begin_read(0));
        assert_eq!((hazard.reads(), hazard.writes()), (3, 0));
    }
}
