// SPDX-License-Identifier: Apache-2.0

//! Abort of commands, and the end of a deleted queue's commands (nvme_abort).

use spec::nvme::{status, Sqe, Status};

use crate::context::{Event, SimContext};

use super::super::slot_table::SlotOwner;
use super::super::Controller;
use super::AdminState;

/// Cycles in which an Abort compares one slot.
const ABORT_SCAN_STEP: u64 = 2;

impl Controller {
    pub(super) fn abort(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let (sqid, cid) = (usize::from(sqe.dw[10] as u16), (sqe.dw[10] >> 16) as u16);
        if sqid == 0 {
            // Without room for the entry of the request the Abort has no effect.
            if !self.events.is_parked(cid) || !self.reserve_admin() {
                return Ok(Some(1));
            }
            let slot = self.events.abort(cid).expect("the request is parked");
            self.complete(slot, status::ABORT_REQUESTED, 0, ctx);
            return Ok(Some(0));
        }
        if self.queues.sq(sqid.min(self.queues.count())).is_none() {
            return Ok(Some(1));
        }
        self.admin.state = AdminState::AbortScan { sqid, cid };
        ctx.schedule_after(ABORT_SCAN_STEP * self.slots.len() as u64, Event::AbortScan);
        Ok(None)
    }

    /// Compares the slots with the command that an Abort names.
    pub(crate) fn abort_scan_done(&mut self, ctx: &mut SimContext) {
        let AdminState::AbortScan { sqid, cid } = self.admin.state else {
            unreachable!("an Abort waits for its scan");
        };
        let named = |owner: &Option<SlotOwner>| {
            owner.is_some_and(|o| o.decoded && usize::from(o.qid) == sqid && o.cid == cid)
        };
        let slots = (0..).zip(&self.slots).filter(|(_, owner)| named(owner));
        let slots: Vec<u16> = slots.map(|(slot, _)| slot).collect();
        for slot in slots {
            self.admin.state = AdminState::Aborting { slot };
            let found = self
                .range_walker
                .abort(slot, false, &mut self.data_path, ctx)
                || self.abort_offloaded(slot, Some(false), ctx)
                || self.abort_first(sqid, slot, ctx);
            if found {
                return;
            }
        }
        self.complete_admin(status::SUCCESS, 1, ctx);
    }

    /// Ends those commands of a deleted queue that may take long.
    pub(super) fn abort_queue_commands(&mut self, qid: usize, ctx: &mut SimContext) {
        let of = |slot: u16, slots: &[Option<SlotOwner>]| {
            slots[usize::from(slot)]
                .is_some_and(|owner| owner.decoded && usize::from(owner.qid) == qid)
        };
        self.abort_unpaired(ctx);
        for slot in 0..self.slots.len() as u16 {
            if of(slot, &self.slots) {
                self.range_walker
                    .abort(slot, true, &mut self.data_path, ctx);
                self.abort_offloaded(slot, Some(true), ctx);
            }
        }
        let slots = self.slots.clone();
        for slot in self.fused_arbiter.abort_waiting(|slot| of(slot, &slots)) {
            self.complete(slot, status::ABORTED_SQ_DELETION, 0, ctx);
        }
        self.start_commands(ctx);
    }
}
