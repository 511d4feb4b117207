// SPDX-License-Identifier: Apache-2.0

//! Campaigns: episodes of random steps, run until one fails.
//!
//! Every step of an episode has a separate seed, so a subset of the steps can be run again. A
//! failing episode is run again with fewer and fewer steps, and reported with the steps that it
//! needs: [`Replay`] names them. The same seed and design give the same run.

mod replay;
mod shrink;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sim::memctrl::MemoryModel;
use sim::{Random, Time};

pub use replay::Replay;

use shrink::shrink;

/// Most steps of an episode.
const MOST_STEPS: u32 = 1 << 20;

/// Result of a step: an error describes the failure.
pub type StepResult<T = ()> = Result<T, String>;

/// Receives the completed part of an episode's amount before each step; ends the episode by
/// returning false.
pub type KeepRunning<'a> = dyn FnMut(u64) -> bool + 'a;

/// Conditions of an episode's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Longest latency of the memory, random for each access; the design's memory if `None`.
    pub late_memory: Option<Time>,
    /// Seed of everything that the device leaves open.
    pub seed: u64,
}

impl Conditions {
    /// The memory of a device. `design` is that of its design.
    pub fn memory(&self, design: &MemoryModel) -> MemoryModel {
        match self.late_memory {
            Some(max) => MemoryModel::Random {
                max,
                seed: self.seed,
            },
            None => design.clone(),
        }
    }
}

/// Parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seed of all random choices.
    pub seed: u64,
    /// What is to be done in total: commands, or bytes of the media. The last episode may exceed
    /// it.
    pub amount: u64,
    /// The amount of an episode.
    pub per_episode: u64,
    /// Number of the first episode.
    pub first_episode: u32,
    /// Most attempts to shorten a failing episode.
    pub shrinks: u32,
    /// The only episode, or steps, to run.
    pub replay: Option<Replay>,
}

/// A failure of a device: a mismatch or a difference.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Description of the failure.
    pub what: String,
    /// The string that reproduces it: see [`Replay`].
    pub replay: String,
    /// Number of steps that are needed to reproduce it.
    pub steps: usize,
    /// Number of steps that were run.
    pub of_steps: usize,
    /// The last events before it.
    pub history: Vec<String>,
}

/// The failure of an episode.
#[derive(Clone, Debug, Default)]
pub struct EpisodeFailure {
    /// Description of the failure.
    pub what: String,
    /// The last events before it.
    pub history: Vec<String>,
}

/// How an episode has ended.
#[derive(Clone, Debug, Default)]
pub struct EpisodeEnd {
    /// Steps begun, by the number of the last step.
    pub steps: u32,
    /// What was done, in the unit of [`Campaign::amount`].
    pub done: u64,
    /// It was ended from outside.
    pub stopped: bool,
    /// The failure, if the episode failed.
    pub failure: Option<EpisodeFailure>,
}

/// Counts of episodes, and the report of a campaign.
pub trait Totals: Default {
    /// Adds the counts of an episode.
    fn add(&mut self, episode: Self);

    /// Adds what the campaign knows: its seed, the number of episodes, and the failure.
    fn conclude(&mut self, seed: u64, episodes: u32, failure: Option<Failure>);
}

/// Adds counts by name.
pub fn add_counts(to: &mut BTreeMap<String, u64>, from: BTreeMap<String, u64>) {
    for (name, count) in from {
        *to.entry(name).or_default() += count;
    }
}

/// An episode to run, and its extent.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the episode.
    pub episode: u32,
    /// What is to be done.
    pub amount: u64,
    /// Only these steps.
    pub steps: Option<&'a BTreeSet<u32>>,
}

impl Script<'_> {
    /// The seed of a step, or of a part outside of the steps: 2^64 - 1 and down.
    pub fn seed_of(&self, step: u64) -> u64 {
        let parts = [self.seed, self.episode.into(), step];
        parts.iter().fold(0x6E65_6172_7369_6465, |seed, &part| {
            Random::new(seed ^ part).next()
        })
    }

    /// Runs the steps. `done` queries the completed part of the amount. `step` receives the number
    /// of a step and its seed.
    pub fn run_steps<H>(
        &self,
        host: &mut H,
        end: &mut EpisodeEnd,
        keep_running: &mut KeepRunning,
        mut done: impl FnMut(&mut H) -> StepResult<u64>,
        mut step: impl FnMut(&mut H, u32, u64) -> StepResult,
    ) -> StepResult {
        let mut kept = self.steps.map(|steps| steps.iter().copied());
        loop {
            end.done = done(host)?;
            let next = match &mut kept {
                Some(steps) => steps.next(),
                None => (end.done < self.amount && end.steps < MOST_STEPS).then_some(end.steps),
            };
            let Some(number) = next else { return Ok(()) };
            if !keep_running(end.done) {
                end.stopped = true;
                return Ok(());
            }
            end.steps = number + 1;
            step(host, number, self.seed_of(number.into()))?;
        }
    }
}

/// Runs an episode on fresh devices. It is an error if no device can be made.
pub type RunEpisode<'a, R> =
    dyn FnMut(&Script, &mut KeepRunning) -> Result<(R, EpisodeEnd), String> + 'a;

/// Runs a campaign. `progress` receives the amount completed and requested, and stops the campaign
/// by returning false. It is an error if no device can be made; a failure is in the report.
pub fn run<R: Totals>(
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
    episode: &mut RunEpisode<R>,
) -> Result<R, String> {
    let replay = campaign.replay.as_ref();
    let (seed, amount) = (replay.map_or(campaign.seed, |r| r.seed), campaign.amount);
    let mut number = replay.map_or(campaign.first_episode, |r| r.episode);
    let per_episode = campaign.per_episode.max(1);
    let (mut report, mut episodes, mut done) = (R::default(), 0, 0u64);
    let failure = loop {
        let script = Script {
            seed,
            episode: number,
            amount: match replay {
                Some(_) => per_episode,
                None => per_episode.min(amount.saturating_sub(done).max(1)),
            },
            steps: replay.and_then(|r| r.steps.as_ref()),
        };
        let most = amount.saturating_sub(1);
        let mut keep_running = |more: u64| progress((done + more).min(most), amount);
        let (counts, end) = episode(&script, &mut keep_running)?;
        episodes += 1;
        done += end.done;
        report.add(counts);
        if end.failure.is_some() {
            break Some(shorten(&script, end, campaign.shrinks, progress, episode)?);
        }
        // An episode can end before its first step.
        if end.stopped || replay.is_some() || done >= amount || !progress(done, amount) {
            break None;
        }
        // The episode numbers wrap: there are 2^32 of them.
        number = number.wrapping_add(1);
    };
    report.conclude(seed, episodes, failure);
    progress(amount, amount);
    Ok(report)
}

/// Removes steps of a failing episode as long as it fails.
fn shorten<R>(
    script: &Script,
    end: EpisodeEnd,
    shrinks: u32,
    progress: &mut dyn FnMut(u64, u64) -> bool,
    episode: &mut RunEpisode<R>,
) -> Result<Failure, String> {
    let all: Vec<u32> = match script.steps {
        Some(steps) => steps.range(..end.steps).copied().collect(),
        None => (0..end.steps).collect(),
    };
    let of_steps = all.len();
    let mut tries = 0;
    let failure = end.failure.unwrap_or_default();
    let (kept, EpisodeFailure { what, history }) = shrink(all, failure, shrinks, &mut |fewer| {
        tries += 1;
        let steps = Some(fewer);
        let mut keep_running = |_| progress(tries, shrinks.into());
        Ok(episode(&Script { steps, ..*script }, &mut keep_running)?.1)
    })?;
    let steps = kept.len();
    let replay = Replay {
        seed: script.seed,
        episode: script.episode,
        steps: Some(kept.into_iter().collect()),
    };
    Ok(Failure {
        what,
        replay: replay.to_string(),
        steps,
        of_steps,
        history,
    })
}
