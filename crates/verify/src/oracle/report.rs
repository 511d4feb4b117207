// SPDX-License-Identifier: Apache-2.0

//! The report of a campaign.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::campaign::{add_counts, Failure, Totals};

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
    /// Counts an action.
    pub fn count(&mut self, kind: &str) {
        *self.kinds.entry(kind.into()).or_default() += 1;
    }
}

impl Totals for Report {
    fn add(&mut self, episode: Report) {
        self.commands += episode.commands;
        self.completed += episode.completed;
        self.dropped += episode.dropped;
        self.moved_bytes += episode.moved_bytes;
        self.checked_bytes += episode.checked_bytes;
        self.compared_blocks += episode.compared_blocks;
        self.interrupts += episode.interrupts;
        self.disables += episode.disables;
        self.shutdowns += episode.shutdowns;
        self.function_resets += episode.function_resets;
        self.subsystem_resets += episode.subsystem_resets;
        self.power_cuts += episode.power_cuts;
        self.fatal += episode.fatal;
        self.simulated_ns += episode.simulated_ns;
        add_counts(&mut self.kinds, episode.kinds);
        add_counts(&mut self.outcomes, episode.outcomes);
    }

    fn conclude(&mut self, seed: u64, episodes: u32, failure: Option<Failure>) {
        (self.seed, self.episodes) = (seed, episodes);
        self.mismatches = failure.is_some().into();
        self.failure = failure;
    }
}
