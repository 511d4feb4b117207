// SPDX-License-Identifier: Apache-2.0

//! Lockstep runs of a design's two models.

use device::{Factory, Model, RtlOptions};
use pyo3::prelude::*;
use verify::campaign::Conditions;
use verify::lockstep::{self, DevicePair, Shape};

use crate::build::{factory, model_of, Design};
use crate::campaign;
use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

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
    let episodes = (first_episode, per_episode);
    let parameters = campaign::parameters((seed, commands), episodes, shrinks, replay)?;
    let shape = Shape::of(design).map_err(raise)?;
    let options = RtlOptions {
        // Generated hosts sometimes never answer.
        link_patience: Some(sim::Time::MAX),
        ..campaign::options()
    };
    let make = |model: Model| factory(py, design, model, &options, None);
    let mut factories: [Factory; 2] = [make(models[0])?, make(models[1])?];
    let mut reporter = ProgressReporter::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| -> Result<DevicePair, String> {
            let mut one = |n: usize| {
                let device = campaign::device(&mut factories[n], design, conditions)?;
                Ok::<_, String>((factories[n].model().name(), device))
            };
            Ok([one(0)?, one(1)?])
        };
        lockstep::run(&mut make, &shape, &parameters, &mut |done, all| {
            reporter.report(done, all)
        })
    });
    campaign::report(py, reporter, outcome, |report| &report.failure)
}
