// SPDX-License-Identifier: Apache-2.0

//! The fuzzer on a design's device.

use ::fuzz::{Campaign, Conditions, Replay};
use device::RtlOptions;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use sim::memctrl::MemoryModel;
use sim::{Device, Media};

use crate::build::{factory, model_of, root, Design};
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Cycles without a handshake, while busy, that count as a hang. The fuzzer's waits are short.
const HANG_CYCLES: u64 = 200_000;
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
) -> PyResult<Document<::fuzz::Report>> {
    let design = &design.inner;
    let model = model_of(model)?;
    if per_episode == 0 {
        return Err(raise("per_episode = 0: at least 1 is needed"));
    }
    if design.clock_mhz < LEAST_MHZ {
        let mhz = design.clock_mhz;
        let text = format!(
            "clock_mhz = {mhz}: the time limits of the fuzzer's model are for \
            {LEAST_MHZ} MHz and more"
        );
        return Err(raise(text));
    }
    let engines = design.engines(&root()?).map_err(raise)?;
    // Commands of that engine replace those of the controller, except in a soak.
    let nearpm = engines
        .iter()
        .find(|e| e.manifest.name == "nearpm" && !calm);
    let nearpm = nearpm.and_then(|engine| engine.page);
    let replay = replay
        .map(|r| r.parse::<Replay>().map_err(raise))
        .transpose()?;
    let campaign = Campaign {
        seed,
        amount,
        valid_only: calm,
        media_bytes: design.media.bytes.0,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks,
        nearpm,
        first_episode,
        per_episode,
        shrinks,
        replay,
    };
    let bytes = design.media.bytes.0;
    // With assertions, as it searches for faults.
    let options = RtlOptions {
        hang_cycles: Some(HANG_CYCLES),
        ..RtlOptions::default()
    };
    let mut factory = factory(py, design, model, &options, None)?;
    let own = design.dram.clone();
    let mut reporter = ProgressReporter::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
            let media = Media::memory(bytes).map_err(|e| e.to_string())?;
            factory.set_memory(match conditions.late_memory {
                Some(most) => MemoryModel::Random {
                    max: most,
                    seed: conditions.seed,
                },
                None => MemoryModel::Ddr4(own.clone()),
            });
            factory.vary_registers(conditions.seed);
            factory.device(media).map_err(|e| e.to_string())
        };
        ::fuzz::run(&mut make, &campaign, &mut |done, all| {
            reporter.report(done, all)
        })
    });
    let found = outcome
        .as_ref()
        .is_ok_and(|report| report.failure.is_some());
    let interrupted = |e: &PyErr| e.is_instance_of::<PyKeyboardInterrupt>(py);
    if found && reporter.raised.as_ref().is_some_and(interrupted) {
        reporter.raised = None;
    }
    Ok(Document(reporter.finish(outcome)?))
}
