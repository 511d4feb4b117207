// SPDX-License-Identifier: Apache-2.0

//! Merges sorted partitions into batches of one table.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::Rows as Keys;
use arrow_schema::SchemaRef;

use crate::fan_in::{merge_runs, SortedRun};
use crate::key::{prefix, EngineKey};
use crate::merge_output::{Equal, MergeOutput};
use crate::powered_devices::{DeviceFailure, SortedPartition};
use crate::report::{DeviceReport, StageReport};
use crate::row_layout::{ColumnValues, Row, RowLayout};
use crate::rows::SpilledRows;
use crate::size;
use crate::{Error, Progress, Report, Result};

/// Most rows of an output batch, and of a step of the order check.
const BATCH: usize = 16 << 10;
/// Most bytes of such a batch: in fixed layout, and in values of variable length.
const BATCH_BYTES: usize = 16 << 20;

/// Receives batches of the sorted table.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> Result<()> + Send + 'a;

impl MergeOutput<'_> {
    /// Merges partitions, and adds the work of each device to the report.
    pub fn run(
        &self,
        devices: usize,
        outcomes: Vec<SortedPartition>,
        failures: Vec<DeviceFailure>,
        report: &mut Report,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<()> {
        report.devices = vec![DeviceReport::default(); devices];
        let mut runs = Vec::new();
        for mut outcome in outcomes {
            let mut found = PartitionRuns {
                output: self,
                partition: outcome.partition as u32,
                sorted: outcome.done.sorted,
                ties: 0,
                nulls: 0,
                longest: 0,
                runs: Vec::new(),
            };
            found.run(&mut outcome.done.rows, progress)?;
            let PartitionRuns {
                ties,
                nulls,
                runs: ranges,
                ..
            } = found;
            report.ties += ties;
            let device = &mut report.devices[outcome.device];
            device.rows += outcome.done.rows.count();
            device.nulls += nulls;
            device.partitions += 1;
            let stages = outcome.done.stages.into_iter();
            device.stages.extend(stages.map(|stage| StageReport {
                partition: outcome.partition,
                ..stage
            }));
            device.samples.push(outcome.done.samples);
            let rows = Arc::new(outcome.done.rows);
            runs.extend(ranges.into_iter().map(|(which, longest)| SortedRun {
                rows: rows.clone(),
                which,
                partition: Some(outcome.partition as u32),
                longest,
            }));
        }
        for failure in failures {
            report.devices[failure.device].failed = Some(failure.error);
        }
        let mut out = BatchWriter::new(self.layout, self.values, &self.schema, progress, sink);
        match &runs[..] {
            [run] => out.add_range(
                run.partition.unwrap_or_default(),
                &run.rows,
                run.which.clone(),
            )?,
            _ => merge_runs(self, runs, progress, |partition, row| {
                out.add(partition, row)
            })?,
        }
        out.flush()
    }
}

/// Rows of a step.
fn max_batch_rows(layout: &RowLayout) -> usize {
    (BATCH_BYTES / layout.row_bytes).clamp(1, BATCH)
}

/// True if two normalised keys have the same prefix.
pub fn equal_prefixes(rows: &Keys, a: usize, b: usize) -> bool {
    prefix(rows, a) == prefix(rows, b)
}

/// Finds the sorted runs of a partition.
///
/// Where the engine compared only a part of the key, rows that it took for equal are adjacent. They
/// are sorted here, as far as they are in the same step. A run ends where a step ends within such
/// rows, or where nulls are at the wrong end. The merge then puts the runs in order.
struct PartitionRuns<'a> {
    output: &'a MergeOutput<'a>,
    partition: u32,
    /// Rows that the engine sorted. The others follow.
    sorted: usize,
    /// Rows that were compared with others.
    ties: u64,
    /// Rows whose first key is null.
    nulls: usize,
    /// Bytes of the longest key of the current run.
    longest: usize,
    /// Rows of each run, and bytes of its longest key.
    runs: Vec<(Range<usize>, usize)>,
}

impl PartitionRuns<'_> {
    fn run(&mut self, rows: &mut SpilledRows, progress: &Progress) -> Result<()> {
        let MergeOutput { key, layout, .. } = self.output;
        let (count, row_bytes) = (rows.count(), layout.row_bytes);
        // The last row of the previous step, and the rows of this one.
        let mut bytes: Vec<u8> = Vec::new();
        let (mut first, mut begin, mut ends) = (0, 0, 0);
        while first < count {
            if !progress.should_continue() {
                return Err(Error::Interrupted);
            }
            let before = bytes.len() / row_bytes;
            let stop = if first < self.sorted {
                self.sorted
            } else {
                count
            };
            let end = stop.min(first + max_batch_rows(layout));
            rows.read(first..end, &mut bytes)?;
            let new = layout.rows_within(&key.columns, &bytes[before * row_bytes..], BATCH_BYTES);
            let partitions = vec![self.partition; before + new];
            let mut columns = self.output.keys(&partitions, &bytes)?;
            let fits = size::rows_within(&columns, BATCH_BYTES).max(before + 1);
            let new = new.min(fits - before);
            bytes.truncate((before + new) * row_bytes);
            (columns.iter_mut()).for_each(|column| *column = column.slice(0, before + new));
            let keys = key.rows(&columns)?;
            let nulls = columns[0].logical_nulls();
            let null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if key.columns.len() == 1 || self.output.equal_keys.is_some() {
                self.nulls += (before..before + new).filter(|&row| null(row)).count();
            }
            let equal_keys = self.equal_keys(&columns[0], &keys)?;
            let mut order: Vec<usize> = (before..before + new).collect();
            if let (Some(equal_keys), true) = (&equal_keys, first < self.sorted) {
                self.ties += sort_equal_keys(&keys, equal_keys, &mut order);
            }
            let mut last = (before > 0).then_some(0);
            for (n, &row) in order.iter().enumerate() {
                if last.is_some_and(|last| keys.row(last) > keys.row(row)) {
                    let last = last.unwrap_or_default();
                    let cut = n == 0
                        && equal_keys
                            .as_ref()
                            .is_some_and(|equal_keys| equal_keys(last, row));
                    let at_end = first + n == self.sorted;
                    let other_end = self.output.equal_keys.is_some() && null(last) != null(row);
                    ends += usize::from(!cut);
                    if !(cut || at_end || other_end) || ends > 1 {
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
                    turned.extend_from_slice(self.output.row(&bytes, row));
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

    /// The comparison of the engine. `None`: it compared whole keys.
    fn equal_keys<'k>(&self, column: &ArrayRef, keys: &'k Keys) -> Result<Option<Equal<'k>>> {
        Ok(match self.output.equal_keys {
            // In the keys of resident tables, nulls within values come last, whatever the order
            // asks for.
            Some(_) if column.data_type().is_nested() => Some(Box::new(|_, _| true)),
            Some(equal_keys) => Some(equal_keys(column)?),
            None if self.output.key.compared == EngineKey::Prefix => {
                Some(Box::new(|a, b| equal_prefixes(keys, a, b)))
            }
            None => None,
        })
    }
}

/// Sorts adjacent rows with equal engine keys, and returns their number.
fn sort_equal_keys(
    keys: &Keys,
    equal_keys: &dyn Fn(usize, usize) -> bool,
    order: &mut [usize],
) -> u64 {
    let (mut start, mut ties) = (0, 0);
    while start < order.len() {
        let same = order[start..]
            .iter()
            .take_while(|&&n| equal_keys(order[start], n));
        let end = start + same.count().max(1);
        if end - start > 1 {
            ties += (end - start) as u64;
            order[start..end].sort_by(|&a, &b| keys.row(a).cmp(&keys.row(b)));
        }
        start = end;
    }
    ties
}

/// Collects rows, and writes them as batches.
pub struct BatchWriter<'a, 's> {
    layout: &'a RowLayout,
    values: ColumnValues<'a>,
    schema: &'a SchemaRef,
    progress: &'a Progress,
    sink: &'a mut Sink<'s>,
    max_rows: usize,
    /// The numbers of all columns.
    all: Vec<usize>,
    /// The part of each row.
    parts: Vec<u32>,
    bytes: Vec<u8>,
}

impl<'a, 's> BatchWriter<'a, 's> {
    /// A writer of rows with this layout.
    pub fn new(
        layout: &'a RowLayout,
        values: ColumnValues<'a>,
        schema: &'a SchemaRef,
        progress: &'a Progress,
        sink: &'a mut Sink<'s>,
    ) -> BatchWriter<'a, 's> {
        BatchWriter {
            layout,
            values,
            schema,
            progress,
            sink,
            max_rows: max_batch_rows(layout),
            all: (0..schema.fields().len()).collect(),
            parts: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn add(&mut self, part: u32, row: &[u8]) -> Result<()> {
        self.parts.push(part);
        self.bytes.extend_from_slice(row);
        match self.parts.len() < self.max_rows {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Adds consecutive rows of a part.
    pub fn add_range(&mut self, part: u32, rows: &SpilledRows, which: Range<usize>) -> Result<()> {
        for first in which.clone().step_by(self.max_rows) {
            let end = which.end.min(first + self.max_rows);
            rows.read(first..end, &mut self.bytes)?;
            self.parts.resize(end - first, part);
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all collected rows.
    fn flush(&mut self) -> Result<()> {
        let (layout, row_bytes) = (self.layout, self.layout.row_bytes);
        let mut done = 0;
        while done < self.parts.len() {
            if !self.progress.should_continue() {
                return Err(Error::Interrupted);
            }
            let left = &self.bytes[done * row_bytes..];
            let count = layout.rows_within(&self.all, left, BATCH_BYTES);
            let rows = left.chunks_exact(row_bytes).take(count);
            let parts = self.parts[done..].iter().copied();
            let rows: Vec<Row> = parts.zip(rows).collect();
            let columns = layout.decode(self.values, &self.all, &rows)?;
            let batch = RecordBatch::try_new(self.schema.clone(), columns);
            (self.sink)(batch?)?;
            done += count;
        }
        self.parts.clear();
        self.bytes.clear();
        Ok(())
    }
}
