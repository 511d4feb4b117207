//! What becomes due in a channel, in the order of cycles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub cycle: u64,
    /// A write, else a read.
    pub write: bool,
    /// Of which slot.
    pub slot: u16,
    /// It has its place on the way out; else it is still to get one.
    pub placed: bool,
}

const PLACED: u64 = 1;
const WRITE: u64 = 2;
const SLOT: u32 = 2;
const CYCLE: u32 = SLOT + 10;

/// A queue by cycle.
#[derive(Default)]
pub struct DueQueue {
    heap: BinaryHeap<Reverse<u64>>,
}

impl DueQueue {
    #[inline]
    pub fn push(&mut self, due: Due) {
        let flags = if due.write { WRITE } else { 0 } | if due.placed { PLACED } else { 0 };
        let key = due.cycle << CYCLE | u64::from(due.slot) << SLOT | flags;
        self.heap.push(Reverse(key));
    }

    /// Forgets the reads that have their place.
    pub fn remove_placed_reads(&mut self) {
        self.heap
            .retain(|&Reverse(key)| key & (PLACED | WRITE) != PLACED);
    }

    /// The cycle of the first.
    #[inline]
    pub fn next(&self) -> u64 {
        self.heap
            .peek()
            .map_or(u64::MAX, |&Reverse(key)| key >> CYCLE)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Due> {
        let Reverse(key) = self.heap.pop()?;
        Some(Due {
            cycle: key >> CYCLE,
            write: key & WRITE != 0,
            slot: (key >> SLOT) as u16 & 0x3FF,
            placed: key & PLACED != 0,
        })
    }
}
