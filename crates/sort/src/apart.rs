//! Tables sorted apart, each somewhere else, made one.

use arrow_array::RecordBatch;
use arrow_row::Rows;
use arrow_select::interleave::interleave_record_batch;

use crate::guard::guarded;
use crate::key::Key;
use crate::merge::{Merge, Run, BLOCK};
use crate::{By, Error, Result, Table};

/// A table's rows.
struct Apart<'a> {
    key: &'a Key,
    batch: &'a RecordBatch,
    /// Those at hand, and the first one behind them.
    first: usize,
    next: usize,
}

impl Run for Apart<'_> {
    fn next_block(&mut self, most: usize) -> Result<Option<Rows>> {
        self.first = self.next;
        let rows = most.min(self.batch.num_rows() - self.next);
        if rows == 0 {
            return Ok(None);
        }
        self.next += rows;
        let part = self.batch.slice(self.first, rows);
        self.key.rows(&self.key.of_batch(&part)).map(Some)
    }
}

/// Refuses a table that is not in order.
fn check(key: &Key, number: usize, batch: &RecordBatch) -> Result<()> {
    // Of each piece the last row is the next one's first.
    for first in (0..batch.num_rows()).step_by(BLOCK) {
        let part = batch.slice(first, (BLOCK + 1).min(batch.num_rows() - first));
        let rows = key.rows(&key.of_batch(&part))?;
        if !rows.iter().is_sorted() {
            return Err(Error::new(format!(
                "table {number} has rows that are not in order"
            )));
        }
    }
    Ok(())
}

/// Merges tables that are in order, of equal rows those of the first table first. Errors: no table, schemas that differ, a table that is not in order.
pub fn merged(tables: &[Table], by: &[By]) -> Result<Table> {
    let Some(first) = tables.first() else {
        return Err(Error::new("no tables: one or more are needed"));
    };
    let schema = first.schema();
    let key = &Key::of(&schema, by)?;
    let mut runs = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        if table.schema() != schema {
            return Err(Error::new(format!(
                "table {number} has another schema than table 0"
            )));
        }
        let batch = &table.batch;
        check(key, number, batch)?;
        runs.push(Apart {
            key,
            batch,
            first: 0,
            next: 0,
        });
    }
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut merge = Merge::new(runs, BLOCK)?;
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
