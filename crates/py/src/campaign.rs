// SPDX-License-Identifier: Apache-2.0

//! What campaigns of random input have in common.

use device::{Factory, RtlOptions};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use sim::memctrl::MemoryModel;
use sim::{Device, Media};
use verify::campaign::{Campaign, Conditions, Failure};

use crate::document::Document;
use crate::error::raise;
use crate::progress::ProgressReporter;

/// Cycles without a handshake, while busy, that count as a hang. The hosts' waits are short.
const HANG_CYCLES: u64 = 200_000;

/// Options of the RTL model: with assertions, as a campaign searches for faults.
pub fn options() -> RtlOptions {
    RtlOptions {
        hang_cycles: Some(HANG_CYCLES),
        ..RtlOptions::default()
    }
}

/// The parameters of a campaign; refuses invalid ones. `replay` is `SEED:EPISODE` or
/// `SEED:EPISODE:STEPS`.
pub fn parameters(
    (seed, amount): (u64, u64),
    (first_episode, per_episode): (u32, u64),
    shrinks: u32,
    replay: Option<&str>,
) -> PyResult<Campaign> {
    if per_episode == 0 {
        return Err(raise("per_episode = 0: at least 1 is needed"));
    }
    Ok(Campaign {
        seed,
        amount,
        per_episode,
        first_episode,
        shrinks,
        replay: replay.map(|r| r.parse().map_err(raise)).transpose()?,
    })
}

/// A device of an episode, with empty media.
pub fn device(
    factory: &mut Factory,
    design: &design::Design,
    conditions: &Conditions,
) -> Result<Box<dyn Device + Send>, String> {
    let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
    factory.set_memory(conditions.memory(&MemoryModel::Ddr4(design.dram.clone())));
    factory.device(media).map_err(|e| e.to_string())
}

/// The report. Ctrl-C while a failure was shrunk has ended only the shrinking.
pub fn report<R: serde::Serialize>(
    py: Python<'_>,
    mut reporter: ProgressReporter,
    outcome: Result<R, String>,
    failure: impl Fn(&R) -> &Option<Failure>,
) -> PyResult<Document<R>> {
    let found = outcome
        .as_ref()
        .is_ok_and(|report| failure(report).is_some());
    let interrupted = |e: &PyErr| e.is_instance_of::<PyKeyboardInterrupt>(py);
    if found && reporter.raised.as_ref().is_some_and(interrupted) {
        reporter.raised = None;
    }
    Ok(Document(reporter.finish(outcome)?))
}
