//! What came from the devices, as one table.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::Rows as Keys;
use arrow_schema::SchemaRef;

use crate::bench::{Failure, Outcome};
use crate::fan_in::{merge, Sorted};
use crate::form::{Form, Row, Values};
use crate::key::{prefix, Compared, Key};
use crate::report::{Device, Stage};
use crate::rows::Rows;
use crate::size;
use crate::spill::Spills;
use crate::{Error, Progress, Report, Result};

/// Rows of a batch of the sorted table, and of those that are looked at together.
const BATCH: usize = 16 << 10;
/// Bytes that they have in fixed form, and as many of variable length, if that is fewer rows.
const BATCH_BYTES: usize = 16 << 20;

/// Takes batches of the sorted table.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> Result<()> + Send + 'a;

/// Whether an engine took the keys of two rows for equal.
type Equal<'a> = Box<dyn Fn(usize, usize) -> bool + 'a>;
/// The same, of rows whose first key is so.
pub type Alike<'a> = dyn Fn(&ArrayRef) -> Result<Equal<'static>> + 'a;

/// How rows become a table.
pub struct Gather<'a> {
    pub key: &'a Key,
    pub form: &'a Form,
    /// What is not in the rows.
    pub values: Values<'a>,
    /// Where rows wait that are merged more than once.
    pub spills: &'a Spills,
    pub schema: SchemaRef,
    /// Of sorts by a key that is not that of the rows' order; without it the beginning of the normalised key, if it is that.
    pub alike: Option<&'a Alike<'a>>,
}

impl Gather<'_> {
    /// Merges partitions, and tells of each device what it did.
    pub fn run(
        &self,
        devices: usize,
        outcomes: Vec<Outcome>,
        failures: Vec<Failure>,
        report: &mut Report,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<()> {
        report.devices = vec![Device::default(); devices];
        let mut runs = Vec::new();
        for mut outcome in outcomes {
            let mut put_in_order = InOrder {
                gather: self,
                partition: outcome.partition as u32,
                sorted: outcome.done.sorted,
                ties: 0,
                nulls: 0,
                longest: 0,
                runs: Vec::new(),
            };
            put_in_order.run(&mut outcome.done.rows, progress)?;
            let InOrder {
                ties,
                nulls,
                runs: found,
                ..
            } = put_in_order;
            report.ties += ties;
            let device = &mut report.devices[outcome.device];
            device.rows += outcome.done.rows.count();
            device.nulls += nulls;
            device.partitions += 1;
            let stages = outcome.done.stages.into_iter();
            device.stages.extend(stages.map(|stage| Stage {
                partition: outcome.partition,
                ..stage
            }));
            device.looks.push(outcome.done.looks);
            let rows = Arc::new(outcome.done.rows);
            runs.extend(found.into_iter().map(|(which, longest)| Sorted {
                rows: rows.clone(),
                which,
                partition: Some(outcome.partition as u32),
                longest,
            }));
        }
        for failure in failures {
            report.devices[failure.device].failed = Some(failure.error);
        }
        let mut out = Out::new(self.form, self.values, &self.schema, progress, sink);
        match &runs[..] {
            [run] => out.all(
                run.partition.unwrap_or_default(),
                &run.rows,
                run.which.clone(),
            )?,
            _ => merge(self, runs, progress, |partition, row| {
                out.add(partition, row)
            })?,
        }
        out.flush()
    }

    /// A row of some that stand together.
    fn row<'r>(&self, rows: &'r [u8], at: usize) -> &'r [u8] {
        &rows[at * self.form.row_bytes..][..self.form.row_bytes]
    }

    /// The key's columns of rows of these partitions.
    pub fn keys(&self, partitions: &[u32], rows: &[u8]) -> Result<Vec<ArrayRef>> {
        let rows = rows.chunks_exact(self.form.row_bytes);
        let rows: Vec<Row> = partitions.iter().copied().zip(rows).collect();
        self.form.decode(self.values, &self.key.columns, &rows)
    }
}

/// How many rows are looked at together.
fn most(form: &Form) -> usize {
    (BATCH_BYTES / form.row_bytes).clamp(1, BATCH)
}

/// Whether the beginnings of normalised keys are the same.
pub fn begin_alike(rows: &Keys, a: usize, b: usize) -> bool {
    prefix(rows, a) == prefix(rows, b)
}

/// Finds how a partition's rows are in order.
///
/// Where the engine has not compared whole keys, rows that it took for equal stand together, and are put in order here as far as they are looked at
/// together. Where that ends within such rows, and where nulls stand at the end where they are not wanted, one run ends and the next one begins: the
/// merge does the rest.
struct InOrder<'a> {
    gather: &'a Gather<'a>,
    partition: u32,
    /// Rows that the engine sorted; the others stand behind.
    sorted: usize,
    /// Rows that were compared with others.
    ties: u64,
    /// Rows without a first key.
    nulls: usize,
    /// Bytes of the longest key of the run that has begun.
    longest: usize,
    /// Which rows they have, and bytes of the longest key.
    runs: Vec<(Range<usize>, usize)>,
}

impl InOrder<'_> {
    fn run(&mut self, rows: &mut Rows, progress: &Progress) -> Result<()> {
        let Gather { key, form, .. } = self.gather;
        let (count, row_bytes) = (rows.count(), form.row_bytes);
        // The row before, and those that are looked at.
        let mut bytes: Vec<u8> = Vec::new();
        let (mut first, mut begin, mut ends) = (0, 0, 0);
        while first < count {
            if !progress.go_on() {
                return Err(progress.why(""));
            }
            let before = bytes.len() / row_bytes;
            let stop = if first < self.sorted {
                self.sorted
            } else {
                count
            };
            let end = stop.min(first + most(form));
            rows.read(first..end, &mut bytes)?;
            let new = form.within(&key.columns, &bytes[before * row_bytes..], BATCH_BYTES);
            let partitions = vec![self.partition; before + new];
            let mut columns = self.gather.keys(&partitions, &bytes)?;
            let fits = size::within(&columns, BATCH_BYTES).max(before + 1);
            let new = new.min(fits - before);
            bytes.truncate((before + new) * row_bytes);
            (columns.iter_mut()).for_each(|column| *column = column.slice(0, before + new));
            let keys = key.rows(&columns)?;
            let nulls = columns[0].logical_nulls();
            let null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if key.columns.len() == 1 || self.gather.alike.is_some() {
                self.nulls += (before..before + new).filter(|&row| null(row)).count();
            }
            let alike = self.alike(&columns[0], &keys)?;
            let mut order: Vec<usize> = (before..before + new).collect();
            if let (Some(alike), true) = (&alike, first < self.sorted) {
                self.ties += put_in_order(&keys, alike, &mut order);
            }
            let mut last = (before > 0).then_some(0);
            for (n, &row) in order.iter().enumerate() {
                if last.is_some_and(|last| keys.row(last) > keys.row(row)) {
                    let last = last.unwrap_or_default();
                    let cut = n == 0 && alike.as_ref().is_some_and(|alike| alike(last, row));
                    let behind = first + n == self.sorted;
                    let other_end = self.gather.alike.is_some() && null(last) != null(row);
                    ends += usize::from(!cut);
                    if !(cut || behind || other_end) || ends > 1 {
                        let partition = self.partition;
                        return Err(Error::new(format!(
                            "partition {partition} came back with rows that are not in order"
                        )));
                    }
                    self.runs.push((begin..first + n, self.longest));
                    (begin, self.longest) = (first + n, 0);
                }
                self.longest = self.longest.max(keys.row(row).as_ref().len());
                last = Some(row);
            }
            if !order.is_sorted() {
                let mut turned = Vec::with_capacity(new * row_bytes);
                for &row in &order {
                    turned.extend_from_slice(self.gather.row(&bytes, row));
                }
                rows.write(first, &turned)?;
            }
            let last = order.last().map_or(0, |&last| last);
            bytes.copy_within(last * row_bytes..(last + 1) * row_bytes, 0);
            bytes.truncate(row_bytes);
            first += new;
        }
        if begin < count {
            self.runs.push((begin..count, self.longest));
        }
        Ok(())
    }

    /// Whether the engine took rows for equal; nothing if it compared whole keys.
    fn alike<'k>(&self, column: &ArrayRef, keys: &'k Keys) -> Result<Option<Equal<'k>>> {
        Ok(match self.gather.alike {
            // Nulls within values are last in the keys that stand on the device, wherever they are wanted.
            Some(_) if column.data_type().is_nested() => Some(Box::new(|_, _| true)),
            Some(alike) => Some(alike(column)?),
            None if self.gather.key.compared == Compared::Prefix => {
                Some(Box::new(|a, b| begin_alike(keys, a, b)))
            }
            None => None,
        })
    }
}

/// Puts rows that are alike, which stand together, in order; how many they are.
fn put_in_order(keys: &Keys, alike: &dyn Fn(usize, usize) -> bool, order: &mut [usize]) -> u64 {
    let (mut start, mut ties) = (0, 0);
    while start < order.len() {
        let same = order[start..]
            .iter()
            .take_while(|&&n| alike(order[start], n));
        let end = start + same.count().max(1);
        if end - start > 1 {
            ties += (end - start) as u64;
            order[start..end].sort_by(|&a, &b| keys.row(a).cmp(&keys.row(b)));
        }
        start = end;
    }
    ties
}

/// Rows that become a batch.
pub struct Out<'a, 's> {
    form: &'a Form,
    values: Values<'a>,
    schema: &'a SchemaRef,
    progress: &'a Progress,
    sink: &'a mut Sink<'s>,
    most: usize,
    /// Every column's number.
    all: Vec<usize>,
    /// Of each row.
    parts: Vec<u32>,
    bytes: Vec<u8>,
}

impl<'a, 's> Out<'a, 's> {
    /// Of rows of this form.
    pub fn new(
        form: &'a Form,
        values: Values<'a>,
        schema: &'a SchemaRef,
        progress: &'a Progress,
        sink: &'a mut Sink<'s>,
    ) -> Out<'a, 's> {
        Out {
            form,
            values,
            schema,
            progress,
            sink,
            most: most(form),
            all: (0..schema.fields().len()).collect(),
            parts: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn add(&mut self, part: u32, row: &[u8]) -> Result<()> {
        self.parts.push(part);
        self.bytes.extend_from_slice(row);
        match self.parts.len() < self.most {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Adds rows of a part that follow each other.
    pub fn all(&mut self, part: u32, rows: &Rows, which: Range<usize>) -> Result<()> {
        for first in which.clone().step_by(self.most) {
            let end = which.end.min(first + self.most);
            rows.read(first..end, &mut self.bytes)?;
            self.parts.resize(end - first, part);
            self.flush()?;
        }
        Ok(())
    }

    /// Gives all rows away.
    fn flush(&mut self) -> Result<()> {
        let (form, row_bytes) = (self.form, self.form.row_bytes);
        let mut done = 0;
        while done < self.parts.len() {
            if !self.progress.go_on() {
                return Err(self.progress.why(""));
            }
            let left = &self.bytes[done * row_bytes..];
            let count = form.within(&self.all, left, BATCH_BYTES);
            let rows = left.chunks_exact(row_bytes).take(count);
            let parts = self.parts[done..].iter().copied();
            let rows: Vec<Row> = parts.zip(rows).collect();
            let columns = form.decode(self.values, &self.all, &rows)?;
            let batch = RecordBatch::try_new(self.schema.clone(), columns);
            (self.sink)(batch.map_err(Error::new)?)?;
            done += count;
        }
        self.parts.clear();
        self.bytes.clear();
        Ok(())
    }
}
