// SPDX-License-Identifier: Apache-2.0

//! Index structures in persistent memory with 64-bit keys.

mod bplus;
mod btree;
mod hashmap;
mod rbtree;
mod skiplist;

use pm::{Error, Result, Transaction};

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

pub use bplus::BPlus;
pub use btree::BTree;
pub use hashmap::HashMap;
pub use rbtree::RbTree;
pub use skiplist::SkipList;

/// The error of a check.
fn damaged(what: &str, at: u64, text: &str) -> Error {
    Error::Corrupt(format!("the {what} is damaged at {at:#x}: {text}"))
}
