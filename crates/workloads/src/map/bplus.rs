// SPDX-License-Identifier: Apache-2.0

//! A B+ tree similar to pmemkv's `tree3`. Leaves are unsorted, so that an insertion changes a slot
//! and a count; they form a chain and are never merged. Unlike in `tree3`, inner nodes are in
//! persistent memory, too.

use pm::{Ptr, Result, Transaction};

use super::{damaged, Map};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct BPlus;

/// Most keys of a node.
const KEYS: usize = 14;

pm::record! {
    #[derive(Clone, Debug)]
    struct Node {
        /// 0: a leaf.
        level: u64,
        count: u64,
        /// Of an inner node, in order: key n is the lower bound of child n + 1.
        keys: [u64; KEYS],
        /// Children; of a leaf the values, and the next leaf as the last one.
        refs: [u64; KEYS + 1],
    }
}

pm::record! {
    #[derive(Clone, Debug)]
    struct Root {
        top: Ptr<Node>,
    }
}

impl Node {
    fn empty(level: u64) -> Node {
        Node {
            level,
            count: 0,
            keys: [0; KEYS],
            refs: [0; KEYS + 1],
        }
    }

    fn len(&self) -> usize {
        (self.count as usize).min(KEYS)
    }

    fn is_full(&self) -> bool {
        self.len() == KEYS
    }

    /// The index of the child that may have a key.
    fn child_index(&self, key: u64) -> usize {
        self.keys[..self.len()].partition_point(|first| *first <= key)
    }

    fn slot(&self, key: u64) -> Option<usize> {
        self.keys[..self.len()].iter().position(|own| *own == key)
    }
}

fn at(root: u64) -> Ptr<Root> {
    Ptr::at(root)
}

/// The leaf that may have a key.
fn find_leaf(tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<(Ptr<Node>, Node)> {
    let mut here = tx.get(Root::top(at(root)))?;
    let mut node = tx.get(here)?;
    while node.level > 0 {
        here = Ptr::at(node.refs[node.child_index(key)]);
        node = tx.get(here)?;
    }
    Ok((here, node))
}

/// Splits a full node; returns the least key of the new node, and the new node.
fn split(tx: &mut Transaction<'_>, here: Ptr<Node>, node: &Node) -> Result<(u64, Ptr<Node>)> {
    let half = KEYS / 2;
    let (mut left, mut right) = (Node::empty(node.level), Node::empty(node.level));
    let first;
    if node.level > 0 {
        first = node.keys[half];
        left.keys[..half].copy_from_slice(&node.keys[..half]);
        left.refs[..=half].copy_from_slice(&node.refs[..=half]);
        right.keys[..KEYS - half - 1].copy_from_slice(&node.keys[half + 1..]);
        right.refs[..KEYS - half].copy_from_slice(&node.refs[half + 1..]);
        (left.count, right.count) = (half as u64, (KEYS - half - 1) as u64);
    } else {
        let mut items: Vec<(u64, u64)> = (0..KEYS).map(|n| (node.keys[n], node.refs[n])).collect();
        items.sort_unstable();
        first = items[half].0;
        for (to, part) in [(&mut left, &items[..half]), (&mut right, &items[half..])] {
            for (n, (key, value)) in part.iter().enumerate() {
                (to.keys[n], to.refs[n]) = (*key, *value);
            }
            to.count = part.len() as u64;
        }
        right.refs[KEYS] = node.refs[KEYS];
    }
    tx.add(here)?;
    let new = tx.create(&right)?;
    if left.level == 0 {
        left.refs[KEYS] = new.offset();
    }
    tx.set(here, &left)?;
    Ok((first, new))
}

impl Map for BPlus {
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64> {
        let top = tx.create(&Node::empty(0))?;
        Ok(tx.create(&Root { top })?.offset())
    }

    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let (_, node) = find_leaf(tx, root, key)?;
        Ok(node.slot(key).map(|n| node.refs[n]))
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>> {
        let mut here = tx.get(Root::top(at(root)))?;
        let mut node = tx.get(here)?;
        let (there, own) = find_leaf(tx, root, key)?;
        if let Some(n) = own.slot(key) {
            tx.set(Node::refs(there).element(n), &value)?;
            return Ok(Some(own.refs[n]));
        }
        if node.is_full() {
            let (first, new) = split(tx, here, &node)?;
            let mut top = Node::empty(node.level + 1);
            (top.count, top.keys[0]) = (1, first);
            (top.refs[0], top.refs[1]) = (here.offset(), new.offset());
            here = tx.create(&top)?;
            node = top;
            tx.set(Root::top(at(root)), &here)?;
        }
        // Full nodes are split on the way down, so that a parent always has room.
        while node.level > 0 {
            let child_index = node.child_index(key);
            let below: Ptr<Node> = Ptr::at(node.refs[child_index]);
            let child = tx.get(below)?;
            if !child.is_full() {
                (here, node) = (below, child);
                continue;
            }
            let (first, new) = split(tx, below, &child)?;
            let len = node.len();
            node.keys.copy_within(child_index..len, child_index + 1);
            node.refs
                .copy_within(child_index + 1..=len, child_index + 2);
            (node.keys[child_index], node.refs[child_index + 1]) = (first, new.offset());
            node.count += 1;
            tx.set(here, &node)?;
        }
        let n = node.len();
        tx.add(Node::count(here))?;
        tx.add(Node::keys(here).element(n))?;
        tx.set(Node::refs(here).element(n), &value)?;
        tx.set(Node::keys(here).element(n), &key)?;
        tx.set(Node::count(here), &(node.count + 1))?;
        Ok(None)
    }

    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let (here, node) = find_leaf(tx, root, key)?;
        let Some(n) = node.slot(key) else {
            return Ok(None);
        };
        // The last key takes its slot.
        let last = node.len() - 1;
        if n != last {
            tx.set(Node::keys(here).element(n), &node.keys[last])?;
            tx.set(Node::refs(here).element(n), &node.refs[last])?;
        }
        tx.set(Node::count(here), &(node.count - 1))?;
        Ok(Some(node.refs[n]))
    }

    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let (mut here, mut node) = find_leaf(tx, root, 0)?;
        let mut out = Vec::new();
        loop {
            out.extend((0..node.len()).map(|n| (node.keys[n], node.refs[n])));
            here = match node.refs[KEYS] {
                0 => return Ok(out),
                next if next == here.offset() => {
                    return Err(damaged("B+ tree", next, "a chain without an end"))
                }
                next => Ptr::at(next),
            };
            node = tx.get(here)?;
        }
    }

    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>> {
        let top = tx.get(Root::top(at(root)))?;
        let mut seen = vec![root];
        let mut leaves = Vec::new();
        let bounds = (0, u64::MAX);
        check(tx, top, None, bounds, &mut seen, &mut leaves)?;
        for (n, (here, next)) in leaves.iter().enumerate() {
            let wanted = leaves.get(n + 1).map_or(0, |next| next.0);
            if *next != wanted {
                return Err(damaged(
                    "B+ tree",
                    *here,
                    "another leaf is next in the chain",
                ));
            }
        }
        Ok(seen)
    }
}

fn check(
    tx: &mut Transaction<'_>,
    here: Ptr<Node>,
    level: Option<u64>,
    (least, most): (u64, u64),
    seen: &mut Vec<u64>,
    leaves: &mut Vec<(u64, u64)>,
) -> Result<()> {
    let bad = |text: &str| Err(damaged("B+ tree", here.offset(), text));
    let node = tx.get(here)?;
    if level.is_some_and(|level| node.level != level) || node.level > 20 {
        return bad(&format!("a node of level {}", node.level));
    }
    if node.count > KEYS as u64 {
        return bad(&format!("{} keys", node.count));
    }
    if seen.contains(&here.offset()) {
        return bad("it is the child of two");
    }
    seen.push(here.offset());
    let keys = &node.keys[..node.len()];
    if keys.iter().any(|key| *key < least || *key > most) {
        return bad("a key that belongs elsewhere");
    }
    if node.level == 0 {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        leaves.push((here.offset(), node.refs[KEYS]));
        return match sorted.windows(2).all(|w| w[0] < w[1]) {
            true => Ok(()),
            false => bad("a key is there twice"),
        };
    }
    if keys.is_empty() || keys.windows(2).any(|w| w[0] >= w[1]) {
        return bad("keys out of order");
    }
    for n in 0..=keys.len() {
        let least = n.checked_sub(1).map_or(least, |n| keys[n]);
        let most = keys.get(n).map_or(most, |key| key - 1);
        let below = Ptr::at(node.refs[n]);
        check(tx, below, Some(node.level - 1), (least, most), seen, leaves)?;
    }
    Ok(())
}
