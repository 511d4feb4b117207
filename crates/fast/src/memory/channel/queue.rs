// SPDX-License-Identifier: Apache-2.0

//! Answers of a channel in the order of their due cycles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An answer that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueAnswer {
    /// Its cycle.
    pub cycle: u64,
    /// A write response, otherwise read data.
    pub write: bool,
    /// The slot of its transaction.
    pub slot: u16,
    /// Its cycle on the return path is fixed.
    pub placed: bool,
}

const PLACED: u64 = 1;
const WRITE: u64 = 2;
const SLOT: u32 = 2;
const CYCLE: u32 = SLOT + 10;

/// A queue in the order of cycles.
#[derive(Default)]
pub struct DueQueue {
    heap: BinaryHeap<Reverse<u64>>,
}

impl DueQueue {
    #[inline]
    pub fn push(&mut self, due: DueAnswer) {
        let flags = if due.write { WRITE } else { 0 } | if due.placed { PLACED } else { 0 };
        let key = due.cycle << CYCLE | u64::from(due.slot) << SLOT | flags;
        self.heap.push(Reverse(key));
    }

    /// Removes the reads whose cycles are fixed.
    pub fn remove_placed_reads(&mut self) {
        self.heap
            .retain(|&Reverse(key)| key & (PLACED | WRITE) != PLACED);
    }

    /// The cycle of the first answer.
    #[inline]
    pub fn next(&self) -> u64 {
        self.heap
            .peek()
            .map_or(u64::MAX, |&Reverse(key)| key >> CYCLE)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<DueAnswer> {
        let Reverse(key) = self.heap.pop()?;
        Some(DueAnswer {
            cycle: key >> CYCLE,
            write: key & WRITE != 0,
            slot: (key >> SLOT) as u16 & 0x3FF,
            placed: key & PLACED != 0,
        })
    }
}
