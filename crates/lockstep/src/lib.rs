// SPDX-License-Identifier: Apache-2.0

//! Lockstep runs: two devices receive the same random sequence, and everything that a host can see
//! of them is compared.
//!
//! For tests of a fast model against the RTL model, without a reference model. The hostile fuzzer
//! with a reference model is `crates/fuzz`.
//!
//! A campaign runs episodes. Each episode connects two fresh [`Device`]s of one design, for example
//! the RTL model and the fast model, to one host each. The hosts do the same in steps. A step ends
//! where everything that a host can see is determined, independent of timing; there both are
//! compared. Where the standard leaves an order free, only permitted differences are accepted
//! (`rules`, and the README).
//!
//! Every step has a separate seed. A failing sequence is run again with fewer and fewer steps, and
//! reported with the steps that it needs.
//!
//! # Modules in reading order
//!
//! - `pair`: both devices, and the comparison after each step.
//! - `dut`, `host`: a device under test with its host. The host has a time, queues, and random
//!   timing.
//! - `steps`, `lifecycle`: the actions of the hosts: bursts, single commands, registers, the PM
//!   window, queues, resets.
//! - `jobs`, `engines`, `tables`, `lists`: jobs of engines as steps, and their results.
//! - `silence`: data that the host never sends.
//! - `generate`, `buffer`: random commands, with PRPs and SGLs. Reserved bits come from
//!   `fuzz::reserved`.
//! - `timed`: measurements of latency, and the permitted difference of means.
//! - `rules`: permitted differences.
//! - `memory`: host memory, its allocator, and writes to addresses without memory.
//!
//! # Left out
//!
//! Each item names the tests that cover it instead.
//!
//! - Engines on overlapping ranges, busy lines of pages, local memory, and engines with separate
//!   namespaces or opcodes: `crates/fuzz`, `crates/device/tests/behaviour`.
//! - Two devices on links, and peer-to-peer transfers: `crates/fuzz`.
//! - Entries, lists and data of Compares that are never answered, and answers after the timeout:
//!   `crates/device/tests/behaviour/silence.rs`, cocotb.
//! - Completion queues without memory: `crates/fuzz`, cocotb.
//! - Commands beside loads and stores of the PM window: `crates/fuzz`.
//! - Shares of weighted round robin, except for mean times: cocotb.
//! - Counters of late answers, sums, extremes and buckets of latencies: `crates/fast/tests`.
//!   Traces of commands are covered by no test.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod buffer;
mod dut;
mod engines;
mod generate;
mod host;
mod jobs;
mod lifecycle;
mod lists;
mod memory;
mod pair;
mod rules;
mod silence;
mod steps;
mod tables;
mod timed;

use std::collections::{BTreeMap, BTreeSet};

use design::Design;
use fuzz::shrink::{shrink, RunFailure};
use nvme::Namespaces;
use serde::Serialize;
use sim::{Device, Random, Time};

pub use fuzz::{Conditions, Failure, Replay};

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
    /// Namespaces.
    pub namespaces: Namespaces,
    /// Number of I/O queues.
    pub queues: u16,
    /// Entries of the longest queue.
    pub entries: u32,
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
    /// The configuration of a design. An error
    /// states why the design cannot be compared.
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
        Ok(Shape {
            engines: engines.collect::<Result<_, _>>()?,
            namespaces: Namespaces::new(&sizes),
            queues: design.nvme.io_queues as u16,
            entries: design.nvme.queue_entries,
            media_bytes: media,
            window_bytes: design.window_bytes(),
            channels: design.channels,
        })
    }

    /// Opcodes of engines.
    fn opcodes(&self) -> Vec<u8> {
        let all = self.engines.iter().flat_map(|engine| engine.opcodes());
        all.copied().collect()
    }

    /// The last vector: of the last engine, or of the last queue.
    fn last_vector(&self) -> u16 {
        self.queues + self.engines.len() as u16
    }
}

/// Largest supported media, in bytes.
const MOST_MEDIA: u64 = 64 << 20;
/// Most steps of an episode.
const MOST_STEPS: u32 = 1 << 20;

/// Parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seed of all random choices.
    pub seed: u64,
    /// Commands in total; the last episode may exceed it.
    pub commands: u64,
    /// Commands of an episode.
    pub per_episode: u64,
    /// Number of the first episode.
    pub first_episode: u32,
    /// Most attempts to shorten a failing episode.
    pub shrinks: u32,
    /// The only episode, or steps, to run.
    pub replay: Option<Replay>,
}

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

/// Result of an episode.
struct EpisodeResult {
    steps: u32,
    commands: u64,
    compared: u64,
    time: Time,
    outcomes: BTreeMap<String, u64>,
    kinds: BTreeMap<String, u64>,
    latencies: BTreeMap<String, Latency>,
    failure: Option<(String, Vec<String>)>,
    stopped: bool,
}

/// A seed that depends on all of its parts.
fn mix(parts: [u64; 3]) -> u64 {
    let start = 0x7477_696E_7365_6564;
    parts
        .iter()
        .fold(start, |seed, &part| Random::new(seed ^ part).next())
}

/// Runs an episode, or some of its steps. `keep_running` receives the completed commands, and ends
/// the episode by returning false.
fn episode(
    make: &mut Make,
    shape: &Shape,
    (seed, number): (u64, u32),
    commands: u64,
    steps: Option<&BTreeSet<u32>>,
    keep_running: &mut dyn FnMut(u64) -> bool,
) -> Result<EpisodeResult, String> {
    let of = |step: u64| mix([seed, number.into(), step]);
    let mut random = Random::new(of(u64::MAX - 2));
    let late = buffer::chance(&mut random, 25);
    let most = buffer::pick(&mut random, &[200, 2_000, 10_000]);
    let conditions = Conditions {
        late_memory: late.then_some(Time::ns(most)),
        seed: random.next(),
    };
    let duts = make(&conditions)?.map(|(name, device)| Dut::new(name, device));
    let mut pair = LockstepPair::new(duts, shape.clone());
    pair.late = late;
    let (mut last, mut stopped) = (0, false);
    let mut play = |pair: &mut LockstepPair| {
        pair.reseed(of(u64::MAX));
        pair.enable_first()?;
        let mut kept = steps.map(|s| s.iter().copied());
        loop {
            let step = match &mut kept {
                Some(kept) => kept.next(),
                None => (pair.commands < commands && last < MOST_STEPS).then_some(last),
            };
            let Some(step) = step else { break };
            if !keep_running(pair.commands) {
                stopped = true;
                return Ok(());
            }
            last = step + 1;
            pair.reseed(of(step.into()));
            pair.note(format!("step {step} at {}", pair.duts[0].now));
            pair.step()?;
        }
        pair.reseed(of(u64::MAX - 1));
        pair.finish()
    };
    let result: Result<(), String> = play(&mut pair);
    Ok(EpisodeResult {
        steps: last,
        commands: pair.commands,
        compared: pair.compared,
        time: pair.duts[0].now,
        failure: result.err().map(|what| (what, pair.history())),
        outcomes: pair.outcomes,
        kinds: pair.kinds,
        latencies: pair.latencies,
        stopped,
    })
}

/// Runs a campaign. `progress` receives the commands completed and requested, and stops the
/// campaign by returning false. It is an error if no device can be made; a difference is in the
/// report.
pub fn run(
    make: &mut Make,
    shape: &Shape,
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, String> {
    let replay = campaign.replay.as_ref();
    let seed = replay.map_or(campaign.seed, |r| r.seed);
    let mut number = replay.map_or(campaign.first_episode, |r| r.episode);
    let mut report = Report {
        seed,
        ..Report::default()
    };
    let per_episode = campaign.per_episode.max(1);
    loop {
        let left = campaign.commands.saturating_sub(report.commands);
        let amount = match replay {
            Some(_) => per_episode,
            None => per_episode.min(left.max(1)),
        };
        let kept = replay.and_then(|r| r.steps.as_ref());
        let (before, most) = (report.commands, campaign.commands.saturating_sub(1));
        let mut keep_running = |done: u64| progress((before + done).min(most), campaign.commands);
        let outcome = episode(make, shape, (seed, number), amount, kept, &mut keep_running)?;
        report.episodes += 1;
        report.steps += u64::from(outcome.steps);
        report.commands += outcome.commands;
        report.compared_bytes += outcome.compared;
        report.simulated_ns += outcome.time.as_ns();
        for (kind, count) in &outcome.kinds {
            *report.kinds.entry(kind.clone()).or_default() += count;
        }
        for (name, count) in &outcome.outcomes {
            *report.outcomes.entry(name.clone()).or_default() += count;
        }
        for (name, latency) in &outcome.latencies {
            report
                .latencies
                .entry(name.clone())
                .or_default()
                .add(latency);
        }
        if let Some((what, history)) = outcome.failure {
            report.mismatches = 1;
            let all: Vec<u32> = match kept {
                Some(steps) => steps
                    .iter()
                    .copied()
                    .take_while(|&s| s < outcome.steps)
                    .collect(),
                None => (0..outcome.steps).collect(),
            };
            let of_steps = all.len();
            let mut tries = 0;
            let tried = RunFailure { what, history };
            let shrunk = shrink(all, tried, campaign.shrinks, &mut |steps| {
                tries += 1;
                let mut keep_running = |_| progress(tries, campaign.shrinks.into());
                let again = episode(
                    make,
                    shape,
                    (seed, number),
                    amount,
                    Some(steps),
                    &mut keep_running,
                )?;
                Ok(fuzz::shrink::Rerun {
                    steps: again.steps,
                    stopped: again.stopped,
                    failure: again
                        .failure
                        .map(|(what, history)| RunFailure { what, history }),
                })
            })?;
            let (kept, RunFailure { what, history }) = shrunk;
            let steps = kept.len();
            let replay = Replay {
                seed,
                episode: number,
                steps: Some(kept.into_iter().collect()),
            };
            report.failure = Some(Failure {
                what,
                replay: replay.to_string(),
                steps,
                of_steps,
                history,
            });
            break;
        }
        if outcome.stopped || replay.is_some() || report.commands >= campaign.commands {
            break;
        }
        if !progress(report.commands, campaign.commands) {
            break;
        }
        number = number.wrapping_add(1);
    }
    if report.failure.is_none() && replay.is_none() {
        if let Some(what) = timed::mean_mismatch(&report.latencies) {
            report.mismatches = 1;
            report.failure = Some(Failure {
                what,
                replay: Replay {
                    seed,
                    episode: campaign.first_episode,
                    steps: None,
                }
                .to_string(),
                steps: report.steps as usize,
                of_steps: report.steps as usize,
                history: vec![
                    "a mean of all episodes: only the whole campaign shows it again".into(),
                ],
            });
        }
    }
    progress(campaign.commands, campaign.commands);
    Ok(report)
}
