//! A sort of a table: what it needs is known before any device is built.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{new_empty_array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_select::concat::{concat, concat_batches};
use design::Design;
use device::Factory;
use driver::control::block;
use serde_json::{json, Value};

use crate::bench::{self, Bench};
use crate::digest;
use crate::encoded_keys::{DictionaryColumn, EncodedKeys};
use crate::guard::guarded;
use crate::job::{
    CommandLists, DecodeInput, EngineInput, EngineWorkspace, Opcodes, PartitionShape, SortJob,
};
use crate::key::SortKey;
use crate::merge_output::MergeOutput;
use crate::merge_partitions::Sink;
use crate::region::RegionAllocator;
use crate::row_layout::{ColumnValues, RowLayout};
use crate::run_end::{self, copied};
use crate::source::Source;
use crate::spill::{Spill, Spills};
use crate::{Error, OrderBy, Progress, Report, Result, Table};

/// Bytes that wait in memory, of all partitions together.
const MEMORY_BYTES: u64 = 256 << 20;

/// Devices of a host.
const MAX_DEVICES: usize = 16;

/// A table that can be sorted.
pub struct Plan<'a> {
    source: Source,
    by: Vec<OrderBy>,
    design: &'a Design,
    root: &'a Path,
    key: SortKey,
    layout: RowLayout,
    opcodes: Opcodes,
    pages: Option<DictionaryColumn>,
    /// Which rows have a key, if it is one column and not all have.
    valid: Option<NullBuffer>,
    namespace: Range<u64>,
    /// Rows, in their order.
    partitions: Vec<Range<usize>>,
    /// Which of them a device sorts.
    queues: Vec<Vec<usize>>,
    devices: usize,
    memory: u64,
}

/// What of a partition waits to go to a device.
struct PreparedPartition {
    shape: PartitionShape,
    /// Without them the file's pages go.
    keys: Option<Arc<Spill>>,
    rows: Arc<Spill>,
    digest: u64,
}

/// A table that has been read, and can be sorted.
pub struct LoadedPlan<'a> {
    plan: Plan<'a>,
    spills: Spills,
    /// By partition, until it has been sorted.
    ready: Vec<Mutex<Option<Arc<PreparedPartition>>>>,
    /// By partition: values of variable length.
    heaps: Vec<Spill>,
    /// Columns for whose values rows have a number; others are empty.
    columns: Vec<ArrayRef>,
    prepare: Duration,
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
                lists: Some(CommandLists { opcode, clock }),
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
    match (1..=MAX_DEVICES).contains(&devices) {
        true => Ok(devices),
        false => Err(Error::new(format!(
            "devices = {devices}: allowed are 1 to {MAX_DEVICES}"
        ))),
    }
}

/// The most rows, up to `all`, that fit. If some fit, fewer do.
pub fn max_rows(all: usize, fits: impl Fn(usize) -> bool) -> usize {
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
pub fn split_evenly(range: &Range<usize>, parts: usize, step: usize) -> Vec<Range<usize>> {
    let steps = range.len().div_ceil(step);
    let bound = |n: usize| (range.start + steps * n / parts * step).min(range.end);
    let parts = (0..parts).map(|n| bound(n)..bound(n + 1));
    parts.filter(|part| !part.is_empty()).collect()
}

impl<'a> Plan<'a> {
    /// Looks at all that could be wrong, and decides which device gets which rows: each a contiguous part, in as many partitions as fit one
    /// after another.
    pub fn new(
        table: &Table,
        by: &[OrderBy],
        root: &'a Path,
        design: &'a Design,
        devices: usize,
    ) -> Result<Plan<'a>> {
        Plan::of(table.into(), by, root, design, devices)
    }

    /// The same of a table of which no more than a batch has to be in memory.
    pub fn of(
        source: Source,
        by: &[OrderBy],
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
        let key = SortKey::of(&source.schema(), by)?;
        let layout = RowLayout::with_heaps(&source.schema(), &source.nulls)?;
        let rows = source.rows();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(format!("{rows} rows: allowed are {}", u32::MAX)));
        }
        let extent = design.nvme.extent(1, design.media.bytes);
        let namespace = 0..extent.end - extent.start;
        let valid = match key.columns[..] {
            [column]
                if source.nulls[column] || layout.by_row_number().nth(column) == Some(true) =>
            {
                source.valid(column)?
            }
            _ => None,
        };
        let pages = match opcodes.decode {
            Some(_) => DictionaryColumn::of(&source, &key, valid.as_ref()),
            None => None,
        };
        let most = max_rows(rows, |rows| {
            let shape = PartitionShape {
                rows,
                sorted: rows,
                row_bytes: layout.row_bytes,
                key_bytes: key.bytes,
            };
            let mut regions = RegionAllocator::new(&namespace);
            shape.input(&mut regions);
            shape.workspace(&mut regions);
            regions.fits()
        });
        if most == 0 && rows > 0 {
            return Err(Error::new(format!(
                "the table is too large: {rows} rows, of which not one fits in a device with its key and room to sort; its namespace has {} KiB",
                namespace.end >> 10
            )));
        }
        let (mut partitions, mut queues) = (Vec::new(), Vec::new());
        for part in split_evenly(&(0..rows), devices, 1) {
            let first = partitions.len();
            partitions.extend(split_evenly(&part, part.len().div_ceil(most), 1));
            queues.push((first..partitions.len()).collect());
        }
        Ok(Plan {
            source,
            by: by.to_vec(),
            design,
            root,
            key,
            layout,
            opcodes,
            pages,
            valid,
            namespace,
            partitions,
            queues,
            devices,
            memory: MEMORY_BYTES,
        })
    }

    /// With another limit for the bytes that wait in memory; what is more waits in files.
    pub fn with_memory(self, bytes: u64) -> Plan<'a> {
        Plan {
            memory: bytes,
            ..self
        }
    }

    /// True if there is nothing to sort, and so no device needed.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    fn shape(&self, partition: usize) -> PartitionShape {
        let Range { start, end } = self.partitions[partition];
        let rows = end - start;
        let valid = self.valid.as_ref().map(|valid| valid.slice(start, rows));
        PartitionShape {
            rows,
            sorted: rows - valid.map_or(0, |valid| valid.null_count()),
            row_bytes: self.layout.row_bytes,
            key_bytes: self.key.bytes,
        }
    }

    /// Where a partition's keys and rows go, where it is sorted, and what is left.
    fn regions(&self, shape: PartitionShape) -> (EngineInput, EngineWorkspace, RegionAllocator) {
        let mut regions = RegionAllocator::new(&self.namespace);
        let source = shape.input(&mut regions);
        (source, shape.workspace(&mut regions), regions)
    }

    /// A partition's keys as they are in the file, if they are fewer bytes than the values and there is regions beside them; and where they go.
    fn encoded_keys(
        &self,
        partition: usize,
        shape: PartitionShape,
        regions: &mut RegionAllocator,
    ) -> Option<(EncodedKeys, Range<u64>, Range<u64>)> {
        let column = self.pages.as_ref()?;
        let Range { start, end } = self.partitions[partition];
        let pages = column.part(start as u32, end as u32);
        let bytes = pages.dictionary.len() + pages.encoded.len();
        let dictionary = regions.allocate(pages.dictionary.len() as u64);
        let encoded = regions.allocate(pages.encoded.len() as u64);
        let fewer = bytes < shape.sorted * shape.key_bytes;
        (fewer && regions.fits()).then_some((pages, dictionary, encoded))
    }

    /// What is told of a table without rows.
    pub fn empty_report(&self) -> Report {
        self.report()
    }

    /// A table with the source's schema and metadata, and these rows.
    pub fn table(&self, batches: &[RecordBatch]) -> Result<Table> {
        let batch = concat_batches(&self.source.schema(), batches).map_err(Error::of_rows)?;
        Ok(Table {
            metadata: self.source.metadata.clone(),
            ..Table::from(batch)
        })
    }

    /// What the table is read from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn report(&self) -> Report {
        Report {
            rows: self.source.rows(),
            row_bytes: self.layout.row_bytes,
            key: self.key.text.clone(),
            partitions: self.partitions.len(),
            plan: self.explain(),
            ..Report::default()
        }
    }

    /// Sorts in memory, on devices of a factory.
    pub fn run(self, factory: &mut Factory, progress: &Progress) -> Result<(Table, Report)> {
        if self.is_empty() {
            return Ok((self.table(&[])?, self.empty_report()));
        }
        let mut bench = self.bench(factory)?;
        self.run_on(&mut bench, progress)
    }

    pub(crate) fn bench(&self, factory: &mut Factory) -> Result<Bench> {
        Bench::of_memory(self.root, self.design, factory, self.queues.len())
    }

    pub(crate) fn run_on(self, bench: &mut Bench, progress: &Progress) -> Result<(Table, Report)> {
        let loaded = self.load(progress)?;
        let mut batches = Vec::new();
        let mut sink = |batch: RecordBatch| {
            batches.push(batch);
            Ok(())
        };
        let report = loaded.run_on(bench, progress, &mut sink)?;
        Ok((loaded.plan.table(&batches)?, report))
    }

    /// Reads the table, batch by batch: keys and rows in fixed layout wait for the devices.
    pub fn load(mut self, progress: &Progress) -> Result<LoadedPlan<'a>> {
        let begin = Instant::now();
        loop {
            let column = match self.read(progress)? {
                ReadResult::Whole(spills, ready, heaps, columns) => {
                    return Ok(LoadedPlan {
                        plan: self,
                        spills,
                        ready: ready
                            .into_iter()
                            .map(|ready| Mutex::new(Some(Arc::new(ready))))
                            .collect(),
                        heaps,
                        columns,
                        prepare: begin.elapsed(),
                    })
                }
                ReadResult::Nulls(column) => column,
            };
            let (devices, memory) = (self.devices, self.memory);
            let mut source = self.source;
            source.nulls[column] = true;
            self = Plan::of(source, &self.by, self.root, self.design, devices)?;
            self.memory = memory;
        }
    }

    fn read(&self, progress: &Progress) -> Result<ReadResult> {
        let spills = Spills::new(self.memory);
        let (mut ready, mut heaps) = (Vec::new(), Vec::new());
        let by_row_number: Vec<bool> = self.layout.by_row_number().collect();
        let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::new(); by_row_number.len()];
        let mut row = 0;
        let mut partitions = self.partitions.iter().enumerate().peekable();
        let mut open: Option<PartitionWriter> = None;
        for batch in self.source.batches(None)? {
            let mut batch = batch?;
            if !progress.should_continue() {
                return Err(progress.stop_reason(""));
            }
            if let Some(column) = self.layout.unexpected_nulls(batch.columns()) {
                return Ok(ReadResult::Nulls(column));
            }
            if self.source.in_memory().is_none() {
                let columns = pieces.iter_mut().zip(batch.columns()).zip(&by_row_number);
                for ((pieces, column), _) in columns.filter(|(_, by_row_number)| **by_row_number) {
                    // A copy, as a part of a batch holds all of it, other columns too.
                    pieces.push(copied(column)?);
                }
            }
            while batch.num_rows() > 0 {
                let mut filling = match open.take() {
                    Some(filling) => filling,
                    None => match partitions.next() {
                        Some((partition, _)) => PartitionWriter::new(self, partition, &spills),
                        None => break,
                    },
                };
                let left = self.partitions[filling.partition].end - row;
                let here = left.min(batch.num_rows());
                guarded("the keys can't be normalised", || {
                    filling.add(self, &batch.slice(0, here), row)
                })?;
                batch = batch.slice(here, batch.num_rows() - here);
                row += here;
                if here == left {
                    let (partition, heap) = filling.end()?;
                    ready.push(partition);
                    heaps.push(heap);
                } else {
                    open = Some(filling);
                }
            }
            row += batch.num_rows();
        }
        self.source.check_rows(row)?;
        let columns = match self.source.in_memory() {
            Some(batch) => batch.columns().to_vec(),
            None => concat_columns(&self.source, pieces)?,
        };
        Ok(ReadResult::Whole(spills, ready, heaps, columns))
    }

    /// What a run would do: as JSON.
    pub fn explain(&self) -> Value {
        let partition = |n: &usize| {
            let shape = self.shape(*n);
            let pages = self.encoded_keys(*n, shape, &mut self.regions(shape).2);
            let pages = pages.map(|(pages, ..)| {
                json!({"dictionary": pages.dictionary.len(), "encoded": pages.encoded.len()})
            });
            json!({"rows": shape.rows, "sorted": shape.sorted, "pages": pages})
        };
        let device = |queue: &Vec<usize>| queue.iter().map(partition).collect::<Vec<Value>>();
        json!({
            "rows": self.source.rows(), "row_bytes": self.layout.row_bytes,
            "stands": false, "key": self.key.text, "key_bytes": self.key.bytes, "partitions": self.partitions.len(),
            "devices": self.queues.iter().map(device).collect::<Vec<Vec<Value>>>(),
        })
    }
}

/// How the reading of a table ended.
enum ReadResult {
    /// What waits for the devices, values of variable length, and columns that stay.
    Whole(Spills, Vec<PreparedPartition>, Vec<Spill>, Vec<ArrayRef>),
    /// A column has nulls, which was not known.
    Nulls(usize),
}

/// Columns that are in no rows, each in one piece; others are empty.
fn concat_columns(source: &Source, pieces: Vec<Vec<ArrayRef>>) -> Result<Vec<ArrayRef>> {
    let schema = source.schema();
    run_end::check_run_ends(&schema, source.rows())?;
    let columns = schema.fields().iter().zip(pieces);
    let one = |(field, pieces): (&arrow_schema::FieldRef, Vec<ArrayRef>)| {
        if pieces.is_empty() {
            return Ok(new_empty_array(field.data_type()));
        }
        let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
        concat(&pieces).map_err(Error::of_rows)
    };
    columns.map(one).collect()
}

/// A partition that is read.
struct PartitionWriter {
    partition: usize,
    shape: PartitionShape,
    keys: Option<Spill>,
    /// Those that the engine sorts.
    rows: Spill,
    /// Those that stand unsorted_rows them.
    unsorted_rows: Spill,
    heap: Spill,
    sorted: usize,
    digest: u64,
}

impl PartitionWriter {
    fn new(plan: &Plan, partition: usize, spills: &Spills) -> PartitionWriter {
        let shape = plan.shape(partition);
        let (.., mut regions) = plan.regions(shape);
        let paged = plan.encoded_keys(partition, shape, &mut regions).is_some();
        PartitionWriter {
            partition,
            shape,
            keys: (!paged).then(|| spills.empty()),
            rows: spills.empty(),
            unsorted_rows: spills.empty(),
            heap: spills.empty(),
            sorted: 0,
            digest: 0,
        }
    }

    /// Adds rows, whose first one has a number.
    fn add(&mut self, plan: &Plan, batch: &RecordBatch, first: usize) -> Result<()> {
        let (order, sorted) = plan.key.split(batch);
        if let Some(keys) = &mut self.keys {
            keys.append(&plan.key.encode(batch, &order[..sorted])?)?;
        }
        let heap = Some(&mut self.heap);
        let rows = plan.layout.encode(batch.columns(), first, &order, heap)?;
        let row_bytes = self.shape.row_bytes;
        let digest = digest::digest_of_rows(&rows, row_bytes);
        self.digest = self.digest.wrapping_add(digest);
        let (rows, unsorted_rows) = rows.split_at(sorted * row_bytes);
        self.rows.append(rows)?;
        self.unsorted_rows.append(unsorted_rows)?;
        self.sorted += sorted;
        Ok(())
    }

    fn end(mut self) -> Result<(PreparedPartition, Spill)> {
        if self.sorted != self.shape.sorted {
            return Err(Error::new("the table has changed while it was read"));
        }
        self.rows.append_all(&self.unsorted_rows)?;
        let ready = PreparedPartition {
            shape: self.shape,
            keys: self.keys.map(Arc::new),
            rows: Arc::new(self.rows),
            digest: self.digest,
        };
        Ok((ready, self.heap))
    }
}

impl LoadedPlan<'_> {
    /// What a device gets for a partition, and does with it.
    pub(crate) fn job(&self, partition: usize) -> Result<SortJob> {
        let lost = || Error::new(format!("partition {partition} is sorted already"));
        let ready = self.ready[partition].lock().map_err(|_| lost())?.clone();
        let ready = ready.ok_or_else(lost)?;
        let plan = &self.plan;
        let shape = ready.shape;
        let (source, work, mut regions) = plan.regions(shape);
        let mut put = Vec::new();
        let mut decode = None;
        if let Some(keys) = &ready.keys {
            put.push((source.keys.clone(), keys.clone()));
        } else if let Some((pages, dictionary, encoded)) =
            plan.encoded_keys(partition, shape, &mut regions)
        {
            put.push((dictionary.clone(), self.spilled(&pages.dictionary)?));
            put.push((encoded.clone(), self.spilled(&pages.encoded)?));
            decode = Some(DecodeInput {
                dictionary,
                encoded,
                pages: pages.shape,
            });
        }
        put.push((source.table.clone(), ready.rows.clone()));
        Ok(SortJob {
            shape,
            source,
            work,
            put,
            spills: self.spills.clone(),
            decode,
            opcodes: plan.opcodes,
            kind: plan.key.kind,
            digest: Some(ready.digest),
        })
    }

    fn spilled(&self, bytes: &[u8]) -> Result<Arc<Spill>> {
        let mut spill = self.spills.empty();
        spill.append(bytes)?;
        Ok(spill.into())
    }

    /// Sorts on devices of a factory. The sink gets the rows in order, batch by batch.
    pub fn run(
        &self,
        factory: &mut Factory,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<Report> {
        let mut bench = self.plan.bench(factory)?;
        self.run_on(&mut bench, progress, sink)
    }

    pub(crate) fn run_on(
        &self,
        bench: &mut Bench,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<Report> {
        let plan = &self.plan;
        // Through the link and by the engines.
        let each = 2 * plan.key.bytes + 3 * plan.layout.row_bytes;
        progress.expect((plan.source.rows() * each) as u64);
        let work = bench::SortRequest {
            queues: plan.queues.clone(),
            movable: true,
            make: &|partition| self.job(partition),
            done: &|partition| {
                if let Ok(mut ready) = self.ready[partition].lock() {
                    *ready = None;
                }
            },
        };
        let (outcomes, failures) = bench.sort(work, progress)?;
        let mut report = plan.report();
        report.prepare = self.prepare;
        let begin = Instant::now();
        let output = MergeOutput {
            key: &plan.key,
            layout: &plan.layout,
            values: ColumnValues::Heaps(&self.heaps, &self.columns),
            spills: &self.spills,
            schema: plan.source.schema(),
            equal_keys: None,
        };
        guarded("rows that came back can't be read", || {
            output.run(
                plan.queues.len(),
                outcomes,
                failures,
                &mut report,
                progress,
                sink,
            )
        })?;
        report.merge = begin.elapsed();
        report.spilled = self.spills.filed();
        Ok(report)
    }
}
