// SPDX-License-Identifier: Apache-2.0

//! A red-black tree, as PMDK's example `rbtree_map`: with a sentinel below the leaves and above the
//! root.

use pm::{Ptr, Result, Transaction};

use super::{damaged, Map};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct RbTree;

pm::record! {
    #[derive(Clone, Debug)]
    struct Node {
        key: u64,
        value: u64,
        /// 1 for red, 0 for black.
        red: u64,
        parent: Ptr<Node>,
        child: [Ptr<Node>; 2],
    }
}

pm::record! {
    #[derive(Clone, Debug)]
    struct Root {
        count: u64,
        nil: Ptr<Node>,
        top: Ptr<Node>,
    }
}

/// A tree in a transaction.
struct Tree<'a, 'b> {
    tx: &'a mut Transaction<'b>,
    root: Ptr<Root>,
    nil: Ptr<Node>,
}

type NodePtr = Ptr<Node>;

impl<'a, 'b> Tree<'a, 'b> {
    fn new(tx: &'a mut Transaction<'b>, root: u64) -> Result<Tree<'a, 'b>> {
        let root = Ptr::at(root);
        let nil = tx.get(Root::nil(root))?;
        Ok(Tree { tx, root, nil })
    }

    /// Announces changes to whole nodes and to the root, so that their records are made together.
    /// The sentinel is announced only by what changes it.
    fn announce(&mut self, nodes: &[NodePtr]) -> Result<()> {
        self.tx.add(self.root)?;
        let nil = self.nil;
        let mut real = nodes.iter().filter(|node| **node != nil);
        real.try_for_each(|node| self.tx.add(*node))
    }

    fn top(&mut self) -> Result<NodePtr> {
        self.tx.get(Root::top(self.root))
    }

    fn parent(&mut self, of: NodePtr) -> Result<NodePtr> {
        self.tx.get(Node::parent(of))
    }

    fn set_parent(&mut self, of: NodePtr, to: NodePtr) -> Result<()> {
        self.tx.set(Node::parent(of), &to)
    }

    fn child(&mut self, of: NodePtr, side: usize) -> Result<NodePtr> {
        self.tx.get(Node::child(of).element(side))
    }

    fn set_child(&mut self, of: NodePtr, side: usize, to: NodePtr) -> Result<()> {
        self.tx.set(Node::child(of).element(side), &to)
    }

    fn is_red(&mut self, node: NodePtr) -> Result<bool> {
        Ok(self.tx.get(Node::red(node))? != 0)
    }

    fn set_color(&mut self, node: NodePtr, red: bool) -> Result<()> {
        match self.is_red(node)? == red {
            true => Ok(()),
            false => self.tx.set(Node::red(node), &u64::from(red)),
        }
    }

    /// The side of its parent on which a node is.
    fn child_side(&mut self, node: NodePtr, parent: NodePtr) -> Result<usize> {
        Ok(usize::from(self.child(parent, 0)? != node))
    }

    /// Puts another node, or none, in the place of a node.
    fn replace(&mut self, old: NodePtr, new: NodePtr) -> Result<()> {
        let parent = self.parent(old)?;
        if parent == self.nil {
            self.tx.set(Root::top(self.root), &new)?;
        } else {
            let side = self.child_side(old, parent)?;
            self.set_child(parent, side, new)?;
        }
        self.set_parent(new, parent)
    }

    /// Rotates a node down on a side, and its child of the other side up.
    fn rotate(&mut self, node: NodePtr, side: usize) -> Result<()> {
        let up = self.child(node, 1 - side)?;
        let inner = self.child(up, side)?;
        let parent = self.parent(node)?;
        self.announce(&[node, up, inner, parent])?;
        self.replace(node, up)?;
        self.set_child(node, 1 - side, inner)?;
        if inner != self.nil {
            self.set_parent(inner, node)?;
        }
        self.set_child(up, side, node)?;
        self.set_parent(node, up)
    }

    fn find(&mut self, key: u64) -> Result<Option<(NodePtr, Node)>> {
        let mut at = self.top()?;
        while at != self.nil {
            let node = self.tx.get(at)?;
            if node.key == key {
                return Ok(Some((at, node)));
            }
            at = node.child[usize::from(key > node.key)];
        }
        Ok(None)
    }

    fn add_count(&mut self, change: i64) -> Result<()> {
        let count = Root::count(self.root);
        let now = self.tx.get(count)?;
        self.tx.set(count, &now.wrapping_add_signed(change))
    }

    fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>> {
        let (mut parent, mut side) = (self.nil, 0);
        let mut at = self.top()?;
        while at != self.nil {
            let node = self.tx.get(at)?;
            if node.key == key {
                self.tx.set(Node::value(at), &value)?;
                return Ok(Some(node.value));
            }
            (parent, side) = (at, usize::from(key > node.key));
            at = node.child[side];
        }
        // A red parent is not the top, so it has a parent.
        let (mut grand, mut uncle) = (self.nil, self.nil);
        if parent != self.nil && self.is_red(parent)? {
            grand = self.parent(parent)?;
            let side = self.child_side(parent, grand)?;
            uncle = self.child(grand, 1 - side)?;
        }
        self.announce(&[parent, grand, uncle])?;
        let mut node = self.tx.create(&Node {
            key,
            value,
            red: 1,
            parent,
            child: [self.nil; 2],
        })?;
        self.add_count(1)?;
        match parent == self.nil {
            true => self.tx.set(Root::top(self.root), &node)?,
            false => self.set_child(parent, side, node)?,
        }
        loop {
            let mut parent = self.parent(node)?;
            if !self.is_red(parent)? {
                break;
            }
            let grand = self.parent(parent)?;
            let side = self.child_side(parent, grand)?;
            let uncle = self.child(grand, 1 - side)?;
            self.announce(&[parent, grand, uncle])?;
            if self.is_red(uncle)? {
                self.set_color(parent, false)?;
                self.set_color(uncle, false)?;
                self.set_color(grand, true)?;
                node = grand;
                continue;
            }
            if self.child_side(node, parent)? != side {
                self.rotate(parent, side)?;
                (node, parent) = (parent, node);
            }
            self.set_color(parent, false)?;
            self.set_color(grand, true)?;
            self.rotate(grand, 1 - side)?;
        }
        let top = self.top()?;
        self.set_color(top, false)?;
        Ok(None)
    }

    fn remove(&mut self, key: u64) -> Result<Option<u64>> {
        let Some((at, node)) = self.find(key)? else {
            return Ok(None);
        };
        self.announce(&[at, node.parent, node.child[0], node.child[1]])?;
        self.add_count(-1)?;
        let mut was_red = node.red != 0;
        let low;
        if node.child[0] == self.nil {
            low = node.child[1];
            self.replace(at, low)?;
        } else if node.child[1] == self.nil {
            low = node.child[0];
            self.replace(at, low)?;
        } else {
            // The next node takes its place.
            let mut next = node.child[1];
            loop {
                let left = self.child(next, 0)?;
                if left == self.nil {
                    break;
                }
                next = left;
            }
            was_red = self.is_red(next)?;
            low = self.child(next, 1)?;
            if next == node.child[1] {
                self.set_parent(low, next)?;
            } else {
                self.replace(next, low)?;
                self.set_child(next, 1, node.child[1])?;
                self.set_parent(node.child[1], next)?;
            }
            self.replace(at, next)?;
            self.set_child(next, 0, node.child[0])?;
            self.set_parent(node.child[0], next)?;
            self.set_color(next, node.red != 0)?;
        }
        if !was_red {
            self.blacken(low)?;
        }
        self.tx.free(at)?;
        Ok(Some(node.value))
    }

    /// All paths through a node lack a black node.
    fn blacken(&mut self, mut node: NodePtr) -> Result<()> {
        while node != self.top()? && !self.is_red(node)? {
            let parent = self.parent(node)?;
            let side = self.child_side(node, parent)?;
            let mut other = self.child(parent, 1 - side)?;
            if self.is_red(other)? {
                self.set_color(other, false)?;
                self.set_color(parent, true)?;
                self.rotate(parent, side)?;
                other = self.child(parent, 1 - side)?;
            }
            let (near, mut far) = (self.child(other, side)?, self.child(other, 1 - side)?);
            if !self.is_red(near)? && !self.is_red(far)? {
                self.set_color(other, true)?;
                node = parent;
                continue;
            }
            if !self.is_red(far)? {
                self.set_color(near, false)?;
                self.set_color(other, true)?;
                self.rotate(other, 1 - side)?;
                (far, other) = (other, near);
            }
            let red = self.is_red(parent)?;
            self.set_color(other, red)?;
            self.set_color(parent, false)?;
            self.set_color(far, false)?;
            self.rotate(parent, side)?;
            node = self.top()?;
        }
        self.set_color(node, false)
    }

    fn all(&mut self) -> Result<Vec<(NodePtr, Node)>> {
        let mut out = Vec::new();
        let mut open = vec![self.top()?];
        while let Some(at) = open.pop().filter(|_| out.len() < 1 << 24) {
            if at != self.nil {
                let node = self.tx.get(at)?;
                open.extend(node.child);
                out.push((at, node));
            }
        }
        Ok(out)
    }

    /// Checks the subtree of a node; returns the number of black nodes on each path down.
    fn check(
        &mut self,
        at: NodePtr,
        (parent, parent_is_red): (NodePtr, bool),
        (least, most): (Option<u64>, Option<u64>),
        seen: &mut Vec<u64>,
    ) -> Result<u32> {
        if at == self.nil {
            return Ok(0);
        }
        let bad = |text: &str| Err(damaged("red-black tree", at.offset(), text));
        let node = self.tx.get(at)?;
        if seen.len() > 1 << 24 || node.parent != parent {
            return bad("its parent is another one");
        }
        if least.is_some_and(|key| node.key <= key) || most.is_some_and(|key| node.key >= key) {
            return bad("keys out of order");
        }
        if node.red > 1 || node.red == 1 && parent_is_red {
            return bad("a red node below a red one");
        }
        seen.push(at.offset());
        let from = (at, node.red == 1);
        let left = self.check(node.child[0], from, (least, Some(node.key)), seen)?;
        let right = self.check(node.child[1], from, (Some(node.key), most), seen)?;
        match left == right {
            true => Ok(left + u32::from(node.red == 0)),
            false => bad("more black nodes on one way down than on another"),
        }
    }
}

impl Map for RbTree {
    fn create(&self, tx: &mut Transaction<'_>) -> Result<u64> {
        let nil = tx.create(&Node {
            key: 0,
            value: 0,
            red: 0,
            parent: Ptr::NULL,
            child: [Ptr::NULL; 2],
        })?;
        let top = nil;
        Ok(tx.create(&Root { count: 0, nil, top })?.offset())
    }

    fn get(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        let found = Tree::new(tx, root)?.find(key)?;
        Ok(found.map(|(_, node)| node.value))
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_>,
        root: u64,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>> {
        Tree::new(tx, root)?.insert(key, value)
    }

    fn remove(&self, tx: &mut Transaction<'_>, root: u64, key: u64) -> Result<Option<u64>> {
        Tree::new(tx, root)?.remove(key)
    }

    fn items(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let all = Tree::new(tx, root)?.all()?;
        Ok(all.into_iter().map(|(_, n)| (n.key, n.value)).collect())
    }

    fn check(&self, tx: &mut Transaction<'_>, root: u64) -> Result<Vec<u64>> {
        let mut tree = Tree::new(tx, root)?;
        let mut seen = vec![root, tree.nil.offset()];
        let (nil, top) = (tree.nil, tree.top()?);
        if tree.is_red(nil)? {
            return Err(damaged("red-black tree", nil.offset(), "a red sentinel"));
        }
        tree.check(top, (nil, true), (None, None), &mut seen)?;
        let count = tree.tx.get(Root::count(tree.root))?;
        match seen.len() as u64 - 2 == count {
            true => Ok(seen),
            false => Err(damaged(
                "red-black tree",
                root,
                &format!("it has {} nodes, and says {count}", seen.len() - 2),
            )),
        }
    }
}
