//! Tables sorted apart, each somewhere else, made one.

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;

use crate::guard::guarded;
use crate::key::Key;
use crate::merge::{check, merge, Run};
use crate::{By, Error, Result, Table};

/// Merges tables that are in order, of equal rows those of the first table first. Errors: no table, schemas that differ, a table that is not in order.
pub fn merged(tables: &[Table], by: &[By]) -> Result<Table> {
    let Some(first) = tables.first() else {
        return Err(Error::new("no tables: one or more are needed"));
    };
    let schema = first.schema();
    let key = Key::of(&schema, by)?;
    let mut runs = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        if table.schema() != schema {
            return Err(Error::new(format!(
                "table {number} has another schema than table 0"
            )));
        }
        let rows = key.rows(&key.of_batch(&table.batch))?;
        let order: Vec<u32> = (0..rows.num_rows() as u32).collect();
        check(&rows, &order, || format!("table {number} has"))?;
        let key = &key;
        // A run asks for rows that follow each other.
        let keys = move |rows: &[u32]| {
            let part = table.batch.slice(rows[0] as usize, rows.len());
            key.rows(&key.of_batch(&part))
        };
        runs.push(Run::new(order, Box::new(keys))?);
    }
    let order: Vec<(usize, usize)> = merge(runs)?
        .into_iter()
        .map(|(run, row)| (run as usize, row as usize))
        .collect();
    let batches: Vec<&RecordBatch> = tables.iter().map(|table| &table.batch).collect();
    let batch = guarded("the tables can't be merged", || {
        interleave_record_batch(&batches, &order).map_err(Error::of_rows)
    })?;
    Ok(first.with_batch(batch))
}
