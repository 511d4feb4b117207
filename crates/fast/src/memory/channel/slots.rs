//! Transactions in flight: their slots, and the order of those with one ID.

use super::super::delay::Target;

/// No slot.
pub const NONE: u16 = u16::MAX;
/// IDs of a master that are told apart.
const IDS: usize = 256;

/// A transaction.
#[derive(Clone, Copy, Default)]
pub struct Slot {
    /// What the caller knows it by.
    pub tag: u64,
    /// Where it begins.
    pub addr: u64,
    /// The cycle in which the emulator took its address.
    pub received: u64,
    /// Its target.
    pub target: Target,
    /// Cycle of the answer to the last piece, or to the write.
    pub ready: u64,
    /// Beats in all, requested of the memory, with a place on the way out, and answered.
    pub beats: u16,
    pub requested: u16,
    pub placed: u16,
    pub sent: u16,
    /// Pieces that are ready and wait for older transactions of their ID.
    pub parked: u16,
    /// Whose.
    pub master: u8,
    /// The oldest of its ID.
    pub head: bool,
    /// Its master and ID, and the one behind it in their order.
    pub list: u16,
    pub next: u16,
}

/// The slots of one direction.
pub struct Slots {
    pub all: Vec<Slot>,
    free: Vec<u16>,
    /// The youngest of each master and ID.
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

    /// In flight.
    pub fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Puts a transaction behind those of its ID.
    #[inline]
    pub fn allocate(&mut self, mut slot: Slot, id: u16) -> Option<u16> {
        let number = self.free.pop()?;
        slot.list = (usize::from(slot.master) * IDS + usize::from(id) % IDS) as u16;
        slot.next = NONE;
        let tail = std::mem::replace(&mut self.tails[usize::from(slot.list)], number);
        slot.head = tail == NONE;
        if tail != NONE {
            self.all[usize::from(tail)].next = number;
        }
        self.all[usize::from(number)] = slot;
        Some(number)
    }

    /// Ends a transaction; the next one of its ID, if there is one, becomes the oldest.
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
