//! A sort: what it needs is known before any device is built.

use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatch;
use design::Design;
use device::Factory;
use driver::control::block;

use crate::bench::{Bench, Outcome};
use crate::form::Form;
use crate::guard::guarded;
use crate::job::{Job, Keys, Opcodes, Shape, Vacant};
use crate::key::{Compared, Key};
use crate::merge::{merge, order, Run};
use crate::pages::Column;
use crate::report::Device;
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
    jobs: Vec<Job>,
    report: Report,
}

/// Opcodes of the commands that a design's engines have.
fn opcodes(design: &Design, root: &Path) -> Result<Opcodes> {
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
    Ok(Opcodes {
        sort: needed(block::SORTER, "sorter")?,
        shuffle: needed(block::ROW_SHUFFLE, "row_shuffle")?,
        decode: first(block::DICT_DECODE),
    })
}

impl<'a> Plan<'a> {
    /// Looks at all that could be wrong, and makes what goes to the devices of a design: the table's rows in contiguous parts.
    pub fn new(
        table: &'a Table,
        by: &[By],
        root: &'a Path,
        design: &'a Design,
        devices: usize,
    ) -> Result<Plan<'a>> {
        let begin = Instant::now();
        if !(1..=MOST_DEVICES).contains(&devices) {
            return Err(Error::new(format!(
                "devices = {devices}: allowed are 1 to {MOST_DEVICES}"
            )));
        }
        if design.media.file.is_some() && devices > 1 {
            return Err(Error::new(
                "media.file: several devices can't have one file; take a design without it",
            ));
        }
        let opcodes = opcodes(design, root)?;
        let key = Key::of(&table.schema(), by)?;
        let batch = &table.batch;
        let form = Form::of(batch)?;
        let rows = batch.num_rows();
        let Ok(all) = u32::try_from(rows) else {
            return Err(Error::new(format!("{rows} rows: allowed are {}", u32::MAX)));
        };
        let extent = design.nvme.extent(1, design.media.bytes);
        let namespace = extent.end - extent.start;
        let pages = match opcodes.decode {
            Some(_) => Column::of(table, &key),
            None => None,
        };
        let devices = devices.min(rows);
        let bound = |n: usize| (u64::from(all) * n as u64 / devices as u64) as u32;
        let mut parts = Vec::new();
        for n in 0..devices {
            let (from, to) = (bound(n), bound(n + 1));
            let (order, sorted) = key.split(batch, from, to);
            let pages = pages.as_ref().map(|pages| pages.part(from, to));
            let shape = Shape {
                rows: order.len(),
                sorted,
                row_bytes: form.row_bytes,
                key_bytes: key.bytes,
            };
            let sizes = pages
                .as_ref()
                .map(|p| (p.dictionary.len(), p.encoded.len()));
            let vacant = Vacant::find(shape, sizes, namespace)?;
            parts.push((order, sorted, pages, vacant));
        }
        let prefix = key.compared == Compared::Prefix && rows > 0;
        let whole = guarded("the keys can't be normalised", || {
            let make = || key.rows(&key.of_batch(batch));
            prefix.then(make).transpose()
        })?;
        let mut report = Report {
            rows,
            row_bytes: form.row_bytes,
            key: key.text.clone(),
            pages: pages.is_some(),
            ..Report::default()
        };
        let mut jobs = Vec::new();
        for (order, sorted, pages, vacant) in parts {
            report.devices.push(Device {
                rows: order.len(),
                nulls: order.len() - sorted,
                stages: Vec::new(),
            });
            let keys = match pages {
                Some(pages) => Keys::Pages(pages),
                None => Keys::Plain(key.encode(batch, whole.as_ref(), &order[..sorted])),
            };
            let rows = form.encode(batch, &order);
            jobs.push(vacant.with(keys, rows, opcodes, key.kind));
        }
        report.prepare = begin.elapsed();
        Ok(Plan {
            table,
            design,
            root,
            key,
            form,
            jobs,
            report,
        })
    }

    /// True if there is nothing to sort, and so no device needed.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// What comes of a table without rows.
    pub fn unsorted(self) -> (Table, Report) {
        (self.table.with_batch(self.table.batch.clone()), self.report)
    }

    /// Sorts on devices of a factory.
    pub fn run(self, factory: &mut Factory, progress: &Progress) -> Result<(Table, Report)> {
        if self.is_empty() {
            return Ok(self.unsorted());
        }
        let bytes = self.jobs.iter().map(Job::bytes).sum();
        progress.expect(bytes);
        let mut bench = Bench::new(self.root, self.design, factory, self.jobs.len())?;
        let done = bench.run(&self.jobs, progress)?;
        drop(bench);
        let begin = Instant::now();
        let table = self.table;
        let Plan {
            key,
            form,
            mut report,
            ..
        } = self;
        let batch = guarded("rows that came back can't be read", || {
            collect(table, &key, &form, done, &mut report)
        })?;
        report.merge = begin.elapsed();
        Ok((table.with_batch(batch), report))
    }
}

/// Merges what came from the devices.
fn collect(
    table: &Table,
    key: &Key,
    form: &Form,
    done: Vec<Outcome>,
    report: &mut Report,
) -> Result<RecordBatch> {
    let (mut parts, mut runs) = (Vec::new(), Vec::new());
    for (number, (rows, stages)) in done.into_iter().enumerate() {
        let device = &mut report.devices[number];
        device.stages = stages;
        let sorted = device.rows - device.nulls;
        let given: Vec<(u32, u32)> = (0..device.rows as u32).map(|row| (0, row)).collect();
        let part = [rows];
        let columns = form.decode(&table.batch, &key.columns, &part, &given)?;
        let rows = key.rows(&columns)?;
        let ties = (key.compared == Compared::Prefix).then_some(&mut report.ties);
        let order = order(&rows, sorted, key.nulls_first, ties);
        let run = Run { rows, order };
        run.check(|| format!("device {number} gave"))?;
        runs.push(run);
        parts.extend(part);
    }
    let order = merge(&runs);
    let all: Vec<usize> = (0..table.batch.num_columns()).collect();
    let columns = form.decode(&table.batch, &all, &parts, &order)?;
    RecordBatch::try_new(table.schema(), columns).map_err(Error::new)
}
