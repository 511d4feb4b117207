//! Apache Parquet.

use std::str::FromStr;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ARROW_SCHEMA_META_KEY};
use parquet::basic;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::{collect, named, BATCH};
use crate::{Error, Result, Table};

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

pub fn read(file: Bytes) -> Result<Table> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(Error::new)?;
    let known = builder.metadata().file_metadata().key_value_metadata();
    let own = |pair: &&KeyValue| pair.key != ARROW_SCHEMA_META_KEY;
    let metadata = known.into_iter().flatten().filter(own).cloned().collect();
    let rows: i64 = builder
        .metadata()
        .row_groups()
        .iter()
        .map(|g| g.num_rows())
        .sum();
    let schema = builder.schema().clone();
    let reader = builder.with_batch_size(BATCH).build().map_err(Error::new)?;
    let batch = collect(&schema, reader)?;
    if usize::try_from(rows) != Ok(batch.num_rows()) {
        let found = batch.num_rows();
        return Err(Error::new(format!(
            "its footer says {rows} rows, and its pages have {found}"
        )));
    }
    Ok(Table {
        batch,
        metadata,
        file: Some(file),
    })
}

pub fn write(table: &Table, compression: Compression) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(compression.into())
        .set_key_value_metadata(Some(table.metadata.clone()));
    let mut file = Vec::new();
    let schema = table.batch.schema();
    let mut writer =
        ArrowWriter::try_new(&mut file, schema, Some(properties.build())).map_err(Error::new)?;
    writer.write(&table.batch).map_err(Error::new)?;
    writer.close().map_err(Error::new)?;
    Ok(file)
}
