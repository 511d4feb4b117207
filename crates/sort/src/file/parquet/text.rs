// SPDX-License-Identifier: Apache-2.0

//! A text or binary column of a row group, value by value.
//!
//! Values are slices of their page, or of the dictionary. Values that are encoded relative to the
//! previous value are copies, so they are read one at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{ArrayRef, BinaryViewArray, GenericByteArray, StringViewArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType as OfFile};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::input::Input;

/// Values that are read at once.
const RECORDS_PER_READ: usize = 1024;

/// True if columns of the type are read here.
pub fn is_known(kind: &DataType) -> bool {
    use DataType::*;
    matches!(
        kind,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView
    )
}

/// Passes one data page at a time.
struct PageGate {
    pages: SerializedPageReader<Input>,
    state: Arc<Mutex<PageState>>,
}

#[derive(Default)]
struct PageState {
    /// The next page may pass.
    open: bool,
    /// There are no more pages.
    ended: bool,
    /// Values of the last page are encoded relative to the previous value.
    incremental: bool,
}

fn lock_state(state: &Mutex<PageState>) -> std::sync::MutexGuard<'_, PageState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PageReader for PageGate {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let mut state = lock_state(&self.state);
        if !state.open {
            return Ok(None);
        }
        let page = self.pages.get_next_page()?;
        match &page {
            Some(page) => {
                state.open = page.is_dictionary_page();
                state.incremental = page.encoding() == Encoding::DELTA_BYTE_ARRAY;
            }
            None => state.ended = true,
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for PageGate {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

/// The column.
pub struct TextColumn {
    name: String,
    kind: DataType,
    reader: ColumnReaderImpl<OfFile>,
    state: Arc<Mutex<PageState>>,
    /// Some rows have no value.
    nullable: bool,
    /// Values that were not taken yet.
    values: VecDeque<Option<ByteArray>>,
}

impl TextColumn {
    /// The column of a leaf of a row group.
    pub fn open(
        input: &Arc<Input>,
        group: &RowGroupMetaData,
        leaf: usize,
        name: &str,
        kind: &DataType,
    ) -> Result<TextColumn> {
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(input.clone(), group.column(leaf), rows, None)?;
        let state = Arc::new(Mutex::new(PageState::default()));
        let gate = PageGate {
            pages,
            state: state.clone(),
        };
        let about = group.schema_descr().column(leaf);
        Ok(TextColumn {
            name: name.into(),
            kind: kind.clone(),
            nullable: about.max_def_level() > 0,
            reader: ColumnReaderImpl::new(about, Box::new(gate)),
            state,
            values: VecDeque::new(),
        })
    }

    /// Bytes of the value `row` rows ahead. `None`: past the last row.
    pub fn bytes(&mut self, row: usize) -> Result<Option<usize>> {
        while self.values.len() <= row {
            if !self.read()? {
                return Ok(None);
            }
        }
        let value = self.values[row].as_ref();
        Ok(Some(value.map_or(0, ByteArray::len)))
    }

    /// Reads more values from this page, or from the next one. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        loop {
            let most = if lock_state(&self.state).incremental {
                1
            } else {
                RECORDS_PER_READ
            };
            let (records, ..) =
                (self.reader).read_records(most, Some(&mut levels), None, &mut values)?;
            if records > 0 {
                break;
            }
            let mut state = lock_state(&self.state);
            if state.ended {
                return Ok(false);
            }
            state.open = true;
            // The encoding of a page is known only once it has passed.
            state.incremental = true;
        }
        match self.nullable {
            false => self.values.extend(values.into_iter().map(Some)),
            true => {
                let mut values = values.into_iter();
                let rows = levels.into_iter().map(|level| match level {
                    0 => None,
                    _ => values.next(),
                });
                self.values.extend(rows);
            }
        }
        Ok(true)
    }

    /// Takes the first rows.
    pub fn take_rows(&mut self, rows: usize) -> Result<ArrayRef> {
        let values: Vec<Option<ByteArray>> = self.values.drain(..rows).collect();
        use DataType::*;
        Ok(match &self.kind {
            Utf8 => Arc::new(self.array::<Utf8Type>(&values)?),
            LargeUtf8 => Arc::new(self.array::<LargeUtf8Type>(&values)?),
            LargeBinary => Arc::new(self.array::<LargeBinaryType>(&values)?),
            Utf8View => Arc::new(StringViewArray::from(&self.array::<Utf8Type>(&values)?)),
            BinaryView => Arc::new(BinaryViewArray::from(&self.array::<BinaryType>(&values)?)),
            _ => Arc::new(self.array::<BinaryType>(&values)?),
        })
    }

    fn array<T: ByteArrayType>(&self, values: &[Option<ByteArray>]) -> Result<GenericByteArray<T>> {
        let all = values.iter().flatten().map(ByteArray::len).sum();
        let mut bytes = Vec::with_capacity(all);
        let mut ends = Vec::with_capacity(values.len() + 1);
        ends.push(T::Offset::default());
        for value in values {
            bytes.extend_from_slice(value.as_ref().map_or(&[], ByteArray::data));
            let end = T::Offset::from_usize(bytes.len());
            ends.push(end.ok_or_else(|| self.fail("a value of more than 2 GiB"))?);
        }
        let nulls: NullBuffer = values.iter().map(Option::is_some).collect();
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        let array = GenericByteArray::try_new(ends, Buffer::from_vec(bytes), nulls);
        array.map_err(|error| self.fail(&error.to_string()))
    }

    fn fail(&self, what: &str) -> ParquetError {
        ParquetError::General(format!("column {:?}: {what}", self.name))
    }
}
