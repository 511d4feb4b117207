// SPDX-License-Identifier: Apache-2.0

//! Index structures with 64-bit keys: what they have in common, and a hash table.

use crate::{Error, Ptr, Result, Transaction};

/// An index structure whose values are numbers, mostly offsets of objects. `root` is the result of
/// [`Map::create`].
pub trait Map: Send + Sync {
    /// Creates an empty structure.
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64>;

    /// The value of a key.
    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>>;

    /// Inserts or replaces the value of a key; returns the former one.
    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>>;

    /// Removes a key; returns its value.
    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>>;

    /// All keys and values, in any order.
    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>>;

    /// Checks the invariants of the structure; returns all offsets that belong to it, without those
    /// of values.
    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>>;
}

/// A hash table with chains, as PMDK's example `hashmap_tx`, with a fixed number of buckets.
#[derive(Clone, Copy, Debug)]
pub struct HashMap {
    /// Chains of a new table.
    pub buckets: u64,
}

crate::record! {
    #[derive(Clone, Debug)]
    struct Root {
        count: u64,
        buckets: u64,
        /// The first entry of each chain.
        table: Ptr<u64>,
    }
}

crate::record! {
    #[derive(Clone, Debug)]
    struct HashEntry {
        key: u64,
        value: u64,
        next: Ptr<HashEntry>,
    }
}

/// The position of a key, or the one at which it would be inserted.
struct ChainPosition {
    /// The pointer to the entry.
    link: Ptr<Ptr<HashEntry>>,
    entry: Option<(Ptr<HashEntry>, HashEntry)>,
}

impl Root {
    fn link(&self, bucket: u64) -> Ptr<Ptr<HashEntry>> {
        Ptr::at(self.table.offset() + 8 * bucket)
    }

    fn bucket(&self, key: u64) -> u64 {
        sim::mix(key) % self.buckets.max(1)
    }

    fn find(&self, tx: &mut Transaction<'_>, key: u64) -> Result<ChainPosition> {
        let mut link = self.link(self.bucket(key));
        loop {
            let at = tx.get(link)?;
            if at.is_null() {
                return Ok(ChainPosition { link, entry: None });
            }
            let entry = tx.get(at)?;
            if entry.key == key {
                let entry = Some((at, entry));
                return Ok(ChainPosition { link, entry });
            }
            link = HashEntry::next(at);
        }
    }
}

fn at(root: u64) -> Ptr<Root> {
    Ptr::at(root)
}

impl Map for HashMap {
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64> {
        let table = tx.alloc_bytes(8 * self.buckets)?;
        tx.write(table.offset(), &vec![0; 8 * self.buckets as usize])?;
        let root = Root {
            count: 0,
            buckets: self.buckets,
            table: Ptr::at(table.offset()),
        };
        Ok(tx.create(&root)?.offset())
    }

    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let position = tx.get(at(root))?.find(tx, key)?;
        Ok(position.entry.map(|(_, entry)| entry.value))
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>> {
        let own = tx.get(at(root))?;
        if let Some((entry, old)) = own.find(tx, key)?.entry {
            tx.set(HashEntry::value(entry), &value)?;
            return Ok(Some(old.value));
        }
        let first = own.link(own.bucket(key));
        let next = tx.get(first)?;
        tx.add(first)?;
        tx.add(Root::count(at(root)))?;
        let entry = tx.create(&HashEntry { key, value, next })?;
        tx.set(first, &entry)?;
        tx.set(Root::count(at(root)), &(own.count + 1))?;
        Ok(None)
    }

    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let own = tx.get(at(root))?;
        let position = own.find(tx, key)?;
        let Some((entry, old)) = position.entry else {
            return Ok(None);
        };
        tx.set(position.link, &old.next)?;
        tx.set(Root::count(at(root)), &(own.count - 1))?;
        tx.free(entry)?;
        Ok(Some(old.value))
    }

    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let own = tx.get(at(root))?;
        let mut out = Vec::new();
        for bucket in 0..own.buckets {
            let mut next = tx.get(own.link(bucket))?;
            while !next.is_null() {
                let entry = tx.get(next)?;
                out.push((entry.key, entry.value));
                next = entry.next;
            }
        }
        Ok(out)
    }

    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>> {
        let own = tx.get(at(root))?;
        let bad = |at: u64, text: &str| {
            Err(Error::Corrupt(format!(
                "the hash table is damaged at {at:#x}: {text}"
            )))
        };
        let mut seen = vec![root, own.table.offset()];
        for bucket in 0..own.buckets {
            let mut next = tx.get(own.link(bucket))?;
            let first = seen.len();
            while !next.is_null() {
                let entry = tx.get(next)?;
                if own.bucket(entry.key) != bucket {
                    return bad(next.offset(), "a key in the chain of others");
                }
                if seen[first..].contains(&next.offset()) {
                    return bad(next.offset(), "a chain without an end");
                }
                seen.push(next.offset());
                next = entry.next;
            }
        }
        let count = seen.len() as u64 - 2;
        match count == own.count {
            true => Ok(seen),
            false => bad(
                root,
                &format!("it has {count} entries, and says {}", own.count),
            ),
        }
    }
}
