//! A table that stands on devices, and how it is sorted there.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::file::metadata::KeyValue;
use serde_json::{json, Value};

use crate::bench::{Failure, Outcome};
use crate::directory::{Entry, KeyColumn};
use crate::form::{Form, Values};
use crate::gather::{begin_alike, Gather, Sink};
use crate::job::{Job, Opcodes, Shape, Source};
use crate::key::{Compared, Key};
use crate::plan::{cut, most_rows};
use crate::room::Room;
use crate::spill::Spills;
use crate::{By, Error, Progress, Report, Result, Table};

/// Partitions begin at multiples of so many rows: keys and rows of any size are at whole units there.
const STEP: usize = 4096;

/// A table that stands on devices: its parts in their order, each with its device.
pub struct Standing {
    pub(crate) name: String,
    pub(crate) parts: Vec<(usize, Entry)>,
    pub(crate) schema: SchemaRef,
    pub(crate) metadata: Vec<KeyValue>,
    pub(crate) form: Form,
    /// Of the whole table; what the rows have is empty.
    pub(crate) columns: Vec<ArrayRef>,
}

impl Standing {
    /// Its schema.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// What a Parquet file said beside its schema.
    pub fn metadata(&self) -> &[KeyValue] {
        &self.metadata
    }

    /// It with rows.
    pub(crate) fn table(&self, batches: &[RecordBatch]) -> Result<Table> {
        let batch = concat_batches(&self.schema, batches).map_err(Error::of_rows)?;
        Ok(Table {
            metadata: self.metadata.clone(),
            ..Table::from(batch)
        })
    }
}

/// A sort of a standing table.
pub struct Arranged<'a> {
    standing: &'a Standing,
    key: Key,
    /// The first column's: what the engine compares.
    first: Key,
    /// Where it stands, by part.
    keys: Vec<KeyColumn>,
    /// Where there is room to sort, by part.
    free: Vec<Range<u64>>,
    /// A part's number, and which of its rows.
    partitions: Vec<(usize, Range<usize>)>,
    /// By device.
    pub queues: Vec<Vec<usize>>,
    opcodes: Opcodes,
}

fn shape(rows: usize, form: &Form, key: &Key) -> Shape {
    Shape {
        rows,
        sorted: rows,
        row_bytes: form.row_bytes,
        key_bytes: key.bytes,
    }
}

impl<'a> Arranged<'a> {
    /// Decides in how many partitions each device sorts its part, in what is free of its namespace.
    pub fn new(
        standing: &'a Standing,
        by: &[By],
        free: &[Range<u64>],
        opcodes: Opcodes,
    ) -> Result<Arranged<'a>> {
        let Standing {
            name, parts, form, ..
        } = standing;
        let mut key = Key::of(&standing.schema, by)?;
        let keys: Result<Vec<KeyColumn>> = parts
            .iter()
            .map(|(_, entry)| stored(name, entry, &key, &by[0]))
            .collect();
        let keys = keys?;
        let first = Key::of(&standing.schema, &by[..1])?;
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
            let most = most_rows(entry.rows, |rows| {
                let mut room = Room::new(&free[*device]);
                shape(rows, form, &first).work(&mut room);
                room.fits()
            });
            let pieces = match most {
                most if most >= entry.rows => 1,
                most if most >= STEP => entry.rows.div_ceil(STEP).div_ceil(most / STEP),
                _ => {
                    let free = &free[*device];
                    return Err(Error::new(format!(
                        "device {device}: no room to sort: the largest free part of its namespace has {} KiB; drop a table",
                        (free.end - free.start) >> 10
                    )));
                }
            };
            for piece in cut(&(0..entry.rows), pieces, STEP) {
                queues[*device].push(partitions.len());
                partitions.push((number, piece));
            }
        }
        Ok(Arranged {
            standing,
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

    fn all(&self) -> usize {
        self.standing.parts[0].1.all
    }

    /// Bytes that engines and link move.
    pub fn bytes(&self) -> u64 {
        (self.all() * (self.first.bytes + 2 * self.standing.form.row_bytes)) as u64
    }

    /// What a device does with a partition.
    pub fn job(&self, partition: usize, spills: &Spills) -> Job {
        let (number, rows) = &self.partitions[partition];
        let (entry, stored) = (&self.standing.parts[*number].1, &self.keys[*number]);
        let shape = shape(rows.len(), &self.standing.form, &self.first);
        let place =
            |at: u64, each: usize| at + (rows.start * each) as u64..at + (rows.end * each) as u64;
        Job {
            shape,
            source: Source {
                keys: place(stored.at, stored.bytes),
                table: place(entry.table, entry.row_bytes),
            },
            work: shape.work(&mut Room::new(&self.free[*number])),
            put: Vec::new(),
            spills: spills.clone(),
            decode: None,
            opcodes: self.opcodes,
            kind: self.first.kind,
            digest: None,
        }
    }

    /// What is to be done: as JSON.
    pub fn plan(&self) -> Value {
        let rows = |n: &usize| self.partitions[*n].1.len();
        let planned = |n: &usize| json!({"rows": rows(n), "sorted": rows(n), "pages": null});
        let planned = |queue: &Vec<usize>| queue.iter().map(planned).collect::<Vec<Value>>();
        json!({
            "rows": self.all(), "row_bytes": self.standing.form.row_bytes, "stands": true,
            "key": self.key.text, "key_bytes": self.key.bytes, "partitions": self.partitions.len(),
            "devices": self.queues.iter().map(planned).collect::<Vec<_>>(),
        })
    }

    /// A report of what is to be done.
    pub fn report(&self) -> Report {
        Report {
            rows: self.all(),
            row_bytes: self.standing.form.row_bytes,
            key: self.key.text.clone(),
            partitions: self.partitions.len(),
            plan: self.plan(),
            ..Report::default()
        }
    }

    /// Refuses rows that are not those of the table.
    pub fn check(&self, outcomes: &[Outcome]) -> Result<()> {
        let parts = &self.standing.parts;
        let mut sums = vec![0u64; parts.len()];
        for outcome in outcomes {
            let sum = &mut sums[self.partitions[outcome.partition].0];
            *sum = sum.wrapping_add(outcome.done.digest);
        }
        let checked = parts.iter().zip(sums);
        let mut checked = checked.map(|((_, entry), sum)| check_rows(entry, sum));
        checked.try_for_each(|checked| checked.map_err(Error::new))
    }

    /// Gives the sorted rows away.
    pub fn gather(
        &self,
        outcomes: Vec<Outcome>,
        failures: Vec<Failure>,
        spills: &Spills,
        report: &mut Report,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<()> {
        let Arranged { key, first, .. } = self;
        let plain = first.compared != Compared::Prefix;
        let alike = |column: &ArrayRef| {
            let rows = first.rows(std::slice::from_ref(column))?;
            let alike = move |a, b| match plain {
                true => rows.row(a) == rows.row(b),
                false => begin_alike(&rows, a, b),
            };
            Ok(Box::new(alike) as Box<dyn Fn(usize, usize) -> bool>)
        };
        let whole = plain && key.columns.len() == 1;
        let gather = Gather {
            key,
            form: &self.standing.form,
            values: Values::Columns(&self.standing.columns),
            spills,
            schema: self.standing.schema.clone(),
            alike: if whole { None } else { Some(&alike) },
        };
        let devices = self.queues.len();
        gather.run(devices, outcomes, failures, report, progress, sink)
    }
}

/// The column of a part that a sort begins with.
fn stored(name: &str, entry: &Entry, key: &Key, by: &By) -> Result<KeyColumn> {
    let stored = entry.keys.iter().find(|k| k.column == key.columns[0]);
    stored.cloned().ok_or_else(|| {
        let keys: Vec<&str> = entry.keys.iter().map(|key| key.name.as_str()).collect();
        let keys = match keys.is_empty() {
            true => "no keys".into(),
            false => format!("the keys {}", keys.join(", ")),
        };
        Error::new(format!(
            "table {name:?} was put with {keys}: a sort of it begins with one of them, and not with {:?}; put it again with that key",
            by.column
        ))
    })
}

/// Refuses a part of which these are not the rows.
pub fn check_rows(entry: &Entry, found: u64) -> driver::Result<()> {
    match found == entry.digest {
        true => Ok(()),
        false => Err(driver::Error::Invalid(format!(
            "table {:?} is damaged: the rows of its part {} have changed",
            entry.name, entry.part
        ))),
    }
}
