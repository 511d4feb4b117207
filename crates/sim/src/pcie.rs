//! One PCIe link: the wire in both directions, the credits and tags that bound what is on it.
//!
//! Per direction the wire is one serial resource; every TLP takes `(payload + overhead) / rate` of it, where the rate
//! is that of [`LinkConfig::bytes_per_ns`] and the overhead (framing, sequence number, header, LCRC) is
//! 24 bytes for memory requests with a 64-bit address, 20 bytes for those with a 32-bit address and for completions.
//! Payloads count in whole double words.
//!
//! DLLPs: the receiver of `ack_every_tlps` TLPs sends one ACK and that of `update_fc_every_tlps` TLPs one
//! UpdateFC, 8 bytes each, on the wire of the opposite direction, where they delay what follows. NAKs and timer-driven
//! DLLPs of a sparse link cost nothing that anyone could see, and aren't modelled.
//!
//! Order: TLPs of the device leave in the order in which they were accepted, so reads and completions never pass posted
//! writes. Towards the device, completions never pass posted writes that were ready before them; else the two take
//! turns. The host may answer different reads in any order, pieces of one read stay in address order.
//!
//! Time: a device runs ahead of its host by at most [`Link::latency`], the least time that anything needs
//! across the link, so neither side ever sees the other's future (see [`crate::System`]).

use std::collections::VecDeque;

use crate::config::LinkConfig;
use crate::{Bar, HostPort, Mmio, ReadData, Time};

/// Overhead of a memory request with a 64-bit address, bytes.
const REQUEST_64: u64 = 24;
/// Overhead of a memory request with a 32-bit address and of a completion, bytes.
const REQUEST_32: u64 = 20;
const COMPLETION: u64 = 20;
const DLLP: u64 = 8;

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// TLPs.
    pub tlps: u64,
    /// Payload bytes.
    pub payload: u64,
    /// Bytes on the wire: payload, overhead and DLLPs.
    pub wire: u64,
    /// DLLPs.
    pub dllps: u64,
}

/// Traffic and refusals of a link since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Device to host.
    pub up: Direction,
    /// Host to device.
    pub down: Direction,
    /// Times the device was refused because too much waited for the wire.
    pub refused_wire: u64,
    /// Times the device was refused for lack of the host's credits.
    pub refused_credit: u64,
    /// Times the device was refused for lack of tags or of room for the data.
    pub refused_tag: u64,
}

/// One direction of the wire.
struct Wire {
    /// When it has sent all it was given.
    free: Time,
    /// Picoseconds a byte, 16 fractional bits.
    ps_per_byte: u64,
    carried: Direction,
    /// TLPs of the other direction since the last ACK and UpdateFC.
    unacknowledged: u32,
    unupdated: u32,
}

impl Wire {
    fn new(config: &LinkConfig) -> Wire {
        Wire {
            free: Time::ZERO,
            ps_per_byte: (1000.0 / config.bytes_per_ns() * 65_536.0).round() as u64,
            carried: Direction::default(),
            unacknowledged: 0,
            unupdated: 0,
        }
    }

    #[inline]
    fn time(&self, bytes: u64) -> Time {
        Time((bytes * self.ps_per_byte) >> 16)
    }

    /// Sends a TLP, no earlier than `ready`; returns when its last bit leaves.
    #[inline]
    fn send(&mut self, ready: Time, payload: u64, overhead: u64) -> Time {
        self.free = self.free.max(ready) + self.time(payload + overhead);
        self.carried.tlps += 1;
        self.carried.payload += payload;
        self.carried.wire += payload + overhead;
        self.free
    }

    /// Accounts for the DLLPs that answer a TLP which the other direction brought at `at`.
    #[inline]
    fn acknowledge(&mut self, at: Time, config: &LinkConfig) {
        self.unacknowledged += 1;
        self.unupdated += 1;
        let mut dllps = 0;
        if self.unacknowledged >= config.ack_every_tlps {
            self.unacknowledged = 0;
            dllps += 1;
        }
        if self.unupdated >= config.update_fc_every_tlps {
            self.unupdated = 0;
            dllps += 1;
        }
        if dllps > 0 {
            self.free = self.free.max(at) + self.time(DLLP * dllps);
            self.carried.dllps += dllps;
            self.carried.wire += DLLP * dllps;
        }
    }
}

/// Flow control credits of one kind, seen by the sender.
struct Credits {
    headers: u32,
    /// Bytes.
    data: u32,
    /// Freed at the receiver, in order: when the sender learns of it, headers, bytes.
    returning: VecDeque<(Time, u32, u32)>,
}

impl Credits {
    fn new(headers: u32, data: u32) -> Credits {
        Credits {
            headers,
            data,
            returning: VecDeque::new(),
        }
    }

    fn refresh(&mut self, now: Time) {
        while let Some(&(at, headers, data)) = self.returning.front() {
            if at > now {
                break;
            }
            self.headers += headers;
            self.data += data;
            self.returning.pop_front();
        }
    }

    /// Takes credits if they are there at `now`.
    #[inline]
    fn take(&mut self, now: Time, headers: u32, data: u32) -> bool {
        if self.headers < headers || self.data < data {
            self.refresh(now);
            if self.headers < headers || self.data < data {
                return false;
            }
        }
        self.headers -= headers;
        self.data -= data;
        true
    }

    /// When so many credits will be there, if that is known.
    fn available(&self, headers: u32, data: u32) -> Option<Time> {
        let (mut h, mut d) = (self.headers, self.data);
        if h >= headers && d >= data {
            return Some(Time::ZERO);
        }
        for &(at, more_h, more_d) in &self.returning {
            h += more_h;
            d += more_d;
            if h >= headers && d >= data {
                return Some(at);
            }
        }
        None
    }

    fn give_back(&mut self, at: Time, headers: u32, data: u32) {
        self.returning.push_back((at, headers, data));
    }
}

/// Data credits are units of 16 bytes.
fn credit_bytes(len: usize) -> u32 {
    (len as u32).div_ceil(16) * 16
}

/// Bytes that `len` bytes at `addr` take as a payload: whole double words.
fn dwords(addr: u64, len: usize) -> u64 {
    ((addr & 3) + len as u64 + 3) & !3
}

fn request_overhead(addr: u64) -> u64 {
    if addr >> 32 == 0 {
        REQUEST_32
    } else {
        REQUEST_64
    }
}

/// The end of the next piece of `addr..end` when cut at multiples of `unit`.
#[inline]
fn cut(addr: u64, end: u64, unit: u64) -> u64 {
    end.min((addr | (unit - 1)) + 1)
}

/// A TLP of the device on its way to the root complex.
pub(crate) struct UpTlp {
    pub arrival: Time,
    start: Time,
    pub kind: Up,
}

/// What the device sends.
pub(crate) enum Up {
    /// Posted write; the bytes lie in the link's `slot`.
    Write { addr: u64, slot: u32, len: u32 },
    /// Read request.
    Read(Request),
    /// The whole answer to an MMIO read; the time is that of its last TLP.
    Answer { tag: u32, data: Option<Vec<u8>> },
}

/// One read request TLP of the device.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub addr: u64,
    pub len: u32,
    /// The link's entry of the read that this is a part of.
    read: u32,
    /// The last request of that read.
    last: bool,
}

/// A read of the device, which may be several requests.
struct DeviceRead {
    tag: u32,
    failed: bool,
    /// When the latest piece so far was ready, to keep pieces in order.
    ready: Time,
    live: bool,
}

/// A completion that waits for the wire to the device.
struct Completion {
    ready: Time,
    /// The device's read.
    read: u32,
    /// `None`: unsupported request.
    data: Option<Vec<u8>>,
    payload: u64,
    /// The last completion of its request: frees its tag and `frees` bytes of buffer.
    ends_request: bool,
    frees: u32,
    /// The last of the whole read.
    last: bool,
}

/// What the device finds in its receive buffer.
struct Arrived {
    at: Time,
    piece: Option<ReadData>,
    ends_request: bool,
    frees: u32,
}

/// One device's link. Its [`HostPort`] side belongs to the device, the rest to the scheduler.
pub struct Link {
    config: LinkConfig,
    latency: Time,
    // Device to host.
    up: Wire,
    up_queue: VecDeque<UpTlp>,
    tx_buffer: Time,
    /// When the read requests that wait for the wire get it.
    tx_requests: VecDeque<Time>,
    slots: Vec<u8>,
    free_slots: Vec<u32>,
    posted: Credits,
    nonposted: Credits,
    free_tags: u32,
    free_buffer: u32,
    reads: Vec<DeviceRead>,
    free_reads: Vec<u32>,
    // Host to device.
    down: Wire,
    mmio_queue: VecDeque<(Time, Mmio)>,
    completions: VecDeque<Completion>,
    completion_was_last: bool,
    device_posted: Credits,
    device_nonposted: Credits,
    in_mmio: VecDeque<(Time, Mmio)>,
    in_data: VecDeque<Arrived>,
    /// Reads that the device has taken and not answered.
    unanswered: Vec<u32>,
    refused: LinkStats,
}

impl Link {
    /// A link that is up and empty. The configuration must be valid.
    pub fn new(config: &LinkConfig) -> Link {
        let buffer = if config.device_completion_bytes == 0 {
            u32::MAX
        } else {
            config.device_completion_bytes
        };
        let up = Wire::new(config);
        Link {
            latency: Time::ns(config.device_phy_ns + config.propagation_ns + config.root_phy_ns),
            tx_buffer: up.time(config.device_tx_buffer_bytes.into()),
            up,
            up_queue: VecDeque::new(),
            tx_requests: VecDeque::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            posted: Credits::new(config.host_posted_headers, config.host_posted_bytes),
            nonposted: Credits::new(config.host_nonposted_headers, 0),
            free_tags: config.tags,
            free_buffer: buffer,
            reads: Vec::new(),
            free_reads: Vec::new(),
            down: Wire::new(config),
            mmio_queue: VecDeque::new(),
            completions: VecDeque::new(),
            completion_was_last: false,
            device_posted: Credits::new(config.device_posted_headers, config.device_posted_bytes),
            device_nonposted: Credits::new(config.device_nonposted_headers, 0),
            in_mmio: VecDeque::new(),
            in_data: VecDeque::new(),
            unanswered: Vec::new(),
            refused: LinkStats::default(),
            config: config.clone(),
        }
    }

    /// The parameters.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// The least time from one end to the other.
    pub fn latency(&self) -> Time {
        self.latency
    }

    /// Traffic so far.
    pub fn stats(&self) -> LinkStats {
        LinkStats {
            up: self.up.carried,
            down: self.down.carried,
            ..self.refused
        }
    }

    // ---- the root complex's side ----

    /// When the next TLP of the device reaches the root complex.
    #[inline]
    pub(crate) fn up_time(&self) -> Option<Time> {
        self.up_queue.front().map(|tlp| tlp.arrival)
    }

    pub(crate) fn up_head(&self) -> Option<&Up> {
        self.up_queue.front().map(|tlp| &tlp.kind)
    }

    /// Takes the TLP that has arrived. Its write bytes stay readable until [`Link::release`].
    pub(crate) fn up_take(&mut self, now: Time) -> Option<Up> {
        let tlp = self.up_queue.pop_front()?;
        self.down.acknowledge(now, &self.config);
        Some(tlp.kind)
    }

    pub(crate) fn bytes(&self, slot: u32, len: u32) -> &[u8] {
        let at = slot as usize * self.config.max_payload_bytes as usize;
        &self.slots[at..at + len as usize]
    }

    /// The write in `slot` has left the root complex's buffer at `at`.
    pub(crate) fn release(&mut self, at: Time, slot: u32, len: u32) {
        self.free_slots.push(slot);
        self.posted
            .give_back(at + self.latency, 1, credit_bytes(len as usize));
    }

    /// Takes a host's or peer's access for the device, ready for the wire at `ready`.
    pub(crate) fn enqueue_mmio(&mut self, ready: Time, mmio: Mmio) {
        self.mmio_queue.push_back((ready, mmio));
    }

    pub(crate) fn mmio_queued(&self) -> usize {
        self.mmio_queue.len()
    }

    /// A read request has left the root complex's buffer at `at`.
    pub(crate) fn release_read(&mut self, at: Time) {
        self.nonposted.give_back(at + self.latency, 1, 0);
    }

    /// Answers a read request of the device: its completions are ready at `ready`. `None`: unsupported request.
    pub(crate) fn complete(&mut self, ready: Time, request: Request, data: Option<&[u8]>) {
        let Request {
            addr,
            len,
            read,
            last,
        } = request;
        let state = &mut self.reads[read as usize];
        if !state.live {
            return;
        }
        // Pieces of one read stay in order, whatever the memory takes for each.
        let ready = ready.max(state.ready);
        state.ready = ready;
        let mut place = self.completions.len();
        while place > 0 && self.completions[place - 1].ready > ready {
            place -= 1;
        }
        let mut put = |completion| {
            self.completions.insert(place, completion);
            place += 1;
        };
        let Some(data) = data else {
            put(Completion {
                ready,
                read,
                data: None,
                payload: 0,
                ends_request: true,
                frees: len,
                last,
            });
            return;
        };
        let largest = u64::from(
            self.config
                .max_completion_bytes
                .min(self.config.max_payload_bytes),
        );
        let rcb = u64::from(self.config.read_completion_boundary_bytes);
        let (mut at, end) = (addr, addr + u64::from(len));
        while at < end {
            // All but the last end at a read completion boundary.
            let next = if at + largest >= end && (end - at) <= largest {
                end
            } else {
                (at + largest) & !(rcb - 1)
            };
            let piece = data[(at - addr) as usize..(next - addr) as usize].to_vec();
            put(Completion {
                ready,
                read,
                payload: dwords(at, piece.len()),
                data: Some(piece),
                ends_request: next == end,
                frees: if next == end { len } else { 0 },
                last: last && next == end,
            });
            at = next;
        }
    }

    /// When the wire to the device could start its next TLP, as far as is known.
    pub(crate) fn down_time(&self) -> Option<Time> {
        let completion = self.completions.front().map(|c| c.ready);
        let mmio = self.mmio_ready();
        // A completion waits for posted writes that were ready before it, credits or not.
        let ready = match (completion, mmio) {
            (Some(_), mmio) if self.mmio_goes_first() => mmio?,
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(ready.max(self.down.free))
    }

    /// When the first access for the device is ready and has its credits, if that is known.
    fn mmio_ready(&self) -> Option<Time> {
        let (ready, mmio) = self.mmio_queue.front()?;
        let credits = match mmio {
            Mmio::Write { data, .. } => {
                self.device_posted.available(1, credit_bytes(data.len()))?
            }
            Mmio::Read { .. } => self.device_nonposted.available(1, 0)?,
        };
        Some(credits.max(*ready))
    }

    /// Whether the first access for the device is a write that the first completion must not pass.
    fn mmio_goes_first(&self) -> bool {
        match (self.mmio_queue.front(), self.completions.front()) {
            (Some((ready, Mmio::Write { .. })), Some(completion)) => *ready <= completion.ready,
            _ => false,
        }
    }

    /// Sends one TLP to the device at `now`, which is what [`Link::down_time`] said.
    pub(crate) fn down_step(&mut self, now: Time) {
        let mmio = self.mmio_ready().is_some_and(|at| at <= now);
        let completion = self.completions.front().is_some_and(|c| c.ready <= now);
        if mmio && (!completion || self.mmio_goes_first() || self.completion_was_last) {
            self.completion_was_last = false;
            self.send_mmio(now);
        } else if completion && !self.mmio_goes_first() {
            self.completion_was_last = true;
            self.send_completion(now);
        }
    }

    fn send_mmio(&mut self, now: Time) {
        let Some((_, mmio)) = self.mmio_queue.pop_front() else {
            return;
        };
        // Windows of devices lie above 4 GiB.
        let payload = match &mmio {
            Mmio::Write { offset, data, .. } => {
                self.device_posted.take(now, 1, credit_bytes(data.len()));
                dwords(*offset, data.len())
            }
            Mmio::Read { .. } => {
                self.device_nonposted.take(now, 1, 0);
                0
            }
        };
        let arrival = self.down.send(now, payload, REQUEST_64) + self.latency;
        self.in_mmio.push_back((arrival, mmio));
    }

    fn send_completion(&mut self, now: Time) {
        let Some(completion) = self.completions.pop_front() else {
            return;
        };
        let at = self.down.send(now, completion.payload, COMPLETION) + self.latency;
        let state = &mut self.reads[completion.read as usize];
        state.failed |= completion.data.is_none();
        // A read that failed reports so once, at its end.
        let data = if state.failed { None } else { completion.data };
        let piece = (data.is_some() || completion.last).then_some(ReadData {
            tag: state.tag,
            data,
            last: completion.last,
        });
        if completion.last {
            state.live = false;
            self.free_reads.push(completion.read);
        }
        self.in_data.push_back(Arrived {
            at,
            piece,
            ends_request: completion.ends_request,
            frees: completion.frees,
        });
    }

    /// The device loses power at `now`: what waits for the wire is lost, reads in flight are forgotten, and the tags of
    /// MMIO reads that will never be answered are returned.
    pub(crate) fn power_off(&mut self, now: Time) -> Vec<u32> {
        let slots = &mut self.free_slots;
        let posted = &mut self.posted;
        let lost_reads = &mut self.nonposted;
        let mut lost_answers = std::mem::take(&mut self.unanswered);
        self.up_queue.retain(|tlp| match &tlp.kind {
            Up::Write { slot, len, .. } if tlp.start > now => {
                slots.push(*slot);
                posted.give_back(now, 1, credit_bytes(*len as usize));
                false
            }
            Up::Read(_) => {
                lost_reads.give_back(now, 1, 0);
                false
            }
            Up::Answer { tag, .. } if tlp.start > now => {
                lost_answers.push(*tag);
                false
            }
            _ => true,
        });
        self.up.free = self.up.free.min(now);
        self.tx_requests.clear();
        self.completions.clear();
        self.in_data.clear();
        self.free_tags = self.config.tags;
        self.free_buffer = if self.config.device_completion_bytes == 0 {
            u32::MAX
        } else {
            self.config.device_completion_bytes
        };
        // The entries of these reads are not used again: a peer may still answer them.
        for read in &mut self.reads {
            read.live = false;
        }
        lost_answers
    }
}

impl HostPort for Link {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        if self.up.free > now + self.tx_buffer {
            self.refused.refused_wire += 1;
            return false;
        }
        let unit = u64::from(self.config.max_payload_bytes);
        let end = addr + data.len() as u64;
        let (mut headers, mut bytes, mut at) = (0, 0, addr);
        while at < end {
            let next = cut(at, end, unit);
            headers += 1;
            bytes += credit_bytes((next - at) as usize);
            at = next;
        }
        if !self.posted.take(now, headers, bytes) {
            self.refused.refused_credit += 1;
            return false;
        }
        at = addr;
        while at < end {
            let next = cut(at, end, unit);
            let len = (next - at) as usize;
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                let slot = self.slots.len() / unit as usize;
                self.slots.resize(self.slots.len() + unit as usize, 0);
                slot as u32
            });
            let place = slot as usize * unit as usize;
            self.slots[place..place + len]
                .copy_from_slice(&data[(at - addr) as usize..(next - addr) as usize]);
            let start = self.up.free.max(now);
            let arrival = self.up.send(now, dwords(at, len), request_overhead(at)) + self.latency;
            self.up_queue.push_back(UpTlp {
                arrival,
                start,
                kind: Up::Write {
                    addr: at,
                    slot,
                    len: len as u32,
                },
            });
            at = next;
        }
        true
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        debug_assert!(len > 0, "a read of no bytes");
        // Requests have a buffer of their own, so that a stream of writes doesn't shut them out.
        while self.tx_requests.front().is_some_and(|&start| start <= now) {
            self.tx_requests.pop_front();
        }
        if self.tx_requests.len() >= self.config.device_tx_requests as usize {
            self.refused.refused_wire += 1;
            return false;
        }
        let unit = u64::from(self.config.max_read_request_bytes);
        let end = addr + u64::from(len);
        let requests = ((end - 1) / unit - addr / unit + 1) as u32;
        if self.free_tags < requests || self.free_buffer < len {
            self.refused.refused_tag += 1;
            return false;
        }
        if !self.nonposted.take(now, requests, 0) {
            self.refused.refused_credit += 1;
            return false;
        }
        self.free_tags -= requests;
        if self.config.device_completion_bytes != 0 {
            self.free_buffer -= len;
        }
        let state = DeviceRead {
            tag,
            failed: false,
            ready: Time::ZERO,
            live: true,
        };
        let read = match self.free_reads.pop() {
            Some(read) => {
                self.reads[read as usize] = state;
                read
            }
            None => {
                self.reads.push(state);
                self.reads.len() as u32 - 1
            }
        };
        let mut at = addr;
        while at < end {
            let next = cut(at, end, unit);
            let start = self.up.free.max(now);
            self.tx_requests.push_back(start);
            let arrival = self.up.send(now, 0, request_overhead(at)) + self.latency;
            let kind = Up::Read(Request {
                addr: at,
                len: (next - at) as u32,
                read,
                last: next == end,
            });
            self.up_queue.push_back(UpTlp {
                arrival,
                start,
                kind,
            });
            at = next;
        }
        true
    }

    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>) {
        let Some(place) = self.unanswered.iter().position(|&t| t == tag) else {
            return;
        };
        self.unanswered.swap_remove(place);
        let start = self.up.free.max(now);
        let mut rest = data.as_ref().map_or(0, |d| d.len() as u64);
        let arrival = loop {
            let piece = rest.min(self.config.max_payload_bytes.into());
            let sent = self.up.send(now, (piece + 3) & !3, COMPLETION);
            rest -= piece;
            if rest == 0 {
                break sent + self.latency;
            }
        };
        self.up_queue.push_back(UpTlp {
            arrival,
            start,
            kind: Up::Answer { tag, data },
        });
    }

    #[inline]
    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        if self.in_mmio.front()?.0 > now {
            return None;
        }
        let (_, mmio) = self.in_mmio.pop_front()?;
        self.up.acknowledge(now, &self.config);
        match &mmio {
            Mmio::Write { data, .. } => {
                self.device_posted
                    .give_back(now + self.latency, 1, credit_bytes(data.len()))
            }
            Mmio::Read { tag, .. } => {
                self.device_nonposted.give_back(now + self.latency, 1, 0);
                self.unanswered.push(*tag);
            }
        }
        Some(mmio)
    }

    #[inline]
    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        while self.in_data.front()?.at <= now {
            let arrived = self.in_data.pop_front()?;
            self.up.acknowledge(now, &self.config);
            if arrived.ends_request {
                self.free_tags += 1;
                if self.config.device_completion_bytes != 0 {
                    self.free_buffer += arrived.frees;
                }
            }
            if arrived.piece.is_some() {
                return arrived.piece;
            }
        }
        None
    }

    #[inline]
    fn next_arrival(&self) -> Option<Time> {
        match (self.in_mmio.front(), self.in_data.front()) {
            (Some(mmio), Some(data)) => Some(mmio.0.min(data.at)),
            (Some(mmio), None) => Some(mmio.0),
            (None, Some(data)) => Some(data.at),
            (None, None) => None,
        }
    }

    /// Never: the scheduler lets a device run at most one link latency ahead, and looks at the host in between.
    #[inline]
    fn attention(&self) -> bool {
        false
    }
}

/// Cuts a host's access of `data` into TLPs for the device.
pub(crate) fn split_write(
    bar: Bar,
    offset: u64,
    data: &[u8],
    unit: u32,
) -> impl Iterator<Item = Mmio> + '_ {
    let end = offset + data.len() as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let next = cut(at, end, unit.into());
        let data = data[(at - offset) as usize..(next - offset) as usize].to_vec();
        let mmio = Mmio::Write {
            bar,
            offset: at,
            data,
        };
        at = next;
        Some(mmio)
    })
}
