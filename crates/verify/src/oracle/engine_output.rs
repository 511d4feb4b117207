// SPDX-License-Identifier: Apache-2.0

//! The output of an engine, derived from blocks that it reads.

use std::ops::Range;

use crate::commands::Bounds;
use crate::BLOCK;

/// How an engine derives its output from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// A copy of the source.
    Copy,
    /// One bit for each value.
    Bitmap(Bounds),
}

/// The output of an engine, derived from blocks that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOutput {
    /// First source block.
    pub from: u64,
    /// Number of source blocks.
    pub count: u64,
    /// First target block.
    pub to: u64,
    /// How the target follows from the source.
    pub how: Transform,
}

impl EngineOutput {
    /// Output bytes for one source block.
    pub fn share(&self) -> u64 {
        match self.how {
            Transform::Copy => BLOCK,
            Transform::Bitmap(bounds) => BLOCK / bounds.bytes() as u64 / 8,
        }
    }

    /// Target blocks; the last one may be written in part.
    pub fn targets(&self) -> Range<u64> {
        self.to..self.to + (self.count * self.share()).div_ceil(BLOCK)
    }

    /// Source blocks of one target block.
    pub fn sources(&self, target: u64) -> Range<u64> {
        let each = BLOCK / self.share();
        let first = (target - self.to) * each;
        self.from + first..self.from + (first + each).min(self.count)
    }
}
