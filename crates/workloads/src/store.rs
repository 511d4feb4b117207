// SPDX-License-Identifier: Apache-2.0

//! Tables of rows: in persistent memory, and in the oracle.

use std::collections::BTreeMap;

use pm::{Error, Ptr, Result, Transaction};

use crate::map::Map;

/// All rows of all tables, by table and key.
pub type Contents = BTreeMap<(usize, u64), Vec<u8>>;

/// The storage of a benchmark's rows.
pub trait Store {
    /// Reads a row.
    fn get(&mut self, table: usize, key: u64) -> Result<Option<Vec<u8>>>;

    /// Inserts or replaces a row.
    fn put(&mut self, table: usize, key: u64, row: &[u8]) -> Result<()>;

    /// Changes bytes of a row in place. False if there is no such row.
    fn update(&mut self, table: usize, key: u64, at: usize, bytes: &[u8]) -> Result<bool>;

    /// Removes a row. False if there was none.
    fn remove(&mut self, table: usize, key: u64) -> Result<bool>;
}

impl Store for Contents {
    fn get(&mut self, table: usize, key: u64) -> Result<Option<Vec<u8>>> {
        Ok(BTreeMap::get(self, &(table, key)).cloned())
    }

    fn put(&mut self, table: usize, key: u64, row: &[u8]) -> Result<()> {
        self.insert((table, key), row.to_vec());
        Ok(())
    }

    fn update(&mut self, table: usize, key: u64, at: usize, bytes: &[u8]) -> Result<bool> {
        let Some(row) = self.get_mut(&(table, key)) else {
            return Ok(false);
        };
        let part = row.get_mut(at..at + bytes.len());
        part.ok_or_else(outside)?.copy_from_slice(bytes);
        Ok(true)
    }

    fn remove(&mut self, table: usize, key: u64) -> Result<bool> {
        Ok(BTreeMap::remove(self, &(table, key)).is_some())
    }
}

fn outside() -> Error {
    Error::Invalid("bytes outside of their row".into())
}

/// An index entry has the row's offset in the pool in the low bits, and its length above.
const OFFSET_BITS: u32 = 44;

fn pack(offset: u64, bytes: usize) -> u64 {
    (bytes as u64) << OFFSET_BITS | offset
}

/// Offset and bytes of a row.
pub(crate) fn unpack(value: u64) -> (u64, usize) {
    let bytes = value >> OFFSET_BITS;
    (value & ((1 << OFFSET_BITS) - 1), bytes as usize)
}

/// Tables of a pool, in a transaction. Each row is an object.
pub(crate) struct Tables<'a, 'b> {
    pub tx: &'a mut Transaction<'b>,
    pub map: &'a dyn Map,
    pub roots: &'a [u64],
}

impl Tables<'_, '_> {
    fn find(&mut self, table: usize, key: u64) -> Result<Option<u64>> {
        self.map.get(self.tx, self.roots[table], key)
    }

    /// The bytes of a row.
    pub fn row(&mut self, value: u64) -> Result<Vec<u8>> {
        let (offset, bytes) = unpack(value);
        let mut row = vec![0; bytes];
        self.tx.read(offset, &mut row)?;
        Ok(row)
    }

    fn free(&mut self, value: u64) -> Result<()> {
        self.tx.free(Ptr::<u8>::at(unpack(value).0))
    }
}

impl Store for Tables<'_, '_> {
    fn get(&mut self, table: usize, key: u64) -> Result<Option<Vec<u8>>> {
        let value = self.find(table, key)?;
        value.map(|value| self.row(value)).transpose()
    }

    fn put(&mut self, table: usize, key: u64, row: &[u8]) -> Result<()> {
        let new = self.tx.alloc_bytes(row.len() as u64)?.offset();
        self.tx.write(new, row)?;
        let new = pack(new, row.len());
        let old = self.map.insert(self.tx, self.roots[table], key, new)?;
        old.map_or(Ok(()), |old| self.free(old))
    }

    fn update(&mut self, table: usize, key: u64, at: usize, bytes: &[u8]) -> Result<bool> {
        let Some(value) = self.find(table, key)? else {
            return Ok(false);
        };
        let (offset, len) = unpack(value);
        if at + bytes.len() > len {
            return Err(outside());
        }
        self.tx.write(offset + at as u64, bytes)?;
        Ok(true)
    }

    fn remove(&mut self, table: usize, key: u64) -> Result<bool> {
        let old = self.map.remove(self.tx, self.roots[table], key)?;
        old.map_or(Ok(()), |old| self.free(old))?;
        Ok(old.is_some())
    }
}
