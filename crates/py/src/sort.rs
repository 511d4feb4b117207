// SPDX-License-Identifier: Apache-2.0

//! Sorts of tables on devices, and resident tables.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ::sort::{
    parse_columns, parse_order, Collector, Compression, Format, Input, KeyValue, OrderBy, Plan,
    Progress, Report, SchemaRef, Sink, Source, Store, Writer,
};
use device::{Factory, Model, RtlOptions};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{ArrowTable, ForeignTable};
use crate::build::{factory, model_of, purpose, Design};
use crate::document::Document;
use crate::error::{raise, Error};
use crate::memory::MemoryPeak;
use crate::progress::ProgressReporter;

/// Interval of checks whether a sort has ended, and for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

fn options() -> RtlOptions {
    RtlOptions {
        purpose: purpose(),
        ..RtlOptions::default()
    }
}

/// A report, with design, model, build and memory use.
fn report_document(
    report: &Report,
    design: &design::Design,
    model: Model,
    built: Option<String>,
    trace: bool,
    memory: &MemoryPeak,
) -> Document {
    let mut value = report.to_json();
    if trace {
        value["trace"] = report.trace();
    }
    value["design"] = design.name.clone().into();
    value["engine"] = model.name().into();
    value["build"] = built.into();
    value["time"] = "simulated".into();
    value["host"]["memory_bytes"] = memory.host.into();
    value["host"]["media_bytes"] = memory.media.into();
    Document(value)
}

/// The format that is detected from the first bytes of a file.
const BY_CONTENT: &str = "content";

/// Whether lines of a CSV are kept byte for byte.
#[derive(Clone, Copy)]
enum CsvLines<'a> {
    /// Only values are read.
    No,
    /// Lines are kept if writing the values would change them. All values are read.
    All,
    /// Lines are kept. Only the values of these columns are read.
    Keys(&'a [OrderBy]),
}

/// A table.
pub enum TableInput {
    /// The bytes of a file.
    Bytes(PyBackedBytes),
    /// The path of a file.
    Path(PathBuf),
    /// An object that knows the Arrow PyCapsule interface.
    Arrow(ForeignTable),
}

impl<'py> FromPyObject<'_, 'py> for TableInput {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<TableInput> {
        if let Some(table) = ForeignTable::of(&given)? {
            return Ok(TableInput::Arrow(table));
        }
        match given.extract() {
            Ok(bytes) => Ok(TableInput::Bytes(bytes)),
            Err(_) => given.extract().map(TableInput::Path),
        }
    }
}

impl TableInput {
    /// Opens the table. `name` is used in errors. `kept` says whether lines of a CSV are kept.
    fn open(
        self,
        format: &str,
        name: &str,
        kept: CsvLines,
        progress: &Progress,
    ) -> ::sort::Result<Source> {
        use ::sort::Error;
        let format = match format {
            BY_CONTENT => None,
            format => Some(format.parse::<Format>()?),
        };
        let input = match self {
            TableInput::Bytes(bytes) => Input::of(bytes),
            TableInput::Path(path) => Input::open(&path).map_err(|e| Error::from(e).of(name))?,
            TableInput::Arrow(table) => return Source::of_batches(Some(name), || table.read()),
        };
        let begins = Format::of_content(&input);
        let format = format.or(begins).ok_or_else(|| {
            Error::new(format!(
                "{name}: neither its name nor how it begins says what it is: say it with --from, \
                    as one of {}",
                Format::ALL.map(Format::name).join(", ")
            ))
        })?;
        let (input, name) = (input.stopped_by(progress), Some(name));
        let opened = match (format, kept) {
            (Format::Csv, CsvLines::Keys(keys)) => Source::open_verbatim(input, name, Some(keys)),
            (Format::Csv, CsvLines::All) => Source::open_verbatim(input, name, None),
            _ => Source::open(format, input, name),
        };
        opened.map_err(|e| match begins {
            // An Arrow stream is also accepted as an Arrow file.
            Some(other)
                if other != format && (other, format) != (Format::Stream, Format::Arrow) =>
            {
                let (title, name) = (other.title(), other.name());
                let hint = format!("it begins like {title}: --from {name} reads it as that");
                e.with_hint(hint)
            }
            _ => e,
        })
    }
}

/// Format and compression of a written table.
type OutputFormat = (Format, Compression);

fn written(target: &str, compression: &str) -> PyResult<OutputFormat> {
    let target = target.parse().map_err(raise)?;
    Ok((target, compression.parse().map_err(raise)?))
}

/// A table that is written batch by batch, to a file or to memory.
enum TableOutput {
    /// The path, the name in errors, and how the file is written.
    File(PathBuf, String, OutputFormat),
    Memory,
}

impl TableOutput {
    fn new(output: Option<(PathBuf, String)>, how: OutputFormat) -> TableOutput {
        output.map_or(TableOutput::Memory, |(path, name)| {
            TableOutput::File(path, name, how)
        })
    }

    /// Writes the batches of `make`, which come in this order. Returns the report, and the table if
    /// it is in memory.
    fn write(
        &self,
        schema: SchemaRef,
        metadata: &[KeyValue],
        order: &[OrderBy],
        make: impl FnOnce(&mut Sink) -> ::sort::Result<Report>,
    ) -> Result<(Report, Option<ArrowTable>), Error> {
        let (path, name, (format, compression)) = match self {
            TableOutput::File(path, name, how) => (path, name, *how),
            TableOutput::Memory => {
                let mut table = Collector::new(schema)?;
                let report = make(&mut |batch| table.add(batch))?;
                return Ok((report, Some(table.into())));
            }
        };
        // The system's error, if the file can't be written, else that of the values.
        let failed = |error: ::sort::Error| match error.system() {
            Some(system) => Error::Output {
                name: name.clone(),
                source: io::Error::from_raw_os_error(system.raw_os_error().unwrap_or_default()),
            },
            None => error.into(),
        };
        let file = File::create(path).map_err(|e| failed(e.into()))?;
        let writer = Writer::new(file, format, compression, schema, metadata, order);
        let mut writer = writer.map_err(failed)?;
        let report = make(&mut |batch| {
            let written = writer.write(&batch);
            written.map_err(|e| ::sort::Error::Sink(failed(e).into()))
        })?;
        writer.finish().map_err(failed)?;
        Ok((report, None))
    }
}

/// Sorts a table on `devices` devices of a design.
///
/// `data` is an object with `__arrow_c_stream__`, the bytes of a file, or its path. `source` is the
/// file's format: "parquet", "arrow", "stream", "csv", or "content" to detect it. `name` is the
/// table's name in errors.
///
/// Returns the report and the sorted table. With `output`, a path and its name in errors, the table
/// is written to that file instead, in the format `target`. `build` is called during a compilation,
/// and `progress` with the bytes moved. With `trace` the report has a trace for Perfetto.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", target="parquet",
    compression="snappy", devices=1,
    model=None, build=None, progress=None, trace=false, output=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn sort_table(
    py: Python<'_>,
    design: &Design,
    data: TableInput,
    by: &str,
    name: &str,
    source: &str,
    target: &str,
    compression: &str,
    devices: usize,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    trace: bool,
    output: Option<(PathBuf, String)>,
) -> PyResult<(Document, Option<ArrowTable>)> {
    let design = &design.inner;
    let model = model_of(model)?;
    let by = parse_order(by).map_err(raise)?;
    let how = written(target, compression)?;
    let output = TableOutput::new(output, how);
    let kept = match how.0 {
        Format::Csv => CsvLines::Keys(&by),
        _ => CsvLines::No,
    };
    let (going, mut memory) = (sampled(trace), MemoryPeak::now());
    let plan = run(
        py,
        ProgressReporter::new(None),
        &going,
        &mut memory,
        |going| {
            let source = data.open(source, name, kept, going)?;
            Ok(Plan::of(source, &by, design, devices)?)
        },
    )?;
    let (schema, metadata) = (plan.source().schema(), plan.source().metadata().to_vec());
    let ((report, table), built) = if plan.is_empty() {
        let written = output.write(schema, &metadata, &by, |_| Ok(plan.empty_report()))?;
        (written, None)
    } else {
        // Damage is detected before a device is built, which may take minutes.
        let loaded = run(
            py,
            ProgressReporter::new(None),
            &going,
            &mut memory,
            |going| Ok(plan.load(going)?),
        )?;
        let factory = factory(py, design, model, &options(), build)?;
        let outcome = run(
            py,
            ProgressReporter::new(progress),
            &going,
            &mut memory,
            |going| {
                output.write(schema, &metadata, &by, |sink| {
                    loaded.run(&factory, going, sink)
                })
            },
        );
        (outcome?, Some(factory.build()))
    };
    memory.finish();
    let report = report_document(&report, design, model, built, trace, &memory);
    Ok((report, table))
}

/// The plan of `sort_table`. Nothing is compiled or run.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", devices=1))]
pub fn explain_sort(
    py: Python<'_>,
    design: &Design,
    data: TableInput,
    by: &str,
    name: &str,
    source: &str,
    devices: usize,
) -> PyResult<Document> {
    let by = parse_order(by).map_err(raise)?;
    let (going, mut memory) = (Progress::default(), MemoryPeak::now());
    let plan = run(
        py,
        ProgressReporter::new(None),
        &going,
        &mut memory,
        |going| {
            let source = data.open(source, name, CsvLines::No, going)?;
            Ok(Plan::of(source, &by, &design.inner, devices)?.explain())
        },
    )?;
    Ok(Document(plan))
}

fn sampled(trace: bool) -> Progress {
    match trace {
        true => Progress::with_samples(),
        false => Progress::default(),
    }
}

/// Runs `work` in a second thread. This thread reports progress, checks for Ctrl-C, and samples the
/// memory use.
fn run<T: Send>(
    py: Python<'_>,
    mut reporter: ProgressReporter,
    progress: &Progress,
    memory: &mut MemoryPeak,
    work: impl FnOnce(&Progress) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let sorting = scope.spawn(|| work(progress));
            while !sorting.is_finished() {
                std::thread::sleep(POLL_INTERVAL);
                memory.sample();
                let (done, total) = progress.bytes_moved();
                if !reporter.report(done, total.max(done + 1)) {
                    progress.stop();
                }
            }
            memory.finish();
            sorting.join()
        })
    });
    let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    reporter.finish(outcome)
}

/// Devices with media files, and their factory.
struct ResidentDevices<'a> {
    design: &'a design::Design,
    model: Model,
    media: Vec<PathBuf>,
    factory: Factory,
    memory: MemoryPeak,
}

impl<'a> ResidentDevices<'a> {
    fn new(
        py: Python<'_>,
        design: &'a Design,
        media: Vec<PathBuf>,
        model: Option<&str>,
        build: Option<Py<PyAny>>,
    ) -> PyResult<ResidentDevices<'a>> {
        let model = model_of(model)?;
        Ok(ResidentDevices {
            design: &design.inner,
            model,
            media,
            factory: factory(py, &design.inner, model, &options(), build)?,
            memory: MemoryPeak::now(),
        })
    }

    /// Opens the devices, and calls `work` with their tables.
    fn with_store<T: Send>(
        &mut self,
        py: Python<'_>,
        progress: &Progress,
        callback: Option<Py<PyAny>>,
        work: impl FnOnce(&mut Store, &Progress) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let ResidentDevices {
            media,
            factory,
            memory,
            ..
        } = self;
        run(
            py,
            ProgressReporter::new(callback),
            progress,
            memory,
            move |progress| {
                let mut store = Store::open(factory, media)?;
                let outcome = work(&mut store, progress)?;
                store.close()?;
                Ok(outcome)
            },
        )
    }

    fn report(&mut self, report: &Report, trace: bool) -> Document {
        let built = Some(self.factory.build());
        self.memory.finish();
        report_document(report, self.design, self.model, built, trace, &self.memory)
    }
}

/// Writes a table to devices with these media files, a part of the rows to each, with key columns
/// to sort by. Returns the report.
#[pyfunction]
#[pyo3(signature = (design, media, data, table, keys, name="table", *, source="parquet",
    model=None, build=None, progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn table_put(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    data: TableInput,
    table: &str,
    keys: &str,
    name: &str,
    source: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Document> {
    let keys = parse_columns(keys).map_err(raise)?;
    let (going, mut memory) = (Progress::default(), MemoryPeak::now());
    let content = run(
        py,
        ProgressReporter::new(None),
        &going,
        &mut memory,
        |going| Ok(data.open(source, name, CsvLines::All, going)?.collect()?),
    )?;
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    devices.memory = memory;
    let report = devices.with_store(py, &going, progress, |store, progress| {
        Ok(store.put(table, &content, &keys, progress)?)
    })?;
    Ok(devices.report(&report, false))
}

/// The tables on devices with these media files.
#[pyfunction]
#[pyo3(signature = (design, media, *, model=None, build=None))]
pub fn table_list(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<Document> {
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let list = devices.with_store(py, &Progress::default(), None, |store, _| Ok(store.list()))?;
    Ok(Document(list))
}

/// The plan of a sort of a resident table.
#[pyfunction]
#[pyo3(signature = (design, media, table, by, *, model=None, build=None))]
pub fn table_explain(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    by: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<Document> {
    let by = parse_order(by).map_err(raise)?;
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let plan = devices.with_store(py, &Progress::default(), None, |store, _| {
        Ok(store.explain(table, &by)?)
    })?;
    Ok(Document(plan))
}

/// A resident table without its rows.
#[pyfunction]
#[pyo3(signature = (design, media, table, *, model=None, build=None))]
pub fn table_schema(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<ArrowTable> {
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    devices.with_store(py, &Progress::default(), None, |store, _| {
        let found = Collector::new(store.schema(table)?.schema())?;
        Ok(found.into())
    })
}

/// Removes a resident table, or its remaining parts.
#[pyfunction]
#[pyo3(signature = (design, media, table, *, model=None, build=None))]
pub fn table_drop(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<()> {
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    devices.with_store(py, &Progress::default(), None, |store, _| {
        Ok(store.drop_table(table)?)
    })
}

/// Reads a resident table back; with `by` it is sorted on its devices. Returns the report
/// and the table. With `output`, a path and its name in errors, the table is written to that file
/// instead, in the format `target`. With `trace` the report has a trace for Perfetto.
#[pyfunction]
#[pyo3(signature = (design, media, table, by=None, *, target="parquet", compression="snappy",
    model=None, build=None,
    progress=None, trace=false, output=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn table_get(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    by: Option<&str>,
    target: &str,
    compression: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    trace: bool,
    output: Option<(PathBuf, String)>,
) -> PyResult<(Document, Option<ArrowTable>)> {
    let by = by.map(parse_order).transpose().map_err(raise)?;
    let output = TableOutput::new(output, written(target, compression)?);
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let outcome = devices.with_store(py, &sampled(trace), progress, |store, progress| {
        let resident = store.resident(table)?;
        let (schema, metadata) = (resident.schema(), resident.metadata());
        let order = by.as_deref().unwrap_or_default();
        output.write(schema, metadata, order, |sink| match &by {
            Some(by) => store.sort_to(&resident, by, progress, sink),
            None => store.get_to(&resident, progress, sink),
        })
    });
    let (report, table) = outcome?;
    Ok((devices.report(&report, trace), table))
}
