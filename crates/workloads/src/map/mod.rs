// SPDX-License-Identifier: Apache-2.0

//! Index structures in persistent memory with 64-bit keys.

mod bplus;
mod btree;
mod rbtree;
mod skiplist;

use pm::Error;

pub use bplus::BPlus;
pub use btree::BTree;
pub use pm::map::{HashMap, Map};
pub use rbtree::RbTree;
pub use skiplist::SkipList;

/// The error of a check.
fn damaged(what: &str, at: u64, text: &str) -> Error {
    Error::Corrupt(format!("the {what} is damaged at {at:#x}: {text}"))
}
