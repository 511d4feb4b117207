// SPDX-License-Identifier: Apache-2.0

//! PRP and SGL walkers, and the queue of each direction for them (nvme_walkers).

use std::collections::VecDeque;

use nvme::WalkStep;

use crate::context::{Event, SimContext};
use crate::host_port::{HostReadData, ReadPurpose, BEAT};

use super::super::timing;
use super::transfer_tracker::Transfer;
use super::{DataPath, DataRequest, TransferResult, SEGMENT_BYTES};

/// Walkers of each direction.
const WALKERS: usize = 2;
/// Bytes of a PRP list or SGL segment that are read at a time.
const LIST_BYTES: u64 = 128;

/// The walkers of a direction.
#[derive(Default)]
pub(super) struct Walkers {
    /// Transfers that wait for a walker.
    waiting: VecDeque<u16>,
    busy: usize,
}

impl DataPath {
    /// Starts the transfer of a command.
    pub(crate) fn start(&mut self, slot: u16, request: DataRequest, ctx: &mut SimContext) {
        let walkers = &mut self.walkers[request.op.walkers()];
        self.transfers
            .open(slot, request.op, request.source, Some(request.walker));
        if walkers.busy == WALKERS {
            walkers.waiting.push_back(slot);
            return;
        }
        walkers.busy += 1;
        self.begin_walk(slot, ctx);
    }

    fn begin_walk(&mut self, slot: u16, ctx: &mut SimContext) {
        self.transfers.get_mut(slot).walking = true;
        ctx.schedule(ctx.now + timing::WALK, Event::Walk(slot));
    }

    /// Continues a walk that waits for nothing else.
    pub(crate) fn walk(&mut self, slot: u16, ctx: &mut SimContext) {
        let Some(mut transfer) = self.transfers.begin_step(slot) else {
            return;
        };
        let ended = self.walk_until_blocked(slot, &mut transfer, ctx);
        let direction = transfer.op.walkers();
        self.transfers.end_step(slot, transfer);
        if ended {
            match self.walkers[direction].waiting.pop_front() {
                Some(next) => self.begin_walk(next, ctx),
                None => self.walkers[direction].busy -= 1,
            }
            self.transfers.walk_done(slot, TransferResult::Ok, ctx);
        }
    }

    /// Walks until the walk has to wait; true once it is complete.
    fn walk_until_blocked(
        &mut self,
        slot: u16,
        transfer: &mut Transfer,
        ctx: &mut SimContext,
    ) -> bool {
        loop {
            while !transfer.assembler.ready.is_empty() {
                if !self.push_segment(slot, transfer, ctx) {
                    return false;
                }
            }
            if transfer.step_at > ctx.now {
                return false;
            }
            let Some(walker) = &mut transfer.walker else {
                return true;
            };
            match walker.step() {
                WalkStep::Data(segment) => {
                    let parts = transfer.assembler.push(
                        &transfer.source,
                        Some(segment.addr),
                        segment.len,
                        segment.offset,
                    );
                    let mut step = match segment.offset {
                        0 => timing::FIRST_PAGE,
                        _ => timing::PAGE_STEP,
                    };
                    // The segments of a group are released one after another, after its last part.
                    if parts > 1 {
                        step += timing::GROUP_SPLIT;
                    }
                    transfer.step_at = ctx.now + step;
                    ctx.schedule(transfer.step_at, Event::Walk(slot));
                }
                WalkStep::Drop(segment) => {
                    let source = &transfer.source;
                    transfer
                        .assembler
                        .push(source, None, segment.len, segment.offset);
                }
                WalkStep::NeedList(list) => {
                    // Two whole lines at most, within the page.
                    let (first, skip) = (list.addr & !(BEAT - 1), list.addr % BEAT);
                    let bytes = (skip + 8 * list.entries.min(LIST_BYTES)).next_multiple_of(BEAT);
                    let len = bytes
                        .min(LIST_BYTES)
                        .min(SEGMENT_BYTES - first % SEGMENT_BYTES)
                        as u32;
                    transfer.list = Some(list.addr);
                    ctx.read_host(timing::LIST, ReadPurpose::List(slot), first, len);
                    return false;
                }
                WalkStep::Done => {
                    transfer.walker = None;
                }
                WalkStep::Failed(fault) => {
                    transfer.walker = None;
                    transfer.assembler.drop_group();
                    transfer.fail(TransferResult::Walk(fault));
                }
            }
        }
    }

    /// Receives a part of a PRP list or SGL segment.
    pub(crate) fn list_arrived(&mut self, slot: u16, arrival: &HostReadData, ctx: &mut SimContext) {
        let transfer = self.transfers.get_mut(slot);
        let addr = transfer.list.expect("the walk waits for its list");
        let walker = (transfer.walker.as_mut()).expect("a walk has its walker until it ends");
        match &arrival.data {
            None => walker.fail(),
            Some(data) => {
                // Bytes before the first entry in its line are skipped.
                let first = addr & !(BEAT - 1);
                let skip = (addr - first).saturating_sub(arrival.offset.into()) as usize;
                let wanted = data.get(skip..).unwrap_or(&[]);
                for qword in wanted.chunks_exact(8) {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(qword);
                    walker.feed(&[u64::from_le_bytes(bytes)]);
                }
            }
        }
        if arrival.last {
            transfer.list = None;
            ctx.schedule(arrival.cycle + timing::LIST_BACK, Event::Walk(slot));
        }
    }
}
