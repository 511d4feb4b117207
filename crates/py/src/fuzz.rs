// SPDX-License-Identifier: Apache-2.0

//! The fuzzer on a design's device.

use pyo3::prelude::*;
use verify::campaign::Conditions;
use verify::nearpm;
use verify::oracle::{self, Target};

use crate::build::{factory, model_of, Design};
use crate::campaign;
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Least clock of a device that is checked against the limits of the model, which are times.
const LEAST_MHZ: u32 = 50;

/// Runs a campaign of a number of commands, or bytes if `calm` (a soak). Returns its report.
/// A device with the engine `nearpm` gets commands of that engine. `replay` is `SEED:EPISODE`
/// or `SEED:EPISODE:STEPS`. Ctrl-C while a failure is shrunk ends only the shrinking.
#[pyfunction]
#[pyo3(signature = (design, amount, seed=1, *, calm=false, first_episode=0, replay=None, shrinks=60,
    per_episode=2000, torn_blocks=false, model=None, progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn fuzz(
    py: Python<'_>,
    design: &Design,
    amount: u64,
    seed: u64,
    calm: bool,
    first_episode: u32,
    replay: Option<&str>,
    shrinks: u32,
    per_episode: u64,
    torn_blocks: bool,
    model: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Document<oracle::Report>> {
    let design = &design.inner;
    let model = model_of(model)?;
    let episodes = (first_episode, per_episode);
    let parameters = campaign::parameters((seed, amount), episodes, shrinks, replay)?;
    if design.clock_mhz < LEAST_MHZ {
        let mhz = design.clock_mhz;
        let text = format!(
            "clock_mhz = {mhz}: the time limits of the fuzzer's model are for \
            {LEAST_MHZ} MHz and more"
        );
        return Err(raise(text));
    }
    let engines = design.engines().map_err(raise)?;
    // Commands of that engine replace those of the controller, except in a soak.
    let page = engines
        .iter()
        .find(|e| e.manifest.name == "nearpm" && !calm);
    let page = page.and_then(|engine| engine.page);
    let target = Target {
        valid_only: calm,
        media_bytes: design.media.bytes.0,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks,
    };
    let mut factory = factory(py, design, model, &campaign::options(), None)?;
    let mut reporter = ProgressReporter::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| {
            factory.vary_registers(conditions.seed);
            campaign::device(&mut factory, design, conditions)
        };
        let mut progress = |done, all| reporter.report(done, all);
        let bytes = design.media.bytes.0;
        match page {
            Some(page) => nearpm::run(&mut make, bytes, page, &parameters, &mut progress),
            None => oracle::run(&mut make, &target, &parameters, &mut progress),
        }
    });
    campaign::report(py, reporter, outcome, |report| &report.failure)
}
