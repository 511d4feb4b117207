// SPDX-License-Identifier: Apache-2.0

//! Stores tables on devices, and sorts them there.
//!
//! Each device stores a contiguous part of a table's rows: key columns separately, the remaining
//! columns by rows, and side columns as an Arrow stream for the host. A table exists once the
//! directory names it, and the directory is written last.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use arrow_array::{Array, ArrayRef, RecordBatch};
use design::{Design, DeviceInstance, Identity};
use device::Factory;
use serde_json::{json, Value};
use sim::Media;
use testbed::Testbed;

use crate::digest::{self, digest};
use crate::directory::{Directory, KeyColumn, StoredBytes, TablePart, COPY_BYTES, DATA_START};
use crate::guard::guarded;
use crate::job::{Opcodes, StageRunner};
use crate::key::{EngineKey, SortKey};
use crate::merge_partitions::{BatchWriter, Sink};
use crate::plan::{check_devices, split_evenly};
use crate::powered_devices::{PoweredDevices, SortRequest};
use crate::region::RegionAllocator;
use crate::report::DeviceReport;
use crate::resident::{check_rows, ResidentSort, ResidentTable};
use crate::row_layout::{ColumnValues, RowLayout};
use crate::rows::SpilledRows;
use crate::sampler::ChannelSampler;
use crate::side_columns::{read_schema, read_side_columns, write_schema, write_side_columns};
use crate::spill::Spills;
use crate::table_parts;
use crate::transfer::{get_all, or_stop_all, put, TransferSource};
use crate::{Error, OrderBy, Progress, Report, Result, Table};

/// Most characters of a table's name.
const MAX_NAME_CHARS: usize = 64;
/// Limit of the rows in memory.
const MEMORY_BYTES: u64 = 256 << 20;

/// Devices with media files, and the tables on them.
pub struct Store<'a> {
    design: &'a Design,
    pub(crate) powered: PoweredDevices,
    namespace: u64,
    media: Vec<PathBuf>,
    directories: Vec<Directory>,
}

/// A part that is about to be written to a device.
struct PendingPart {
    entry: TablePart,
    puts: Vec<(Range<u64>, Vec<u8>)>,
}

impl<'a> Store<'a> {
    /// Powers devices with these media files, and reads their directories. Missing files are
    /// created.
    pub fn open(factory: &'a Factory, media: &[PathBuf]) -> Result<Store<'a>> {
        check_devices(media.len())?;
        let design = factory.design();
        let identity = |path: &PathBuf| {
            let mut design = design.clone();
            design.media.file = Some(path.clone());
            Identity::of(&design, DeviceInstance::Number(0)).map_err(Error::from)
        };
        let open = |path: &PathBuf| Media::file(path, design.media.bytes.0).map_err(Error::from);
        let testbed = Testbed::of(factory)
            .media(media.iter().map(open).collect::<Result<_>>()?)
            .identities(media.iter().map(identity).collect::<Result<_>>()?);
        let mut powered = PoweredDevices::new(testbed, design)?;
        let extent = design.nvme.extent(1, design.media.bytes);
        let namespace = extent.end - extent.start;
        if namespace <= DATA_START {
            return Err(Error::new(format!(
                "the design's namespace has {} KiB, and a directory of tables takes {}",
                namespace >> 10,
                DATA_START >> 10
            )));
        }
        let progress = Progress::default();
        let starts = powered.on_each_device(|_, driver| {
            get_all(
                driver,
                &(0..DATA_START),
                &progress,
                &mut ChannelSampler::default(),
            )
        })?;
        let directories: Result<Vec<Directory>> = starts
            .iter()
            .zip(media)
            .map(|(start, path)| {
                let read = Directory::read(start, namespace);
                read.map_err(|e| e.of(path.display().to_string()))
            })
            .collect();
        Ok(Store {
            design,
            powered,
            namespace,
            media: media.to_vec(),
            directories: directories?,
        })
    }

    /// Shuts the devices down in an orderly way.
    pub fn close(self) -> Result<()> {
        for driver in self.powered.drivers {
            driver.shutdown()?;
        }
        Ok(())
    }

    /// The tables by name, as JSON.
    pub fn list(&self) -> Value {
        let table = |found: &table_parts::TableParts| {
            let (one, parts) = (found.first_part(), &found.parts);
            let extents = parts.iter().map(|(_, e)| e.extent.end - e.extent.start);
            let devices: Vec<usize> = parts.iter().map(|(device, _)| *device).collect();
            let keys: Vec<&str> = one.keys.iter().map(|key| key.name.as_str()).collect();
            json!({
                "name": one.name, "id": found.id(), "rows": one.all, "row_bytes": one.row_bytes,
                "keys": keys,
                "devices": devices, "parts": parts.len(), "of_parts": one.parts,
                "bytes": extents.sum::<u64>(),
            })
        };
        table_parts::all_tables(&self.directories)
            .iter()
            .map(table)
            .collect()
    }

    /// All parts of the table with this name or id.
    fn parts(&self, name: &str) -> Result<Vec<(usize, TablePart)>> {
        let found = table_parts::find_table(&self.directories, &self.media, name)?;
        found.check_whole(&self.media)?;
        let parts = found.parts.into_iter();
        Ok(parts
            .map(|(device, entry)| (device, entry.clone()))
            .collect())
    }

    /// Writes a table to the devices. `keys` are the columns that it can be sorted by.
    pub fn put(
        &mut self,
        name: &str,
        table: &Table,
        keys: &[String],
        progress: &Progress,
    ) -> Result<Report> {
        let begin = Instant::now();
        if name.is_empty()
            || name.chars().count() > MAX_NAME_CHARS
            || name.chars().any(char::is_control)
        {
            return Err(Error::new(format!(
                "name = {name:?}: allowed are 1 to {MAX_NAME_CHARS} characters, without control \
                    characters"
            )));
        }
        if table.batch.num_columns() == 0 {
            return Err(Error::new(format!(
                "table {name:?} has no columns: one or more are needed, a key among them"
            )));
        }
        let known = table_parts::all_tables(&self.directories);
        if let Some(known) = known.iter().find(|found| found.name() == name) {
            let known = known.describe(&self.media);
            return Err(Error::new(format!(
                "there is a table {name:?} already, {known}: drop it first"
            )));
        }
        let parts = guarded("the table can't be taken apart", || {
            self.split_table(name, table, keys)
        })?;
        let rows = table.batch.num_rows();
        let mut report = Report {
            rows,
            row_bytes: parts.first().map_or(0, |part| part.entry.row_bytes),
            partitions: parts.len(),
            prepare: begin.elapsed(),
            ..Report::default()
        };
        let all = parts.iter().flat_map(|part| &part.puts);
        progress.expect(all.map(|(_, bytes)| bytes.len() as u64).sum());
        let stages = self.powered.on_each_device(|device, driver| {
            let mut stages = StageRunner::new(driver, progress)?;
            if let Some(part) = parts.get(device) {
                let puts = part.puts.iter();
                stages.put(puts.map(|(place, bytes)| (place, bytes as &dyn TransferSource)))?;
            }
            let done = stages.done;
            driver.flush()?;
            Ok(done)
        })?;
        let mut next = self.directories.clone();
        for (directory, part) in next.iter_mut().zip(&parts) {
            directory.entries.push(part.entry.clone());
        }
        self.write_directories(next)?;
        for (device, part) in parts.into_iter().enumerate() {
            let (rows, keys) = (part.entry.rows, part.entry.keys.len());
            report.key = format!("{keys} key columns");
            report.devices.push(DeviceReport {
                rows,
                partitions: 1,
                stages: stages[device].clone(),
                ..DeviceReport::default()
            });
        }
        Ok(report)
    }

    /// Removes the table with this name or id, or its remaining parts. Other tables of the name are
    /// not changed.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        let found = table_parts::find_table(&self.directories, &self.media, name)?;
        found.check_once(&self.media)?;
        let (name, id) = (found.name().to_owned(), found.first_part().id);
        let mut next = self.directories.clone();
        for directory in &mut next {
            let other = |entry: &TablePart| (&entry.name, entry.id) != (&name, id);
            directory.entries.retain(other);
        }
        self.write_directories(next)
    }

    /// Writes the directories that have changed.
    fn write_directories(&mut self, mut next: Vec<Directory>) -> Result<()> {
        let mut copies = Vec::new();
        for (directory, before) in next.iter_mut().zip(&self.directories) {
            let changed = directory.entries != before.entries;
            directory.number += u64::from(changed);
            copies.push(changed.then(|| directory.write()).transpose()?);
        }
        let progress = Progress::default();
        self.powered.on_each_device(|device, driver| {
            if let Some((at, copy)) = &copies[device] {
                // First the copy that is not in use, then the other one. So damage of one copy at a
                // later time is tolerated.
                for at in [*at, COPY_BYTES - at] {
                    put(driver, at, copy, &progress, &mut ChannelSampler::default())?;
                    driver.flush()?;
                }
            }
            Ok(())
        })?;
        self.directories = next;
        Ok(())
    }

    /// Splits a table into the parts of the devices.
    fn split_table(&self, name: &str, table: &Table, keys: &[String]) -> Result<Vec<PendingPart>> {
        let batch = &table.batch;
        let schema = batch.schema();
        let rows = batch.num_rows();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(format!("{rows} rows: allowed are {}", u32::MAX)));
        }
        let mut chosen: Vec<SortKey> = Vec::new();
        for name in keys {
            let by = OrderBy {
                column: name.clone(),
                descending: false,
                nulls_first: false,
            };
            let mut key = SortKey::of(&schema, &[by])?;
            if batch.column(key.columns[0]).logical_null_count() > 0 {
                key = key.normalised();
            }
            if chosen.iter().any(|other| other.columns == key.columns) {
                return Err(Error::new(format!("keys: {name:?} is named twice")));
            }
            chosen.push(key);
        }
        let layout = RowLayout::of(batch)?;
        let mut bounds = split_evenly(&(0..rows), self.directories.len(), 1);
        if bounds.is_empty() {
            bounds.push(0..0);
        }
        let streams = write_side_columns(batch, &layout, &bounds)?;
        // Offsets in columns are those that the host finds when it reads the side columns.
        let columns = read_side_columns(&schema, &layout, &streams)?;
        let columns: Vec<ArrayRef> = layout
            .side_columns()
            .zip(columns.iter().zip(batch.columns()))
            .map(|(is_side, (read, column))| {
                if is_side {
                    read.clone()
                } else {
                    column.clone()
                }
            })
            .collect();
        let whole = RecordBatch::try_new(schema.clone(), columns)?;
        let schema_bytes = write_schema(table)?;
        let (mut parts, mut contents) = (Vec::new(), Vec::new());
        for (number, (range, side_columns)) in bounds.iter().zip(streams).enumerate() {
            let part = whole.slice(range.start, range.len());
            let order: Vec<u32> = (0..range.len() as u32).collect();
            let encoded = layout.encode(part.columns(), range.start, &order, None)?;
            let mut entry = TablePart {
                name: name.into(),
                id: 0,
                part: number,
                parts: bounds.len(),
                first: range.start,
                rows: range.len(),
                all: rows,
                row_bytes: layout.row_bytes,
                extent: 0..0,
                table: 0,
                digest: digest::digest_of_rows(&encoded, layout.row_bytes),
                keys: Vec::new(),
                schema: StoredBytes {
                    place: 0..0,
                    digest: digest(&schema_bytes),
                },
                side_columns: StoredBytes {
                    place: 0..0,
                    digest: digest(&side_columns),
                },
            };
            let values: Result<Vec<Vec<u8>>> =
                chosen.iter().map(|key| key.encode(&part, &order)).collect();
            let blocks = [&values?[..], &[encoded, schema_bytes.clone(), side_columns]].concat();
            let places = self.allocate(number, &blocks)?;
            contents.extend(blocks.iter().flat_map(|block| digest(block).to_le_bytes()));
            entry.extent = places[0].start..places[places.len() - 1].end.next_multiple_of(4096);
            for (key, place) in chosen.iter().zip(&places) {
                entry.keys.push(KeyColumn {
                    name: schema.field(key.columns[0]).name().clone(),
                    column: key.columns[0],
                    at: place.start,
                    bytes: key.bytes,
                    plain: key.compared != EngineKey::Prefix,
                });
            }
            entry.table = places[chosen.len()].start;
            entry.schema.place = places[chosen.len() + 1].clone();
            entry.side_columns.place = places[chosen.len() + 2].clone();
            let puts = places.into_iter().zip(blocks).collect();
            parts.push(PendingPart { entry, puts });
        }
        // The id covers the content of the parts and their location. So parts of another table
        // never match, even if its rows are the same.
        contents.extend_from_slice(name.as_bytes());
        for path in &self.media {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            contents.extend_from_slice(whole.as_os_str().as_encoded_bytes());
        }
        contents.extend(self.directories.iter().flat_map(|d| d.number.to_le_bytes()));
        let id = digest(&contents);
        parts.iter_mut().for_each(|part| part.entry.id = id);
        Ok(parts)
    }

    /// Allocates the regions of a part on a device.
    fn allocate(&self, device: usize, blocks: &[Vec<u8>]) -> Result<Vec<Range<u64>>> {
        let free = self.directories[device].free(self.namespace);
        for gap in &free {
            let mut regions = RegionAllocator::new(gap);
            let places = blocks
                .iter()
                .map(|b| regions.allocate(b.len() as u64))
                .collect();
            if regions.fits() {
                return Ok(places);
            }
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let needed = blocks.iter().map(|b| b.len() as u64).sum();
        let largest = free
            .iter()
            .map(|gap| gap.end - gap.start)
            .max()
            .unwrap_or(0);
        Err(Error::new(format!(
            "device {device}: the table's part takes {} MiB, and the largest free part of the \
                namespace has {} MiB; more devices help, or dropping tables",
            mib(needed),
            largest >> 20
        )))
    }

    /// A table with everything that the host needs of it.
    pub fn resident(&mut self, name: &str) -> Result<ResidentTable> {
        let parts = self.parts(name)?;
        let progress = Progress::default();
        let read = self.powered.on_each_device(|device, driver| {
            let Some((_, entry)) = parts.iter().find(|part| part.0 == device) else {
                return Ok((Vec::new(), Vec::new()));
            };
            let mut bytes = |bytes: &StoredBytes| {
                let sampler = &mut ChannelSampler::default();
                let out = get_all(driver, &bytes.place, &progress, sampler)?;
                match digest(&out) == bytes.digest {
                    true => Ok(out),
                    false => Err(driver::Error::Invalid(format!(
                        "table {name:?} is damaged: its columns or its schema have changed"
                    ))),
                }
            };
            Ok((bytes(&entry.schema)?, bytes(&entry.side_columns)?))
        })?;
        let (schema, nulls, metadata) = read_schema(&read[parts[0].0].0)?;
        let layout = RowLayout::new(&schema, &nulls)?;
        if layout.row_bytes != parts[0].1.row_bytes {
            return Err(Error::new(format!(
                "table {name:?} is damaged: its rows are of another size"
            )));
        }
        let streams: Vec<Vec<u8>> = parts.iter().map(|part| read[part.0].1.clone()).collect();
        let columns = read_side_columns(&schema, &layout, &streams)?;
        Ok(ResidentTable {
            name: parts[0].1.name.clone(),
            parts,
            schema,
            metadata,
            layout,
            columns,
        })
    }

    /// A table without its rows: schema and metadata.
    pub fn schema(&mut self, name: &str) -> Result<Table> {
        self.resident(name)?.table(&[])
    }

    /// Reads a table back.
    pub fn get(&mut self, name: &str, progress: &Progress) -> Result<(Table, Report)> {
        self.collected(name, |store, resident, sink| {
            store.get_to(resident, progress, sink)
        })
    }

    fn collected(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self, &ResidentTable, &mut Sink) -> Result<Report>,
    ) -> Result<(Table, Report)> {
        let resident = self.resident(name)?;
        let mut batches = Vec::new();
        let report = read(self, &resident, &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok((resident.table(&batches)?, report))
    }

    /// Reads a table back, batch by batch.
    pub fn get_to(
        &mut self,
        resident: &ResidentTable,
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<Report> {
        let ResidentTable { parts, layout, .. } = resident;
        let of = |device: usize| parts.iter().find(|part| part.0 == device);
        let total: usize = parts.iter().map(|(_, e)| e.rows * e.row_bytes).sum();
        progress.expect(total as u64);
        let spills = Spills::new(MEMORY_BYTES);
        let read = self.powered.on_each_device(|device, driver| {
            let Some((_, entry)) = of(device) else {
                return Ok(None);
            };
            let mut stages = StageRunner::new(driver, progress)?;
            let bytes = (entry.rows * entry.row_bytes) as u64;
            let mut rows = or_stop_all(spills.zeros(bytes), progress)?;
            stages.get(&[(entry.table, 0..bytes)], &mut rows)?;
            let rows = SpilledRows::new(rows, entry.row_bytes);
            check_rows(entry, or_stop_all(rows.digest(), progress)?)?;
            Ok(Some((rows, stages.done)))
        });
        let (mut read, begin) = (read?, Instant::now());
        let mut report = Report {
            rows: parts[0].1.all,
            row_bytes: layout.row_bytes,
            partitions: parts.len(),
            spilled: spills.filed(),
            ..Report::default()
        };
        guarded("rows that came back can't be read", || {
            let values = ColumnValues::Columns(&resident.columns);
            let mut out = BatchWriter::new(layout, values, &resident.schema, progress, sink);
            for (device, entry) in parts {
                let Some((rows, stages)) = read[*device].take() else {
                    continue;
                };
                out.add_range(0, &rows, 0..entry.rows)?;
                report.devices.push(DeviceReport {
                    rows: entry.rows,
                    partitions: 1,
                    stages,
                    ..DeviceReport::default()
                });
            }
            Ok(())
        })?;
        report.merge = begin.elapsed();
        Ok(report)
    }

    /// The plan of a sort as JSON.
    pub fn explain(&mut self, name: &str, by: &[OrderBy]) -> Result<Value> {
        let resident = self.resident(name)?;
        Ok(self.plan_sort(&resident, by)?.plan())
    }

    fn plan_sort<'s>(
        &self,
        resident: &'s ResidentTable,
        by: &[OrderBy],
    ) -> Result<ResidentSort<'s>> {
        let opcodes = Opcodes::of(self.design)?;
        let largest = |directory: &Directory| {
            let free = directory.free(self.namespace).into_iter();
            free.max_by_key(|gap| gap.end - gap.start).unwrap_or(0..0)
        };
        let free: Vec<Range<u64>> = self.directories.iter().map(largest).collect();
        ResidentSort::new(resident, by, &free, opcodes)
    }

    /// Sorts a resident table. The table itself does not change.
    pub fn sort(
        &mut self,
        name: &str,
        by: &[OrderBy],
        progress: &Progress,
    ) -> Result<(Table, Report)> {
        self.collected(name, |store, resident, sink| {
            store.sort_to(resident, by, progress, sink)
        })
    }

    /// The same, batch by batch.
    pub fn sort_to(
        &mut self,
        resident: &ResidentTable,
        by: &[OrderBy],
        progress: &Progress,
        sink: &mut Sink,
    ) -> Result<Report> {
        let sort = self.plan_sort(resident, by)?;
        progress.expect(sort.bytes());
        let spills = Spills::new(MEMORY_BYTES);
        let work = SortRequest {
            queues: sort.queues.clone(),
            movable: false,
            make: &|partition| Ok(sort.job(partition, &spills)),
            done: &|_| {},
        };
        let (outcomes, failures) = self.powered.sort(work, progress)?;
        sort.check(&outcomes)?;
        let begin = Instant::now();
        let mut report = sort.report();
        guarded("rows that came back can't be read", || {
            sort.merge(outcomes, failures, &spills, &mut report, progress, sink)
        })?;
        report.merge = begin.elapsed();
        report.spilled = spills.filed();
        Ok(report)
    }
}
