// SPDX-License-Identifier: Apache-2.0

//! Tables that are read batch by batch, from files or from memory.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::file::metadata::KeyValue;

use crate::file::{self, FileContent, Format};
use crate::guard::guarded;
use crate::input::Input;
use crate::run_end;
use crate::{Error, OrderBy, Result, Table};

/// Batches of a table, in the order of its rows.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>;

/// A table that is read batch by batch.
pub struct Source {
    /// Name for errors.
    name: Option<String>,
    schema: SchemaRef,
    pub(crate) metadata: Vec<KeyValue>,
    rows: usize,
    /// Which columns have nulls.
    pub(crate) nulls: Vec<bool>,
    content: SourceContent,
}

enum SourceContent {
    Table(Table),
    File(Format, FileContent),
}

impl From<&Table> for Source {
    fn from(table: &Table) -> Source {
        let columns = table.batch.columns().iter();
        Source {
            name: None,
            schema: table.schema(),
            metadata: table.metadata.clone(),
            rows: table.batch.num_rows(),
            nulls: columns.map(|c| c.null_count() > 0).collect(),
            content: SourceContent::Table(table.clone()),
        }
    }
}

impl Source {
    /// Opens a file. `name` is used in errors. Damage is an error, here or when its batches are
    /// read.
    pub fn open(format: Format, input: Input, name: Option<&str>) -> Result<Source> {
        Source::from_file(format, name, || file::open(format, input))
    }

    /// Opens a CSV whose lines are kept byte for byte, for a CSV that is written. With `keys`, only
    /// these columns are parsed. Without, all columns are.
    pub fn open_verbatim(
        input: Input,
        name: Option<&str>,
        keys: Option<&[OrderBy]>,
    ) -> Result<Source> {
        let keys: Option<Vec<&str>> = keys.map(|k| k.iter().map(|by| by.column.as_str()).collect());
        let open = || file::open_verbatim(input, keys.as_deref());
        Source::from_file(Format::Csv, name, open)
    }

    /// Reads a table in memory, of another library. `name` is used in errors.
    pub fn of_batches(
        name: Option<&str>,
        read: impl FnOnce() -> Result<(SchemaRef, Vec<RecordBatch>)>,
    ) -> Result<Source> {
        Source::from_file(Format::Stream, name, || {
            let (schema, batches) = read()?;
            Ok(file::OpenedFile {
                schema,
                metadata: Vec::new(),
                known: None,
                content: FileContent::Batches(batches),
            })
        })
    }

    fn from_file(
        format: Format,
        name: Option<&str>,
        open: impl FnOnce() -> Result<file::OpenedFile>,
    ) -> Result<Source> {
        let opened = guarded("it is damaged", open).map_err(|e| damaged(name, format, e))?;
        let mut source = Source {
            name: name.map(String::from),
            schema: opened.schema,
            metadata: opened.metadata,
            rows: 0,
            nulls: Vec::new(),
            content: SourceContent::File(format, opened.content),
        };
        (source.rows, source.nulls) = match opened.known {
            Some(known) => known,
            None => source.scan()?,
        };
        Ok(source)
    }

    /// The table's schema.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The key-value metadata of a Parquet file.
    pub fn metadata(&self) -> &[KeyValue] {
        &self.metadata
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The Parquet file that the table came from.
    pub(crate) fn parquet(&self) -> Option<Input> {
        match &self.content {
            SourceContent::Table(table) => table.file.clone(),
            SourceContent::File(_, FileContent::Parquet(file)) => Some(file.input.clone()),
            SourceContent::File(..) => None,
        }
    }

    /// The rows, if the table is in memory.
    pub(crate) fn in_memory(&self) -> Option<&RecordBatch> {
        match &self.content {
            SourceContent::Table(table) => Some(&table.batch),
            SourceContent::File(..) => None,
        }
    }

    /// Batches of all columns, or of one.
    pub(crate) fn batches(&self, column: Option<usize>) -> Result<Batches<'_>> {
        let (format, content) = match &self.content {
            SourceContent::Table(table) => {
                let batch = match column {
                    Some(column) => table.batch.project(&[column])?,
                    None => table.batch.clone(),
                };
                return Ok(Box::new(file::pieces(batch)));
            }
            SourceContent::File(format, content) => (*format, content),
        };
        let name = self.name.as_deref();
        let describe = move |e: Error| damaged(name, format, e);
        let mut batches = guarded("it is damaged", || content.batches(column)).map_err(describe)?;
        let mut ended = false;
        let batches = std::iter::from_fn(move || {
            if ended {
                return None;
            }
            let next = guarded("it is damaged", || batches.next().transpose());
            ended = next.is_err();
            next.map_err(describe).transpose()
        });
        Ok(Box::new(batches.flat_map(|batch| -> Batches {
            match batch {
                Ok(batch) => Box::new(file::pieces(batch)),
                error => Box::new(std::iter::once(error)),
            }
        })))
    }

    /// Reads the whole file: number of rows, and which columns have nulls.
    fn scan(&self) -> Result<(usize, Vec<bool>)> {
        let (mut rows, mut nulls) = (0, vec![false; self.schema.fields().len()]);
        for batch in self.batches(None)? {
            let batch = batch?;
            rows += batch.num_rows();
            for (nulls, column) in nulls.iter_mut().zip(batch.columns()) {
                *nulls |= column.null_count() > 0;
            }
        }
        Ok((rows, nulls))
    }

    /// Which rows have a value in a column. `None`: all have.
    pub(crate) fn valid(&self, column: usize) -> Result<Option<NullBuffer>> {
        let mut valid = BooleanBufferBuilder::new(self.rows);
        for batch in self.batches(Some(column))? {
            let batch = batch?;
            match batch.column(0).logical_nulls() {
                Some(nulls) => valid.append_buffer(nulls.inner()),
                None => valid.append_n(batch.num_rows(), true),
            }
        }
        self.check_rows(valid.len())?;
        let valid = NullBuffer::new(valid.finish());
        Ok((valid.null_count() > 0).then_some(valid))
    }

    /// Checks that the number of rows is the expected one.
    pub(crate) fn check_rows(&self, found: usize) -> Result<()> {
        let (expected, name) = (self.rows, self.name.as_deref());
        match (found == expected, &self.content) {
            (true, _) => Ok(()),
            (false, SourceContent::File(format, _)) => Err(damaged(
                name,
                *format,
                Error::new(format!("it says {expected} rows, and has {found}")),
            )),
            (false, SourceContent::Table(_)) => Err(Error::new("the table has lost rows")),
        }
    }

    /// Reads the whole table into memory.
    pub fn collect(self) -> Result<Table> {
        guarded("the table can't be put together", || self.collect_batches())
    }

    fn collect_batches(self) -> Result<Table> {
        if let SourceContent::Table(table) = self.content {
            return Ok(table);
        }
        run_end::check_run_ends(&self.schema, self.rows)?;
        let batches: Result<Vec<RecordBatch>> =
            self.batches(None)?.map(|batch| unsliced(&batch?)).collect();
        let batch = concat_batches(&self.schema, &batches?).map_err(Error::of_rows)?;
        self.check_rows(batch.num_rows())?;
        Ok(Table {
            batch,
            file: self.parquet(),
            metadata: self.metadata,
        })
    }
}

impl Table {
    /// Reads a table from the bytes of a file. Damage is an error.
    pub fn read(format: Format, file: Vec<u8>) -> Result<Table> {
        Source::open(format, file.into(), None)?.collect()
    }
}

fn unsliced(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns: Result<Vec<ArrayRef>> = batch.columns().iter().map(run_end::unsliced).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let batch = RecordBatch::try_new_with_options(batch.schema(), columns?, &options);
    batch.map_err(Error::from)
}

/// The error of a file that can't be read.
fn damaged(name: Option<&str>, format: Format, error: Error) -> Error {
    let title = format.title();
    match name {
        Some(name) => error.of(format!("{name}: no {title} that can be read")),
        None => error.of(format!("no {title} that can be read")),
    }
}
