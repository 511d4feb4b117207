//! Reads and writes of the media of a channel that may not be outstanding together (nvme_hazard): those of the same 4 KiB.

use std::collections::VecDeque;

/// Bytes that are kept apart.
const GRANULE: u64 = 4096;

/// What is outstanding on a channel, by granule. Each side ends in the order in which it began.
#[derive(Default)]
pub(crate) struct Hazard {
    reads: VecDeque<u64>,
    writes: VecDeque<u64>,
    /// A read, or a write, that has found its granule in use: nobody else of the other side gets it before.
    read_keeps: Option<u64>,
    write_keeps: Option<u64>,
}

impl Hazard {
    /// A read of the granule of an address begins, if it may.
    pub(crate) fn read_begins(&mut self, at: u64) -> bool {
        let granule = at / GRANULE;
        begins(
            granule,
            &mut self.reads,
            &self.writes,
            &mut self.read_keeps,
            self.write_keeps,
        )
    }

    /// And a write.
    pub(crate) fn write_begins(&mut self, at: u64) -> bool {
        let granule = at / GRANULE;
        begins(
            granule,
            &mut self.writes,
            &self.reads,
            &mut self.write_keeps,
            self.read_keeps,
        )
    }

    /// The oldest read ends.
    pub(crate) fn read_ends(&mut self) {
        self.reads.pop_front();
    }

    /// The oldest write ends.
    pub(crate) fn write_ends(&mut self) {
        self.writes.pop_front();
    }

    /// Reads that are outstanding.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.len() as u32
    }

    /// Writes that are outstanding.
    pub(crate) fn writes(&self) -> u32 {
        self.writes.len() as u32
    }
}

fn begins(
    granule: u64,
    mine: &mut VecDeque<u64>,
    others: &VecDeque<u64>,
    keeps: &mut Option<u64>,
    kept: Option<u64>,
) -> bool {
    if kept == Some(granule) {
        return false;
    }
    if others.contains(&granule) {
        *keeps = Some(granule);
        return false;
    }
    *keeps = None;
    mine.push_back(granule);
    true
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
        hazard.write_ends();
        assert!(hazard.read_begins(0));
        assert_eq!((hazard.reads(), hazard.writes()), (3, 0));
    }
}
