// SPDX-License-Identifier: Apache-2.0

//! Resident tables, and how they are sorted on the devices.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::file::metadata::KeyValue;
use serde_json::{json, Value};

use crate::directory::{KeyColumn, TablePart};
use crate::job::{EngineInput, Opcodes, PartitionShape, SortJob};
use crate::key::{EngineKey, SortKey};
use crate::merge_output::MergeOutput;
use crate::merge_partitions::{equal_prefixes, Sink};
use crate::plan::{max_rows, split_evenly};
use crate::powered_devices::{DeviceFailure, SortedPartition};
use crate::region::RegionAllocator;
use crate::row_layout::{ColumnValues, RowLayout};
use crate::spill::Spills;
use crate::{Error, OrderBy, Progress, Report, Result, Table};

/// Partitions begin at multiples of this number of rows, so keys and rows of any size begin at
/// whole units.
const STEP: usize = 4096;

/// A resident table: its parts in order, each with its device.
pub struct ResidentTable {
    pub(crate) name: String,
    pub(crate) parts: Vec<(usize, TablePart)>,
    pub(crate) schema: SchemaRef,
    pub(crate) metadata: Vec<KeyValue>,
    pub(crate) layout: RowLayout,
    /// The side columns of the whole table. Columns in the rows are empty.
    pub(crate) columns: Vec<ArrayRef>,
}

impl ResidentTable {
    /// The table's schema.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The metadata of the Parquet file that the table came from.
    pub fn metadata(&self) -> &[KeyValue] {
        &self.metadata
    }

    /// The table with these rows.
    pub(crate) fn table(&self, batches: &[RecordBatch]) -> Result<Table> {
        let batch = concat_batches(&self.schema, batches).map_err(Error::of_rows)?;
        Ok(Table {
            metadata: self.metadata.clone(),
            ..Table::from(batch)
        })
    }
}

/// A sort of a resident table.
pub struct ResidentSort<'a> {
    resident: &'a ResidentTable,
    key: SortKey,
    /// The key of the first column, which the engine compares.
    first: SortKey,
    /// Where that key is stored, by part.
    keys: Vec<KeyColumn>,
    /// The free range for the sort, by part.
    free: Vec<Range<u64>>,
    /// The part of each partition, and its rows.
    partitions: Vec<(usize, Range<usize>)>,
    /// Partitions, by device.
    pub queues: Vec<Vec<usize>>,
    opcodes: Opcodes,
}

fn shape(rows: usize, layout: &RowLayout, key: &SortKey) -> PartitionShape {
    PartitionShape {
        rows,
        sorted: rows,
        row_bytes: layout.row_bytes,
        key_bytes: key.bytes,
    }
}

impl<'a> ResidentSort<'a> {
    /// Splits each part into partitions that can be sorted in the free space of its namespace.
    pub fn new(
        resident: &'a ResidentTable,
        by: &[OrderBy],
        free: &[Range<u64>],
        opcodes: Opcodes,
    ) -> Result<ResidentSort<'a>> {
        let ResidentTable {
            name,
            parts,
            layout,
            ..
        } = resident;
        let mut key = SortKey::of(&resident.schema, by)?;
        let keys: Result<Vec<KeyColumn>> = parts
            .iter()
            .map(|(_, entry)| stored(name, entry, &key, &by[0]))
            .collect();
        let keys = keys?;
        let first = SortKey::of(&resident.schema, &by[..1])?;
        let first = match keys[0].plain {
            true => first,
            false => first.normalised(),
        };
        let same = |k: &KeyColumn| (k.bytes, k.plain) == (first.bytes, keys[0].plain);
        if !keys.iter().all(same) {
            return Err(Error::new(format!(
                "table {name:?} is damaged: its keys differ"
            )));
        }
        key.bytes = first.bytes;
        key.text = first.text.clone();
        let mut partitions = Vec::new();
        let mut queues = vec![Vec::new(); free.len()];
        for (number, (device, entry)) in parts.iter().enumerate() {
            let most = max_rows(entry.rows, |rows| {
                let mut regions = RegionAllocator::new(&free[*device]);
                shape(rows, layout, &first).workspace(&mut regions);
                regions.fits()
            });
            let pieces = match most {
                most if most >= entry.rows => 1,
                most if most >= STEP => entry.rows.div_ceil(STEP).div_ceil(most / STEP),
                _ => {
                    let free = &free[*device];
                    return Err(Error::new(format!(
                        "device {device}: no room to sort: the largest free part of its namespace \
                            has {} KiB; drop a table",
                        (free.end - free.start) >> 10
                    )));
                }
            };
            for piece in split_evenly(&(0..entry.rows), pieces, STEP) {
                queues[*device].push(partitions.len());
                partitions.push((number, piece));
            }
        }
        Ok(ResidentSort {
            resident,
            key,
            first,
            keys,
            free: parts
                .iter()
                .map(|(device, _)| free[*device].clone())
                .collect(),
            partitions,
            queues,
            opcodes,
        })
    }

    fn total_rows(&self) -> usize {
        self.resident.parts[0].1.all
    }

    /// Bytes that the engines process and the link moves.
    pub fn bytes(&self) -> u64 {
        (self.total_rows() * (self.first.bytes + 2 * self.resident.layout.row_bytes)) as u64
    }

    /// The job of a device for a partition.
    pub fn job(&self, partition: usize, spills: &Spills) -> SortJob {
        let (number, rows) = &self.partitions[partition];
        let (entry, stored) = (&self.resident.parts[*number].1, &self.keys[*number]);
        let shape = shape(rows.len(), &self.resident.layout, &self.first);
        let place =
            |at: u64, each: usize| at + (rows.start * each) as u64..at + (rows.end * each) as u64;
        SortJob {
            shape,
            source: EngineInput {
                keys: place(stored.at, stored.bytes),
                table: place(entry.table, entry.row_bytes),
            },
            work: shape.workspace(&mut RegionAllocator::new(&self.free[*number])),
            put: Vec::new(),
            spills: spills.clone(),
            decode: None,
            opcodes: self.opcodes,
            kind: self.first.kind,
            digest: None,
        }
    }

    /// The plan as JSON.
    pub fn plan(&self) -> Value {
        let rows = |n: &usize| self.partitions[*n].1.len();
        let planned = |n: &usize| json!({"rows": rows(n), "sorted": rows(n), "pages": null});
        let planned = |queue: &Vec<usize>| queue.iter().map(planned).collect::<Vec<Value>>();
        json!({
            "rows": self.total_rows(), "row_bytes": self.resident.layout.row_bytes, "stands": true,
            "key": self.key.text, "key_bytes": self.key.bytes, "partitions": self.partitions.len(),
            "devices": self.queues.iter().map(planned).collect::<Vec<_>>(),
        })
    }

    /// A report with the plan.
    pub fn report(&self) -> Report {
        Report {
            rows: self.total_rows(),
            row_bytes: self.resident.layout.row_bytes,
            key: self.key.text.clone(),
            partitions: self.partitions.len(),
            plan: self.plan(),
            ..Report::default()
        }
    }

    /// Checks that the rows are those of the table.
    pub fn check(&self, outcomes: &[SortedPartition]) -> Result<()> {
        let parts = &self.resident.parts;
        let mut sums = vec![0u64; parts.len()];
        for outcome in outcomes {
            let sum = &mut sums[self.partitions[outcome.partition].0];
            *sum = sum.wrapping_add(outcome.done.digest);
        }
        let checked = parts.iter().zip(sums);
        let mut checked = checked.map(|((_, entry), sum)| check_rows(entry, sum));
        checked.try_for_each(|checked| checked.map_err(Error::from))
    }

    /// Merges the sorted partitions, and passes the rows to the sink.
    pub fn merge(
        &self,
        outcomes: Vec<SortedPartition>,
        failures: Vec<DeviceFailure>,
        spills: &Spills,
        report: &mut Report,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<()> {
        let ResidentSort { key, first, .. } = self;
        let plain = first.compared != EngineKey::Prefix;
        let equal_keys = |column: &ArrayRef| {
            let rows = first.rows(std::slice::from_ref(column))?;
            let equal_keys = move |a, b| match plain {
                true => rows.row(a) == rows.row(b),
                false => equal_prefixes(&rows, a, b),
            };
            Ok(Box::new(equal_keys) as Box<dyn Fn(usize, usize) -> bool>)
        };
        let whole = plain && key.columns.len() == 1;
        let output = MergeOutput {
            key,
            layout: &self.resident.layout,
            values: ColumnValues::Columns(&self.resident.columns),
            spills,
            schema: self.resident.schema.clone(),
            equal_keys: if whole { None } else { Some(&equal_keys) },
        };
        let devices = self.queues.len();
        output.run(devices, outcomes, failures, report, progress, sink)
    }
}

/// The stored key column that the order begins with.
fn stored(name: &str, entry: &TablePart, key: &SortKey, by: &OrderBy) -> Result<KeyColumn> {
    let stored = entry.keys.iter().find(|k| k.column == key.columns[0]);
    stored.cloned().ok_or_else(|| {
        let keys: Vec<&str> = entry.keys.iter().map(|key| key.name.as_str()).collect();
        let keys = match keys.is_empty() {
            true => "no keys".into(),
            false => format!("the keys {}", keys.join(", ")),
        };
        Error::new(format!(
            "table {name:?} was put with {keys}: a sort of it begins with one of them, and not \
                with {:?}; put it again with that key",
            by.column
        ))
    })
}

/// Checks the digest of a part's rows.
pub fn check_rows(entry: &TablePart, found: u64) -> driver::Result<()> {
    match found == entry.digest {
        true => Ok(()),
        false => Err(driver::Error::Invalid(format!(
            "table {:?} is damaged: the rows of its part {} have changed",
            entry.name, entry.part
        ))),
    }
}
