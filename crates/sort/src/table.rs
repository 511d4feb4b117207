//! A table in memory, from and to the bytes of a Parquet file or of an Arrow IPC stream.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ARROW_SCHEMA_META_KEY};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::guard::guarded;
use crate::{Error, Result};

/// Rows that are read at a time.
const BATCH: usize = 64 << 10;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// All of its rows.
    pub batch: RecordBatch,
    /// What a Parquet file says beside its schema.
    pub metadata: Vec<KeyValue>,
    /// The Parquet file that it came from.
    pub(crate) file: Option<Bytes>,
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Table {
        Table {
            batch,
            metadata: Vec::new(),
            file: None,
        }
    }
}

fn collect(
    schema: &SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
) -> Result<RecordBatch> {
    let batches: std::result::Result<Vec<_>, _> = batches.collect();
    let batches = batches.map_err(Error::new)?;
    concat_batches(schema, &batches).map_err(Error::new)
}

impl Table {
    /// Reads the bytes of a Parquet file.
    pub fn of_parquet(file: Vec<u8>) -> Result<Table> {
        guarded("damaged Parquet", move || {
            let file = Bytes::from(file);
            let damaged = |e| Error::new(format!("no Parquet that can be read: {e}"));
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(damaged)?;
            let known = builder.metadata().file_metadata().key_value_metadata();
            let own = |pair: &&KeyValue| pair.key != ARROW_SCHEMA_META_KEY;
            let metadata = known.into_iter().flatten().filter(own).cloned().collect();
            let schema = builder.schema().clone();
            let reader = builder.with_batch_size(BATCH).build().map_err(damaged)?;
            let batch = collect(&schema, reader)
                .map_err(|e| Error::new(format!("no Parquet that can be read: {e}")))?;
            Ok(Table {
                batch,
                metadata,
                file: Some(file),
            })
        })
    }

    /// Reads an Arrow IPC stream.
    pub fn of_stream(stream: &[u8]) -> Result<Table> {
        guarded("a damaged Arrow stream", || {
            let damaged = |e| Error::new(format!("no Arrow stream: {e}"));
            let reader = StreamReader::try_new(stream, None).map_err(damaged)?;
            let batch = collect(&reader.schema(), reader)
                .map_err(|e| Error::new(format!("no Arrow stream: {e}")))?;
            Ok(batch.into())
        })
    }

    /// As a Parquet file, compressed with Snappy.
    pub fn to_parquet(&self) -> Result<Vec<u8>> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(self.metadata.clone()));
        let schema = self.batch.schema();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, schema, Some(properties.build()))
            .map_err(Error::new)?;
        writer.write(&self.batch).map_err(Error::new)?;
        writer.close().map_err(Error::new)?;
        Ok(file)
    }

    /// As an Arrow IPC stream.
    pub fn to_stream(&self) -> Result<Vec<u8>> {
        let mut writer =
            StreamWriter::try_new(Vec::new(), &self.batch.schema()).map_err(Error::new)?;
        writer.write(&self.batch).map_err(Error::new)?;
        writer.into_inner().map_err(Error::new)
    }

    /// The same table with other rows.
    pub(crate) fn with_batch(&self, batch: RecordBatch) -> Table {
        Table {
            batch,
            metadata: self.metadata.clone(),
            file: None,
        }
    }

    /// Its schema.
    pub fn schema(&self) -> Arc<arrow_schema::Schema> {
        self.batch.schema()
    }
}
