// SPDX-License-Identifier: Apache-2.0

//! Fused commands in flight: the answer of one command of a pair restricts the answers of the
//! other.

use std::collections::BTreeSet;

use sim::Time;
use spec::nvme::{admin, status, Status};

use super::HostModel;
use crate::commands::FUSED_FIRST;
use crate::oracle::expectation::{CompletionEffect, MediaUse};
use crate::oracle::model::flags;
use crate::oracle::model::fused::Pair;
use crate::oracle::model::nvm::comparison;

/// Shortest time that a first command waits for a partner that finds no room in the completion
/// queue (`HostTimeout`).
const DEADLINE: Time = Time::ms(25);

/// A command of a fused pair.
#[derive(Clone, Debug)]
pub(super) struct Fused {
    pub(super) partner: (u16, u16),
    pub(super) first: bool,
    pub(super) outcomes: Vec<(Status, Status)>,
    pub(super) written: Vec<Status>,
    pub(super) alone: Vec<(Status, Status)>,
}

impl HostModel {
    /// Applies the effect of a command to the first command before it. Returns the fused state of
    /// the command itself.
    pub(super) fn apply_pair(&mut self, second: (u16, u16), pair: Pair) -> Option<Fused> {
        let first = (second.0, pair.cid);
        let user = self.in_flight.get(&first)?.user;
        self.begin_command(first, user, &pair.expectation);
        let active = self.in_flight.get_mut(&first)?;
        active.expectation = pair.expectation;
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
            written: pair.written.clone(),
            alone: pair.alone.clone(),
        };
        let (mine, its) = (of(first, false), of(second, true));
        let begun = self.in_flight.get(&first)?.begun;
        let later = self.in_flight.values_mut().filter(|f| f.begun >= begun);
        later.for_each(|f| f.after_pair = true);
        if let Some(active) = self.in_flight.get_mut(&first) {
            active.fused = Some(its);
        }
        Some(mine)
    }

    /// The controller is about to stop.
    pub fn close_down(&mut self) {
        self.keep_alive = None;
        self.may_stop();
    }

    /// The controller has stopped, or may be about to stop.
    pub fn may_stop(&mut self) {
        self.model.closing = true;
        let qids: BTreeSet<u16> = self.in_flight.keys().map(|k| k.0).collect();
        qids.into_iter().for_each(|qid| self.break_pairs(qid));
    }

    /// A queue stops: fused commands in it may not form a pair any more.
    pub(super) fn break_pairs(&mut self, qid: u16) {
        if let Some(half) = self.model.firsts.get_mut(&qid) {
            let (key, statuses) = ((qid, half.cid()), half.may_lack_partner());
            if let Some(active) = self.in_flight.get_mut(&key) {
                active.expectation.statuses = statuses;
            }
        }
        let here = |k: &(u16, u16)| k.0 == qid && self.in_flight.contains_key(k);
        let whole: Vec<(u16, u16)> = self
            .in_flight
            .iter()
            .filter(|(_, f)| f.fused.as_ref().is_some_and(|p| here(&p.partner)))
            .map(|(&key, _)| key)
            .collect();
        for key in whole {
            let Some(active) = self.in_flight.get_mut(&key) else {
                continue;
            };
            let Some(fused) = &mut active.fused else {
                continue;
            };
            fused.outcomes.append(&mut fused.alone);
            let outcomes = fused.outcomes.iter();
            active.expectation.statuses = outcomes
                .map(|&(a, b)| if fused.first { a } else { b })
                .collect();
        }
    }

    /// The I/O command that an Abort in flight names. There is one Abort at a time.
    pub(super) fn abort_target(&self) -> Option<(u16, u16)> {
        let of_admin = self.in_flight.range((0, 0)..(1, 0));
        of_admin
            .map(|(_, f)| f)
            .find_map(|f| match f.expectation.after {
                CompletionEffect::AbortIo(sqid, cid) if f.sqe.opcode() == admin::ABORT => {
                    Some((sqid, cid))
                }
                _ => None,
            })
    }

    /// The first command of a pair is given up, with its error or as interrupted, if its partner is
    /// missing for long. Then the second command is alone.
    pub(super) fn permit_giving_up(&mut self, key: (u16, u16)) {
        let first = match self.in_flight.get(&key).and_then(|f| f.fused.as_ref()) {
            Some(fused) if !fused.first => fused.partner,
            _ => key,
        };
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        let interrupted: Vec<Status> = self.model.acre.interrupted().collect();
        let given_up = |alone: Status| match alone == missing {
            true => interrupted.clone(),
            false => vec![alone],
        };
        let Some(active) = self.in_flight.get_mut(&first) else {
            return;
        };
        if flags(&active.sqe).0 != FUSED_FIRST || self.now < active.begun + DEADLINE {
            return;
        }
        let Some(fused) = active.fused.clone() else {
            if let Some(half) = self
                .model
                .firsts
                .get(&first.0)
                .filter(|h| h.cid() == first.1)
            {
                let statuses = half.answers_alone().into_iter().flat_map(given_up);
                active.expectation.statuses.extend(statuses);
            }
            return;
        };
        let alone = fused.alone.iter();
        let more: Vec<(Status, Status)> = alone
            .flat_map(|&(a, b)| given_up(a).into_iter().map(move |a| (a, b)))
            .collect();
        self.permit_answers([first, fused.partner], &more);
    }

    /// The first command of a pair may be aborted before the second one arrives, which is then
    /// alone.
    pub(super) fn permit_abort(&mut self) {
        let Some(key) = self.abort_target() else {
            return;
        };
        let Some(fused) = self.in_flight.get(&key).and_then(|f| f.fused.as_ref()) else {
            return;
        };
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        let known = fused
            .outcomes
            .iter()
            .any(|o| o.0 == status::ABORT_REQUESTED);
        if !fused.first || known {
            return;
        }
        let alone = fused.alone.iter().filter(|o| o.0 == missing);
        let more: Vec<(Status, Status)> = alone.map(|o| (status::ABORT_REQUESTED, o.1)).collect();
        self.permit_answers([key, fused.partner], &more);
    }

    /// Permits further answers of a pair.
    fn permit_answers(&mut self, keys: [(u16, u16); 2], more: &[(Status, Status)]) {
        for key in keys {
            let Some(active) = self.in_flight.get_mut(&key) else {
                continue;
            };
            let Some(fused) = &mut active.fused else {
                continue;
            };
            fused.outcomes.extend_from_slice(more);
            let outcomes = fused.outcomes.iter();
            active.expectation.statuses = outcomes
                .map(|&(a, b)| if fused.first { a } else { b })
                .collect();
        }
    }

    /// True for a first command without a partner, which may be aborted while it waits.
    pub(super) fn is_waiting_first(&self, key: (u16, u16)) -> bool {
        let Some(active) = self.in_flight.get(&key) else {
            return false;
        };
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        let statuses = match self.model.firsts.get(&key.0) {
            Some(half) if half.cid() == key.1 => half.answers_alone(),
            _ => active.expectation.statuses.clone(),
        };
        flags(&active.sqe).0 == FUSED_FIRST && active.fused.is_none() && statuses.contains(&missing)
    }

    /// The first answer of a pair has arrived. Concurrent writes may have made a difference for its
    /// Compare, or removed one.
    pub(super) fn compare_again(&mut self, key: (u16, u16)) {
        let Some(fused) = self.in_flight.get(&key).and_then(|f| f.fused.clone()) else {
            return;
        };
        let (first, second) = match fused.first {
            true => (key, fused.partner),
            false => (fused.partner, key),
        };
        let (Some(compare), Some(write)) =
            (self.in_flight.get(&first), self.in_flight.get(&second))
        else {
            return;
        };
        let (MediaUse::Compare(lba, _, data), false) =
            (&compare.expectation.media, fused.written.is_empty())
        else {
            return;
        };
        let (same, other) = comparison(*lba, data, Some(write.user), &self.media);
        let mut more = Vec::new();
        if other {
            let failed = status::ABORTED_FAILED_FUSED.dnr();
            more.push((status::COMPARE_FAILURE.dnr(), failed));
        }
        if same && compare.expectation.clean {
            more.extend(fused.written.iter().map(|&b| (status::SUCCESS, b)));
        }
        self.permit_answers([first, second], &more);
    }

    /// One command of a pair has answered: restricts the answers of the other.
    pub(super) fn narrow(&mut self, fused: &Fused, answer: Status) {
        if let Some(partner) = self.in_flight.get_mut(&fused.partner) {
            let outcomes = fused.outcomes.iter();
            let turned = outcomes.map(|&(a, b)| if fused.first { (a, b) } else { (b, a) });
            let left = turned.filter(|o| o.0 == answer).map(|o| o.1);
            partner.expectation.statuses = left.collect();
        }
    }
}
