// SPDX-License-Identifier: Apache-2.0

//! Merging of tables that were sorted sharded_merge.

use ::sort::{parse_order, sharded_merge, Compression, Format, Table};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raise;

/// Merges Arrow IPC streams, each in the order `by`. Of equal rows, those of the first table come
/// first. Returns one stream.
#[pyfunction]
pub fn merge_tables<'py>(
    py: Python<'py>,
    tables: Vec<Vec<u8>>,
    by: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let by = parse_order(by).map_err(raise)?;
    let merge = || -> PyResult<Vec<u8>> {
        let mut read = Vec::new();
        for (number, table) in tables.into_iter().enumerate() {
            let table = Table::read(Format::Stream, table);
            read.push(table.map_err(|e| raise(format!("table {number}: {e}")))?);
        }
        let merged = sharded_merge(&read, &by).map_err(raise)?;
        let stream = merged.write(Format::Stream, Compression::Snappy);
        stream.map_err(raise)
    };
    let stream = py.detach(merge)?;
    Ok(PyBytes::new(py, &stream))
}
