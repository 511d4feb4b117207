// SPDX-License-Identifier: Apache-2.0

//! Crash campaigns on a design's device.

use ::crash::{Campaign, Executor, InjectedFault};
use device::RtlOptions;
use pm::Mechanism;
use pyo3::prelude::*;

use crate::build::{factory, model_of, Design};
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Runs a crash campaign: cuts the power of a workload at many points, and checks what each cut
/// leaves. Returns the report.
#[pyfunction]
#[pyo3(signature = (design, workload, mechanism, by, cuts, transactions=24, seed=1, *,
    without=None, jobs=1, model=None, progress=None, devices=1, synchronise="devices",
    tracked=false, later=None, words=false))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn crash_test(
    py: Python<'_>,
    design: &Design,
    workload: &str,
    mechanism: &str,
    by: &str,
    cuts: &str,
    transactions: u64,
    seed: u64,
    without: Option<&str>,
    jobs: usize,
    model: Option<&str>,
    progress: Option<Py<PyAny>>,
    devices: usize,
    synchronise: &str,
    tracked: bool,
    later: Option<u64>,
    words: bool,
) -> PyResult<Document> {
    let design = &design.inner;
    let model = model_of(model)?;
    let without = without.map(str::parse::<InjectedFault>).transpose();
    let campaign = Campaign {
        workload: workload.to_string(),
        mechanism: mechanism.parse::<Mechanism>().map_err(raise)?,
        tracked,
        executor: by.parse::<Executor>().map_err(raise)?,
        devices,
        synchronise: synchronise.parse().map_err(raise)?,
        transactions,
        seed,
        cuts: cuts.parse().map_err(raise)?,
        later,
        words,
        fault: without.map_err(raise)?,
        jobs,
    };
    campaign.validate().map_err(raise)?;
    // With assertions, as it searches for faults.
    let factory = factory(py, design, model, &RtlOptions::default(), None)?;
    let mut reporter = ProgressReporter::new(progress);
    let outcome = py.detach(|| {
        let mut report = |done, all| reporter.report(done, all);
        ::crash::run(&factory, &campaign, &mut report)
    });
    Ok(Document(reporter.finish(outcome)?.json()))
}

/// Allowed values of a crash campaign: workloads, mechanisms, executors, fault injections.
#[pyfunction]
pub fn crash_names() -> [Vec<&'static str>; 4] {
    let by = Executor::ALL.iter().map(|one| one.name());
    let without = InjectedFault::ALL.iter().map(|one| one.name());
    [
        workloads::NAMES.to_vec(),
        Mechanism::ALL.map(Mechanism::name).to_vec(),
        by.collect(),
        without.collect(),
    ]
}
