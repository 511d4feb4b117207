// SPDX-License-Identifier: Apache-2.0

//! Writes values as CSV: quoted where necessary, an empty text as two quotes, and null as nothing.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Schema};

use super::records::EMPTY;
use crate::{Error, Result};

/// Appends the first line, which names the columns.
pub fn add_head(schema: &Schema, out: &mut Vec<u8>) {
    let fields = schema.fields();
    for (n, field) in fields.iter().enumerate() {
        add(field.name(), n, fields.len() == 1, out);
    }
    out.push(b'\n');
}

/// Appends a value that is not null, after `before` other ones.
fn add(value: &str, before: usize, quoted_if_empty: bool, out: &mut Vec<u8>) {
    if before > 0 {
        out.push(b',');
    }
    if value.contains(['"', ',', '\n', '\r']) {
        out.push(b'"');
        out.extend_from_slice(value.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else if value.is_empty() && quoted_if_empty {
        out.extend_from_slice(EMPTY);
    } else {
        out.extend_from_slice(value.as_bytes());
    }
}

/// Appends rows. An error names a column that CSV can't represent.
pub fn add_rows(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let options = FormatOptions::default();
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns: Result<Vec<_>> = columns
        .map(|(field, column)| {
            let name = field.name();
            let why = |why: &str| Error::new(format!("column {name:?}: {why}"));
            if is_nested(field.data_type()) {
                let kind = field.data_type();
                return Err(why(&format!("a CSV has no values of type {kind}")));
            }
            let formatter = ArrayFormatter::try_new(column.as_ref(), &options);
            let formatter = formatter.map_err(|e| Error::from(e).of(format!("column {name:?}")))?;
            Ok((name, column.logical_nulls(), formatter))
        })
        .collect();
    let columns = columns?;
    let mut value = String::new();
    for row in 0..batch.num_rows() {
        for (n, (name, nulls, formatter)) in columns.iter().enumerate() {
            value.clear();
            let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if !null {
                let written = formatter.value(row).write(&mut value);
                written.map_err(|e| Error::new(format!("column {name:?}: {e}")))?;
            }
            // An empty line would be no row.
            add(&value, n, !null || columns.len() == 1, out);
        }
        out.push(b'\n');
    }
    Ok(())
}

fn is_nested(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_nested(value),
        DataType::RunEndEncoded(_, values) => is_nested(values.data_type()),
        kind => kind.is_nested(),
    }
}

/// Writes rows.
pub struct Writer<W: Write> {
    out: W,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, schema: &Schema) -> Result<Writer<W>> {
        let mut bytes = Vec::new();
        add_head(schema, &mut bytes);
        out.write_all(&bytes)?;
        Ok(Writer { out, bytes })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.bytes.clear();
        add_rows(batch, &mut self.bytes)?;
        self.out.write_all(&self.bytes).map_err(Error::from)
    }

    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(Error::from)
    }
}
