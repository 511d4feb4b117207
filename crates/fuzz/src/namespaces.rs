//! Namespaces: which there are, and where each lies on the media (docs/architecture.md: one after the other, each from a
//! multiple of 4 KiB on).

use spec::nvme::{status, Status};

use crate::media::BLOCK;
use crate::memory::PAGE;

/// The NSID that stands for all of them.
pub const NSID_ALL: u32 = u32::MAX;

/// Where a namespace lies.
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
    /// True if a range of blocks lies in it.
    pub fn holds(&self, lba: u64, count: u64) -> bool {
        lba.checked_add(count).is_some_and(|end| end <= self.blocks)
    }
}

/// All namespaces; those of no blocks are inactive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(Vec<Namespace>);

impl Namespaces {
    /// Namespaces 1 and up of so many blocks.
    pub fn new(sizes: &[u64]) -> Namespaces {
        let mut next = 0u64;
        let namespaces = (1..).zip(sizes).map(|(nsid, &blocks)| {
            let base = next;
            next = (base + blocks).next_multiple_of(PAGE / BLOCK);
            Namespace { nsid, base, blocks }
        });
        Namespaces(namespaces.collect())
    }

    /// Their number (NN).
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Those that are active.
    pub fn active(&self) -> impl Iterator<Item = &Namespace> {
        self.0.iter().filter(|n| n.blocks > 0)
    }

    /// True for an NSID that may be one's, active or not.
    pub fn valid(&self, nsid: u32) -> bool {
        (1..=self.count()).contains(&nsid)
    }

    /// Looks an NSID up as commands do: an error if it is not valid, or inactive.
    pub fn find(&self, nsid: u32) -> Result<Namespace, Status> {
        let index = (nsid as usize).checked_sub(1);
        match index.and_then(|n| self.0.get(n)) {
            None => Err(status::INVALID_NAMESPACE_OR_FORMAT),
            Some(n) if n.blocks == 0 => Err(status::INVALID_FIELD),
            Some(n) => Ok(*n),
        }
    }

    /// Active NSIDs above this one, as Identify lists them (5.15.2.3).
    pub fn list_above(&self, nsid: u32) -> Vec<u8> {
        let above = self.active().filter(|n| n.nsid > nsid);
        above.flat_map(|n| n.nsid.to_le_bytes()).collect()
    }

    /// Blocks of the media up to the end of the last one.
    pub fn media_blocks(&self) -> u64 {
        self.0.iter().map(|n| n.base + n.blocks).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_follow_each_other_at_pages_and_some_are_inactive() {
        let all = Namespaces::new(&[16, 9, 0, 1]);
        let bases: Vec<u64> = all.active().map(|n| n.base).collect();
        assert_eq!((all.count(), bases), (4, vec![0, 16, 32]));
        assert_eq!(all.media_blocks(), 33);
        assert_eq!(all.find(0), Err(status::INVALID_NAMESPACE_OR_FORMAT));
        assert_eq!(all.find(5), Err(status::INVALID_NAMESPACE_OR_FORMAT));
        assert_eq!(all.find(3), Err(status::INVALID_FIELD));
        let second = all.find(2).unwrap();
        assert!(second.holds(8, 1) && !second.holds(8, 2) && !second.holds(u64::MAX, 2));
        assert_eq!(all.list_above(1), [2, 0, 0, 0, 4, 0, 0, 0]);
    }
}
