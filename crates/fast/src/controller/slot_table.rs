// SPDX-License-Identifier: Apache-2.0

//! Command slots and their owners (nvme_slot_table).

use crate::context::{Event, SimContext};

use super::smart::IoCount;
use super::Controller;

/// The command that occupies a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotOwner {
    pub(super) qid: u16,
    /// Its submission queue entry has arrived.
    pub(super) decoded: bool,
    pub(super) cid: u16,
    pub(super) nsid: u32,
    pub(super) lba: u64,
    /// The namespace in which the command is in flight.
    pub(super) in_flight: Option<u32>,
    pub(super) counts: IoCount,
}

impl Controller {
    /// The command that occupies a slot.
    pub(super) fn owner(&mut self, slot: u16) -> &mut SlotOwner {
        let owner = self.slots[usize::from(slot)].as_mut();
        owner.expect("a slot has its owner from the fetch to the entry")
    }

    pub(super) fn mark_in_flight(&mut self, slot: u16, nsid: u32) {
        self.owner(slot).in_flight = Some(nsid);
    }

    /// Frees a slot, with or without an entry.
    pub(super) fn retire(&mut self, slot: u16) {
        let qid = self.owner(slot).qid;
        self.queues.sq_mut(qid.into()).in_flight -= 1;
        self.free_slot(slot);
    }

    pub(super) fn free_slot(&mut self, slot: u16) {
        let owner = self.slots[usize::from(slot)].take();
        debug_assert!(owner.is_some(), "a slot is freed once");
        self.free_slots.push_back(slot);
    }

    pub(super) fn slot_retired(&mut self, ctx: &mut SimContext) {
        if self.accepts_commands() {
            self.schedule_fetch(1, ctx);
        } else {
            ctx.schedule_after(1, Event::ControllerState);
        }
        self.resume_admin(ctx);
    }
}
