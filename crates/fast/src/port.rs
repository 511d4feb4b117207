// SPDX-License-Identifier: Apache-2.0

//! The device's port to its PCIe link: reads of host memory with their tags, and posted writes.
//!
//! Each direction carries a beat of 64 bytes a cycle.

use std::collections::VecDeque;

use sim::{Clock, HostPort, ReadData, Time, TraceEvent, Tracer};

use crate::completion_timeout::{CompletionTimeout, ReadStream};

/// Bytes of a beat.
pub(crate) const BEAT: u64 = 64;

/// Posted writes of the front end that may wait for the link.
const MAX_POSTS: usize = 30;
/// Payloads of write data that may wait for the link.
const MAX_PAYLOADS: usize = 8;
/// Bytes of the largest burst.
pub(crate) const BURST_BYTES: usize = 512;
/// Buffers of bursts: each waiting burst has at least one waiting payload.
const BURST_BUFFERS: usize = 2 * MAX_PAYLOADS;

/// The block that has requested host memory, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    /// The submission queue entry of the command in this slot.
    Fetch(u16),
    /// A part of the PRP list or SGL segment of the command in this slot.
    List(u16),
    /// Write data: descriptor number, PRP segment within it, channel of the mover.
    Data(u32, u16, u8),
    /// A shadow doorbell.
    Shadow,
    /// Data of a Set Features: the segment with this number.
    AdminData(u8),
    /// A line of a list of ranges.
    RangeList,
    /// A line of a PRP list or SGL segment that describes where a list of ranges is.
    RangeListPointer,
}

impl ReadPurpose {
    /// The stream whose answers arrive in order. The RTL has an AXI ID for each.
    fn stream(self) -> ReadStream {
        match self {
            ReadPurpose::Fetch(_) => ReadStream::Fetch,
            ReadPurpose::List(slot) => ReadStream::List(slot),
            ReadPurpose::Data(_, _, channel) => ReadStream::Data(channel),
            ReadPurpose::Shadow => ReadStream::Shadow,
            ReadPurpose::AdminData(_) => ReadStream::AdminData,
            ReadPurpose::RangeList | ReadPurpose::RangeListPointer => ReadStream::Ranges,
        }
    }
}

/// Read data that has arrived from the host.
pub(crate) struct HostReadData {
    pub(crate) purpose: ReadPurpose,
    /// The edge at which its last beat has passed the port.
    pub(crate) cycle: u64,
    /// Its place in the requested data.
    pub(crate) offset: u32,
    /// The bytes; `None` if the read has failed.
    pub(crate) data: Option<Vec<u8>>,
    /// Beats at the port.
    pub(crate) beats: u32,
    /// Set with the last data of a read.
    pub(crate) last: bool,
}

#[derive(Clone, Copy)]
struct PendingRead {
    purpose: ReadPurpose,
    addr: u64,
    len: u32,
    cycle: u64,
}

#[derive(Clone, Copy)]
struct OutstandingRead {
    purpose: ReadPurpose,
    /// Bytes of the first beat that were not requested, then those that were.
    skip: u32,
    len: u32,
    received: u32,
    /// Its completion timeout has passed: late data is dropped.
    expired: bool,
}

/// A posted write of the front end.
pub(crate) enum PostedWrite {
    /// A completion queue entry or an interrupt message: address, bytes, length.
    Write(u64, [u8; 16], u8),
    /// The entry of an admin command, whose sending is reported.
    AdminEntry(u64, [u8; 16]),
    /// An EventIdx of a shadow doorbell, whose sending is reported: address, value.
    EventIdx(u64, u32),
    /// The answer to a read of BAR0, which keeps its order with the writes.
    RegisterAnswer(u32, Option<Vec<u8>>),
}

/// The block that is notified once the link has accepted a burst.
pub(crate) enum BurstOwner {
    None,
    /// A descriptor of the data path.
    Descriptor(u32),
    /// The admin queue.
    AdminEntry,
    /// The shadow doorbells.
    EventIdx,
    /// A read of BAR0, whose answer follows.
    RegisterAnswer(u32, Option<Vec<u8>>),
}

/// Bytes that go to the link in one packet.
struct PacketPayload {
    /// The edge at which the last beat has passed the port.
    ready: u64,
    addr: u64,
    len: u16,
    /// Buffer of the burst, and the offset in it.
    burst: u8,
    from: u16,
    /// Set in the last payload of a burst.
    owner: BurstOwner,
}

pub(crate) struct LinkPort {
    clock: Clock,
    /// Bytes of the largest payload, a power of two.
    max_payload: u64,
    payloads: VecDeque<PacketPayload>,
    /// Bytes of the waiting bursts, and the buffer of the next one.
    bursts: Box<[[u8; BURST_BYTES]; BURST_BUFFERS]>,
    next_burst: usize,
    /// Reads that wait for the link.
    pending_reads: VecDeque<PendingRead>,
    reads: Vec<Option<OutstandingRead>>,
    free_tags: Vec<u32>,
    /// What the host owes for long.
    timeout: CompletionTimeout,
    /// The next edge that is free for a beat of read data.
    beats_free: u64,
    /// Posted writes with the edge from which on they may be sent.
    pub(crate) posts: VecDeque<(u64, PostedWrite)>,
    /// The next edge that is free for a beat of write data.
    pub(crate) writes_free: u64,
    /// The link has refused a read, until this time.
    read_refused: Option<Time>,
    /// The link has refused a write, until this time.
    write_refused: Option<Time>,
    beats: [u64; 2],
    /// The link has accepted the last EventIdx.
    pub(crate) event_idx_sent: bool,
    /// The link has accepted the last entry of an admin command.
    pub(crate) admin_sent: bool,
}

impl LinkPort {
    /// A port with `tags` outstanding reads, whose writes have payloads of up to `max_payload`
    /// bytes.
    pub(crate) fn new(clock: Clock, tags: u32, max_payload: u32) -> LinkPort {
        LinkPort {
            clock,
            max_payload: max_payload.into(),
            payloads: VecDeque::with_capacity(2 * MAX_PAYLOADS),
            bursts: Box::new([[0; BURST_BYTES]; BURST_BUFFERS]),
            next_burst: 0,
            pending_reads: VecDeque::new(),
            reads: (0..tags).map(|_| None).collect(),
            free_tags: (0..tags).rev().collect(),
            timeout: CompletionTimeout::new(),
            beats_free: 0,
            posts: VecDeque::new(),
            writes_free: 0,
            read_refused: None,
            write_refused: None,
            beats: [0; 2],
            event_idx_sent: false,
            admin_sent: false,
        }
    }

    /// Requests host memory within a page. The request reaches the port at `cycle`.
    pub(crate) fn request_read(&mut self, cycle: u64, purpose: ReadPurpose, addr: u64, len: u32) {
        // Requests are sent in the order of their cycles, not of the calls.
        let after = self
            .pending_reads
            .iter()
            .rposition(|pending| pending.cycle <= cycle);
        let pending = PendingRead {
            purpose,
            addr,
            len,
            cycle,
        };
        self.pending_reads
            .insert(after.map_or(0, |n| n + 1), pending);
    }

    /// Queues a posted write of the front end.
    pub(crate) fn post(&mut self, cycle: u64, post: PostedWrite) {
        self.posts.push_back((cycle, post));
    }

    /// Queues a posted write of at most 16 bytes.
    pub(crate) fn post_write(&mut self, cycle: u64, addr: u64, data: &[u8]) {
        let mut bytes = [0; 16];
        bytes[..data.len()].copy_from_slice(data);
        self.post(cycle, PostedWrite::Write(addr, bytes, data.len() as u8));
    }

    /// No read is pending or outstanding, and no write is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending_reads.is_empty() && !self.has_pending_writes() && !self.has_outstanding_reads()
    }

    /// The host has not answered all reads whose completion timeout has not passed.
    fn has_outstanding_reads(&self) -> bool {
        self.free_tags.len() + self.timeout.expired() < self.reads.len()
    }

    /// Answers to expired reads may still arrive.
    pub(crate) fn has_expired_reads(&self) -> bool {
        self.timeout.expired() > 0
    }

    /// The queue of posted writes has room.
    pub(crate) fn has_room(&self) -> bool {
        self.posts.len() < MAX_POSTS
    }

    /// Writes wait for the port or for the link.
    pub(crate) fn has_pending_writes(&self) -> bool {
        !self.posts.is_empty() || !self.payloads.is_empty()
    }

    /// Another burst may pass the port.
    pub(crate) fn has_payload_room(&self) -> bool {
        self.payloads.len() < MAX_PAYLOADS
    }

    /// Writes bytes as one burst; see [`LinkPort::pass_burst`].
    pub(crate) fn write_burst(
        &mut self,
        now: u64,
        addr: u64,
        data: &[u8],
        owner: BurstOwner,
    ) -> u64 {
        self.burst_buffer()[..data.len()].copy_from_slice(data);
        self.pass_burst(now, addr, data.len(), owner)
    }

    /// The buffer of the next burst.
    pub(crate) fn burst_buffer(&mut self) -> &mut [u8; BURST_BYTES] {
        &mut self.bursts[self.next_burst]
    }

    /// Passes the next burst through the port, a beat a cycle from `now` on; returns its beats.
    pub(crate) fn pass_burst(&mut self, now: u64, addr: u64, len: usize, owner: BurstOwner) -> u64 {
        let beats = (addr % BEAT + len as u64).div_ceil(BEAT);
        self.writes_free = now + beats;
        self.beats[1] += beats;
        let mut from = 0;
        while from < len {
            let at = addr.wrapping_add(from as u64);
            let part = (len - from).min((self.max_payload - at % self.max_payload) as usize);
            self.payloads.push_back(PacketPayload {
                ready: now + (addr % BEAT + (from + part) as u64).div_ceil(BEAT),
                addr: at,
                len: part as u16,
                burst: self.next_burst as u8,
                from: from as u16,
                owner: BurstOwner::None,
            });
            from += part;
        }
        self.next_burst = (self.next_burst + 1) % BURST_BUFFERS;
        if let Some(last) = self.payloads.back_mut() {
            last.owner = owner;
        }
        beats
    }

    /// Queues an answer that follows all writes that have passed the port.
    pub(crate) fn queue_answer(&mut self, now: u64, tag: u32, data: Option<Vec<u8>>) {
        self.payloads.push_back(PacketPayload {
            ready: now,
            addr: 0,
            len: 0,
            burst: 0,
            from: 0,
            owner: BurstOwner::RegisterAnswer(tag, data),
        });
    }

    /// Sends the next payload if it is due and the link accepts it. Otherwise returns the edge to
    /// try again at, if that is known.
    pub(crate) fn send_payload(
        &mut self,
        now: u64,
        host: &mut dyn HostPort,
    ) -> Result<BurstOwner, Option<u64>> {
        let Some(piece) = self.payloads.front() else {
            return Err(None);
        };
        if piece.ready > now {
            return Err(Some(piece.ready));
        }
        let time = self.clock.edge(now);
        if piece.len > 0 {
            let (from, len) = (usize::from(piece.from), usize::from(piece.len));
            let bytes = &self.bursts[usize::from(piece.burst)][from..from + len];
            if self.write_refused.is_some_and(|until| until > time)
                || !host.write(time, piece.addr, bytes)
            {
                if self.write_refused.is_none_or(|until| until <= time) {
                    self.write_refused = Some(host.refused_until());
                }
                return Err(self.retry_cycle(now, self.write_refused));
            }
            self.write_refused = None;
        }
        let owner = self
            .payloads
            .pop_front()
            .map_or(BurstOwner::None, |p| p.owner);
        match owner {
            BurstOwner::RegisterAnswer(tag, data) => {
                host.mmio_data(time, tag, data);
                Ok(BurstOwner::None)
            }
            owner => Ok(owner),
        }
    }

    /// Sends pending reads until the link refuses one. Returns the edge of the next call, if that
    /// is known.
    pub(crate) fn send_reads(
        &mut self,
        now: u64,
        tracer: Option<&Tracer>,
        host: &mut dyn HostPort,
    ) -> Option<u64> {
        let time = self.clock.edge(now);
        if self.read_refused.is_some_and(|until| until > time) {
            return self.retry_cycle(now, self.read_refused);
        }
        self.read_refused = None;
        while let Some(&pending) = self.pending_reads.front() {
            if pending.cycle > now {
                return Some(pending.cycle);
            }
            let &tag = self.free_tags.last()?;
            if !host.read(time, tag, pending.addr, pending.len) {
                self.read_refused = Some(host.refused_until());
                return self.retry_cycle(now, self.read_refused);
            }
            if let Some(tracer) = tracer.filter(|tracer| tracer.wants_ports()) {
                tracer.record(time, &TraceEvent::HostRead { addr: pending.addr });
            }
            self.free_tags.pop();
            self.pending_reads.pop_front();
            self.reads[tag as usize] = Some(OutstandingRead {
                purpose: pending.purpose,
                skip: (pending.addr % BEAT) as u32,
                len: pending.len,
                received: 0,
                expired: false,
            });
        }
        None
    }

    /// Whether a timeout check has to be scheduled. True once for each check.
    pub(crate) fn arm_timeout_check(&mut self) -> bool {
        self.has_outstanding_reads() && self.timeout.arm()
    }

    /// Ends the reads of streams that have received nothing since the last check.
    pub(crate) fn expire_stalled_reads(&mut self, now: u64) -> Vec<HostReadData> {
        let open = self.reads.iter().flatten().filter(|read| !read.expired);
        let stuck = self.timeout.check(open.map(|read| read.purpose.stream()));
        let mut ended = Vec::new();
        for (tag, place) in (0..).zip(&mut self.reads) {
            let Some(read) = place.as_mut().filter(|read| !read.expired) else {
                continue;
            };
            let stream = read.purpose.stream();
            if !stuck.contains(&stream) {
                continue;
            }
            let before = (read.skip + read.received) / BEAT as u32;
            let beats = (read.skip + read.len).div_ceil(BEAT as u32) - before;
            let cycle = self.beats_free.max(now) + u64::from(beats);
            self.beats_free = cycle;
            ended.push(HostReadData {
                purpose: read.purpose,
                cycle,
                offset: read.received,
                data: None,
                beats,
                last: true,
            });
            // Its data has arrived already, and has waited for an earlier answer.
            if self.timeout.discard_held(tag) {
                *place = None;
                self.free_tags.push(tag);
            } else {
                read.expired = true;
                self.timeout.expire(stream);
            }
        }
        ended
    }

    /// Data that was held for an expired read and is next in order now.
    pub(crate) fn released(&mut self) -> Option<ReadData> {
        self.timeout.released()
    }

    /// The edge to try again at after a refusal; `None` if the link does not know it.
    pub(crate) fn retry_cycle(&self, now: u64, until: Option<Time>) -> Option<u64> {
        match until {
            None | Some(Time::MAX) => None,
            Some(until) => Some((self.clock.edge_strictly_before(until) + 1).max(now + 1)),
        }
    }

    /// The link has refused a request for an unknown time.
    pub(crate) fn is_refused(&self) -> bool {
        [self.read_refused, self.write_refused].contains(&Some(Time::MAX))
    }

    /// Clears refusals of unknown length, so that they are tried again; false if there are none.
    pub(crate) fn clear_unknown_refusals(&mut self) -> bool {
        let unknown =
            |refused: &mut Option<Time>| refused.take_if(|until| *until == Time::MAX).is_some();
        unknown(&mut self.read_refused) | unknown(&mut self.write_refused)
    }

    /// Receives read data from the link.
    pub(crate) fn receive(
        &mut self,
        now: u64,
        piece: ReadData,
        tracer: Option<&Tracer>,
    ) -> Option<HostReadData> {
        let read = self.reads.get_mut(piece.tag as usize)?.as_mut()?;
        let stream = read.purpose.stream();
        if read.expired {
            if piece.last {
                self.reads[piece.tag as usize] = None;
                self.free_tags.push(piece.tag);
                self.timeout.answer_expired(stream);
            }
            return None;
        }
        let piece = self.timeout.accept(stream, piece)?;
        let offset = read.received;
        let len = piece.data.as_ref().map_or(0, |data| data.len() as u32);
        read.received += len;
        let purpose = read.purpose;
        let before = (read.skip + offset) / BEAT as u32;
        let beats = match piece.last {
            true => (read.skip + read.len).div_ceil(BEAT as u32) - before,
            false => (read.skip + read.received) / BEAT as u32 - before,
        };
        let all = beats;
        let beats = u64::from(beats);
        self.beats[0] += beats;
        let cycle = self.beats_free.max(now) + beats;
        self.beats_free = cycle;
        trace_beats(self.clock, cycle, beats, TraceEvent::HostData, tracer);
        if piece.last {
            self.reads[piece.tag as usize] = None;
            self.free_tags.push(piece.tag);
        }
        Some(HostReadData {
            purpose,
            cycle,
            offset,
            data: piece.data,
            beats: all,
            last: piece.last,
        })
    }
}

/// Reports a beat at the port for each of the cycles before `end`.
pub(crate) fn trace_beats(
    clock: Clock,
    end: u64,
    beats: u64,
    event: TraceEvent,
    tracer: Option<&Tracer>,
) {
    if let Some(tracer) = tracer.filter(|tracer| tracer.wants_ports()) {
        for cycle in end - beats..end {
            tracer.record(clock.edge(cycle), &event);
        }
    }
}
