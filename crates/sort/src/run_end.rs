// SPDX-License-Identifier: Apache-2.0

//! Run-end-encoded columns. The libraries that normalise, join and write columns ignore the slice
//! of such a column, so it is copied first.

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take;

use crate::{Error, Result};

fn has_run_ends(kind: &DataType) -> bool {
    use DataType::*;
    match kind {
        RunEndEncoded(..) => true,
        List(of) | LargeList(of) | FixedSizeList(of, _) | Map(of, _) => {
            has_run_ends(of.data_type())
        }
        Struct(fields) => fields.iter().any(|field| has_run_ends(field.data_type())),
        Dictionary(_, values) => has_run_ends(values),
        _ => false,
    }
}

/// A copy that holds no more than its rows.
pub fn copied(column: &ArrayRef) -> Result<ArrayRef> {
    let rows = UInt64Array::from_iter_values(0..column.len() as u64);
    take(column, &rows, None).map_err(Error::from)
}

/// The same column. If it is run-end-encoded, its runs cover only its rows.
pub fn unsliced(column: &ArrayRef) -> Result<ArrayRef> {
    match has_run_ends(column.data_type()) {
        true => copied(column),
        false => Ok(column.clone()),
    }
}

/// Refuses columns whose run ends can't count `rows` rows.
pub fn check_run_ends(schema: &Schema, rows: usize) -> Result<()> {
    for field in schema.fields() {
        let DataType::RunEndEncoded(ends, _) = field.data_type() else {
            continue;
        };
        let most = match ends.data_type() {
            DataType::Int16 => i16::MAX as usize,
            DataType::Int32 => i32::MAX as usize,
            _ => usize::MAX,
        };
        if rows > most {
            return Err(Error::new(format!(
                "column {:?}: its run ends are {}, which end at {most}, and the table has {rows} \
                    rows: make them int64",
                field.name(),
                ends.data_type()
            )));
        }
    }
    Ok(())
}
