// SPDX-License-Identifier: Apache-2.0

//! Movers and their descriptors (nvme_mover): what read side and write side share.

use std::collections::VecDeque;

use sim::TraceEvent;

use crate::context::SimContext;
use crate::host_port::BEAT;

use super::block_assembler::PrpSegments;
use super::{DataPath, TransferOp, TransferResult};

/// Buffers that are kept for reuse.
const SPARE_BUFFERS: usize = 64;

/// A transfer segment for a mover.
pub(super) struct Descriptor {
    pub(super) slot: u16,
    pub(super) op: TransferOp,
    /// Address on the media or in the page.
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) channel: usize,
    pub(super) segments: PrpSegments,
    /// Data from the host, or a copy of blocks for the host that are split over pages.
    pub(super) buffer: Vec<u8>,
    /// Bytes of each PRP segment that have arrived, the first one apart.
    pub(super) received: u32,
    pub(super) received_others: Vec<u32>,
    /// Ranges whose read the host has refused: first, end.
    pub(super) failed_ranges: Vec<(u32, u32)>,
    /// The next PRP segment of a write to request.
    pub(super) next: u16,
    /// PRP segments whose reads are not complete.
    pub(super) open_reads: u32,
    /// Compare: the data of the media has arrived.
    pub(super) media_arrived: bool,
    /// Read: bytes that have left the channel.
    pub(super) read: u32,
    /// Bytes that are part of bursts already.
    pub(super) issued: u32,
    /// Bursts in flight.
    pub(super) open: u32,
}

impl Descriptor {
    pub(super) fn new(
        slot: u16,
        op: TransferOp,
        at: u64,
        len: u32,
        channel: usize,
        segments: PrpSegments,
    ) -> Descriptor {
        Descriptor {
            slot,
            op,
            at,
            len,
            channel,
            segments,
            buffer: Vec::new(),
            received: 0,
            received_others: Vec::new(),
            failed_ranges: Vec::new(),
            next: 0,
            open_reads: 0,
            media_arrived: false,
            read: 0,
            issued: 0,
            open: 0,
        }
    }

    /// Beats of a mover's buffer that it occupies.
    pub(super) fn beats(&self) -> u32 {
        self.len.div_ceil(BEAT as u32)
    }

    /// Provides a buffer for host data.
    pub(super) fn make_buffer(&mut self, spare: &mut Vec<Vec<u8>>) {
        self.buffer = zeroed_buffer(self.len, spare);
        let segments = self.segments.as_slice().len();
        if segments > 1 {
            self.received_others = vec![0; segments - 1];
        }
    }

    /// Bytes at the start that have arrived without a gap.
    pub(super) fn received_prefix(&self) -> u32 {
        if self.op == TransferOp::Zero {
            return self.len;
        }
        let mut here = 0;
        let others = self.received_others.iter();
        let received = std::iter::once(&self.received).chain(others);
        for (segment, &received) in self.segments.as_slice().iter().zip(received) {
            here += received;
            if received < segment.len {
                break;
            }
        }
        here
    }
}

/// A buffer of zeros.
pub(super) fn zeroed_buffer(len: u32, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer.resize(len as usize, 0);
    buffer
}

/// The mover of a channel and direction.
#[derive(Default)]
pub(super) struct Mover {
    pub(super) queue: VecDeque<u32>,
    /// Descriptors whose data comes from the host, in order.
    pub(super) filling: VecDeque<u32>,
    /// Beats of room in the buffer.
    pub(super) room: u32,
    /// The edge at which the next descriptor can be issued.
    pub(super) free: u64,
    /// The edge at which the next beat can be written.
    pub(super) beats_free: u64,
}

impl Mover {
    pub(super) fn new(room: u32) -> Mover {
        Mover {
            room,
            ..Mover::default()
        }
    }
}

impl DataPath {
    pub(super) fn add_descriptor(&mut self, descriptor: Descriptor) -> u32 {
        self.descriptors.insert(descriptor) as u32
    }

    /// Fails the transfer of a descriptor.
    pub(super) fn fail_descriptor(&mut self, number: u32, result: TransferResult) {
        let slot = self.descriptors[number as usize].slot;
        self.transfers.get_mut(slot).fail(result);
    }

    /// A descriptor has ended in this cycle.
    pub(super) fn descriptor_done(&mut self, number: u32, cycle: u64, ctx: &mut SimContext) {
        let descriptor = self.descriptors.remove(number as usize);
        if descriptor.buffer.capacity() > 0 && self.spare.len() < SPARE_BUFFERS {
            self.spare.push(descriptor.buffer);
        }
        self.transfers.descriptor_done(descriptor.slot, cycle, ctx);
    }

    /// Number of a mover in a trace: movers to the host, the admin buffer, movers to the media.
    pub(super) fn mover_number(&self, direction: usize, channel: usize) -> u8 {
        (direction * (self.channels() + 1) + channel) as u8
    }

    /// Reports that the mover of a channel starts to read for a descriptor of a slot.
    pub(super) fn trace_source_read(
        &self,
        slot: u16,
        direction: usize,
        channel: usize,
        cycle: u64,
        ctx: &SimContext,
    ) {
        let (slot, mover) = (slot as u8, self.mover_number(direction, channel));
        let to_media = direction == super::WRITE;
        ctx.trace(cycle, || TraceEvent::Segment {
            slot,
            mover,
            to_media,
        });
        ctx.trace(cycle, || TraceEvent::Read { mover });
    }
}
