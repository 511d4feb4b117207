// SPDX-License-Identifier: Apache-2.0

//! The B-tree of [`pm::btree`].

use pm::btree::Tree;
use pm::{Ptr, Result, Transaction};

use super::Map;

/// See [`pm::btree`].
#[derive(Clone, Copy, Debug)]
pub struct BTree;

fn at(root: u64) -> Tree {
    Tree::at(Ptr::at(root))
}

impl Map for BTree {
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64> {
        Ok(Tree::create(tx)?.root().offset())
    }

    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        at(root).get(tx, key)
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>> {
        at(root).insert(tx, key, value)
    }

    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        at(root).remove(tx, key)
    }

    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let items = at(root).items(tx)?;
        Ok(items.into_iter().map(|i| (i.key, i.value)).collect())
    }

    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>> {
        at(root).check(tx)
    }
}
