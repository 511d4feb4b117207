//! Fused Compare and Write (NVMe 1.4, 4.12; nvme_fused): the first command of a pair is kept until the next one of its queue comes.

use spec::nvme::{io, status, Sqe, Status};

use crate::cx::{Cx, Event};

use super::io::{Command, Verdict, FUSE_FIRST, FUSE_SECOND};
use super::{data, Controller};

/// A first command waits for its partner for so many ms, or up to twice as long.
const PATIENCE_MS: u64 = 25;

/// A first command that is kept.
#[derive(Clone)]
pub(super) struct First {
    slot: u16,
    sqe: Sqe,
    verdict: Verdict,
    since: u64,
}

/// By submission queue.
pub(super) struct Fused(Vec<Option<First>>);

impl Fused {
    pub(super) fn new(queues: usize) -> Fused {
        Fused(vec![None; queues])
    }

    /// The queue's next command belongs here.
    pub(super) fn keeps(&self, qid: usize) -> bool {
        self.0[qid].is_some()
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(None);
    }
}

/// The own error of a command, if it has one.
fn error(verdict: &Verdict) -> Option<Status> {
    match verdict {
        Verdict::Over(status) if !status.is_success() => Some(*status),
        _ => None,
    }
}

/// The data command that a command is, if it is of this opcode.
fn of<'a>(verdict: &'a Verdict, sqe: &Sqe, opcode: u8) -> Option<&'a Command> {
    match verdict {
        Verdict::Data(command) if sqe.opcode() == opcode => Some(command),
        _ => None,
    }
}

impl Controller {
    /// A command that is fused, or that comes behind a first one.
    pub(super) fn fused_command(
        &mut self,
        qid: usize,
        slot: u16,
        sqe: Sqe,
        more: bool,
        verdict: Verdict,
        cx: &mut Cx,
    ) {
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        if let Some(first) = self.fused.0[qid].take() {
            if sqe.fuse() == FUSE_SECOND {
                self.pair(first, slot, sqe, verdict, cx);
                return;
            }
            self.end_first(first, missing, cx);
        }
        let own = error(&verdict);
        match sqe.fuse() {
            FUSE_FIRST if more => {
                let since = cx.now;
                self.fused.0[qid] = Some(First {
                    slot,
                    sqe,
                    verdict,
                    since,
                });
                let cycles = cx.ms(PATIENCE_MS) * 3 / 2;
                cx.after(cycles, Event::Fused);
            }
            0 => self.carry_out(slot, sqe, verdict, cx),
            // A command's own errors come first.
            _ => self.complete(slot, own.unwrap_or(missing), 0, cx),
        }
    }

    /// Both are here.
    fn pair(&mut self, first: First, slot: u16, sqe: Sqe, verdict: Verdict, cx: &mut Cx) {
        let (invalid, failed) = (
            status::INVALID_FIELD.dnr(),
            status::ABORTED_FAILED_FUSED.dnr(),
        );
        let compare = of(&first.verdict, &first.sqe, io::COMPARE);
        let write = of(&verdict, &sqe, io::WRITE);
        let first_wrong = error(&first.verdict).or(compare.is_none().then_some(invalid));
        let second_wrong = error(&verdict).or(write.is_none().then_some(invalid));
        if let (Some(compare), Some(write)) = (compare, write) {
            if compare.span == write.span {
                let (compare, write) = (compare.clone(), write.clone());
                self.fly(compare.slot, compare.span.namespace);
                self.fly(write.slot, write.span.namespace);
                self.pairs.submit_pair(compare, write);
                self.start_commands(cx);
                return;
            }
        }
        let (first_status, second_status) = match (first_wrong, second_wrong) {
            (Some(first), Some(second)) => (first, second),
            (Some(first), None) => (first, failed),
            (None, Some(second)) => (failed, second),
            // Other ranges.
            (None, None) => (invalid, invalid),
        };
        self.complete(first.slot, first_status, 0, cx);
        self.complete(slot, second_status, 0, cx);
    }

    /// A first command ends without a partner.
    fn end_first(&mut self, first: First, status: Status, cx: &mut Cx) {
        let status = error(&first.verdict).unwrap_or(status);
        self.complete(first.slot, status, 0, cx);
    }

    /// First commands that have waited for too long end.
    pub(super) fn fused_due(&mut self, cx: &mut Cx) {
        let late = cx.ms(PATIENCE_MS);
        let interrupted = data::interrupted(self.features.acre());
        for qid in 0..self.fused.0.len() {
            let due = |first: &mut First| cx.now - first.since >= late;
            if let Some(first) = self.fused.0[qid].take_if(due) {
                self.end_first(first, interrupted, cx);
            }
        }
    }

    /// Commands are not fetched any more, or a queue is being deleted: its first command has no partner.
    pub(super) fn give_up_halves(&mut self, cx: &mut Cx) {
        let fetches = self.fetches();
        for qid in 0..self.fused.0.len() {
            let gone = !fetches || self.queues.sq(qid).is_none();
            if let Some(first) = self.fused.0[qid].take_if(|_| gone) {
                self.end_first(first, status::ABORTED_MISSING_FUSED.dnr(), cx);
            }
        }
    }

    /// Ends a first command because of an Abort, if it is kept and has no error of its own.
    pub(super) fn abort_first(&mut self, qid: usize, slot: u16, cx: &mut Cx) -> bool {
        let named = |first: &mut First| first.slot == slot && error(&first.verdict).is_none();
        let Some(first) = self.fused.0[qid].take_if(named) else {
            return false;
        };
        self.end_first(first, status::ABORT_REQUESTED, cx);
        true
    }
}
