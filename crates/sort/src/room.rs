//! Where what stands in a namespace.

use std::ops::Range;

/// Engines' commands count in these.
pub const UNIT: u64 = 4096;

/// Hands out a free part of a namespace from its start on.
#[derive(Clone, Debug)]
pub struct Room {
    next: u64,
    end: u64,
}

impl Room {
    /// Room in a part of a namespace; its start is a multiple of a unit.
    pub fn new(free: &Range<u64>) -> Room {
        Room {
            next: free.start,
            end: free.end,
        }
    }

    /// Room for so many bytes; it may be more than there is.
    pub fn take(&mut self, bytes: u64) -> Range<u64> {
        let start = self.next;
        self.next = start.saturating_add(bytes).next_multiple_of(UNIT);
        start..start + bytes
    }

    /// Whether there was all that was taken.
    pub fn fits(&self) -> bool {
        self.next <= self.end
    }
}

/// A place as engines' commands have it.
pub fn unit(region: &Range<u64>) -> u32 {
    u32::try_from(region.start / UNIT).unwrap_or(u32::MAX)
}
