// SPDX-License-Identifier: Apache-2.0

//! One PCIe link: the wire in both directions, and the credits and tags that bound its use.
//!
//! Each direction of the wire is one serial resource. A TLP occupies it for `(payload + overhead) /
//! rate`, where the rate is [`LinkConfig::bytes_per_ns`]. The overhead (framing, sequence number,
//! header, LCRC) is 24 bytes for memory requests with a 64-bit address, and 20 bytes for those with
//! a 32-bit address and for completions. Payloads count in whole double words.
//!
//! DLLPs: a receiver sends one ACK for `ack_every_tlps` TLPs and one UpdateFC for
//! `update_fc_every_tlps` TLPs. They take 8 bytes each on the opposite direction, where they delay
//! later TLPs. NAKs are not modelled. Neither are timer-driven DLLPs of a sparse link, which have
//! no visible cost.
//!
//! Order: TLPs of the device leave in the order in which they were accepted, so reads and
//! completions never pass posted writes. Towards the device, completions never pass posted writes
//! that were ready before them; otherwise the two alternate. The host may answer different reads in
//! any order; the parts of one read stay in address order.
//!
//! Time: a device runs ahead of its host by at most [`Link::latency`], the least time that anything
//! needs to cross the link. Neither side therefore sees the other's future (see [`crate::System`]).

mod credits;
mod device;
mod marks;
mod tlp;
mod wire;

use std::collections::VecDeque;

use credits::{credit_bytes, Credits};
use marks::DeliveryMarks;
use tlp::{DeviceRead, QueuedCompletion, ReceivedCompletion};
use wire::{dwords, Wire, COMPLETION, REQUEST_64};

pub(crate) use tlp::{split_write, ReadRequest, UpstreamKind, UpstreamTlp};
pub use wire::DirectionStats;

use crate::config::LinkConfig;
use crate::{Mmio, ReadData, Time};

/// Largest write, in bytes, that a program waits for by itself: a completion, a flag, or a message.
/// Larger ones are data, which such a write follows.
const LARGEST_NOTICED: u32 = 64;

/// Traffic and refusals of a link since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Device to host.
    pub up: DirectionStats,
    /// Host to device.
    pub down: DirectionStats,
    /// Times the device was refused because too much waited for the wire.
    pub refused_wire: u64,
    /// Times the device was refused for lack of the host's credits.
    pub refused_credit: u64,
    /// Times the device was refused for lack of tags or of room for the data.
    pub refused_tag: u64,
}

/// One device's link. Its [`HostPort`] side belongs to the device, the rest to the scheduler.
pub struct Link {
    config: LinkConfig,
    latency: Time,
    // Device to host.
    up: Wire,
    up_queue: VecDeque<UpstreamTlp>,
    tx_buffer: Time,
    /// When the waiting read requests get the wire.
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
    completions: VecDeque<QueuedCompletion>,
    completion_was_last: bool,
    device_posted: Credits,
    device_nonposted: Credits,
    in_mmio: VecDeque<(Time, Mmio)>,
    in_data: VecDeque<ReceivedCompletion>,
    /// Reads that the device has accepted and not answered.
    unanswered: Vec<u32>,
    /// Marks in the order of posted writes.
    marks: DeliveryMarks,
    /// The latest accesses that the device has accepted, if recorded.
    taken: Option<VecDeque<(Time, Mmio)>>,
    refused: LinkStats,
    /// See [`HostPort::refused_until`](crate::HostPort::refused_until).
    refused_until: Time,
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
            marks: DeliveryMarks::default(),
            taken: None,
            refused: LinkStats::default(),
            refused_until: Time::ZERO,
            config: config.clone(),
        }
    }

    /// The configuration.
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
    pub(crate) fn next_upstream(&self) -> Option<Time> {
        self.up_queue.front().map(|tlp| tlp.arrival)
    }

    /// When the next TLP of the device that a program may wait for reaches the root complex: any
    /// but a write of more than [`LARGEST_NOTICED`] bytes.
    pub(crate) fn next_noticed(&self) -> Option<Time> {
        let noticed = |tlp: &&UpstreamTlp| match tlp.kind {
            UpstreamKind::Write { len, .. } => len <= LARGEST_NOTICED,
            _ => true,
        };
        self.up_queue.iter().find(noticed).map(|tlp| tlp.arrival)
    }

    pub(crate) fn upstream_head(&self) -> Option<&UpstreamKind> {
        self.up_queue.front().map(|tlp| &tlp.kind)
    }

    /// Removes the TLP that has arrived. The bytes of a write stay readable until
    /// [`Link::release`].
    pub(crate) fn pop_upstream(&mut self, now: Time) -> Option<UpstreamKind> {
        let tlp = self.up_queue.pop_front()?;
        self.down.acknowledge(now, &self.config);
        Some(tlp.kind)
    }

    pub(crate) fn bytes(&self, slot: u32, len: u32) -> &[u8] {
        let at = slot as usize * self.config.max_payload_bytes as usize;
        &self.slots[at..at + len as usize]
    }

    /// The write in `slot` leaves the root complex's buffer at `at`.
    pub(crate) fn release(&mut self, at: Time, slot: u32, len: u32) {
        self.free_slots.push(slot);
        self.posted
            .return_credits(at + self.latency, 1, credit_bytes(len as usize));
    }

    /// Queues an access of the host or of a peer for the device, ready for the wire at `ready`.
    pub(crate) fn enqueue_mmio(&mut self, ready: Time, mmio: Mmio) {
        if matches!(mmio, Mmio::Write { .. }) {
            self.marks.posted();
        }
        self.mmio_queue.push_back((ready, mmio));
    }

    /// See [`crate::System::mark`].
    pub(crate) fn mark(&mut self) -> u64 {
        self.marks.add()
    }

    /// See [`crate::System::completed`].
    pub(crate) fn completed(&mut self, mark: u64) -> Option<Time> {
        let time = self.peek_completed(mark)?;
        self.marks.remove(mark);
        Some(time)
    }

    /// See [`crate::System::watch_accepted`].
    pub(crate) fn watch_accepted(&mut self) {
        self.taken.get_or_insert_default();
    }

    /// See [`crate::System::accepted`].
    pub(crate) fn accepted(&self) -> impl Iterator<Item = &(Time, Mmio)> {
        self.taken.iter().flatten()
    }

    pub(crate) fn peek_completed(&self, mark: u64) -> Option<Time> {
        self.marks.reached(mark).map(|taken| taken + self.latency)
    }

    pub(crate) fn open_marks(&self) -> usize {
        self.marks.open()
    }

    pub(crate) fn mmio_queued(&self) -> usize {
        self.mmio_queue.len()
    }

    /// A read request leaves the root complex's buffer at `at`.
    pub(crate) fn release_read(&mut self, at: Time) {
        self.nonposted.return_credits(at + self.latency, 1, 0);
    }

    /// Answers a read request of the device: its completions are ready at `ready`. `None`:
    /// unsupported request.
    pub(crate) fn complete_read(&mut self, ready: Time, request: ReadRequest, data: Option<&[u8]>) {
        let state = &mut self.reads[request.read as usize];
        if !state.live {
            return;
        }
        if request.place != state.answered {
            state.early.push((ready, request, data.map(<[u8]>::to_vec)));
            return;
        }
        self.complete_next(ready, request, data);
        loop {
            let state = &mut self.reads[request.read as usize];
            let next = state.answered;
            let Some(at) = state.early.iter().position(|early| early.1.place == next) else {
                return;
            };
            let (then, request, data) = state.early.swap_remove(at);
            self.complete_next(then.max(ready), request, data.as_deref());
        }
    }

    /// Answers the next request of a read in order.
    fn complete_next(&mut self, ready: Time, request: ReadRequest, data: Option<&[u8]>) {
        let ReadRequest {
            addr,
            len,
            read,
            last,
            ..
        } = request;
        let state = &mut self.reads[read as usize];
        state.answered += 1;
        // The parts of one read stay in order, whatever time the memory takes for each.
        let ready = ready.max(state.ready);
        state.ready = ready;
        let mut place = self.completions.len();
        while place > 0 && self.completions[place - 1].ready > ready {
            place -= 1;
        }
        let mut queue = |completion| {
            self.completions.insert(place, completion);
            place += 1;
        };
        let Some(data) = data else {
            queue(QueuedCompletion {
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
        let mut rest = data;
        while !rest.is_empty() {
            let at = addr + (data.len() - rest.len()) as u64;
            // All but the last part end at a read completion boundary.
            let size = if rest.len() as u64 <= largest {
                rest.len()
            } else {
                (largest - at % rcb) as usize
            };
            let (piece, later) = rest.split_at(size);
            let ends_request = later.is_empty();
            queue(QueuedCompletion {
                ready,
                read,
                payload: dwords(at, piece.len()),
                data: Some(piece.to_vec()),
                ends_request,
                frees: if ends_request { len } else { 0 },
                last: last && ends_request,
            });
            rest = later;
        }
    }

    /// When the wire to the device can start its next TLP, as far as known.
    pub(crate) fn next_downstream(&self) -> Option<Time> {
        let completion = self.completions.front().map(|c| c.ready);
        let mmio = self.mmio_ready();
        // A completion waits for posted writes that were ready before it, credits or not.
        let ready = match (completion, mmio) {
            (Some(_), mmio) if self.mmio_blocks_completion() => mmio?,
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(ready.max(self.down.free))
    }

    /// When the first access for the device is ready and has its credits, if known.
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
    fn mmio_blocks_completion(&self) -> bool {
        match (self.mmio_queue.front(), self.completions.front()) {
            (Some((ready, Mmio::Write { .. })), Some(completion)) => *ready <= completion.ready,
            _ => false,
        }
    }

    /// Sends one TLP to the device at `now`, which is the time that [`Link::next_downstream`]
    /// returned.
    pub(crate) fn send_downstream(&mut self, now: Time) {
        let mmio = self.mmio_ready().is_some_and(|at| at <= now);
        let completion = self.completions.front().is_some_and(|c| c.ready <= now);
        if mmio && (!completion || self.mmio_blocks_completion() || self.completion_was_last) {
            self.completion_was_last = false;
            self.send_mmio(now);
        } else if completion && !self.mmio_blocks_completion() {
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
                self.device_posted.consume(now, 1, credit_bytes(data.len()));
                dwords(*offset, data.len())
            }
            Mmio::Read { .. } => {
                self.device_nonposted.consume(now, 1, 0);
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
        self.in_data.push_back(ReceivedCompletion {
            at,
            piece,
            ends_request: completion.ends_request,
            frees: completion.frees,
        });
    }

    /// The device loses power at `now`. TLPs that wait for the wire are lost, and reads in flight
    /// are dropped. Returns the tags of MMIO reads that will not be answered.
    pub(crate) fn power_off(&mut self, now: Time) -> Vec<u32> {
        let slots = &mut self.free_slots;
        let posted = &mut self.posted;
        let lost_reads = &mut self.nonposted;
        let mut lost_answers = std::mem::take(&mut self.unanswered);
        self.up_queue.retain(|tlp| match &tlp.kind {
            UpstreamKind::Write { slot, len, .. } if tlp.start > now => {
                slots.push(*slot);
                posted.return_credits(now, 1, credit_bytes(*len as usize));
                false
            }
            UpstreamKind::Read(_) => {
                lost_reads.return_credits(now, 1, 0);
                false
            }
            UpstreamKind::Answer { tag, last, .. } if tlp.start > now => {
                // The last completion of the other reads is lost as well, or was not sent.
                if *last {
                    lost_answers.push(*tag);
                }
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
        // The entries of these reads are not reused: a peer may still answer them.
        for read in &mut self.reads {
            read.live = false;
            read.early.clear();
        }
        lost_answers
    }
}
