//! What a pair of PRP entries means (NVMe 1.4, 4.3).

use spec::nvme::PAGE_BYTES;

use crate::list::{Got, Reading};
use crate::{Fault, List, Segment, Step};

/// Walks the PRPs of a transfer. PRP1 may have any dword offset; PRP2 is the second page, or points to a list at any qword; all
/// other entries have offset 0; the last entry of a list page points to the next list if more than one page is still to come.
#[derive(Clone, Debug)]
pub struct Walker {
    prp1: u64,
    prp2: u64,
    bytes: u64,
    /// Bytes that were told.
    done: u64,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    First,
    Second,
    /// In a list; the last of its entries leads to the next one.
    List(Reading, bool),
    Over(Step),
}

impl Walker {
    /// The walk of a transfer of so many bytes.
    pub fn new(prp1: u64, prp2: u64, bytes: u64) -> Walker {
        Walker {
            prp1,
            prp2,
            bytes,
            done: 0,
            state: State::First,
        }
    }

    /// Goes on. After `Done` and `Fault` it says the same again; it never drops.
    pub fn step(&mut self) -> Step {
        match &mut self.state {
            State::Over(step) => *step,
            State::First if self.prp1 % 4 != 0 => self.over(Step::Fault(Fault::Offset)),
            State::First => {
                self.state = State::Second;
                self.data(self.prp1)
            }
            _ if self.done == self.bytes => self.over(Step::Done),
            State::Second if self.bytes - self.done <= PAGE_BYTES => self.page(self.prp2),
            State::Second if self.prp2 % 8 != 0 => self.over(Step::Fault(Fault::Offset)),
            State::Second => self.list(self.prp2),
            State::List(reading, chained) => {
                let entry = match reading.take() {
                    Got::Later(list) => return Step::NeedList(list),
                    Got::Never => return self.over(Step::Fault(Fault::Host)),
                    Got::Qwords([entry]) => entry,
                };
                if *chained && reading.rest() == 0 && entry % PAGE_BYTES == 0 {
                    self.list(entry)
                } else {
                    self.page(entry)
                }
            }
        }
    }

    /// What of the list that it is in was not fed yet, if there is any: for whoever reads ahead.
    pub fn wanted(&self) -> Option<List> {
        match &self.state {
            State::List(reading, _) => reading.wanted(),
            _ => None,
        }
    }

    /// The next entries of the list; those behind its end are ignored.
    pub fn feed(&mut self, entries: &[u64]) {
        if let State::List(reading, _) = &mut self.state {
            reading.feed(entries);
        }
    }

    /// The next entry of the list can't be read. Those fed before are told first.
    pub fn fail(&mut self) {
        if let State::List(reading, _) = &mut self.state {
            reading.fail();
        }
    }

    fn over(&mut self, step: Step) -> Step {
        self.state = State::Over(step);
        step
    }

    /// An entry that must have offset 0.
    fn page(&mut self, entry: u64) -> Step {
        if entry % PAGE_BYTES != 0 {
            return self.over(Step::Fault(Fault::Offset));
        }
        self.data(entry)
    }

    fn data(&mut self, addr: u64) -> Step {
        let segment = Segment::cut(addr, self.bytes - self.done, self.done);
        self.done += segment.len;
        if segment.len == 0 {
            return self.over(Step::Done);
        }
        Step::Data(segment)
    }

    /// A list that begins here: as much of its page as is needed.
    fn list(&mut self, addr: u64) -> Step {
        let pages = (self.bytes - self.done).div_ceil(PAGE_BYTES);
        let room = (PAGE_BYTES - addr % PAGE_BYTES) / 8;
        let entries = pages.min(room);
        self.state = State::List(Reading::new(addr, entries), pages > room);
        Step::NeedList(List { addr, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const PAGE: u64 = PAGE_BYTES;

    type Memory = BTreeMap<u64, u64>;

    /// Addresses and lengths of a walk, its lists, and how it ends; so many entries are fed at a time.
    fn walk(
        memory: &Memory,
        mut walker: Walker,
        portion: u64,
    ) -> (Vec<(u64, u64)>, Vec<List>, Option<Fault>) {
        let (mut data, mut lists, mut left) = (Vec::new(), Vec::new(), 0);
        loop {
            match walker.step() {
                Step::Data(s) => {
                    let told: u64 = data.iter().map(|&(_, len): &(u64, u64)| len).sum();
                    assert_eq!(s.offset, told);
                    data.push((s.addr, s.len));
                }
                Step::NeedList(list) => {
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
                Step::Done => return (data, lists, None),
                Step::Fault(fault) => {
                    assert_eq!(walker.step(), Step::Fault(fault));
                    return (data, lists, Some(fault));
                }
                Step::Drop(_) => unreachable!("PRPs drop nothing"),
            }
        }
    }

    fn fault(memory: &Memory, prp1: u64, prp2: u64, bytes: u64) -> (usize, Option<Fault>) {
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
        assert_eq!(fault(&none, 0x1002, 0, 8), (0, Some(Fault::Offset)));
        assert_eq!(fault(&none, 0x1FFC, 0x2004, 8), (1, Some(Fault::Offset)));
    }

    #[test]
    fn prp_lists_are_chained_by_their_last_entry_and_may_point_at_themselves() {
        // The list begins with the last but one entry of its page; the last one leads back to the page's start.
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
            (0x1000, 2, Fault::Offset),
            (0x5000, 1, Fault::Host),
            (0x1004, 1, Fault::Offset),
        ];
        for (list, told, expected) in walks {
            let found = fault(&memory, 0x9000, list, 3 * PAGE);
            assert_eq!(found, (told, Some(expected)));
        }
        // What was fed before a failure is told, and a chain pointer has offset 0.
        let memory = Memory::from([(0x1FF0, 0xA000), (0x1FF8, 0xB008), (0x3000, 0xA000)]);
        assert_eq!(
            fault(&memory, 0x9000, 0x1FF0, 9 * PAGE),
            (2, Some(Fault::Offset))
        );
        let (data, _, fault) = walk(&memory, Walker::new(0x9000, 0x3000, 3 * PAGE), 2);
        assert_eq!((data.len(), fault), (2, Some(Fault::Host)));
    }

    #[test]
    fn prp_walk_ignores_entries_that_it_has_not_requested() {
        let mut walker = Walker::new(0x9000, 0x1000, 3 * PAGE);
        walker.feed(&[1, 2, 3]);
        walker.fail();
        assert!(matches!(walker.step(), Step::Data(_)));
        assert!(matches!(walker.step(), Step::NeedList(_)));
        walker.feed(&[0xA000, 0xB000, 7, 7]);
        walker.fail();
        assert!(matches!(walker.step(), Step::Data(s) if s.addr == 0xA000));
        assert!(matches!(walker.step(), Step::Data(s) if s.addr == 0xB000));
        assert_eq!(walker.step(), Step::Done);
        let mut walker = Walker::new(u64::MAX - 3, u64::MAX - 7, u64::MAX);
        assert!(matches!(walker.step(), Step::Data(_)));
        assert!(matches!(
            walker.step(),
            Step::NeedList(List { entries: 1, .. })
        ));
    }
}
