// SPDX-License-Identifier: Apache-2.0

//! A CSV whose lines are kept byte for byte for a CSV that is written. Types decide the order, but
//! no value is spelled differently.
//!
//! Such a table has a further column with the lines. Only CSV writers use it; other formats leave
//! it out.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::batches::Batches;
use super::records::{Records, EMPTY};
use super::values::{add_head, add_rows};
use super::{FileContent, OpenedFile, Reader};
use crate::input::Input;
use crate::{Error, Result};

/// Metadata of the line column: the file's first line, and the end of each line.
const HEAD: &str = "nearside:first line";
const END: &str = "nearside:end of line";

/// True for the line column, which is no column of the table.
pub fn is_lines(field: &Field) -> bool {
    field.metadata().contains_key(HEAD)
}

/// The line column of a table.
pub struct LineColumn {
    column: usize,
    head: String,
    end: String,
}

impl LineColumn {
    pub fn of(schema: &Schema) -> Option<LineColumn> {
        let column = schema.fields().iter().position(|field| is_lines(field))?;
        let said = schema.field(column).metadata();
        Some(LineColumn {
            column,
            head: said.get(HEAD)?.clone(),
            end: said.get(END)?.clone(),
        })
    }
}

/// A CSV, and the columns that are read of it.
pub struct VerbatimCsv {
    input: Input,
    /// The schema of all columns.
    typed: SchemaRef,
    /// The columns that are read.
    columns: Vec<usize>,
    /// The schema with the line column.
    schema: SchemaRef,
}

/// Opens a file whose lines are kept. With `keys`, only these columns are parsed as well. Without,
/// all columns are parsed, and the lines are kept only if writing the values would change them.
pub fn open(input: Input, keys: Option<&[&str]>) -> Result<OpenedFile> {
    let opened = super::open(input)?;
    let (FileContent::Csv(input, typed), Some((rows, nulls))) = (&opened.content, &opened.known)
    else {
        return Ok(opened);
    };
    let named = |name: &&str| {
        let all = typed.fields().iter();
        let mut found = all.enumerate().filter(|(_, field)| field.name() == name);
        found
            .next()
            .filter(|_| found.next().is_none())
            .map(|(at, _)| at)
    };
    let columns: Option<Vec<usize>> = match keys {
        // A name of no column or of several is refused later, where all columns are known.
        Some(keys) => keys.iter().map(named).collect(),
        None => None,
    };
    let mut columns = columns.unwrap_or_else(|| (0..typed.fields().len()).collect());
    columns.sort_unstable();
    columns.dedup();
    let Some((head, _)) = Records::new(input)? else {
        return Ok(opened);
    };
    let line = String::from_utf8(head.line).map_err(|e| e.utf8_error())?;
    let said = HashMap::from([(HEAD.into(), line), (END.into(), head.end.into())]);
    let lines = Field::new("", DataType::LargeUtf8, false).with_metadata(said);
    let fields = columns.iter().map(|&at| typed.fields()[at].clone());
    let fields: Vec<FieldRef> = fields.chain([Arc::new(lines)]).collect();
    let mut known: Vec<bool> = columns.iter().map(|&at| nulls[at]).collect();
    known.push(false);
    let known = Some((*rows, known));
    let schema = Arc::new(Schema::new(fields));
    let verbatim = VerbatimCsv {
        input: input.clone(),
        typed: typed.clone(),
        columns,
        schema: schema.clone(),
    };
    if keys.is_none() && verbatim.is_plain()? {
        return Ok(opened);
    }
    Ok(OpenedFile {
        schema,
        metadata: Vec::new(),
        known,
        content: FileContent::Verbatim(Arc::new(verbatim)),
    })
}

impl VerbatimCsv {
    /// Reads all columns, or one.
    pub fn batches(&self, column: Option<usize>) -> Result<Reader> {
        match column {
            Some(column) if column < self.columns.len() => {
                super::batches(&self.input, &self.typed, Some(self.columns[column]))
            }
            column => Ok(Box::new(VerbatimBatches::new(self, column.is_some())?)),
        }
    }

    /// True if writing the values gives the file's bytes.
    fn is_plain(&self) -> Result<bool> {
        let Some(lines) = LineColumn::of(&self.schema) else {
            return Ok(true);
        };
        let values: Vec<usize> = (0..self.columns.len()).collect();
        let (mut found, mut wanted) = (Vec::new(), lines.head.into_bytes());
        add_head(&self.typed, &mut found);
        wanted.extend_from_slice(lines.end.as_bytes());
        if found != wanted {
            return Ok(false);
        }
        for batch in self.batches(None)? {
            let batch = batch?;
            found.clear();
            wanted.clear();
            add_rows(&batch.project(&values)?, &mut found)?;
            add_lines(&batch, lines.column, &lines.end, &mut wanted);
            if found != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Appends lines.
fn add_lines(batch: &RecordBatch, column: usize, end: &str, out: &mut Vec<u8>) {
    for line in batch.column(column).as_string::<i64>().iter().flatten() {
        match line {
            "" => out.extend_from_slice(EMPTY),
            line => out.extend_from_slice(line.as_bytes()),
        }
        out.extend_from_slice(end.as_bytes());
    }
}

/// Batches with a line column.
struct VerbatimBatches {
    batches: Batches,
    schema: SchemaRef,
    ended: bool,
}

impl VerbatimBatches {
    fn new(verbatim: &VerbatimCsv, only_lines: bool) -> Result<VerbatimBatches> {
        let schema = &verbatim.schema;
        let (columns, schema) = match only_lines {
            true => {
                let lines = schema.fields().len() - 1;
                let schema = schema.project(&[lines])?;
                (Vec::new(), Arc::new(schema))
            }
            false => (verbatim.columns.clone(), schema.clone()),
        };
        Ok(VerbatimBatches {
            batches: Batches::new(&verbatim.input, &verbatim.typed, columns)?,
            schema,
            ended: false,
        })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut lines = LargeStringBuilder::new();
        let rows = self.batches.next(|line| {
            lines.append_value(std::str::from_utf8(line)?);
            Ok(())
        })?;
        let Some(rows) = rows else {
            return Ok(None);
        };
        let values = rows.values.iter().flat_map(|values| values.columns());
        let lines: ArrayRef = Arc::new(lines.finish());
        let columns = values.cloned().chain([lines]).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        batch.map(Some).map_err(Error::from)
    }
}

impl Iterator for VerbatimBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.ended {
            return None;
        }
        let batch = self.batch();
        self.ended = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}

/// Writes lines unchanged.
pub struct Writer<W: Write> {
    out: W,
    lines: LineColumn,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, lines: LineColumn) -> Result<Writer<W>> {
        let head = [&lines.head, &lines.end];
        let written = head
            .into_iter()
            .try_for_each(|t| out.write_all(t.as_bytes()));
        written?;
        Ok(Writer {
            out,
            lines,
            bytes: Vec::new(),
        })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.bytes.clear();
        add_lines(batch, self.lines.column, &self.lines.end, &mut self.bytes);
        self.out.write_all(&self.bytes).map_err(Error::from)
    }

    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(Error::from)
    }
}
