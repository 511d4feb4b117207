//! Reads and writes of the media of a channel that may not be outstanding together (nvme_hazard): those of the same 4 KiB.

use std::collections::VecDeque;

/// Bytes that are kept apart.
const GRANULE: u64 = 4096;

/// What is outstanding on a channel, by granule. Each side ends in the order in which it began.
pub(crate) struct Hazard {
    read: Side,
    write: Side,
}

/// Reads, or writes.
struct Side {
    open: VecDeque<u64>,
    /// So many at most.
    most: usize,
    /// The granule of one that has found it in use: nobody else of the other side gets it before.
    keeps: Option<u64>,
}

impl Side {
    fn new(most: u32) -> Side {
        Side {
            open: VecDeque::new(),
            most: most as usize,
            keeps: None,
        }
    }

    /// Looks at a granule, and keeps it if the other side uses it; false: it may not be used now.
    fn looks(&mut self, granule: u64, other: &Side) -> bool {
        if other.keeps == Some(granule) {
            return false;
        }
        if other.open.contains(&granule) {
            self.keeps = Some(granule);
            return false;
        }
        self.open.len() < self.most
    }

    fn begins(&mut self, granule: u64, other: &Side) -> bool {
        let may = self.looks(granule, other);
        if may {
            self.keeps = None;
            self.open.push_back(granule);
        }
        may
    }
}

impl Hazard {
    pub(crate) fn new(reads: u32, writes: u32) -> Hazard {
        Hazard {
            read: Side::new(reads),
            write: Side::new(writes),
        }
    }

    /// A read of the granule of an address begins, if it may. Whatever write waits is to look before the next read does.
    pub(crate) fn read_begins(&mut self, at: u64) -> bool {
        self.read.begins(at / GRANULE, &self.write)
    }

    /// And a write.
    pub(crate) fn write_begins(&mut self, at: u64) -> bool {
        self.write.begins(at / GRANULE, &self.read)
    }

    /// A read that waits finds its granule in use, or not.
    pub(crate) fn read_looks(&mut self, at: u64) {
        self.read.looks(at / GRANULE, &self.write);
    }

    /// And a write.
    pub(crate) fn write_looks(&mut self, at: u64) {
        self.write.looks(at / GRANULE, &self.read);
    }

    /// The oldest read ends.
    pub(crate) fn read_ends(&mut self) {
        self.read.open.pop_front();
    }

    /// The oldest write ends.
    pub(crate) fn write_ends(&mut self) {
        self.write.open.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_take_turns_at_a_granule() {
        let mut hazard = Hazard::new(3, 3);
        assert!(hazard.read_begins(0) && hazard.read_begins(8192));
        assert!(!hazard.write_begins(512));
        // The write keeps the granule: a further read waits for it, others don't.
        assert!(!hazard.read_begins(0));
        assert!(hazard.read_begins(4096));
        // There is room for no more.
        assert!(!hazard.read_begins(12288));
        hazard.read_ends();
        assert!(hazard.write_begins(512));
        // A read that looks is before the next write.
        hazard.read_looks(0);
        assert!(!hazard.write_begins(1024));
        hazard.write_ends();
        assert!(!hazard.write_begins(1024));
        assert!(hazard.read_begins(0));
        hazard.write_looks(0);
        assert!(!hazard.read_begins(0));
    }
}
