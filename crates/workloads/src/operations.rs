// SPDX-License-Identifier: Apache-2.0

//! The operations of a workload's transactions, for a program that repeats them elsewhere.

use pm::Result;

use crate::{Contents, Store};

/// An operation that changes a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Inserts or replaces a row of this many bytes.
    Put {
        /// The row's key.
        key: u64,
        /// Bytes of the row.
        bytes: usize,
    },
    /// Changes bytes of an existing row in place.
    Update {
        /// The row's key.
        key: u64,
        /// First byte within the row.
        at: usize,
        /// Number of bytes.
        bytes: usize,
    },
    /// Removes an existing row.
    Remove {
        /// The row's key.
        key: u64,
    },
}

/// Contents that record what changes them. Operations without an effect are left out: those on
/// rows that do not exist.
pub(crate) struct Recorder<'a> {
    contents: &'a mut Contents,
    /// Operations, in order.
    pub operations: Vec<Operation>,
}

impl<'a> Recorder<'a> {
    pub fn new(contents: &'a mut Contents) -> Recorder<'a> {
        Recorder {
            contents,
            operations: Vec::new(),
        }
    }
}

impl Store for Recorder<'_> {
    fn get(&mut self, table: usize, key: u64) -> Result<Option<Vec<u8>>> {
        Store::get(self.contents, table, key)
    }

    fn put(&mut self, table: usize, key: u64, row: &[u8]) -> Result<()> {
        let bytes = row.len();
        self.operations.push(Operation::Put { key, bytes });
        self.contents.put(table, key, row)
    }

    fn update(&mut self, table: usize, key: u64, at: usize, bytes: &[u8]) -> Result<bool> {
        let found = self.contents.update(table, key, at, bytes)?;
        if found {
            let bytes = bytes.len();
            self.operations.push(Operation::Update { key, at, bytes });
        }
        Ok(found)
    }

    fn remove(&mut self, table: usize, key: u64) -> Result<bool> {
        let found = Store::remove(self.contents, table, key)?;
        if found {
            self.operations.push(Operation::Remove { key });
        }
        Ok(found)
    }
}
