// SPDX-License-Identifier: Apache-2.0

//! The memory of a host: existing pages, and the device's writes to addresses without memory, which
//! are compared as well.

use std::collections::{BTreeMap, BTreeSet};

use sim::Random;

use crate::PAGE;

/// Where memory begins.
pub const BASE: u64 = 1 << 32;
/// Pages of memory.
pub const PAGES: u64 = 4096;

/// Memory, and the writes outside of it.
pub struct Memory {
    bytes: Vec<u8>,
    holes: BTreeMap<u64, Vec<u8>>,
    dirty: BTreeSet<u64>,
}

impl Memory {
    /// A memory of zeros.
    pub fn new() -> Memory {
        Memory {
            bytes: vec![0; (PAGES * PAGE) as usize],
            holes: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// The place of a range, if it exists.
    fn place(addr: u64, len: u64) -> Option<std::ops::Range<usize>> {
        let from = addr.checked_sub(BASE)?;
        let to = from.checked_add(len)?;
        (to <= PAGES * PAGE).then_some(from as usize..to as usize)
    }

    /// The bytes of a range; `None` without memory.
    pub fn get(&self, addr: u64, len: u64) -> Option<&[u8]> {
        self.bytes.get(Memory::place(addr, len)?)
    }

    /// Stores bytes for the host; addresses without memory ignore them.
    pub fn store(&mut self, addr: u64, data: &[u8]) {
        if let Some(place) = Memory::place(addr, data.len() as u64) {
            self.bytes[place].copy_from_slice(data);
        }
    }

    /// Stores bytes for the device, within a page.
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

    /// A page, in memory or outside.
    pub fn page(&self, page: u64) -> &[u8] {
        let hole = || self.holes.get(&page).map_or(&[][..], |hole| hole);
        self.get(page, PAGE).unwrap_or_else(hole)
    }

    /// Pages that a device has written since the last call.
    pub fn take_dirty(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.dirty)
    }

    /// Drops the writes to addresses without memory.
    pub fn drop_holes(&mut self) {
        self.holes.clear();
    }
}

/// Allocator of pages. It is common to both hosts, as their commands name the same addresses.
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

    /// Allocates consecutive pages until the end of the step. `None` if there are none.
    pub fn alloc_run(&mut self, random: &mut Random, count: u64) -> Option<u64> {
        let fits = |first: &u64| (0..count).all(|n| self.is_free(first + n));
        let first = (0..64).map(|_| random.below(PAGES)).find(fits)?;
        self.taken.extend(first..first + count);
        Some(BASE + first * PAGE)
    }

    /// Allocates a page until the end of the step.
    pub fn alloc(&mut self, random: &mut Random) -> Option<u64> {
        self.alloc_run(random, 1)
    }

    /// Allocates a page until [`Arena::release`].
    pub fn alloc_kept(&mut self, random: &mut Random) -> Option<u64> {
        let page = self.alloc(random)?;
        self.keep(page);
        Some(page)
    }

    /// Keeps an allocated page past the end of the step.
    pub fn keep(&mut self, page: u64) {
        self.kept.insert((page.wrapping_sub(BASE)) / PAGE);
    }

    /// Releases a kept page.
    pub fn release(&mut self, page: u64) {
        self.kept.remove(&(page.wrapping_sub(BASE) / PAGE));
    }

    /// Frees all pages but the kept ones.
    pub fn end_step(&mut self) {
        self.taken.clear();
    }
}
