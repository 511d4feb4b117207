// SPDX-License-Identifier: Apache-2.0

//! A transfer as segments of host pages, resolved from PRPs or an SGL.

use nvme::{Segment, WalkError};

use crate::oracle::memory::Memory;

/// The pages of a transfer, up to the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// In the order of the transfer.
    pub segments: Vec<Segment>,
    /// Parts of list pages that the controller may read, each within a page.
    pub lists: Vec<(u64, u64)>,
    /// The controller may read a list further than needed, at addresses without memory.
    pub unsure: bool,
    /// Some of the data are discarded.
    pub dropped: bool,
    /// The error that ended the walk.
    pub fault: Option<WalkError>,
}

impl Walk {
    /// Bytes up to the end or the error.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.len).sum()
    }

    /// True if every page of it exists.
    pub fn exists(&self, memory: &Memory) -> bool {
        self.segments.iter().all(|s| memory.exists(s.addr, s.len))
    }

    /// The bytes of the transfer; `None` at addresses without memory.
    pub fn gather(&self, memory: &Memory) -> Vec<Option<u8>> {
        let mut out = Vec::with_capacity(self.bytes() as usize);
        for s in &self.segments {
            match memory.get(s.addr, s.len) {
                Some(bytes) => out.extend(bytes.iter().map(|&b| Some(b))),
                None => out.resize(out.len() + s.len as usize, None),
            }
        }
        out
    }
}
