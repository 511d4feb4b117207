// SPDX-License-Identifier: Apache-2.0

//! The namespaces and their addresses on the media: in order, each aligned to 4 KiB
//! (docs/architecture.md).

use spec::nvme::PAGE_BYTES;

use crate::BLOCK_BYTES;

/// Maximum number of entries in a namespace list (NVMe 1.4, 4.10).
const MOST_LISTED: usize = 1024;

/// The range of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its identifier.
    pub nsid: u32,
    /// Its first block on the media.
    pub base: u64,
    /// Its blocks.
    pub blocks: u64,
}

impl Namespace {
    /// It has blocks (6.1.4).
    pub fn is_active(&self) -> bool {
        self.blocks > 0
    }

    /// A range of blocks is within the namespace.
    pub fn holds(&self, lba: u64, count: u64) -> bool {
        lba.checked_add(count).is_some_and(|end| end <= self.blocks)
    }
}

/// All namespaces; namespaces without blocks are inactive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(Vec<Namespace>);

impl Namespaces {
    /// Namespaces from 1 on with these numbers of blocks.
    pub fn new(sizes: &[u64]) -> Namespaces {
        let mut next = 0u64;
        let namespaces = (1..).zip(sizes).map(|(nsid, &blocks)| {
            let base = next;
            let end = base.saturating_add(blocks);
            let aligned = end.checked_next_multiple_of(PAGE_BYTES / BLOCK_BYTES);
            next = aligned.unwrap_or(u64::MAX);
            Namespace { nsid, base, blocks }
        });
        Namespaces(namespaces.collect())
    }

    /// Number of namespaces (NN).
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// All namespaces, active or not.
    pub fn all(&self) -> impl Iterator<Item = &Namespace> {
        self.0.iter()
    }

    /// The active namespaces.
    pub fn active(&self) -> impl Iterator<Item = &Namespace> {
        self.all().filter(|n| n.is_active())
    }

    /// The NSID is valid, whether active or not.
    pub fn valid(&self, nsid: u32) -> bool {
        self.get(nsid).is_some()
    }

    /// The namespace of a valid NSID, active or not.
    pub fn get(&self, nsid: u32) -> Option<Namespace> {
        let index = (nsid as usize).checked_sub(1)?;
        self.0.get(index).copied()
    }

    /// Active NSIDs above this one, as Identify lists them (5.15.2.3).
    pub fn list_above(&self, nsid: u32) -> Vec<u8> {
        let above = self.active().filter(|n| n.nsid > nsid).take(MOST_LISTED);
        above.flat_map(|n| n.nsid.to_le_bytes()).collect()
    }

    /// Blocks of the media up to the end of the last namespace.
    pub fn media_blocks(&self) -> u64 {
        let ends = self.all().map(|n| n.base.saturating_add(n.blocks));
        ends.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_follow_each_other_at_pages_and_may_be_inactive() {
        let all = Namespaces::new(&[16, 9, 0, 1]);
        let bases: Vec<u64> = all.active().map(|n| n.base).collect();
        assert_eq!((all.count(), bases), (4, vec![0, 16, 32]));
        assert_eq!(all.media_blocks(), 33);
        assert!(!all.valid(0) && !all.valid(5) && !all.valid(u32::MAX) && all.valid(3));
        assert!(all.get(3).is_some_and(|n| !n.is_active()));
        let second = all.get(2).unwrap();
        assert!(second.holds(8, 1) && !second.holds(8, 2) && !second.holds(u64::MAX, 2));
        assert_eq!(all.list_above(1), [2, 0, 0, 0, 4, 0, 0, 0]);
    }

    #[test]
    fn namespaces_accept_sizes_that_no_media_has() {
        let all = Namespaces::new(&[u64::MAX, 8, u64::MAX]);
        assert_eq!(all.media_blocks(), u64::MAX);
    }
}
