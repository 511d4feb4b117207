//! What came from the devices, as one table.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::Rows;
use arrow_schema::SchemaRef;

use crate::bench::{Failure, Outcome};
use crate::form::Form;
use crate::key::{prefix, Compared, Key};
use crate::merge::{check, merge, order, Arrival, Run};
use crate::report::{Device, Stage};
use crate::{Error, Report, Result};

/// Whether rows have keys that an engine took for equal, of partitions whose first key is so.
pub type Alike<'a> = dyn Fn(&ArrayRef) -> Result<Box<dyn Fn(usize, usize) -> bool>> + 'a;

/// How rows become a table.
pub struct Gather<'a> {
    pub key: &'a Key,
    pub form: &'a Form,
    /// Of the whole table: for what is not in the rows.
    pub columns: &'a [ArrayRef],
    pub schema: SchemaRef,
    /// Of sorts by a key that is not that of the rows' order; without it the beginning of the normalised key, if it is that.
    pub alike: Option<&'a Alike<'a>>,
    /// How a partition's rows come, with so many nulls of the first key among so many rows.
    pub arrival: &'a dyn Fn(usize, usize, usize) -> Arrival,
}

impl Gather<'_> {
    /// Merges partitions, and tells of each device what it did.
    pub fn run(
        &self,
        devices: usize,
        outcomes: Vec<Outcome>,
        failures: Vec<Failure>,
        report: &mut Report,
    ) -> Result<RecordBatch> {
        let Gather { key, form, .. } = self;
        report.devices = vec![Device::default(); devices];
        let mut orders = Vec::new();
        for outcome in &outcomes {
            let part = outcome.done.rows.as_slice();
            let count = part.len() / form.row_bytes;
            let given: Vec<u32> = (0..count as u32).collect();
            let columns = self.keys(part, &given)?;
            let nulls = match key.columns.len() == 1 || self.alike.is_some() {
                true => columns[0].logical_null_count(),
                false => 0,
            };
            let arrival = (self.arrival)(outcome.partition, nulls, count);
            let rows = key.rows(&columns)?;
            let order = match self.alike {
                // Nulls within values are last in the keys that stand on the device, wherever they are wanted.
                Some(_) if columns[0].data_type().is_nested() => {
                    report.ties += count as u64;
                    let mut order = given;
                    order.sort_by(|&a, &b| rows.row(a as usize).cmp(&rows.row(b as usize)));
                    order
                }
                Some(alike) => {
                    let alike = alike(&columns[0])?;
                    let ties = &mut report.ties;
                    order(&rows, arrival, key.nulls_first, Some(&*alike), ties)
                }
                None => {
                    let alike = |a, b| begin_alike(&rows, a, b);
                    let alike: &dyn Fn(usize, usize) -> bool = &alike;
                    let alike = (key.compared == Compared::Prefix).then_some(alike);
                    order(&rows, arrival, key.nulls_first, alike, &mut report.ties)
                }
            };
            check(&rows, &order, || {
                format!("partition {} came back with", outcome.partition)
            })?;
            orders.push(order);
            let device = &mut report.devices[outcome.device];
            device.rows += count;
            device.nulls += nulls;
            device.partitions += 1;
            let stages = outcome.done.stages.iter().cloned();
            device.stages.extend(stages.map(|stage| Stage {
                partition: outcome.partition,
                ..stage
            }));
            device.looks.push(outcome.done.looks.clone());
        }
        for failure in failures {
            report.devices[failure.device].failed = Some(failure.error);
        }
        let order = self.merge(&outcomes, orders)?;
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let parts: Vec<&[u8]> = outcomes.iter().map(|o| o.done.rows.as_slice()).collect();
        let columns = form.decode(self.columns, &all, &parts, &order)?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(Error::new)
    }

    /// The key's columns of rows of a partition.
    fn keys(&self, part: &[u8], rows: &[u32]) -> Result<Vec<ArrayRef>> {
        let rows: Vec<(u32, u32)> = rows.iter().map(|&row| (0, row)).collect();
        self.form
            .decode(self.columns, &self.key.columns, &[part], &rows)
    }

    /// All rows in order, as (partition, row).
    fn merge(&self, outcomes: &[Outcome], mut orders: Vec<Vec<u32>>) -> Result<Vec<(u32, u32)>> {
        if orders.len() == 1 {
            let only = orders.pop().unwrap_or_default();
            return Ok(only.into_iter().map(|row| (0, row)).collect());
        }
        let runs = outcomes.iter().zip(orders).map(|(outcome, order)| {
            let part = outcome.done.rows.as_slice();
            let keys = move |rows: &[u32]| self.key.rows(&self.keys(part, rows)?);
            Run::new(order, Box::new(keys))
        });
        let runs: Result<Vec<Run>> = runs.collect();
        merge(runs?)
    }
}

/// Whether the beginnings of normalised keys are the same.
pub fn begin_alike(rows: &Rows, a: usize, b: usize) -> bool {
    prefix(rows, a) == prefix(rows, b)
}
