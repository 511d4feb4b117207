// SPDX-License-Identifier: Apache-2.0

//! The data path: transfers between host memory and the media (hw/ip/nvme_ctrl/doc_data.md).
//!
//! A walker splits a transfer into PRP segments. PRP segments that make whole blocks are grouped
//! into transfer segments, each within 4 KiB of the media. A transfer segment becomes a descriptor
//! for the mover of its channel.
//!
//! A read descriptor is one burst of the media, whose blocks leave for the host as they arrive. A
//! write descriptor reads its PRP segments from the host and leaves as bursts of the media, each
//! when its data is complete.

use std::collections::VecDeque;
use std::sync::Arc;

use nvme::{WalkError, WalkStep, Walker, BLOCK_BYTES};
use sim::{HostPort, TraceEvent};
use spec::nvme::{status, Status};

use crate::config::Config;
use crate::context::{Event, SimContext, TAG_READ, TAG_WRITE};
use crate::memory::{master, Memories};
use crate::port::{
    trace_beats, BurstOwner, HostReadData, LinkPort, PostedWrite, ReadPurpose, BEAT, BURST_BYTES,
};
use crate::slab::Slab;

use super::hazard::Hazard;
use super::timing;

/// A transfer segment lies within this many bytes of the media.
const SEGMENT_BYTES: u64 = 4096;
/// Bursts to the host end at multiples of this many bytes.
const HOST_BURST: u64 = BURST_BYTES as u64;
/// Beats that a mover to the media holds.
const MOVER_BEATS: u32 = 512;
/// Descriptors that wait in a mover.
const MOVER_QUEUE: usize = 16;
/// Limit of the beats of write data that are requested from the host, for all channels together.
/// One further burst may exceed it.
const HOST_READ_BEATS: u32 = 512;
/// Walkers of each direction.
const WALKERS: usize = 2;
/// Bytes of a PRP list or SGL segment that are read at a time.
const LIST_BYTES: u64 = 128;

/// A mover's accesses to the media have one AXI ID.
const NVME_ID: u16 = 0;

const READ: usize = 0;
const WRITE: usize = 1;

/// The operation of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOp {
    /// Media, or an admin page, to the host.
    Read,
    /// Host to media.
    Write,
    /// Comparison of host and media.
    Compare,
    /// Zeros to the media.
    Zero,
    /// Media are read, and the data is discarded.
    Verify,
}

impl TransferOp {
    /// The walkers that it uses. A comparison reads from the host, as a write does.
    fn walkers(self) -> usize {
        match self {
            TransferOp::Read => READ,
            _ => WRITE,
        }
    }

    /// The movers that it uses.
    fn direction(self) -> usize {
        match self {
            TransferOp::Read | TransferOp::Verify | TransferOp::Compare => READ,
            TransferOp::Write | TransferOp::Zero => WRITE,
        }
    }
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferResult {
    Ok,
    Walk(WalkError),
    HostError,
    ReadError,
    WriteFault,
    Mismatch,
    OutOfRange,
    /// The controller was disabled.
    Interrupted,
    Aborted,
    Deleted,
}

impl TransferResult {
    /// The status of the command. It depends on the host's ACRE (README of nvme_ctrl, "Status
    /// codes").
    pub(crate) fn status(self, acre: bool) -> Status {
        match self {
            TransferResult::Ok => status::SUCCESS,
            TransferResult::Walk(fault) => fault.status(),
            TransferResult::HostError => status::DATA_TRANSFER_ERROR,
            TransferResult::ReadError => status::UNRECOVERED_READ_ERROR,
            TransferResult::WriteFault => status::WRITE_FAULT,
            TransferResult::Mismatch => status::COMPARE_FAILURE.dnr(),
            TransferResult::OutOfRange => status::LBA_OUT_OF_RANGE.dnr(),
            TransferResult::Interrupted => interrupted(acre),
            TransferResult::Aborted => status::ABORT_REQUESTED,
            TransferResult::Deleted => status::ABORTED_SQ_DELETION,
        }
    }
}

/// Status of a command that the controller had to abandon (NVMe 1.4, figures 126 and 127). Only
/// hosts that have set ACRE get Command Interrupted.
pub(crate) fn interrupted(acre: bool) -> Status {
    match acre {
        true => status::COMMAND_INTERRUPTED.with_delay(1),
        false => status::INTERNAL_ERROR,
    }
}

/// Source of the data of a read.
#[derive(Clone)]
pub(crate) enum DataSource {
    /// The media from this address on.
    Media(u64),
    /// These bytes, followed by zeros.
    Page(Arc<[u8]>),
}

/// A data command's transfer.
pub(crate) struct DataRequest {
    pub(crate) op: TransferOp,
    pub(crate) source: DataSource,
    pub(crate) walker: Walker,
}

struct Transfer {
    op: TransferOp,
    source: DataSource,
    walker: Option<Walker>,
    /// A read of a list is in progress: address of its first entry.
    list: Option<u64>,
    /// It occupies a walker.
    walking: bool,
    /// The edge of its next step.
    step_at: u64,
    /// PRP segments that do not make whole blocks yet.
    group: Vec<PrpSegment>,
    /// Start of the group in the transfer.
    group_at: u64,
    group_len: u64,
    /// Descriptors in flight.
    open: u32,
    walked: bool,
    outcome: TransferResult,
    /// Transfer segments that wait for room in a mover.
    stalled: VecDeque<TransferSegment>,
}

/// A part of a transfer for one mover: address on the media or in the page, bytes, PRP segments.
struct TransferSegment {
    at: u64,
    len: u32,
    segments: PrpSegments,
}

/// A part of a transfer segment in one host page. Without an address its data is discarded.
#[derive(Clone, Copy, Debug)]
struct PrpSegment {
    host: Option<u64>,
    len: u32,
}

struct Descriptor {
    slot: u16,
    op: TransferOp,
    /// Address on the media or in the page.
    at: u64,
    len: u32,
    channel: usize,
    segments: PrpSegments,
    /// Data from the host, or a copy of blocks for the host that are split over pages.
    buffer: Vec<u8>,
    /// Bytes of each PRP segment that have arrived, the first one apart.
    received: u32,
    received_others: Vec<u32>,
    /// Ranges whose read the host has refused: first, end.
    failed_ranges: Vec<(u32, u32)>,
    /// The next PRP segment of a write to request.
    next: u16,
    /// PRP segments whose reads are not complete.
    open_reads: u32,
    /// Compare: the data of the media has arrived.
    media_arrived: bool,
    /// Read: bytes that have left the channel.
    read: u32,
    /// Bytes that are part of bursts already.
    issued: u32,
    /// Bursts in flight.
    open: u32,
}

/// In most cases one.
#[derive(Clone, Debug)]
enum PrpSegments {
    One(PrpSegment),
    Many(Vec<PrpSegment>),
}

impl PrpSegments {
    fn as_slice(&self) -> &[PrpSegment] {
        match self {
            PrpSegments::One(segment) => std::slice::from_ref(segment),
            PrpSegments::Many(segments) => segments,
        }
    }
}

/// Data of a descriptor on the way to the host, at most a burst.
struct HostBurst {
    ready: u64,
    descriptor: u32,
    /// Its place in the descriptor.
    from: u32,
    len: u32,
    host: u64,
}

/// A burst on the way to the media.
struct MediaBurst {
    descriptor: u32,
    from: u32,
    len: u32,
}

#[derive(Default)]
struct Mover {
    queue: VecDeque<u32>,
    /// Descriptors whose data comes from the host, in order.
    filling: VecDeque<u32>,
    /// Beats of room in the buffer.
    room: u32,
    /// The edge at which the next descriptor can be issued.
    free: u64,
    /// The edge at which the next beat can be written.
    beats_free: u64,
}

pub(crate) struct DataPath {
    transfers: Vec<Option<Box<Transfer>>>,
    descriptors: Slab<Descriptor>,
    media_bursts: Slab<MediaBurst>,
    /// By direction and channel.
    movers: [Vec<Mover>; 2],
    /// Outstanding accesses to the media of each channel.
    hazards: Vec<Hazard>,
    /// Bursts to the host from each channel, in order.
    outgoing: Vec<VecDeque<HostBurst>>,
    /// The next source at the host port in rotation: the front end, or a channel.
    next_source: usize,
    /// Transfers that wait for a walker.
    waiting: [VecDeque<u16>; 2],
    walking: [usize; 2],
    /// Transfers that wait for room in a mover.
    stalled: VecDeque<u16>,
    /// Range walks in progress, which may push further segments.
    range_walks: u32,
    host_beats: u32,
    /// The next channel in rotation that may request host data, and the earliest edge.
    next_request_channel: usize,
    request_free: u64,
    /// Data from the host on the way through the movers: edge of arrival, descriptor, segment,
    /// data.
    host_data_queue: VecDeque<(u64, u32, u16, HostReadData)>,
    reads: u32,
    write_bytes: u64,
    writes: u32,
    /// Buffers and transfers for reuse.
    spare: Vec<Vec<u8>>,
    #[allow(clippy::vec_box, reason = "they go back into their slots as they are")]
    spare_transfers: Vec<Box<Transfer>>,
}

impl DataPath {
    pub(crate) fn new(config: &Config) -> DataPath {
        let channels = config.storage.channels as usize;
        let movers = |room| {
            (0..channels)
                .map(|_| Mover {
                    room,
                    ..Mover::default()
                })
                .collect()
        };
        DataPath {
            transfers: (0..config.slots).map(|_| None).collect(),
            descriptors: Slab::new(),
            media_bursts: Slab::new(),
            movers: [movers(config.media_read_beats), movers(MOVER_BEATS)],
            hazards: (0..channels).map(|_| Hazard::default()).collect(),
            outgoing: (0..channels).map(|_| VecDeque::new()).collect(),
            next_source: 0,
            waiting: Default::default(),
            walking: [0; 2],
            stalled: VecDeque::new(),
            range_walks: 0,
            host_beats: 0,
            next_request_channel: 0,
            request_free: 0,
            host_data_queue: VecDeque::new(),
            reads: config.media_reads,
            write_bytes: config.media_write_bytes.into(),
            writes: config.media_writes,
            spare: Vec::new(),
            spare_transfers: Vec::new(),
        }
    }

    /// Starts the transfer of a command.
    pub(crate) fn start(&mut self, slot: u16, request: DataRequest, ctx: &mut SimContext) {
        let direction = request.op.walkers();
        self.open_transfer(slot, request.op, request.source, Some(request.walker));
        if self.walking[direction] == WALKERS {
            self.waiting[direction].push_back(slot);
            return;
        }
        self.walking[direction] += 1;
        self.begin_walk(slot, ctx);
    }

    /// Opens a transfer without a walk of PRPs. [`DataPath::push_range_segment`] supplies its
    /// segments until [`DataPath::range_walk_done`].
    pub(crate) fn open_range_op(&mut self, slot: u16, op: TransferOp) {
        self.range_walks += 1;
        self.open_transfer(slot, op, DataSource::Media(0), None);
    }

    fn open_transfer(
        &mut self,
        slot: u16,
        op: TransferOp,
        source: DataSource,
        walker: Option<Walker>,
    ) {
        let mut transfer = self.spare_transfers.pop().unwrap_or_else(|| {
            Box::new(Transfer {
                op,
                source: DataSource::Media(0),
                walker: None,
                list: None,
                walking: false,
                step_at: 0,
                group: Vec::new(),
                group_at: 0,
                group_len: 0,
                open: 0,
                walked: false,
                outcome: TransferResult::Ok,
                stalled: VecDeque::new(),
            })
        });
        // The other fields of a transfer that has ended are in their initial state.
        transfer.op = op;
        transfer.source = source;
        transfer.walker = walker;
        transfer.list = None;
        transfer.group.clear();
        transfer.walked = false;
        transfer.outcome = TransferResult::Ok;
        self.transfers[usize::from(slot)] = Some(transfer);
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
        let Some(transfer) = &mut self.transfers[usize::from(slot)] else {
            return true;
        };
        let op = transfer.op;
        let channel = channel_of(ctx.memory, at);
        let mover = &mut self.movers[op.direction()][channel];
        if mover.queue.len() >= MOVER_QUEUE {
            return false;
        }
        transfer.open += 1;
        let descriptor = Descriptor::new(slot, op, at, len, channel, PrpSegments::Many(Vec::new()));
        let number = self.descriptors.insert(descriptor);
        mover.queue.push_back(number);
        self.issue_descriptors(op.direction(), channel, ctx);
        true
    }

    /// Ends the supply of segments to a transfer.
    pub(crate) fn range_walk_done(
        &mut self,
        slot: u16,
        outcome: TransferResult,
        ctx: &mut SimContext,
    ) {
        self.range_walks -= 1;
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walked = true;
            if transfer.outcome == TransferResult::Ok {
                transfer.outcome = outcome;
            }
        }
        self.finish_if_done(slot, ctx);
    }

    fn begin_walk(&mut self, slot: u16, ctx: &mut SimContext) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walking = true;
        }
        ctx.schedule(ctx.now + timing::WALK, Event::Walk(slot));
    }

    /// Continues a walk that waits for nothing else.
    pub(crate) fn walk(&mut self, slot: u16, ctx: &mut SimContext) {
        let place = &mut self.transfers[usize::from(slot)];
        if !place
            .as_ref()
            .is_some_and(|t| t.walking && t.list.is_none())
        {
            return;
        }
        let Some(mut transfer) = place.take() else {
            return;
        };
        let ended = self.walk_until_blocked(slot, &mut transfer, ctx);
        let direction = transfer.op.walkers();
        self.transfers[usize::from(slot)] = Some(transfer);
        if ended {
            self.end_walk(slot, direction, ctx);
        }
    }

    fn end_walk(&mut self, slot: u16, direction: usize, ctx: &mut SimContext) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walked = true;
            transfer.walking = false;
        }
        match self.waiting[direction].pop_front() {
            Some(next) => self.begin_walk(next, ctx),
            None => self.walking[direction] -= 1,
        }
        self.finish_if_done(slot, ctx);
    }

    /// Walks until the walk has to wait; true once it is complete.
    fn walk_until_blocked(
        &mut self,
        slot: u16,
        transfer: &mut Transfer,
        ctx: &mut SimContext,
    ) -> bool {
        loop {
            while let Some(part) = transfer.stalled.front() {
                let Some(channel) = self.room_for(transfer, part, ctx) else {
                    if !self.stalled.contains(&slot) {
                        self.stalled.push_back(slot);
                    }
                    return false;
                };
                self.push_segment(slot, transfer, channel, ctx);
            }
            if transfer.step_at > ctx.now {
                return false;
            }
            let Some(walker) = &mut transfer.walker else {
                return true;
            };
            match walker.step() {
                WalkStep::Data(segment) => {
                    let parts =
                        split_segment(transfer, Some(segment.addr), segment.len, segment.offset);
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
                    split_segment(transfer, None, segment.len, segment.offset);
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
                    transfer.group.clear();
                    if transfer.outcome == TransferResult::Ok {
                        transfer.outcome = TransferResult::Walk(fault);
                    }
                }
            }
        }
    }

    /// Receives a part of a PRP list or SGL segment.
    pub(crate) fn list_arrived(&mut self, slot: u16, arrival: &HostReadData, ctx: &mut SimContext) {
        let Some(transfer) = &mut self.transfers[usize::from(slot)] else {
            return;
        };
        let (Some(addr), Some(walker)) = (transfer.list, &mut transfer.walker) else {
            return;
        };
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

    /// The channel of a transfer's next descriptor; `None` if its mover has no room.
    fn room_for(&self, t: &Transfer, part: &TransferSegment, ctx: &SimContext) -> Option<usize> {
        let channel = match t.source {
            DataSource::Media(_) => channel_of(ctx.memory, part.at),
            DataSource::Page(_) => 0,
        };
        let mover = &self.movers[t.op.direction()][channel];
        (mover.queue.len() < MOVER_QUEUE).then_some(channel)
    }

    /// Turns a transfer's next segment into a descriptor for its mover.
    fn push_segment(&mut self, slot: u16, t: &mut Transfer, channel: usize, ctx: &mut SimContext) {
        let Some(TransferSegment { at, len, segments }) = t.stalled.pop_front() else {
            return;
        };
        let media = matches!(t.source, DataSource::Media(_));
        let direction = t.op.direction();
        t.open += 1;
        let descriptor = Descriptor::new(slot, t.op, at, len, channel, segments);
        let number = self.descriptors.insert(descriptor);
        if !media {
            // The admin buffer answers at once.
            let slot = slot as u8;
            let ready = ctx.now + timing::PAGE;
            let mover = self.outgoing.len() as u8;
            ctx.trace(ctx.now, || TraceEvent::Segment {
                slot,
                mover,
                to_media: false,
            });
            ctx.trace(ready, || TraceEvent::Data { mover });
            if let Some(descriptor) = self.descriptors.get_mut(number) {
                descriptor.read = descriptor.len;
            }
            self.make_host_bursts(number, ready);
            ctx.schedule(ready, Event::HostWrite);
            return;
        }
        self.movers[direction][channel].queue.push_back(number);
        self.issue_descriptors(direction, channel, ctx);
    }

    /// Issues descriptors of a mover while there is room.
    pub(crate) fn issue_descriptors(
        &mut self,
        direction: usize,
        channel: usize,
        ctx: &mut SimContext,
    ) {
        let mut dequeued = false;
        let channels = self.outgoing.len();
        while let Some(&number) = self.movers[direction][channel].queue.front() {
            let Some(descriptor) = self.descriptors.get_mut(number) else {
                self.movers[direction][channel].queue.pop_front();
                continue;
            };
            let mover = &mut self.movers[direction][channel];
            let beats = descriptor.len.div_ceil(BEAT as u32);
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
                    let place = ctx.memory.locate(descriptor.at);
                    let addr = place.map_or(0, |place| place.addr);
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
                        make_buffer(descriptor, &mut self.spare);
                        for segment in 0..descriptor.segments.as_slice().len() {
                            self.host_beats +=
                                request_host_data(number, descriptor, segment, at, ctx.port);
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
            let (slot, mover) = (
                descriptor.slot as u8,
                mover_number(direction, channel, channels),
            );
            let to_media = direction == WRITE;
            ctx.trace(at, || TraceEvent::Segment {
                slot,
                mover,
                to_media,
            });
            ctx.trace(at, || TraceEvent::Read { mover });
            let mover = &mut self.movers[direction][channel];
            mover.queue.pop_front();
            dequeued = true;
        }
        if dequeued {
            self.resume_stalled(ctx);
        }
    }

    /// Requests write data from the host, one read at a time, with the channels in rotation. True
    /// if descriptors have left their queues.
    fn request_write_data(&mut self, ctx: &mut SimContext) -> bool {
        let channels = self.outgoing.len();
        let mut dequeued = false;
        while self.host_beats < HOST_READ_BEATS {
            let next = (0..channels).find_map(|n| {
                let channel = (self.next_request_channel + n) % channels;
                let mover = &self.movers[WRITE][channel];
                let number = *mover.queue.front()?;
                let descriptor = self.descriptors.get(number)?;
                let room =
                    descriptor.next > 0 || mover.room >= descriptor.len.div_ceil(BEAT as u32);
                (descriptor.op == TransferOp::Write && room).then_some((channel, number))
            });
            let Some((channel, number)) = next else {
                break;
            };
            let Some(descriptor) = self.descriptors.get_mut(number) else {
                break;
            };
            let mover = &mut self.movers[WRITE][channel];
            let at = self.request_free.max(ctx.now);
            if descriptor.next == 0 {
                // Data of a single segment is kept in the buffer in which it arrives.
                if descriptor.segments.as_slice().len() > 1 {
                    make_buffer(descriptor, &mut self.spare);
                }
                mover.room -= descriptor.len.div_ceil(BEAT as u32);
                mover.filling.push_back(number);
                let slot = descriptor.slot as u8;
                let mover = mover_number(WRITE, channel, channels);
                ctx.trace(at, || TraceEvent::Segment {
                    slot,
                    mover,
                    to_media: true,
                });
                ctx.trace(at, || TraceEvent::Read { mover });
            }
            let beats = request_host_data(number, descriptor, descriptor.next.into(), at, ctx.port);
            if beats > 0 {
                // A request counts from the next cycle on.
                self.host_beats += beats;
                self.request_free = at + 2;
                self.next_request_channel = (channel + 1) % channels;
                ctx.schedule_host_reads(at + timing::DATA_READ);
            }
            descriptor.next += 1;
            if usize::from(descriptor.next) == descriptor.segments.as_slice().len() {
                self.movers[WRITE][channel].queue.pop_front();
                dequeued = true;
            }
        }
        dequeued
    }

    fn resume_stalled(&mut self, ctx: &mut SimContext) {
        while let Some(slot) = self.stalled.pop_front() {
            ctx.schedule(ctx.now, Event::Walk(slot));
        }
        if self.range_walks > 0 {
            ctx.schedule(ctx.now, Event::RangeWalk);
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
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        let (channel, op, from) = (descriptor.channel, descriptor.op, descriptor.read);
        let mover = mover_number(READ, channel, self.outgoing.len());
        let beat = TraceEvent::Beat { mover };
        trace_beats(ctx.clock, cycle + 1, beats.into(), beat, ctx.tracer);
        if from == 0 {
            let first = cycle.saturating_sub(u64::from(beats));
            ctx.trace(first, || TraceEvent::Data { mover });
        }
        descriptor.read = match end {
            true => descriptor.len,
            false => (descriptor.read + beats * BEAT as u32).min(descriptor.len),
        };
        if op == TransferOp::Read {
            self.snapshot(number, from, ctx);
            let ready = cycle + timing::READ_BACK;
            self.make_host_bursts(number, ready);
            ctx.schedule(ready, Event::HostWrite);
        }
        if !end {
            return;
        }
        // The burst's slot is free after its last beat.
        ctx.schedule(cycle, Event::MediaReadDone(channel as u8));
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        match op {
            TransferOp::Read => self.finish_read_if_sent(number, ctx),
            TransferOp::Verify => {
                let mut block = [0; SEGMENT_BYTES as usize];
                let len = descriptor.len as usize;
                if !ctx.memory.read(descriptor.at, &mut block[..len]) {
                    self.fail_descriptor(number, TransferResult::ReadError);
                }
                self.movers[READ][channel].room += (len as u32).div_ceil(BEAT as u32);
                self.descriptor_done(number, cycle, ctx);
            }
            _ => {
                descriptor.media_arrived = true;
                self.compare(number, cycle, ctx);
            }
        }
    }

    /// Retries accesses that the conflict filter held.
    pub(crate) fn filter_changed(&mut self, ctx: &mut SimContext) {
        for channel in 0..self.outgoing.len() {
            self.issue_media_writes(channel, ctx);
            self.issue_descriptors(READ, channel, ctx);
        }
    }

    /// Frees the slot of a read burst.
    pub(crate) fn media_read_slot_free(&mut self, channel: usize, ctx: &mut SimContext) {
        self.hazards[channel].end_read();
        self.issue_media_writes(channel, ctx);
        self.issue_descriptors(READ, channel, ctx);
    }

    /// Makes bursts to the host of the data that has been read, as far as they are complete.
    fn make_host_bursts(&mut self, number: u32, ready: u64) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        let outgoing = &mut self.outgoing[descriptor.channel];
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
                outgoing.push_back(HostBurst {
                    ready,
                    descriptor: number,
                    from: descriptor.issued,
                    len,
                    host,
                });
                descriptor.open += 1;
                descriptor.issued += len;
            }
            begin = end;
        }
    }

    /// Copies the blocks that have been read since `from`, where bursts to the host are no whole
    /// blocks. Each block is then read at one moment.
    fn snapshot(&mut self, number: u32, from: u32, ctx: &mut SimContext) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
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

    /// Sends data and posted writes to the host, with channels and front end in rotation. Returns
    /// the edge of the next call.
    pub(crate) fn send_to_host(
        &mut self,
        now: u64,
        ctx: &mut SimContext,
        host: &mut dyn HostPort,
    ) -> Option<u64> {
        loop {
            let next_piece = loop {
                match ctx.port.send_payload(now, host) {
                    Ok(BurstOwner::Descriptor(number)) => self.host_burst_sent(number, ctx),
                    Ok(BurstOwner::EventIdx) => {
                        ctx.port.event_idx_sent = true;
                        ctx.schedule(now, Event::ShadowDoorbell);
                    }
                    Ok(BurstOwner::AdminEntry) => {
                        ctx.port.admin_sent = true;
                        ctx.schedule(now, Event::Admin);
                    }
                    Ok(_) => {}
                    Err(again) => break again,
                }
            };
            if !ctx.port.has_payload_room() {
                return next_piece;
            }
            let earlier = |at: u64| Some(next_piece.map_or(at, |segment| segment.min(at)));
            if ctx.port.writes_free > now {
                return earlier(ctx.port.writes_free);
            }
            let sources = self.outgoing.len() + 1;
            let mut next: Option<u64> = None;
            let mut chosen = None;
            for n in 0..sources {
                let source = (self.next_source + n) % sources;
                let ready = match source {
                    0 => ctx.port.posts.front().map(|post| post.0),
                    n => self.outgoing[n - 1].front().map(|burst| burst.ready),
                };
                let Some(ready) = ready else { continue };
                if ready <= now {
                    chosen = Some(source);
                    break;
                }
                next = Some(next.map_or(ready, |next| next.min(ready)));
            }
            let Some(source) = chosen else {
                return next.map_or(next_piece, earlier);
            };
            let beats = match source {
                0 => pass_post(now, ctx.port),
                n => self.pass_host_burst(n - 1, now, ctx),
            };
            self.next_source = (source + 1) % sources;
            let end = ctx.port.writes_free;
            trace_beats(ctx.clock, end, beats, TraceEvent::HostWrite, ctx.tracer);
        }
    }

    /// Passes a channel's first burst through the port; returns its beats.
    fn pass_host_burst(&mut self, channel: usize, now: u64, ctx: &mut SimContext) -> u64 {
        let Some(burst) = self.outgoing[channel].pop_front() else {
            return 0;
        };
        let (number, from, len, addr) = (
            burst.descriptor,
            burst.from as usize,
            burst.len as usize,
            burst.host,
        );
        let Some(descriptor) = self.descriptors.get(number) else {
            return 0;
        };
        let mut fine = true;
        let bytes = &mut ctx.port.burst_buffer()[..len];
        if !descriptor.buffer.is_empty() {
            bytes.copy_from_slice(&descriptor.buffer[from..from + len]);
        } else {
            let source = self.transfers[usize::from(descriptor.slot)]
                .as_deref()
                .map(|t| &t.source);
            match source {
                Some(DataSource::Page(page)) => {
                    let at = descriptor.at as usize + from;
                    let here = page.get(at..).unwrap_or(&[]);
                    let some = here.len().min(len);
                    bytes[..some].copy_from_slice(&here[..some]);
                    bytes[some..].fill(0);
                }
                _ => fine = ctx.memory.read(descriptor.at + from as u64, bytes),
            }
            if !fine {
                bytes.fill(0);
            }
        }
        let beats = ctx
            .port
            .pass_burst(now, addr, len, BurstOwner::Descriptor(number));
        if !fine {
            self.fail_descriptor(number, TransferResult::ReadError);
        }
        if !self.is_page(number) {
            // Whole beats of the media that became free; the last burst frees the partial one.
            let before = (from as u64).div_ceil(BEAT);
            let after = ((from + len) as u64).div_ceil(BEAT);
            self.movers[READ][channel].room += (after - before) as u32;
            self.issue_descriptors(READ, channel, ctx);
        }
        beats
    }

    /// The descriptor's data comes from a page of the admin buffer.
    fn is_page(&self, number: u32) -> bool {
        let descriptor = self.descriptors.get(number);
        let transfer =
            descriptor.and_then(|descriptor| self.transfers[usize::from(descriptor.slot)].as_ref());
        transfer.is_some_and(|t| matches!(t.source, DataSource::Page(_)))
    }

    /// The link has accepted a burst of a descriptor.
    fn host_burst_sent(&mut self, number: u32, ctx: &mut SimContext) {
        if let Some(descriptor) = self.descriptors.get_mut(number) {
            descriptor.open -= 1;
        }
        self.finish_read_if_sent(number, ctx);
    }

    /// Ends a read descriptor whose bursts have all been sent.
    fn finish_read_if_sent(&mut self, number: u32, ctx: &mut SimContext) {
        let done = self
            .descriptors
            .get(number)
            .is_some_and(|descriptor| descriptor.open == 0 && descriptor.issued == descriptor.len);
        if !done {
            return;
        }
        // Discarded data has occupied room in the buffer, too.
        if let Some(descriptor) = self.descriptors.get(number) {
            if !self.is_page(number) {
                let mut held = descriptor.len.div_ceil(BEAT as u32);
                let mut from = 0u32;
                for segment in descriptor.segments.as_slice() {
                    let end = from + segment.len;
                    if segment.host.is_some() {
                        held -= end.div_ceil(BEAT as u32) - from.div_ceil(BEAT as u32);
                    }
                    from = end;
                }
                let channel = descriptor.channel;
                self.movers[READ][channel].room += held;
            }
        }
        let cycle = ctx.now + timing::HOST_RESPONSE;
        self.descriptor_done(number, cycle, ctx);
    }

    /// Receives host data of a descriptor, or the error of its read.
    pub(crate) fn host_data_arrived(
        &mut self,
        number: u32,
        segment: u16,
        arrival: HostReadData,
        ctx: &mut SimContext,
    ) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        if segment == 0 && descriptor.received == 0 && descriptor.op == TransferOp::Write {
            let mover = mover_number(WRITE, descriptor.channel, self.outgoing.len());
            ctx.trace(ctx.now, || TraceEvent::Data { mover });
        }
        self.host_beats = self.host_beats.saturating_sub(arrival.beats);
        if self.host_beats < HOST_READ_BEATS {
            for channel in 0..self.outgoing.len() {
                self.issue_descriptors(WRITE, channel, ctx);
            }
        }
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        if descriptor.op == TransferOp::Write {
            // Data is complete with its last beat.
            let cycle = arrival.cycle + timing::DATA_BACK;
            ctx.schedule(cycle, Event::MediaWrite(descriptor.channel as u8));
            self.host_data_queue
                .push_back((cycle, number, segment, arrival));
            return;
        }
        self.accept_host_data(number, segment, arrival, ctx);
    }

    /// Adds host data to its descriptor, from which bursts are made.
    fn accept_host_data(
        &mut self,
        number: u32,
        segment: u16,
        arrival: HostReadData,
        ctx: &mut SimContext,
    ) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
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

    /// Issues bursts to a channel's media whose data is complete.
    pub(crate) fn issue_media_writes(&mut self, channel: usize, ctx: &mut SimContext) {
        while self
            .host_data_queue
            .front()
            .is_some_and(|data| data.0 <= ctx.now)
        {
            if let Some((_, number, segment, arrival)) = self.host_data_queue.pop_front() {
                self.accept_host_data(number, segment, arrival, ctx);
            }
        }
        loop {
            let mover = &mut self.movers[WRITE][channel];
            let Some(&number) = mover.filling.front() else {
                return;
            };
            let Some(descriptor) = self.descriptors.get_mut(number) else {
                mover.filling.pop_front();
                continue;
            };
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
            let from = end - len;
            let beats = len.div_ceil(BEAT as u32);
            mover.room += beats;
            if bad {
                let slot = descriptor.slot;
                self.fail_transfer(slot, TransferResult::HostError);
            } else {
                descriptor.open += 1;
                let burst = MediaBurst {
                    descriptor: number,
                    from,
                    len,
                };
                let tag = TAG_WRITE | u64::from(self.media_bursts.insert(burst));
                let addr = ctx.memory.locate(at).map_or(0, |place| place.addr);
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
        let Some(number) = self.apply_burst(burst, ctx.memory) else {
            return;
        };
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
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
    fn apply_burst(&mut self, burst: u32, memory: &mut Memories) -> Option<u32> {
        let burst = self.media_bursts.remove(burst)?;
        let descriptor = self.descriptors.get(burst.descriptor)?;
        let at = descriptor.at + u64::from(burst.from);
        let fine = match descriptor.op {
            TransferOp::Zero => memory.zero(at, burst.len.into()),
            _ => {
                let from = burst.from as usize;
                memory.write(at, &descriptor.buffer[from..from + burst.len as usize])
            }
        };
        if !fine {
            self.fail_descriptor(burst.descriptor, TransferResult::WriteFault);
        }
        Some(burst.descriptor)
    }

    /// Completes the bursts that have started, after the host is gone.
    pub(crate) fn complete_bursts(&mut self, memory: &mut Memories) {
        let open: Vec<u32> = self.media_bursts.iter().map(|(n, _)| n).collect();
        for burst in open {
            self.apply_burst(burst, memory);
        }
    }

    fn compare(&mut self, number: u32, cycle: u64, ctx: &mut SimContext) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        if !descriptor.media_arrived || descriptor.open_reads > 0 {
            return;
        }
        let (channel, len) = (descriptor.channel, descriptor.len);
        let mut media = [0; SEGMENT_BYTES as usize];
        let fine = ctx.memory.read(descriptor.at, &mut media[..len as usize]);
        let outcome = if !descriptor.failed_ranges.is_empty() {
            TransferResult::HostError
        } else if !fine {
            TransferResult::ReadError
        } else if descriptor.buffer[..len as usize] != media[..len as usize] {
            TransferResult::Mismatch
        } else {
            TransferResult::Ok
        };
        if outcome != TransferResult::Ok {
            self.fail_descriptor(number, outcome);
        }
        self.movers[READ][channel].room += len.div_ceil(BEAT as u32);
        self.descriptor_done(number, cycle, ctx);
        self.issue_descriptors(READ, channel, ctx);
    }

    fn fail_descriptor(&mut self, number: u32, outcome: TransferResult) {
        if let Some(slot) = self
            .descriptors
            .get(number)
            .map(|descriptor| descriptor.slot)
        {
            self.fail_transfer(slot, outcome);
        }
    }

    /// Fails a transfer. The first error determines the status.
    fn fail_transfer(&mut self, slot: u16, outcome: TransferResult) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            if transfer.outcome == TransferResult::Ok {
                transfer.outcome = outcome;
            }
        }
    }

    fn descriptor_done(&mut self, number: u32, cycle: u64, ctx: &mut SimContext) {
        let Some(descriptor) = self.descriptors.get_mut(number) else {
            return;
        };
        let (slot, buffer) = (descriptor.slot, std::mem::take(&mut descriptor.buffer));
        if buffer.capacity() > 0 && self.spare.len() < 64 {
            self.spare.push(buffer);
        }
        self.descriptors.drop_item(number);
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.open -= 1;
            if transfer.open == 0 && transfer.walked {
                let cycle = cycle.max(ctx.now) + timing::TRANSFER_DONE;
                ctx.schedule(cycle, Event::TransferDone(slot));
            }
        }
    }

    fn finish_if_done(&mut self, slot: u16, ctx: &mut SimContext) {
        if let Some(transfer) = &self.transfers[usize::from(slot)] {
            if transfer.open == 0 && transfer.walked {
                ctx.schedule(ctx.now + timing::TRANSFER_DONE, Event::TransferDone(slot));
            }
        }
    }

    /// Removes a transfer that is complete and returns its result.
    pub(crate) fn take_result(&mut self, slot: u16) -> Option<TransferResult> {
        let place = &mut self.transfers[usize::from(slot)];
        let ended = place.as_ref().is_some_and(|t| t.walked && t.open == 0);
        if !ended {
            return None;
        }
        let mut transfer = place.take()?;
        let outcome = transfer.outcome;
        transfer.source = DataSource::Media(0);
        self.spare_transfers.push(transfer);
        Some(outcome)
    }
}

/// Splits a PRP segment at multiples of 4 KiB of the media and queues the groups that make whole
/// blocks. Returns the number of segments in the group.
fn split_segment(t: &mut Transfer, host: Option<u64>, len: u64, offset: u64) -> usize {
    let mut parts = t.group.len();
    let (mut host, mut left, mut at) = (host, len, offset);
    let base = match t.source {
        DataSource::Media(addr) => addr,
        DataSource::Page(_) => 0,
    };
    let media = matches!(t.source, DataSource::Media(_));
    while left > 0 {
        if t.group.is_empty() {
            (t.group_at, t.group_len) = (at, 0);
        }
        parts += 1;
        let part = left.min(SEGMENT_BYTES - (base + at) % SEGMENT_BYTES);
        t.group.push(PrpSegment {
            host,
            len: part as u32,
        });
        t.group_len += part;
        host = host.map(|host| host.wrapping_add(part));
        (left, at) = (left - part, at + part);
        let whole = !media || at % BLOCK_BYTES == 0;
        if whole {
            let segments = match t.group.len() {
                1 => PrpSegments::One(t.group[0]),
                _ => PrpSegments::Many(t.group.clone()),
            };
            t.group.clear();
            let (from, len) = (base + t.group_at, t.group_len as u32);
            t.stalled.push_back(TransferSegment {
                at: from,
                len,
                segments,
            });
        }
    }
    parts
}

impl Descriptor {
    fn new(
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

    /// Bytes at the start that have arrived without a gap.
    fn received_prefix(&self) -> u32 {
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
fn zeroed_buffer(len: u32, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer.resize(len as usize, 0);
    buffer
}

/// Provides a descriptor with a buffer for its host data.
fn make_buffer(descriptor: &mut Descriptor, spare: &mut Vec<Vec<u8>>) {
    descriptor.buffer = zeroed_buffer(descriptor.len, spare);
    let segments = descriptor.segments.as_slice().len();
    if segments > 1 {
        descriptor.received_others = vec![0; segments - 1];
    }
}

/// Requests a PRP segment of a descriptor from the host; returns the beats of the answer.
fn request_host_data(
    number: u32,
    descriptor: &mut Descriptor,
    place: usize,
    at: u64,
    port: &mut LinkPort,
) -> u32 {
    let segment = descriptor.segments.as_slice()[place];
    let Some(host) = segment.host else {
        return 0;
    };
    // A read extends to the end of its last beat.
    let skip = host % BEAT;
    let bytes = (skip + u64::from(segment.len)).next_multiple_of(BEAT);
    let purpose = ReadPurpose::Data(number, place as u16, descriptor.channel as u8);
    port.request_read(at + timing::DATA_READ, purpose, host, (bytes - skip) as u32);
    descriptor.open_reads += 1;
    (bytes / BEAT) as u32
}

/// Number of a mover in a trace: movers to the host, the admin buffer, movers to the media.
fn mover_number(direction: usize, channel: usize, channels: usize) -> u8 {
    (direction * (channels + 1) + channel) as u8
}

fn channel_of(memory: &Memories, at: u64) -> usize {
    memory.locate(at).map_or(0, |place| place.channel)
}

/// Passes the first posted write through the port; returns its beats.
fn pass_post(now: u64, port: &mut LinkPort) -> u64 {
    let Some((_, post)) = port.posts.pop_front() else {
        return 0;
    };
    match post {
        PostedWrite::Write(addr, bytes, len) => {
            port.write_burst(now, addr, &bytes[..usize::from(len)], BurstOwner::None)
        }
        PostedWrite::AdminEntry(addr, bytes) => {
            port.write_burst(now, addr, &bytes, BurstOwner::AdminEntry)
        }
        PostedWrite::EventIdx(addr, value) => {
            port.write_burst(now, addr, &value.to_le_bytes(), BurstOwner::EventIdx)
        }
        PostedWrite::RegisterAnswer(tag, data) => {
            port.queue_answer(now, tag, data);
            0
        }
    }
}
