// SPDX-License-Identifier: Apache-2.0

//! Host memory: pages with one owner at a time, at scattered addresses.

use sim::Random;

use crate::random::chance;
use crate::PAGE;

/// Percentage of data and list pages that lie in the window of another device, if there is one.
const IN_WINDOW: u64 = 15;
/// First address. Above 4 GiB, so that 64-bit addresses are exercised.
pub const BASE: u64 = 1 << 32;
/// Hosts of several devices own this many consecutive pages, in turn.
const CLUSTER: u64 = 64;

/// Consecutive pages.
struct Region {
    base: u64,
    bytes: Vec<u8>,
    free: Vec<u64>,
}

impl Region {
    fn new(base: u64, pages: u64) -> Region {
        Region {
            base,
            bytes: vec![0; (pages * PAGE) as usize],
            free: (0..pages).map(|p| base + p * PAGE).collect(),
        }
    }

    fn alloc(&mut self, random: &mut Random) -> Option<u64> {
        if self.free.is_empty() {
            return None;
        }
        let at = random.below(self.free.len() as u64) as usize;
        Some(self.free.swap_remove(at))
    }

    fn alloc_run(&mut self, random: &mut Random, count: u64) -> Option<u64> {
        let all = self.bytes.len() as u64 / PAGE;
        let mut is_free = vec![false; all as usize];
        for page in &self.free {
            is_free[((page - self.base) / PAGE) as usize] = true;
        }
        let from = random.below(all.max(1));
        let mut found = 0;
        // From a random position on, wrapping around.
        let at = (from..all).chain(0..all).find(|&page| {
            found = match is_free[page as usize] {
                _ if page == 0 => u64::from(is_free[0]),
                true => found + 1,
                false => 0,
            };
            found >= count
        })?;
        let first = self.base + (at + 1 - count) * PAGE;
        let run = first..first + count * PAGE;
        self.free.retain(|page| !run.contains(page));
        Some(first)
    }

    fn locate(&self, addr: u64, len: u64) -> Option<usize> {
        let at = addr.checked_sub(self.base)?;
        let end = at.checked_add(len)?;
        (end <= self.bytes.len() as u64).then_some(at as usize)
    }
}

/// Pending transfers, if the bytes are a model of memory elsewhere.
#[derive(Default)]
struct BackingMemory {
    /// Stores of the host that have not been copied to that memory yet.
    stores: Vec<(u64, Vec<u8>)>,
    /// Places that the device has written since the last query.
    landed: Vec<(u64, u64)>,
}

/// One range of pages, and possibly a window of another device. Reads of any other address fail,
/// and writes to it have no effect.
pub struct Memory {
    host: Region,
    window: Option<Region>,
    real: Option<BackingMemory>,
}

impl Memory {
    /// A memory of `pages` pages, all free and zero.
    pub fn new(pages: u64) -> Memory {
        Memory {
            host: Region::new(BASE, pages),
            window: None,
            real: None,
        }
    }

    /// A model of such a memory with several hosts. This host owns its share of the pages, and all
    /// pages of the window at `window`.
    pub fn shared(pages: u64, share: u64, of: u64, window: (u64, u64)) -> Memory {
        let mut memory = Memory::new(pages);
        let own = |page: &u64| (page - BASE) / PAGE / CLUSTER % of == share;
        memory.host.free.retain(own);
        memory.window = Some(Region::new(window.0, window.1));
        memory.real = Some(BackingMemory::default());
        memory
    }

    /// Number of free pages of the host.
    pub fn free_pages(&self) -> usize {
        self.host.free.len()
    }

    /// Allocates a page of the host, filled with zeros.
    pub fn alloc(&mut self, random: &mut Random) -> Option<u64> {
        let page = self.host.alloc(random)?;
        self.store(page, &[0; PAGE as usize]);
        Some(page)
    }

    /// Allocates `count` consecutive pages, sometimes in the window, filled with zeros; returns the
    /// first one.
    pub fn alloc_run(&mut self, random: &mut Random, count: u64) -> Option<u64> {
        let alloc_in = |region: &mut Region, random: &mut Random| match count {
            1 => region.alloc(random),
            _ => region.alloc_run(random, count),
        };
        let window = self.window.as_mut();
        let window = window.filter(|_| chance(random, IN_WINDOW));
        let first = window
            .and_then(|window| alloc_in(window, random))
            .or_else(|| alloc_in(&mut self.host, random))?;
        (0..count).for_each(|n| self.store(first + n * PAGE, &[0; PAGE as usize]));
        Some(first)
    }

    /// Frees a page.
    pub fn free(&mut self, page: u64) {
        if let Some(region) = self.region(page, PAGE) {
            region.free.push(page);
        }
    }

    /// True for a page in the window.
    pub fn is_window(&self, page: u64) -> bool {
        self.window
            .as_ref()
            .is_some_and(|w| w.locate(page, PAGE).is_some())
    }

    /// A random free page of the window, and its content.
    pub fn idle_window(&self, random: &mut Random) -> Option<(u64, &[u8])> {
        let window = self.window.as_ref().filter(|w| !w.free.is_empty())?;
        let page = window.free[random.below(window.free.len() as u64) as usize];
        Some((page, self.get(page, PAGE)?))
    }

    /// The whole window: its first address, and its content.
    pub fn window(&self) -> Option<(u64, &[u8])> {
        self.window.as_ref().map(|w| (w.base, &w.bytes[..]))
    }

    /// The pages of a share, with their content.
    pub fn share(&self, share: u64, of: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let clusters = self.host.bytes.chunks((CLUSTER * PAGE) as usize);
        let places = (0..).map(|n| BASE + n * CLUSTER * PAGE);
        let all = places.zip(clusters);
        all.skip(share as usize).step_by(of as usize)
    }

    fn region(&mut self, addr: u64, len: u64) -> Option<&mut Region> {
        let mut all = Some(&mut self.host).into_iter().chain(&mut self.window);
        all.find(|r| r.locate(addr, len).is_some())
    }

    /// True if all of a range exists.
    pub fn exists(&self, addr: u64, len: u64) -> bool {
        self.get(addr, len).is_some()
    }

    /// The bytes of a range, if it exists.
    pub fn get(&self, addr: u64, len: u64) -> Option<&[u8]> {
        let mut all = Some(&self.host).into_iter().chain(&self.window);
        all.find_map(|r| {
            let at = r.locate(addr, len)?;
            Some(&r.bytes[at..at + len as usize])
        })
    }

    /// Stores bytes for the host; addresses without memory ignore them.
    pub fn store(&mut self, addr: u64, data: &[u8]) {
        if self.fill(addr, data) {
            if let Some(real) = &mut self.real {
                real.stores.push((addr, data.to_vec()));
            }
        }
    }

    /// Stores bytes for the device; addresses without memory ignore them.
    pub fn device_write(&mut self, addr: u64, data: &[u8]) {
        if self.fill(addr, data) {
            if let Some(real) = &mut self.real {
                real.landed.push((addr, data.len() as u64));
            }
        }
    }

    /// True if the range exists.
    fn fill(&mut self, addr: u64, data: &[u8]) -> bool {
        let len = data.len() as u64;
        let Some(region) = self.region(addr, len) else {
            return false;
        };
        if let Some(at) = region.locate(addr, len) {
            region.bytes[at..at + data.len()].copy_from_slice(data);
        }
        true
    }

    /// Stores of the host since the last call.
    pub fn take_stores(&mut self) -> Vec<(u64, Vec<u8>)> {
        let real = self.real.as_mut();
        real.map(|r| std::mem::take(&mut r.stores))
            .unwrap_or_default()
    }

    /// Places that the device has written since the last call.
    pub fn take_device_writes(&mut self) -> Vec<(u64, u64)> {
        let real = self.real.as_mut();
        real.map(|r| std::mem::take(&mut r.landed))
            .unwrap_or_default()
    }

    /// A little-endian qword, if it exists.
    pub fn qword(&self, addr: u64) -> Option<u64> {
        let bytes = self.get(addr, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_pages_have_one_owner_and_nothing_exists_around_them() {
        let mut memory = Memory::new(4);
        let mut random = Random::new(1);
        let mut pages: Vec<u64> = (0..4).filter_map(|_| memory.alloc(&mut random)).collect();
        assert_eq!((memory.alloc(&mut random), pages.len()), (None, 4));
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 4);
        memory.free(pages[1]);
        memory.free(pages[2]);
        assert_eq!(memory.alloc_run(&mut random, 3), None);
        memory.free(pages[3]);
        for _ in 0..8 {
            assert_eq!(memory.alloc_run(&mut random, 3), Some(pages[1]));
            pages[1..].iter().for_each(|&p| memory.free(p));
        }
        memory.store(pages[3], &[7; 16]);
        assert_eq!(memory.get(pages[3], 16), Some(&[7; 16][..]));
        assert_eq!(memory.qword(pages[3]), Some(0x0707_0707_0707_0707));
        assert!(!memory.exists(pages[0] - 1, 1) && !memory.exists(pages[3] + 1, PAGE));
        assert!(!memory.exists(u64::MAX - 1, 64) && !memory.exists(0, 8));
    }
}
