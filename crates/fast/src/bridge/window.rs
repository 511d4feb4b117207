// SPDX-License-Identifier: Apache-2.0

//! Loads and stores of the PM window (nearside_window): to the channels of the memories, past the
//! conflict filter.

use sim::{Bar, LineRange, OrderEvent};

use crate::conflict_filter::StoreDecision;
use crate::context::{Event, SimContext, TAG_LOAD, TAG_STORE};
use crate::host_port::BEAT;
use crate::memory::{master, Channel};

use super::{Bridge, ReadAnswer, MAX_BEATS, MAX_LOADS};

/// Further write beats that the device has accepted and the memory has not.
const ACCEPTED_BEATS: u64 = 8;
/// Beats of a store that may still wait when the next store goes to another channel: one is at the
/// channel's port, two are in its register slice.
const MAX_WAITING_BEATS: u32 = 3;
/// Cycles from the transfer that makes room for a store until the store reaches a channel.
const STORE_ISSUE: u64 = 2;
/// Cycles of a load or store to the channel's multiplexer, and of its data back.
const LOAD: u64 = 3;
const STORE: u64 = 3;
const LOAD_BACK: u64 = 1;
/// Cycles after which used slots of the return path are forgotten. No later data can start earlier.
const HISTORY: u64 = 64;

/// A store that no channel has received yet.
pub(super) struct PendingStore {
    channel: usize,
    addr: u64,
    bytes: u32,
    beats: u64,
    id: u16,
    tag: u64,
    /// When it would reach the channel without other stores before it.
    at: u64,
}

/// The response to a store that is in flight.
pub(super) struct StoreResponse {
    /// The channel that answers.
    channel: usize,
    arrived: bool,
}

pub(super) struct OutstandingLoad {
    tag: u32,
    at: u64,
    len: u32,
    /// Beats that have arrived.
    beats: u64,
    /// Address up to which the data was answered.
    sent: u64,
    failed: bool,
    channel: usize,
}

impl Bridge {
    /// The memory is slower than the link, which stops until data passes:
    /// [`Bridge::memory_accepted_data`].
    pub(super) fn is_full(&self, ctx: &SimContext) -> bool {
        let held = |channel: &Channel| u64::from(channel.waiting_write_beats(master::PM));
        let all: u64 = ctx.memory.channels.iter().map(held).sum();
        all + self.queued_beats >= MAX_BEATS + ACCEPTED_BEATS
    }

    /// A memory may have accepted write data: continues what has waited for that.
    #[inline]
    pub(crate) fn memory_accepted_data(&mut self, ctx: &mut SimContext) {
        if !self.store_queue.is_empty() {
            self.issue_stores(ctx);
        }
        if self.held_access.is_some() && self.has_stores_in_flight() {
            ctx.schedule_after(1, Event::Bridge);
        }
    }

    /// Issues queued stores. All channels share one path for write data, so a store for another
    /// channel waits until the data before it has passed.
    fn issue_stores(&mut self, ctx: &mut SimContext) {
        while let Some(store) = self.store_queue.front() {
            let channel = store.channel;
            let before = &ctx.memory.channels[self.last_channel];
            if channel != self.last_channel
                && before.waiting_write_beats(master::PM) > MAX_WAITING_BEATS
            {
                return;
            }
            if self.waits_for_id(channel) {
                return;
            }
            let store = self.store_queue.pop_front();
            let store = store.expect("it is the first one");
            self.queued_beats -= store.beats;
            self.last_channel = channel;
            let at = store.at.max(ctx.now + STORE_ISSUE);
            let PendingStore {
                id,
                addr,
                bytes,
                tag,
                ..
            } = store;
            ctx.memory.channels[channel].write(at, master::PM, id, addr, bytes, tag);
            ctx.schedule_channel(channel);
        }
    }

    /// An earlier store with the same ID is in flight to another channel. Responses of one ID have
    /// to stay in order.
    fn waits_for_id(&self, channel: usize) -> bool {
        let number = self.store_queue[0].tag as u32;
        let place = number.wrapping_sub(self.stores_answered as u32) as usize;
        let before = place.checked_sub(MAX_LOADS);
        let response = before.and_then(|place| self.responses.get(place));
        response.is_some_and(|response| !response.arrived && response.channel != channel)
    }

    pub(super) fn start_load(&mut self, offset: u64, len: u32, tag: u32, ctx: &mut SimContext) {
        let place = ctx.memory.locate(offset);
        let Some(place) = place.filter(|_| !is_reserved(offset, len.into(), ctx)) else {
            let cycle = ctx.now + LOAD + LOAD_BACK;
            self.queue_answer(cycle, tag, None, ctx);
            return;
        };
        let load = self.loads.insert(OutstandingLoad {
            tag,
            at: offset,
            len,
            beats: 0,
            sent: offset,
            failed: false,
            channel: place.channel,
        }) as u32;
        record_order(place.channel, ctx, |channel| OrderEvent::LoadArrived {
            channel,
            id: load,
            lines: LineRange::of(offset, len.into()),
        });
        let filter = ctx.filter.as_deref_mut();
        if filter.is_none_or(|filter| filter.check_load(place.channel, offset, len.into(), load)) {
            self.issue_load(load, ctx);
        }
    }

    /// Issues a load that nothing delays to its channel.
    pub(crate) fn issue_load(&mut self, load: u32, ctx: &mut SimContext) {
        let OutstandingLoad {
            at: offset, len, ..
        } = self.loads[load as usize];
        let place = ctx.memory.locate(offset);
        let place = place.expect("a load that was started lies in a memory");
        record_order(place.channel, ctx, |channel| OrderEvent::LoadIssued {
            channel,
            id: load,
        });
        let at = self.load_free.max(ctx.now);
        self.load_free = at + 1;
        let skip = offset % BEAT;
        let bytes = (skip + u64::from(len)).next_multiple_of(BEAT) as u32;
        let (tag, addr) = (TAG_LOAD | u64::from(load), place.addr - skip);
        ctx.memory.channels[place.channel].read(
            at + LOAD,
            master::PM,
            load as u16,
            addr,
            bytes,
            tag,
        );
        ctx.schedule_channel(place.channel);
    }

    /// Data of a load has left its channel: cycle of the last beat, number of beats, and whether it
    /// is the last data.
    pub(crate) fn load_data_arrived(
        &mut self,
        number: u32,
        channel: usize,
        (cycle, beats, end): (u64, u32, bool),
        ctx: &mut SimContext,
    ) {
        let load = &mut self.loads[number as usize];
        let first = (cycle + 1).saturating_sub(beats.into());
        self.return_path
            .release_until(first.saturating_sub(HISTORY));
        let returned = self.return_path.reserve(first, cycle, beats);
        if returned > cycle {
            // Data that follows in the channel waits, whoever it belongs to.
            ctx.memory.channels[channel].hold_reads(returned + 1);
        }
        let cycle = returned + LOAD_BACK;
        let stop = load.at + u64::from(load.len);
        let start = load.at & !(BEAT - 1);
        load.beats += u64::from(beats);
        let here = match end {
            true => stop,
            false => (start + load.beats * BEAT).min(stop),
        };
        // Partial data is split at multiples of the largest completion.
        let to = match end {
            true => stop,
            false => here - here % self.max_payload,
        };
        let from = load.sent;
        if to <= from && !end {
            return;
        }
        load.sent = to;
        let tag = load.tag;
        let mut data = vec![0; (to - from) as usize];
        let fine = ctx.memory.read(from, &mut data);
        load.failed |= !fine;
        let failed = load.failed;
        if end {
            record_order(load.channel, ctx, |channel| OrderEvent::LoadServed {
                channel,
                id: number,
            });
            self.loads.remove(number as usize);
            ctx.schedule_after(1, Event::Bridge);
        }
        if failed {
            if end {
                self.queue_answer(cycle, tag, None, ctx);
            }
            return;
        }
        // A channel reports several beats at once, which may exceed a completion.
        let mut at = from;
        loop {
            let next = (at - at % self.max_payload + self.max_payload).min(to);
            self.insert_answer(ReadAnswer {
                cycle,
                tag,
                data: Some(data[(at - from) as usize..(next - from) as usize].to_vec()),
                last: end && next == to,
            });
            at = next;
            if at >= to {
                break;
            }
        }
        ctx.schedule(cycle, Event::Bridge);
    }

    /// Starts a store. Its bytes are visible at once: stores to one place keep their order whatever
    /// their responses do, and a store that was started completes without the host.
    pub(super) fn start_store(&mut self, offset: u64, data: &[u8], at: u64, ctx: &mut SimContext) {
        let bytes = data.len() as u32;
        let place = ctx.memory.locate(offset);
        let Some(place) = place.filter(|_| !is_reserved(offset, bytes.into(), ctx)) else {
            self.lost_writes += 1;
            return;
        };
        let beats = (offset % BEAT + u64::from(bytes)).div_ceil(BEAT);
        let tag = TAG_STORE | u64::from(self.stores_begun as u32);
        self.stores_begun += 1;
        self.responses.push_back(StoreResponse {
            channel: place.channel,
            arrived: false,
        });
        let id = self.store_id;
        self.store_id = (id + 1) % MAX_LOADS as u16;
        let number = tag as u32;
        record_order(place.channel, ctx, |channel| OrderEvent::StoreArrived {
            channel,
            lines: LineRange::of(offset, bytes.into()),
        });
        if let Some(filter) = ctx.filter.as_deref_mut() {
            let queued =
                filter.check_store(place.channel, offset, bytes.into()) == StoreDecision::Queue;
            if queued {
                let there = at + STORE + beats;
                filter.queue_store(place.channel, offset, data, there, number);
                ctx.schedule(there, Event::ConflictFilter);
            }
            record_order(place.channel, ctx, |channel| OrderEvent::StoreIssued {
                channel,
                number,
                queued,
            });
            if queued {
                return;
            }
        }
        record_order(place.channel, ctx, |channel| {
            OrderEvent::StoreReachedMemory { channel, number }
        });
        self.lost_writes += u64::from(!ctx.memory.write(offset, data));
        self.queued_beats += beats;
        self.store_queue.push_back(PendingStore {
            channel: place.channel,
            addr: place.addr,
            bytes,
            beats,
            id,
            tag,
            at: at + STORE,
        });
        self.issue_stores(ctx);
    }

    /// Has the engine make the records that a store needs in a tracked pool. Returns the cycles
    /// that the store is late; `None`: not all records are in the table.
    pub(super) fn track_store(
        &self,
        bar: Bar,
        offset: u64,
        len: u64,
        at: u64,
        ctx: &mut SimContext,
    ) -> Option<u64> {
        let place = match bar {
            Bar::Pm => ctx.memory.locate(offset),
            _ => None,
        };
        let filter = ctx.filter.as_deref_mut();
        let (Some(place), Some(filter)) = (place, filter.filter(|filter| !filter.is_closed()))
        else {
            return Some(0);
        };
        let tracked = filter.track_store((place.channel, offset, len), at);
        if !tracked.records.is_empty() {
            ctx.schedule(at + tracked.cycles, Event::ConflictFilter);
        }
        for record in tracked.records {
            ctx.record_order(|| OrderEvent::CommandAccepted(record));
        }
        (!tracked.waits).then_some(tracked.cycles)
    }

    /// The channel has answered a store.
    pub(crate) fn store_answered(&mut self, number: u32, ctx: &mut SimContext) {
        let place = number.wrapping_sub(self.stores_answered as u32) as usize;
        let response = &mut self.responses[place];
        debug_assert!(!response.arrived, "a store is answered once");
        response.arrived = true;
        record_order(response.channel, ctx, |channel| {
            OrderEvent::StorePersisted { channel, number }
        });
        while self.responses.front().is_some_and(|first| first.arrived) {
            self.responses.pop_front();
            self.stores_answered += 1;
        }
        ctx.schedule_after(1, Event::Bridge);
    }
}

/// Reports an event of the order at the conflict filter, which has only the channels of the
/// storage.
#[inline]
fn record_order(channel: usize, ctx: &SimContext, event: impl FnOnce(u8) -> OrderEvent) {
    if ctx.order.is_some()
        && ctx
            .filter
            .as_deref()
            .is_some_and(|h| channel < h.channels())
    {
        ctx.record_order(|| event(channel as u8));
    }
}

/// The conflict filter has no room for a store.
pub(super) fn waits_for_filter(bar: Bar, offset: u64, len: u64, ctx: &SimContext) -> bool {
    let Some(filter) = ctx.filter.as_deref() else {
        return false;
    };
    match (bar, ctx.memory.locate(offset)) {
        (Bar::Pm, Some(place)) => {
            filter.check_store(place.channel, offset, len) == StoreDecision::Wait
        }
        _ => filter.is_closed(),
    }
}

/// The access overlaps the reserved range of an engine.
fn is_reserved(offset: u64, len: u64, ctx: &SimContext) -> bool {
    let filter = ctx.filter.as_deref();
    filter.is_some_and(|filter| filter.is_reserved(offset, len))
}
