// SPDX-License-Identifier: Apache-2.0

//! The walk of PRP entries (NVMe 1.4, 4.3).

use spec::nvme::PAGE_BYTES;

use crate::list::{ListReader, NextQwords};
use crate::{List, Segment, WalkError, WalkStep};

/// Walks the PRPs of a transfer. PRP1 may have any dword offset. PRP2 is the second page, or points
/// to a list at any qword. All other entries have offset 0. The last entry of a list page points to
/// the next list if more than one page remains.
#[derive(Clone, Debug)]
pub struct Walker {
    prp1: u64,
    prp2: u64,
    bytes: u64,
    /// Bytes that were returned.
    done: u64,
    state: PrpState,
}

#[derive(Clone, Debug)]
enum PrpState {
    First,
    Second,
    /// In a list. True: its last entry is the address of the next list.
    List(ListReader, bool),
    Ended(WalkStep),
}

impl Walker {
    /// The walk of a transfer of `bytes`.
    pub fn new(prp1: u64, prp2: u64, bytes: u64) -> Walker {
        Walker {
            prp1,
            prp2,
            bytes,
            done: 0,
            state: PrpState::First,
        }
    }

    /// The next step. After `Done` and `Failed` it returns the same again. It never returns `Drop`.
    pub fn step(&mut self) -> WalkStep {
        match &mut self.state {
            PrpState::Ended(step) => *step,
            PrpState::First if self.prp1 % 4 != 0 => self.end(WalkStep::Failed(WalkError::Offset)),
            PrpState::First => {
                self.state = PrpState::Second;
                self.data(self.prp1)
            }
            _ if self.done == self.bytes => self.end(WalkStep::Done),
            PrpState::Second if self.bytes - self.done <= PAGE_BYTES => self.page(self.prp2),
            PrpState::Second if self.prp2 % 8 != 0 => self.end(WalkStep::Failed(WalkError::Offset)),
            PrpState::Second => self.list(self.prp2),
            PrpState::List(reading, chained) => {
                let entry = match reading.next_qwords() {
                    NextQwords::NotFed(list) => return WalkStep::NeedList(list),
                    NextQwords::Failed => return self.end(WalkStep::Failed(WalkError::Host)),
                    NextQwords::Qwords([entry]) => entry,
                };
                if *chained && reading.remaining() == 0 && entry % PAGE_BYTES == 0 {
                    self.list(entry)
                } else {
                    self.page(entry)
                }
            }
        }
    }

    /// The part of the current list that was not fed, for callers that read ahead.
    pub fn wanted(&self) -> Option<List> {
        match &self.state {
            PrpState::List(reading, _) => reading.wanted(),
            _ => None,
        }
    }

    /// The next entries of the list; entries after its end are ignored.
    pub fn feed(&mut self, entries: &[u64]) {
        if let PrpState::List(reading, _) = &mut self.state {
            reading.feed(entries);
        }
    }

    /// The next entry of the list can't be read. Entries that were fed before are returned first.
    pub fn fail(&mut self) {
        if let PrpState::List(reading, _) = &mut self.state {
            reading.fail();
        }
    }

    fn end(&mut self, step: WalkStep) -> WalkStep {
        self.state = PrpState::Ended(step);
        step
    }

    /// An entry that must have offset 0.
    fn page(&mut self, entry: u64) -> WalkStep {
        if entry % PAGE_BYTES != 0 {
            return self.end(WalkStep::Failed(WalkError::Offset));
        }
        self.data(entry)
    }

    fn data(&mut self, addr: u64) -> WalkStep {
        let segment = Segment::first_in_page(addr, self.bytes - self.done, self.done);
        self.done += segment.len;
        if segment.len == 0 {
            return self.end(WalkStep::Done);
        }
        WalkStep::Data(segment)
    }

    /// Starts a list: the part of its page that is needed.
    fn list(&mut self, addr: u64) -> WalkStep {
        let pages = (self.bytes - self.done).div_ceil(PAGE_BYTES);
        let room = (PAGE_BYTES - addr % PAGE_BYTES) / 8;
        let entries = pages.min(room);
        self.state = PrpState::List(ListReader::new(addr, entries), pages > room);
        WalkStep::NeedList(List { addr, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const PAGE: u64 = PAGE_BYTES;

    type Memory = BTreeMap<u64, u64>;

    /// Runs a walk that feeds a fixed number of entries at a time. Returns addresses and lengths,
    /// the lists, and the last step.
    fn walk(
        memory: &Memory,
        mut walker: Walker,
        portion: u64,
    ) -> (Vec<(u64, u64)>, Vec<List>, Option<WalkError>) {
        let (mut data, mut lists, mut left) = (Vec::new(), Vec::new(), 0);
        loop {
            match walker.step() {
                WalkStep::Data(s) => {
                    let returned: u64 = data.iter().map(|&(_, len): &(u64, u64)| len).sum();
                    assert_eq!(s.offset, returned);
                    data.push((s.addr, s.len));
                }
                WalkStep::NeedList(list) => {
                    assert_eq!(walker.wanted(), Some(list));
                    if left == 0 {
                        lists.push(list);
                        left = list.entries;
                    }
                    assert_eq!(list.entries, left);
                    for n in 0..portion.min(left) {
                        match memory.get(&(list.addr + 8 * n)) {
                            Some(&entry) => walker.feed(&[entry]),
                            None => walker.fail(),
                        }
                        left -= 1;
                    }
                }
                WalkStep::Done => return (data, lists, None),
                WalkStep::Failed(fault) => {
                    assert_eq!(walker.step(), WalkStep::Failed(fault));
                    return (data, lists, Some(fault));
                }
                WalkStep::Drop(_) => unreachable!("PRPs drop nothing"),
            }
        }
    }

    fn fault(memory: &Memory, prp1: u64, prp2: u64, bytes: u64) -> (usize, Option<WalkError>) {
        let (data, _, fault) = walk(memory, Walker::new(prp1, prp2, bytes), 1);
        (data.len(), fault)
    }

    #[test]
    fn prp_walk_of_one_and_two_pages() {
        let none = Memory::new();
        let of = |prp1, prp2, bytes| walk(&none, Walker::new(prp1, prp2, bytes), 1).0;
        assert_eq!(of(0x1004, 0x2000, 8), [(0x1004, 8)]);
        assert_eq!(of(0x1FFC, 0x2000, 8), [(0x1FFC, 4), (0x2000, 4)]);
        assert_eq!(
            of(u64::MAX - 3, 0x2000, 8),
            [(u64::MAX - 3, 4), (0x2000, 4)]
        );
        assert_eq!(of(0x1000, 0, 0), []);
        assert_eq!(fault(&none, 0x1002, 0, 8), (0, Some(WalkError::Offset)));
        assert_eq!(
            fault(&none, 0x1FFC, 0x2004, 8),
            (1, Some(WalkError::Offset))
        );
    }

    #[test]
    fn prp_lists_are_chained_by_their_last_entry_and_may_point_at_themselves() {
        // The list starts with the last entry but one of its page; the last one points back to the
        // page's start.
        let memory = Memory::from([
            (0x1FF0, 0xA000),
            (0x1FF8, 0x1000),
            (0x1000, 0xB000),
            (0x1008, 0xC000),
        ]);
        for portion in 1..4 {
            let walker = Walker::new(0x9000, 0x1FF0, 4 * PAGE);
            let (data, lists, fault) = walk(&memory, walker, portion);
            let addrs: Vec<u64> = data.iter().map(|d| d.0).collect();
            assert_eq!((addrs, fault), (vec![0x9000, 0xA000, 0xB000, 0xC000], None));
            let parts: Vec<(u64, u64)> = lists.iter().map(|l| (l.addr, l.entries)).collect();
            assert_eq!(parts, [(0x1FF0, 2), (0x1000, 2)]);
        }
    }

    #[test]
    fn prp_walk_stops_at_the_first_error() {
        let memory = Memory::from([(0x1000, 0xA000), (0x1008, 0xB008)]);
        let walks = [
            (0x1000, 2, WalkError::Offset),
            (0x5000, 1, WalkError::Host),
            (0x1004, 1, WalkError::Offset),
        ];
        for (list, segments, expected) in walks {
            let found = fault(&memory, 0x9000, list, 3 * PAGE);
            assert_eq!(found, (segments, Some(expected)));
        }
        // Entries that were fed before a failure are returned, and the address of a next list has
        // offset 0.
        let memory = Memory::from([(0x1FF0, 0xA000), (0x1FF8, 0xB008), (0x3000, 0xA000)]);
        assert_eq!(
            fault(&memory, 0x9000, 0x1FF0, 9 * PAGE),
            (2, Some(WalkError::Offset))
        );
        let (data, _, fault) = walk(&memory, Walker::new(0x9000, 0x3000, 3 * PAGE), 2);
        assert_eq!((data.len(), fault), (2, Some(WalkError::Host)));
    }

    #[test]
    fn prp_walk_ignores_entries_that_it_has_not_requested() {
        let mut walker = Walker::new(0x9000, 0x1000, 3 * PAGE);
        walker.feed(&[1, 2, 3]);
        walker.fail();
        assert!(matches!(walker.step(), WalkStep::Data(_)));
        assert!(matches!(walker.step(), WalkStep::NeedList(_)));
        walker.feed(&[0xA000, 0xB000, 7, 7]);
        walker.fail();
        assert!(matches!(walker.step(), WalkStep::Data(s) if s.addr == 0xA000));
        assert!(matches!(walker.step(), WalkStep::Data(s) if s.addr == 0xB000));
        assert_eq!(walker.step(), WalkStep::Done);
        let mut walker = Walker::new(u64::MAX - 3, u64::MAX - 7, u64::MAX);
        assert!(matches!(walker.step(), WalkStep::Data(_)));
        assert!(matches!(
            walker.step(),
            WalkStep::NeedList(List { entries: 1, .. })
        ));
    }
}
