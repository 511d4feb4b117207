// SPDX-License-Identifier: Apache-2.0

//! Sort keys: as the engine `sorter` reads them, and as the host compares them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Schema, SortOptions};

use crate::file::is_lines;
use crate::run_end::unsliced;
use crate::{Error, OrderBy, Result};

/// Bytes of the normalised key that the engine compares.
pub const PREFIX_BYTES: usize = 16;
/// Bits of the sorter's argument `kind`.
const SIGNED: u32 = 1 << 2;
const TOTAL_ORDER: u32 = 2 << 2;
const GREATEST_FIRST: u32 = 1 << 4;
const INDEXES_ONLY: u32 = 1 << 5;

/// What the engine compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKey {
    /// The values of a column.
    Plain {
        /// Bytes of a value in the table.
        width: usize,
        /// Shorter values are sign-extended.
        signed: bool,
    },
    /// The first bytes of the normalised key, as a number.
    Prefix,
}

/// How rows are compared.
pub struct SortKey {
    /// The columns of the order.
    pub columns: Vec<usize>,
    fields: Vec<(DataType, SortOptions)>,
    pub compared: EngineKey,
    /// Bytes of what the engine compares: 4, 8 or 16.
    pub bytes: usize,
    /// The sorter's argument.
    pub kind: u32,
    /// True if the greatest value of the first column comes first.
    descending: bool,
    /// The key in words, for reports.
    pub text: String,
}

/// Width of the values, bits of `kind`, and name of the order. `None`: the engine can't compare the
/// type.
fn engine_type(kind: &DataType) -> Option<(usize, u32, &'static str)> {
    use DataType::*;
    Some(match kind {
        Int8 => (1, SIGNED, "two's complement"),
        Int16 => (2, SIGNED, "two's complement"),
        Int32 | Date32 | Time32(_) | Decimal32(..) => (4, SIGNED, "two's complement"),
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => {
            (8, SIGNED, "two's complement")
        }
        Decimal128(..) => (16, SIGNED, "two's complement"),
        UInt8 => (1, 0, "unsigned"),
        UInt16 => (2, 0, "unsigned"),
        UInt32 => (4, 0, "unsigned"),
        UInt64 => (8, 0, "unsigned"),
        Float32 => (4, TOTAL_ORDER, "IEEE 754 totalOrder"),
        Float64 => (8, TOTAL_ORDER, "IEEE 754 totalOrder"),
        _ => return None,
    })
}

fn prefix_text() -> String {
    format!("first {PREFIX_BYTES} bytes of the normalised key")
}

fn find_column(schema: &Schema, name: &str) -> Result<usize> {
    let columns = || schema.fields().iter().filter(|field| !is_lines(field));
    let named = |field: &(usize, &Arc<arrow_schema::Field>)| field.1.name() == name;
    // The line column of a CSV comes after all of these.
    let mut found = columns().enumerate().filter(named);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some(_), Some(_)) => Err(Error::new(format!(
            "several columns are called {name:?}: which one is meant?"
        ))),
        (None, _) => {
            let names: Vec<&str> = columns().map(|f| f.name().as_str()).collect();
            let names = names.join(", ");
            let names = if names.is_empty() { "none" } else { &names };
            Err(Error::new(format!(
                "no column is called {name:?}: the table has {names}"
            )))
        }
    }
}

impl SortKey {
    /// The key of an order.
    pub fn of(schema: &Schema, by: &[OrderBy]) -> Result<SortKey> {
        if by.is_empty() {
            return Err(Error::new("by: a column to sort by is needed"));
        }
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for key in by {
            let at = find_column(schema, &key.column)?;
            let kind = schema.field(at).data_type();
            let options = SortOptions {
                descending: key.descending,
                nulls_first: key.nulls_first,
            };
            let field = SortField::new_with_options(kind.clone(), options);
            if !RowConverter::supports_fields(std::slice::from_ref(&field)) {
                let name = &key.column;
                return Err(Error::new(format!(
                    "column {name:?}: values of type {kind} have no order here"
                )));
            }
            columns.push(at);
            fields.push((kind.clone(), options));
        }
        let whole = (EngineKey::Prefix, PREFIX_BYTES, 2, prefix_text());
        let (compared, bytes, kind, text) = match engine_type(schema.field(columns[0]).data_type())
        {
            Some((width, order, text)) if by.len() == 1 => {
                let bytes = width.max(4);
                let descending = if by[0].descending { GREATEST_FIRST } else { 0 };
                let kind = bytes.ilog2() - 2 | order | descending;
                let signed = order == SIGNED;
                let text = format!("{} bits, {text}", 8 * bytes);
                (EngineKey::Plain { width, signed }, bytes, kind, text)
            }
            _ => whole,
        };
        Ok(SortKey {
            columns,
            fields,
            compared,
            bytes,
            kind: kind | INDEXES_ONLY,
            descending: by[0].descending,
            text,
        })
    }

    /// The row numbers of a batch: first the rows that the engine sorts, then those whose key is
    /// null. Only the key of a single column is separated this way: in several columns a null is a
    /// part of the normalised key. Also returns how many rows the engine sorts.
    pub fn split(&self, batch: &RecordBatch) -> (Vec<u32>, usize) {
        let nulls = match self.columns[..] {
            [column] => batch.column(column).logical_nulls(),
            _ => None,
        };
        let valid = |row: &u32| nulls.as_ref().is_none_or(|n| n.is_valid(*row as usize));
        let all = 0..batch.num_rows() as u32;
        let (mut rows, nulls): (Vec<u32>, Vec<u32>) = all.partition(valid);
        let count = rows.len();
        rows.extend(nulls);
        (rows, count)
    }

    /// The same order of one column, by the prefix of the normalised key. That key is normalised in
    /// ascending order, with nulls last. The engine reverses the order if the greatest value comes
    /// first.
    pub fn normalised(self) -> SortKey {
        let ascending = SortOptions {
            descending: false,
            nulls_first: false,
        };
        let turned = if self.descending { GREATEST_FIRST } else { 0 };
        SortKey {
            fields: self
                .fields
                .iter()
                .map(|(kind, _)| (kind.clone(), ascending))
                .collect(),
            compared: EngineKey::Prefix,
            bytes: PREFIX_BYTES,
            kind: 2 | INDEXES_ONLY | turned,
            text: prefix_text(),
            ..self
        }
    }

    /// Normalised keys: their bytes compare as the rows do.
    pub fn rows(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let fields = self.fields.iter();
        let fields =
            fields.map(|(kind, options)| SortField::new_with_options(kind.clone(), *options));
        let converter = RowConverter::new(fields.collect())?;
        let columns: Result<Vec<ArrayRef>> = columns.iter().map(unsliced).collect();
        converter.convert_columns(&columns?).map_err(Error::from)
    }

    /// The columns of the order.
    pub fn columns_of(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let columns = self.columns.iter();
        columns.map(|&at| batch.column(at).clone()).collect()
    }

    /// The engine's keys of these rows, one after the other.
    pub fn encode(&self, batch: &RecordBatch, order: &[u32]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(order.len() * self.bytes);
        match self.compared {
            EngineKey::Plain { width, signed } => {
                let data = batch.column(self.columns[0]).to_data();
                let values = &data.buffers()[0][data.offset() * width..];
                for &row in order {
                    let value = &values[row as usize * width..][..width];
                    let negative = signed && value[width - 1] >> 7 == 1;
                    out.extend_from_slice(value);
                    out.resize(
                        out.len() + self.bytes - width,
                        if negative { 0xFF } else { 0 },
                    );
                }
            }
            EngineKey::Prefix => {
                let rows = self.rows(&self.columns_of(batch))?;
                for &row in order {
                    let mut first = prefix(&rows, row as usize);
                    first.reverse();
                    out.extend_from_slice(&first);
                }
            }
        }
        Ok(out)
    }
}

/// The prefix of a normalised key, most significant byte first.
pub fn prefix(rows: &Rows, row: usize) -> [u8; PREFIX_BYTES] {
    let row = rows.row(row);
    let bytes: &[u8] = row.as_ref();
    let mut out = [0; PREFIX_BYTES];
    let have = bytes.len().min(PREFIX_BYTES);
    out[..have].copy_from_slice(&bytes[..have]);
    out
}
