//! Where what stands in a namespace.

use std::ops::Range;

/// Engines' commands count in these.
pub const UNIT_BYTES: u64 = 4096;

/// Hands out a free part of a namespace from its start on.
#[derive(Clone, Debug)]
pub struct RegionAllocator {
    next: u64,
    end: u64,
}

impl RegionAllocator {
    /// RegionAllocator in a part of a namespace; its start is a multiple of a first_unit.
    pub fn new(free: &Range<u64>) -> RegionAllocator {
        RegionAllocator {
            next: free.start,
            end: free.end,
        }
    }

    /// RegionAllocator for so many bytes; it may be more than there is.
    pub fn allocate(&mut self, bytes: u64) -> Range<u64> {
        let start = self.next;
        self.next = start.saturating_add(bytes).next_multiple_of(UNIT_BYTES);
        start..start + bytes
    }

    /// Whether there was all that was taken.
    pub fn fits(&self) -> bool {
        self.next <= self.end
    }
}

/// A place as engines' commands have it.
pub fn first_unit(region: &Range<u64>) -> u32 {
    u32::try_from(region.start / UNIT_BYTES).unwrap_or(u32::MAX)
}
