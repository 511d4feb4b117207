//! Tables as the bytes of a file.

mod csv;
mod ipc;
mod parquet;

use std::str::FromStr;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;

pub use self::parquet::Compression;
use crate::guard::guarded;
use crate::{Error, Result, Table};

/// Rows that are read at a time.
const BATCH: usize = 64 << 10;

/// How a table stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file, which is Feather V2, too. A stream is read as well.
    Arrow,
    /// An Arrow IPC stream.
    Stream,
    /// Values between commas, with the columns' names in the first line.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Parquet, Format::Arrow, Format::Stream, Format::Csv];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Stream => "stream",
            Format::Csv => "csv",
        }
    }

    /// As people call it.
    fn title(self) -> &'static str {
        match self {
            Format::Parquet => "Parquet",
            Format::Arrow => "Arrow file",
            Format::Stream => "Arrow stream",
            Format::Csv => "CSV",
        }
    }
}

/// The one of these that has a name.
fn named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> Result<T> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        Error::new(format!(
            "{what} = {name:?}: allowed are {}",
            names.join(", ")
        ))
    })
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format> {
        named("format", name, &Format::ALL.map(|f| (f.name(), f)))
    }
}

fn collect(
    schema: &SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
) -> Result<RecordBatch> {
    let batches: std::result::Result<Vec<_>, _> = batches.collect();
    let batches = batches.map_err(Error::new)?;
    concat_batches(schema, &batches).map_err(Error::of_rows)
}

impl Table {
    /// Reads the bytes of a file. What is damaged is an error.
    pub fn read(format: Format, file: Vec<u8>) -> Result<Table> {
        let title = format.title();
        let read = || match format {
            Format::Parquet => parquet::read(Bytes::from(file)),
            Format::Arrow if !ipc::is_file(&file) => ipc::read_stream(&file),
            Format::Arrow => ipc::read_file(&file),
            Format::Stream => ipc::read_stream(&file),
            Format::Csv => csv::read(&file),
        };
        let table = guarded("it is damaged", read);
        table.map_err(|e| Error::new(format!("no {title} that can be read: {e}")))
    }

    /// As the bytes of a file. Of Parquet's pages are compressed.
    pub fn write(&self, format: Format, compression: Compression) -> Result<Vec<u8>> {
        let title = format.title();
        let write = || match format {
            Format::Parquet => parquet::write(self, compression),
            Format::Arrow => ipc::write_file(&self.batch),
            Format::Stream => ipc::write_stream(&self.batch),
            Format::Csv => csv::write(&self.batch),
        };
        let file = guarded("its types don't fit", write);
        file.map_err(|e| Error::new(format!("the table can't be written as {title}: {e}")))
    }
}
