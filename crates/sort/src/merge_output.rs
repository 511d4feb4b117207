// SPDX-License-Identifier: Apache-2.0

//! What a merge of sorted partitions needs: the sort key, the row layout, and the values that the
//! rows do not hold.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use crate::key::SortKey;
use crate::row_layout::{ColumnValues, Row, RowLayout};
use crate::spill::Spills;
use crate::Result;

/// Returns whether the engine took the keys of two rows for equal.
pub type Equal<'a> = Box<dyn Fn(usize, usize) -> bool + 'a>;
/// Makes the comparison for rows with these values in the first key column.
pub type EqualKeys<'a> = dyn Fn(&ArrayRef) -> Result<Equal<'static>> + 'a;

/// How merged rows become a table.
pub struct MergeOutput<'a> {
    pub key: &'a SortKey,
    pub layout: &'a RowLayout,
    /// The values that are not in the rows.
    pub values: ColumnValues<'a>,
    /// Storage for runs between two passes of the merge.
    pub spills: &'a Spills,
    pub schema: SchemaRef,
    /// Which keys the engine took for equal, if its key is not the key of the order. `None`: the
    /// prefix of the normalised key, if that is what the engine compared.
    pub equal_keys: Option<&'a EqualKeys<'a>>,
}

impl MergeOutput<'_> {
    /// One row of consecutive rows.
    pub fn row<'r>(&self, rows: &'r [u8], at: usize) -> &'r [u8] {
        &rows[at * self.layout.row_bytes..][..self.layout.row_bytes]
    }

    /// The key columns of rows of these partitions.
    pub fn keys(&self, partitions: &[u32], rows: &[u8]) -> Result<Vec<ArrayRef>> {
        let rows = rows.chunks_exact(self.layout.row_bytes);
        let rows: Vec<Row> = partitions.iter().copied().zip(rows).collect();
        self.layout.decode(self.values, &self.key.columns, &rows)
    }
}
