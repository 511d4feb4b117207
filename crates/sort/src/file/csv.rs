// SPDX-License-Identifier: Apache-2.0

//! CSV. The first line names the columns. An empty value is null, unless it is a quoted text.
//!
//! A column has the narrowest type that all of its values fit: null, boolean, 64-bit integer,
//! 64-bit float, date, timestamp without a zone (in the finest unit that occurs), text.

mod batches;
mod records;
mod values;
mod verbatim;

use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_csv::reader::Format;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use self::batches::{ambiguous_lines, Batches};
use self::records::{NormalisedReader, Records};
pub use self::verbatim::{is_lines, open as open_verbatim, VerbatimCsv};
use super::{FileContent, OpenedFile, Reader};
use crate::input::Input;
use crate::{Error, Result};

/// Up to this value, every integer is exact as a 64-bit float.
const EXACT: u64 = 1 << 53;

pub fn open(input: Input) -> Result<OpenedFile> {
    if ends_in_quotes(&input)? {
        return Err(Error::new(
            "it ends within a quoted value: it may be cut off",
        ));
    }
    let format = Format::default().with_header(true);
    let (schema, rows) = format.infer_schema(plain(&input)?, None)?;
    if schema.fields().is_empty() {
        return Err(Error::new("its first line names no column"));
    }
    let schema = with_lossy_columns_as_text(&input, schema)?;
    let mut schema = with_empty_columns(&input, schema)?;
    let known = match count(&input, &schema, None) {
        Ok(known) => known,
        Err(_) => {
            let fails = |column: usize| Ok(count(&input, &schema, Some(column)).is_err());
            schema = with_text(&schema, fails)?;
            count(&input, &schema, None)?
        }
    };
    if known.0 != rows {
        return Err(ambiguous_lines());
    }
    Ok(OpenedFile {
        schema: schema.clone(),
        metadata: Vec::new(),
        known: Some(known),
        content: FileContent::Csv(input, schema),
    })
}

fn plain(input: &Input) -> Result<NormalisedReader> {
    NormalisedReader::new(input).map_err(Error::from)
}

/// Reads all columns, or one.
pub fn batches(input: &Input, schema: &SchemaRef, column: Option<usize>) -> Result<Reader> {
    let columns = match column {
        Some(column) => vec![column],
        None => (0..schema.fields().len()).collect(),
    };
    let mut batches = Batches::new(input, schema, columns)?;
    let mut ended = false;
    Ok(Box::new(std::iter::from_fn(move || {
        let rows = match ended {
            true => return None,
            false => batches.next(|_| Ok(())),
        };
        let batch = rows.map(|rows| rows.and_then(|rows| rows.values));
        ended = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    })))
}

/// Turns nulls into empty texts at these places, which are pairs of a row and a column of the file.
/// Columns of other types stay.
fn with_empty_texts(
    batch: RecordBatch,
    columns: &[usize],
    empty: &[(usize, usize)],
) -> Result<RecordBatch> {
    if empty.is_empty() {
        return Ok(batch);
    }
    let filled = columns.iter().zip(batch.columns()).map(|(&column, array)| {
        let mut rows = empty.iter().filter(|(_, of)| *of == column).peekable();
        let (Some(texts), Some(nulls), Some(_)) =
            (array.as_string_opt::<i32>(), array.nulls(), rows.peek())
        else {
            return array.clone();
        };
        let mut valid = BooleanBufferBuilder::new(nulls.len());
        valid.append_buffer(nulls.inner());
        rows.for_each(|(row, _)| valid.set_bit(*row, true));
        let valid = NullBuffer::new(valid.finish());
        // A null has no bytes, so offsets and values stay.
        let (offsets, values) = (texts.offsets().clone(), texts.values().clone());
        Arc::new(StringArray::new(offsets, values, Some(valid))) as ArrayRef
    });
    let filled: Vec<ArrayRef> = filled.collect();
    RecordBatch::try_new(batch.schema(), filled).map_err(Error::from)
}

/// Columns of unknown type that have an empty text become text.
fn with_empty_columns(input: &Input, schema: SchemaRef) -> Result<SchemaRef> {
    let fields = schema.fields().iter();
    let unknown: Vec<bool> = fields.map(|f| f.data_type() == &DataType::Null).collect();
    if !unknown.contains(&true) {
        return Ok(schema);
    }
    let mut texts = vec![false; unknown.len()];
    let mut line = Vec::new();
    if let Some((_, mut records)) = Records::new(input)? {
        while records.next(&mut line)? {
            line.clear();
            records.empty_texts().iter().for_each(|&column| {
                texts[column] = unknown[column];
            });
        }
    }
    with_text(&schema, |column| Ok(texts[column]))
}

/// The number of rows, and which columns have nulls.
fn count(input: &Input, schema: &SchemaRef, column: Option<usize>) -> Result<(usize, Vec<bool>)> {
    let (mut rows, mut nulls) = (0, vec![false; schema.fields().len()]);
    for batch in batches(input, schema, column)? {
        let batch = batch?;
        rows += batch.num_rows();
        for (nulls, column) in nulls.iter_mut().zip(batch.columns()) {
            *nulls |= column.null_count() > 0;
        }
    }
    Ok((rows, nulls))
}

/// The schema with some columns as text.
fn with_text(schema: &Schema, is_text: impl Fn(usize) -> Result<bool>) -> Result<SchemaRef> {
    let column = |(n, field): (usize, &FieldRef)| {
        Ok(match is_text(n)? {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
            false => field.clone(),
        })
    };
    let fields: Result<Vec<FieldRef>> = schema.fields().iter().enumerate().map(column).collect();
    Ok(Arc::new(Schema::new(fields?)))
}

/// Columns become text if the reader would accept their values but change them.
fn with_lossy_columns_as_text(input: &Input, schema: Schema) -> Result<SchemaRef> {
    let texts = with_text(&schema, |_| Ok(true))?;
    with_text(&schema, |n| {
        let changes: fn(&str) -> bool = match schema.field(n).data_type() {
            DataType::Timestamp(..) => has_zone,
            DataType::Float64 => is_inexact,
            _ => return Ok(false),
        };
        let mut found = false;
        for batch in batches(input, &texts, Some(n))? {
            let batch = batch?;
            let values = batch.column(0).as_string::<i32>();
            found |= values.iter().flatten().any(changes);
        }
        Ok(found)
    })
}

/// True if a zone follows a timestamp's time.
fn has_zone(value: &str) -> bool {
    let time = value.get(10..).unwrap_or_default();
    time.contains(['+', '-', 'Z', 'z'])
}

/// True if a 64-bit float does not hold the number: a long integer, or an overflow.
fn is_inexact(value: &str) -> bool {
    let digits = value.trim_start_matches(['+', '-']);
    let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match whole {
        true => digits.parse().map_or(true, |n: u64| n > EXACT),
        false => {
            let named = digits.starts_with(['i', 'I']);
            !named && value.parse().is_ok_and(f64::is_infinite)
        }
    }
}

/// True if the file ends within quotes, by the rules of RFC 4180: a value begins with a quote, and
/// two quotes within it are one.
fn ends_in_quotes(input: &Input) -> io::Result<bool> {
    let (mut begins, mut inside) = (true, false);
    let (mut reader, mut piece) = (input.from(0), vec![0; 64 << 10]);
    loop {
        let count = reader.read(&mut piece)?;
        if count == 0 {
            return Ok(inside);
        }
        for &byte in &piece[..count] {
            (begins, inside) = match (inside, byte) {
                // A second quote that follows continues the value.
                (true, b'"') => (true, false),
                (true, _) => (false, true),
                (false, b'"') => (false, begins),
                (false, byte) => (matches!(byte, b',' | b'\n' | b'\r'), false),
            };
        }
    }
}

/// Writes a file batch by batch.
pub enum Writer<W: Write> {
    /// Writes values.
    Values(values::Writer<BufWriter<W>>),
    /// Writes the lines of the input byte for byte.
    Lines(verbatim::Writer<BufWriter<W>>),
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, schema: &SchemaRef) -> Result<Writer<W>> {
        if let Some(lines) = verbatim::LineColumn::of(schema) {
            let writer = verbatim::Writer::new(BufWriter::new(out), lines)?;
            return Ok(Writer::Lines(writer));
        }
        values::Writer::new(BufWriter::new(out), schema).map(Writer::Values)
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Writer::Values(writer) => writer.write(batch),
            Writer::Lines(writer) => writer.write(batch),
        }
    }

    pub fn finish(self) -> Result<()> {
        match self {
            Writer::Values(writer) => writer.finish(),
            Writer::Lines(writer) => writer.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(text: &str) -> Vec<String> {
        let schema = open(text.as_bytes().to_vec().into()).unwrap().schema;
        (schema.fields().iter())
            .map(|field| field.data_type().to_string())
            .collect()
    }

    #[test]
    fn csv_keeps_lossy_values_as_text() {
        for (values, kind) in [
            (["1", "2"], "Int64"),
            (["9223372036854775808", "1"], "Utf8"),
            (["9007199254740992", "1.5"], "Float64"),
            (["9007199254740993", "1.5"], "Utf8"),
            (["1e999", "1.5"], "Utf8"),
            (["2020-02-29", "2020-01-01"], "Date32"),
            (["2020-13-45", "2020-01-01"], "Utf8"),
            (
                ["2020-01-01T00:00:00", "2020-01-01T00:00:01"],
                "Timestamp(s)",
            ),
            (["2020-01-01T25:00:00", "2020-01-01T00:00:01"], "Utf8"),
            (["2020-01-01T00:00:00 hello", "2020-01-01T00:00:01"], "Utf8"),
            (["2020-01-01T00:00:00+02:00", "2020-01-01T00:00:01"], "Utf8"),
            (
                ["2020-01-01T00:00:00-05:00", "2020-01-01T00:00:01Z"],
                "Utf8",
            ),
            (
                ["1500-01-01T00:00:00.123456789", "2020-01-01T00:00:00"],
                "Utf8",
            ),
        ] {
            let found = types(&format!("a\n{}\n{}\n", values[0], values[1]));
            assert_eq!(found, [kind], "{values:?}");
        }
    }

    #[test]
    fn csv_rejects_an_unclosed_quote() {
        for (text, rows) in [
            ("a,b\n2,\"one, two\"\n1,three\n", Some(2)),
            ("a,b\n2,\"one \"\"two\"\"\n\"\n1,thr\"ee", Some(2)),
            ("a,b\n2,\"\"\n1,\"\"\"\"", Some(2)),
            ("a,b\n2,\"one, two\"\n1,\"three", None),
            ("a,b\n2,\"one, two\"\n1,\"", None),
            ("a,b\n2,\"one, two\"\n1,\"\"\"", None),
            ("a,b\n1,\"x\n2,y\n", None),
            ("\"a", None),
        ] {
            let found = open(text.as_bytes().to_vec().into());
            match rows {
                Some(rows) => assert_eq!(found.unwrap().known.unwrap().0, rows, "{text}"),
                None => {
                    let error = found.err().unwrap().to_string();
                    assert!(error.contains("within a quoted value"), "{text}: {error}");
                }
            }
        }
    }
}
