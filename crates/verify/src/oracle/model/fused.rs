// SPDX-License-Identifier: Apache-2.0

//! Fused Compare and Write, for the reference model (NVM Express 1.4, 4.12; status table in
//! `docs/hardware/nvme_ctrl.md`).
//!
//! A first command is evaluated again when the next command of its queue is fetched: only then it
//! is known whether they are a pair. The permitted answers of both are a list of pairs of statuses.
//! So the answer of one restricts the answers of the other.

use nvme::Namespace;
use spec::nvme::{io, status, Sqe, Status};

use crate::commands::{FUSED_FIRST, FUSED_SECOND};
use crate::oracle::expectation::Expectation;
use crate::oracle::media::Media;
use crate::oracle::memory::Memory;
use crate::oracle::model::{flags, Model};

/// Whether the queue held another command after this one when it was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCommand {
    /// The doorbell covered another command.
    Yes,
    /// No doorbell covered another command.
    No,
    /// A later doorbell may have arrived in time.
    Unsure,
}

/// A first command that waits for its partner.
#[derive(Clone, Debug)]
pub struct WaitingFirst {
    sqe: Sqe,
    /// The errors of the command itself; `None` if it has none.
    own: Vec<Option<Status>>,
    namespace: Option<Namespace>,
    /// It may already have ended without a partner.
    alone: bool,
}

/// The effect of a command on the first command before it.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The first command.
    pub cid: u16,
    /// The expectation of the first command.
    pub expectation: Expectation,
    /// Pairs of permitted statuses, the first command's first. Empty: it has no partner.
    pub outcomes: Vec<(Status, Status)>,
    /// Permitted statuses of the second command after a successful comparison. Empty: the pair is
    /// invalid.
    pub written: Vec<Status>,
    /// Permitted statuses of the second command if the two do not form a pair.
    pub alone: Vec<(Status, Status)>,
}

impl WaitingFirst {
    /// The command's identifier.
    pub fn cid(&self) -> u16 {
        self.sqe.cid()
    }

    /// The partner may be missing. Returns the statuses for that case.
    pub fn may_lack_partner(&mut self) -> Vec<Status> {
        self.alone = true;
        self.answers_alone()
    }

    /// Permitted statuses without a partner.
    pub fn answers_alone(&self) -> Vec<Status> {
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        self.own.iter().map(|o| o.unwrap_or(missing)).collect()
    }

    fn range(&self) -> Option<(u64, u32)> {
        let base = self.namespace?.base;
        Some((base.wrapping_add(self.sqe.slba()), self.sqe.blocks()))
    }
}

impl Model {
    /// Evaluates a command of an I/O queue, with its effect on the first command before it.
    pub fn fused(
        &mut self,
        sqid: u16,
        sqe: &Sqe,
        more: NextCommand,
        memory: &Memory,
        media: &Media,
    ) -> (Expectation, Option<Pair>) {
        let fuse = flags(sqe).0;
        let first = self.firsts.remove(&sqid);
        if let (Some(first), FUSED_SECOND) = (&first, fuse) {
            return self.pair(first, sqe, self.is_stopping(sqid), memory, media);
        }
        // A waiting first command has no partner.
        let lone = first.map(|first| Pair {
            cid: first.cid(),
            expectation: Expectation::new(first.answers_alone()),
            outcomes: Vec::new(),
            written: Vec::new(),
            alone: Vec::new(),
        });
        if fuse != FUSED_FIRST && fuse != FUSED_SECOND {
            return (self.io(sqe, memory, media), lone);
        }
        let mut half = self.waiting_first(sqe);
        half.alone = more != NextCommand::Yes || self.is_stopping(sqid);
        let mut expectation = Expectation::new(half.answers_alone());
        if fuse == FUSED_FIRST && more != NextCommand::No {
            if !half.alone {
                expectation.statuses.clear();
            }
            self.firsts.insert(sqid, half);
        }
        (expectation, lone)
    }

    /// True if the queue, or the controller, is about to stop: first commands may end before their
    /// partner arrives.
    fn is_stopping(&self, sqid: u16) -> bool {
        self.closing || !self.sqs.contains_key(&sqid)
    }

    fn waiting_first(&self, sqe: &Sqe) -> WaitingFirst {
        let (mut own, namespace) = match self.check(sqe) {
            Err(status) => (vec![Some(status.dnr())], None),
            Ok(None) => (vec![None], None),
            Ok(Some(ns)) => {
                let range = self.check_range(sqe, &ns);
                (vec![range.err().map(Status::dnr)], Some(ns))
            }
        };
        if namespace.is_some_and(|ns| self.is_formatting(ns.nsid)) {
            own.push(Some(status::FORMAT_IN_PROGRESS));
        }
        WaitingFirst {
            sqe: *sqe,
            own,
            namespace,
            alone: false,
        }
    }

    fn pair(
        &self,
        first: &WaitingFirst,
        sqe: &Sqe,
        is_stopping: bool,
        memory: &Memory,
        media: &Media,
    ) -> (Expectation, Option<Pair>) {
        let second = self.waiting_first(sqe);
        let field = status::INVALID_FIELD.dnr();
        let partner = status::ABORTED_FAILED_FUSED.dnr();
        let wrong =
            |half: &WaitingFirst, opcode: u8| (half.sqe.opcode() != opcode).then_some(field);
        let other = (first.range() != second.range()).then_some(field);
        let mut outcomes = Vec::new();
        let mut verdicts = None;
        for &a in &first.own {
            for &b in &second.own {
                let a = a.or(wrong(first, io::COMPARE));
                let b = b.or(wrong(&second, io::WRITE));
                let statuses = match (a, b, other) {
                    (None, None, None) => {
                        verdicts = self.both(first, &second, memory, media);
                        continue;
                    }
                    (None, None, Some(other)) => (other, other),
                    _ => (a.unwrap_or(partner), b.unwrap_or(partner)),
                };
                outcomes.push(statuses);
            }
        }
        if let Some((compare, write)) = &verdicts {
            for &a in &compare.statuses {
                match a == status::SUCCESS {
                    true => outcomes.extend(write.statuses.iter().map(|&b| (a, b))),
                    false => outcomes.push((a, partner)),
                }
            }
        }
        let mut alone = Vec::new();
        for a in first.answers_alone() {
            alone.extend(second.answers_alone().into_iter().map(|b| (a, b)));
        }
        if first.alone || is_stopping {
            outcomes.extend_from_slice(&alone);
        }
        let nothing = || (Expectation::new(Vec::new()), Expectation::new(Vec::new()));
        let (mut compare, mut write) = verdicts.unwrap_or_else(nothing);
        let written = std::mem::take(&mut write.statuses);
        compare.statuses = outcomes.iter().map(|o| o.0).collect();
        write.statuses = outcomes.iter().map(|o| o.1).collect();
        let pair = Pair {
            cid: first.cid(),
            expectation: compare,
            outcomes,
            written,
            alone,
        };
        (write, Some(pair))
    }

    /// The expectation of both commands if they are a valid pair.
    fn both(
        &self,
        first: &WaitingFirst,
        second: &WaitingFirst,
        memory: &Memory,
        media: &Media,
    ) -> Option<(Expectation, Expectation)> {
        let compare = self.work(&first.sqe, &first.namespace?, memory, media);
        let write = self.work(&second.sqe, &second.namespace?, memory, media);
        Some((compare, write))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::generate::Limits;
    use crate::oracle::model::SubmissionQueue;
    use crate::PAGE;
    use nvme::Namespaces;

    /// A model with a queue, and pages of zeros for both commands.
    fn bench() -> (Model, Memory, Media) {
        let limits = Limits {
            queues: 1,
            entries: 8,
            transfer: 1 << 20,
            events: 1,
            namespaces: Arc::new(Namespaces::new(&[16])),
            doorbell_buffer: false,
            engines: Vec::new(),
        };
        let mut model = Model::new(limits, BTreeMap::new());
        let queue = SubmissionQueue {
            base: 0,
            entries: 8,
            cqid: 1,
        };
        model.sqs.insert(1, queue);
        (model, Memory::new(2), Media::new(16))
    }

    fn half(opcode: u8, fuse: u32, lba: u64) -> Sqe {
        let at = (1 << 32) + if fuse == FUSED_FIRST { 0 } else { PAGE };
        let mut sqe = Sqe::of_blocks(opcode, 1, lba, 1).with_prps(at, 0);
        sqe.dw[0] |= fuse << 8;
        sqe
    }

    /// The permitted pairs of statuses.
    fn outcomes(first: Sqe, second: Sqe) -> Vec<(Status, Status)> {
        let (mut model, memory, media) = bench();
        let (expectation, none) = model.expect(1, &first, NextCommand::Yes, &memory, &media);
        assert!(
            expectation.statuses.is_empty() && none.is_none(),
            "it waits"
        );
        let (_, pair) = model.expect(1, &second, NextCommand::No, &memory, &media);
        pair.map(|p| p.outcomes).unwrap_or_default()
    }

    #[test]
    fn fused_pair_answers_together() {
        let (ok, field) = (status::SUCCESS, status::INVALID_FIELD.dnr());
        let failed = status::ABORTED_FAILED_FUSED.dnr();
        let range = status::LBA_OUT_OF_RANGE.dnr();
        let compare = half(io::COMPARE, FUSED_FIRST, 3);
        let write = half(io::WRITE, FUSED_SECOND, 3);
        assert_eq!(outcomes(compare, write), [(ok, ok)]);
        assert_eq!(
            outcomes(compare, half(io::WRITE, FUSED_SECOND, 4)),
            [(field, field)]
        );
        assert_eq!(
            outcomes(compare, half(io::READ, FUSED_SECOND, 3)),
            [(failed, field)]
        );
        assert_eq!(
            outcomes(half(io::READ, FUSED_FIRST, 3), write),
            [(field, failed)]
        );
        assert_eq!(
            outcomes(half(io::COMPARE, FUSED_FIRST, 16), write),
            [(range, failed)]
        );
        assert_eq!(
            outcomes(compare, half(io::WRITE, FUSED_SECOND, 16)),
            [(failed, range)]
        );
    }

    #[test]
    fn fused_half_alone_reports_its_error_or_a_missing_partner() {
        let (mut model, memory, media) = bench();
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        let range = status::LBA_OUT_OF_RANGE.dnr();
        let mut alone = |sqe: Sqe, more| {
            let (expectation, before) = model.expect(1, &sqe, more, &memory, &media);
            (expectation.statuses, before.map(|p| p.expectation.statuses))
        };
        let first = half(io::COMPARE, FUSED_FIRST, 3);
        assert_eq!(alone(first, NextCommand::No), (vec![missing], None));
        assert_eq!(alone(first, NextCommand::Unsure), (vec![missing], None));
        let outside = half(io::COMPARE, FUSED_FIRST, 16);
        assert_eq!(
            alone(outside, NextCommand::Yes),
            (vec![], Some(vec![missing]))
        );
        let plain = Sqe::of_blocks(io::VERIFY, 1, 0, 1);
        assert_eq!(
            alone(plain, NextCommand::No),
            (vec![status::SUCCESS], Some(vec![range]))
        );
        let second = half(io::WRITE, FUSED_SECOND, 3);
        assert_eq!(alone(second, NextCommand::No), (vec![missing], None));
    }
}
