// SPDX-License-Identifier: Apache-2.0

//! Allocates regions of a namespace.

use std::ops::Range;

/// Unit of the addresses in engines' commands.
pub const UNIT_BYTES: u64 = 4096;

/// Allocates regions of a free range, from its start on.
#[derive(Clone, Debug)]
pub struct RegionAllocator {
    next: u64,
    end: u64,
}

impl RegionAllocator {
    /// An allocator of a free range. Its start is a multiple of a unit.
    pub fn new(free: &Range<u64>) -> RegionAllocator {
        RegionAllocator {
            next: free.start,
            end: free.end,
        }
    }

    /// Allocates `bytes` bytes. The region may exceed the free range: see [`Self::fits`].
    pub fn allocate(&mut self, bytes: u64) -> Range<u64> {
        let start = self.next;
        self.next = start.saturating_add(bytes).next_multiple_of(UNIT_BYTES);
        start..start + bytes
    }

    /// True if all regions lie within the free range.
    pub fn fits(&self) -> bool {
        self.next <= self.end
    }
}

/// The start of a region in units, as engines' commands name it.
pub fn first_unit(region: &Range<u64>) -> u32 {
    u32::try_from(region.start / UNIT_BYTES).unwrap_or(u32::MAX)
}
