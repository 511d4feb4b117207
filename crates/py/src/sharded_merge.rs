// SPDX-License-Identifier: Apache-2.0

//! Merging of tables that were sorted apart.

use ::sort::{parse_order, sharded_merge, Source};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrow::{ArrowTable, ForeignTable};
use crate::error::{raise, Error};

/// Merges tables, objects with `__arrow_c_stream__`, each in the order `by`. Of equal rows, those
/// of the first table come first.
#[pyfunction]
pub fn merge_tables(
    py: Python<'_>,
    tables: Vec<Bound<'_, PyAny>>,
    by: &str,
) -> PyResult<ArrowTable> {
    let by = parse_order(by).map_err(raise)?;
    let none = || PyTypeError::new_err("tables have the method __arrow_c_stream__");
    let tables = tables.iter().map(|t| ForeignTable::of(t)?.ok_or_else(none));
    let tables: Vec<ForeignTable> = tables.collect::<PyResult<_>>()?;
    py.detach(|| -> Result<ArrowTable, Error> {
        let mut read = Vec::new();
        for (number, table) in tables.into_iter().enumerate() {
            let table = Source::of_batches(None, || table.read()).and_then(Source::collect);
            read.push(table.map_err(|e| e.of(format!("table {number}")))?);
        }
        let merged = sharded_merge(&read, &by)?;
        Ok(ArrowTable {
            schema: merged.schema(),
            batches: vec![merged.batch],
        })
    })
    .map_err(raise)
}
