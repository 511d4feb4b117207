// SPDX-License-Identifier: Apache-2.0

//! Merges sorted runs in as many passes as memory requires.
//!
//! Some rows of each run are in memory, with their keys. Text keys can be so long that all runs
//! together exceed the limit. In that case, several runs at a time are first merged into longer
//! ones.

use std::ops::Range;
use std::sync::Arc;

use arrow_row::Rows as Keys;

use crate::merge::{LoserTree, RunCursor};
use crate::merge_output::MergeOutput;
use crate::rows::SpilledRows;
use crate::size;
use crate::spill::Spill;
use crate::{Error, Progress, Result};

/// Memory for the buffered rows and keys of all runs of a merge.
const MERGE_BYTES: usize = 16 << 20;
/// Assumed memory of a short key, in addition to its row.
const KEY_BYTES: usize = 64;
/// Least number of runs in a merge, however long their keys are.
const MIN_FAN_IN: usize = 2;
/// Bytes of a write.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of the partition number that precedes a row.
const NUMBER_BYTES: usize = size_of::<u32>();

/// Rows in order.
pub struct SortedRun {
    pub rows: Arc<SpilledRows>,
    pub which: Range<usize>,
    /// The partition of all rows. `None`: a number precedes each row.
    pub partition: Option<u32>,
    /// Bytes of the longest key.
    pub longest: usize,
}

impl SortedRun {
    /// Least memory of the run in a merge.
    fn bytes(&self, row_bytes: usize) -> usize {
        // Each key is held twice: as a value, and normalised.
        row_bytes + KEY_BYTES + 2 * self.longest
    }
}

/// How many of the first runs are merged at once.
fn fan_in(runs: &[SortedRun], row_bytes: usize, most: usize) -> usize {
    let mut sum = 0usize;
    let fits = runs.iter().take_while(|run| {
        sum = sum.saturating_add(run.bytes(row_bytes));
        sum <= most
    });
    fits.count().max(MIN_FAN_IN).min(runs.len())
}

/// Passes rows to `each` in order, with their partition numbers. Of equal rows, those of the first
/// run come first.
pub fn merge_runs(
    output: &MergeOutput,
    mut runs: Vec<SortedRun>,
    progress: &Progress,
    mut each: impl FnMut(u32, &[u8]) -> Result<()>,
) -> Result<()> {
    let row_bytes = output.layout.row_bytes;
    while fan_in(&runs, row_bytes, MERGE_BYTES) < runs.len() {
        let mut longer = Vec::new();
        while !runs.is_empty() {
            let count = fan_in(&runs, row_bytes, MERGE_BYTES);
            let some: Vec<SortedRun> = runs.drain(..count).collect();
            longer.push(match some.len() {
                1 => some.into_iter().next(),
                _ => Some(merge_to_spill(output, some, progress)?),
            });
        }
        runs = longer.into_iter().flatten().collect();
    }
    merge_at_once(output, runs, progress, &mut each)
}

/// Merges runs into one.
fn merge_to_spill(
    output: &MergeOutput,
    runs: Vec<SortedRun>,
    progress: &Progress,
) -> Result<SortedRun> {
    let longest = runs.iter().map(|run| run.longest).max().unwrap_or(0);
    let mut spill: Spill = output.spills.empty();
    let mut piece = Vec::new();
    merge_at_once(output, runs, progress, &mut |partition, row| {
        piece.extend_from_slice(&partition.to_le_bytes());
        piece.extend_from_slice(row);
        if piece.len() >= CHUNK_BYTES {
            spill.append(&piece)?;
            piece.clear();
        }
        Ok(())
    })?;
    spill.append(&piece)?;
    let rows = SpilledRows::new(spill, NUMBER_BYTES + output.layout.row_bytes);
    Ok(SortedRun {
        which: 0..rows.count(),
        rows: rows.into(),
        partition: None,
        longest,
    })
}

fn merge_at_once(
    output: &MergeOutput,
    runs: Vec<SortedRun>,
    progress: &Progress,
    each: &mut dyn FnMut(u32, &[u8]) -> Result<()>,
) -> Result<()> {
    let row_bytes = output.layout.row_bytes;
    let block = MERGE_BYTES / runs.len().max(1) / (row_bytes + KEY_BYTES);
    let runs = runs.into_iter().map(|run| RunReader {
        output,
        left: run.which,
        rows: run.rows,
        partition: run.partition,
        partitions: Vec::new(),
        at_hand: Vec::new(),
        progress,
    });
    let mut merge = LoserTree::new(runs.collect(), block)?;
    while let Some((run, _, at)) = merge.next() {
        let row = &run.at_hand[at * row_bytes..][..row_bytes];
        each(run.partitions[at], row)?;
        merge.advance()?;
    }
    Ok(())
}

/// A run that is being read.
struct RunReader<'a> {
    output: &'a MergeOutput<'a>,
    rows: Arc<SpilledRows>,
    left: Range<usize>,
    partition: Option<u32>,
    /// The partition of each buffered row.
    partitions: Vec<u32>,
    at_hand: Vec<u8>,
    progress: &'a Progress,
}

impl RunReader<'_> {
    /// Reads rows, and separates them from their partition numbers.
    fn read(&mut self, rows: Range<usize>) -> Result<()> {
        self.at_hand.clear();
        self.partitions.clear();
        match self.partition {
            Some(partition) => {
                self.partitions.resize(rows.len(), partition);
                self.rows.read(rows, &mut self.at_hand)
            }
            None => {
                let mut numbered = Vec::new();
                self.rows.read(rows, &mut numbered)?;
                for row in numbered.chunks_exact(NUMBER_BYTES + self.output.layout.row_bytes) {
                    let (number, row) = row.split_at(NUMBER_BYTES);
                    let number = number.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b));
                    self.partitions.push(number);
                    self.at_hand.extend_from_slice(row);
                }
                Ok(())
            }
        }
    }

    fn truncate(&mut self, rows: usize) {
        self.at_hand.truncate(rows * self.output.layout.row_bytes);
        self.partitions.truncate(rows);
    }
}

impl RunCursor for RunReader<'_> {
    fn next_block(&mut self, most: usize) -> Result<Option<Keys>> {
        if self.left.is_empty() {
            self.truncate(0);
            return Ok(None);
        }
        if !self.progress.should_continue() {
            return Err(Error::Interrupted);
        }
        let MergeOutput { key, layout, .. } = self.output;
        let end = self.left.end.min(self.left.start + most);
        self.read(self.left.start..end)?;
        let bytes = most * KEY_BYTES;
        self.truncate(layout.rows_within(&key.columns, &self.at_hand, bytes));
        let mut keys = self.output.keys(&self.partitions, &self.at_hand)?;
        let rows = size::rows_within(&keys, bytes);
        self.truncate(rows);
        keys.iter_mut()
            .for_each(|column| *column = column.slice(0, rows));
        self.left.start += rows;
        key.rows(&keys).map(Some)
    }
}
