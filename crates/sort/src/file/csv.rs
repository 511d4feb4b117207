//! Values between commas. The first line names the columns; an empty value is null.
//!
//! A column's type is the narrowest that all of its values fit: null, boolean, 64-bit integer, 64-bit float, date, timestamp without a zone (of the
//! finest unit that comes), text.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::RecordBatch;
use arrow_csv::reader::Format;
use arrow_csv::{ReaderBuilder, WriterBuilder};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::{collect, BATCH};
use crate::{Error, Result, Table};

/// Integers up to which each is a 64-bit float, too.
const EXACT: u64 = 1 << 53;

pub fn read(bytes: &[u8]) -> Result<Table> {
    if ends_in_quotes(bytes) {
        return Err(Error::new(
            "it ends within a quoted value: it may be cut off",
        ));
    }
    let format = Format::default().with_header(true);
    let (schema, rows) = format.infer_schema(bytes, None).map_err(Error::new)?;
    if schema.fields().is_empty() {
        return Err(Error::new("its first line names no column"));
    }
    let schema = narrowed(bytes, &schema)?;
    let batch = parsed(bytes, &schema, None)?;
    if batch.num_rows() != rows {
        return Err(Error::new("its lines can be read in two ways"));
    }
    Ok(batch.into())
}

/// Reads all columns, or one.
fn parsed(bytes: &[u8], schema: &SchemaRef, column: Option<usize>) -> Result<RecordBatch> {
    let mut builder = ReaderBuilder::new(schema.clone())
        .with_format(Format::default().with_header(true))
        .with_batch_size(BATCH);
    let mut read = schema.clone();
    if let Some(column) = column {
        builder = builder.with_projection(vec![column]);
        read = Arc::new(schema.project(&[column]).map_err(Error::new)?);
    }
    let reader = builder.build_buffered(Cursor::new(bytes));
    collect(&read, reader.map_err(Error::new)?)
}

/// Columns whose values only look like what was inferred are text.
fn narrowed(bytes: &[u8], schema: &Schema) -> Result<SchemaRef> {
    let texts: Vec<Field> = (schema.fields().iter())
        .map(|field| Field::new(field.name(), DataType::Utf8, true))
        .collect();
    let (texts, all) = (
        Arc::new(Schema::new(texts.clone())),
        Arc::new(schema.clone()),
    );
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone()).collect();
    for (n, field) in fields.iter_mut().enumerate() {
        let kind = field.data_type().clone();
        let suspect: fn(&str) -> bool = match &kind {
            DataType::Timestamp(..) => has_zone,
            DataType::Float64 => is_inexact,
            DataType::Int64 | DataType::Date32 | DataType::Date64 => |_| false,
            _ => continue,
        };
        let values = parsed(bytes, &texts, Some(n))?;
        let values = values.column(0).as_string::<i32>();
        let fits = !values.iter().flatten().any(suspect);
        if !fits || parsed(bytes, &all, Some(n)).is_err() {
            *field = Field::new(field.name(), DataType::Utf8, field.is_nullable());
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A timestamp's time is followed by a zone.
fn has_zone(value: &str) -> bool {
    let time = value.get(10..).unwrap_or_default();
    time.contains(['+', '-', 'Z', 'z'])
}

/// A number that a 64-bit float is not: a long integer, or one beyond all of them.
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

/// As RFC 4180 has it: a value begins with a quote, and two of them within are one.
fn ends_in_quotes(bytes: &[u8]) -> bool {
    let (mut begins, mut inside) = (true, false);
    for &byte in bytes {
        (begins, inside) = match (inside, byte) {
            // A second one behind it goes on with the value.
            (true, b'"') => (true, false),
            (true, _) => (false, true),
            (false, b'"') => (false, begins),
            (false, byte) => (matches!(byte, b',' | b'\n' | b'\r'), false),
        };
    }
    inside
}

pub fn write(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut writer = WriterBuilder::new().with_header(true).build(&mut file);
    writer.write(batch).map_err(Error::new)?;
    drop(writer);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(text: &str) -> Vec<String> {
        let table = read(text.as_bytes()).unwrap();
        let schema = table.batch.schema();
        (schema.fields().iter())
            .map(|field| field.data_type().to_string())
            .collect()
    }

    #[test]
    fn what_only_looks_like_a_type_is_text() {
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
    fn a_quote_that_is_open_at_the_end_is_an_error() {
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
            let found = read(text.as_bytes());
            match rows {
                Some(rows) => assert_eq!(found.unwrap().batch.num_rows(), rows, "{text}"),
                None => {
                    let error = found.err().unwrap().to_string();
                    assert!(error.contains("within a quoted value"), "{text}: {error}");
                }
            }
        }
    }
}
