//! Reads and writes of the media of a channel that may not be outstanding together (nvme_hazard): those of the same 4 KiB.

use std::collections::VecDeque;

/// Bytes that are kept apart.
const GRANULE: u64 = 4096;

/// Reads, or writes, of a channel.
#[derive(Default)]
struct Side {
    /// What is outstanding, by granule. It ends in the order in which it began.
    open: VecDeque<u64>,
    /// The granule that the next one waits for.
    wants: Option<u64>,
    /// It is in use by the other side, of which nobody else gets it before.
    keeps: bool,
}

impl Side {
    /// The next one begins, if it may. Both sides look in turn, a cycle each: where the other one waits for the same granule, it
    /// keeps it from then on.
    fn begins(&mut self, granule: u64, other: &mut Side) -> bool {
        let both = other.wants == Some(granule);
        self.wants = Some(granule);
        if both && other.keeps {
            return false;
        }
        if other.open.contains(&granule) {
            self.keeps = true;
            return false;
        }
        (self.wants, self.keeps) = (None, false);
        other.keeps |= both;
        self.open.push_back(granule);
        true
    }
}

/// Both of them.
#[derive(Default)]
pub(crate) struct Hazard {
    reads: Side,
    writes: Side,
}

impl Hazard {
    /// A read of the granule of an address begins, if it may.
    pub(crate) fn read_begins(&mut self, at: u64) -> bool {
        self.reads.begins(at / GRANULE, &mut self.writes)
    }

    /// And a write.
    pub(crate) fn write_begins(&mut self, at: u64) -> bool {
        self.writes.begins(at / GRANULE, &mut self.reads)
    }

    /// The oldest read ends.
    pub(crate) fn read_ends(&mut self) {
        self.reads.open.pop_front();
    }

    /// The oldest write ends.
    pub(crate) fn write_ends(&mut self) {
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
    fn sides_take_turns_at_a_granule() {
        let mut hazard = Hazard::default();
        assert!(hazard.read_begins(0) && hazard.read_begins(8192));
        assert!(!hazard.write_begins(512));
        // The write keeps the granule: a further read waits for it, others don't.
        assert!(!hazard.read_begins(0));
        assert!(hazard.read_begins(4096));
        hazard.read_ends();
        assert!(hazard.write_begins(512));
        assert!(!hazard.read_begins(0));
        // A second write comes behind that read, but before a second one.
        assert!(!hazard.write_begins(0));
        hazard.write_ends();
        assert!(hazard.read_begins(0));
        assert!(!hazard.read_begins(0));
        assert_eq!((hazard.reads(), hazard.writes()), (3, 0));
    }
}
