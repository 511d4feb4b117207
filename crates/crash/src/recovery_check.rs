// SPDX-License-Identifier: Apache-2.0

//! The end of a copy: power cut, recovery, and the check of what is left.

use host::{CrashReport, CutScope as HostCut, Mapping, MemoryType};
use pm::Error;
use serde_json::{json, Value};
use sim::Time;
use workloads::Contents;

use crate::cut::{Cut, HoldUp};
use crate::progress::{Candidates, Progress};
use crate::report::InvariantViolation;
use crate::stage::Stage;
use crate::timeline::Timeline;

/// The answer of a copy.
#[derive(Debug, Default)]
pub(crate) struct CutOutcome {
    pub violation: Option<String>,
    pub timeline: Vec<String>,
    pub more: bool,
    pub recoveries_cut: u64,
    pub evicted: u64,
    /// The first invariant that the log violates.
    pub broken: Option<InvariantViolation>,
}

impl CutOutcome {
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = json!({
            "violation": self.violation, "timeline": self.timeline, "more": self.more,
            "recoveries_cut": self.recoveries_cut, "evicted": self.evicted,
            "broken": self.broken.as_ref().map(InvariantViolation::json),
        });
        value.to_string().into_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<CutOutcome> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        Some(CutOutcome {
            violation: value["violation"].as_str().map(str::to_string),
            timeline: strings(&value["timeline"])?,
            more: value["more"].as_bool()?,
            recoveries_cut: value["recoveries_cut"].as_u64()?,
            evicted: value["evicted"].as_u64()?,
            broken: match &value["broken"] {
                Value::Null => None,
                broken => Some(InvariantViolation {
                    text: broken["what"].as_str()?.to_string(),
                    timeline: strings(&broken["timeline"])?,
                }),
            },
        })
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    let lines = value.as_array()?.iter().filter_map(Value::as_str);
    Some(lines.map(str::to_string).collect())
}

/// A device whose recovery has failed opens within this time, if ever.
const OPEN_TIMEOUT: Time = Time::us(100);

/// Ends a copy whose program has reached the cut.
pub(crate) fn finish_copy(
    stage: &Stage,
    cut: &Cut,
    progress: &Progress,
    evicted: u64,
) -> CutOutcome {
    let mut outcome = CutOutcome {
        evicted,
        ..CutOutcome::default()
    };
    let mut timeline = Timeline::default();
    if let Err(text) = check(stage, cut, progress, &mut outcome, &mut timeline) {
        timeline.add(format!("found     {text}"));
        outcome.timeline = timeline.text();
        outcome.violation = Some(text);
        // The library does not open a device with losses, but the device itself opens: the log has
        // to contain that.
        let _ = stage
            .shared
            .with_machine(|machine| machine.system_mut().advance_by(OPEN_TIMEOUT));
    }
    outcome.broken = stage.invariant_violation();
    // A negative control has to be found by the state that it leaves as well.
    let counts = !stage.is_negative_control && outcome.violation.is_none();
    if let (Some(broken), true) = (&outcome.broken, counts) {
        outcome.violation = Some(broken.text.clone());
        outcome.timeline = broken.timeline.clone();
    }
    outcome
}

fn to_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn check(
    stage: &Stage,
    cut: &Cut,
    progress: &Progress,
    outcome: &mut CutOutcome,
    timeline: &mut Timeline,
) -> Result<(), String> {
    let crash = stage.shared.with_machine(|machine| {
        if let Some(pick) = cut.evict {
            outcome.evicted += evict(machine, |n| pick.contains(n));
        }
        crash_machine(machine, cut).map(|crash| {
            let from = progress.begin();
            let events = stage.journal.events_since(from);
            let end = stage.other_place;
            *timeline = Timeline::new(events, from, machine.system(), &crash, cut, end);
        })
    });
    crash.map_err(to_text)?;
    stage.restart();
    if let Some(seed) = cut.lost {
        for (device, lines) in stage.journal.draw_lost_stores(seed) {
            // Uncached, and proven by a load.
            let map = Mapping::pm(device, MemoryType::Uncached);
            timeline.add(format!(
                "device {device}  has only some of the stores to {} lines that no load has proven",
                lines.len()
            ));
            for (at, line) in lines {
                stage.cpu.store(&map, at, &line).map_err(to_text)?;
            }
            stage.cpu.load(&map, 0, &mut [0; 4]).map_err(to_text)?;
        }
    }
    for (n, time) in cut.again.iter().enumerate() {
        let at = stage.shared.with_machine(|machine| {
            let at = machine.system().now() + *time;
            machine.cut_at(Some(at));
            at
        });
        // Executors alternate in recovering.
        let opened = stage.open(cut.engine != (n % 2 == 0));
        let whole = match &opened {
            Ok(_) => true,
            Err(Error::Host(host::Error::PowerCut(_))) => false,
            Err(error) => return Err(format!("recovery failed: {error}")),
        };
        outcome.recoveries_cut += u64::from(!whole);
        drop(opened);
        let crash = |machine: &mut host::Machine| match stage.is_over_several() {
            // The same devices fail again.
            true => crash_machine(machine, cut),
            false => machine.crash(HostCut::All),
        };
        stage.shared.with_machine(crash).map_err(to_text)?;
        stage.restart();
        let how = if whole { "after" } else { "during" };
        timeline.add(format!(
            "all       power fails again at {at}, {how} recovery"
        ));
    }
    let pool = stage
        .open(cut.engine)
        .map_err(|e| format!("recovery failed: {e}"))?;
    let mut thread = pool.thread(&stage.cpu).map_err(to_text)?;
    let found = stage.workload.inspect(&mut thread).map_err(to_text)?;
    let candidates = progress.candidates(stage, cut.at)?;
    let contents = &candidates.contents;
    // Of equal contents, those of the last transaction.
    let fits = contents.iter().rposition(|c| *c == found.contents);
    let Some(fits) = fits else {
        return Err(difference(&candidates, &found.contents));
    };
    outcome.more = candidates.durable + fits as u64 > candidates.returned;
    let objects = pool.check(&stage.cpu).map_err(to_text)?.objects;
    let objects: Vec<u64> = objects.into_iter().map(|object| object.0).collect();
    if objects != found.objects {
        let lost = objects
            .iter()
            .filter(|o| !found.objects.contains(o))
            .count();
        let shared = found
            .objects
            .iter()
            .filter(|o| !objects.contains(o))
            .count();
        return Err(format!(
            "{lost} objects are taken that nothing points to, {shared} are used that are not taken"
        ));
    }
    // One transaction more.
    let mut contents = contents[fits].clone();
    let next = progress.next() + 1;
    stage.perform_one_more(&mut thread, &mut contents, next)?;
    drop(thread);
    stage.check_other()
}

/// Time in which one of several devices accepts everything that was sent to it.
const DRAIN_TIME: Time = Time::us(10);

/// Cuts the power as described.
fn crash_machine(machine: &mut host::Machine, cut: &Cut) -> host::Result<CrashReport> {
    let devices = machine.system().devices();
    if devices == 1 && cut.later(0) == HoldUp::UntilDrained {
        return machine.crash(HostCut::Host);
    }
    let later = (0..devices).map(|device| match cut.later(device) {
        HoldUp::For(time) => time,
        HoldUp::UntilDrained => DRAIN_TIME,
        HoldUp::Indefinite => Time::MAX,
    });
    machine.crash_staggered(&later.collect::<Vec<Time>>())
}

/// Describes how the found contents differ from the allowed ones.
fn difference(candidates: &Candidates, found: &Contents) -> String {
    let (done, candidates) = (candidates.durable, &candidates.contents);
    let differing = |c: &Contents| {
        let keys = c.keys().chain(found.keys());
        let mut keys: Vec<_> = keys.filter(|key| c.get(key) != found.get(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    };
    let rows: Vec<String> = candidates
        .iter()
        .map(|c| differing(c).to_string())
        .collect();
    match candidates.as_slice() {
        [_] => format!(
            "it is not what {done} transactions have left: {} rows differ",
            rows[0]
        ),
        [_, _] => format!(
            "it is neither what {done} transactions have left, nor one more: {} and {} rows differ",
            rows[0], rows[1]
        ),
        _ => format!(
            "it is not what {done} to {} transactions have left: {} rows differ",
            done + rows.len() as u64 - 1,
            rows.join(", ")
        ),
    }
}

/// Evicts dirty cache lines that are chosen by their numbers; returns how many.
pub(crate) fn evict(machine: &mut host::Machine, chosen: impl Fn(usize) -> bool) -> u64 {
    let (mut number, mut count) = (0, 0);
    machine.evict(|_| {
        let leaves = chosen(number);
        number += 1;
        count += u64::from(leaves);
        leaves
    });
    count
}

impl Stage {
    /// Performs one transaction more, with a seed that no other transaction has.
    fn perform_one_more(
        &self,
        thread: &mut pm::Thread,
        contents: &mut Contents,
        number: u64,
    ) -> Result<(), String> {
        let seed = !self.seed;
        let wanted = self
            .workload
            .apply(contents, seed, number)
            .map_err(to_text)?;
        let done = self.workload.perform(thread, seed, number);
        let done = done.map_err(|e| format!("the next transaction failed: {e}"))?;
        let found = self.workload.inspect(thread).map_err(to_text)?.contents;
        match done == wanted && found == *contents {
            true => Ok(()),
            false => Err("the next transaction did not do what it should".into()),
        }
    }
}
