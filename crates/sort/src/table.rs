// SPDX-License-Identifier: Apache-2.0

//! Tables in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::file::metadata::KeyValue;

use crate::input::Input;

/// A table in memory.
#[derive(Clone, Debug)]
pub struct Table {
    /// All rows.
    pub batch: RecordBatch,
    /// The key-value metadata of a Parquet file.
    pub metadata: Vec<KeyValue>,
    /// The Parquet file that the table came from.
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

    /// The table's schema.
    pub fn schema(&self) -> Arc<arrow_schema::Schema> {
        self.batch.schema()
    }
}
