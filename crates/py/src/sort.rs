//! Sorting of tables on devices.

use std::time::Duration;

use ::sort::{parse, Compression, Format, Plan, Progress, Report, Table};
use device::{Factory, RtlOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::build::{engine_of, factory, purpose, root, Design};
use crate::error::raise;
use crate::progress::Teller;

/// Between two looks at whether a sort has ended, and for Ctrl-C.
const LOOK: Duration = Duration::from_millis(2);

/// Sorts a table, the bytes of a file ("parquet", "arrow", "stream" or "csv"), on so many devices of a design. Returns a report as JSON, and the table
/// as a file. `name` is what errors call it; `build` hears of a compilation, and `progress` of bytes moved.
#[pyfunction]
#[pyo3(signature = (design, data, by, name="table", *, source="parquet", target="parquet", compression="snappy", devices=1,
    engine=None, build=None, progress=None))]
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
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let design = &design.inner;
    let engine = engine_of(engine)?;
    let root = root()?;
    let by = parse(by).map_err(raise)?;
    let source: Format = source.parse().map_err(raise)?;
    let target: Format = target.parse().map_err(raise)?;
    let compression: Compression = compression.parse().map_err(raise)?;
    let table = py.detach(|| Table::read(source, data.to_vec()));
    let table = table.map_err(|e| raise(format!("{name}: {e}")))?;
    let plan = py.detach(|| Plan::new(&table, &by, &root, design, devices));
    let plan = plan.map_err(raise)?;
    let (sorted, report, built) = if plan.is_empty() {
        let (sorted, report) = plan.unsorted();
        (sorted, report, None)
    } else {
        let options = RtlOptions {
            purpose: purpose(),
            ..RtlOptions::default()
        };
        let mut factory = factory(py, design, engine, &options, build)?;
        let teller = Teller::new(progress);
        let (sorted, report) = run(py, plan, &mut factory, teller)?;
        (sorted, report, Some(factory.build()))
    };
    let written = py.detach(|| sorted.write(target, compression));
    let mut value = report.to_json();
    value["design"] = design.name.clone().into();
    value["engine"] = engine.name().into();
    value["build"] = built.into();
    value["time"] = "simulated".into();
    let written = PyBytes::new(py, &written.map_err(raise)?);
    Ok((value.to_string(), written))
}

/// Sorts in a thread: Python hears of Ctrl-C in its own.
fn run(
    py: Python<'_>,
    plan: Plan<'_>,
    factory: &mut Factory,
    mut teller: Teller,
) -> PyResult<(Table, Report)> {
    let progress = Progress::default();
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let sorting = scope.spawn(|| plan.run(factory, &progress));
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
