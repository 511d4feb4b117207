//! Host memory: pages that commands own one at a time, at scattered addresses.

use sim::Random;

/// Bytes of a host page.
pub const PAGE: u64 = 4096;
/// First address. Above 4 GiB, so that 64-bit addresses are exercised.
const BASE: u64 = 1 << 32;

/// One range of pages; every other address answers reads with an error and swallows writes.
pub struct Memory {
    bytes: Vec<u8>,
    free: Vec<u64>,
}

impl Memory {
    /// So many pages, all free, all zero.
    pub fn new(pages: u64) -> Memory {
        Memory {
            bytes: vec![0; (pages * PAGE) as usize],
            free: (0..pages).map(|p| BASE + p * PAGE).collect(),
        }
    }

    /// Pages that nobody owns.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// A page out of those that nobody owns, all zeros.
    pub fn take(&mut self, random: &mut Random) -> Option<u64> {
        if self.free.is_empty() {
            return None;
        }
        let at = random.below(self.free.len() as u64) as usize;
        let page = self.free.swap_remove(at);
        self.put(page, &[0; PAGE as usize]);
        Some(page)
    }

    /// So many pages in a row out of those that nobody owns, all zeros: the first one.
    pub fn take_run(&mut self, random: &mut Random, count: u64) -> Option<u64> {
        if count == 1 {
            return self.take(random);
        }
        let all = self.bytes.len() as u64 / PAGE;
        let mut is_free = vec![false; all as usize];
        for page in &self.free {
            is_free[((page - BASE) / PAGE) as usize] = true;
        }
        let from = random.below(all.max(1));
        let mut found = 0;
        // From anywhere on, and what is before it.
        let at = (from..all).chain(0..all).find(|&page| {
            found = match is_free[page as usize] {
                _ if page == 0 => u64::from(is_free[0]),
                true => found + 1,
                false => 0,
            };
            found >= count
        })?;
        let first = BASE + (at + 1 - count) * PAGE;
        let run = first..first + count * PAGE;
        self.free.retain(|page| !run.contains(page));
        self.bytes[(first - BASE) as usize..(run.end - BASE) as usize].fill(0);
        Some(first)
    }

    /// Gives a page back.
    pub fn give(&mut self, page: u64) {
        self.free.push(page);
    }

    fn locate(&self, addr: u64, len: u64) -> Option<usize> {
        let at = addr.checked_sub(BASE)?;
        let end = at.checked_add(len)?;
        (end <= self.bytes.len() as u64).then_some(at as usize)
    }

    /// True if all of a range exists.
    pub fn exists(&self, addr: u64, len: u64) -> bool {
        self.locate(addr, len).is_some()
    }

    /// The bytes of a range, if it exists.
    pub fn get(&self, addr: u64, len: u64) -> Option<&[u8]> {
        let at = self.locate(addr, len)?;
        Some(&self.bytes[at..at + len as usize])
    }

    /// Stores bytes; what does not exist swallows them.
    pub fn put(&mut self, addr: u64, data: &[u8]) {
        if let Some(at) = self.locate(addr, data.len() as u64) {
            self.bytes[at..at + data.len()].copy_from_slice(data);
        }
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
    fn pages_are_owned_once_and_nothing_exists_around_them() {
        let mut memory = Memory::new(4);
        let mut random = Random::new(1);
        let mut pages: Vec<u64> = (0..4).filter_map(|_| memory.take(&mut random)).collect();
        assert_eq!((memory.take(&mut random), pages.len()), (None, 4));
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 4);
        memory.give(pages[1]);
        memory.give(pages[2]);
        assert_eq!(memory.take_run(&mut random, 3), None);
        memory.give(pages[3]);
        for _ in 0..8 {
            assert_eq!(memory.take_run(&mut random, 3), Some(pages[1]));
            pages[1..].iter().for_each(|&p| memory.give(p));
        }
        memory.put(pages[3], &[7; 16]);
        assert_eq!(memory.get(pages[3], 16), Some(&[7; 16][..]));
        assert_eq!(memory.qword(pages[3]), Some(0x0707_0707_0707_0707));
        assert!(!memory.exists(pages[0] - 1, 1) && !memory.exists(pages[3] + 1, PAGE));
        assert!(!memory.exists(u64::MAX - 1, 64) && !memory.exists(0, 8));
    }
}
