// SPDX-License-Identifier: Apache-2.0

//! Lockstep campaigns: two devices receive the same random sequence, and everything that a host
//! can see of them is compared.
//!
//! For tests of a fast model against the RTL model, without a reference model. Each episode
//! connects two fresh [`Device`]s of one design to one host each. The hosts do the same in steps. A
//! step ends where everything that a host can see is determined, independent of timing; there both
//! are compared. Where the standard leaves an order free, only permitted differences are accepted
//! (`rules`, and the crate docs).
//!
//! Modules in reading order:
//!
//! - `pair`: both devices, and the comparison after each step.
//! - `dut`, `host`, `memory`: a device under test with its host, which has a time, queues, and
//!   random timing; host memory, and writes to addresses without memory.
//! - `effects`, `content`, `locks`: effects of commands on the media, and locks on their blocks.
//! - `host_state`, `rules`: state of the hosts, and permitted differences.
//! - `steps`, `lifecycle`: the actions of the hosts: bursts, single commands, registers, the PM
//!   window, queues, resets.
//! - `jobs`, `engines`, `engine_jobs`, `tables`, `lists`: jobs of engines as steps.
//! - `kernels`: the results of engines.
//! - `silence`: data that the host never sends.
//! - `timed`: measurements of latency, and the permitted difference of means.

mod content;
mod dut;
mod effects;
mod engine_jobs;
mod engines;
mod host;
mod host_state;
mod jobs;
mod kernels;
mod lifecycle;
mod lists;
mod locks;
mod memory;
mod pair;
mod rules;
mod silence;
mod steps;
mod tables;
mod timed;

use std::collections::BTreeMap;

use design::Design;
use nvme::Namespaces;
use serde::Serialize;
use sim::{Device, Random, Time};

use crate::campaign::{
    self, add_counts, Campaign, Conditions, EpisodeEnd, EpisodeFailure, Failure, KeepRunning,
    Script, StepResult, Totals,
};
use crate::generate::Limits;
use crate::random::{chance, pick};

use dut::Dut;
use pair::LockstepPair;

pub use timed::Latency;

/// Makes the two devices of an episode, with empty media (zeros) and power.
pub type Make<'a> = dyn FnMut(&Conditions) -> Result<DevicePair, String> + 'a;

/// Two devices and their names.
pub type DevicePair = [(&'static str, Box<dyn Device + Send>); 2];

/// The common configuration of both devices.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Limits of the controller.
    limits: Limits,
    /// Bytes of the media.
    pub media_bytes: u64,
    /// Bytes of the PM window.
    pub window_bytes: u64,
    /// Number of memory channels.
    pub channels: u32,
    /// Engines.
    engines: Vec<engines::Engine>,
}

impl Shape {
    /// The configuration of a design. An error states why the design cannot be compared.
    pub fn of(design: &Design) -> Result<Shape, String> {
        let media = design.media.bytes.0;
        if media > MOST_MEDIA {
            return Err(format!(
                "media.bytes = {media}: differential runs load the whole media repeatedly; at most \
                 {MOST_MEDIA} are supported"
            ));
        }
        let sizes: Vec<u64> = match design.nvme.namespaces.is_empty() {
            true => vec![media / nvme::BLOCK_BYTES],
            false => design
                .nvme
                .namespaces
                .iter()
                .map(|bytes| bytes.0 / nvme::BLOCK_BYTES)
                .collect(),
        };
        if sizes.iter().all(|&blocks| blocks == 0) {
            return Err("nvme.namespaces: differential runs need an active one".into());
        }
        let plugged = design.engines().map_err(|e| e.to_string())?;
        let engines = plugged.iter().map(|p| engines::Engine::of(p, media));
        let engines: Vec<engines::Engine> = engines.collect::<Result<_, _>>()?;
        let opcodes = engines.iter().flat_map(|engine| engine.opcodes());
        Ok(Shape {
            limits: Limits {
                queues: design.nvme.io_queues as u16,
                entries: design.nvme.queue_entries,
                transfer: MOST_TRANSFER,
                events: 0,
                namespaces: Namespaces::new(&sizes).into(),
                doorbell_buffer: design.nvme.doorbell_buffer,
                engines: opcodes.copied().collect(),
            },
            engines,
            media_bytes: media,
            window_bytes: design.window_bytes(),
            channels: design.channels,
        })
    }

    /// The last vector: of the last engine, or of the last queue.
    fn last_vector(&self) -> u16 {
        self.limits.queues + self.engines.len() as u16
    }
}

/// Largest supported media, in bytes.
const MOST_MEDIA: u64 = 64 << 20;
/// Bytes of the largest transfer that the hosts ask for.
const MOST_TRANSFER: u64 = 1 << 20;

/// Result of a campaign. It is the same for the same seed and design.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Seed.
    pub seed: u64,
    /// Episodes.
    pub episodes: u32,
    /// Steps.
    pub steps: u64,
    /// Commands sent to both devices.
    pub commands: u64,
    /// Bytes of the media compared.
    pub compared_bytes: u64,
    /// Simulated time in ns, of each device.
    pub simulated_ns: f64,
    /// Number of commands by queue, opcode, status type and code.
    pub outcomes: BTreeMap<String, u64>,
    /// Actions, by name.
    pub kinds: BTreeMap<String, u64>,
    /// Latencies of commands, by kind.
    pub latencies: BTreeMap<String, Latency>,
    /// Differences: 0 or 1, since the first one ends the campaign.
    pub mismatches: u32,
    /// The first difference.
    pub failure: Option<Failure>,
}

impl Totals for Report {
    fn add(&mut self, episode: Report) {
        self.steps += episode.steps;
        self.commands += episode.commands;
        self.compared_bytes += episode.compared_bytes;
        self.simulated_ns += episode.simulated_ns;
        add_counts(&mut self.kinds, episode.kinds);
        add_counts(&mut self.outcomes, episode.outcomes);
        for (name, latency) in episode.latencies {
            self.latencies.entry(name).or_default().add(&latency);
        }
    }

    fn conclude(&mut self, seed: u64, episodes: u32, failure: Option<Failure>) {
        (self.seed, self.episodes) = (seed, episodes);
        self.mismatches = failure.is_some().into();
        self.failure = failure;
    }
}

/// Runs an episode on two fresh devices.
fn episode(
    make: &mut Make,
    shape: &Shape,
    script: &Script,
    keep_running: &mut KeepRunning,
) -> Result<(Report, EpisodeEnd), String> {
    let mut random = Random::new(script.seed_of(u64::MAX - 2));
    let late = chance(&mut random, 25);
    let most = pick(&mut random, &[200, 2_000, 10_000]);
    let conditions = Conditions {
        late_memory: late.then_some(Time::ns(most)),
        seed: random.next(),
    };
    let duts = make(&conditions)?.map(|(name, device)| Dut::new(name, device));
    let mut pair = LockstepPair::new(duts, shape.clone());
    pair.late = late;
    let mut end = EpisodeEnd::default();
    let result = run_steps(&mut pair, script, &mut end, keep_running);
    let history = pair.history();
    end.failure = result.err().map(|what| EpisodeFailure { what, history });
    pair.report.steps = end.steps.into();
    pair.report.simulated_ns = pair.duts[0].now.as_ns();
    Ok((pair.report, end))
}

fn run_steps(
    pair: &mut LockstepPair,
    script: &Script,
    end: &mut EpisodeEnd,
    keep_running: &mut KeepRunning,
) -> StepResult {
    pair.reseed(script.seed_of(u64::MAX));
    pair.enable_first()?;
    let done = |pair: &mut LockstepPair| Ok(pair.report.commands);
    script.run_steps(pair, end, keep_running, done, |pair, step, seed| {
        pair.reseed(seed);
        pair.note(format!("step {step} at {}", pair.duts[0].now));
        pair.step()
    })?;
    if end.stopped {
        return Ok(());
    }
    pair.reseed(script.seed_of(u64::MAX - 1));
    pair.finish()
}

/// Runs a campaign of a number of commands: see [`campaign::run`]. A difference is in the report.
pub fn run(
    make: &mut Make,
    shape: &Shape,
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, String> {
    let mut report: Report = campaign::run(campaign, progress, &mut |script, keep_running| {
        episode(make, shape, script, keep_running)
    })?;
    if report.failure.is_none() && campaign.replay.is_none() {
        let steps = report.steps as usize;
        report.failure = timed::mean_mismatch(&report.latencies).map(|what| Failure {
            what,
            replay: format!("{}:{}", campaign.seed, campaign.first_episode),
            steps,
            of_steps: steps,
            history: vec!["a mean of all episodes: only the whole campaign shows it again".into()],
        });
        report.mismatches = report.failure.is_some().into();
    }
    Ok(report)
}
