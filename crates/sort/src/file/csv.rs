//! Values between commas. The first line names the columns; an empty value is null.
//!
//! A column's type is the narrowest that all of its values fit: null, boolean, 64-bit integer, 64-bit float, date, timestamp without a zone (of the
//! finest unit that comes), text.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_csv::reader::Format;
use arrow_csv::{ReaderBuilder, WriterBuilder};

use super::{collect, BATCH};
use crate::{Error, Result, Table};

pub fn read(bytes: &[u8]) -> Result<Table> {
    let format = Format::default().with_header(true);
    let (schema, rows) = format.infer_schema(bytes, None).map_err(Error::new)?;
    if schema.fields().is_empty() {
        return Err(Error::new("its first line names no column"));
    }
    let schema = Arc::new(schema);
    let reader = ReaderBuilder::new(schema.clone())
        .with_format(format)
        .with_batch_size(BATCH)
        .build_buffered(Cursor::new(bytes))
        .map_err(Error::new)?;
    let batch = collect(&schema, reader)?;
    if batch.num_rows() != rows {
        return Err(Error::new("its lines can be read in two ways"));
    }
    Ok(batch.into())
}

pub fn write(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut writer = WriterBuilder::new().with_header(true).build(&mut file);
    writer.write(batch).map_err(Error::new)?;
    drop(writer);
    Ok(file)
}
