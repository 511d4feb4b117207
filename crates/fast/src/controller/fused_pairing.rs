// SPDX-License-Identifier: Apache-2.0

//! Fused Compare and Write (NVMe 1.4, 4.12; nvme_fused_pairing). The first command of a pair is
//! kept until the next command of its queue arrives.

use spec::nvme::{io, status, Sqe, Status};

use crate::context::{Event, SimContext};

use super::decode::{DataCommand, Decoded, FUSE_FIRST, FUSE_SECOND};
use super::{data_path, Controller};

/// Least time that a first command waits for its partner, in ms; it may wait twice as long.
const PARTNER_TIMEOUT_MS: u64 = 25;

/// A first command that waits for its partner.
#[derive(Clone)]
pub(super) struct FirstCommand {
    slot: u16,
    sqe: Sqe,
    decoded: Decoded,
    since: u64,
}

/// The waiting first commands, by submission queue.
pub(super) struct Fused(Vec<Option<FirstCommand>>);

impl Fused {
    pub(super) fn new(queues: usize) -> Fused {
        Fused(vec![None; queues])
    }

    /// A first command of the queue waits, so the queue's next command belongs to it.
    pub(super) fn has_first(&self, qid: usize) -> bool {
        self.0[qid].is_some()
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(None);
    }
}

/// The error that decoding has found in a command, if any.
fn decode_error(decoded: &Decoded) -> Option<Status> {
    match decoded {
        Decoded::Complete(status) if !status.is_success() => Some(*status),
        _ => None,
    }
}

/// The data command that was decoded, if it has this opcode.
fn data_command<'a>(decoded: &'a Decoded, sqe: &Sqe, opcode: u8) -> Option<&'a DataCommand> {
    match decoded {
        Decoded::Data(command) if sqe.opcode() == opcode => Some(command),
        _ => None,
    }
}

impl Controller {
    /// Handles a command that is fused or follows a first command.
    pub(super) fn fused_command(
        &mut self,
        qid: usize,
        slot: u16,
        sqe: Sqe,
        more: bool,
        decoded: Decoded,
        ctx: &mut SimContext,
    ) {
        let missing = status::ABORTED_MISSING_FUSED.dnr();
        if let Some(first) = self.fused.0[qid].take() {
            if sqe.fuse() == FUSE_SECOND {
                self.submit_fused_pair(first, slot, sqe, decoded, ctx);
                return;
            }
            self.end_first(first, missing, ctx);
        }
        let own = decode_error(&decoded);
        match sqe.fuse() {
            FUSE_FIRST if more => {
                let since = ctx.now;
                self.fused.0[qid] = Some(FirstCommand {
                    slot,
                    sqe,
                    decoded,
                    since,
                });
                let cycles = ctx.cycles_of_ms(PARTNER_TIMEOUT_MS) * 3 / 2;
                ctx.schedule_after(cycles, Event::FusedTimeout);
            }
            0 => self.execute(slot, sqe, decoded, ctx),
            // Errors of the command itself have priority.
            _ => self.complete(slot, own.unwrap_or(missing), 0, ctx),
        }
    }

    /// Submits a pair of which both commands have arrived, or ends both.
    fn submit_fused_pair(
        &mut self,
        first: FirstCommand,
        slot: u16,
        sqe: Sqe,
        decoded: Decoded,
        ctx: &mut SimContext,
    ) {
        let (invalid, failed) = (
            status::INVALID_FIELD.dnr(),
            status::ABORTED_FAILED_FUSED.dnr(),
        );
        let compare = data_command(&first.decoded, &first.sqe, io::COMPARE);
        let write = data_command(&decoded, &sqe, io::WRITE);
        let first_wrong = decode_error(&first.decoded).or(compare.is_none().then_some(invalid));
        let second_wrong = decode_error(&decoded).or(write.is_none().then_some(invalid));
        if let (Some(compare), Some(write)) = (compare, write) {
            if compare.span == write.span {
                let (compare, write) = (compare.clone(), write.clone());
                self.mark_in_flight(compare.slot, compare.span.namespace);
                self.mark_in_flight(write.slot, write.span.namespace);
                self.fused_arbiter.submit_pair(compare, write);
                self.start_commands(ctx);
                return;
            }
        }
        let (first_status, second_status) = match (first_wrong, second_wrong) {
            (Some(first), Some(second)) => (first, second),
            (Some(first), None) => (first, failed),
            (None, Some(second)) => (failed, second),
            // The ranges differ.
            (None, None) => (invalid, invalid),
        };
        self.complete(first.slot, first_status, 0, ctx);
        self.complete(slot, second_status, 0, ctx);
    }

    /// Ends a first command without its partner.
    fn end_first(&mut self, first: FirstCommand, status: Status, ctx: &mut SimContext) {
        let status = decode_error(&first.decoded).unwrap_or(status);
        self.complete(first.slot, status, 0, ctx);
    }

    /// Ends first commands that have waited for too long.
    pub(super) fn expire_fused(&mut self, ctx: &mut SimContext) {
        let late = ctx.cycles_of_ms(PARTNER_TIMEOUT_MS);
        let interrupted = data_path::interrupted(self.features.acre());
        for qid in 0..self.fused.0.len() {
            let due = |first: &mut FirstCommand| ctx.now - first.since >= late;
            if let Some(first) = self.fused.0[qid].take_if(due) {
                self.end_first(first, interrupted, ctx);
            }
        }
    }

    /// Ends first commands whose partner can't arrive any more: commands are not fetched, or the
    /// queue is being deleted.
    pub(super) fn abort_unpaired(&mut self, ctx: &mut SimContext) {
        let fetches = self.accepts_commands();
        for qid in 0..self.fused.0.len() {
            let gone = !fetches || self.queues.sq(qid).is_none();
            if let Some(first) = self.fused.0[qid].take_if(|_| gone) {
                self.end_first(first, status::ABORTED_MISSING_FUSED.dnr(), ctx);
            }
        }
    }

    /// Aborts a waiting first command that has no error itself.
    pub(super) fn abort_first(&mut self, qid: usize, slot: u16, ctx: &mut SimContext) -> bool {
        let named =
            |first: &mut FirstCommand| first.slot == slot && decode_error(&first.decoded).is_none();
        let Some(first) = self.fused.0[qid].take_if(named) else {
            return false;
        };
        self.end_first(first, status::ABORT_REQUESTED, ctx);
        true
    }
}
