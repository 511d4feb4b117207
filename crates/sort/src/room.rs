//! Where what stands in a namespace.

use std::ops::Range;

use crate::{Error, Result};

/// Engines' commands count in these.
pub const UNIT: u64 = 4096;

/// Hands out a namespace from its start on.
#[derive(Debug, Default)]
pub struct Room {
    end: u64,
}

impl Room {
    /// Room for so many bytes.
    pub fn take(&mut self, bytes: u64) -> Range<u64> {
        let start = self.end;
        self.end = (start + bytes).next_multiple_of(UNIT);
        start..start + bytes
    }

    /// What was taken, if a namespace has that.
    pub fn check(&self, namespace: u64, rows: usize) -> Result<()> {
        if self.end <= namespace {
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Err(Error::new(format!(
            "the table is too large: {rows} rows with their keys and room to sort take {} MiB of a device, whose namespace has {} MiB; more devices help",
            mib(self.end),
            namespace >> 20
        )))
    }
}

/// A place as engines' commands have it.
pub fn unit(region: &Range<u64>) -> u32 {
    u32::try_from(region.start / UNIT).unwrap_or(u32::MAX)
}
