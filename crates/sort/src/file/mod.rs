// SPDX-License-Identifier: Apache-2.0

//! File formats of tables.

mod csv;
mod ipc;
mod parquet;

use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use ::parquet::file::metadata::KeyValue;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use self::csv::{is_lines, open_verbatim};
pub use self::parquet::Compression;
use crate::guard::guarded;
use crate::input::Input;
use crate::size::rows_within;
use crate::{Error, OrderBy, Result, Table};

/// Most rows of a batch.
const BATCH: usize = 16 << 10;
/// Most bytes of a batch, unless it has one row.
const BATCH_BYTES: usize = 16 << 20;

/// The format of a table in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file, which is also Feather V2. A stream is read as well.
    Arrow,
    /// An Arrow IPC stream.
    Stream,
    /// CSV, with the columns' names in the first line.
    Csv,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Parquet, Format::Arrow, Format::Stream, Format::Csv];

    /// The format's name for options.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Stream => "stream",
            Format::Csv => "csv",
        }
    }

    /// The format's title for messages.
    pub fn title(self) -> &'static str {
        match self {
            Format::Parquet => "Parquet",
            Format::Arrow => "Arrow file",
            Format::Stream => "Arrow stream",
            Format::Csv => "CSV",
        }
    }
}

/// Magic numbers.
const MAGIC_NUMBERS: [(&[u8], Format); 3] = [
    (b"PAR1", Format::Parquet),
    (b"ARROW1", Format::Arrow),
    // The marker of a message's length.
    (b"\xFF\xFF\xFF\xFF", Format::Stream),
];

impl Format {
    /// The format that a file's first bytes identify, if there is one.
    pub fn of_content(input: &Input) -> Option<Format> {
        let begins = |bytes: &[u8]| {
            let start = input.read_at(0, bytes.len());
            start.is_ok_and(|start| start == bytes)
        };
        let known = MAGIC_NUMBERS.iter().find(|(bytes, _)| begins(bytes));
        let known = known.map(|(_, format)| *format);
        // Encrypted Parquet and Feather V1 are refused by their readers, with a reason.
        known
            .or_else(|| begins(b"PARE").then_some(Format::Parquet))
            .or_else(|| begins(ipc::FEATHER_1).then_some(Format::Arrow))
    }
}

/// Finds a value by its name.
fn find_named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> Result<T> {
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
        find_named("format", name, &Format::ALL.map(|f| (f.name(), f)))
    }
}

/// Batches of a file.
pub type Reader = Box<dyn Iterator<Item = Result<RecordBatch>>>;

/// A file that was opened.
pub struct OpenedFile {
    pub schema: SchemaRef,
    pub metadata: Vec<KeyValue>,
    /// Number of rows, and which columns have nulls, if the file says so.
    pub known: Option<(usize, Vec<bool>)>,
    pub content: FileContent,
}

/// Where the batches come from.
pub enum FileContent {
    Parquet(parquet::File),
    ArrowFile(Input, SchemaRef),
    ArrowStream(Input),
    Csv(Input, SchemaRef),
    /// A CSV whose lines are kept.
    Verbatim(Arc<csv::VerbatimCsv>),
    /// Batches in memory.
    Batches(Vec<RecordBatch>),
}

/// Opens a file.
pub fn open(format: Format, input: Input) -> Result<OpenedFile> {
    if matches!(format, Format::Arrow | Format::Stream) {
        ipc::check_version(&input)?;
    }
    match format {
        Format::Parquet => parquet::open(input),
        Format::Arrow if ipc::is_file(&input)? => ipc::open_file(input),
        Format::Arrow | Format::Stream => ipc::open_stream(input),
        Format::Csv => csv::open(input),
    }
}

impl FileContent {
    /// Batches of all columns, or of one.
    pub fn batches(&self, column: Option<usize>) -> Result<Reader> {
        match self {
            FileContent::Parquet(file) => file.batches(column),
            FileContent::ArrowFile(input, schema) => ipc::file_batches(input, schema, column),
            FileContent::ArrowStream(input) => ipc::stream_batches(input, column),
            FileContent::Csv(input, schema) => csv::batches(input, schema, column),
            FileContent::Verbatim(verbatim) => verbatim.batches(column),
            FileContent::Batches(batches) => Ok(Box::new(batches.clone().into_iter().map(
                move |batch| match column {
                    Some(column) => Ok(batch.project(&[column])?),
                    None => Ok(batch),
                },
            ))),
        }
    }
}

/// Slices of a batch. A copy of each takes little memory.
pub fn pieces(batch: RecordBatch) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut left = batch;
    std::iter::from_fn(move || {
        let most = left.slice(0, left.num_rows().min(BATCH));
        let rows = match most.num_columns() {
            0 => most.num_rows(),
            _ => rows_within(most.columns(), BATCH_BYTES),
        };
        left = left.slice(rows, left.num_rows() - rows);
        (rows > 0).then(|| Ok(most.slice(0, rows)))
    })
}

/// A schema without its line column, which only a CSV has, and the columns of it, unless all are.
fn without_lines(schema: SchemaRef) -> Result<(SchemaRef, Option<Vec<usize>>)> {
    let fields = schema.fields();
    if !fields.iter().any(|field| is_lines(field)) {
        return Ok((schema, None));
    }
    let shown = (0..fields.len()).filter(|&n| !is_lines(&fields[n]));
    let columns: Vec<usize> = shown.collect();
    Ok((Arc::new(schema.project(&columns)?), Some(columns)))
}

/// Collects a table in memory, batch by batch.
pub struct Collector {
    /// Its schema.
    pub schema: SchemaRef,
    /// Its batches.
    pub batches: Vec<RecordBatch>,
    /// The columns that are kept, unless all are.
    columns: Option<Vec<usize>>,
}

impl Collector {
    /// An empty table.
    pub fn new(schema: SchemaRef) -> Result<Collector> {
        let (schema, columns) = without_lines(schema)?;
        Ok(Collector {
            schema,
            batches: Vec::new(),
            columns,
        })
    }

    /// Appends rows.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        self.batches.push(match &self.columns {
            Some(columns) => batch.project(columns)?,
            None => batch,
        });
        Ok(())
    }
}

/// Writes a table to a file, batch by batch. Pages of Parquet are compressed.
pub struct Writer<W: Write + Send> {
    title: &'static str,
    file: FormatWriter<W>,
    /// The columns that are written, unless all are.
    columns: Option<Vec<usize>>,
}

enum FormatWriter<W: Write + Send> {
    Parquet(Box<parquet::Writer<W>>),
    ArrowFile(ipc::File<W>),
    ArrowStream(ipc::Stream<W>),
    Csv(csv::Writer<W>),
}

impl<W: Write + Send> Writer<W> {
    /// A writer of a table. Rows come in `order`, which a Parquet footer records. It is empty if
    /// they have no order.
    pub fn new(
        out: W,
        format: Format,
        compression: Compression,
        schema: SchemaRef,
        metadata: &[KeyValue],
        order: &[OrderBy],
    ) -> Result<Writer<W>> {
        let (schema, columns) = match format {
            Format::Csv => (schema, None),
            _ => without_lines(schema)?,
        };
        Writer::whole(out, format, compression, schema, metadata, order)
            .map(|writer| Writer { columns, ..writer })
    }

    /// A writer of all columns.
    fn whole(
        out: W,
        format: Format,
        compression: Compression,
        schema: SchemaRef,
        metadata: &[KeyValue],
        order: &[OrderBy],
    ) -> Result<Writer<W>> {
        let title = format.title();
        let file = writing(title, || {
            Ok(match format {
                Format::Parquet => {
                    let writer = parquet::Writer::new(out, &schema, metadata, compression, order)?;
                    FormatWriter::Parquet(Box::new(writer))
                }
                Format::Arrow => FormatWriter::ArrowFile(ipc::file(out, &schema)?),
                Format::Stream => FormatWriter::ArrowStream(ipc::stream(out, &schema)?),
                Format::Csv => FormatWriter::Csv(csv::Writer::new(out, &schema)?),
            })
        })?;
        let columns = None;
        Ok(Writer {
            title,
            file,
            columns,
        })
    }

    /// Writes rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let shown = self.columns.as_ref().map(|columns| batch.project(columns));
        let shown = shown.transpose()?;
        let (file, batch) = (&mut self.file, shown.as_ref().unwrap_or(batch));
        writing(self.title, || match file {
            FormatWriter::Parquet(writer) => writer.write(batch),
            FormatWriter::ArrowFile(writer) => writer.write(batch).map_err(Error::from),
            FormatWriter::ArrowStream(writer) => writer.write(batch).map_err(Error::from),
            FormatWriter::Csv(writer) => writer.write(batch),
        })
    }

    /// Completes the file.
    pub fn finish(self) -> Result<()> {
        let file = self.file;
        writing(self.title, || match file {
            FormatWriter::Parquet(writer) => writer.finish(),
            FormatWriter::ArrowFile(mut writer) => writer.finish().map_err(Error::from),
            FormatWriter::ArrowStream(mut writer) => writer.finish().map_err(Error::from),
            FormatWriter::Csv(writer) => writer.finish(),
        })
    }
}

fn writing<T>(title: &str, write: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = guarded("its types don't fit", write);
    done.map_err(|e| e.of(format!("the table can't be written as {title}")))
}

impl Table {
    /// Encodes the table as a file. Pages of Parquet are compressed.
    pub fn write(&self, format: Format, compression: Compression) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        let schema = self.schema();
        let mut writer = Writer::new(&mut file, format, compression, schema, &self.metadata, &[])?;
        writer.write(&self.batch)?;
        writer.finish()?;
        Ok(file)
    }
}

/// Encodes all columns of a batch as an Arrow stream.
pub fn stream(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let (plain, schema) = (Compression::Uncompressed, batch.schema());
    let mut writer = Writer::whole(&mut file, Format::Stream, plain, schema, &[], &[])?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(file)
}
