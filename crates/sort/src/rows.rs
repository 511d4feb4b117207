// SPDX-License-Identifier: Apache-2.0

//! Rows in fixed layout that were read from a device.

use std::ops::Range;

use crate::digest;
use crate::spill::Spill;
use crate::Result;

/// Bytes of a read.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of one size in a spill.
#[derive(Debug)]
pub struct SpilledRows {
    spill: Spill,
    row_bytes: usize,
}

impl SpilledRows {
    /// The rows that these bytes are.
    pub fn new(spill: Spill, row_bytes: usize) -> SpilledRows {
        SpilledRows { spill, row_bytes }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.spill.len() as usize / self.row_bytes
    }

    /// Appends a range of rows to `out`.
    pub fn read(&self, rows: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + rows.len() * self.row_bytes, 0);
        self.spill
            .read((rows.start * self.row_bytes) as u64, &mut out[start..])
    }

    /// Overwrites rows from `first` on.
    pub fn write(&mut self, first: usize, rows: &[u8]) -> Result<()> {
        self.spill.write((first * self.row_bytes) as u64, rows)
    }

    /// The digest of the rows, independent of their order.
    pub fn digest(&self) -> Result<u64> {
        let (each, mut sum) = ((CHUNK_BYTES / self.row_bytes).max(1), 0u64);
        let mut bytes = Vec::new();
        for first in (0..self.count()).step_by(each) {
            bytes.clear();
            self.read(first..self.count().min(first + each), &mut bytes)?;
            sum = sum.wrapping_add(digest::digest_of_rows(&bytes, self.row_bytes));
        }
        Ok(sum)
    }
}
