//! Reads and writes of the media of a channel that may not be outstanding together (nvme_hazard): those of the same 4 KiB.

use std::collections::VecDeque;

/// Bytes that are kept apart.
const HAZARD_BYTES: u64 = 4096;

/// Reads, or writes, of a channel.
#[derive(Default)]
struct DirectionState {
    /// What is outstanding, by granule. It ends in the order in which it began.
    open: VecDeque<u64>,
    /// The granule that the next one waits for.
    waiting_for: Option<u64>,
    /// It is in use by the other side, of which nobody else gets it before.
    has_priority: bool,
}

impl DirectionState {
    /// The next one begins, if it may. Both sides look in turn, a cycle each: where the other one waits for the same granule, it
    /// has_priority it from then on.
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

/// Both of them.
#[derive(Default)]
pub(crate) struct Hazard {
    reads: DirectionState,
    writes: DirectionState,
}

impl Hazard {
    /// A read of the granule of an address begins, if it may.
    pub(crate) fn begin_read(&mut self, at: u64) -> bool {
        self.reads.try_begin(at / HAZARD_BYTES, &mut self.writes)
    }

    /// And a write.
    pub(crate) fn begin_write(&mut self, at: u64) -> bool {
        self.writes.try_begin(at / HAZARD_BYTES, &mut self.reads)
    }

    /// The oldest read ends.
    pub(crate) fn end_read(&mut self) {
        self.reads.open.pop_front();
    }

    /// The oldest write ends.
    pub(crate) fn end_write(&mut self) {
        self.writes.open.pop_front();
    }

    /// Reads that are outstanding.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.open.len() as u32
    }

    /// Writes that are outstanding.
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
        // The write has_priority the granule: a further read waits for it, others don't.
        assert!(!hazard.begin_read(0));
        assert!(hazard.begin_read(4096));
        hazard.end_read();
        assert!(hazard.begin_write(512));
        assert!(!hazard.begin_read(0));
        // A second write comes behind that read, but before a second one.
        assert!(!hazard.begin_write(0));
        hazard.end_write();
        assert!(hazard.begin_read(0));
        assert!(!hazard.begin_read(0));
        assert_eq!((hazard.reads(), hazard.writes()), (3, 0));
    }
}
