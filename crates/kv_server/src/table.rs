// SPDX-License-Identifier: Apache-2.0

//! The table of entries, in a transaction. It is the library's hash table over a hash of the key.
//! A row has all entries with the same hash, so keys that a hostile client has made collide stay
//! distinct.

use pm::map::{HashMap, Map};
use pm::{Error, Ptr, Result, Transaction};

/// Chains of the hash table.
const MAP: HashMap = HashMap { buckets: 1024 };
/// Most bytes of the entries that share a hash.
const MAX_ROW: usize = 3 << 20;
/// Lengths of key and value, flags, padding, number of the change.
const ENTRY_HEADER_BYTES: usize = 24;
/// The root object: the map's root, the number of entries, the number of changes.
type Root = [u64; 3];

/// An entry of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// The client's flags, of memcached.
    pub flags: u32,
    /// The number of the change that made it, unique in a pool.
    pub unique: u64,
}

pub struct Table<'a, 'b> {
    tx: &'a mut Transaction<'b>,
    at: Ptr<Root>,
    root: Root,
}

fn hash(key: &[u8]) -> u64 {
    // FNV-1a; the map mixes the hash again.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    key.iter().fold(0xCBF2_9CE4_8422_2325, step)
}

impl<'a, 'b> Table<'a, 'b> {
    /// Creates an empty table as the pool's root.
    pub fn create(tx: &mut Transaction<'_>) -> Result<()> {
        let map = MAP.create(tx)?;
        let root = tx.create::<Root>(&[map, 0, 0])?;
        tx.set_root(root)
    }

    pub fn open(tx: &'a mut Transaction<'b>) -> Result<Table<'a, 'b>> {
        let at: Ptr<Root> = tx.root()?;
        let root = tx.get(at)?;
        Ok(Table { tx, at, root })
    }

    pub fn len(&self) -> u64 {
        self.root[1]
    }

    fn read_entries(&mut self, row: u64) -> Result<Vec<TableEntry>> {
        let damaged = || Error::Corrupt(format!("the row at {row:#x} is damaged"));
        let bytes = self.tx.get(Ptr::<u64>::at(row))? as usize;
        if bytes > MAX_ROW {
            return Err(damaged());
        }
        let mut data = vec![0; bytes];
        self.tx.read(row + 8, &mut data)?;
        let (mut rest, mut out) = (&data[..], Vec::new());
        while !rest.is_empty() {
            let (head, tail) = rest
                .split_at_checked(ENTRY_HEADER_BYTES)
                .ok_or_else(damaged)?;
            let word = |at: usize| {
                u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
            };
            let (key, tail) = tail
                .split_at_checked(word(0) as usize)
                .ok_or_else(damaged)?;
            let (value, tail) = tail
                .split_at_checked(word(4) as usize)
                .ok_or_else(damaged)?;
            out.push(TableEntry {
                key: key.to_vec(),
                value: value.to_vec(),
                flags: word(8),
                unique: u64::from(word(20)) << 32 | u64::from(word(16)),
            });
            rest = tail;
        }
        Ok(out)
    }

    /// All entries that share a key's hash, and their row.
    fn row(&mut self, key: &[u8]) -> Result<(Option<u64>, Vec<TableEntry>)> {
        let row = MAP.get(self.tx, self.root[0], hash(key))?;
        let entries = row.map(|row| self.read_entries(row)).transpose()?;
        Ok((row, entries.unwrap_or_default()))
    }

    fn replace_row(&mut self, key: &[u8], old: Option<u64>, entries: &[TableEntry]) -> Result<()> {
        let mut data = vec![0; 8];
        for entry in entries {
            data.extend((entry.key.len() as u32).to_le_bytes());
            data.extend((entry.value.len() as u32).to_le_bytes());
            data.extend(entry.flags.to_le_bytes());
            data.extend([0; 4]);
            data.extend(entry.unique.to_le_bytes());
            data.extend(&entry.key);
            data.extend(&entry.value);
        }
        let bytes = data.len() - 8;
        if bytes > MAX_ROW {
            return Err(Error::Full("too many keys with one hash".into()));
        }
        data[..8].copy_from_slice(&(bytes as u64).to_le_bytes());
        if entries.is_empty() {
            MAP.remove(self.tx, self.root[0], hash(key))?;
        } else {
            let new = self.tx.alloc_bytes(data.len() as u64)?.offset();
            self.tx.write(new, &data)?;
            MAP.insert(self.tx, self.root[0], hash(key), new)?;
        }
        if let Some(old) = old {
            self.tx.free(Ptr::<u8>::at(old))?;
        }
        self.tx.set(self.at, &self.root)
    }

    pub fn get(&mut self, key: &[u8]) -> Result<Option<TableEntry>> {
        let (_, entries) = self.row(key)?;
        Ok(entries.into_iter().find(|e| e.key == key))
    }

    pub fn put(&mut self, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let (old, mut entries) = self.row(key)?;
        let before = entries.len();
        entries.retain(|e| e.key != key);
        self.root[1] += u64::from(before == entries.len());
        self.root[2] += 1;
        entries.push(TableEntry {
            key: key.to_vec(),
            value: value.to_vec(),
            flags,
            unique: self.root[2],
        });
        self.replace_row(key, old, &entries)
    }

    /// Removes a key. False if there was none.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let (old, mut entries) = self.row(key)?;
        let before = entries.len();
        entries.retain(|e| e.key != key);
        if before == entries.len() {
            return Ok(false);
        }
        self.root[1] -= 1;
        self.replace_row(key, old, &entries)?;
        Ok(true)
    }

    /// All keys.
    pub fn keys(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut out = Vec::new();
        for (_, row) in MAP.items(self.tx, self.root[0])? {
            out.extend(self.read_entries(row)?.into_iter().map(|e| e.key));
        }
        Ok(out)
    }
}
