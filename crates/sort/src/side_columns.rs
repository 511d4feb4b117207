// SPDX-License-Identifier: Apache-2.0

//! The schema and the side columns of a resident table: Arrow streams that the host reads.

use std::ops::Range;

use arrow_array::{new_empty_array, Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat;
use parquet::file::metadata::KeyValue;
use serde_json::{json, Value};

use crate::file::{stream, Format};
use crate::row_layout::RowLayout;
use crate::run_end::unsliced;
use crate::{Error, Result, Table};

/// Encodes the side columns of each part.
pub fn write_side_columns(
    batch: &RecordBatch,
    layout: &RowLayout,
    bounds: &[Range<usize>],
) -> Result<Vec<Vec<u8>>> {
    let which: Vec<usize> = (0..batch.num_columns())
        .zip(layout.side_columns())
        .filter_map(|(n, is_side)| is_side.then_some(n))
        .collect();
    if which.is_empty() {
        return Ok(vec![Vec::new(); bounds.len()]);
    }
    let columns = batch.project(&which)?;
    let part = |rows: &Range<usize>| {
        let part = columns.slice(rows.start, rows.len());
        let whole: Result<Vec<ArrayRef>> = part.columns().iter().map(unsliced).collect();
        let part = RecordBatch::try_new(part.schema(), whole?)?;
        stream(&part)
    };
    bounds.iter().map(part).collect()
}

/// Decodes the side columns of the whole table. Columns in the rows are empty.
pub fn read_side_columns(
    schema: &Schema,
    layout: &RowLayout,
    streams: &[Vec<u8>],
) -> Result<Vec<ArrayRef>> {
    let parts: Result<Vec<RecordBatch>> = streams
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| Ok(Table::read(Format::Stream, part.clone())?.batch))
        .collect();
    let parts = parts?;
    let mut next = 0;
    let mut columns = Vec::new();
    for (field, is_side) in schema.fields().iter().zip(layout.side_columns()) {
        if !is_side {
            columns.push(new_empty_array(field.data_type()));
            continue;
        }
        let pieces: Vec<&dyn Array> = parts
            .iter()
            .filter_map(|part| part.columns().get(next).map(AsRef::as_ref))
            .collect();
        if pieces.is_empty() || pieces.iter().any(|p| p.data_type() != field.data_type()) {
            return Err(Error::new(
                "columns that stand apart are not those of the schema",
            ));
        }
        columns.push(concat(&pieces).map_err(Error::of_rows)?);
        next += 1;
    }
    Ok(columns)
}

/// Encodes the schema, which columns have nulls, and the metadata of a Parquet file.
pub fn write_schema(table: &Table) -> Result<Vec<u8>> {
    let nulls: Vec<bool> = table
        .batch
        .columns()
        .iter()
        .map(|c| c.null_count() > 0)
        .collect();
    let metadata: Vec<Value> = table
        .metadata
        .iter()
        .map(|pair| json!([pair.key, pair.value]))
        .collect();
    let extra = json!({"nulls": nulls, "metadata": metadata}).to_string();
    let mut out = (extra.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(extra.as_bytes());
    out.extend(stream(&RecordBatch::new_empty(table.schema()))?);
    Ok(out)
}

pub fn read_schema(bytes: &[u8]) -> Result<(SchemaRef, Vec<bool>, Vec<KeyValue>)> {
    let damaged = || Error::new("its schema is damaged");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    let extra = rest.get(..length).ok_or_else(damaged)?;
    let schema = Table::read(Format::Stream, rest[length..].to_vec())?.schema();
    let extra: Value = serde_json::from_slice(extra).map_err(|_| damaged())?;
    let nulls = extra["nulls"].as_array().into_iter().flatten();
    let nulls: Vec<bool> = nulls.filter_map(Value::as_bool).collect();
    if nulls.len() != schema.fields().len() {
        return Err(damaged());
    }
    let pairs = extra["metadata"].as_array().into_iter().flatten();
    let metadata = pairs.map(|pair| KeyValue {
        key: pair[0].as_str().unwrap_or_default().into(),
        value: pair[1].as_str().map(String::from),
    });
    Ok((schema, nulls, metadata.collect()))
}
