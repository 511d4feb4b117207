//! A table in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::file::metadata::KeyValue;

use crate::input::Input;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// All of its rows.
    pub batch: RecordBatch,
    /// What a Parquet file says beside its schema.
    pub metadata: Vec<KeyValue>,
    /// The Parquet file that it came from.
    pub(crate) file: Option<Input>,
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

impl Table {
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
