// SPDX-License-Identifier: Apache-2.0

//! Shadow doorbells as a host keeps them (NVM Express 1.4, 5.7 and 7.13).

use std::collections::BTreeMap;

use crate::oracle::memory::Memory;
use crate::PAGE;

/// Two pages of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Page of the shadow doorbells.
    pub doorbells: u64,
    /// Page of the EventIdx values.
    pub events: u64,
}

/// Offset of a doorbell in its page.
fn offset_of(qid: u16, head: bool) -> u64 {
    4 * (2 * u64::from(qid) + u64::from(head))
}

/// The queue that a dword of a page belongs to, and whether it is a completion queue.
pub fn queue_at(addr: u64) -> (u16, bool) {
    let index = addr % PAGE / 4;
    ((index / 2) as u16, index % 2 == 1)
}

/// The host's state of its shadow doorbells.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    /// The host wants to use them.
    pub wanted: bool,
    /// Pages of a Doorbell Buffer Config that has not completed.
    pub offered: Option<Pages>,
    /// Pages that the controller may use, the newest ones last.
    pub opened: Vec<Pages>,
    /// The newest pages are in use: their command has completed.
    pub on: bool,
    /// Last value of each doorbell of an I/O queue.
    values: BTreeMap<(u16, bool), u16>,
}

impl Shadow {
    fn pages(&self) -> impl Iterator<Item = &Pages> {
        self.opened.iter().chain(&self.offered)
    }

    /// Offers pages to the controller, filled with the present doorbell values.
    pub fn offer_pages(&mut self, memory: &mut Memory, pages: Pages) {
        self.offered = Some(pages);
        for (&(qid, head), &value) in &self.values {
            let at = pages.doorbells / PAGE * PAGE + offset_of(qid, head);
            memory.store(at, &u32::from(value).to_le_bytes());
        }
    }

    /// Sets a doorbell. True if its register has to be written, too.
    pub fn ring(&mut self, memory: &mut Memory, qid: u16, head: bool, value: u16) -> bool {
        let old = self.values.insert((qid, head), value).unwrap_or(0);
        let mut event = None;
        for pages in self.pages() {
            let at = pages.doorbells / PAGE * PAGE + offset_of(qid, head);
            memory.store(at, &u32::from(value).to_le_bytes());
            let bytes = memory.get(pages.events / PAGE * PAGE + offset_of(qid, head), 2);
            event = bytes.map(|b| u16::from(b[0]) | u16::from(b[1]) << 8);
        }
        match (self.on && self.offered.is_none(), event) {
            (true, Some(event)) => {
                value.wrapping_sub(event).wrapping_sub(1) < value.wrapping_sub(old)
            }
            _ => true,
        }
    }

    /// A queue is deleted: the next queue with this identifier begins at 0.
    pub fn close(&mut self, memory: &mut Memory, qid: u16, head: bool) {
        self.values.remove(&(qid, head));
        for pages in self.pages() {
            let at = pages.doorbells / PAGE * PAGE + offset_of(qid, head);
            memory.store(at, &[0; 4]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn shadow_doorbell_register_is_written_when_the_controller_waits_for_it() {
        let mut memory = Memory::new(2);
        let mut random = Random::new(1);
        let mut take = || memory.alloc(&mut random).unwrap();
        let (doorbells, events) = (take(), take());
        let mut shadow = Shadow::default();
        assert!(
            shadow.ring(&mut memory, 1, true, 2),
            "there is no shadow yet"
        );
        shadow.offer_pages(&mut memory, Pages { doorbells, events });
        assert_eq!(memory.get(doorbells + 12, 4), Some(&[2, 0, 0, 0][..]));
        assert!(shadow.ring(&mut memory, 1, true, 3), "nor is it in use");
        shadow.opened.extend(shadow.offered.take());
        shadow.on = true;
        memory.store(events + 12, &[3, 0]);
        assert!(shadow.ring(&mut memory, 1, true, 5));
        assert!(!shadow.ring(&mut memory, 1, true, 6), "it is awake");
        assert_eq!(memory.get(doorbells + 12, 4), Some(&[6, 0, 0, 0][..]));
        memory.store(events + 12, &[6, 0]);
        assert!(shadow.ring(&mut memory, 1, true, 1), "over the end");
        assert_eq!(queue_at(doorbells + 12), (1, true));
        shadow.close(&mut memory, 1, true);
        assert_eq!(memory.get(doorbells + 12, 4), Some(&[0; 4][..]));
    }
}
