//! A sort of a table in memory: what it needs is known before any device is built.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use design::Design;
use device::Factory;
use driver::control::block;
use serde_json::{json, Value};

use crate::bench::{self, Bench};
use crate::digest;
use crate::form::Form;
use crate::gather::Gather;
use crate::guard::guarded;
use crate::job::{Decode, Job, Lists, Opcodes, Shape, Source, Work};
use crate::key::Key;
use crate::merge::Arrival;
use crate::pages::{Column, Pages};
use crate::room::Room;
use crate::{By, Error, Progress, Report, Result, Table};

/// Devices of a host.
const MOST_DEVICES: usize = 16;

/// A table that can be sorted.
pub struct Plan<'a> {
    table: &'a Table,
    design: &'a Design,
    root: &'a Path,
    key: Key,
    form: Form,
    opcodes: Opcodes,
    pages: Option<Column>,
    namespace: Range<u64>,
    /// Rows, in their order.
    partitions: Vec<Range<usize>>,
    /// Which of them a device sorts.
    queues: Vec<Vec<usize>>,
    prepare: Mutex<Duration>,
}

impl Opcodes {
    /// Of the commands that a design's engines have.
    pub fn of(design: &Design, root: &Path) -> Result<Opcodes> {
        let engines = design.engines(root).map_err(Error::new)?;
        let first = |kind: u32| {
            let of_kind = engines.iter().filter(|engine| engine.manifest.kind == kind);
            of_kind
                .flat_map(|engine| &engine.commands)
                .map(|command| command.opcode)
                .next()
        };
        let needed = |kind: u32, name: &str| {
            let design = &design.name;
            first(kind).ok_or_else(|| {
                Error::new(format!(
                    "the design {design} has no engine {name} with NVMe commands; the design sort has"
                ))
            })
        };
        if let Some(opcode) = first(block::PIPELINE) {
            let clock = design.clock();
            return Ok(Opcodes {
                lists: Some(Lists { opcode, clock }),
                ..Opcodes::OF_ENTRIES
            });
        }
        Ok(Opcodes {
            lists: None,
            sort: needed(block::SORTER, "sorter")?,
            shuffle: needed(block::ROW_SHUFFLE, "row_shuffle")?,
            decode: first(block::DICT_DECODE),
        })
    }
}

/// The number of devices, if a host can have so many.
pub fn check_devices(devices: usize) -> Result<usize> {
    match (1..=MOST_DEVICES).contains(&devices) {
        true => Ok(devices),
        false => Err(Error::new(format!(
            "devices = {devices}: allowed are 1 to {MOST_DEVICES}"
        ))),
    }
}

/// The most rows, up to `all`, that fit. If some fit, fewer do.
pub fn most_rows(all: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, all);
    while low < high {
        let middle = high - (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

/// Cuts a range into so many parts, as even as can be; their bounds are multiples of a step from its start on.
pub fn cut(range: &Range<usize>, parts: usize, step: usize) -> Vec<Range<usize>> {
    let steps = range.len().div_ceil(step);
    let bound = |n: usize| (range.start + steps * n / parts * step).min(range.end);
    let parts = (0..parts).map(|n| bound(n)..bound(n + 1));
    parts.filter(|part| !part.is_empty()).collect()
}

impl<'a> Plan<'a> {
    /// Looks at all that could be wrong, and decides which device gets which rows: each a contiguous part, in as many partitions as fit one
    /// after another.
    pub fn new(
        table: &'a Table,
        by: &[By],
        root: &'a Path,
        design: &'a Design,
        devices: usize,
    ) -> Result<Plan<'a>> {
        let devices = check_devices(devices)?;
        if design.media.file.is_some() && devices > 1 {
            return Err(Error::new(
                "media.file: several devices can't have one file; take a design without it",
            ));
        }
        let opcodes = Opcodes::of(design, root)?;
        let key = Key::of(&table.schema(), by)?;
        let batch = &table.batch;
        let form = Form::of(batch)?;
        let rows = batch.num_rows();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(format!("{rows} rows: allowed are {}", u32::MAX)));
        }
        let extent = design.nvme.extent(1, design.media.bytes);
        let namespace = 0..extent.end - extent.start;
        let pages = match opcodes.decode {
            Some(_) => Column::of(table, &key),
            None => None,
        };
        let most = most_rows(rows, |rows| {
            let shape = Shape {
                rows,
                sorted: rows,
                row_bytes: form.row_bytes,
                key_bytes: key.bytes,
            };
            let mut room = Room::new(&namespace);
            shape.source(&mut room);
            shape.work(&mut room);
            room.fits()
        });
        if most == 0 && rows > 0 {
            return Err(Error::new(format!(
                "the table is too large: {rows} rows, of which not one fits in a device with its key and room to sort; its namespace has {} KiB",
                namespace.end >> 10
            )));
        }
        let (mut partitions, mut queues) = (Vec::new(), Vec::new());
        for part in cut(&(0..rows), devices, 1) {
            let first = partitions.len();
            partitions.extend(cut(&part, part.len().div_ceil(most), 1));
            queues.push((first..partitions.len()).collect());
        }
        Ok(Plan {
            table,
            design,
            root,
            key,
            form,
            opcodes,
            pages,
            namespace,
            partitions,
            queues,
            prepare: Mutex::default(),
        })
    }

    /// True if there is nothing to sort, and so no device needed.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    fn part(&self, partition: usize) -> RecordBatch {
        let rows = &self.partitions[partition];
        self.table.batch.slice(rows.start, rows.len())
    }

    fn shape(&self, rows: usize, sorted: usize) -> Shape {
        Shape {
            rows,
            sorted,
            row_bytes: self.form.row_bytes,
            key_bytes: self.key.bytes,
        }
    }

    /// Where a partition's keys and rows go, where it is sorted, and what is left.
    fn room(&self, shape: Shape) -> (Source, Work, Room) {
        let mut room = Room::new(&self.namespace);
        let source = shape.source(&mut room);
        (source, shape.work(&mut room), room)
    }

    /// A partition's keys as they are in the file, if they are fewer bytes than the values and there is room beside them; and where they go.
    fn paged(
        &self,
        column: &Column,
        partition: usize,
        shape: Shape,
        room: &mut Room,
    ) -> Option<(Pages, Range<u64>, Range<u64>)> {
        let Range { start, end } = self.partitions[partition];
        let pages = column.part(start as u32, end as u32);
        let bytes = pages.dictionary.len() + pages.encoded.len();
        let dictionary = room.take(pages.dictionary.len() as u64);
        let encoded = room.take(pages.encoded.len() as u64);
        let fewer = bytes < shape.sorted * shape.key_bytes;
        (fewer && room.fits()).then_some((pages, dictionary, encoded))
    }

    /// What a device gets for a partition, and does with it.
    pub(crate) fn job(&self, partition: usize) -> Result<Job> {
        let begin = Instant::now();
        let job = guarded("the keys can't be normalised", || {
            let start = self.partitions[partition].start;
            let part = self.part(partition);
            let (order, sorted) = self.key.split(&part);
            let shape = self.shape(order.len(), sorted);
            let (source, work, mut room) = self.room(shape);
            let pages = self.pages.as_ref();
            let pages = pages.and_then(|column| self.paged(column, partition, shape, &mut room));
            let mut put = Vec::new();
            let decode = match pages {
                Some((pages, dictionary, encoded)) => {
                    let shape = pages.shape;
                    put.push((dictionary.clone(), pages.dictionary));
                    put.push((encoded.clone(), pages.encoded));
                    Some(Decode {
                        dictionary,
                        encoded,
                        pages: shape,
                    })
                }
                None => {
                    let keys = self.key.encode(&part, &order[..sorted])?;
                    put.push((source.keys.clone(), keys));
                    None
                }
            };
            let rows = self.form.encode(part.columns(), start, &order);
            let digest = digest::of_rows(&rows, shape.row_bytes);
            put.push((source.table.clone(), rows));
            Ok(Job {
                shape,
                source,
                work,
                put,
                decode,
                opcodes: self.opcodes,
                kind: self.key.kind,
                digest: Some(digest),
            })
        });
        if let Ok(mut prepare) = self.prepare.lock() {
            *prepare += begin.elapsed();
        }
        job
    }

    /// What comes of a table without rows.
    pub fn unsorted(self) -> (Table, Report) {
        let table = self.table.with_batch(self.table.batch.clone());
        (table, self.report())
    }

    fn report(&self) -> Report {
        Report {
            rows: self.table.batch.num_rows(),
            row_bytes: self.form.row_bytes,
            key: self.key.text.clone(),
            partitions: self.partitions.len(),
            plan: self.explain(),
            ..Report::default()
        }
    }

    /// Sorts on devices of a factory.
    pub fn run(self, factory: &mut Factory, progress: &Progress) -> Result<(Table, Report)> {
        if self.is_empty() {
            return Ok(self.unsorted());
        }
        let mut bench = self.bench(factory)?;
        self.run_on(&mut bench, progress)
    }

    pub(crate) fn bench(&self, factory: &mut Factory) -> Result<Bench> {
        Bench::of_memory(self.root, self.design, factory, self.queues.len())
    }

    pub(crate) fn run_on(self, bench: &mut Bench, progress: &Progress) -> Result<(Table, Report)> {
        let rows = self.table.batch.num_rows();
        // Through the link and by the engines.
        progress.expect((rows * (2 * self.key.bytes + 3 * self.form.row_bytes)) as u64);
        let work = bench::Work {
            queues: self.queues.clone(),
            movable: true,
            make: &|partition| self.job(partition),
        };
        let (outcomes, failures) = bench.sort(work, progress)?;
        let mut report = self.report();
        report.prepare = self.prepare.lock().map(|time| *time).unwrap_or_default();
        let begin = Instant::now();
        let gather = Gather {
            key: &self.key,
            form: &self.form,
            columns: self.table.batch.columns(),
            schema: self.table.schema(),
            alike: None,
            arrival: &|_, nulls, rows| Arrival {
                nulls,
                nulls_before: false,
                sorted: rows - nulls,
            },
        };
        let batch = guarded("rows that came back can't be read", || {
            gather.run(self.queues.len(), outcomes, failures, &mut report)
        })?;
        report.merge = begin.elapsed();
        Ok((self.table.with_batch(batch), report))
    }

    /// What a run would do: as JSON.
    pub fn explain(&self) -> Value {
        let partition = |n: &usize| {
            let (order, sorted) = self.key.split(&self.part(*n));
            let pages = self.pages.as_ref().and_then(|column| {
                let shape = self.shape(order.len(), sorted);
                self.paged(column, *n, shape, &mut self.room(shape).2)
            });
            let pages = pages.map(|(pages, ..)| {
                json!({"dictionary": pages.dictionary.len(), "encoded": pages.encoded.len()})
            });
            json!({"rows": order.len(), "sorted": sorted, "pages": pages})
        };
        let device = |queue: &Vec<usize>| queue.iter().map(partition).collect::<Vec<Value>>();
        json!({
            "rows": self.table.batch.num_rows(), "row_bytes": self.form.row_bytes,
            "stands": false, "key": self.key.text, "key_bytes": self.key.bytes, "partitions": self.partitions.len(),
            "devices": self.queues.iter().map(device).collect::<Vec<Vec<Value>>>(),
        })
    }
}
