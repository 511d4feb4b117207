// SPDX-License-Identifier: Apache-2.0

//! Fuzzing of NVMe controllers against a reference model.
//!
//! For tests of any `sim::Device`: random, malformed and hostile input, checked access by access.
//! Differential runs of two devices are in `crates/lockstep`.
//!
//! A campaign runs episodes. Each episode connects a fresh [`Device`] to a hostile host. The host
//! sends random and malformed admin and I/O commands. Its PRPs and SGLs have offsets, rings, and
//! addresses without memory. It sends fused pairs and halves, formats and bad doorbells, accesses
//! the PM window, and resets the device at any time. Every access of the device to its host is
//! checked as it arrives ([`HostModel`](host_model::HostModel)). The stored data are compared with
//! a model of the media, at each read and as a whole at the end. Nothing may be lost, hang, or
//! reach an address that no command names.
//!
//! Every step of an episode has a separate seed. A failing episode is run again with fewer and
//! fewer steps, and reported with the steps that it needs: [`Replay`] names them.
//!
//! # Modules in reading order
//!
//! - `episode`: one episode of a device. Its submodules are `reset` (resets) and `window` (the PM
//!   window).
//! - `generate`: random commands. `generate_engines`, `generate_tables` and `generate_lists` make
//!   commands of engines; `buffer` and `generate_sgl` make their PRPs and SGLs.
//! - [`reserved`]: random bits in every field that has no effect.
//! - `host_model`: checks each access of the device as it arrives. Its submodules are `port`
//!   (timing), `completion`, `pairs` (fused commands in flight), `messages` (interrupts) and
//!   `scoreboard` (data of a Read).
//! - `model`: the reference model, with `nvm`, [`engines`], `tables`, `lists`, `fused`,
//!   `features` and `namespaces`. The decoding of fields, PRPs, SGLs and namespaces is in
//!   `crates/nvme`.
//! - `media`, `block`, `block_view`: possible contents of the media, of a block, and their view
//!   by a reader.
//! - `memory`, `walk`, `prp`, `sgl`, `shadow`: host memory, transfers in it, and shadow
//!   doorbells.
//! - `rig`: two devices in one `sim::System`.
//! - `nearpm`: episodes of the engine `nearpm`.
//! - [`shrink`]: shortens a failing sequence of steps.
//!
//! # Left out
//!
//! Each item names the tests that cover it instead.
//!
//! - Hosts that never answer (completion timeout, 25 ms and more): `silent_reads` and others in
//!   `hw/ip/nvme_ctrl/dv/cocotb_ctrl_data.py`.
//! - A first fused command whose partner finds no room for 25 ms, and the atomicity of fused
//!   commands for other commands (`atomic`): `cocotb_ctrl_fused.py`.
//! - Content of logs and Identify pages, which are read once and then compared with themselves:
//!   `identify`, `log_ranges` and others in `cocotb_logs.py`.
//! - Errors of the memory: `bus_errors` in `cocotb_ctrl.py`.
//! - Shares of weighted round robin: `cocotb_queues.py`.
//! - A device that loses power while another one accesses its media: `power.rs` and `peers.rs` in
//!   `crates/sim/tests/link`, without a controller.
//! - More than two devices: `peers.rs` (order of devices), without a controller.
//! - Registers and command pages of engines, the local memory, and namespaces that an engine may
//!   not access: `tests/test_engines.py`, `test_scan.py`, `test_pages.py`, `test_memories.py`,
//!   and `pages.rs` in `crates/device/tests/behaviour`.
//! - Output of the engines that sort tables: `tables/` in
//!   `crates/device/tests/behaviour/engines`, and `crates/lockstep`. The model permits any bytes
//!   in the ranges that a command names, and none outside.
//! - Reports of lists, and a valid list that is refused because it may have been overwritten:
//!   `tables/pipeline.rs` in the same folder, and `crates/lockstep`.
//!
//! No test covers these:
//!
//! - Invalid values of registers of I/O queues while shadow doorbells are in use, and invalid
//!   values of shadow doorbells.
//! - An SGL or a list at an address that data of the same command are written to.
//! - Queues in another device's media, and a device that accesses its media through the host.
//! - The order of two commands of one engine with the same target: the model permits parts of
//!   both.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block;
mod block_view;
mod buffer;
pub mod engines;
mod episode;
mod features;
mod fused;
mod generate;
mod generate_engines;
mod generate_lists;
mod generate_sgl;
mod generate_tables;
mod host_model;
mod lists;
mod media;
mod memory;
mod model;
mod namespaces;
mod nearpm;
mod nvm;
mod prp;
pub mod reserved;
mod rig;
mod sgl;
mod shadow;
pub mod shrink;
mod tables;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sim::{Device, Time};

use episode::{EpisodeResult, KeepRunning, Script};
use shrink::{Rerun, RunFailure};

pub use episode::WINDOW_BYTES;

/// Makes a device with empty media (zeros) and power.
pub type Make<'a> = dyn FnMut(&Conditions) -> Result<Box<dyn Device + Send>, String> + 'a;

/// Conditions of an episode's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Longest latency of the memory, random for each access; the design's memory if `None`.
    pub late_memory: Option<Time>,
    /// Seed of everything that the device leaves open.
    pub seed: u64,
}

/// Parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seed of all random choices.
    pub seed: u64,
    /// Commands in total, or bytes of the media if `valid_only`; the last episode may exceed it.
    pub amount: u64,
    /// Commands, or bytes, of one episode.
    pub per_episode: u64,
    /// Number of the first episode.
    pub first_episode: u32,
    /// A soak: valid commands only, no resets.
    pub valid_only: bool,
    /// Most attempts to shorten a failing episode.
    pub shrinks: u32,
    /// Bytes of the device's media.
    pub media_bytes: u64,
    /// Bytes at the end of the media that belong to no namespace. With [`WINDOW_BYTES`] of them,
    /// some episodes have two devices that use each other's bytes. With fewer, no episode has two
    /// devices.
    pub unclaimed_bytes: u64,
    /// Accepts blocks that hold parts of several contents.
    pub torn_blocks: bool,
    /// Offset in BAR4 of the command page of an engine `nearpm`. If given, the campaign sends
    /// commands to this engine, and none to the controller.
    pub nearpm: Option<u64>,
    /// The only episode, or steps, to run.
    pub replay: Option<Replay>,
}

/// An episode, or some of its steps: `SEED:EPISODE` or `SEED:EPISODE:STEPS` with steps such as
/// `0-7,12`. The steps are `none` for a failure that needs only the start and the end of the
/// episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the episode.
    pub episode: u32,
    /// Its steps; all of them if `None`.
    pub steps: Option<BTreeSet<u32>>,
}

/// Stands for an empty list of steps: an empty string is more likely a mistake.
const NO_STEPS: &str = "none";

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seed, self.episode)?;
        let Some(steps) = &self.steps else {
            return Ok(());
        };
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &step in steps {
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == step => last.1 = step,
                _ => ranges.push((step, step)),
            }
        }
        let text = ranges.iter().map(|&(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        });
        let text = text.collect::<Vec<_>>().join(",");
        write!(f, ":{}", if text.is_empty() { NO_STEPS } else { &text })
    }
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Replay, String> {
        let bad = || format!("{text:?} is no replay: write SEED:EPISODE or SEED:EPISODE:0-7,12");
        let mut parts = text.split(':');
        let mut number = || parts.next().ok_or_else(bad);
        let seed = number()?.parse().map_err(|_| bad())?;
        let episode = number()?.parse().map_err(|_| bad())?;
        let mut steps = None;
        if let Some(list) = parts.next() {
            let mut set = BTreeSet::new();
            for range in list.split(',').filter(|_| list != NO_STEPS) {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                let from: u32 = from.parse().map_err(|_| bad())?;
                let to: u32 = to.parse().map_err(|_| bad())?;
                if to == u32::MAX {
                    let why = format!("steps are numbered from 0 to {}", u32::MAX - 1);
                    return Err(format!("{text:?} is no replay: {range}: {why}"));
                }
                let last = from.saturating_add(1 << 20);
                if !(from..=last).contains(&to) {
                    let why = "a range goes up, over at most 1048576 steps";
                    return Err(format!("{text:?} is no replay: {range}: {why}"));
                }
                set.extend(from..=to);
            }
            steps = Some(set);
        }
        match parts.next() {
            None => Ok(Replay {
                seed,
                episode,
                steps,
            }),
            Some(_) => Err(bad()),
        }
    }
}

/// A mismatch between device and model.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Description of the mismatch.
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

/// Result of a campaign. It is the same for the same seed and design.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Seed.
    pub seed: u64,
    /// Episodes.
    pub episodes: u32,
    /// Commands that the device has fetched.
    pub commands: u64,
    /// Commands that completed.
    pub completed: u64,
    /// Commands that were in flight at a reset.
    pub dropped: u64,
    /// Bytes of the media that completed commands have read, written, compared or cleared.
    pub moved_bytes: u64,
    /// Bytes that the device sent to the host; each is checked.
    pub checked_bytes: u64,
    /// Blocks of the media compared at the ends of episodes.
    pub compared_blocks: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Controller resets by CC.EN.
    pub disables: u64,
    /// Shutdowns.
    pub shutdowns: u64,
    /// Function level resets.
    pub function_resets: u64,
    /// NVM subsystem resets.
    pub subsystem_resets: u64,
    /// Losses of power.
    pub power_cuts: u64,
    /// Fatal statuses that the host provoked.
    pub fatal: u64,
    /// Simulated time in ns.
    pub simulated_ns: f64,
    /// Completions by queue type, opcode and status (SCT and SC).
    pub outcomes: BTreeMap<String, u64>,
    /// Kinds of commands and actions that opcodes and statuses do not show: number of each.
    pub kinds: BTreeMap<String, u64>,
    /// Mismatches: 0 or 1, since the first one ends the campaign.
    pub mismatches: u32,
    /// The first mismatch.
    pub failure: Option<Failure>,
}

impl Report {
    fn amount(&self, campaign: &Campaign) -> u64 {
        if campaign.valid_only {
            self.moved_bytes
        } else {
            self.commands
        }
    }

    fn add(&mut self, outcome: &EpisodeResult) {
        let counts = &outcome.counts;
        self.episodes += 1;
        self.commands += counts.fetched;
        self.completed += counts.completed;
        self.dropped += counts.dropped;
        self.moved_bytes += counts.moved_bytes;
        self.checked_bytes += counts.checked_bytes;
        self.compared_blocks += outcome.blocks;
        self.interrupts += counts.interrupts;
        self.disables += outcome.resets.disables;
        self.shutdowns += outcome.resets.shutdowns;
        self.function_resets += outcome.resets.functions;
        self.subsystem_resets += outcome.resets.subsystems;
        self.power_cuts += outcome.resets.power_cuts;
        self.fatal += outcome.resets.fatal;
        self.simulated_ns += outcome.time.as_ns();
        for (&name, count) in counts.kinds.iter().chain(&outcome.kinds) {
            *self.kinds.entry(name.into()).or_default() += count;
        }
        for (name, count) in &counts.outcomes {
            *self.outcomes.entry(name.clone()).or_default() += count;
        }
    }
}

/// Runs a campaign. `progress` receives the commands completed and requested, and stops the
/// campaign by returning false. It is an error if no device can be made; mismatches are in the
/// report.
pub fn run(
    make: &mut Make,
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, String> {
    let seed = campaign.replay.as_ref().map_or(campaign.seed, |r| r.seed);
    let mut report = Report {
        seed,
        ..Report::default()
    };
    let mut episode = campaign
        .replay
        .as_ref()
        .map_or(campaign.first_episode, |r| r.episode);
    loop {
        let left = campaign.amount.saturating_sub(report.amount(campaign));
        let steps = campaign.replay.as_ref().and_then(|r| r.steps.as_ref());
        let amount = match campaign.replay {
            Some(_) => campaign.per_episode,
            None => campaign.per_episode.min(left.max(1)),
        };
        let script = Script {
            seed,
            episode,
            amount,
            valid_only: campaign.valid_only,
            media_bytes: campaign.media_bytes,
            window: campaign.unclaimed_bytes >= WINDOW_BYTES,
            torn_blocks: campaign.torn_blocks,
            nearpm: campaign.nearpm,
            steps,
        };
        let before = report.amount(campaign);
        let most = campaign.amount.saturating_sub(1);
        let mut keep_running = |done: u64| progress((before + done).min(most), campaign.amount);
        let outcome = run_episode(make, &script, &mut keep_running)?;
        report.add(&outcome);
        if outcome.failure.is_some() {
            report.mismatches = 1;
            report.failure = Some(shrink(make, &script, outcome, campaign.shrinks, progress)?);
            break;
        }
        let done = report.amount(campaign);
        if outcome.stopped || campaign.replay.is_some() || done >= campaign.amount {
            break;
        }
        // An episode can end before its first step.
        if !progress(done, campaign.amount) {
            break;
        }
        // The episode numbers wrap: there are 2^32 of them.
        episode = episode.wrapping_add(1);
    }
    progress(campaign.amount, campaign.amount);
    Ok(report)
}

/// Runs one episode.
fn run_episode(
    make: &mut Make,
    script: &Script,
    keep_running: &mut KeepRunning,
) -> Result<EpisodeResult, String> {
    match script.nearpm {
        Some(page) => nearpm::run(make, script, page, keep_running),
        None => episode::run(make, script, keep_running),
    }
}

/// Removes steps of a failing episode as long as it fails.
fn shrink(
    make: &mut Make,
    script: &Script,
    outcome: EpisodeResult,
    shrinks: u32,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Failure, String> {
    let all: Vec<u32> = match script.steps {
        Some(steps) => steps
            .iter()
            .copied()
            .take_while(|&s| s < outcome.steps)
            .collect(),
        None => (0..outcome.steps).collect(),
    };
    let of_steps = all.len();
    let (what, history) = outcome.failure.unwrap_or_default();
    let mut tries = 0;
    let mut again = |fewer: &BTreeSet<u32>| {
        tries += 1;
        let fewer_steps = Script {
            steps: Some(fewer),
            ..script.clone()
        };
        let mut keep_running = |_: u64| progress(tries, shrinks.into());
        let outcome = run_episode(make, &fewer_steps, &mut keep_running)?;
        Ok(Rerun {
            steps: outcome.steps,
            stopped: outcome.stopped,
            failure: outcome
                .failure
                .map(|(what, history)| RunFailure { what, history }),
        })
    };
    let (kept, RunFailure { what, history }) =
        shrink::shrink(all, RunFailure { what, history }, shrinks, &mut again)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_written_as_it_is_read() {
        for text in ["7:3", "7:3:0-7,12,14-15", "7:3:none"] {
            assert_eq!(text.parse::<Replay>().unwrap().to_string(), text);
        }
        assert_eq!(
            "7:3:none".parse::<Replay>().unwrap().steps,
            Some(BTreeSet::new())
        );
        let bad = "7 7:x 7:3:4:5 7:3:a-b 7:3:0-4294967295 7:3:4294967295 7:3:5-2 \
                   7:3:1,5-2 7:3: 7:3:, 7:3:1, 7:3:,1 \
                   7:3:1,,2 7:3:- 7:3:1- 7:3:none,1 7:3:none:";
        for text in bad.split(' ').chain([""]) {
            let error = text.parse::<Replay>().unwrap_err();
            assert!(
                error.starts_with(&format!("{text:?} is no replay: ")),
                "{error}"
            );
        }
    }
}
