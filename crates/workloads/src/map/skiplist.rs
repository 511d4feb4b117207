// SPDX-License-Identifier: Apache-2.0

//! A skip list of four levels, as PMDK's example `skiplist_map`.

use pm::{Ptr, Result, Transaction};

use super::{damaged, Map};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct SkipList;

const LEVELS: usize = 4;

pm::record! {
    #[derive(Clone, Debug)]
    struct Node {
        key: u64,
        value: u64,
        /// The next node of each level on which this one is.
        next: [Ptr<Node>; LEVELS],
    }
}

/// The number of levels of a key: one more with a probability of one half. It depends on the key
/// only, so that the same keys make the same list.
fn levels(key: u64) -> usize {
    (1 + sim::mix(key).trailing_ones() as usize).min(LEVELS)
}

fn at(root: u64) -> Ptr<Node> {
    Ptr::at(root)
}

/// For each level the pointer to the first node whose key is not less, and that node on the lowest
/// level.
type SearchPath = ([Ptr<Ptr<Node>>; LEVELS], Option<(Ptr<Node>, Node)>);

fn find(tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<SearchPath> {
    let mut links = [Ptr::NULL; LEVELS];
    let (mut here, mut node) = (at(root), tx.get(at(root))?);
    let mut found = None;
    for level in (0..LEVELS).rev() {
        found = None;
        while !node.next[level].is_null() {
            let next = tx.get(node.next[level])?;
            if next.key >= key {
                found = Some((node.next[level], next));
                break;
            }
            (here, node) = (node.next[level], next);
        }
        links[level] = Node::next(here).element(level);
    }
    Ok((links, found.filter(|(_, node)| node.key == key)))
}

impl Map for SkipList {
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64> {
        let head = Node {
            key: 0,
            value: 0,
            next: [Ptr::NULL; LEVELS],
        };
        Ok(tx.create(&head)?.offset())
    }

    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        Ok(find(tx, root, key)?.1.map(|(_, node)| node.value))
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>> {
        let (links, found) = find(tx, root, key)?;
        if let Some((here, old)) = found {
            tx.set(Node::value(here), &value)?;
            return Ok(Some(old.value));
        }
        let mut node = Node {
            key,
            value,
            next: [Ptr::NULL; LEVELS],
        };
        let links = &links[..levels(key)];
        for (next, link) in node.next.iter_mut().zip(links) {
            *next = tx.get(*link)?;
            tx.add(*link)?;
        }
        let new = tx.create(&node)?;
        links.iter().try_for_each(|link| tx.set(*link, &new))?;
        Ok(None)
    }

    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let (links, found) = find(tx, root, key)?;
        let Some((here, old)) = found else {
            return Ok(None);
        };
        for (link, next) in links.iter().zip(&old.next).take(levels(key)) {
            tx.set(*link, next)?;
        }
        tx.free(here)?;
        Ok(Some(old.value))
    }

    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let mut out = Vec::new();
        let mut next = tx.get(at(root))?.next[0];
        while !next.is_null() {
            let node = tx.get(next)?;
            out.push((node.key, node.value));
            next = node.next[0];
        }
        Ok(out)
    }

    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>> {
        let bad = |at: u64, text: &str| Err(damaged("skip list", at, text));
        let mut seen = vec![root];
        let mut wanted = [const { Vec::new() }; LEVELS];
        for level in 0..LEVELS {
            let mut next = tx.get(at(root))?.next[level];
            let mut last: Option<u64> = None;
            let mut found = Vec::new();
            while !next.is_null() {
                let node = tx.get(next)?;
                if last.is_some_and(|last| node.key <= last) {
                    return bad(next.offset(), "keys out of order");
                }
                last = Some(node.key);
                found.push(next.offset());
                if level == 0 {
                    let levels = wanted.iter_mut().take(levels(node.key));
                    levels.for_each(|all| all.push(next.offset()));
                }
                next = node.next[level];
            }
            if found != wanted[level] {
                return bad(
                    root,
                    &format!("level {level} has other nodes than it should"),
                );
            }
            if level == 0 {
                seen.append(&mut found);
            }
        }
        Ok(seen)
    }
}
