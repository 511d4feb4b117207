// SPDX-License-Identifier: Apache-2.0

//! Lockstep runs of a design's two models.

use device::{Factory, Model, RtlOptions};
use lockstep::{Campaign, Conditions, DevicePair, Replay, Shape};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use sim::memctrl::MemoryModel;
use sim::Media;

use crate::build::{factory, model_of, root, Design};
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Cycles without a handshake, while busy, that count as a hang. The hosts' waits are short.
const HANG_CYCLES: u64 = 200_000;

/// Runs the same random sequences of `commands` commands on two models, and compares what hosts
/// see. Returns the report. `replay` is `SEED:EPISODE` or `SEED:EPISODE:STEPS`. Ctrl-C
/// while a difference is shrunk ends only the shrinking.
#[pyfunction]
#[pyo3(signature = (design, commands, seed=1, *, first_episode=0, replay=None, shrinks=60,
    per_episode=2000,
    models=("rtl", "fast"), progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn diff(
    py: Python<'_>,
    design: &Design,
    commands: u64,
    seed: u64,
    first_episode: u32,
    replay: Option<&str>,
    shrinks: u32,
    per_episode: u64,
    models: (&str, &str),
    progress: Option<Py<PyAny>>,
) -> PyResult<Document<lockstep::Report>> {
    let design = &design.inner;
    let models = [model_of(Some(models.0))?, model_of(Some(models.1))?];
    if per_episode == 0 {
        return Err(raise("per_episode = 0: at least 1 is needed"));
    }
    let shape = Shape::of(design, &root()?).map_err(raise)?;
    let replay = replay
        .map(|r| r.parse::<Replay>().map_err(raise))
        .transpose()?;
    let campaign = Campaign {
        seed,
        commands,
        per_episode,
        first_episode,
        shrinks,
        replay,
    };
    let bytes = design.media.bytes.0;
    // With assertions, as it searches for faults.
    let options = RtlOptions {
        hang_cycles: Some(HANG_CYCLES),
        // Generated hosts sometimes never answer.
        link_patience: Some(sim::Time::MAX),
        ..RtlOptions::default()
    };
    let make = |model: Model| factory(py, design, model, &options, None);
    let mut factories: [Factory; 2] = [make(models[0])?, make(models[1])?];
    let own = design.dram.clone();
    let mut reporter = ProgressReporter::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| -> Result<DevicePair, String> {
            let mut one = |n: usize| {
                let factory = &mut factories[n];
                factory.set_memory(match conditions.late_memory {
                    Some(most) => MemoryModel::Random {
                        max: most,
                        seed: conditions.seed,
                    },
                    None => MemoryModel::Ddr4(own.clone()),
                });
                let media = Media::memory(bytes).map_err(|e| e.to_string())?;
                let device = factory.device(media).map_err(|e| e.to_string())?;
                Ok::<_, String>((factory.model().name(), device))
            };
            Ok([one(0)?, one(1)?])
        };
        lockstep::run(&mut make, &shape, &campaign, &mut |done, all| {
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
