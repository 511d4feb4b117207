// SPDX-License-Identifier: Apache-2.0

//! Costs of crash consistency: copies and transactions of persistent memory.

use device::{Factory, RtlOptions};
use pm_bench::{Benchmark, Copies, Progress, Timeline, Transactions};
use pyo3::prelude::*;
use serde::Serialize;

use crate::build::{factory, model_of, purpose, Design};
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Measures on the platform of a design.
pub(crate) fn measured<R: Send>(
    py: Python<'_>,
    design: &design::Design,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    measure: impl FnOnce(&Factory, Progress<'_>) -> pm_bench::Result<R> + Send,
) -> PyResult<R> {
    let model = model_of(model)?;
    let options = RtlOptions {
        purpose: purpose(),
        ..RtlOptions::default()
    };
    let factory = factory(py, design, model, &options, build)?;
    let mut reporter = ProgressReporter::new(progress);
    let ran = py.detach(|| measure(&factory, &mut |done, total| reporter.report(done, total)));
    reporter.finish(ran)
}

/// A result with its keys in alphabetical order.
pub(crate) fn document(value: impl Serialize) -> PyResult<Document> {
    serde_json::to_value(value).map(Document).map_err(raise)
}

/// Copies persistent data, one copy after the other: "streamed" or "cached" by the CPU, by the
/// engine until copies are "accepted" or have "ended".
#[pyfunction]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
#[pyo3(signature = (design, way, bytes, count, seed=1, model=None, build=None, progress=None))]
pub fn pm_copies(
    py: Python<'_>,
    design: &Design,
    way: &str,
    bytes: u64,
    count: u64,
    seed: u64,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Document> {
    let way = way.parse().map_err(raise)?;
    let copies = Copies {
        way,
        bytes,
        count,
        seed,
    };
    copies.validate().map_err(raise)?;
    let measure = |p: &Factory, tell: Progress<'_>| copies.measure(p, tell);
    let took = measured(py, &design.inner, model, build, progress, measure)?;
    document(took)
}

/// Inserts into a B-tree of persistent memory, one transaction each.
#[pyfunction]
#[pyo3(signature = (design, mechanism, offloaded, fence, inserts, work_ns, threads, seed,
    model=None, build=None, progress=None, devices=1, synchronise="devices",
    tracked=false, group=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn pm_transactions(
    py: Python<'_>,
    design: &Design,
    mechanism: &str,
    offloaded: bool,
    fence: &str,
    inserts: u64,
    work_ns: f64,
    threads: u64,
    seed: u64,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    devices: usize,
    synchronise: &str,
    tracked: bool,
    group: Option<u64>,
) -> PyResult<Document> {
    let transactions = Transactions {
        tracked,
        inserts,
        work_ns,
        threads,
        seed,
        devices,
        group,
        synchronise: synchronise.parse().map_err(raise)?,
        ..Transactions::from_names(mechanism, offloaded, fence).map_err(raise)?
    };
    transactions.validate().map_err(raise)?;
    let measure = |p: &Factory, tell: Progress<'_>| transactions.measure(p, tell);
    let ran = measured(py, &design.inner, model, build, progress, measure)?;
    document(ran)
}

/// Runs the transactions of a benchmark. The result has the time in which CPU and units
/// work at once.
#[pyfunction]
#[pyo3(signature = (design, workload, mechanism, offloaded, fence, transactions, work_ns, seed,
    build=None, progress=None, devices=1, synchronise="devices",
    tracked=false, group=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn pm_benchmark(
    py: Python<'_>,
    design: &Design,
    workload: &str,
    mechanism: &str,
    offloaded: bool,
    fence: &str,
    transactions: u64,
    work_ns: f64,
    seed: u64,
    build: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    devices: usize,
    synchronise: &str,
    tracked: bool,
    group: Option<u64>,
) -> PyResult<Document> {
    let (fence, ordered) = ::pm_bench::parse_fence_and_order(fence).map_err(raise)?;
    let benchmark = Benchmark {
        workload: workload.to_string(),
        mechanism: mechanism.parse().map_err(raise)?,
        offloaded,
        tracked,
        fence,
        ordered,
        transactions,
        work_ns,
        seed,
        devices,
        group,
        synchronise: synchronise.parse().map_err(raise)?,
    };
    benchmark.validate().map_err(raise)?;
    let measure = |p: &Factory, tell: Progress<'_>| benchmark.measure(p, tell);
    let performed = measured(py, &design.inner, Some("fast"), build, progress, measure)?;
    document(performed)
}

/// The activity of CPU and units over time, during transactions that change several objects each.
///
#[pyfunction]
#[pyo3(signature = (design, mechanism, offloaded, objects, bytes, transactions, devices=1,
    synchronise="devices", tracked=false, build=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn pm_timeline(
    py: Python<'_>,
    design: &Design,
    mechanism: &str,
    offloaded: bool,
    objects: u64,
    bytes: u64,
    transactions: u64,
    devices: usize,
    synchronise: &str,
    tracked: bool,
    build: Option<Py<PyAny>>,
) -> PyResult<Document> {
    let timeline = Timeline {
        mechanism: mechanism.parse().map_err(raise)?,
        tracked,
        offloaded,
        devices,
        synchronise: synchronise.parse().map_err(raise)?,
        objects,
        bytes,
        transactions,
    };
    timeline.validate().map_err(raise)?;
    let measure = |p: &Factory, _: Progress<'_>| timeline.measure(p);
    let drawn = measured(py, &design.inner, Some("fast"), build, None, measure)?;
    document(drawn)
}
