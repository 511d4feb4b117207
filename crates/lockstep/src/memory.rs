//! The memory of a host: some real pages, and what a device has written where no memory is, which
//! is compared as well.

use std::collections::{BTreeMap, BTreeSet};

use sim::Random;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Where memory begins.
pub const BASE: u64 = 1 << 32;
/// Pages of memory.
pub const PAGES: u64 = 4096;

/// Memory, and what was written beside it.
pub struct Memory {
    bytes: Vec<u8>,
    holes: BTreeMap<u64, Vec<u8>>,
    dirty: BTreeSet<u64>,
}

impl Memory {
    /// Zeros.
    pub fn new() -> Memory {
        Memory {
            bytes: vec![0; (PAGES * PAGE) as usize],
            holes: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// The place of some bytes, if memory is there.
    fn place(addr: u64, len: u64) -> Option<std::ops::Range<usize>> {
        let from = addr.checked_sub(BASE)?;
        let to = from.checked_add(len)?;
        (to <= PAGES * PAGE).then_some(from as usize..to as usize)
    }

    /// Bytes; `None` where no memory is.
    pub fn get(&self, addr: u64, len: u64) -> Option<&[u8]> {
        self.bytes.get(Memory::place(addr, len)?)
    }

    /// The host stores something. Where no memory is, nothing happens.
    pub fn store(&mut self, addr: u64, data: &[u8]) {
        if let Some(place) = Memory::place(addr, data.len() as u64) {
            self.bytes[place].copy_from_slice(data);
        }
    }

    /// A device writes something within a page.
    pub fn device_write(&mut self, addr: u64, data: &[u8]) {
        let page = addr - addr % PAGE;
        self.dirty.insert(page);
        if let Some(place) = Memory::place(addr, data.len() as u64) {
            self.bytes[place].copy_from_slice(data);
            return;
        }
        let hole = self
            .holes
            .entry(page)
            .or_insert_with(|| vec![0; PAGE as usize]);
        let at = (addr - page) as usize;
        for (to, from) in hole.iter_mut().skip(at).zip(data) {
            *to = *from;
        }
    }

    /// A page as it is, where memory is or not.
    pub fn page(&self, page: u64) -> &[u8] {
        let hole = || self.holes.get(&page).map_or(&[][..], |hole| hole);
        self.get(page, PAGE).unwrap_or_else(hole)
    }

    /// Pages that a device has written since the last call.
    pub fn take_dirty(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.dirty)
    }

    /// Forgets what was written where no memory is.
    pub fn drop_holes(&mut self) {
        self.holes.clear();
    }
}

/// Which pages are in use. The same for both hosts: their commands name the same addresses.
pub struct Arena {
    kept: BTreeSet<u64>,
    taken: BTreeSet<u64>,
}

impl Arena {
    /// All pages are free.
    pub fn new() -> Arena {
        Arena {
            kept: BTreeSet::new(),
            taken: BTreeSet::new(),
        }
    }

    fn is_free(&self, page: u64) -> bool {
        page < PAGES && !self.kept.contains(&page) && !self.taken.contains(&page)
    }

    /// Pages in a row, until the end of the step. `None` if there are none.
    pub fn alloc_run(&mut self, random: &mut Random, count: u64) -> Option<u64> {
        let fits = |first: &u64| (0..count).all(|n| self.is_free(first + n));
        let first = (0..64).map(|_| random.below(PAGES)).find(fits)?;
        self.taken.extend(first..first + count);
        Some(BASE + first * PAGE)
    }

    /// A page, until the end of the step.
    pub fn alloc(&mut self, random: &mut Random) -> Option<u64> {
        self.alloc_run(random, 1)
    }

    /// A page until [`Arena::give`].
    pub fn alloc_kept(&mut self, random: &mut Random) -> Option<u64> {
        let page = self.alloc(random)?;
        self.keep(page);
        Some(page)
    }

    /// Keeps a page that was taken.
    pub fn keep(&mut self, page: u64) {
        self.kept.insert((page.wrapping_sub(BASE)) / PAGE);
    }

    /// A page is no more kept.
    pub fn release(&mut self, page: u64) {
        self.kept.remove(&(page.wrapping_sub(BASE) / PAGE));
    }

    /// All but what is kept is free again.
    pub fn end_step(&mut self) {
        self.taken.clear();
    }
}
