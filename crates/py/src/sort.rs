//! Sorting of tables on devices, and tables that stand there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::sort::{columns, parse, Compression, Format, Plan, Progress, Report, Store, Table};
use device::{Engine, Factory, RtlOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::build::{engine_of, factory, purpose, root, Design};
use crate::error::raise;
use crate::progress::Teller;

/// Between two looks at whether a sort has ended, and for Ctrl-C.
const LOOK: Duration = Duration::from_millis(2);

fn options() -> RtlOptions {
    RtlOptions {
        purpose: purpose(),
        ..RtlOptions::default()
    }
}

/// A report with what it was made with.
fn tell(
    report: &Report,
    design: &design::Design,
    engine: Engine,
    built: Option<String>,
    trace: bool,
) -> String {
    let mut value = report.to_json();
    if trace {
        value["trace"] = report.trace();
    }
    value["design"] = design.name.clone().into();
    value["engine"] = engine.name().into();
    value["build"] = built.into();
    value["time"] = "simulated".into();
    value.to_string()
}

fn read(py: Python<'_>, source: &str, data: &[u8], name: &str) -> PyResult<Table> {
    let source: Format = source.parse().map_err(raise)?;
    let table = py.detach(|| Table::read(source, data.to_vec()));
    table.map_err(|e| raise(format!("{name}: {e}")))
}

/// What a table is written as.
fn written(target: &str, compression: &str) -> PyResult<(Format, Compression)> {
    let target = target.parse().map_err(raise)?;
    Ok((target, compression.parse().map_err(raise)?))
}

fn write<'py>(
    py: Python<'py>,
    table: &Table,
    (target, compression): (Format, Compression),
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.detach(|| table.write(target, compression));
    Ok(PyBytes::new(py, &bytes.map_err(raise)?))
}

/// Sorts a table, the bytes of a file ("parquet", "arrow", "stream" or "csv"), on so many devices of a design. Returns a report as JSON, and the table
/// as a file. `name` is what errors call it; `build` hears of a compilation, and `progress` of bytes moved. With `trace` the report has a trace for
/// Perfetto.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", target="parquet", compression="snappy", devices=1,
    engine=None, build=None, progress=None, trace=false))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn sort_table<'py>(
    py: Python<'py>,
    design: &Design,
    data: &[u8],
    by: &str,
    name: &str,
    source: &str,
    target: &str,
    compression: &str,
    devices: usize,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    trace: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let design = &design.inner;
    let engine = engine_of(engine)?;
    let root = root()?;
    let by = parse(by).map_err(raise)?;
    let target = written(target, compression)?;
    let table = read(py, source, data, name)?;
    let plan = py.detach(|| Plan::new(&table, &by, &root, design, devices));
    let plan = plan.map_err(raise)?;
    let (sorted, report, built) = if plan.is_empty() {
        let (sorted, report) = plan.unsorted();
        (sorted, report, None)
    } else {
        let mut factory = factory(py, design, engine, &options(), build)?;
        let (sorted, report) = run(py, Teller::new(progress), &watched(trace), |progress| {
            plan.run(&mut factory, progress)
        })?;
        (sorted, report, Some(factory.build()))
    };
    let report = tell(&report, design, engine, built, trace);
    Ok((report, write(py, &sorted, target)?))
}

/// What `sort_table` would do, as JSON; nothing is compiled or run.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", devices=1))]
pub fn explain_sort(
    py: Python<'_>,
    design: &Design,
    data: &[u8],
    by: &str,
    name: &str,
    source: &str,
    devices: usize,
) -> PyResult<String> {
    let root = root()?;
    let by = parse(by).map_err(raise)?;
    let table = read(py, source, data, name)?;
    let plan = py.detach(|| Plan::new(&table, &by, &root, &design.inner, devices));
    let plan = plan.map_err(raise)?;
    Ok(py.detach(|| plan.explain()).to_string())
}

fn watched(trace: bool) -> Progress {
    match trace {
        true => Progress::watched(),
        false => Progress::default(),
    }
}

/// Works in a thread: Python hears of Ctrl-C in its own.
fn run<T: Send>(
    py: Python<'_>,
    mut teller: Teller,
    progress: &Progress,
    work: impl FnOnce(&Progress) -> ::sort::Result<T> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let sorting = scope.spawn(|| work(progress));
            while !sorting.is_finished() {
                std::thread::sleep(LOOK);
                let (done, total) = progress.now();
                if !teller.tell(done, total.max(done + 1)) {
                    progress.stop();
                }
            }
            sorting.join()
        })
    });
    let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    teller.settle(outcome)
}

/// Devices with media files, and how they are made.
struct Stand<'a> {
    design: &'a design::Design,
    engine: Engine,
    root: PathBuf,
    media: Vec<PathBuf>,
    factory: Factory,
}

impl<'a> Stand<'a> {
    fn new(
        py: Python<'_>,
        design: &'a Design,
        media: Vec<PathBuf>,
        engine: Option<&str>,
        build: Option<Py<PyAny>>,
    ) -> PyResult<Stand<'a>> {
        let engine = engine_of(engine)?;
        Ok(Stand {
            design: &design.inner,
            engine,
            root: root()?,
            media,
            factory: factory(py, &design.inner, engine, &options(), build)?,
        })
    }

    /// Works with the tables.
    fn with<T: Send>(
        &mut self,
        py: Python<'_>,
        progress: &Progress,
        told: Option<Py<PyAny>>,
        work: impl FnOnce(&mut Store, &Progress) -> ::sort::Result<T> + Send,
    ) -> PyResult<T> {
        let Stand {
            design,
            root,
            media,
            factory,
            ..
        } = self;
        let root: &Path = root;
        run(py, Teller::new(told), progress, move |progress| {
            let mut store = Store::open(root, design, factory, media)?;
            let outcome = work(&mut store, progress)?;
            store.close()?;
            Ok(outcome)
        })
    }

    fn tell(&self, report: &Report, trace: bool) -> String {
        let built = Some(self.factory.build());
        tell(report, self.design, self.engine, built, trace)
    }
}

/// Writes a table to devices with these media files, each a part of its rows, with key columns to sort by; returns a report as JSON.
#[pyfunction]
#[pyo3(signature = (design, media, data, table, keys, name="table", *, source="parquet", engine=None, build=None, progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn table_put(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    data: &[u8],
    table: &str,
    keys: &str,
    name: &str,
    source: &str,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let keys = columns(keys).map_err(raise)?;
    let content = read(py, source, data, name)?;
    let mut stand = Stand::new(py, design, media, engine, build)?;
    let report = stand.with(py, &Progress::default(), progress, |store, progress| {
        store.put(table, &content, &keys, progress)
    })?;
    Ok(stand.tell(&report, false))
}

/// The tables on devices with these media files, as JSON.
#[pyfunction]
#[pyo3(signature = (design, media, *, engine=None, build=None))]
pub fn table_list(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut stand = Stand::new(py, design, media, engine, build)?;
    let list = stand.with(py, &Progress::default(), None, |store, _| Ok(store.list()))?;
    Ok(Value::to_string(&list))
}

/// What a sort of a table on devices with these media files would do, as JSON.
#[pyfunction]
#[pyo3(signature = (design, media, table, by, *, engine=None, build=None))]
pub fn table_explain(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    by: &str,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<String> {
    let by = parse(by).map_err(raise)?;
    let mut stand = Stand::new(py, design, media, engine, build)?;
    let plan = stand.with(py, &Progress::default(), None, |store, _| {
        store.explain(table, &by)
    })?;
    Ok(plan.to_string())
}

/// A table on devices with these media files, without its rows, as an Arrow IPC stream.
#[pyfunction]
#[pyo3(signature = (design, media, table, *, engine=None, build=None))]
pub fn table_schema<'py>(
    py: Python<'py>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut stand = Stand::new(py, design, media, engine, build)?;
    let nothing = stand.with(py, &Progress::default(), None, |store, _| {
        store.schema(table)
    })?;
    write(py, &nothing, (Format::Stream, Compression::Uncompressed))
}

/// Forgets a table on devices with these media files, or what is left of it.
#[pyfunction]
#[pyo3(signature = (design, media, table, *, engine=None, build=None))]
pub fn table_drop(
    py: Python<'_>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
) -> PyResult<()> {
    let mut stand = Stand::new(py, design, media, engine, build)?;
    stand.with(py, &Progress::default(), None, |store, _| {
        store.drop_table(table)
    })
}

/// Reads a table back from devices with these media files; with `by` it is sorted where it stands. Returns a report as JSON, and the table as a file.
/// With `trace` the report has a trace for Perfetto.
#[pyfunction]
#[pyo3(signature = (design, media, table, by=None, *, target="parquet", compression="snappy", engine=None, build=None,
    progress=None, trace=false))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn table_get<'py>(
    py: Python<'py>,
    design: &Design,
    media: Vec<PathBuf>,
    table: &str,
    by: Option<&str>,
    target: &str,
    compression: &str,
    engine: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    trace: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let by = by.map(parse).transpose().map_err(raise)?;
    let target = written(target, compression)?;
    let mut stand = Stand::new(py, design, media, engine, build)?;
    let (found, report) =
        stand.with(py, &watched(trace), progress, |store, progress| match &by {
            Some(by) => store.sort(table, by, progress),
            None => store.get(table, progress),
        })?;
    let report = stand.tell(&report, trace);
    Ok((report, write(py, &found, target)?))
}
