// SPDX-License-Identifier: Apache-2.0

//! Transfers in progress and their ends (nvme_transfer_tracker). A transfer ends after its walk and
//! all of its descriptors. The first error becomes its result.

use nvme::Walker;

use crate::context::{Event, SimContext};

use super::super::timing;
use super::block_assembler::BlockAssembler;
use super::{DataSource, TransferOp, TransferResult};

pub(super) struct Transfer {
    pub(super) op: TransferOp,
    pub(super) source: DataSource,
    pub(super) walker: Option<Walker>,
    /// A read of a list is in progress: address of its first entry.
    pub(super) list: Option<u64>,
    /// It occupies a walker.
    pub(super) walking: bool,
    /// The edge of its next step.
    pub(super) step_at: u64,
    pub(super) assembler: BlockAssembler,
    /// Descriptors in flight.
    open: u32,
    walked: bool,
    result: TransferResult,
}

impl Transfer {
    /// A descriptor of the transfer is in flight.
    pub(super) fn descriptor_opened(&mut self) {
        self.open += 1;
    }

    /// The first error determines the result.
    pub(super) fn fail(&mut self, result: TransferResult) {
        if self.result == TransferResult::Ok {
            self.result = result;
        }
    }
}

pub(super) struct TransferTracker {
    transfers: Vec<Option<Box<Transfer>>>,
    /// Transfers for reuse.
    #[allow(clippy::vec_box, reason = "they go back into their slots as they are")]
    spare: Vec<Box<Transfer>>,
}

impl TransferTracker {
    pub(super) fn new(slots: u16) -> TransferTracker {
        TransferTracker {
            transfers: (0..slots).map(|_| None).collect(),
            spare: Vec::new(),
        }
    }

    /// Opens the transfer of a slot.
    pub(super) fn open(
        &mut self,
        slot: u16,
        op: TransferOp,
        source: DataSource,
        walker: Option<Walker>,
    ) {
        let mut transfer = self.spare.pop().unwrap_or_else(|| {
            Box::new(Transfer {
                op,
                source: DataSource::Media(0),
                walker: None,
                list: None,
                walking: false,
                step_at: 0,
                assembler: BlockAssembler::default(),
                open: 0,
                walked: false,
                result: TransferResult::Ok,
            })
        });
        // The other fields of a transfer that has ended are in their initial state.
        transfer.op = op;
        transfer.source = source;
        transfer.walker = walker;
        transfer.list = None;
        transfer.assembler.drop_group();
        transfer.walked = false;
        transfer.result = TransferResult::Ok;
        let place = &mut self.transfers[usize::from(slot)];
        debug_assert!(place.is_none(), "a slot has one transfer at a time");
        *place = Some(transfer);
    }

    /// The transfer of a slot.
    pub(super) fn get(&self, slot: u16) -> &Transfer {
        let transfer = self.transfers[usize::from(slot)].as_deref();
        transfer.expect("a transfer is open until its walk and its descriptors have ended")
    }

    /// The transfer of a slot, to be changed.
    pub(super) fn get_mut(&mut self, slot: u16) -> &mut Transfer {
        let transfer = self.transfers[usize::from(slot)].as_deref_mut();
        transfer.expect("a transfer is open until its walk and its descriptors have ended")
    }

    /// Removes the transfer of a slot for a step of its walk. `None` if the walk waits for a list,
    /// or has ended: several events may have asked for the step.
    pub(super) fn begin_step(&mut self, slot: u16) -> Option<Box<Transfer>> {
        self.transfers[usize::from(slot)].take_if(|t| t.walking && t.list.is_none())
    }

    /// Returns the transfer of a slot after a step.
    pub(super) fn end_step(&mut self, slot: u16, transfer: Box<Transfer>) {
        self.transfers[usize::from(slot)] = Some(transfer);
    }

    /// The walk of a transfer has ended.
    pub(super) fn walk_done(&mut self, slot: u16, result: TransferResult, ctx: &mut SimContext) {
        let transfer = self.get_mut(slot);
        transfer.walked = true;
        transfer.walking = false;
        transfer.fail(result);
        if transfer.open == 0 {
            ctx.schedule(ctx.now + timing::TRANSFER_DONE, Event::TransferDone(slot));
        }
    }

    /// A descriptor of a transfer has ended in this cycle.
    pub(super) fn descriptor_done(&mut self, slot: u16, cycle: u64, ctx: &mut SimContext) {
        let transfer = self.get_mut(slot);
        transfer.open -= 1;
        if transfer.open == 0 && transfer.walked {
            let cycle = cycle.max(ctx.now) + timing::TRANSFER_DONE;
            ctx.schedule(cycle, Event::TransferDone(slot));
        }
    }

    /// Removes a transfer that is complete and returns its result.
    pub(super) fn take_result(&mut self, slot: u16) -> TransferResult {
        let transfer = self.transfers[usize::from(slot)].take();
        let mut transfer = transfer.expect("a transfer is reported as complete once");
        debug_assert!(transfer.walked && transfer.open == 0);
        transfer.source = DataSource::Media(0);
        let result = transfer.result;
        self.spare.push(transfer);
        result
    }
}
