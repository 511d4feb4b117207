// SPDX-License-Identifier: Apache-2.0

//! Merges shards: tables that several hosts have sorted.

use arrow_array::RecordBatch;
use arrow_row::Rows;
use arrow_select::interleave::interleave_record_batch;

use crate::guard::guarded;
use crate::key::SortKey;
use crate::merge::{LoserTree, RunCursor, MAX_BLOCK_ROWS};
use crate::{Error, OrderBy, Result, Table};

/// Reads a shard block by block.
struct ShardCursor<'a> {
    key: &'a SortKey,
    batch: &'a RecordBatch,
    /// The first row of the current block, and of the next one.
    first: usize,
    next: usize,
}

impl RunCursor for ShardCursor<'_> {
    fn next_block(&mut self, most: usize) -> Result<Option<Rows>> {
        self.first = self.next;
        let rows = most.min(self.batch.num_rows() - self.next);
        if rows == 0 {
            return Ok(None);
        }
        self.next += rows;
        let part = self.batch.slice(self.first, rows);
        self.key.rows(&self.key.columns_of(&part)).map(Some)
    }
}

/// Refuses a table that is not in order.
fn check_order(key: &SortKey, number: usize, batch: &RecordBatch) -> Result<()> {
    // Blocks overlap by one row, so their bounds are compared as well.
    for first in (0..batch.num_rows()).step_by(MAX_BLOCK_ROWS) {
        let part = batch.slice(first, (MAX_BLOCK_ROWS + 1).min(batch.num_rows() - first));
        let rows = key.rows(&key.columns_of(&part))?;
        if !rows.iter().is_sorted() {
            return Err(Error::new(format!(
                "table {number} has rows that are not in order"
            )));
        }
    }
    Ok(())
}

/// Merges tables that are in order. Of equal rows, those of the first table come first. Errors: no
/// table, schemas that differ, a table that is not in order.
pub fn sharded_merge(tables: &[Table], by: &[OrderBy]) -> Result<Table> {
    let Some(first) = tables.first() else {
        return Err(Error::new("no tables: one or more are needed"));
    };
    let schema = first.schema();
    let key = &SortKey::of(&schema, by)?;
    let mut runs = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        if table.schema() != schema {
            return Err(Error::new(format!(
                "table {number} has another schema than table 0"
            )));
        }
        let batch = &table.batch;
        check_order(key, number, batch)?;
        runs.push(ShardCursor {
            key,
            batch,
            first: 0,
            next: 0,
        });
    }
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut merge = LoserTree::new(runs, MAX_BLOCK_ROWS)?;
    while let Some((run, number, at)) = merge.next() {
        order.push((number, run.first + at));
        merge.advance()?;
    }
    let batches: Vec<&RecordBatch> = tables.iter().map(|table| &table.batch).collect();
    let batch = guarded("the tables can't be merged", || {
        interleave_record_batch(&batches, &order).map_err(Error::of_rows)
    })?;
    Ok(first.with_batch(batch))
}
