// SPDX-License-Identifier: Apache-2.0

//! Completion queue entries, and the MSI-X messages that follow them (nvme_completion).

use sim::TraceEvent;
use spec::nvme::{Cqe, Status, CQE_BYTES};

use crate::context::SimContext;
use crate::host_port::BurstOwner;
use crate::msix::Message;

use super::error_log::FailedCommand;
use super::queues::next_index;
use super::{timing, Controller};

impl Controller {
    /// Ends a command. Its entry is posted once there is room.
    pub(super) fn complete(&mut self, slot: u16, status: Status, dw0: u32, ctx: &mut SimContext) {
        self.completions.push_back((slot, status, dw0));
        if self.completions.len() == 1 {
            self.post_entries(ctx);
        }
    }

    /// Posts entries and messages while there is room.
    pub(super) fn post_entries(&mut self, ctx: &mut SimContext) {
        self.send_messages(ctx);
        while let Some(&(slot, status, dw0)) = self.completions.front() {
            if !ctx.port.has_room() {
                return;
            }
            self.post_entry(slot, status, dw0, ctx);
            self.completions.pop_front();
            self.send_messages(ctx);
        }
    }

    /// Posts the entry of a command and frees its slot.
    fn post_entry(&mut self, slot: u16, status: Status, dw0: u32, ctx: &mut SimContext) {
        let owner = *self.owner(slot);
        let sq = self.queues.sq_mut(owner.qid.into());
        let (cqid, head) = (sq.cqid, sq.arrived as u16);
        let cq = self.queues.cq_mut(cqid);
        let entry = Cqe::new(dw0, head, owner.qid, owner.cid, cq.phase, status);
        let addr = cq.base + CQE_BYTES as u64 * u64::from(cq.tail);
        let phase = cq.phase;
        cq.tail = next_index(cq.tail, cq.size);
        cq.phase ^= cq.tail == 0;
        let vector = cq.vector;
        self.logs.errors.completed(
            FailedCommand {
                sqid: owner.qid,
                cid: owner.cid,
                nsid: owner.nsid,
                lba: owner.lba,
            },
            status,
            phase,
        );
        let at = self.complete_at.max(ctx.now + timing::COMPLETE);
        self.complete_at = at + timing::COMPLETE_STEP;
        ctx.trace(at - 1, || TraceEvent::Post);
        ctx.trace(at, || TraceEvent::Sent {
            slot: slot as u8,
            addr,
            entry: entry.to_bytes(),
            vector: vector.map(|vector| vector as u8),
        });
        // The next admin command is fetched after the entry of the present one is sent. Other
        // entries of the admin queue need no notification.
        let owner = self
            .admin
            .take_completed(slot)
            .then_some(BurstOwner::AdminEntry);
        ctx.post_write(at, addr, &entry.to_bytes(), owner);
        self.retire(slot);
        if let Some(vector) = vector {
            let enabled = self.accepts_commands();
            self.coalescer
                .entry_posted(vector, cqid == 0, enabled, &self.features, ctx);
        }
        self.admin_entry_posted(slot, status, ctx);
        self.slot_retired(ctx);
    }

    /// Posts the MSI-X messages that are ready.
    pub(crate) fn send_messages(&mut self, ctx: &mut SimContext) {
        while ctx.port.has_room() {
            let Some(Message { vector, addr, data }) = ctx.msix.next_message() else {
                return;
            };
            ctx.trace(ctx.now + timing::MESSAGE, || TraceEvent::Message {
                vector: vector as u8,
                addr,
                data,
            });
            let cycle = ctx.now + timing::MESSAGE;
            ctx.post_write(cycle, addr, &data.to_le_bytes(), None);
        }
    }
}
