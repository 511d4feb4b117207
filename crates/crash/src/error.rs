// SPDX-License-Identifier: Apache-2.0

//! Why a campaign ends without a report.

use sim::fork::ForkError;
use sim::InvalidValue;

use crate::Cut;

/// Why a campaign ends without a report. What recovery finds after a cut is no error: it is in the
/// report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter that is not allowed.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// Cuts after the commands of an engine, where the CPU works.
    #[error("cuts = commands are after commands to the device's engine: by = \"device\" has them")]
    CommandsOfCpu,
    /// A text that describes no cut.
    #[error(
        "a cut {0:?}: allowed is PS[:early=PS/LINES][:evict=LINES][:later=PS|all|keeps/...]\
         [:lost=SEED][:again=PS/PS...][:engine], times in ps, LINES m and a mask or s and a seed"
    )]
    Cut(String),
    /// The run has none of the planned cuts; the text says why.
    #[error("no cuts: this run {0}; allowed are more transactions, or sampled:N")]
    NoCuts(&'static str),
    /// A cut before the first transaction, or after the last one.
    #[error("a cut {cut}: this run has its transactions from {begin} to {end} ps")]
    CutOutside {
        /// The cut.
        cut: Box<Cut>,
        /// When the first transaction begins, in ps.
        begin: u64,
        /// When the last one ends, in ps.
        end: u64,
    },
    /// A fault of an engine, in a run without engines.
    #[error("this control is of the device's engine: by = \"device\" has it")]
    FaultOfEngine,
    /// A fault between engines of several devices, in a run that has none.
    #[error(
        "without = \"peers\" is for engines of several devices: by = \"device\" and devices = 2 or \
         4 have it"
    )]
    FaultOfPeers,
    /// A fault of tracked pools, in a run without one.
    #[error("without = \"tracking\" is for tracked pools by the device: by = \"device\", tracked")]
    FaultOfTracking,
    /// A fault of commands, in a run that has none of them.
    #[error(
        "without = \"snapshots\" leaves out commands, which a tracked pool by the device does not \
         have: allowed is \"tracking\""
    )]
    FaultOfCommands,
    /// A fault of transactions that become durable later, in a run that has none.
    #[error(
        "without = \"durability\" is for transactions that become durable later: later = 2 and \
         more has them"
    )]
    FaultOfLater,
    /// Nothing polls the engine's words.
    #[error(
        "words are those of an engine about transactions that become durable later: they need by = \
         \"device\" and `later` of 2 and more, and without = \"words\" needs words"
    )]
    WordsOfLater,
    /// The design has no engine that keeps logs.
    #[error(
        "design {0:?} has no crash-consistency engine: by = \"device\" needs one, as that of the \
         design \"nearpm\""
    )]
    NoEngine(String),
    /// The devices can't be set up.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// An operation on the pool failed.
    #[error(transparent)]
    Pm(#[from] pm::Error),
    /// The run fails although the power is not cut; the text comes from a copy of the process.
    #[error("the run fails even without a cut: {0}")]
    Run(String),
    /// The run violates an invariant after the last cut.
    #[error("the run itself: {text}\n{timeline}")]
    Invariant {
        /// What is wrong.
        text: String,
        /// The last events.
        timeline: String,
    },
    /// The process can't be copied.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}
