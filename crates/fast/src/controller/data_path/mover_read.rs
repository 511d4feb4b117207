// SPDX-License-Identifier: Apache-2.0

//! Read side of the movers (nvme_mover_read): reads the source of descriptors, which are the media
//! or the host, while there is room for their data.

use sim::TraceEvent;

use crate::context::{Event, SimContext, TAG_READ};
use crate::host_port::{trace_beats, HostReadData, BEAT};
use crate::memory::master;

use super::super::timing;
use super::mover::zeroed_buffer;
use super::read_limit::request_host_data;
use super::{DataPath, TransferOp, TransferResult, NVME_ID, READ, SEGMENT_BYTES, WRITE};

/// Data from the host on the way through its mover.
pub(super) struct ArrivingData {
    /// The edge at which it arrives.
    cycle: u64,
    descriptor: u32,
    segment: u16,
    data: HostReadData,
}

impl DataPath {
    /// Issues descriptors of a mover while there is room.
    pub(super) fn issue_descriptors(
        &mut self,
        direction: usize,
        channel: usize,
        ctx: &mut SimContext,
    ) {
        let mut dequeued = false;
        while let Some(&number) = self.movers[direction][channel].queue.front() {
            let descriptor = &mut self.descriptors[number as usize];
            let mover = &mut self.movers[direction][channel];
            let beats = descriptor.beats();
            let at = mover.free.max(ctx.now);
            if mover.room < beats {
                break;
            }
            match descriptor.op {
                TransferOp::Read | TransferOp::Verify | TransferOp::Compare => {
                    let hazard = &mut self.hazards[channel];
                    if hazard.reads() >= self.reads {
                        break;
                    }
                    let (from, len) = (descriptor.at, descriptor.len.into());
                    let filter = ctx.filter.as_deref_mut();
                    if filter.is_some_and(|filter| !filter.admit_nvme(false, channel, from, len)) {
                        break;
                    }
                    if !hazard.begin_read(descriptor.at) {
                        break;
                    }
                    let addr = ctx.memory.channel_address(descriptor.at);
                    let tag = TAG_READ | u64::from(number);
                    let cycle = at + timing::READ_ISSUE;
                    ctx.memory.prefetch(descriptor.at, descriptor.len);
                    ctx.memory.channels[channel].read(
                        cycle,
                        master::NVME,
                        NVME_ID,
                        addr,
                        descriptor.len,
                        tag,
                    );
                    ctx.schedule_channel(channel);
                    if descriptor.op == TransferOp::Compare {
                        descriptor.make_buffer(&mut self.spare);
                        for segment in 0..descriptor.segments.as_slice().len() {
                            let link = &mut ctx.port.link;
                            let beats = request_host_data(number, descriptor, segment, at, link);
                            self.read_limit.requested(beats);
                        }
                        ctx.schedule_host_reads(at + timing::DATA_READ);
                    }
                }
                TransferOp::Write => {
                    dequeued |= self.request_write_data(ctx);
                    let front = self.movers[WRITE][channel].queue.front();
                    if front == Some(&number) {
                        break;
                    }
                    continue;
                }
                TransferOp::Zero => {
                    mover.filling.push_back(number);
                    ctx.schedule(at + timing::ZERO, Event::MediaWrite(channel as u8));
                }
            }
            mover.room -= beats;
            mover.free = at + 1;
            mover.queue.pop_front();
            dequeued = true;
            let slot = descriptor.slot;
            self.trace_source_read(slot, direction, channel, at, ctx);
        }
        if dequeued {
            self.resume_stalled(ctx);
        }
    }

    /// Receives read data of the media: the cycle of the last beat, the number of beats, and
    /// whether it ends the burst.
    pub(crate) fn media_read(
        &mut self,
        number: u32,
        cycle: u64,
        beats: u32,
        end: bool,
        ctx: &mut SimContext,
    ) {
        let descriptor = &mut self.descriptors[number as usize];
        let (channel, op, from) = (descriptor.channel, descriptor.op, descriptor.read);
        let (at, len) = (descriptor.at, descriptor.len);
        descriptor.read = match end {
            true => len,
            false => (from + beats * BEAT as u32).min(len),
        };
        let mover = self.mover_number(READ, channel);
        let beat = TraceEvent::Beat { mover };
        trace_beats(ctx.clock, cycle + 1, beats.into(), beat, ctx.tracer);
        if from == 0 {
            let first = cycle.saturating_sub(u64::from(beats));
            ctx.trace(first, || TraceEvent::Data { mover });
        }
        if op == TransferOp::Read {
            self.snapshot(number, from, ctx);
            let ready = cycle + timing::READ_BACK;
            self.make_host_bursts(number, ready, ctx);
            ctx.schedule(ready, Event::HostWrite);
        }
        if !end {
            return;
        }
        // The burst's slot is free after its last beat.
        ctx.schedule(cycle, Event::MediaReadDone(channel as u8));
        match op {
            TransferOp::Read => self.finish_read_if_sent(number, ctx),
            TransferOp::Verify => {
                let mut block = [0; SEGMENT_BYTES as usize];
                if !ctx.memory.read(at, &mut block[..len as usize]) {
                    self.fail_descriptor(number, TransferResult::ReadError);
                }
                self.movers[READ][channel].room += len.div_ceil(BEAT as u32);
                self.descriptor_done(number, cycle, ctx);
            }
            TransferOp::Compare => {
                self.descriptors[number as usize].media_arrived = true;
                self.compare(number, cycle, ctx);
            }
            TransferOp::Write | TransferOp::Zero => {
                unreachable!("only reads, comparisons and verifications read the media")
            }
        }
    }

    /// Frees the slot of a read burst.
    pub(crate) fn media_read_slot_free(&mut self, channel: usize, ctx: &mut SimContext) {
        self.hazards[channel].end_read();
        self.issue_media_writes(channel, ctx);
        self.issue_descriptors(READ, channel, ctx);
    }

    /// Receives host data of a descriptor, or the error of its read.
    pub(crate) fn host_data_arrived(
        &mut self,
        number: u32,
        segment: u16,
        arrival: HostReadData,
        ctx: &mut SimContext,
    ) {
        let descriptor = &self.descriptors[number as usize];
        let (channel, op) = (descriptor.channel, descriptor.op);
        if segment == 0 && descriptor.received == 0 && op == TransferOp::Write {
            let mover = self.mover_number(WRITE, channel);
            ctx.trace(ctx.now, || TraceEvent::Data { mover });
        }
        self.read_limit.arrived(arrival.beats);
        if self.read_limit.is_open() {
            for channel in 0..self.channels() {
                self.issue_descriptors(WRITE, channel, ctx);
            }
        }
        if op == TransferOp::Write {
            // Data is complete with its last beat.
            let cycle = arrival.cycle + timing::DATA_BACK;
            ctx.schedule(cycle, Event::MediaWrite(channel as u8));
            self.arriving.push_back(ArrivingData {
                cycle,
                descriptor: number,
                segment,
                data: arrival,
            });
            return;
        }
        self.accept_host_data(number, segment, arrival, ctx);
    }

    /// Accepts the host data that has passed its mover by now.
    pub(super) fn accept_arrived_data(&mut self, ctx: &mut SimContext) {
        while (self.arriving.front()).is_some_and(|arriving| arriving.cycle <= ctx.now) {
            let arriving = self.arriving.pop_front().expect("the first one is due");
            self.accept_host_data(arriving.descriptor, arriving.segment, arriving.data, ctx);
        }
    }

    /// Adds host data to its descriptor, from which bursts are made.
    fn accept_host_data(
        &mut self,
        number: u32,
        segment: u16,
        arrival: HostReadData,
        ctx: &mut SimContext,
    ) {
        let descriptor = &mut self.descriptors[number as usize];
        let segments = descriptor.segments.as_slice();
        let before: u32 = segments[..usize::from(segment)].iter().map(|p| p.len).sum();
        let wanted = segments[usize::from(segment)].len;
        let received = match segment {
            0 => &mut descriptor.received,
            n => &mut descriptor.received_others[usize::from(n) - 1],
        };
        match arrival.data {
            Some(mut data)
                if *received == 0
                    && descriptor.buffer.is_empty()
                    && data.len() >= descriptor.len as usize =>
            {
                data.truncate(descriptor.len as usize);
                *received = descriptor.len;
                descriptor.buffer = data;
            }
            Some(data) => {
                if descriptor.buffer.is_empty() {
                    descriptor.buffer = zeroed_buffer(descriptor.len, &mut self.spare);
                }
                let room = (wanted - *received).min(data.len() as u32);
                let from = (before + *received) as usize;
                descriptor.buffer[from..from + room as usize]
                    .copy_from_slice(&data[..room as usize]);
                *received += room;
            }
            None => {
                descriptor
                    .failed_ranges
                    .push((before + *received, before + wanted));
                *received = wanted;
            }
        }
        if arrival.last {
            // A read that ends early has failed.
            if *received < wanted {
                descriptor
                    .failed_ranges
                    .push((before + *received, before + wanted));
                *received = wanted;
            }
            descriptor.open_reads -= 1;
        }
        if descriptor.op == TransferOp::Compare && descriptor.open_reads == 0 {
            self.compare(number, arrival.cycle, ctx);
        }
    }
}
