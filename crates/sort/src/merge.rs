// SPDX-License-Identifier: Apache-2.0

//! Merges sorted runs with a tree of losers.

use arrow_row::{Row, Rows};

use crate::Result;

/// Most rows of a run whose keys are in memory.
pub const MAX_BLOCK_ROWS: usize = 8192;

/// Rows in order, read block by block.
pub trait RunCursor {
    /// Reads the next block of at most `most` rows, and returns their normalised keys. `None` is
    /// the end.
    fn next_block(&mut self, most: usize) -> Result<Option<Rows>>;
}

/// A run, and the keys of its current block.
struct RunHead<R> {
    run: R,
    keys: Option<Rows>,
    next: usize,
}

impl<R: RunCursor> RunHead<R> {
    fn key(&self) -> Option<Row<'_>> {
        self.keys.as_ref().map(|keys| keys.row(self.next))
    }

    fn fill(&mut self, most: usize) -> Result<()> {
        self.keys = self.run.next_block(most)?;
        self.next = 0;
        Ok(())
    }
}

/// Merges runs: each node of the tree holds the loser of its comparison. The next row costs one
/// comparison per level.
pub struct LoserTree<R> {
    heads: Vec<RunHead<R>>,
    /// The overall winner is at index 0.
    nodes: Vec<usize>,
    block: usize,
}

impl<R: RunCursor> LoserTree<R> {
    /// A merge of runs, with blocks of `block` rows.
    pub fn new(runs: Vec<R>, block: usize) -> Result<LoserTree<R>> {
        let (count, block) = (runs.len(), block.clamp(1, MAX_BLOCK_ROWS));
        let mut heads = Vec::with_capacity(count);
        for run in runs {
            let mut head = RunHead {
                run,
                keys: None,
                next: 0,
            };
            head.fill(block)?;
            heads.push(head);
        }
        let mut tree = LoserTree {
            heads,
            nodes: vec![0; count],
            block,
        };
        let mut winners = vec![0; 2 * count];
        (0..count).for_each(|n| winners[count + n] = n);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if tree.before(a, b) { (a, b) } else { (b, a) };
            (winners[node], tree.nodes[node]) = (winner, loser);
        }
        if count > 0 {
            tree.nodes[0] = winners[1];
        }
        Ok(tree)
    }

    /// True if the next row of run `a` comes before that of run `b`. Of equal rows, that of the
    /// first run does.
    fn before(&self, a: usize, b: usize) -> bool {
        match (self.heads[a].key(), self.heads[b].key()) {
            (Some(x), Some(y)) => x.cmp(&y).then(a.cmp(&b)).is_lt(),
            (head, _) => head.is_some(),
        }
    }

    /// The run of the next row, its number, and the row's index in the current block.
    pub fn next(&self) -> Option<(&R, usize, usize)> {
        let number = *self.nodes.first()?;
        let head = &self.heads[number];
        head.keys.as_ref()?;
        Some((&head.run, number, head.next))
    }

    /// Moves past the next row.
    pub fn advance(&mut self) -> Result<()> {
        let run = self.nodes[0];
        let head = &mut self.heads[run];
        head.next += 1;
        let at_hand = head.keys.as_ref().map_or(0, Rows::num_rows);
        if head.next >= at_hand {
            head.fill(self.block)?;
        }
        let (mut winner, mut node) = (run, (run + self.heads.len()) / 2);
        while node > 0 {
            if self.before(self.nodes[node], winner) {
                std::mem::swap(&mut self.nodes[node], &mut winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
        Ok(())
    }
}
