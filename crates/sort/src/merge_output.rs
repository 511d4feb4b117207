//! What a merge of sorted partitions needs: the sort key, the row layout, and the values that the
//! rows do not hold.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use crate::key::SortKey;
use crate::row_layout::{ColumnValues, Row, RowLayout};
use crate::spill::Spills;
use crate::Result;

/// Whether an engine took the keys of two rows for equal.
pub type Equal<'a> = Box<dyn Fn(usize, usize) -> bool + 'a>;
/// The same, of rows whose first key is so.
pub type EqualKeys<'a> = dyn Fn(&ArrayRef) -> Result<Equal<'static>> + 'a;

/// How rows become a table.
pub struct MergeOutput<'a> {
    pub key: &'a SortKey,
    pub layout: &'a RowLayout,
    /// What is not in the rows.
    pub values: ColumnValues<'a>,
    /// Where rows wait that are merged more than once.
    pub spills: &'a Spills,
    pub schema: SchemaRef,
    /// Of sorts by a key that is not that of the rows' order; without it the beginning of the normalised key, if it is that.
    pub equal_keys: Option<&'a EqualKeys<'a>>,
}

impl MergeOutput<'_> {
    /// A row of some that stand together.
    pub fn row<'r>(&self, rows: &'r [u8], at: usize) -> &'r [u8] {
        &rows[at * self.layout.row_bytes..][..self.layout.row_bytes]
    }

    /// The key's columns of rows of these partitions.
    pub fn keys(&self, partitions: &[u32], rows: &[u8]) -> Result<Vec<ArrayRef>> {
        let rows = rows.chunks_exact(self.layout.row_bytes);
        let rows: Vec<Row> = partitions.iter().copied().zip(rows).collect();
        self.layout.decode(self.values, &self.key.columns, &rows)
    }
}
