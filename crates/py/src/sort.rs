// SPDX-License-Identifier: Apache-2.0

//! Sorts of tables on devices, and resident tables.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::sort::{
    parse_columns, parse_order, Compression, Error, Format, Input, KeyValue, OrderBy, Plan,
    Progress, RecordBatch, Report, SchemaRef, Sink, Source, Store, Writer,
};
use device::{Factory, Model, RtlOptions};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::build::{factory, model_of, purpose, Design};
use crate::error::raise;
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

/// The JSON of a report, with design, model, build and memory use.
fn report_json(
    report: &Report,
    design: &design::Design,
    model: Model,
    built: Option<String>,
    trace: bool,
    memory: &MemoryPeak,
) -> String {
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
    value.to_string()
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

/// A table file: its bytes or its path.
pub enum TableInput {
    /// Its bytes.
    Bytes(PyBackedBytes),
    /// Its path.
    Path(PathBuf),
}

impl<'py> FromPyObject<'_, 'py> for TableInput {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<TableInput> {
        match given.extract() {
            Ok(bytes) => Ok(TableInput::Bytes(bytes)),
            Err(_) => given.extract().map(TableInput::Path),
        }
    }
}

impl TableInput {
    /// Opens the file. `name` is used in errors. `kept` says whether lines of a CSV are kept.
    fn open(
        self,
        format: &str,
        name: &str,
        kept: CsvLines,
        progress: &Progress,
    ) -> ::sort::Result<Source> {
        let format = match format {
            BY_CONTENT => None,
            format => Some(format.parse::<Format>()?),
        };
        let input = match self {
            TableInput::Bytes(bytes) => Input::of(bytes),
            TableInput::Path(path) => {
                Input::open(&path).map_err(|e| Error::new(format!("{name}: {e}")))?
            }
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
                Error::new(format!(
                    "{e}; it begins like {title}: --from {name} reads it as that"
                ))
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

/// A file or memory that a table is written to. It records the system's error.
struct TableSink {
    bytes: SinkTarget,
    failed: Arc<Mutex<Option<io::Error>>>,
}

enum SinkTarget {
    Memory(Arc<Mutex<Vec<u8>>>),
    File(File),
}

impl Write for TableSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = match &mut self.bytes {
            SinkTarget::Memory(held) => match held.lock() {
                Ok(mut held) => held.write(bytes),
                Err(_) => Err(io::ErrorKind::Other.into()),
            },
            SinkTarget::File(file) => file.write(bytes),
        };
        if let Err(error) = &done {
            let code = error.raw_os_error();
            if let (Ok(mut failed), Some(code)) = (self.failed.lock(), code) {
                failed.get_or_insert(io::Error::from_raw_os_error(code));
            }
        }
        done
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A table that is written batch by batch.
struct TableOutput {
    /// The file and its name in errors. `None`: memory.
    to: Option<(PathBuf, String)>,
    how: OutputFormat,
    bytes: Arc<Mutex<Vec<u8>>>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl TableOutput {
    fn new(to: Option<(PathBuf, String)>, how: OutputFormat) -> TableOutput {
        TableOutput {
            to,
            how,
            bytes: Arc::default(),
            failed: Arc::default(),
        }
    }

    /// Writes the batches of `make`, which come in this order.
    fn write(
        &self,
        schema: SchemaRef,
        metadata: &[KeyValue],
        order: &[OrderBy],
        make: impl FnOnce(&mut Sink) -> ::sort::Result<Report>,
    ) -> ::sort::Result<Report> {
        let bytes = match &self.to {
            None => SinkTarget::Memory(self.bytes.clone()),
            Some((path, _)) => match File::create(path) {
                Ok(file) => SinkTarget::File(file),
                Err(error) => {
                    let copy = Error::new(&error);
                    if let Ok(mut failed) = self.failed.lock() {
                        *failed = Some(error);
                    }
                    return Err(copy);
                }
            },
        };
        let out = TableSink {
            bytes,
            failed: self.failed.clone(),
        };
        let (format, compression) = self.how;
        let mut writer = Writer::new(out, format, compression, schema, metadata, order)?;
        let report = make(&mut |batch: RecordBatch| writer.write(&batch))?;
        writer.finish()?;
        Ok(report)
    }

    /// The result. If the file can't be written, the error names it and the system's reason.
    fn name_file_error<T>(&self, outcome: PyResult<T>) -> PyResult<T> {
        let failed = self.failed.lock().ok().and_then(|mut failed| failed.take());
        match (outcome, failed, &self.to) {
            (Err(_), Some(error), Some((_, name))) => {
                let text = error.to_string();
                let why = text.split(" (os error").next().unwrap_or_default();
                Err(raise(Error::new(format!("{name}: {why}"))))
            }
            (outcome, ..) => outcome,
        }
    }

    /// The table's bytes, if it was written to memory.
    fn bytes(self, py: Python<'_>) -> Option<Bound<'_, PyBytes>> {
        let bytes = self.bytes.lock().ok()?;
        self.to.is_none().then(|| PyBytes::new(py, &bytes))
    }
}

/// Sorts a table on `devices` devices of a design. `data` are the bytes of a file, or its path;
/// `source` is its format: "parquet", "arrow", "stream", "csv", or "content" to detect it. Returns
/// the report as JSON, and the sorted table as the bytes of a file. With `output`, a path and its
/// name in errors, the table is written to that file instead. `name` is the table's name in errors.
/// `build` is called during a compilation, and `progress` with the bytes moved. With `trace` the
/// report has a trace for Perfetto.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", target="parquet",
    compression="snappy", devices=1,
    model=None, build=None, progress=None, trace=false, output=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn sort_table<'py>(
    py: Python<'py>,
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
) -> PyResult<(String, Option<Bound<'py, PyBytes>>)> {
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
            Plan::of(source, &by, design, devices)
        },
    )?;
    let (schema, metadata) = (plan.source().schema(), plan.source().metadata().to_vec());
    let (report, built) = if plan.is_empty() {
        let report = output.write(schema, &metadata, &by, |_| Ok(plan.empty_report()));
        (output.name_file_error(report.map_err(raise))?, None)
    } else {
        // Damage is detected before a device is built, which may take minutes.
        let loaded = run(
            py,
            ProgressReporter::new(None),
            &going,
            &mut memory,
            |going| plan.load(going),
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
        (output.name_file_error(outcome)?, Some(factory.build()))
    };
    let bytes = output.bytes(py);
    memory.finish();
    let report = report_json(&report, design, model, built, trace, &memory);
    Ok((report, bytes))
}

/// The plan of `sort_table` as JSON. Nothing is compiled or run.
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
) -> PyResult<String> {
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
    Ok(plan.to_string())
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
    work: impl FnOnce(&Progress) -> ::sort::Result<T> + Send,
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
        work: impl FnOnce(&mut Store, &Progress) -> ::sort::Result<T> + Send,
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

    fn report_json(&mut self, report: &Report, trace: bool) -> String {
        let built = Some(self.factory.build());
        self.memory.finish();
        report_json(report, self.design, self.model, built, trace, &self.memory)
    }
}

/// Writes a table to devices with these media files, a part of the rows to each, with key columns
/// to sort by. Returns the report as JSON.
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
) -> PyResult<String> {
    let keys = parse_columns(keys).map_err(raise)?;
    let (going, mut memory) = (Progress::default(), MemoryPeak::now());
    let content = run(
        py,
        ProgressReporter::new(None),
        &going,
        &mut memory,
        |going| data.open(source, name, CsvLines::All, going)?.collect(),
    )?;
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    devices.memory = memory;
    let report = devices.with_store(py, &going, progress, |store, progress| {
        store.put(table, &content, &keys, progress)
    })?;
    Ok(devices.report_json(&report, false))
}

/// The tables on devices with these media files, as JSON.
#[pyfunction]
#[pyo3(signature = (design, media, *, model=None, build=None))]
pub fn table_list(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let list = devices.with_store(py, &Progress::default(), None, |store, _| Ok(store.list()))?;
    Ok(Value::to_string(&list))
}

/// The plan of a sort of a resident table, as JSON.
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
) -> PyResult<String> {
    let by = parse_order(by).map_err(raise)?;
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let plan = devices.with_store(py, &Progress::default(), None, |store, _| {
        store.explain(table, &by)
    })?;
    Ok(plan.to_string())
}

/// The schema of a resident table, as an Arrow IPC stream.
#[pyfunction]
#[pyo3(signature = (design, media, table, *, model=None, build=None))]
pub fn table_schema<'py>(
    py: Python<'py>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut devices = ResidentDevices::new(py, design, media, model, build)?;
    let nothing = devices.with_store(py, &Progress::default(), None, |store, _| {
        let nothing = store.schema(table)?;
        nothing.write(Format::Stream, Compression::Uncompressed)
    })?;
    Ok(PyBytes::new(py, &nothing))
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
        store.drop_table(table)
    })
}

/// Reads a resident table back; with `by` it is sorted on its devices. Returns the report as JSON,
/// and the table as the bytes of a file. With `output`, a path and its name in errors, the table is
/// written to that file instead. With `trace` the report has a trace for Perfetto.
#[pyfunction]
#[pyo3(signature = (design, media, table, by=None, *, target="parquet", compression="snappy",
    model=None, build=None,
    progress=None, trace=false, output=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn table_get<'py>(
    py: Python<'py>,
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
) -> PyResult<(String, Option<Bound<'py, PyBytes>>)> {
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
    let report = output.name_file_error(outcome)?;
    let bytes = output.bytes(py);
    Ok((devices.report_json(&report, trace), bytes))
}
