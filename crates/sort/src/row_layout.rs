// SPDX-License-Identifier: Apache-2.0

//! Rows of one size. A column of fixed width is stored in the row. A column of variable length has
//! an offset and a length in the row; they refer to a heap on the host, or to the column's bytes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    make_array, Array, ArrayRef, BinaryViewArray, RecordBatch, StringViewArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};
use arrow_select::take::{take, TakeOptions};

use crate::spill::Spill;
use crate::{Error, Result};

/// Most bytes of a row of the engine `row_shuffle`.
const MAX_ROW_BYTES: usize = 65536;

/// How a row stores a column.
#[derive(Clone, Copy, Debug)]
enum ColumnEncoding {
    /// The bytes of the value.
    Fixed,
    /// One byte for a boolean.
    Bit,
    /// Offset and length in the heap, each as wide as the column's offsets.
    Heap,
    /// The number of the row in the whole table. Used for all other types.
    RowNumber,
}

#[derive(Clone, Debug)]
struct Column {
    at: usize,
    /// Bytes of a value, of an offset, or of a length.
    width: usize,
    encoding: ColumnEncoding,
    /// Index of the validity bit at the start of the row.
    valid: Option<usize>,
    kind: DataType,
}

/// Where the values are that the rows do not hold.
#[derive(Clone, Copy)]
pub enum ColumnValues<'a> {
    /// In the columns of the whole table.
    Columns(&'a [ArrayRef]),
    /// Values of variable length are in the heap of their part, all others in the columns of the
    /// whole table.
    Heaps(&'a [Spill], &'a [ArrayRef]),
}

impl<'a> ColumnValues<'a> {
    fn columns(&self) -> &'a [ArrayRef] {
        match self {
            ColumnValues::Columns(columns) | ColumnValues::Heaps(_, columns) => columns,
        }
    }
}

/// The number of a part, and a row of it.
pub type Row<'a> = (u32, &'a [u8]);

/// The layout of a table's rows.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Vec<Column>,
    /// Bytes of a row.
    pub row_bytes: usize,
}

fn encoding_of(kind: &DataType, heaps: bool) -> (ColumnEncoding, usize) {
    match kind {
        DataType::Boolean => (ColumnEncoding::Bit, 1),
        DataType::Utf8View | DataType::BinaryView if heaps => (ColumnEncoding::Heap, 4),
        DataType::Utf8 | DataType::Binary => (ColumnEncoding::Heap, 4),
        DataType::LargeUtf8 | DataType::LargeBinary => (ColumnEncoding::Heap, 8),
        DataType::FixedSizeBinary(width) if *width > 0 => (ColumnEncoding::Fixed, *width as usize),
        other => match other.primitive_width() {
            Some(width) => (ColumnEncoding::Fixed, width),
            None => (ColumnEncoding::RowNumber, 8),
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

impl RowLayout {
    /// The layout of a table whose values of variable length stay in their columns.
    pub fn of(batch: &RecordBatch) -> Result<RowLayout> {
        let nulls = batch.columns().iter().map(|c| c.null_count() > 0);
        RowLayout::new(&batch.schema(), &nulls.collect::<Vec<bool>>())
    }

    /// The layout of rows with these columns. `nulls` says which of them have nulls.
    pub fn new(schema: &Schema, nulls: &[bool]) -> Result<RowLayout> {
        RowLayout::build(schema, nulls, false)
    }

    /// The same, with values of variable length in heaps.
    pub fn with_heaps(schema: &Schema, nulls: &[bool]) -> Result<RowLayout> {
        RowLayout::build(schema, nulls, true)
    }

    fn build(schema: &Schema, nulls: &[bool], heaps: bool) -> Result<RowLayout> {
        let kinds = schema.fields().iter().map(|field| field.data_type());
        let stored: Vec<_> = kinds
            .zip(nulls)
            .map(|(kind, &nulls)| (encoding_of(kind, heaps), nulls, kind.clone()))
            .collect();
        let has_bit = |encoding: ColumnEncoding, nulls: bool| {
            nulls && !matches!(encoding, ColumnEncoding::RowNumber)
        };
        let bits = stored.iter().filter(|s| has_bit(s.0 .0, s.1)).count();
        let (mut at, mut bit) = (bits.div_ceil(8), 0);
        let mut columns = Vec::new();
        for ((encoding, width), nulls, kind) in stored {
            let valid = has_bit(encoding, nulls).then_some(bit);
            bit += usize::from(valid.is_some());
            columns.push(Column {
                at,
                width,
                encoding,
                valid,
                kind,
            });
            at += if matches!(encoding, ColumnEncoding::Heap) {
                2 * width
            } else {
                width
            };
        }
        let row_bytes = at.max(1);
        if row_bytes > MAX_ROW_BYTES {
            return Err(Error::new(format!(
                "the table's rows are too wide: {row_bytes} bytes in fixed form, of at most \
                    {MAX_ROW_BYTES}"
            )));
        }
        Ok(RowLayout { columns, row_bytes })
    }

    /// Encodes the rows `order` of a part. `first` is the number of its first row in the table.
    /// Values of variable length are appended to the heap if there is one.
    pub fn encode(
        &self,
        part: &[ArrayRef],
        first: usize,
        order: &[u32],
        heap: Option<&mut Spill>,
    ) -> Result<Vec<u8>> {
        let mut out = vec![0; order.len() * self.row_bytes];
        let in_heap = heap.is_some();
        for (column, array) in self.columns.iter().zip(part) {
            if !(in_heap && matches!(column.encoding, ColumnEncoding::Heap)) {
                column.encode(array, first, order, &mut out, self.row_bytes);
            }
            column.encode_nulls(array, order, &mut out, self.row_bytes);
        }
        if let Some(heap) = heap {
            self.append_to_heap(heap, part, order, &mut out)?;
        }
        Ok(out)
    }

    /// Appends values of variable length to a heap, row by row: those of a row are read together.
    fn append_to_heap(
        &self,
        heap: &mut Spill,
        part: &[ArrayRef],
        order: &[u32],
        out: &mut [u8],
    ) -> Result<()> {
        let columns = self.columns.iter().zip(part);
        let columns = columns.filter(|(column, _)| matches!(column.encoding, ColumnEncoding::Heap));
        let columns: Vec<_> = columns
            .map(|(column, array)| (column, bytes_of(array), array.nulls()))
            .collect();
        let (start, mut added) = (heap.len(), Vec::new());
        for (&row, out) in order.iter().zip(out.chunks_exact_mut(self.row_bytes)) {
            let row = row as usize;
            for (column, values, nulls) in &columns {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    continue;
                }
                let (place, value) = (start + added.len() as u64, values(row));
                let width = column.width;
                if width == 4 && place > u32::MAX.into() {
                    return Err(Error::new(
                        "a partition has more than 4 GiB of text and bytes: more devices, or \
                            smaller namespaces, make partitions smaller",
                    ));
                }
                let entry = &mut out[column.at..column.at + 2 * width];
                entry[..width].copy_from_slice(&place.to_le_bytes()[..width]);
                entry[width..].copy_from_slice(&value.len().to_le_bytes()[..width]);
                added.extend_from_slice(value);
            }
        }
        heap.append(&added)
    }

    /// Which columns are not in the rows.
    pub fn side_columns(&self) -> impl Iterator<Item = bool> + '_ {
        let columns = self.columns.iter();
        columns.map(|column| {
            matches!(
                column.encoding,
                ColumnEncoding::Heap | ColumnEncoding::RowNumber
            )
        })
    }

    /// Which columns the rows refer to by row number.
    pub fn by_row_number(&self) -> impl Iterator<Item = bool> + '_ {
        let columns = self.columns.iter();
        columns.map(|column| matches!(column.encoding, ColumnEncoding::RowNumber))
    }

    /// A column with nulls for which the rows have no validity bit.
    pub fn unexpected_nulls(&self, part: &[ArrayRef]) -> Option<usize> {
        let mut columns = self.columns.iter().zip(part);
        columns.position(|(column, array)| {
            let without =
                column.valid.is_none() && !matches!(column.encoding, ColumnEncoding::RowNumber);
            without && array.null_count() > 0
        })
    }

    /// How many of these rows have at most `most` bytes of variable length in these columns. At
    /// least one row is counted.
    pub fn rows_within(&self, which: &[usize], rows: &[u8], most: usize) -> usize {
        let columns = which.iter().map(|&n| &self.columns[n]);
        let columns: Vec<&Column> = columns
            .filter(|column| matches!(column.encoding, ColumnEncoding::Heap))
            .collect();
        let rows = rows.chunks_exact(self.row_bytes);
        let count = rows.len();
        if columns.is_empty() {
            return count;
        }
        let mut sum = 0usize;
        let fits = rows.into_iter().take_while(|row| {
            let bytes = columns.iter().map(|column| column.heap_slice(row).1);
            sum = bytes.fold(sum, usize::saturating_add);
            sum <= most
        });
        fits.count().max(1).min(count)
    }

    /// Decodes columns of rows.
    pub fn decode(
        &self,
        values: ColumnValues,
        which: &[usize],
        rows: &[Row],
    ) -> Result<Vec<ArrayRef>> {
        // A column may be requested more than once.
        let mut done: HashMap<usize, ArrayRef> = HashMap::new();
        if let ColumnValues::Heaps(heaps, _) = values {
            let in_heap = |n: &usize| matches!(self.columns[*n].encoding, ColumnEncoding::Heap);
            let mut of_heap: Vec<usize> = which.iter().copied().filter(in_heap).collect();
            of_heap.sort_unstable();
            of_heap.dedup();
            let columns: Vec<&Column> = of_heap.iter().map(|&n| &self.columns[n]).collect();
            let read = read_heaps(&columns, heaps, rows)?;
            for ((n, column), (ends, bytes)) in of_heap.iter().zip(&columns).zip(read) {
                done.insert(*n, column.of_bytes(rows, ends, bytes)?);
            }
        }
        which
            .iter()
            .map(|&n| {
                if let Some(array) = done.get(&n) {
                    return Ok(array.clone());
                }
                let array = self.columns[n].decode(&values.columns()[n], rows)?;
                done.insert(n, array.clone());
                Ok(array)
            })
            .collect()
    }
}

/// The bytes of a column's values.
fn bytes_of<'a>(array: &'a ArrayRef) -> Box<dyn Fn(usize) -> &'a [u8] + 'a> {
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_bytes::<Utf8Type>();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::LargeUtf8 => {
            let array = array.as_bytes::<LargeUtf8Type>();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Box::new(|row| array.value(row))
        }
        DataType::LargeBinary => {
            let array = array.as_bytes::<LargeBinaryType>();
            Box::new(|row| array.value(row))
        }
        _ => {
            let array = array.as_bytes::<BinaryType>();
            Box::new(|row| array.value(row))
        }
    }
}

/// The offsets of a column's values, and their bytes.
type OffsetsAndBytes = (MutableBuffer, MutableBuffer);

/// The values of rows in heaps, by column.
fn read_heaps(columns: &[&Column], heaps: &[Spill], rows: &[Row]) -> Result<Vec<OffsetsAndBytes>> {
    let mut out: Vec<OffsetsAndBytes> = columns
        .iter()
        .map(|column| {
            let mut ends = MutableBuffer::with_capacity((rows.len() + 1) * column.width);
            ends.extend_from_slice(&0u64.to_le_bytes()[..column.width]);
            (ends, MutableBuffer::new(0))
        })
        .collect();
    if columns.is_empty() {
        return Ok(out);
    }
    let mut record = Vec::new();
    for (part, row) in rows {
        let entries = columns.iter().map(|column| column.heap_slice(row));
        let entries = entries.filter(|(_, bytes)| *bytes > 0);
        let (from, to) = entries.fold((usize::MAX, 0), |(from, to), (place, bytes)| {
            (from.min(place), to.max(place.saturating_add(bytes)))
        });
        let from = from.min(to);
        let heap = heaps.get(*part as usize).ok_or_else(out_of_heap)?;
        if !heap.has(from as u64, to - from) {
            return Err(out_of_heap());
        }
        record.resize(to - from, 0);
        heap.read(from as u64, &mut record)?;
        for (column, (ends, values)) in columns.iter().zip(&mut out) {
            let (place, bytes) = column.heap_slice(row);
            if bytes > 0 {
                values.extend_from_slice(&record[place - from..][..bytes]);
            }
            ends.extend_from_slice(&values.len().to_le_bytes()[..column.width]);
        }
    }
    Ok(out)
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
        match self.encoding {
            ColumnEncoding::Fixed => {
                let from = &data.buffers()[0][data.offset() * width..];
                for (row, out) in places {
                    out[at..at + width].copy_from_slice(&from[row * width..][..width]);
                }
            }
            ColumnEncoding::Bit => {
                let bits = BooleanBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
                places.for_each(|(row, out)| out[at] = bits.value(row).into());
            }
            ColumnEncoding::Heap => {
                let ends = &data.buffers()[0][data.offset() * width..];
                for (row, out) in places {
                    let start = number(&ends[row * width..][..width]);
                    let end = number(&ends[(row + 1) * width..][..width]);
                    let entry = &mut out[at..at + 2 * width];
                    entry[..width].copy_from_slice(&start.to_le_bytes()[..width]);
                    entry[width..].copy_from_slice(&(end - start).to_le_bytes()[..width]);
                }
            }
            ColumnEncoding::RowNumber => {
                for (row, out) in places {
                    out[at..at + 8].copy_from_slice(&((first + row) as u64).to_le_bytes());
                }
            }
        }
    }

    fn encode_nulls(&self, array: &ArrayRef, order: &[u32], out: &mut [u8], row_bytes: usize) {
        let Some(bit) = self.valid else {
            return;
        };
        // Other parts may have nulls where this one has none.
        let nulls = array.nulls();
        for (&row, out) in order.iter().zip(out.chunks_exact_mut(row_bytes)) {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(row as usize));
            out[bit / 8] |= u8::from(valid) << (bit % 8);
        }
    }

    /// Offset and length in the heap.
    fn heap_slice(&self, row: &[u8]) -> (usize, usize) {
        let entry = &row[self.at..self.at + 2 * self.width];
        (number(&entry[..self.width]), number(&entry[self.width..]))
    }

    fn nulls(&self, rows: &[Row]) -> Option<NullBuffer> {
        self.valid.map(|bit| {
            let valid = |n: usize| rows[n].1[bit / 8] >> (bit % 8) & 1 == 1;
            NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), valid))
        })
    }

    /// A column of values of variable length.
    fn of_bytes(
        &self,
        rows: &[Row],
        ends: MutableBuffer,
        values: MutableBuffer,
    ) -> Result<ArrayRef> {
        // View arrays are made from arrays with offsets.
        let kind = match &self.kind {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            kind => kind.clone(),
        };
        let builder = ArrayData::builder(kind).len(rows.len());
        let builder = builder.nulls(self.nulls(rows));
        let builder = builder.add_buffer(ends.into()).add_buffer(values.into());
        let array = builder.build().map(make_array)?;
        Ok(match &self.kind {
            DataType::Utf8View => Arc::new(StringViewArray::from(array.as_bytes::<Utf8Type>())),
            DataType::BinaryView => Arc::new(BinaryViewArray::from(array.as_bytes::<BinaryType>())),
            _ => array,
        })
    }

    fn decode(&self, whole: &ArrayRef, rows: &[Row]) -> Result<ArrayRef> {
        let (at, width) = (self.at, self.width);
        let rows_of = || rows.iter().map(|(_, row)| row);
        let builder = ArrayData::builder(self.kind.clone())
            .len(rows.len())
            .nulls(self.nulls(rows));
        let builder = match self.encoding {
            ColumnEncoding::Fixed => {
                let mut values = MutableBuffer::with_capacity(rows.len() * width);
                for row in rows_of() {
                    values.extend_from_slice(&row[at..at + width]);
                }
                builder.add_buffer(values.into())
            }
            ColumnEncoding::Bit => {
                let bits = BooleanBuffer::collect_bool(rows.len(), |n| rows[n].1[at] != 0);
                builder.add_buffer(bits.into_inner())
            }
            ColumnEncoding::Heap => {
                let data = whole.to_data();
                let heap = &data.buffers()[1];
                let mut ends = MutableBuffer::with_capacity((rows.len() + 1) * width);
                let mut values = MutableBuffer::new(0);
                ends.extend_from_slice(&0u64.to_le_bytes()[..width]);
                for row in rows_of() {
                    let (start, bytes) = self.heap_slice(row);
                    let end = start.checked_add(bytes).ok_or_else(out_of_heap)?;
                    values.extend_from_slice(heap.get(start..end).ok_or_else(out_of_heap)?);
                    ends.extend_from_slice(&values.len().to_le_bytes()[..width]);
                }
                return self.of_bytes(rows, ends, values);
            }
            ColumnEncoding::RowNumber => {
                let numbers = rows_of().map(|row| number(&row[at..at + 8]) as u64);
                let numbers = UInt64Array::from_iter_values(numbers);
                let check_bounds = true;
                return take(whole, &numbers, Some(TakeOptions { check_bounds }))
                    .map_err(Error::from);
            }
        };
        builder.build().map(make_array).map_err(Error::from)
    }
}
