// SPDX-License-Identifier: Apache-2.0

//! Fetching of submission queue entries (nvme_fetch).

use sim::TraceEvent;
use spec::nvme::SQE_BYTES;

use crate::context::{Event, SimContext};
use crate::host_port::{HostReadData, ReadPurpose};

use super::queues::next_index;
use super::slot_table::SlotOwner;
use super::smart::IoCount;
use super::{timing, Controller};

/// Submission queue entries that are fetched at a time.
const FETCH_DEPTH: usize = 32;

/// A submission queue entry that is being fetched.
pub(super) struct EntryFetch {
    pub(super) qid: u16,
    pub(super) slot: u16,
    /// The queue's head after this entry.
    pub(super) head: u32,
    /// The queue has another entry.
    pub(super) more: bool,
    pub(super) bytes: [u8; SQE_BYTES],
    pub(super) received: usize,
    pub(super) failed: bool,
    /// The edge from which on the entry is complete.
    pub(super) arrival: Option<u64>,
}

impl Controller {
    /// Schedules the next fetch after a number of cycles, if there is one.
    pub(super) fn schedule_fetch(&mut self, cycles: u64, ctx: &mut SimContext) {
        if !self.fetch_planned && self.can_fetch() {
            self.fetch_planned = true;
            let at = self.fetch_at.max(ctx.now + cycles);
            ctx.schedule(at, Event::Fetch);
        }
    }

    /// Whether commands of the admin queue and of I/O queues may be fetched. The last slot is
    /// reserved for the admin queue.
    fn fetch_permissions(&self) -> (bool, bool) {
        let free = self.free_slots.len();
        (free > 0 && !self.admin.pending, free > 1)
    }

    fn can_fetch(&self) -> bool {
        let (admin, io) = self.fetch_permissions();
        self.accepts_commands()
            && self.fetching.len() < FETCH_DEPTH
            && self.queues.any_ready(admin, io)
    }

    pub(crate) fn fetch(&mut self, ctx: &mut SimContext) {
        self.fetch_planned = false;
        if !self.can_fetch() {
            return;
        }
        let (admin, io) = self.fetch_permissions();
        let weights = self.weighted.then(|| self.features.weights());
        let qid = self.queues.arbitrate(admin, io, weights);
        let qid = qid.expect("a queue is ready, and each class has a weight");
        let classes = if self.weighted {
            timing::FETCH_CLASSES
        } else {
            0
        };
        self.fetch_at = ctx.now + timing::FETCH_STEP + classes;
        let cqid = self.queues.sq_mut(qid).cqid;
        let reserved = self.queues.cq_mut(cqid).reserve();
        let sq = self.queues.sq_mut(qid);
        if !reserved {
            sq.blocked = true;
            self.shadow.queue_full(cqid, ctx);
            self.schedule_fetch(0, ctx);
            return;
        }
        let addr = sq.base + SQE_BYTES as u64 * u64::from(sq.head);
        sq.head = next_index(sq.head, sq.size);
        sq.in_flight += 1;
        let (head, more) = (sq.head, sq.has_commands());
        self.queues.consume_credit();
        let slot = self.free_slots.pop_front();
        let slot = slot.expect("fetching needs a free slot");
        self.admin.pending |= qid == 0;
        self.slots[usize::from(slot)] = Some(SlotOwner {
            qid: qid as u16,
            decoded: false,
            cid: 0,
            nsid: 0,
            lba: 0,
            in_flight: None,
            counts: IoCount::None,
        });
        self.fetching.push_back(EntryFetch {
            qid: qid as u16,
            slot,
            head,
            more,
            bytes: [0; SQE_BYTES],
            received: 0,
            failed: false,
            arrival: None,
        });
        ctx.trace(ctx.now + timing::FETCH + classes, || TraceEvent::Fetch {
            slot: slot as u8,
            queue: qid as u16,
            head: head as u16,
        });
        let purpose = ReadPurpose::Fetch(slot);
        ctx.read_host(timing::FETCH + classes, purpose, addr, SQE_BYTES as u32);
        if !more {
            self.shadow.schedule(ctx);
        }
        self.schedule_fetch(0, ctx);
    }

    pub(super) fn entry_arrived(
        &mut self,
        slot: u16,
        arrival: &HostReadData,
        ctx: &mut SimContext,
    ) {
        let entry = self.fetching.iter_mut().find(|entry| entry.slot == slot);
        let entry = entry.expect("an entry is decoded after all of it has arrived");
        match &arrival.data {
            None => entry.failed = true,
            Some(data) => {
                let len = data.len().min(SQE_BYTES - entry.received);
                entry.bytes[entry.received..entry.received + len].copy_from_slice(&data[..len]);
                entry.received += len;
            }
        }
        if arrival.last {
            entry.failed |= entry.received < SQE_BYTES;
            entry.arrival = Some(arrival.cycle);
            ctx.schedule(arrival.cycle + timing::DECODE, Event::Decode);
        }
    }
}
