// SPDX-License-Identifier: Apache-2.0

//! The results of a campaign.

use serde_json::{json, Value};

use crate::cut::Cut;

/// A violation that was found after a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The cut.
    pub cut: Cut,
    /// What is wrong.
    pub text: String,
    /// The events before the cut, and after it.
    pub timeline: Vec<String>,
}

/// A violation of an invariant in the log of a run: see [`crate::invariants`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The invariant and the two events, in one line.
    pub text: String,
    /// The events of CPUs and devices before it.
    pub timeline: Vec<String>,
}

impl InvariantViolation {
    pub(crate) fn json(&self) -> Value {
        json!({"what": self.text, "timeline": self.timeline})
    }
}

/// The summary of all copies of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of cuts.
    pub cuts: u64,
    /// Cuts after which a violation was found.
    pub violated: u64,
    /// Transactions of the run, with aborted ones.
    pub transactions: u64,
    /// Transactions that spanned engines of several devices.
    pub spanning: u64,
    /// Cuts after which a transaction was found that had not returned.
    pub more: u64,
    /// Recoveries that a further cut has ended.
    pub recoveries_cut: u64,
    /// Lines that left the cache early.
    pub evicted: u64,
    /// Simulated time of the run, in ns.
    pub simulated_ns: u64,
    /// Why the run itself failed, as with fault injections; then there are no cuts.
    pub stopped: Option<String>,
    /// Events of CPUs and devices that were checked against the invariants; 0 if the devices do not
    /// report theirs.
    pub events: u64,
    /// Cuts of runs whose log violates an invariant, before the cut or after it. Except with fault
    /// injections these are among the violations.
    pub broken: u64,
    /// The first violation of an invariant.
    pub invariant: Option<InvariantViolation>,
    /// The first violation, after simplification.
    pub violation: Option<Violation>,
}

impl Report {
    /// True if a violation was found.
    pub fn has_violation(&self) -> bool {
        self.violated > 0 || self.stopped.is_some()
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let violation = self
            .violation
            .as_ref()
            .map(|v| json!({"cut": v.cut.to_string(), "what": v.text, "timeline": v.timeline}));
        json!({
            "cuts": self.cuts,
            "violated": self.violated,
            "transactions": self.transactions,
            "spanning": self.spanning,
            "more": self.more,
            "recoveries_cut": self.recoveries_cut,
            "evicted": self.evicted,
            "simulated_ns": self.simulated_ns,
            "stopped": self.stopped,
            "events": self.events,
            "broken": self.broken,
            "invariant": self.invariant.as_ref().map(InvariantViolation::json),
            "violation": violation,
        })
    }
}
