//! Tables that stand on devices, and are sorted there.
//!
//! Each device has a contiguous part of a table's rows: key columns apart, the rest by rows, and what has no fixed width as an Arrow stream, which the
//! host reads. Nothing of a table counts before the directory names it, and that is written last.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow_array::{new_empty_array, Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat;
use design::{Design, Identity, Place};
use device::Factory;
use parquet::file::metadata::KeyValue;
use serde_json::{json, Value};
use sim::Media;

use crate::bench::{Bench, Work};
use crate::digest::{self, digest};
use crate::directory::{Bytes, Directory, Entry, KeyColumn, DATA};
use crate::file::Format;
use crate::form::Form;
use crate::gather::{begin_alike, Gather};
use crate::guard::guarded;
use crate::job::{Job, Opcodes, Shape, Source, Stages};
use crate::key::{Compared, Key};
use crate::merge::Arrival;
use crate::plan::{check_devices, cut, most_rows};
use crate::report::{Device, Stage};
use crate::room::Room;
use crate::transfer::{get, put};
use crate::{By, Compression, Error, Progress, Report, Result, Table};

/// Partitions begin at multiples of so many rows: keys and rows of any size are at whole units there.
const STEP: usize = 4096;
/// Most characters of a table's name.
const MOST_NAME: usize = 64;

/// Devices with media files, and the tables on them.
pub struct Store<'a> {
    design: &'a Design,
    root: &'a Path,
    bench: Bench,
    namespace: u64,
    directories: Vec<Directory>,
}

/// A table that stands on devices: its parts in their order, each with its device.
struct Standing {
    parts: Vec<(usize, Entry)>,
    schema: SchemaRef,
    metadata: Vec<KeyValue>,
    form: Form,
    /// Of the whole table; what the rows have is empty.
    columns: Vec<ArrayRef>,
}

/// A part as it goes to a device.
struct Part {
    entry: Entry,
    puts: Vec<(Range<u64>, Vec<u8>)>,
}

fn stream(batch: &RecordBatch) -> Result<Vec<u8>> {
    Table::from(batch.clone()).write(Format::Stream, Compression::Uncompressed)
}

impl<'a> Store<'a> {
    /// Gives devices with these media files power, and reads their directories. Files that are not there are made.
    pub fn open(
        root: &'a Path,
        design: &'a Design,
        factory: &mut Factory,
        media: &[PathBuf],
    ) -> Result<Store<'a>> {
        check_devices(media.len())?;
        let one = |path: &PathBuf| {
            let mut design = design.clone();
            design.media.file = Some(path.clone());
            let identity = Identity::of(&design, Place::Number(0)).map_err(Error::new)?;
            let media = Media::file(path, design.media.bytes.0).map_err(Error::new)?;
            Ok((media, identity))
        };
        let files: Result<Vec<_>> = media.iter().map(one).collect();
        let mut bench = Bench::new(root, design, factory, files?)?;
        let extent = design.nvme.extent(1, design.media.bytes);
        let namespace = extent.end - extent.start;
        if namespace <= DATA {
            return Err(Error::new(format!(
                "the design's namespace has {} KiB, and a directory of tables takes {}",
                namespace >> 10,
                DATA >> 10
            )));
        }
        let progress = Progress::default();
        let starts = bench.each(|_, driver| {
            let mut start = vec![0; DATA as usize];
            get(driver, 0, &mut start, &progress).map(|_| start)
        })?;
        let directories: Result<Vec<Directory>> = starts
            .iter()
            .zip(media)
            .map(|(start, path)| {
                let read = Directory::read(start, namespace);
                read.map_err(|e| Error::new(format!("{}: {e}", path.display())))
            })
            .collect();
        Ok(Store {
            design,
            root,
            bench,
            namespace,
            directories: directories?,
        })
    }

    /// Ends the work: devices are shut down as hosts do.
    pub fn close(self) -> Result<()> {
        for driver in self.bench.drivers {
            driver.shutdown().map_err(Error::new)?;
        }
        Ok(())
    }

    /// The tables: as JSON.
    pub fn list(&self) -> Value {
        let all = self.directories.iter().flat_map(|d| &d.entries);
        let mut seen: Vec<(&str, u64)> = Vec::new();
        let mut tables: Vec<Value> = Vec::new();
        for entry in all {
            let key = (entry.name.as_str(), entry.id);
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let parts = self.found(entry);
            let bytes: u64 = parts
                .iter()
                .map(|(_, e)| e.extent.end - e.extent.start)
                .sum();
            let devices: Vec<usize> = parts.iter().map(|(device, _)| *device).collect();
            let keys: Vec<&str> = entry.keys.iter().map(|key| key.name.as_str()).collect();
            tables.push(json!({
                "name": entry.name, "rows": entry.all, "row_bytes": entry.row_bytes, "keys": keys,
                "devices": devices, "parts": parts.len(), "of_parts": entry.parts, "bytes": bytes,
            }));
        }
        tables.into()
    }

    /// All parts of the table of a part.
    fn found(&self, one: &Entry) -> Vec<(usize, &Entry)> {
        let all = self.directories.iter().enumerate();
        let all = all.flat_map(|(device, d)| d.entries.iter().map(move |e| (device, e)));
        all.filter(|(_, e)| e.name == one.name && e.id == one.id)
            .collect()
    }

    /// The parts of a table, all of them.
    fn parts(&self, name: &str) -> Result<Vec<(usize, Entry)>> {
        let mut all = self.directories.iter().flat_map(|d| &d.entries);
        let Some(one) = all.find(|entry| entry.name == name) else {
            let mut names: Vec<&str> = Vec::new();
            for entry in self.directories.iter().flat_map(|d| &d.entries) {
                if !names.contains(&entry.name.as_str()) {
                    names.push(&entry.name);
                }
            }
            let names = if names.is_empty() {
                "none".into()
            } else {
                names.join(", ")
            };
            return Err(Error::new(format!(
                "no table is called {name:?}: these media files have {names}"
            )));
        };
        let mut parts: Vec<(usize, Entry)> = self
            .found(one)
            .into_iter()
            .map(|(device, entry)| (device, entry.clone()))
            .collect();
        parts.sort_by_key(|(_, entry)| entry.part);
        let mut next = 0;
        let follows = parts.iter().enumerate().all(|(n, (_, entry))| {
            let follows =
                entry.part == n && entry.first == next && entry.row_bytes == one.row_bytes;
            next += entry.rows;
            follows
        });
        if parts.len() != one.parts || !follows || next != one.all {
            return Err(Error::new(format!(
                "table {name:?} has {} parts, of which these media files have {}: name all of them, or drop what is left",
                one.parts,
                parts.len()
            )));
        }
        Ok(parts)
    }

    /// Writes a table to the devices, with these columns as keys to sort by.
    pub fn put(
        &mut self,
        name: &str,
        table: &Table,
        keys: &[String],
        progress: &Progress,
    ) -> Result<Report> {
        let begin = Instant::now();
        if name.is_empty() || name.chars().count() > MOST_NAME || name.chars().any(char::is_control)
        {
            return Err(Error::new(format!(
                "name = {name:?}: allowed are 1 to {MOST_NAME} characters, without control characters"
            )));
        }
        let mut known = self.directories.iter().flat_map(|d| &d.entries);
        if known.any(|entry| entry.name == name) {
            return Err(Error::new(format!(
                "there is a table {name:?} already: drop it first"
            )));
        }
        let parts = guarded("the table can't be taken apart", || {
            self.take_apart(name, table, keys)
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
        let stages = self.bench.each(|device, driver| {
            let mut stages = Stages {
                controller: driver,
                progress,
                done: Vec::new(),
            };
            if let Some(part) = parts.get(device) {
                stages.put(&part.puts)?;
            }
            let done = stages.done;
            driver.flush()?;
            Ok(done)
        })?;
        for (device, part) in parts.into_iter().enumerate() {
            let (rows, keys) = (part.entry.rows, part.entry.keys.len());
            report.key = format!("{keys} key columns");
            self.change(device, |entries| entries.push(part.entry))?;
            report.devices.push(Device {
                rows,
                partitions: 1,
                stages: stages[device].clone(),
                ..Device::default()
            });
        }
        Ok(report)
    }

    /// Forgets a table, or what is left of it.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        let has = |d: &Directory| d.entries.iter().any(|entry| entry.name == name);
        if !self.directories.iter().any(has) {
            return self.parts(name).map(drop);
        }
        for device in 0..self.directories.len() {
            if has(&self.directories[device]) {
                self.change(device, |entries| entries.retain(|e| e.name != name))?;
            }
        }
        Ok(())
    }

    /// Writes a device's directory with other entries.
    fn change(&mut self, device: usize, change: impl FnOnce(&mut Vec<Entry>)) -> Result<()> {
        let mut next = self.directories[device].clone();
        next.number += 1;
        change(&mut next.entries);
        let (at, copy) = next.write()?;
        let (driver, progress) = (&mut self.bench.drivers[device], Progress::default());
        put(driver, at, &copy, &progress)
            .and_then(|_| driver.flush())
            .map_err(|e| Error::new(format!("device {device}: {e}")))?;
        self.directories[device] = next;
        Ok(())
    }

    /// What goes to each device.
    fn take_apart(&self, name: &str, table: &Table, keys: &[String]) -> Result<Vec<Part>> {
        let batch = &table.batch;
        let schema = batch.schema();
        let rows = batch.num_rows();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(format!("{rows} rows: allowed are {}", u32::MAX)));
        }
        let mut chosen: Vec<Key> = Vec::new();
        for name in keys {
            let by = By {
                column: name.clone(),
                descending: false,
                nulls_first: false,
            };
            let mut key = Key::of(&schema, &[by])?;
            if batch.column(key.columns[0]).logical_null_count() > 0 {
                key = key.normalised();
            }
            if chosen.iter().any(|other| other.columns == key.columns) {
                return Err(Error::new(format!("keys: {name:?} is named twice")));
            }
            chosen.push(key);
        }
        let form = Form::of(batch)?;
        let mut bounds = cut(&(0..rows), self.directories.len(), 1);
        if bounds.is_empty() {
            bounds.push(0..0);
        }
        let aparts = write_apart(batch, &form, &bounds)?;
        // Places in columns are as they will be when the host has read these again.
        let columns = read_apart(&schema, &form, &aparts)?;
        let columns: Vec<ArrayRef> = form
            .apart()
            .zip(columns.iter().zip(batch.columns()))
            .map(|(apart, (read, column))| if apart { read.clone() } else { column.clone() })
            .collect();
        let whole = RecordBatch::try_new(schema.clone(), columns).map_err(Error::new)?;
        let schema_bytes = write_schema(table)?;
        let mut parts = Vec::new();
        for (number, (range, apart)) in bounds.iter().zip(aparts).enumerate() {
            let part = whole.slice(range.start, range.len());
            let order: Vec<u32> = (0..range.len() as u32).collect();
            let encoded = form.encode(part.columns(), range.start, &order);
            let mut entry = Entry {
                name: name.into(),
                id: 0,
                part: number,
                parts: bounds.len(),
                first: range.start,
                rows: range.len(),
                all: rows,
                row_bytes: form.row_bytes,
                extent: 0..0,
                table: 0,
                digest: digest::of_rows(&encoded, form.row_bytes),
                keys: Vec::new(),
                schema: Bytes {
                    place: 0..0,
                    digest: digest(&schema_bytes),
                },
                apart: Bytes {
                    place: 0..0,
                    digest: digest(&apart),
                },
            };
            let values: Result<Vec<Vec<u8>>> =
                chosen.iter().map(|key| key.encode(&part, &order)).collect();
            let blocks = [&values?[..], &[encoded, schema_bytes.clone(), apart]].concat();
            let places = self.room(number, &blocks)?;
            entry.extent = places[0].start..places[places.len() - 1].end.next_multiple_of(4096);
            for (key, place) in chosen.iter().zip(&places) {
                entry.keys.push(KeyColumn {
                    name: schema.field(key.columns[0]).name().clone(),
                    column: key.columns[0],
                    at: place.start,
                    bytes: key.bytes,
                    plain: key.compared != Compared::Prefix,
                });
            }
            entry.table = places[chosen.len()].start;
            entry.schema.place = places[chosen.len() + 1].clone();
            entry.apart.place = places[chosen.len() + 2].clone();
            let puts = places.into_iter().zip(blocks).collect();
            parts.push(Part { entry, puts });
        }
        let digests = parts.iter().map(|part| part.entry.digest.to_le_bytes());
        let numbers = self.directories.iter().map(|d| d.number.to_le_bytes());
        let id = digest(&digests.chain(numbers).flatten().collect::<Vec<u8>>());
        parts.iter_mut().for_each(|part| part.entry.id = id);
        Ok(parts)
    }

    /// Places for a part on a device.
    fn room(&self, device: usize, blocks: &[Vec<u8>]) -> Result<Vec<Range<u64>>> {
        let free = self.directories[device].free(self.namespace);
        for gap in &free {
            let mut room = Room::new(gap);
            let places = blocks.iter().map(|b| room.take(b.len() as u64)).collect();
            if room.fits() {
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
            "device {device}: the table's part takes {} MiB, and the largest free part of the namespace has {} MiB; more devices help, or dropping tables",
            mib(needed),
            largest >> 20
        )))
    }

    /// A table with all that the host needs of it.
    fn standing(&mut self, name: &str) -> Result<Standing> {
        let parts = self.parts(name)?;
        let progress = Progress::default();
        let read = self.bench.each(|device, driver| {
            let Some((_, entry)) = parts.iter().find(|part| part.0 == device) else {
                return Ok((Vec::new(), Vec::new()));
            };
            let mut bytes = |bytes: &Bytes| {
                let mut out = vec![0; (bytes.place.end - bytes.place.start) as usize];
                get(driver, bytes.place.start, &mut out, &progress)?;
                match digest(&out) == bytes.digest {
                    true => Ok(out),
                    false => Err(driver::Error::Invalid(format!(
                        "table {name:?} is damaged: its columns or its schema have changed"
                    ))),
                }
            };
            Ok((bytes(&entry.schema)?, bytes(&entry.apart)?))
        })?;
        let (schema, nulls, metadata) = read_schema(&read[parts[0].0].0)?;
        let form = Form::new(&schema, &nulls)?;
        if form.row_bytes != parts[0].1.row_bytes {
            return Err(Error::new(format!(
                "table {name:?} is damaged: its rows are of another size"
            )));
        }
        let aparts: Vec<Vec<u8>> = parts.iter().map(|part| read[part.0].1.clone()).collect();
        let columns = read_apart(&schema, &form, &aparts)?;
        Ok(Standing {
            parts,
            schema,
            metadata,
            form,
            columns,
        })
    }

    /// A table without its rows: schema and metadata.
    pub fn schema(&mut self, name: &str) -> Result<Table> {
        let standing = self.standing(name)?;
        let nothing = RecordBatch::new_empty(standing.schema.clone());
        Ok(standing.table(nothing))
    }

    /// Reads a table back.
    pub fn get(&mut self, name: &str, progress: &Progress) -> Result<(Table, Report)> {
        let standing = self.standing(name)?;
        let Standing { parts, form, .. } = &standing;
        let of = |device: usize| parts.iter().find(|part| part.0 == device);
        let total: usize = parts.iter().map(|(_, e)| e.rows * e.row_bytes).sum();
        progress.expect(total as u64);
        let mut read = self.bench.each(|device, driver| {
            let Some((_, entry)) = of(device) else {
                return Ok(Default::default());
            };
            let mut stages = Stages {
                controller: driver,
                progress,
                done: Vec::new(),
            };
            let mut rows = vec![0; entry.rows * entry.row_bytes];
            stages.get([(entry.table, &mut rows[..])])?;
            check_rows(name, entry, digest::of_rows(&rows, entry.row_bytes))?;
            Ok((rows, stages.done))
        })?;
        let begin = Instant::now();
        let mut report = Report {
            rows: parts[0].1.all,
            row_bytes: form.row_bytes,
            partitions: parts.len(),
            ..Report::default()
        };
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for (device, entry) in parts {
            let (part, stages): (Vec<u8>, Vec<Stage>) = std::mem::take(&mut read[*device]);
            rows.push(part);
            report.devices.push(Device {
                rows: entry.rows,
                partitions: 1,
                stages,
                ..Device::default()
            });
        }
        let order: Vec<(u32, u32)> = parts
            .iter()
            .enumerate()
            .flat_map(|(n, (_, entry))| (0..entry.rows as u32).map(move |row| (n as u32, row)))
            .collect();
        let batch = guarded("rows that came back can't be read", || {
            let all: Vec<usize> = (0..standing.columns.len()).collect();
            let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            let columns = form.decode(&standing.columns, &all, &rows, &order)?;
            RecordBatch::try_new(standing.schema.clone(), columns).map_err(Error::new)
        })?;
        report.merge = begin.elapsed();
        Ok((standing.table(batch), report))
    }

    /// Sorts a table where it stands. It stays as it is.
    pub fn sort(&mut self, name: &str, by: &[By], progress: &Progress) -> Result<(Table, Report)> {
        let opcodes = Opcodes::of(self.design, self.root)?;
        let standing = self.standing(name)?;
        let Standing { parts, form, .. } = &standing;
        let mut key = Key::of(&standing.schema, by)?;
        let stored = |entry: &Entry| -> Result<KeyColumn> {
            let stored = entry.keys.iter().find(|k| k.column == key.columns[0]);
            stored.cloned().ok_or_else(|| {
                let keys: Vec<&str> = entry.keys.iter().map(|key| key.name.as_str()).collect();
                let keys = if keys.is_empty() { "no keys".into() } else { keys.join(", ") };
                Error::new(format!(
                    "table {name:?} was put with {keys}: it can be sorted by these first, and not by {:?}; put it again with that key",
                    by[0].column
                ))
            })
        };
        let keys: Result<Vec<KeyColumn>> = parts.iter().map(|(_, entry)| stored(entry)).collect();
        let keys = keys?;
        let first = Key::of(&standing.schema, &by[..1])?;
        let first = if keys[0].plain {
            first
        } else {
            first.normalised()
        };
        if keys
            .iter()
            .any(|k| (k.bytes, k.plain) != (first.bytes, keys[0].plain))
        {
            return Err(Error::new(format!(
                "table {name:?} is damaged: its keys differ"
            )));
        }
        let whole = first.compared != Compared::Prefix && by.len() == 1;
        key.bytes = first.bytes;
        key.text = first.text.clone();
        // (number of the part, its rows)
        let mut partitions: Vec<(usize, Range<usize>)> = Vec::new();
        let mut queues = vec![Vec::new(); self.directories.len()];
        let mut gaps = Vec::new();
        let shape = |rows: usize| Shape {
            rows,
            sorted: rows,
            row_bytes: form.row_bytes,
            key_bytes: first.bytes,
        };
        for (number, (device, entry)) in parts.iter().enumerate() {
            let free = self.directories[*device].free(self.namespace);
            let gap = free.into_iter().max_by_key(|gap| gap.end - gap.start);
            let gap = gap.unwrap_or(0..0);
            let most = most_rows(entry.rows, |rows| {
                let mut room = Room::new(&gap);
                shape(rows).work(&mut room);
                room.fits()
            });
            let pieces = match most {
                most if most >= entry.rows => usize::from(entry.rows > 0),
                most if most >= STEP => entry.rows.div_ceil(STEP).div_ceil(most / STEP),
                _ => {
                    return Err(Error::new(format!(
                        "device {device}: no room to sort: the largest free part of its namespace has {} KiB; drop a table",
                        (gap.end - gap.start) >> 10
                    )))
                }
            };
            for piece in cut(&(0..entry.rows), pieces.max(1), STEP) {
                queues[*device].push(partitions.len());
                partitions.push((number, piece));
            }
            gaps.push(gap);
        }
        let all = parts[0].1.all;
        progress.expect((all * form.row_bytes) as u64);
        let make = |partition: usize| {
            let (number, rows) = &partitions[partition];
            let (entry, stored) = (&parts[*number].1, &keys[*number]);
            let shape = shape(rows.len());
            let place = |at: u64, each: usize| {
                at + (rows.start * each) as u64..at + (rows.end * each) as u64
            };
            Ok(Job {
                shape,
                source: Source {
                    keys: place(stored.at, stored.bytes),
                    table: place(entry.table, entry.row_bytes),
                },
                work: shape.work(&mut Room::new(&gaps[*number])),
                put: Vec::new(),
                decode: None,
                opcodes,
                kind: first.kind,
                digest: None,
            })
        };
        let rows = |n: &usize| partitions[*n].1.len();
        let planned = |n: &usize| json!({"rows": rows(n), "sorted": rows(n), "pages": null});
        let planned = |queue: &Vec<usize>| queue.iter().map(planned).collect::<Vec<Value>>();
        let plan = json!({
            "rows": all, "row_bytes": form.row_bytes, "stands": true, "key": key.text, "key_bytes": key.bytes,
            "partitions": partitions.len(), "devices": queues.iter().map(planned).collect::<Vec<_>>(),
        });
        let work = Work {
            queues,
            movable: false,
            make: &make,
        };
        let (outcomes, failures) = self.bench.sort(work, progress)?;
        let mut sums = vec![0u64; parts.len()];
        for outcome in &outcomes {
            let sum = &mut sums[partitions[outcome.partition].0];
            *sum = sum.wrapping_add(outcome.done.digest);
        }
        for ((_, entry), sum) in parts.iter().zip(sums) {
            check_rows(name, entry, sum).map_err(Error::new)?;
        }
        let begin = Instant::now();
        let mut report = Report {
            rows: all,
            row_bytes: form.row_bytes,
            key: key.text.clone(),
            partitions: partitions.len(),
            plan,
            ..Report::default()
        };
        let alike = |column: &ArrayRef| {
            let rows = first.rows(std::slice::from_ref(column))?;
            let plain = first.compared != Compared::Prefix;
            let alike = move |a, b| match plain {
                true => rows.row(a) == rows.row(b),
                false => begin_alike(&rows, a, b),
            };
            Ok(Box::new(alike) as Box<dyn Fn(usize, usize) -> bool>)
        };
        let descending = by[0].descending;
        let gather = Gather {
            key: &key,
            form,
            columns: &standing.columns,
            schema: standing.schema.clone(),
            alike: if whole { None } else { Some(&alike) },
            arrival: &|_, nulls, rows| Arrival {
                nulls,
                nulls_before: descending,
                sorted: rows,
            },
        };
        let batch = guarded("rows that came back can't be read", || {
            gather.run(self.directories.len(), outcomes, failures, &mut report)
        })?;
        report.merge = begin.elapsed();
        Ok((standing.table(batch), report))
    }
}

impl Standing {
    fn table(&self, batch: RecordBatch) -> Table {
        Table {
            metadata: self.metadata.clone(),
            ..Table::from(batch)
        }
    }
}

fn check_rows(name: &str, entry: &Entry, found: u64) -> driver::Result<()> {
    match found == entry.digest {
        true => Ok(()),
        false => Err(driver::Error::Invalid(format!(
            "table {name:?} is damaged: the rows of its part {} have changed",
            entry.part
        ))),
    }
}

/// The columns that are not in the rows, of each part.
fn write_apart(batch: &RecordBatch, form: &Form, bounds: &[Range<usize>]) -> Result<Vec<Vec<u8>>> {
    let which: Vec<usize> = (0..batch.num_columns())
        .zip(form.apart())
        .filter_map(|(n, apart)| apart.then_some(n))
        .collect();
    if which.is_empty() {
        return Ok(vec![Vec::new(); bounds.len()]);
    }
    let columns = batch.project(&which).map_err(Error::new)?;
    let parts = bounds
        .iter()
        .map(|rows| columns.slice(rows.start, rows.len()));
    parts.map(|part| stream(&part)).collect()
}

/// Reads them again, as the columns of the whole table; those in the rows are empty.
fn read_apart(schema: &Schema, form: &Form, aparts: &[Vec<u8>]) -> Result<Vec<ArrayRef>> {
    let parts: Result<Vec<RecordBatch>> = aparts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| Ok(Table::read(Format::Stream, part.clone())?.batch))
        .collect();
    let parts = parts?;
    let mut next = 0;
    let mut columns = Vec::new();
    for (field, apart) in schema.fields().iter().zip(form.apart()) {
        if !apart {
            columns.push(new_empty_array(field.data_type()));
            continue;
        }
        let pieces: Vec<&dyn Array> = parts
            .iter()
            .filter_map(|part| part.columns().get(next).map(AsRef::as_ref))
            .collect();
        if pieces.is_empty() || pieces.iter().any(|p| p.data_type() != field.data_type()) {
            return Err(Error::new(
                "columns that stand apart are not those of the schema",
            ));
        }
        columns.push(concat(&pieces).map_err(Error::new)?);
        next += 1;
    }
    Ok(columns)
}

/// The schema, which columns have nulls, and what a Parquet file said beside it.
fn write_schema(table: &Table) -> Result<Vec<u8>> {
    let nulls: Vec<bool> = table
        .batch
        .columns()
        .iter()
        .map(|c| c.null_count() > 0)
        .collect();
    let metadata: Vec<Value> = table
        .metadata
        .iter()
        .map(|pair| json!([pair.key, pair.value]))
        .collect();
    let beside = json!({"nulls": nulls, "metadata": metadata}).to_string();
    let mut out = (beside.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(beside.as_bytes());
    out.extend(stream(&RecordBatch::new_empty(table.schema()))?);
    Ok(out)
}

fn read_schema(bytes: &[u8]) -> Result<(SchemaRef, Vec<bool>, Vec<KeyValue>)> {
    let damaged = || Error::new("its schema is damaged");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    let beside = rest.get(..length).ok_or_else(damaged)?;
    let schema = Table::read(Format::Stream, rest[length..].to_vec())?.schema();
    let beside: Value = serde_json::from_slice(beside).map_err(|_| damaged())?;
    let nulls = beside["nulls"].as_array().into_iter().flatten();
    let nulls: Vec<bool> = nulls.filter_map(Value::as_bool).collect();
    if nulls.len() != schema.fields().len() {
        return Err(damaged());
    }
    let pairs = beside["metadata"].as_array().into_iter().flatten();
    let metadata = pairs.map(|pair| KeyValue {
        key: pair[0].as_str().unwrap_or_default().into(),
        value: pair[1].as_str().map(String::from),
    });
    Ok((schema, nulls, metadata.collect()))
}
