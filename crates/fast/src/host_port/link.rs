// SPDX-License-Identifier: Apache-2.0

//! The PCIe link as the host port sees it: outstanding reads with their tags, and the packets of
//! posted writes.
//!
//! Each direction carries a beat of 64 bytes a cycle.

use std::collections::VecDeque;

use sim::{Clock, HostPort, ReadData, Time, TraceEvent, Tracer};

use super::completion_timeout::CompletionTimeout;
use super::requests::{BurstOwner, HostReadData, ReadPurpose};

/// Bytes of a beat.
pub(crate) const BEAT: u64 = 64;

/// Packets that may wait for the link.
const MAX_PACKETS: usize = 8;
/// Bytes of the largest burst.
pub(crate) const BURST_BYTES: usize = 512;
/// Buffers of bursts: each waiting burst has at least one waiting packet.
const BURST_BUFFERS: usize = 2 * MAX_PACKETS;

/// A read that waits for the link.
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

/// A packet that waits for the link.
struct Packet {
    /// The edge at which its last beat has passed the port.
    ready: u64,
    content: PacketContent,
}

enum PacketContent {
    Write {
        addr: u64,
        len: u16,
        /// Buffer of the burst, and the offset in it.
        burst: u8,
        from: u16,
        /// Set in the last packet of a burst.
        owner: Option<BurstOwner>,
    },
    /// The answer to a read of BAR0: tag, data.
    RegisterAnswer(u32, Option<Vec<u8>>),
}

/// Reads and writes between port and link.
pub(crate) struct LinkPort {
    clock: Clock,
    /// Bytes of the largest payload, a power of two.
    max_payload: u64,
    packets: VecDeque<Packet>,
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
    /// The next edge that is free for a beat of write data.
    writes_free: u64,
    /// The link has refused a read, until this time.
    read_refused: Option<Time>,
    /// The link has refused a write, until this time.
    write_refused: Option<Time>,
}

impl LinkPort {
    /// A port with `tags` outstanding reads, whose writes have payloads of up to `max_payload`
    /// bytes.
    pub(crate) fn new(clock: Clock, tags: u32, max_payload: u32) -> LinkPort {
        LinkPort {
            clock,
            max_payload: max_payload.into(),
            packets: VecDeque::with_capacity(2 * MAX_PACKETS),
            bursts: Box::new([[0; BURST_BYTES]; BURST_BUFFERS]),
            next_burst: 0,
            pending_reads: VecDeque::new(),
            reads: (0..tags).map(|_| None).collect(),
            free_tags: (0..tags).rev().collect(),
            timeout: CompletionTimeout::new(),
            beats_free: 0,
            writes_free: 0,
            read_refused: None,
            write_refused: None,
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

    /// No read is pending or outstanding, and no packet waits.
    pub(super) fn is_idle(&self) -> bool {
        self.pending_reads.is_empty() && self.packets.is_empty() && !self.has_outstanding_reads()
    }

    /// The host has not answered all reads whose completion timeout has not passed.
    fn has_outstanding_reads(&self) -> bool {
        self.free_tags.len() + self.timeout.expired() < self.reads.len()
    }

    /// Answers to expired reads may still arrive.
    pub(crate) fn has_expired_reads(&self) -> bool {
        self.timeout.expired() > 0
    }

    /// A packet waits for the link.
    pub(super) fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Another burst may pass the port.
    pub(super) fn has_room(&self) -> bool {
        self.packets.len() < MAX_PACKETS
    }

    /// The next edge that is free for a beat of write data.
    pub(super) fn writes_free(&self) -> u64 {
        self.writes_free
    }

    /// The buffer of the next burst.
    pub(crate) fn burst_buffer(&mut self) -> &mut [u8; BURST_BYTES] {
        &mut self.bursts[self.next_burst]
    }

    /// Passes the next burst through the port, a beat a cycle from `now` on; returns its beats.
    pub(crate) fn pass_burst(
        &mut self,
        now: u64,
        addr: u64,
        len: usize,
        owner: Option<BurstOwner>,
    ) -> u64 {
        debug_assert!(len > 0, "the owner of an empty burst would not be notified");
        let beats = (addr % BEAT + len as u64).div_ceil(BEAT);
        self.writes_free = now + beats;
        let mut from = 0;
        while from < len {
            let at = addr.wrapping_add(from as u64);
            let part = (len - from).min((self.max_payload - at % self.max_payload) as usize);
            self.packets.push_back(Packet {
                ready: now + (addr % BEAT + (from + part) as u64).div_ceil(BEAT),
                content: PacketContent::Write {
                    addr: at,
                    len: part as u16,
                    burst: self.next_burst as u8,
                    from: from as u16,
                    owner: owner.filter(|_| from + part == len),
                },
            });
            from += part;
        }
        self.next_burst = (self.next_burst + 1) % BURST_BUFFERS;
        beats
    }

    /// Reports the beats of the last burst at the port.
    pub(crate) fn trace_burst(&self, beats: u64, tracer: Option<&Tracer>) {
        trace_beats(
            self.clock,
            self.writes_free,
            beats,
            TraceEvent::HostWrite,
            tracer,
        );
    }

    /// Queues an answer that follows all writes that have passed the port.
    pub(super) fn queue_answer(&mut self, now: u64, tag: u32, data: Option<Vec<u8>>) {
        self.packets.push_back(Packet {
            ready: now,
            content: PacketContent::RegisterAnswer(tag, data),
        });
    }

    /// Sends the next packet if it is due and the link accepts it; returns the owner of the burst
    /// that it ends. Otherwise returns the edge to try again at, if that is known.
    pub(super) fn send_packet(
        &mut self,
        now: u64,
        host: &mut dyn HostPort,
    ) -> Result<Option<BurstOwner>, Option<u64>> {
        let Some(packet) = self.packets.front_mut() else {
            return Err(None);
        };
        if packet.ready > now {
            return Err(Some(packet.ready));
        }
        let time = self.clock.edge(now);
        let owner = match &mut packet.content {
            PacketContent::Write {
                addr,
                len,
                burst,
                from,
                owner,
            } => {
                let (from, len) = (usize::from(*from), usize::from(*len));
                let bytes = &self.bursts[usize::from(*burst)][from..from + len];
                if self.write_refused.is_some_and(|until| until > time)
                    || !host.write(time, *addr, bytes)
                {
                    if self.write_refused.is_none_or(|until| until <= time) {
                        self.write_refused = Some(host.refused_until());
                    }
                    return Err(self.retry_cycle(now, self.write_refused));
                }
                self.write_refused = None;
                *owner
            }
            PacketContent::RegisterAnswer(tag, data) => {
                host.mmio_data(time, *tag, data.take());
                None
            }
        };
        self.packets.pop_front();
        Ok(owner)
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
    fn retry_cycle(&self, now: u64, until: Option<Time>) -> Option<u64> {
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
        part: ReadData,
        tracer: Option<&Tracer>,
    ) -> Option<HostReadData> {
        // An unexpected completion is dropped, as PCI Express requires.
        let read = self.reads.get_mut(part.tag as usize)?.as_mut()?;
        let stream = read.purpose.stream();
        if read.expired {
            if part.last {
                self.reads[part.tag as usize] = None;
                self.free_tags.push(part.tag);
                self.timeout.answer_expired(stream);
            }
            return None;
        }
        let part = self.timeout.accept(stream, part)?;
        let offset = read.received;
        let len = part.data.as_ref().map_or(0, |data| data.len() as u32);
        read.received += len;
        let purpose = read.purpose;
        let before = (read.skip + offset) / BEAT as u32;
        let beats = match part.last {
            true => (read.skip + read.len).div_ceil(BEAT as u32) - before,
            false => (read.skip + read.received) / BEAT as u32 - before,
        };
        let cycle = self.beats_free.max(now) + u64::from(beats);
        self.beats_free = cycle;
        trace_beats(
            self.clock,
            cycle,
            beats.into(),
            TraceEvent::HostData,
            tracer,
        );
        if part.last {
            self.reads[part.tag as usize] = None;
            self.free_tags.push(part.tag);
        }
        Some(HostReadData {
            purpose,
            cycle,
            offset,
            data: part.data,
            beats,
            last: part.last,
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
