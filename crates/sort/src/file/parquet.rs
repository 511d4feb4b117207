//! Apache Parquet.

mod groups;
mod text;

use std::io::Write;
use std::str::FromStr;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ArrowWriter, ARROW_SCHEMA_META_KEY};
use parquet::basic;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::{named, Content, Opened, Reader};
use crate::input::Input;
use crate::{Error, Result};

/// Bytes of a row group in the writer's memory from which on it is written.
const GROUP_BYTES: usize = 64 << 20;

/// How pages are made smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Uncompressed,
    /// Fast.
    #[default]
    Snappy,
    /// Fast.
    Lz4,
    /// Small and old.
    Gzip,
    /// Small.
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
        named("compression", name, &all)
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

/// A file whose footer has been read.
pub struct File {
    pub input: Input,
    footer: ArrowReaderMetadata,
}

pub fn open(input: Input) -> Result<Opened> {
    let options = ArrowReaderOptions::default();
    let footer = ArrowReaderMetadata::load(&input, options).map_err(Error::new)?;
    let file = footer.metadata();
    let known = file.file_metadata().key_value_metadata();
    let own = |pair: &&KeyValue| pair.key != ARROW_SCHEMA_META_KEY;
    let metadata = known.into_iter().flatten().filter(own).cloned().collect();
    let groups = file.row_groups();
    let rows = groups.iter().try_fold(0usize, |sum, group| {
        sum.checked_add(usize::try_from(group.num_rows()).ok()?)
    });
    let rows = rows.ok_or_else(|| Error::new("its footer says an impossible number of rows"))?;
    let schema = footer.schema().clone();
    // Without statistics none are known: columns that have some nevertheless are found when they are read.
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
    Ok(Opened {
        known: Some((rows, nulls)),
        metadata,
        schema,
        content: Content::Parquet(File { input, footer }),
    })
}

impl File {
    pub fn batches(&self, column: Option<usize>) -> Result<Reader> {
        let (input, footer) = (self.input.clone(), self.footer.clone());
        let batches = groups::Groups::new(input, footer, column);
        Ok(Box::new(batches.map(|batch| batch.map_err(Error::new))))
    }
}

/// Writes a file batch by batch.
pub struct Writer<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> Writer<W> {
    pub fn new(
        out: W,
        schema: SchemaRef,
        metadata: &[KeyValue],
        compression: Compression,
    ) -> Result<Writer<W>> {
        let properties = WriterProperties::builder()
            .set_compression(compression.into())
            .set_key_value_metadata(Some(metadata.to_vec()));
        let writer = ArrowWriter::try_new(out, schema, Some(properties.build()));
        writer.map(Writer).map_err(Error::new)
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(Error::new)?;
        if self.0.memory_size() > GROUP_BYTES {
            self.0.flush().map_err(Error::new)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        self.0.close().map(drop).map_err(Error::new)
    }
}
