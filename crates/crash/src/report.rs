//! What a campaign has found.

use serde_json::{json, Value};

use crate::cut::Cut;

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The cut after which it was found.
    pub cut: Cut,
    /// What is wrong.
    pub text: String,
    /// What happened before, and then.
    pub timeline: Vec<String>,
}

/// An invariant that the log of a run breaks: see [`crate::invariants`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// Which, and the two events, in one line.
    pub text: String,
    /// What CPUs and devices did until then.
    pub timeline: Vec<String>,
}

impl InvariantViolation {
    pub(crate) fn json(&self) -> Value {
        json!({"what": self.text, "timeline": self.timeline})
    }
}

/// What copies of a run have come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Cuts.
    pub cuts: u64,
    /// Of these, those after which something was wrong.
    pub violated: u64,
    /// Transactions of the run, the aborted ones included.
    pub transactions: u64,
    /// Of these, those that engines of several devices had a part in.
    pub spanning: u64,
    /// Cuts after which a transaction was there though it had not returned.
    pub more: u64,
    /// Recoveries that a further cut has ended.
    pub recoveries_cut: u64,
    /// Lines that left the cache by themselves.
    pub evicted: u64,
    /// Simulated time of the run, in ns.
    pub simulated_ns: u64,
    /// Why the run itself does not come to its end, as may be where something was left out on purpose: then there are no cuts.
    pub stopped: Option<String>,
    /// Events of CPUs and devices in the run that were held against the invariants; 0: the devices do not tell of theirs.
    pub events: u64,
    /// Cuts of runs whose log breaks an invariant, before the cut or behind it, and what the first of these says. Without a control these are
    /// among the violations.
    pub broken: u64,
    /// See [`Report::broken`].
    pub invariant: Option<InvariantViolation>,
    /// The first violation, as simple as it could be made.
    pub violation: Option<Violation>,
}

impl Report {
    /// Whether anything was found that should not be.
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
            "cuts": self.cuts, "violated": self.violated, "transactions": self.transactions, "spanning": self.spanning,
            "more": self.more, "recoveries_cut": self.recoveries_cut, "evicted": self.evicted, "simulated_ns": self.simulated_ns, "stopped": self.stopped,
            "events": self.events, "broken": self.broken, "invariant": self.invariant.as_ref().map(InvariantViolation::json),
            "violation": violation,
        })
    }
}
