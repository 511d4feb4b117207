// SPDX-License-Identifier: Apache-2.0

//! Apache Parquet.

mod checksum;
mod encryption;
mod fit;
mod groups;
mod logical;
mod text;
mod units;

use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, ARROW_SCHEMA_META_KEY};
use parquet::basic::{self, SortOrder};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaDataBuilder, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::SchemaDescriptor;

use super::{find_named, FileContent, OpenedFile, Reader};
use crate::input::Input;
use crate::{Error, OrderBy, Result};

/// A row group is written once the writer holds this number of bytes.
const GROUP_BYTES: usize = 64 << 20;

/// Compression of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    Uncompressed,
    /// Snappy: fast.
    #[default]
    Snappy,
    /// LZ4: fast.
    Lz4,
    /// Gzip: small, and widely supported.
    Gzip,
    /// Zstandard: small.
    Zstd,
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(name: &str) -> Result<Compression> {
        let all = [
            ("none", Compression::Uncompressed),
            ("snappy", Compression::Snappy),
            ("lz4", Compression::Lz4),
            ("gzip", Compression::Gzip),
            ("zstd", Compression::Zstd),
        ];
        find_named("compression", name, &all)
    }
}

impl From<Compression> for basic::Compression {
    fn from(compression: Compression) -> basic::Compression {
        match compression {
            Compression::Uncompressed => basic::Compression::UNCOMPRESSED,
            Compression::Snappy => basic::Compression::SNAPPY,
            Compression::Lz4 => basic::Compression::LZ4_RAW,
            Compression::Gzip => basic::Compression::GZIP(Default::default()),
            Compression::Zstd => basic::Compression::ZSTD(Default::default()),
        }
    }
}

/// A file whose footer was read.
pub struct File {
    pub input: Input,
    footer: ArrowReaderMetadata,
}

pub fn open(input: Input) -> Result<OpenedFile> {
    encryption::check(&input)?;
    let options = ArrowReaderOptions::default();
    let footer = ArrowReaderMetadata::load(&input, options)?;
    let (footer, rows) = with_rows(footer)?;
    let leaves = footer.parquet_schema();
    let holding = units::schema_that_fits(&input, leaves, footer.schema());
    let footer =
        match holding.map_err(|e| Error::new(checksum::describe(&input, &e.to_string())))? {
            Some(schema) => {
                let options = ArrowReaderOptions::default().with_schema(schema);
                let file = footer.metadata().clone();
                ArrowReaderMetadata::try_new(file, options)?
            }
            None => footer,
        };
    let file = footer.metadata();
    let known = file.file_metadata().key_value_metadata();
    let own =
        |pair: &&KeyValue| pair.key != ARROW_SCHEMA_META_KEY && !logical::is_logical_types(pair);
    let known = known.into_iter().flatten().filter(own).cloned();
    let metadata = known
        .chain(logical::of_file(footer.parquet_schema()))
        .collect();
    let groups = file.row_groups();
    let schema = logical::with_extensions(footer.schema(), footer.parquet_schema());
    // Without statistics no nulls are assumed. Columns that have some are detected when they are
    // read.
    let mut nulls = vec![false; schema.fields().len()];
    let leaves = file.file_metadata().schema_descr();
    for at in 0..leaves.num_columns() {
        let counts = groups.iter().filter_map(|group| group.columns().get(at));
        let mut counts = counts.filter_map(|chunk| chunk.statistics()?.null_count_opt());
        let root = leaves.get_column_root_idx(at);
        if let Some(nulls) = nulls.get_mut(root) {
            *nulls |= counts.any(|count| count > 0);
        }
    }
    Ok(OpenedFile {
        known: Some((rows, nulls)),
        metadata,
        schema: schema.into(),
        content: FileContent::Parquet(File { input, footer }),
    })
}

/// Corrects the footer's number of rows to the sum of its row groups, and returns that number. Some
/// files have 0 in that field, and the library reads no more rows than it says.
fn with_rows(footer: ArrowReaderMetadata) -> Result<(ArrowReaderMetadata, usize)> {
    let groups = footer.metadata().row_groups();
    let rows = groups.iter().try_fold(0i64, |sum, group| {
        sum.checked_add(group.num_rows())
            .filter(|_| group.num_rows() >= 0)
    });
    let impossible = || Error::new("its footer says an impossible number of rows");
    let rows = rows.ok_or_else(impossible)?;
    let all = usize::try_from(rows).map_err(|_| impossible())?;
    let said = footer.metadata().file_metadata();
    if said.num_rows() == rows {
        return Ok((footer, all));
    }
    let file = FileMetaData::new(
        said.version(),
        rows,
        said.created_by().map(String::from),
        said.key_value_metadata().cloned(),
        said.schema_descr_ptr(),
        said.column_orders().cloned(),
    );
    let file = ParquetMetaDataBuilder::new(file).set_row_groups(groups.to_vec());
    let options = ArrowReaderOptions::default();
    let footer = ArrowReaderMetadata::try_new(file.build().into(), options);
    footer.map(|footer| (footer, all)).map_err(Error::from)
}

impl File {
    pub fn batches(&self, column: Option<usize>) -> Result<Reader> {
        let (input, footer) = (self.input.clone(), self.footer.clone());
        let batches = groups::RowGroupBatches::new(input, footer, column);
        let input = self.input.clone();
        let describe = move |error| Error::new(checksum::describe(&input, &format!("{error}")));
        Ok(Box::new(batches.map(move |batch| batch.map_err(&describe))))
    }
}

/// Writes a file batch by batch.
pub struct Writer<W: Write + Send> {
    file: ArrowWriter<W>,
    schema: SchemaRef,
}

impl<W: Write + Send> Writer<W> {
    /// A writer of rows in this order.
    pub fn new(
        out: W,
        schema: &Schema,
        metadata: &[KeyValue],
        compression: Compression,
        order: &[OrderBy],
    ) -> Result<Writer<W>> {
        let schema = Arc::new(fit::schema(schema)?);
        let derived = ArrowSchemaConverter::new().convert(&schema);
        let leaves = logical::to_file(&derived?, &schema, metadata)?;
        let metadata = metadata
            .iter()
            .filter(|pair| !logical::is_logical_types(pair));
        let mut properties = WriterProperties::builder()
            .set_compression(compression.into())
            .set_sorting_columns(sorting(&schema, &leaves, order))
            .set_key_value_metadata(Some(metadata.cloned().collect()));
        let without_order = leaves.columns().iter();
        for leaf in without_order.filter(|leaf| leaf.sort_order() == SortOrder::UNDEFINED) {
            let path = leaf.path().clone();
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_parquet_schema(leaves);
        let file = ArrowWriter::try_new_with_options(out, schema.clone(), options);
        let file = file?;
        Ok(Writer { file, schema })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = fit::batch(batch, &self.schema)?;
        self.file.write(&batch)?;
        if self.file.memory_size() > GROUP_BYTES {
            self.file.flush()?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        self.file.close().map(drop).map_err(Error::from)
    }
}

/// The order as the footer records it. It ends at the first column that is nested, or whose values
/// Parquet has no order of.
fn sorting(
    schema: &Schema,
    leaves: &SchemaDescriptor,
    order: &[OrderBy],
) -> Option<Vec<SortingColumn>> {
    let column = |by: &OrderBy| {
        let (root, _) = schema.column_with_name(&by.column)?;
        let mut all = 0..leaves.num_columns();
        let at = all.find(|&at| leaves.get_column_root_idx(at) == root)?;
        let leaf = leaves.column(at);
        let plain = leaves.get_column_root(at).is_primitive();
        let ordered = leaf.sort_order() != SortOrder::UNDEFINED;
        (plain && ordered).then_some(SortingColumn {
            column_idx: at as i32,
            descending: by.descending,
            nulls_first: by.nulls_first,
        })
    };
    let columns: Vec<SortingColumn> = order.iter().map_while(column).collect();
    (!columns.is_empty()).then_some(columns)
}
