// SPDX-License-Identifier: Apache-2.0

//! Batches of a CSV, limited in rows and bytes.

use arrow_array::RecordBatch;
use arrow_csv::reader::{Decoder, Format};
use arrow_csv::ReaderBuilder;
use arrow_schema::SchemaRef;

use super::records::{Records, EMPTY};
use super::with_empty_texts;
use crate::file::{BATCH, BATCH_BYTES};
use crate::input::Input;
use crate::{Error, Result};

/// Reads values of columns, batch by batch.
pub struct Batches {
    records: Option<Records>,
    /// Parses the records, if there are columns.
    decoder: Option<Decoder>,
    /// The columns' numbers in the file.
    columns: Vec<usize>,
    line: Vec<u8>,
    /// True if `line` is the first record of the next batch.
    pending: bool,
}

/// Rows of a file.
pub struct Rows {
    /// Values of the columns, if there are any.
    pub values: Option<RecordBatch>,
}

impl Batches {
    /// Reads these columns of a file, in the order of the file.
    pub fn new(input: &Input, schema: &SchemaRef, columns: Vec<usize>) -> Result<Batches> {
        let (head, records) = Records::new(input)?.unzip();
        let decoder = match columns.is_empty() {
            true => None,
            false => {
                let mut decoder = ReaderBuilder::new(schema.clone())
                    .with_format(Format::default().with_header(true))
                    .with_batch_size(BATCH)
                    .with_projection(columns.clone())
                    .build_decoder();
                let mut line = head.map(|head| head.line).unwrap_or_default();
                line.push(b'\n');
                decoder.decode(&line)?;
                Some(decoder)
            }
        };
        Ok(Batches {
            records,
            decoder,
            columns,
            line: Vec::new(),
            pending: false,
        })
    }

    /// The next rows. Each record is passed to `see`, as it stands in the file. `None` is the end.
    pub fn next(&mut self, mut see: impl FnMut(&[u8]) -> Result<()>) -> Result<Option<Rows>> {
        let Some(records) = &mut self.records else {
            return Ok(None);
        };
        let (mut count, mut bytes) = (0, 0);
        let mut empty = Vec::new();
        // The decoder keeps whole lines, whichever columns are parsed.
        while count < BATCH {
            let line = &mut self.line;
            if !self.pending {
                line.clear();
                if !records.next(line)? {
                    break;
                }
            }
            self.pending = count > 0 && bytes + line.len() > BATCH_BYTES;
            if self.pending {
                break;
            }
            see(line)?;
            let texts = records.empty_texts().iter();
            empty.extend(texts.map(|&column| (count, column)));
            (count, bytes) = (count + 1, bytes + line.len());
            if let Some(decoder) = &mut self.decoder {
                if line.is_empty() {
                    line.extend_from_slice(EMPTY);
                }
                line.push(b'\n');
                let taken = decoder.decode(line)?;
                if taken != line.len() {
                    return Err(ambiguous_lines());
                }
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let values = match &mut self.decoder {
            Some(decoder) => {
                let values = decoder.flush()?;
                let values = values.filter(|values| values.num_rows() == count);
                let values = values.ok_or_else(ambiguous_lines)?;
                Some(with_empty_texts(values, &self.columns, &empty)?)
            }
            None => None,
        };
        Ok(Some(Rows { values }))
    }
}

/// The two parsers disagree about the end of a record.
pub fn ambiguous_lines() -> Error {
    Error::new("its lines can be read in two ways")
}
