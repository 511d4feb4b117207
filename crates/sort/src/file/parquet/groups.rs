// SPDX-License-Identifier: Apache-2.0

//! Batches of a file, row group by row group, limited in bytes.
//!
//! The library limits only the rows of a batch, however many bytes they expand to. A dictionary
//! value is copied into each row that has it, and delta-encoded text lacks its common prefix in the
//! file. So the library reads only columns of fixed width, whose size is known, and nested ones. It
//! reads each row group separately, as a batch that crosses row groups loses its dictionary. Text
//! and binary columns are read value by value.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::ProjectionMask;
use parquet::basic::Type;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;

use super::super::{BATCH, BATCH_BYTES};
use super::text::{self, TextColumn};
use crate::input::Input;

/// Reads the batches of a file.
pub struct RowGroupBatches {
    input: Arc<Input>,
    footer: ArrowReaderMetadata,
    /// Numbers of the columns in the schema. Text and binary columns have their leaf as well.
    columns: Vec<(usize, Option<usize>)>,
    schema: SchemaRef,
    /// Row groups that were not started.
    left: VecDeque<usize>,
    open: Option<RowGroupReader>,
}

/// A row group that is being read.
struct RowGroupReader {
    /// All columns that are neither text nor binary, if there are any.
    others: Option<ParquetRecordBatchReader>,
    /// Rows of these columns whose text was not read yet.
    batch: Option<RecordBatch>,
    texts: Vec<TextColumn>,
    /// Rows left, as the footer says.
    rows: usize,
}

/// The leaf of a column, if the column is text or binary.
fn leaf(footer: &ArrowReaderMetadata, column: usize) -> Option<usize> {
    let leaves = footer.parquet_schema();
    let mut all = 0..leaves.num_columns();
    let at = all.find(|&at| leaves.get_column_root_idx(at) == column)?;
    let (root, leaf) = (leaves.get_column_root(at), leaves.column(at));
    let plain = root.is_primitive() && leaf.max_rep_level() == 0 && leaf.max_def_level() <= 1;
    let known = text::is_known(footer.schema().field(column).data_type());
    (plain && known && leaf.physical_type() == Type::BYTE_ARRAY).then_some(at)
}

impl RowGroupBatches {
    /// Reads all columns of a file, or one.
    pub fn new(
        input: Input,
        footer: ArrowReaderMetadata,
        column: Option<usize>,
    ) -> RowGroupBatches {
        let all = footer.schema();
        let columns = match column {
            Some(column) => column..column + 1,
            None => 0..all.fields().len(),
        };
        let fields: Vec<_> = all.fields()[columns.clone()].to_vec();
        let columns = columns.map(|column| (column, leaf(&footer, column)));
        RowGroupBatches {
            input: Arc::new(input),
            left: (0..footer.metadata().num_row_groups()).collect(),
            columns: columns.collect(),
            schema: Arc::new(Schema::new(fields)),
            footer,
            open: None,
        }
    }

    fn open(&self, number: usize) -> Result<RowGroupReader> {
        let about = self.footer.metadata().row_group(number);
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for (place, &(column, leaf)) in self.columns.iter().enumerate() {
            match leaf {
                Some(leaf) => {
                    let field = self.schema.field(place);
                    let text =
                        TextColumn::open(&self.input, about, leaf, field.name(), field.data_type());
                    texts.push(text?);
                }
                None => others.push(column),
            }
        }
        let others = match others.is_empty() && !texts.is_empty() {
            true => None,
            false => Some(self.others(number, about, others)?),
        };
        Ok(RowGroupReader {
            others,
            batch: None,
            texts,
            rows: usize::try_from(about.num_rows()).unwrap_or(0),
        })
    }

    fn others(
        &self,
        number: usize,
        about: &RowGroupMetaData,
        columns: Vec<usize>,
    ) -> Result<ParquetRecordBatchReader> {
        let footer = self.footer.clone();
        let leaves = footer.parquet_schema();
        // The known size of a row, and the average of the rest.
        let (mut fixed, mut average) = (0, 0);
        for &column in &columns {
            match self.footer.schema().field(column).data_type() {
                DataType::FixedSizeBinary(width) => fixed += *width as usize,
                kind => match kind.primitive_width() {
                    Some(width) => fixed += width,
                    None => {
                        let chunks = about.columns().iter().enumerate();
                        let own =
                            chunks.filter(|(at, _)| leaves.get_column_root_idx(*at) == column);
                        average += own
                            .map(|(_, chunk)| chunk.uncompressed_size().max(0))
                            .sum::<i64>();
                    }
                },
            }
        }
        let each = fixed.saturating_add(average as usize / about.num_rows().max(1) as usize);
        let rows = (BATCH_BYTES / each.max(1)).clamp(1, BATCH);
        let mask = ProjectionMask::roots(leaves, columns);
        let reader = Input::clone(&self.input);
        ParquetRecordBatchReaderBuilder::new_with_metadata(reader, footer)
            .with_row_groups(vec![number])
            .with_projection(mask)
            .with_batch_size(rows)
            .build()
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let mut group = match (self.open.take(), self.left.pop_front()) {
                (Some(group), next) => {
                    next.into_iter().for_each(|next| self.left.push_front(next));
                    group
                }
                (None, Some(next)) => self.open(next)?,
                (None, None) => return Ok(None),
            };
            if let Some((rows, columns)) = group.read()? {
                self.open = Some(group);
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let columns = self.in_order(columns);
                let batch =
                    RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
                return batch.map(Some).map_err(ParquetError::from);
            }
        }
    }

    /// Puts columns into the order of the schema. Text columns come first.
    fn in_order(&self, columns: Vec<ArrayRef>) -> Vec<ArrayRef> {
        let texts = self
            .columns
            .iter()
            .filter(|(_, leaf)| leaf.is_some())
            .count();
        let (mut texts, mut others) = (columns[..texts].iter(), columns[texts..].iter());
        let columns = self.columns.iter().filter_map(|(_, leaf)| match leaf {
            Some(_) => texts.next(),
            None => others.next(),
        });
        columns.cloned().collect()
    }
}

impl RowGroupReader {
    /// The next rows: their number, and their columns with text first.
    fn read(&mut self) -> Result<Option<(usize, Vec<ArrayRef>)>> {
        if self.batch.is_none() {
            let others = self.others.as_mut();
            self.batch = others.and_then(|reader| reader.next()).transpose()?;
        }
        let most = match (&self.batch, &self.others) {
            (Some(batch), _) => batch.num_rows(),
            (None, None) => self.rows.min(BATCH),
            (None, Some(_)) => 0,
        };
        let rows = match self.texts.is_empty() {
            true => most,
            false => self.fill(most)?,
        };
        if rows == 0 {
            return self.check_end().map(|()| None);
        }
        self.rows = self.rows.saturating_sub(rows);
        let texts = self.texts.iter_mut().map(|text| text.take_rows(rows));
        let mut columns: Vec<ArrayRef> = texts.collect::<Result<_>>()?;
        if let Some(batch) = self.batch.take() {
            columns.extend(batch.slice(0, rows).columns().iter().cloned());
            let left = batch.num_rows() - rows;
            self.batch = (left > 0).then(|| batch.slice(rows, left));
        }
        Ok(Some((rows, columns)))
    }

    /// Reads text of up to `most` rows, or until a batch is full. Returns the number of rows.
    fn fill(&mut self, most: usize) -> Result<usize> {
        let mut bytes = 0usize;
        for row in 0..most {
            let mut ended = 0;
            for text in &mut self.texts {
                match text.bytes(row)? {
                    Some(more) => bytes = bytes.saturating_add(more),
                    None => ended += 1,
                }
            }
            if ended > 0 {
                return match ended == self.texts.len() && self.others.is_none() {
                    true => Ok(row),
                    false => Err(unlike()),
                };
            }
            // At least one row.
            if bytes > BATCH_BYTES {
                return Ok(row.max(1));
            }
        }
        Ok(most)
    }

    /// Checks that no text is left.
    fn check_end(&mut self) -> Result<()> {
        for text in &mut self.texts {
            if text.bytes(0)?.is_some() {
                return Err(unlike());
            }
        }
        Ok(())
    }
}

fn unlike() -> ParquetError {
    ParquetError::General("the columns of a row group have different numbers of rows".into())
}

impl Iterator for RowGroupBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.read().transpose()
    }
}
