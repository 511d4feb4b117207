//! Rows of one size. Columns of fixed width stand in them, of columns of variable length a place and a length in a heap that stays where it
//! is: the column's own bytes in the host's memory.

use std::collections::HashMap;

use arrow_array::{make_array, Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};
use arrow_select::take::{take, TakeOptions};

use crate::{Error, Result};

/// Most bytes of a row that the engine `row_shuffle` takes.
const MOST: usize = 65536;

/// How a column stands in a row.
#[derive(Clone, Copy, Debug)]
enum Store {
    /// Its bytes.
    Fixed,
    /// A byte for a bit.
    Bit,
    /// Place and length in the column's bytes, as wide as the column's offsets.
    Heap,
    /// The number of its row in the whole table: of all other types.
    Place,
}

#[derive(Clone, Debug)]
struct Column {
    at: usize,
    /// Of each of its numbers.
    width: usize,
    store: Store,
    /// The bit at the row's start that says that there is a value.
    valid: Option<usize>,
}

/// How the rows of a table look.
#[derive(Clone, Debug)]
pub struct Form {
    columns: Vec<Column>,
    /// Bytes of a row.
    pub row_bytes: usize,
}

fn store_of(kind: &DataType) -> (Store, usize) {
    match kind {
        DataType::Boolean => (Store::Bit, 1),
        DataType::Utf8 | DataType::Binary => (Store::Heap, 4),
        DataType::LargeUtf8 | DataType::LargeBinary => (Store::Heap, 8),
        DataType::FixedSizeBinary(width) if *width > 0 => (Store::Fixed, *width as usize),
        other => match other.primitive_width() {
            Some(width) => (Store::Fixed, width),
            None => (Store::Place, 8),
        },
    }
}

fn out_of_heap() -> Error {
    Error::new("a row came back with a place that its column does not have")
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b))
}

impl Form {
    /// The form of a table's rows.
    pub fn of(batch: &RecordBatch) -> Result<Form> {
        let nulls = batch.columns().iter().map(|c| c.null_count() > 0);
        Form::new(&batch.schema(), &nulls.collect::<Vec<bool>>())
    }

    /// The form of rows with these columns, of which some have nulls.
    pub fn new(schema: &Schema, nulls: &[bool]) -> Result<Form> {
        let kinds = schema.fields().iter().map(|field| field.data_type());
        let stored: Vec<_> = kinds
            .zip(nulls)
            .map(|(kind, &nulls)| (store_of(kind), nulls))
            .collect();
        let has_bit = |store: Store, nulls: bool| nulls && !matches!(store, Store::Place);
        let bits = stored.iter().filter(|s| has_bit(s.0 .0, s.1)).count();
        let (mut at, mut bit) = (bits.div_ceil(8), 0);
        let mut columns = Vec::new();
        for ((store, width), nulls) in stored {
            let valid = has_bit(store, nulls).then_some(bit);
            bit += usize::from(valid.is_some());
            columns.push(Column {
                at,
                width,
                store,
                valid,
            });
            at += if matches!(store, Store::Heap) {
                2 * width
            } else {
                width
            };
        }
        let row_bytes = at.max(1);
        if row_bytes > MOST {
            return Err(Error::new(format!(
                "the table's rows are too wide: {row_bytes} bytes in fixed form, of at most {MOST}"
            )));
        }
        Ok(Form { columns, row_bytes })
    }

    /// Rows of a part of a table, in the order of their numbers in it; `first` is the number of its first row in the table.
    pub fn encode(&self, part: &[ArrayRef], first: usize, order: &[u32]) -> Vec<u8> {
        let mut out = vec![0; order.len() * self.row_bytes];
        for (column, array) in self.columns.iter().zip(part) {
            column.encode(array, first, order, &mut out, self.row_bytes);
        }
        out
    }

    /// Which columns are not in the rows.
    pub fn apart(&self) -> impl Iterator<Item = bool> + '_ {
        let columns = self.columns.iter();
        columns.map(|column| matches!(column.store, Store::Heap | Store::Place))
    }

    /// Columns of rows, in the order of (part, row); what is in no row is in the columns of the whole table.
    pub fn decode(
        &self,
        whole: &[ArrayRef],
        which: &[usize],
        parts: &[&[u8]],
        order: &[(u32, u32)],
    ) -> Result<Vec<ArrayRef>> {
        let size = self.row_bytes;
        let rows: Vec<&[u8]> = order
            .iter()
            .map(|&(part, row)| &parts[part as usize][row as usize * size..][..size])
            .collect();
        // A column may be asked for more than once.
        let mut done: HashMap<usize, ArrayRef> = HashMap::new();
        which
            .iter()
            .map(|&n| {
                if let Some(array) = done.get(&n) {
                    return Ok(array.clone());
                }
                let array = self.columns[n].decode(&whole[n], &rows)?;
                done.insert(n, array.clone());
                Ok(array)
            })
            .collect()
    }
}

impl Column {
    fn encode(
        &self,
        array: &ArrayRef,
        first: usize,
        order: &[u32],
        out: &mut [u8],
        row_bytes: usize,
    ) {
        let (at, width) = (self.at, self.width);
        let rows = order.iter().map(|&row| row as usize);
        let places = rows.zip(out.chunks_exact_mut(row_bytes));
        let data = array.to_data();
        match self.store {
            Store::Fixed => {
                let from = &data.buffers()[0][data.offset() * width..];
                for (row, out) in places {
                    out[at..at + width].copy_from_slice(&from[row * width..][..width]);
                }
            }
            Store::Bit => {
                let bits = BooleanBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
                places.for_each(|(row, out)| out[at] = bits.value(row).into());
            }
            Store::Heap => {
                let ends = &data.buffers()[0][data.offset() * width..];
                for (row, out) in places {
                    let start = number(&ends[row * width..][..width]);
                    let end = number(&ends[(row + 1) * width..][..width]);
                    let entry = &mut out[at..at + 2 * width];
                    entry[..width].copy_from_slice(&start.to_le_bytes()[..width]);
                    entry[width..].copy_from_slice(&(end - start).to_le_bytes()[..width]);
                }
            }
            Store::Place => {
                for (row, out) in places {
                    out[at..at + 8].copy_from_slice(&((first + row) as u64).to_le_bytes());
                }
            }
        }
        if let (Some(bit), Some(nulls)) = (self.valid, array.nulls()) {
            for (&row, out) in order.iter().zip(out.chunks_exact_mut(row_bytes)) {
                out[bit / 8] |= u8::from(nulls.is_valid(row as usize)) << (bit % 8);
            }
        }
    }

    fn decode(&self, whole: &ArrayRef, rows: &[&[u8]]) -> Result<ArrayRef> {
        let (at, width) = (self.at, self.width);
        let nulls = self.valid.map(|bit| {
            let valid = |n: usize| rows[n][bit / 8] >> (bit % 8) & 1 == 1;
            NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), valid))
        });
        let builder = ArrayData::builder(whole.data_type().clone())
            .len(rows.len())
            .nulls(nulls);
        let builder = match self.store {
            Store::Fixed => {
                let mut values = MutableBuffer::with_capacity(rows.len() * width);
                for row in rows {
                    values.extend_from_slice(&row[at..at + width]);
                }
                builder.add_buffer(values.into())
            }
            Store::Bit => {
                let bits = BooleanBuffer::collect_bool(rows.len(), |n| rows[n][at] != 0);
                builder.add_buffer(bits.into_inner())
            }
            Store::Heap => {
                let data = whole.to_data();
                let heap = &data.buffers()[1];
                let mut ends = MutableBuffer::with_capacity((rows.len() + 1) * width);
                let mut values = MutableBuffer::with_capacity(heap.len());
                ends.extend_from_slice(&0u64.to_le_bytes()[..width]);
                for row in rows {
                    let entry = &row[at..at + 2 * width];
                    let (start, bytes) = (number(&entry[..width]), number(&entry[width..]));
                    let end = start.checked_add(bytes).ok_or_else(out_of_heap)?;
                    values.extend_from_slice(heap.get(start..end).ok_or_else(out_of_heap)?);
                    ends.extend_from_slice(&values.len().to_le_bytes()[..width]);
                }
                builder.add_buffer(ends.into()).add_buffer(values.into())
            }
            Store::Place => {
                let numbers = rows.iter().map(|row| number(&row[at..at + 8]) as u64);
                let numbers = UInt64Array::from_iter_values(numbers);
                let check_bounds = true;
                return take(whole, &numbers, Some(TakeOptions { check_bounds }))
                    .map_err(Error::new);
            }
        };
        builder.build().map(make_array).map_err(Error::new)
    }
}
