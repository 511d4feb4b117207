// SPDX-License-Identifier: Apache-2.0

//! Shares the host's read bandwidth among the movers of the channels (nvme_read_limit).

use crate::context::SimContext;
use crate::host_port::{LinkPort, ReadPurpose, BEAT};

use super::super::timing;
use super::mover::Descriptor;
use super::{DataPath, TransferOp, WRITE};

/// Limit of the beats of write data that are requested from the host, for all channels together.
/// One further burst may exceed it.
const HOST_READ_BEATS: u32 = 512;

#[derive(Default)]
pub(super) struct ReadLimit {
    /// Beats that are requested and have not arrived.
    beats: u32,
    /// The next channel in rotation that may request host data, and the earliest edge.
    next_channel: usize,
    free: u64,
}

impl ReadLimit {
    /// Another read may be requested.
    pub(super) fn is_open(&self) -> bool {
        self.beats < HOST_READ_BEATS
    }

    pub(super) fn requested(&mut self, beats: u32) {
        self.beats += beats;
    }

    pub(super) fn arrived(&mut self, beats: u32) {
        self.beats -= beats;
    }
}

impl DataPath {
    /// Requests write data from the host, one read at a time, with the channels in rotation. True
    /// if descriptors have left their queues.
    pub(super) fn request_write_data(&mut self, ctx: &mut SimContext) -> bool {
        let channels = self.channels();
        let mut dequeued = false;
        while self.read_limit.is_open() {
            let next = (0..channels).find_map(|n| {
                let channel = (self.read_limit.next_channel + n) % channels;
                let mover = &self.movers[WRITE][channel];
                let number = *mover.queue.front()?;
                let descriptor = &self.descriptors[number as usize];
                let room = descriptor.next > 0 || mover.room >= descriptor.beats();
                (descriptor.op == TransferOp::Write && room).then_some((channel, number))
            });
            let Some((channel, number)) = next else {
                break;
            };
            let descriptor = &mut self.descriptors[number as usize];
            let mover = &mut self.movers[WRITE][channel];
            let at = self.read_limit.free.max(ctx.now);
            let slot = descriptor.slot;
            let begins = descriptor.next == 0;
            if begins {
                // Data of a single segment is kept in the buffer in which it arrives.
                if descriptor.segments.as_slice().len() > 1 {
                    descriptor.make_buffer(&mut self.spare);
                }
                mover.room -= descriptor.beats();
                mover.filling.push_back(number);
            }
            let segment = descriptor.next.into();
            let beats = request_host_data(number, descriptor, segment, at, &mut ctx.port.link);
            if beats > 0 {
                // A request counts from the next cycle on.
                self.read_limit.requested(beats);
                self.read_limit.free = at + 2;
                self.read_limit.next_channel = (channel + 1) % channels;
                ctx.schedule_host_reads(at + timing::DATA_READ);
            }
            descriptor.next += 1;
            if usize::from(descriptor.next) == descriptor.segments.as_slice().len() {
                mover.queue.pop_front();
                dequeued = true;
            }
            if begins {
                self.trace_source_read(slot, WRITE, channel, at, ctx);
            }
        }
        dequeued
    }
}

/// Requests a PRP segment of a descriptor from the host; returns the beats of the answer.
pub(super) fn request_host_data(
    number: u32,
    descriptor: &mut Descriptor,
    place: usize,
    at: u64,
    link: &mut LinkPort,
) -> u32 {
    let segment = descriptor.segments.as_slice()[place];
    let Some(host) = segment.host else {
        return 0;
    };
    // A read extends to the end of its last beat.
    let skip = host % BEAT;
    let bytes = (skip + u64::from(segment.len)).next_multiple_of(BEAT);
    let purpose = ReadPurpose::Data(number, place as u16, descriptor.channel as u8);
    link.request_read(at + timing::DATA_READ, purpose, host, (bytes - skip) as u32);
    descriptor.open_reads += 1;
    (bytes / BEAT) as u32
}
