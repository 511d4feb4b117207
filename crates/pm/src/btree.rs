// SPDX-License-Identifier: Apache-2.0

//! A B-tree with 64-bit keys in persistent memory.
//!
//! Each node has up to 7 items, so that it fills three lines. Insertion splits full nodes on the
//! way down, and removal fills sparse ones, so neither goes back up.

use crate::{Error, Ptr, Result, Thread, Transaction, Value};

/// Fewest children of a node other than the root.
const DEGREE: usize = 4;
/// Most items of a node.
const ITEMS: usize = 2 * DEGREE - 1;

crate::record! {
    /// A key and its value, mostly the offset of an object of the program.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Item {
        /// The key.
        pub key: u64,
        /// The value.
        pub value: u64,
    }
}

crate::record! {
    /// A node of a tree.
    #[derive(Clone, Debug)]
    struct Node {
        count: u64,
        items: [Item; ITEMS],
        children: [Ptr<Node>; ITEMS + 1],
    }
}

crate::record! {
    /// The root of a tree, for [`Tree`].
    #[derive(Clone, Debug)]
    pub struct Root {
        /// Items of the tree.
        count: u64,
        /// The topmost node; null in an empty tree.
        top: Ptr<Node>,
    }
}

impl Node {
    fn empty() -> Node {
        Node {
            count: 0,
            items: [Item::default(); ITEMS],
            children: [Ptr::NULL; ITEMS + 1],
        }
    }

    fn len(&self) -> usize {
        self.count as usize
    }

    fn is_leaf(&self) -> bool {
        self.children[0].is_null()
    }

    fn is_full(&self) -> bool {
        self.len() == ITEMS
    }

    /// The position of a key, or the one at which it would be inserted.
    fn find(&self, key: u64) -> std::result::Result<usize, usize> {
        self.items[..self.len()].binary_search_by_key(&key, |item| item.key)
    }

    /// Inserts an item, and the child to the right of it.
    fn insert(&mut self, at: usize, item: Item, child: Ptr<Node>) {
        let n = self.len();
        self.items.copy_within(at..n, at + 1);
        self.children.copy_within(at + 1..n + 1, at + 2);
        self.items[at] = item;
        self.children[at + 1] = child;
        self.count += 1;
    }

    /// Removes an item, and the child to the right of it.
    fn remove(&mut self, at: usize) -> Item {
        let n = self.len();
        let item = self.items[at];
        self.items.copy_within(at + 1..n, at);
        self.children.copy_within(at + 2..n + 1, at + 1);
        self.items[n - 1] = Item::default();
        self.children[n] = Ptr::NULL;
        self.count -= 1;
        item
    }
}

/// The source of reads of a tree: a thread or its transaction.
pub trait Reader {
    /// Reads a value.
    fn value<T: Value>(&mut self, at: Ptr<T>) -> Result<T>;
}

impl Reader for Thread {
    fn value<T: Value>(&mut self, at: Ptr<T>) -> Result<T> {
        self.get(at)
    }
}

impl Reader for Transaction<'_> {
    fn value<T: Value>(&mut self, at: Ptr<T>) -> Result<T> {
        self.get(at)
    }
}

/// A tree of a pool. Changes need a transaction, and exclude any other use of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree(Ptr<Root>);

impl Tree {
    /// Creates an empty tree.
    pub fn create(tx: &mut Transaction<'_>) -> Result<Tree> {
        let root = Root {
            count: 0,
            top: Ptr::NULL,
        };
        Ok(Tree(tx.create(&root)?))
    }

    /// The tree with this root.
    pub fn at(root: Ptr<Root>) -> Tree {
        Tree(root)
    }

    /// The root.
    pub fn root(self) -> Ptr<Root> {
        self.0
    }

    /// Number of items.
    pub fn len<R: Reader>(self, from: &mut R) -> Result<u64> {
        from.value(Root::count(self.0))
    }

    /// True without items.
    pub fn is_empty<R: Reader>(self, from: &mut R) -> Result<bool> {
        Ok(self.len(from)? == 0)
    }

    /// The value of a key.
    pub fn get<R: Reader>(self, from: &mut R, key: u64) -> Result<Option<u64>> {
        let mut at = from.value(Root::top(self.0))?;
        while !at.is_null() {
            let node = from.value(at)?;
            match node.find(key) {
                Ok(n) => return Ok(Some(node.items[n].value)),
                Err(n) => at = node.children[n],
            }
        }
        Ok(None)
    }

    /// Inserts or replaces the value of a key; returns the former one.
    pub fn insert(self, tx: &mut Transaction<'_>, key: u64, value: u64) -> Result<Option<u64>> {
        let item = Item { key, value };
        let mut root = tx.get(self.0)?;
        // Logged here, so that it shares a fence with the first node.
        tx.add(Root::count(self.0))?;
        if root.top.is_null() {
            let mut node = Node::empty();
            node.insert(0, item, Ptr::NULL);
            root.top = tx.create(&node)?;
            root.count = 1;
            tx.set(self.0, &root)?;
            return Ok(None);
        }
        let mut at = root.top;
        let mut node = tx.get(at)?;
        if node.is_full() {
            let mut top = Node::empty();
            top.children[0] = at;
            let (middle, right) = split(tx, at, &mut node)?;
            top.insert(0, middle, right);
            at = tx.create(&top)?;
            tx.set(Root::top(self.0), &at)?;
            node = top;
        }
        loop {
            let place = match node.find(key) {
                Ok(n) => {
                    let old = node.items[n].value;
                    let place = Node::items(at).element(n);
                    tx.set(Item::value(place), &value)?;
                    return Ok(Some(old));
                }
                Err(place) => place,
            };
            if node.is_leaf() {
                node.insert(place, item, Ptr::NULL);
                store_node(tx, at, &node)?;
                tx.set(Root::count(self.0), &(root.count + 1))?;
                return Ok(None);
            }
            let below = node.children[place];
            let mut child = tx.get(below)?;
            if child.is_full() {
                let (middle, right) = split(tx, below, &mut child)?;
                node.insert(place, middle, right);
                store_node(tx, at, &node)?;
                // The middle item may have the key.
                continue;
            }
            (at, node) = (below, child);
        }
    }

    /// Removes a key; returns its value.
    pub fn remove(self, tx: &mut Transaction<'_>, key: u64) -> Result<Option<u64>> {
        let root = tx.get(self.0)?;
        // No node is moved for a missing key.
        if self.get(tx, key)?.is_none() {
            return Ok(None);
        }
        tx.add(Root::count(self.0))?;
        let value = remove_below(tx, root.top, key)?;
        let top = tx.get(root.top)?;
        if top.count == 0 {
            tx.set(Root::top(self.0), &top.children[0])?;
            tx.free(root.top)?;
        }
        tx.set(Root::count(self.0), &(root.count - 1))?;
        Ok(Some(value))
    }

    /// All items, in the order of their keys.
    pub fn items<R: Reader>(self, from: &mut R) -> Result<Vec<Item>> {
        let mut iter = self.iter(from)?;
        let mut out = Vec::new();
        while let Some(item) = iter.next(from)? {
            out.push(item);
        }
        Ok(out)
    }

    /// Iterates over all items in the order of their keys. The tree may not change meanwhile.
    pub fn iter<R: Reader>(self, from: &mut R) -> Result<Iter> {
        let mut iter = Iter(Vec::new());
        let top = from.value(Root::top(self.0))?;
        iter.descend(from, top)?;
        Ok(iter)
    }

    /// Checks the invariants of the tree; returns all offsets that belong to it, without those of
    /// values.
    pub fn check<R: Reader>(self, from: &mut R) -> Result<Vec<u64>> {
        let root = from.value(self.0)?;
        let mut seen = vec![self.0.offset()];
        let mut count = 0;
        if !root.top.is_null() {
            let mut depth = None;
            check(
                from,
                root.top,
                (None, None),
                (0, &mut depth),
                &mut seen,
                &mut count,
            )?;
        }
        match count == root.count {
            true => Ok(seen),
            false => Err(damaged(
                self.0.offset(),
                &format!("it has {count} items, and says {}", root.count),
            )),
        }
    }
}

fn damaged(at: u64, what: &str) -> Error {
    Error::Corrupt(format!("the B-tree is damaged at {at:#x}: {what}"))
}

/// Bounds of the keys in a part of a tree.
type Bounds = (Option<u64>, Option<u64>);

fn check<R: Reader>(
    from: &mut R,
    at: Ptr<Node>,
    (least, most): Bounds,
    (depth, leaves): (u32, &mut Option<u32>),
    seen: &mut Vec<u64>,
    count: &mut u64,
) -> Result<()> {
    let node = from.value(at)?;
    let bad = |what: &str| Err(damaged(at.offset(), what));
    let fewest = if depth == 0 { 1 } else { DEGREE as u64 - 1 };
    if !(fewest..=ITEMS as u64).contains(&node.count) {
        return bad(&format!("{} items", node.count));
    }
    if seen.contains(&at.offset()) || depth > 64 {
        return bad("it is reached twice");
    }
    seen.push(at.offset());
    *count += node.count;
    let items = &node.items[..node.len()];
    let below = least.is_some_and(|least| items[0].key <= least);
    let above = most.is_some_and(|most| items[items.len() - 1].key >= most);
    if below || above || items.windows(2).any(|w| w[0].key >= w[1].key) {
        return bad("keys out of order");
    }
    if node.is_leaf() {
        return match *leaves.get_or_insert(depth) == depth {
            true => Ok(()),
            false => bad("a leaf that is nearer to the root than others"),
        };
    }
    for (n, child) in node.children[..=node.len()].iter().enumerate() {
        if child.is_null() {
            return bad("a child is missing");
        }
        let least = n.checked_sub(1).map(|n| items[n].key).or(least);
        let most = items.get(n).map(|item| item.key).or(most);
        check(
            from,
            *child,
            (least, most),
            (depth + 1, leaves),
            seen,
            count,
        )?;
    }
    Ok(())
}

/// Stores a node that has changed.
fn store_node(tx: &mut Transaction<'_>, at: Ptr<Node>, node: &Node) -> Result<()> {
    tx.set(at, node)
}

/// Splits a full node; returns the middle item, and the new node to the right of it.
fn split(tx: &mut Transaction<'_>, at: Ptr<Node>, node: &mut Node) -> Result<(Item, Ptr<Node>)> {
    let middle = node.items[DEGREE - 1];
    let mut right = Node::empty();
    right.count = DEGREE as u64 - 1;
    right.items[..DEGREE - 1].copy_from_slice(&node.items[DEGREE..]);
    right.children[..DEGREE].copy_from_slice(&node.children[DEGREE..]);
    node.count = DEGREE as u64 - 1;
    node.items[DEGREE - 1..].fill(Item::default());
    node.children[DEGREE..].fill(Ptr::NULL);
    store_node(tx, at, node)?;
    Ok((middle, tx.create(&right)?))
}

/// Removes an existing key below a node. The node has more items than it needs, or is the topmost
/// one.
fn remove_below(tx: &mut Transaction<'_>, at: Ptr<Node>, key: u64) -> Result<u64> {
    let mut at = at;
    loop {
        let mut node = tx.get(at)?;
        match node.find(key) {
            Ok(n) if node.is_leaf() => {
                let value = node.remove(n).value;
                store_node(tx, at, &node)?;
                return Ok(value);
            }
            Ok(n) => {
                let value = node.items[n].value;
                let (left, right) = (node.children[n], node.children[n + 1]);
                if tx.get(left)?.len() >= DEGREE {
                    // The item before takes its place.
                    let item = outermost_item(tx, left, true)?;
                    tx.set(Node::items(at).element(n), &item)?;
                    remove_below(tx, left, item.key)?;
                    return Ok(value);
                }
                if tx.get(right)?.len() >= DEGREE {
                    let item = outermost_item(tx, right, false)?;
                    tx.set(Node::items(at).element(n), &item)?;
                    remove_below(tx, right, item.key)?;
                    return Ok(value);
                }
                merge(tx, at, &mut node, n)?;
                at = left;
            }
            Err(_) if node.is_leaf() => {
                return Err(damaged(at.offset(), "a key is not where it was"));
            }
            Err(n) => at = ensure_spare_item(tx, at, &mut node, n)?,
        }
    }
}

/// The last or the first item below a node.
fn outermost_item(tx: &mut Transaction<'_>, at: Ptr<Node>, last: bool) -> Result<Item> {
    let mut node = tx.get(at)?;
    while !node.is_leaf() {
        let n = if last { node.len() } else { 0 };
        node = tx.get(node.children[n])?;
    }
    Ok(node.items[if last { node.len() - 1 } else { 0 }])
}

/// Joins child `n`, the item to the right of it, and the child to the right of that.
fn merge(tx: &mut Transaction<'_>, at: Ptr<Node>, node: &mut Node, n: usize) -> Result<()> {
    let (left_at, right_at) = (node.children[n], node.children[n + 1]);
    let (mut left, right) = (tx.get(left_at)?, tx.get(right_at)?);
    let count = left.len();
    left.items[count] = node.remove(n);
    left.items[count + 1..][..right.len()].copy_from_slice(&right.items[..right.len()]);
    left.children[count + 1..][..=right.len()].copy_from_slice(&right.children[..=right.len()]);
    left.count += right.count + 1;
    store_node(tx, left_at, &left)?;
    store_node(tx, at, node)?;
    tx.free(right_at)
}

/// Makes sure that child `n` has more items than it needs; returns the node that has its items.
fn ensure_spare_item(
    tx: &mut Transaction<'_>,
    at: Ptr<Node>,
    node: &mut Node,
    n: usize,
) -> Result<Ptr<Node>> {
    let below = node.children[n];
    let mut child = tx.get(below)?;
    if child.len() >= DEGREE {
        return Ok(below);
    }
    if n > 0 {
        let left_at = node.children[n - 1];
        let mut left = tx.get(left_at)?;
        if left.len() >= DEGREE {
            let last = left.len() - 1;
            let moved = left.children[last + 1];
            let item = left.remove(last);
            let first = child.children[0];
            child.insert(0, node.items[n - 1], first);
            child.children[0] = moved;
            node.items[n - 1] = item;
            store_node(tx, left_at, &left)?;
            store_node(tx, below, &child)?;
            store_node(tx, at, node)?;
            return Ok(below);
        }
    }
    if n < node.len() {
        let right_at = node.children[n + 1];
        let mut right = tx.get(right_at)?;
        if right.len() >= DEGREE {
            let moved = right.children[0];
            let second = right.children[1];
            let item = right.remove(0);
            right.children[0] = second;
            let count = child.len();
            child.insert(count, node.items[n], moved);
            node.items[n] = item;
            store_node(tx, right_at, &right)?;
            store_node(tx, below, &child)?;
            store_node(tx, at, node)?;
            return Ok(below);
        }
        merge(tx, at, node, n)?;
        return Ok(below);
    }
    merge(tx, at, node, n - 1)?;
    Ok(node.children[n - 1])
}

/// See [`Tree::iter`].
#[derive(Clone, Debug)]
pub struct Iter(Vec<(Node, usize)>);

impl Iter {
    /// Descends to the first item.
    fn descend<R: Reader>(&mut self, from: &mut R, mut at: Ptr<Node>) -> Result<()> {
        while !at.is_null() {
            let node = from.value(at)?;
            at = node.children[0];
            self.0.push((node, 0));
        }
        Ok(())
    }

    /// The next item.
    pub fn next<R: Reader>(&mut self, from: &mut R) -> Result<Option<Item>> {
        while let Some((node, n)) = self.0.last_mut() {
            if *n >= node.len() {
                self.0.pop();
                continue;
            }
            let (item, right) = (node.items[*n], node.children[*n + 1]);
            *n += 1;
            self.descend(from, right)?;
            return Ok(Some(item));
        }
        Ok(None)
    }
}
