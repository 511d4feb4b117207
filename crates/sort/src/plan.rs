// SPDX-License-Identifier: Apache-2.0

//! Plans the sort of a table. All requirements are known before a device is built.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{new_empty_array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_select::concat::{concat, concat_batches};
use design::Design;
use device::Factory;
use driver::control::block;
use serde_json::{json, Value};

use crate::digest;
use crate::encoded_keys::{DictionaryColumn, EncodedKeys};
use crate::guard::guarded;
use crate::job::{
    CommandLists, DecodeInput, EngineInput, EngineWorkspace, Opcodes, PartitionShape, SortJob,
};
use crate::key::SortKey;
use crate::merge_output::MergeOutput;
use crate::merge_partitions::Sink;
use crate::powered_devices::{PoweredDevices, SortRequest};
use crate::region::RegionAllocator;
use crate::row_layout::{ColumnValues, RowLayout};
use crate::run_end::{self, copied};
use crate::source::Source;
use crate::spill::{Spill, Spills};
use crate::{Error, OrderBy, Progress, Report, Result, Table};

/// Limit of the prepared data in memory, for all partitions.
const MEMORY_BYTES: u64 = 256 << 20;

/// Most devices of a host.
const MAX_DEVICES: usize = 16;

/// A sort that is possible.
pub struct Plan<'a> {
    source: Source,
    by: Vec<OrderBy>,
    design: &'a Design,
    key: SortKey,
    layout: RowLayout,
    opcodes: Opcodes,
    pages: Option<DictionaryColumn>,
    /// The rows that have a key, if the key is one column and some rows have none.
    valid: Option<NullBuffer>,
    namespace: Range<u64>,
    /// The rows of each partition, in the order of the table.
    partitions: Vec<Range<usize>>,
    /// The partitions of each device.
    queues: Vec<Vec<usize>>,
    devices: usize,
    memory: u64,
}

/// The data of a partition, prepared for a device.
struct PreparedPartition {
    shape: PartitionShape,
    /// `None`: the encoded keys of the file are sent instead.
    keys: Option<Arc<Spill>>,
    rows: Arc<Spill>,
    digest: u64,
}

/// A plan whose table has been read.
pub struct LoadedPlan<'a> {
    plan: Plan<'a>,
    spills: Spills,
    /// By partition, until the partition is sorted.
    ready: Vec<Mutex<Option<Arc<PreparedPartition>>>>,
    /// By partition: values of variable length.
    heaps: Vec<Spill>,
    /// Columns that rows refer to by row number. The other ones are empty.
    columns: Vec<ArrayRef>,
    prepare: Duration,
}

impl Opcodes {
    /// The opcodes of a design's engines.
    pub fn of(design: &Design) -> Result<Opcodes> {
        let engines = design.engines()?;
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
                    "the design {design} has no engine {name} with NVMe commands; the design sort \
                        has"
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

/// Checks the number of devices of a host.
pub fn check_devices(devices: usize) -> Result<usize> {
    match (1..=MAX_DEVICES).contains(&devices) {
        true => Ok(devices),
        false => Err(Error::new(format!(
            "devices = {devices}: allowed are 1 to {MAX_DEVICES}"
        ))),
    }
}

/// The most rows, up to `all`, for which `fits` is true. `fits` has to be monotonic.
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

/// Splits a range into at most `parts` parts of about the same size. Their bounds are multiples of
/// `step` from its start.
pub fn split_evenly(range: &Range<usize>, parts: usize, step: usize) -> Vec<Range<usize>> {
    let steps = range.len().div_ceil(step);
    let bound = |n: usize| (range.start + steps * n / parts * step).min(range.end);
    let parts = (0..parts).map(|n| bound(n)..bound(n + 1));
    parts.filter(|part| !part.is_empty()).collect()
}

impl<'a> Plan<'a> {
    /// Checks all requirements, and assigns the rows to devices. Each device gets a contiguous
    /// range, split into partitions that fit the device one after another.
    pub fn new(
        table: &Table,
        by: &[OrderBy],
        design: &'a Design,
        devices: usize,
    ) -> Result<Plan<'a>> {
        Plan::of(table.into(), by, design, devices)
    }

    /// The same for a table that is read batch by batch.
    pub fn of(
        source: Source,
        by: &[OrderBy],
        design: &'a Design,
        devices: usize,
    ) -> Result<Plan<'a>> {
        let devices = check_devices(devices)?;
        if design.media.file.is_some() && devices > 1 {
            return Err(Error::new(
                "media.file: several devices can't have one file; take a design without it",
            ));
        }
        let opcodes = Opcodes::of(design)?;
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
                "the table is too large: {rows} rows, of which not one fits in a device with its \
                    key and room to sort; its namespace has {} KiB",
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

    /// Sets the limit of the prepared data in memory. The rest is kept in temporary files.
    pub fn with_memory(self, bytes: u64) -> Plan<'a> {
        Plan {
            memory: bytes,
            ..self
        }
    }

    /// True if there is nothing to sort. No device is needed then.
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

    /// The input and workspace of a partition, and the allocator for further regions.
    fn regions(&self, shape: PartitionShape) -> (EngineInput, EngineWorkspace, RegionAllocator) {
        let mut regions = RegionAllocator::new(&self.namespace);
        let source = shape.input(&mut regions);
        (source, shape.workspace(&mut regions), regions)
    }

    /// The encoded keys of a partition, and their regions. `None`: they are not smaller than the
    /// values, or do not fit beside them.
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

    /// The report of a table without rows.
    pub fn empty_report(&self) -> Report {
        self.report()
    }

    /// A table of these batches, with the schema and metadata of the source.
    pub fn table(&self, batches: &[RecordBatch]) -> Result<Table> {
        let batch = concat_batches(&self.source.schema(), batches).map_err(Error::of_rows)?;
        Ok(Table {
            metadata: self.source.metadata.clone(),
            ..Table::from(batch)
        })
    }

    /// The table's source.
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
    pub fn run(self, factory: &Factory, progress: &Progress) -> Result<(Table, Report)> {
        if self.is_empty() {
            return Ok((self.table(&[])?, self.empty_report()));
        }
        let mut powered = self.power_devices(factory)?;
        self.run_on(&mut powered, progress)
    }

    pub(crate) fn power_devices(&self, factory: &Factory) -> Result<PoweredDevices> {
        PoweredDevices::of_memory(factory, self.queues.len())
    }

    pub(crate) fn run_on(
        self,
        powered: &mut PoweredDevices,
        progress: &Progress,
    ) -> Result<(Table, Report)> {
        let loaded = self.load(progress)?;
        let mut batches = Vec::new();
        let mut sink = |batch: RecordBatch| {
            batches.push(batch);
            Ok(())
        };
        let report = loaded.run_on(powered, progress, &mut sink)?;
        Ok((loaded.plan.table(&batches)?, report))
    }

    /// Reads the table batch by batch, and prepares keys and rows for the devices.
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
            self = Plan::of(source, &self.by, self.design, devices)?;
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
                return Err(Error::Interrupted);
            }
            if let Some(column) = self.layout.unexpected_nulls(batch.columns()) {
                return Ok(ReadResult::Nulls(column));
            }
            if self.source.in_memory().is_none() {
                let columns = pieces.iter_mut().zip(batch.columns()).zip(&by_row_number);
                for ((pieces, column), _) in columns.filter(|(_, by_row_number)| **by_row_number) {
                    // A copy: a slice would keep the whole batch in memory, other columns included.
                    pieces.push(copied(column)?);
                }
            }
            while batch.num_rows() > 0 {
                let mut writer = match open.take() {
                    Some(writer) => writer,
                    None => match partitions.next() {
                        Some((partition, _)) => PartitionWriter::new(self, partition, &spills),
                        None => break,
                    },
                };
                let left = self.partitions[writer.partition].end - row;
                let here = left.min(batch.num_rows());
                guarded("the keys can't be normalised", || {
                    writer.add(self, &batch.slice(0, here), row)
                })?;
                batch = batch.slice(here, batch.num_rows() - here);
                row += here;
                if here == left {
                    let (partition, heap) = writer.finish()?;
                    ready.push(partition);
                    heaps.push(heap);
                } else {
                    open = Some(writer);
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

    /// The plan as JSON.
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
            "stands": false, "key": self.key.text, "key_bytes": self.key.bytes,
            "partitions": self.partitions.len(),
            "devices": self.queues.iter().map(device).collect::<Vec<Vec<Value>>>(),
        })
    }
}

/// How the reading of a table ended.
enum ReadResult {
    /// The prepared partitions, values of variable length, and columns that stay on the host.
    Whole(Spills, Vec<PreparedPartition>, Vec<Spill>, Vec<ArrayRef>),
    /// A column unexpectedly has nulls.
    Nulls(usize),
}

/// The side columns, each concatenated. The other ones are empty.
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

/// Prepares a partition while the table is read.
struct PartitionWriter {
    partition: usize,
    shape: PartitionShape,
    keys: Option<Spill>,
    /// Rows that the engine sorts.
    rows: Spill,
    /// Rows that follow them unsorted.
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

    /// Adds rows. `first` is the number of the first one in the table.
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

    fn finish(mut self) -> Result<(PreparedPartition, Spill)> {
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
    /// The job of a device for a partition.
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

    /// Sorts on devices of a factory, and passes the sorted rows to the sink, batch by batch.
    pub fn run(&self, factory: &Factory, progress: &Progress, sink: &mut Sink) -> Result<Report> {
        let mut powered = self.plan.power_devices(factory)?;
        self.run_on(&mut powered, progress, sink)
    }

    pub(crate) fn run_on(
        &self,
        powered: &mut PoweredDevices,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<Report> {
        let plan = &self.plan;
        // Bytes that cross the link, and that the engines process.
        let each = 2 * plan.key.bytes + 3 * plan.layout.row_bytes;
        progress.expect((plan.source.rows() * each) as u64);
        let work = SortRequest {
            queues: plan.queues.clone(),
            movable: true,
            make: &|partition| self.job(partition),
            done: &|partition| {
                if let Ok(mut ready) = self.ready[partition].lock() {
                    *ready = None;
                }
            },
        };
        let (outcomes, failures) = powered.sort(work, progress)?;
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
