// SPDX-License-Identifier: Apache-2.0

//! Transactions in flight: their slots, and the order of transactions with one ID.

use super::super::delay::LatencyTarget;

/// No slot.
pub const NONE: u16 = u16::MAX;
/// IDs that are distinguished for each master.
const IDS: usize = 256;

/// A transaction.
#[derive(Clone, Copy, Default)]
pub struct Slot {
    /// The caller's tag.
    pub tag: u64,
    /// Its first address.
    pub addr: u64,
    /// The cycle in which `nvm_delay` has accepted its address.
    pub received: u64,
    /// Its target latency.
    pub target: LatencyTarget,
    /// Cycle of the answer to the last piece, or to the write.
    pub ready: u64,
    /// Beats in total, requested from the memory, with fixed cycles on the return path, and
    /// answered.
    pub beats: u16,
    pub requested: u16,
    pub placed: u16,
    pub sent: u16,
    /// Pieces that are ready and wait for older transactions of their ID.
    pub parked: u16,
    /// Its master.
    pub master: u8,
    /// It is the oldest of its ID.
    pub head: bool,
    /// Its list of one master and ID, and the next transaction in this list.
    pub list: u16,
    pub next: u16,
}

/// The slots of one direction.
pub struct Slots {
    pub all: Vec<Slot>,
    free: Vec<u16>,
    /// The youngest transaction of each master and ID.
    tails: Vec<u16>,
}

impl Slots {
    pub fn new(count: u32, masters: usize) -> Slots {
        Slots {
            all: vec![Slot::default(); count as usize],
            free: (0..count as u16).rev().collect(),
            tails: vec![NONE; masters * IDS],
        }
    }

    #[inline]
    pub fn any_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Transactions in flight.
    pub fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Allocates a slot for a transaction, as the youngest of its ID.
    #[inline]
    pub fn allocate(&mut self, mut slot: Slot, id: u16) -> u16 {
        let number = self.free.pop().expect("the caller has seen a free slot");
        slot.list = (usize::from(slot.master) * IDS + usize::from(id) % IDS) as u16;
        slot.next = NONE;
        let tail = std::mem::replace(&mut self.tails[usize::from(slot.list)], number);
        slot.head = tail == NONE;
        if tail != NONE {
            self.all[usize::from(tail)].next = number;
        }
        self.all[usize::from(number)] = slot;
        number
    }

    /// Retires a transaction. The next one of its ID, if there is one, becomes the oldest and is
    /// returned.
    #[inline]
    pub fn retire(&mut self, number: u16) -> Option<u16> {
        self.free.push(number);
        let slot = self.all[usize::from(number)];
        if slot.next == NONE {
            self.tails[usize::from(slot.list)] = NONE;
            return None;
        }
        self.all[usize::from(slot.next)].head = true;
        Some(slot.next)
    }
}
