// SPDX-License-Identifier: Apache-2.0

//! Write side of the movers (nvme_mover_write): makes bursts to the host or to the media of data
//! that has arrived, and compares it with the other side's for a Compare.

use nvme::BLOCK_BYTES;

use crate::context::{Event, SimContext, TAG_WRITE};
use crate::host_port::{BurstOwner, HostBurst, BEAT, BURST_BYTES};
use crate::memory::{master, Memories};

use super::super::timing;
use super::block_assembler::PrpSegment;
use super::mover::zeroed_buffer;
use super::{
    DataPath, DataSource, TransferOp, TransferResult, NVME_ID, READ, SEGMENT_BYTES, WRITE,
};

/// Bursts to the host end at multiples of this many bytes.
const HOST_BURST: u64 = BURST_BYTES as u64;

/// A burst on the way to the media.
pub(super) struct MediaBurst {
    descriptor: u32,
    from: u32,
    len: u32,
}

impl DataPath {
    /// Makes bursts to the host of the data that has been read, as far as they are complete.
    pub(super) fn make_host_bursts(&mut self, number: u32, ready: u64, ctx: &mut SimContext) {
        let descriptor = &mut self.descriptors[number as usize];
        let mut begin = 0;
        for segment in descriptor.segments.as_slice() {
            let end = begin + segment.len;
            while descriptor.issued < end && descriptor.issued >= begin {
                let Some(first) = segment.host else {
                    if descriptor.read < end {
                        return;
                    }
                    descriptor.issued = end;
                    break;
                };
                let host = first.wrapping_add(u64::from(descriptor.issued - begin));
                let len = (end - descriptor.issued).min((HOST_BURST - host % HOST_BURST) as u32);
                if descriptor.issued + len > descriptor.read {
                    return;
                }
                let burst = HostBurst {
                    ready,
                    descriptor: number,
                    from: descriptor.issued,
                    len,
                    host,
                };
                ctx.port.queue_burst(descriptor.channel, burst);
                descriptor.open += 1;
                descriptor.issued += len;
            }
            begin = end;
        }
    }

    /// Copies the blocks that have been read since `from`, where bursts to the host are no whole
    /// blocks. Each block is then read at one moment.
    pub(super) fn snapshot(&mut self, number: u32, from: u32, ctx: &mut SimContext) {
        let descriptor = &mut self.descriptors[number as usize];
        let whole = |segment: &PrpSegment| {
            let at = segment.host.is_none_or(|host| host % BLOCK_BYTES == 0);
            at && u64::from(segment.len) % BLOCK_BYTES == 0
        };
        if descriptor.segments.as_slice().iter().all(whole) {
            return;
        }
        if descriptor.buffer.is_empty() {
            descriptor.buffer = zeroed_buffer(descriptor.len, &mut self.spare);
        }
        let part = &mut descriptor.buffer[from as usize..descriptor.read as usize];
        if !ctx.memory.read(descriptor.at + u64::from(from), part) {
            part.fill(0);
            self.fail_descriptor(number, TransferResult::ReadError);
        }
    }

    /// Passes a channel's burst through the host port.
    pub(crate) fn pass_host_burst(
        &mut self,
        channel: usize,
        burst: &HostBurst,
        ctx: &mut SimContext,
    ) {
        let (number, from, len) = (burst.descriptor, burst.from as usize, burst.len as usize);
        let descriptor = &self.descriptors[number as usize];
        let source = &self.transfers.get(descriptor.slot).source;
        let is_page = matches!(source, DataSource::Page(_));
        let bytes = &mut ctx.port.link.burst_buffer()[..len];
        let fine = if !descriptor.buffer.is_empty() {
            bytes.copy_from_slice(&descriptor.buffer[from..from + len]);
            true
        } else {
            match source {
                DataSource::Page(page) => {
                    let at = descriptor.at as usize + from;
                    let here = page.get(at..).unwrap_or(&[]);
                    let some = here.len().min(len);
                    bytes[..some].copy_from_slice(&here[..some]);
                    bytes[some..].fill(0);
                    true
                }
                DataSource::Media(_) => ctx.memory.read(descriptor.at + from as u64, bytes),
            }
        };
        if !fine {
            bytes.fill(0);
            self.fail_descriptor(number, TransferResult::ReadError);
        }
        let owner = Some(BurstOwner::Descriptor(number));
        let beats = ctx.port.link.pass_burst(ctx.now, burst.host, len, owner);
        if !is_page {
            // Whole beats of the media that became free; the last burst frees the partial one.
            let before = (from as u64).div_ceil(BEAT);
            let after = ((from + len) as u64).div_ceil(BEAT);
            self.movers[READ][channel].room += (after - before) as u32;
            self.issue_descriptors(READ, channel, ctx);
        }
        ctx.port.link.trace_burst(beats, ctx.tracer);
    }

    /// The link has accepted a burst of a descriptor.
    pub(crate) fn host_burst_sent(&mut self, number: u32, ctx: &mut SimContext) {
        self.descriptors[number as usize].open -= 1;
        self.finish_read_if_sent(number, ctx);
    }

    /// Ends a read descriptor whose bursts have all been sent.
    pub(super) fn finish_read_if_sent(&mut self, number: u32, ctx: &mut SimContext) {
        let descriptor = &self.descriptors[number as usize];
        if descriptor.open > 0 || descriptor.issued < descriptor.len {
            return;
        }
        // Discarded data has occupied room in the buffer, too.
        let source = &self.transfers.get(descriptor.slot).source;
        if matches!(source, DataSource::Media(_)) {
            let mut held = descriptor.beats();
            let mut from = 0u32;
            for segment in descriptor.segments.as_slice() {
                let end = from + segment.len;
                if segment.host.is_some() {
                    held -= end.div_ceil(BEAT as u32) - from.div_ceil(BEAT as u32);
                }
                from = end;
            }
            self.movers[READ][descriptor.channel].room += held;
        }
        let cycle = ctx.now + timing::HOST_RESPONSE;
        self.descriptor_done(number, cycle, ctx);
    }

    /// Issues bursts to a channel's media whose data is complete.
    pub(crate) fn issue_media_writes(&mut self, channel: usize, ctx: &mut SimContext) {
        self.accept_arrived_data(ctx);
        loop {
            let mover = &mut self.movers[WRITE][channel];
            let Some(&number) = mover.filling.front() else {
                return;
            };
            let descriptor = &mut self.descriptors[number as usize];
            if descriptor.issued == descriptor.len {
                // Do not reuse the descriptor's number yet: beats of an outstanding host read may
                // still arrive.
                if descriptor.open_reads > 0 {
                    return;
                }
                mover.filling.pop_front();
                if descriptor.open == 0 {
                    let now = ctx.now;
                    self.descriptor_done(number, now, ctx);
                }
                continue;
            }
            let at = descriptor.at + u64::from(descriptor.issued);
            let left = u64::from(descriptor.len - descriptor.issued);
            let len = left.min(self.write_bytes - at % self.write_bytes) as u32;
            let end = descriptor.issued + len;
            if descriptor.received_prefix() < end || self.hazards[channel].writes() >= self.writes {
                return;
            }
            let bad = descriptor
                .failed_ranges
                .iter()
                .any(|&(from, to)| from < end && to > descriptor.issued);
            let filter = ctx.filter.as_deref_mut().filter(|_| !bad);
            if filter.is_some_and(|filter| !filter.admit_nvme(true, channel, at, len.into())) {
                return;
            }
            if !bad && !self.hazards[channel].begin_write(at) {
                return;
            }
            descriptor.issued = end;
            let beats = len.div_ceil(BEAT as u32);
            mover.room += beats;
            if bad {
                let slot = descriptor.slot;
                self.transfers.get_mut(slot).fail(TransferResult::HostError);
            } else {
                descriptor.open += 1;
                let burst = MediaBurst {
                    descriptor: number,
                    from: end - len,
                    len,
                };
                let tag = TAG_WRITE | self.media_bursts.insert(burst) as u64;
                let addr = ctx.memory.channel_address(at);
                let from = mover.beats_free.max(ctx.now);
                let cycle = from + timing::WRITE_ISSUE;
                mover.beats_free = from + u64::from(beats);
                if descriptor.op == TransferOp::Write {
                    ctx.memory.prefetch(at, len);
                }
                ctx.memory.channels[channel].write(cycle, master::NVME, NVME_ID, addr, len, tag);
                if let Some(filter) = ctx.filter.as_deref_mut() {
                    filter.nvme_write_issued(channel);
                }
                ctx.schedule_channel(channel);
            }
            self.issue_descriptors(WRITE, channel, ctx);
        }
    }

    /// The media have answered a burst: its data is applied.
    pub(crate) fn media_written(&mut self, burst: u32, ctx: &mut SimContext) {
        let number = self.apply_burst(burst, ctx.memory);
        let descriptor = &mut self.descriptors[number as usize];
        let channel = descriptor.channel;
        descriptor.open -= 1;
        let ended = descriptor.open == 0 && descriptor.issued == descriptor.len;
        self.hazards[channel].end_write();
        if let Some(filter) = ctx.filter.as_deref_mut() {
            filter.nvme_write_done(channel);
            ctx.schedule(ctx.now, Event::ConflictFilter);
        }
        if ended && self.movers[WRITE][channel].filling.front() != Some(&number) {
            let cycle = ctx.now + timing::MEDIA_RESPONSE;
            self.descriptor_done(number, cycle, ctx);
        }
        self.issue_media_writes(channel, ctx);
        self.issue_descriptors(WRITE, channel, ctx);
        self.issue_descriptors(READ, channel, ctx);
    }

    /// Applies a burst to the media; returns its descriptor.
    fn apply_burst(&mut self, burst: u32, memory: &mut Memories) -> u32 {
        let MediaBurst {
            descriptor: number,
            from,
            len,
        } = self.media_bursts.remove(burst as usize);
        let descriptor = &self.descriptors[number as usize];
        let at = descriptor.at + u64::from(from);
        let fine = match descriptor.op {
            TransferOp::Zero => memory.zero(at, len.into()),
            _ => {
                let from = from as usize;
                memory.write(at, &descriptor.buffer[from..from + len as usize])
            }
        };
        if !fine {
            self.fail_descriptor(number, TransferResult::WriteFault);
        }
        number
    }

    /// Completes the bursts that have started, after the host is gone.
    pub(crate) fn complete_bursts(&mut self, memory: &mut Memories) {
        let open: Vec<usize> = self.media_bursts.iter().map(|(n, _)| n).collect();
        for burst in open {
            self.apply_burst(burst as u32, memory);
        }
    }

    /// Compares the data of host and media, once both have arrived.
    pub(super) fn compare(&mut self, number: u32, cycle: u64, ctx: &mut SimContext) {
        let descriptor = &self.descriptors[number as usize];
        if !descriptor.media_arrived || descriptor.open_reads > 0 {
            return;
        }
        let (channel, beats) = (descriptor.channel, descriptor.beats());
        let len = descriptor.len as usize;
        let mut media = [0; SEGMENT_BYTES as usize];
        let fine = ctx.memory.read(descriptor.at, &mut media[..len]);
        let result = if !descriptor.failed_ranges.is_empty() {
            TransferResult::HostError
        } else if !fine {
            TransferResult::ReadError
        } else if descriptor.buffer[..len] != media[..len] {
            TransferResult::Mismatch
        } else {
            TransferResult::Ok
        };
        self.fail_descriptor(number, result);
        self.movers[READ][channel].room += beats;
        self.descriptor_done(number, cycle, ctx);
        self.issue_descriptors(READ, channel, ctx);
    }
}
