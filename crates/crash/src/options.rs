// SPDX-License-Identifier: Apache-2.0

//! The parameters of a campaign.

use std::fmt;
use std::str::FromStr;

use device::FaultInjection;
use pm::{Mechanism, Synchronisation};
use sim::InvalidValue;

use crate::cut::CutPlan;
use crate::error::Error;

/// The parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The workload: one of [`workloads::NAMES`].
    pub workload: String,
    /// How its transactions are made atomic.
    pub mechanism: Mechanism,
    /// The pool is tracked ([`pm::Layout::tracked`]).
    pub tracked: bool,
    /// Who runs the mechanism.
    pub executor: Executor,
    /// Devices that the pool spans: 1, 2 or 4.
    pub devices: usize,
    /// With several devices: how they are synchronised.
    pub synchronise: Synchronisation,
    /// Number of transactions.
    pub transactions: u64,
    /// Seed of everything that is generated.
    pub seed: u64,
    /// When the power fails.
    pub cuts: CutPlan,
    /// Transactions become durable later, this number of them at a time.
    pub later: Option<u64>,
    /// The engine reports in host memory how far they are, instead of a load that proves a group.
    pub words: bool,
    /// A fault injection: the campaign is a negative control.
    pub fault: Option<InjectedFault>,
    /// Copies that run at a time.
    pub jobs: usize,
}

/// Most transactions of a run: with generated cuts, with cuts everywhere, with cuts after commands.
const MAX_TRANSACTIONS: u64 = 100_000;
const MAX_TRANSACTIONS_EVERYWHERE: u64 = 16;
const MAX_TRANSACTIONS_AT_COMMANDS: u64 = 1000;
/// Most transactions that become durable together.
const MAX_LATER: u64 = 1000;
/// Most copies at a time.
const MAX_JOBS: usize = 256;

impl Campaign {
    /// Refuses invalid parameters; the message names the parameter.
    pub fn validate(&self) -> Result<(), Error> {
        let most = match self.cuts {
            CutPlan::All => MAX_TRANSACTIONS_EVERYWHERE,
            CutPlan::Commands => MAX_TRANSACTIONS_AT_COMMANDS,
            CutPlan::Sampled(_) | CutPlan::At(_) => MAX_TRANSACTIONS,
        };
        if !(1..=most).contains(&self.transactions) {
            let rule = format_args!("allowed are 1 to {most} with these cuts");
            return Err(InvalidValue::new("transactions", self.transactions, rule).into());
        }
        if !matches!(self.devices, 1 | 2 | 4) {
            let rule = "allowed are 1, 2 and 4";
            return Err(InvalidValue::new("devices", self.devices, rule).into());
        }
        if self.fault == Some(InjectedFault::Tracking)
            && !(self.tracked && self.executor == Executor::Device)
        {
            return Err(Error::FaultOfTracking);
        }
        // The library does not ask for these records, so it can't leave them out.
        if self.fault == Some(InjectedFault::Snapshots)
            && self.tracked
            && self.executor == Executor::Device
        {
            return Err(Error::FaultOfCommands);
        }
        if self.cuts == CutPlan::Commands && self.executor != Executor::Device {
            return Err(Error::CommandsOfCpu);
        }
        if let Some(later) = self.later {
            if !(1..=MAX_LATER).contains(&later) {
                let rule = format_args!("allowed are 1 to {MAX_LATER}");
                return Err(InvalidValue::new("later", later, rule).into());
            }
            if self.devices > 1 {
                let rule =
                    "allowed is 1 with `later`, since transactions over several devices are \
                            durable on return";
                return Err(InvalidValue::new("devices", self.devices, rule).into());
            }
        }
        if self.fault == Some(InjectedFault::Durability) && self.later.unwrap_or(1) < 2 {
            return Err(Error::FaultOfLater);
        }
        let needs_words = self.words || self.fault == Some(InjectedFault::ProgressWords);
        let is_later = self.later.unwrap_or(1) > 1 && self.executor == Executor::Device;
        if needs_words && !(self.words && is_later) {
            return Err(Error::WordsOfLater);
        }
        if !(1..=MAX_JOBS).contains(&self.jobs) {
            let rule = format_args!("allowed are 1 to {MAX_JOBS}");
            return Err(InvalidValue::new("jobs", self.jobs, rule).into());
        }
        Ok(())
    }
}

/// Who runs the mechanism of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executor {
    /// The CPU.
    Cpu,
    /// The device's crash-consistency engine.
    Device,
}

/// A step that is left out on purpose, so that the campaign has to find violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InjectedFault {
    /// No old bytes are logged.
    Snapshots,
    /// No fence waits for the device.
    Fences,
    /// The device's conflict filter lets stores and loads pass regardless of commands that they
    /// overlap.
    ConflictFilter,
    /// The device's commands do not wait for older ones.
    CommandOrder,
    /// The device saves nothing when its power fails.
    PersistenceDomain,
    /// Each of several devices deletes its log without waiting for the others.
    Peers,
    /// Stores to a tracked pool make no records.
    Tracking,
    /// Transactions that become durable later are acknowledged when they return.
    Durability,
    /// The device reports transactions as complete in host memory one too early.
    ProgressWords,
}

impl InjectedFault {
    /// The fault injection in the device.
    pub(crate) fn device_fault(self) -> Option<FaultInjection> {
        match self {
            InjectedFault::Snapshots
            | InjectedFault::Fences
            | InjectedFault::Peers
            | InjectedFault::Durability => None,
            InjectedFault::ConflictFilter => Some(FaultInjection::ConflictFilter),
            InjectedFault::CommandOrder => Some(FaultInjection::CommandOrder),
            InjectedFault::PersistenceDomain => Some(FaultInjection::PersistenceDomain),
            InjectedFault::Tracking => Some(FaultInjection::Tracking),
            InjectedFault::ProgressWords => Some(FaultInjection::ProgressWords),
        }
    }

    /// Without it, what a transaction has changed can't be undone.
    pub(crate) fn prevents_aborts(self) -> bool {
        matches!(self, InjectedFault::Snapshots | InjectedFault::Tracking)
    }
}

macro_rules! named_variants {
    ($type:ident, $what:literal, $($name:literal $value:ident),*) => {
        impl $type {
            /// All values.
            pub const ALL: &[$type] = &[$($type::$value),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<$type, InvalidValue> {
                let found = $type::ALL.iter().find(|one| one.name() == text);
                found.copied().ok_or_else(|| {
                    let names: Vec<_> = $type::ALL.iter().map(|one| one.name()).collect();
                    let rule = format!("allowed are {}", names.join(", "));
                    InvalidValue::new($what, format_args!("{text:?}"), rule)
                })
            }
        }
    };
}

named_variants!(Executor, "by", "cpu" Cpu, "device" Device);
named_variants!(
    InjectedFault,
    "without",
    "snapshots" Snapshots,
    "fences" Fences,
    "hook" ConflictFilter,
    "commands" CommandOrder,
    "domain" PersistenceDomain,
    "peers" Peers,
    "tracking" Tracking,
    "durability" Durability,
    "words" ProgressWords
);
