//! Fused commands in flight: what one of a pair has answered says what is left for the other.

use std::collections::BTreeSet;

use spec::nvme::Status;

use super::World;
use crate::fused::Pair;

/// One of a pair of fused commands.
#[derive(Clone, Debug)]
pub(super) struct Fused {
    pub(super) partner: (u16, u16),
    pub(super) first: bool,
    pub(super) outcomes: Vec<(Status, Status)>,
    pub(super) alone: Vec<(Status, Status)>,
}

impl World {
    /// What a command means for the first one before it. Returns what the command itself needs to know.
    pub(super) fn fuse(&mut self, second: (u16, u16), pair: Pair) -> Option<Fused> {
        let first = (second.0, pair.cid);
        let user = self.flights.get(&first)?.user;
        self.attach(first, user, &pair.verdict);
        let flight = self.flights.get_mut(&first)?;
        flight.verdict = pair.verdict;
        self.note(format!(
            "SQ {} CID {:#06x} and the next one: {:?}",
            first.0, first.1, pair.outcomes
        ));
        if pair.outcomes.is_empty() {
            return None;
        }
        let of = |partner, first| Fused {
            partner,
            first,
            outcomes: pair.outcomes.clone(),
            alone: pair.alone.clone(),
        };
        let (mine, its) = (of(first, false), of(second, true));
        if let Some(flight) = self.flights.get_mut(&first) {
            flight.fused = Some(its);
        }
        Some(mine)
    }

    /// The controller is about to stop.
    pub fn close_down(&mut self) {
        self.model.closing = true;
        let qids: BTreeSet<u16> = self.flights.keys().map(|k| k.0).collect();
        qids.into_iter().for_each(|qid| self.leave_alone(qid));
    }

    /// A queue stops: fused commands in it may not find each other any more.
    pub(super) fn leave_alone(&mut self, qid: u16) {
        if let Some(half) = self.model.firsts.get_mut(&qid) {
            let (key, statuses) = ((qid, half.cid()), half.leave_alone());
            if let Some(flight) = self.flights.get_mut(&key) {
                flight.verdict.statuses = statuses;
            }
        }
        let here = |k: &(u16, u16)| k.0 == qid && self.flights.contains_key(k);
        let whole: Vec<(u16, u16)> = self
            .flights
            .iter()
            .filter(|(_, f)| f.fused.as_ref().is_some_and(|p| here(&p.partner)))
            .map(|(&key, _)| key)
            .collect();
        for key in whole {
            let Some(flight) = self.flights.get_mut(&key) else {
                continue;
            };
            let Some(fused) = &mut flight.fused else {
                continue;
            };
            fused.outcomes.append(&mut fused.alone);
            let outcomes = fused.outcomes.iter();
            flight.verdict.statuses = outcomes
                .map(|&(a, b)| if fused.first { a } else { b })
                .collect();
        }
    }

    /// One of a pair has answered: what is left for the other.
    pub(super) fn narrow(&mut self, fused: &Fused, answer: Status) {
        if let Some(partner) = self.flights.get_mut(&fused.partner) {
            let outcomes = fused.outcomes.iter();
            let turned = outcomes.map(|&(a, b)| if fused.first { (a, b) } else { (b, a) });
            let left = turned.filter(|o| o.0 == answer).map(|o| o.1);
            partner.verdict.statuses = left.collect();
        }
    }
}
