// SPDX-License-Identifier: Apache-2.0

//! Transfer segments become descriptors for the mover of their channel (nvme_splitter). A full
//! mover blocks the segments that follow.

use sim::TraceEvent;

use crate::context::{Event, SimContext};
use crate::memory::Memories;

use super::super::timing;
use super::block_assembler::{PrpSegments, TransferSegment};
use super::mover::Descriptor;
use super::transfer_tracker::Transfer;
use super::{DataPath, DataSource, TransferOp, TransferResult};

/// Descriptors that wait in a mover.
const MOVER_QUEUE: usize = 16;

impl DataPath {
    /// Opens a transfer without a walk of PRPs. [`DataPath::push_range_segment`] supplies its
    /// segments until [`DataPath::range_walk_done`].
    pub(crate) fn open_range_op(&mut self, slot: u16, op: TransferOp) {
        self.range_walks += 1;
        self.transfers.open(slot, op, DataSource::Media(0), None);
    }

    /// Ends the supply of segments to a transfer.
    pub(crate) fn range_walk_done(
        &mut self,
        slot: u16,
        result: TransferResult,
        ctx: &mut SimContext,
    ) {
        self.range_walks -= 1;
        self.transfers.walk_done(slot, result, ctx);
    }

    /// Adds a descriptor of zeros or verification within 4 KiB of the media; false if its mover has
    /// no room.
    pub(crate) fn push_range_segment(
        &mut self,
        slot: u16,
        at: u64,
        len: u32,
        ctx: &mut SimContext,
    ) -> bool {
        let op = self.transfers.get(slot).op;
        let direction = op.direction();
        let channel = channel_of(ctx.memory, at);
        if !self.has_room(direction, channel) {
            return false;
        }
        self.transfers.get_mut(slot).descriptor_opened();
        let none = PrpSegments::Many(Vec::new());
        let number = self.add_descriptor(Descriptor::new(slot, op, at, len, channel, none));
        self.movers[direction][channel].queue.push_back(number);
        self.issue_descriptors(direction, channel, ctx);
        true
    }

    /// Turns a transfer's next segment into a descriptor for its mover; false if that has no room.
    pub(super) fn push_segment(
        &mut self,
        slot: u16,
        transfer: &mut Transfer,
        ctx: &mut SimContext,
    ) -> bool {
        let direction = transfer.op.direction();
        let media = matches!(transfer.source, DataSource::Media(_));
        let next = transfer.assembler.ready.front();
        let at = next.expect("the caller has seen a segment").at;
        let channel = match media {
            true => channel_of(ctx.memory, at),
            false => 0,
        };
        if !self.has_room(direction, channel) {
            if !self.stalled.contains(&slot) {
                self.stalled.push_back(slot);
            }
            return false;
        }
        let next = transfer.assembler.ready.pop_front();
        let TransferSegment { at, len, segments } = next.expect("a segment is the first one");
        transfer.descriptor_opened();
        let descriptor = Descriptor::new(slot, transfer.op, at, len, channel, segments);
        let number = self.add_descriptor(descriptor);
        if media {
            self.movers[direction][channel].queue.push_back(number);
            self.issue_descriptors(direction, channel, ctx);
            return true;
        }
        // The admin buffer answers at once.
        let slot = slot as u8;
        let ready = ctx.now + timing::PAGE;
        let mover = self.channels() as u8;
        ctx.trace(ctx.now, || TraceEvent::Segment {
            slot,
            mover,
            to_media: false,
        });
        ctx.trace(ready, || TraceEvent::Data { mover });
        self.descriptors[number as usize].read = len;
        self.make_host_bursts(number, ready, ctx);
        ctx.schedule(ready, Event::HostWrite);
        true
    }

    fn has_room(&self, direction: usize, channel: usize) -> bool {
        self.movers[direction][channel].queue.len() < MOVER_QUEUE
    }

    /// Descriptors have left the queues of their movers: transfers that wait for room continue.
    pub(super) fn resume_stalled(&mut self, ctx: &mut SimContext) {
        while let Some(slot) = self.stalled.pop_front() {
            ctx.schedule(ctx.now, Event::Walk(slot));
        }
        if self.range_walks > 0 {
            ctx.schedule(ctx.now, Event::RangeWalk);
        }
    }
}

/// The channel of an address on the media.
fn channel_of(memory: &Memories, at: u64) -> usize {
    let place = memory.locate(at);
    place.expect("decoding has checked the range").channel
}
