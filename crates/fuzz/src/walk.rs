//! A transfer as pieces of host pages: what PRPs and SGLs come to.

use nvme::{Segment, WalkError};

use crate::memory::Memory;

/// The pages of a transfer, up to the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// In the order of the transfer.
    pub segments: Vec<Segment>,
    /// Parts of list pages that may be read, each within a page.
    pub lists: Vec<(u64, u64)>,
    /// A list may be read further than it is needed, to where nothing is.
    pub unsure: bool,
    /// Some of the data goes nowhere.
    pub dropped: bool,
    /// What stopped it.
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

    /// The bytes of the transfer; those at addresses that do not exist are `None`.
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
