//! Structures of persistent memory that find values by keys of 64 bits.

mod bplus;
mod btree;
mod hashmap;
mod rbtree;
mod skiplist;

use pm::{Error, Result, Transaction};

/// A structure whose values are numbers, mostly offsets of objects. `root` is what [`Map::create`] returned.
pub trait Map: Send + Sync {
    /// A new, empty one.
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64>;

    /// The value of a key.
    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>>;

    /// Gives a key a value; returns the one that it had.
    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>>;

    /// Takes a key out; returns the value that it had.
    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>>;

    /// All keys and values, in any order.
    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>>;

    /// Checks what makes it what it is; returns all offsets that belong to it, those of values left out. The error says what is wrong.
    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>>;
}

pub use bplus::BPlus;
pub use btree::BTree;
pub use hashmap::HashMap;
pub use rbtree::RbTree;
pub use skiplist::SkipList;

/// What a check says of damage.
fn damaged(what: &str, at: u64, text: &str) -> Error {
    Error::Corrupt(format!("the {what} is damaged at {at:#x}: {text}"))
}

/// A hash of a key: splitmix64's last step.
fn hash(key: u64) -> u64 {
    let key = (key ^ key >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let key = (key ^ key >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    key ^ key >> 31
}
