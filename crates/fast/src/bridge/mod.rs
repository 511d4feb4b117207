// SPDX-License-Identifier: Apache-2.0

//! Accesses of the host to the BARs, in order: registers, the PM window, command pages.
//!
//! The order is that of the RTL's ports. A write starts after all earlier writes of the other port
//! are complete, a read after all earlier writes. Reads do not delay later accesses to the PM
//! window.

mod window;

use std::collections::VecDeque;

use sim::{Bar, HostPort, Mmio, Time, TraceEvent, Tracer};
use slab::Slab;
use spec::bar4;

use crate::context::{Event, SimContext};
use crate::host_port::BEAT;
use crate::memory::delay::timing_copy;
use crate::memory::ReturnPath;

use window::{waits_for_filter, OutstandingLoad, PendingStore, StoreResponse};

/// Sizes of BAR0 and BAR4.
const BAR0_BYTES: u64 = 64 << 10;
const BAR4_BYTES: u64 = 1 << 20;
/// Write beats that may wait.
const MAX_BEATS: u64 = 64;
/// Loads in flight.
const MAX_LOADS: usize = 64;
/// Cycles of a register access: until it takes effect, and until the next one may start.
const REGISTER: u64 = 4;
const REGISTER_STEP: u64 = 3;
/// Cycles after a write that makes an `nvm_delay` copy all times, until its times and commands can
/// be accessed again.
const COPY: u64 = 25;
/// Cycles from a write to a command page until the next store, in a device with a conflict filter.
const COMMAND_ACCEPT: u64 = 6;

/// Cycles of a load of a command page: to its first line, and for each line.
const PAGE_LOAD: u64 = 6;
const PAGE_LINE: u64 = 2;

/// An access to registers, split into words.
#[derive(Clone, Debug)]
pub(crate) enum RegisterAccess {
    /// Write of one word: offset, value.
    Word(Bar, u64, u32),
    /// Write of several words: offset, value, mask of the written bits.
    Write(Bar, Vec<(u64, u32, u32)>),
    /// Read of several words. The answer is `len` bytes from `skip` on.
    Read {
        bar: Bar,
        first: u64,
        words: u64,
        skip: usize,
        len: usize,
        tag: u32,
    },
}

/// An access that other blocks carry out.
pub(crate) enum BridgeRequest {
    None,
    Registers(RegisterAccess),
    /// A store to the command pages: offset in BAR4, bytes.
    PageStore(u64, Vec<u8>),
    /// A load from the command pages: offset, bytes, tag.
    PageLoad(u64, u32, u32),
}

/// A read completion, or a part of one.
struct ReadAnswer {
    cycle: u64,
    tag: u32,
    data: Option<Vec<u8>>,
    last: bool,
}

pub(crate) struct Bridge {
    held_access: Option<Mmio>,
    /// The next free edge of the register port.
    lite_free: u64,
    /// The edge until which the `nvm_delay` of each channel copies its times.
    copies: Vec<u64>,
    /// The next free edges of the PM window's port, for a write beat and for a load.
    beats_free: u64,
    load_free: u64,
    loads: Slab<OutstandingLoad>,
    /// The path of read data, a beat a cycle for all channels together.
    return_path: ReturnPath,
    /// Stores that were started, those of the first of them that are all answered, and which of the
    /// later ones are.
    stores_begun: u64,
    stores_answered: u64,
    responses: VecDeque<StoreResponse>,
    /// AXI IDs of stores are used in rotation.
    store_id: u16,
    /// Stores that wait for the data of earlier ones, their beats, and the channel of the last
    /// store that was issued.
    store_queue: VecDeque<PendingStore>,
    queued_beats: u64,
    last_channel: usize,
    answers: VecDeque<ReadAnswer>,
    /// Bytes of the largest completion.
    max_payload: u64,
    pub(crate) lost_writes: u64,
}

impl Bridge {
    pub(crate) fn new(max_payload: u32) -> Bridge {
        Bridge {
            held_access: None,
            lite_free: 0,
            copies: Vec::new(),
            beats_free: 0,
            load_free: 0,
            loads: Slab::new(),
            return_path: ReturnPath::default(),
            stores_begun: 0,
            stores_answered: 0,
            responses: VecDeque::new(),
            store_id: 0,
            store_queue: VecDeque::new(),
            queued_beats: 0,
            last_channel: 0,
            answers: VecDeque::new(),
            max_payload: max_payload.into(),
            lost_writes: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.held_access.is_none()
            && self.loads.is_empty()
            && !self.has_stores_in_flight()
            && self.answers.is_empty()
    }

    /// Stores wait for their responses.
    fn has_stores_in_flight(&self) -> bool {
        self.stores_answered != self.stores_begun
    }

    /// Stores that were started, and those of the first of them that are all answered.
    pub(crate) fn store_counts(&self) -> (u64, u64) {
        (self.stores_begun, self.stores_answered)
    }

    /// An access waits for the bridge itself, so no further one is accepted.
    pub(crate) fn is_blocked(&self) -> bool {
        self.held_access.is_some()
    }

    /// An answer is due.
    pub(crate) fn has_answer(&self, now: u64) -> bool {
        let first = self.answers.front();
        first.is_some_and(|answer| answer.cycle <= now)
    }

    /// Sends the answers that are due. Returns the edge of the next call.
    pub(crate) fn send_answers(
        &mut self,
        now: u64,
        time: Time,
        host: &mut dyn HostPort,
    ) -> Option<u64> {
        while let Some(answer) = self.answers.front() {
            if answer.cycle > now {
                return Some(answer.cycle);
            }
            let answer = self.answers.pop_front().expect("the first one is due");
            match (answer.last, answer.data) {
                (true, data) => host.mmio_data(time, answer.tag, data),
                (false, Some(data)) => host.mmio_part(time, answer.tag, data),
                (false, None) => unreachable!("a load that fails is answered once"),
            }
        }
        None
    }

    /// Queues the answer to a read for an edge.
    pub(crate) fn queue_answer(
        &mut self,
        cycle: u64,
        tag: u32,
        data: Option<Vec<u8>>,
        ctx: &mut SimContext,
    ) {
        self.insert_answer(ReadAnswer {
            cycle,
            tag,
            data,
            last: true,
        });
        ctx.schedule(cycle, Event::Bridge);
    }

    /// Queues the answer to a load of the command pages. Its lines follow one another; parts are
    /// split at multiples of the largest completion.
    pub(crate) fn queue_page_answer(
        &mut self,
        tag: u32,
        offset: u64,
        data: &[u8],
        ctx: &mut SimContext,
    ) {
        let stop = offset + data.len() as u64;
        let (mut from, first) = (offset, offset / BEAT);
        while from < stop {
            let to = (from - from % self.max_payload + self.max_payload).min(stop);
            let lines = to.div_ceil(BEAT) - first;
            let cycle = ctx.now + PAGE_LOAD + PAGE_LINE * lines;
            self.insert_answer(ReadAnswer {
                cycle,
                tag,
                data: Some(data[(from - offset) as usize..(to - offset) as usize].to_vec()),
                last: to == stop,
            });
            ctx.calendar.schedule(cycle, Event::Bridge);
            from = to;
        }
    }

    /// Keeps answers in the order of their cycles.
    fn insert_answer(&mut self, answer: ReadAnswer) {
        let after = self.answers.iter().rposition(|a| a.cycle <= answer.cycle);
        self.answers.insert(after.map_or(0, |n| n + 1), answer);
    }

    /// Accounts for a write to an `nvm_delay`. Later accesses may have to wait until it has copied
    /// its times.
    pub(crate) fn delay_written(&mut self, channel: usize, offset: u64, value: u32, now: u64) {
        let (waits, copies) = timing_copy(offset, value);
        if self.copies.len() <= channel {
            self.copies.resize(channel + 1, 0);
        }
        let end = &mut self.copies[channel];
        let wait = match waits {
            true => end.saturating_sub(now),
            false => 0,
        };
        self.lite_free += wait;
        if copies {
            *end = now + wait + COPY;
        }
    }

    /// Starts the next access, if it may start now.
    pub(crate) fn next_access(
        &mut self,
        ctx: &mut SimContext,
        host: &mut dyn HostPort,
    ) -> Option<BridgeRequest> {
        let time = ctx.clock.edge(ctx.now);
        let access = match self.held_access.take() {
            Some(access) => access,
            None => {
                let access = host.mmio(time)?;
                if let Some(tracer) = ctx.tracer {
                    trace_arrival(tracer, &access, time);
                }
                access
            }
        };
        match self.start_access(access, ctx) {
            Ok(asked) => Some(asked),
            Err((access, again)) => {
                self.held_access = Some(access);
                if let Some(again) = again {
                    ctx.schedule(again.max(ctx.now + 1), Event::Bridge);
                }
                None
            }
        }
    }

    /// Starts an access, or returns it with the edge to try again at, if that is known.
    fn start_access(
        &mut self,
        access: Mmio,
        ctx: &mut SimContext,
    ) -> Result<BridgeRequest, (Mmio, Option<u64>)> {
        let now = ctx.now;
        let lite_busy = (self.lite_free > now).then_some(self.lite_free);
        let window = |bar: Bar, offset: u64, len: u64| match bar {
            Bar::Pm => true,
            Bar::Control => bar4::PAGES.contains(&offset) && offset + len <= bar4::PAGES.end,
            Bar::Nvme => false,
        };
        match access {
            Mmio::Write {
                bar,
                offset,
                ref data,
            } if window(bar, offset, data.len() as u64) => {
                if lite_busy.is_some() {
                    return Err((access, lite_busy));
                }
                let beats = (offset % BEAT + data.len() as u64).div_ceil(BEAT);
                let mut at = self.beats_free.max(now);
                if at - now >= MAX_BEATS {
                    return Err((access, Some(at - MAX_BEATS + 1)));
                }
                let len = data.len() as u64;
                if self.is_full(ctx) {
                    return Err((access, None));
                }
                match self.track_store(bar, offset, len, at, ctx) {
                    // It stays late if it waits for other reasons now.
                    Some(cycles) => at += cycles,
                    None => return Err((access, None)),
                }
                if waits_for_filter(bar, offset, len, ctx) {
                    return Err((access, None));
                }
                // Stores that follow a command wait until the engine with the conflict filter has
                // accepted it.
                let delay = match (bar, ctx.filter.is_some()) {
                    (Bar::Control, true) => COMMAND_ACCEPT,
                    _ => 0,
                };
                self.beats_free = at + beats + delay;
                let Mmio::Write { bar, offset, data } = access else {
                    unreachable!("the access was matched as a write");
                };
                if bar == Bar::Control {
                    return Ok(BridgeRequest::PageStore(offset, data));
                }
                self.start_store(offset, &data, at, ctx);
                Ok(BridgeRequest::None)
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } if window(bar, offset, len.into()) => {
                let closed = ctx
                    .filter
                    .as_deref()
                    .is_some_and(|filter| filter.is_closed());
                let busy = self.has_stores_in_flight() || self.loads.len() >= MAX_LOADS || closed;
                if lite_busy.is_some() || busy {
                    return Err((access, lite_busy));
                }
                if bar == Bar::Control {
                    return Ok(BridgeRequest::PageLoad(offset, len, tag));
                }
                self.start_load(offset, len, tag, ctx);
                Ok(BridgeRequest::None)
            }
            Mmio::Write {
                bar,
                offset,
                ref data,
            } => {
                if lite_busy.is_some() || self.has_stores_in_flight() {
                    return Err((access, lite_busy));
                }
                if !is_within_bar(bar, offset, data.len() as u64) {
                    self.lost_writes += 1;
                    return Ok(BridgeRequest::None);
                }
                if let (0, Ok(word)) = (offset % 4, <[u8; 4]>::try_from(&data[..])) {
                    self.lite_free = now + REGISTER_STEP;
                    let word = RegisterAccess::Word(bar, offset, u32::from_le_bytes(word));
                    return Ok(BridgeRequest::Registers(word));
                }
                let words = words_of(offset, data);
                self.lite_free = now + REGISTER_STEP * words.len() as u64;
                Ok(BridgeRequest::Registers(RegisterAccess::Write(bar, words)))
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } => {
                if lite_busy.is_some() || self.has_stores_in_flight() {
                    return Err((access, lite_busy));
                }
                if !is_within_bar(bar, offset, len.into()) {
                    self.queue_answer(now, tag, None, ctx);
                    return Ok(BridgeRequest::None);
                }
                let (first, skip) = (offset & !3, (offset % 4) as usize);
                let words = (skip as u64 + u64::from(len)).div_ceil(4);
                self.lite_free = now + (REGISTER + REGISTER_STEP) * words;
                Ok(BridgeRequest::Registers(RegisterAccess::Read {
                    bar,
                    first,
                    words,
                    skip,
                    len: len as usize,
                    tag,
                }))
            }
        }
    }
}

/// The access lies within its BAR.
fn is_within_bar(bar: Bar, offset: u64, len: u64) -> bool {
    let size = match bar {
        Bar::Nvme => BAR0_BYTES,
        Bar::Control => BAR4_BYTES,
        Bar::Pm => return false,
    };
    len > 0 && offset.checked_add(len).is_some_and(|end| end <= size)
}

/// The words that a write touches, with the mask of the written bits.
fn words_of(offset: u64, data: &[u8]) -> Vec<(u64, u32, u32)> {
    let first = offset & !3;
    let skip = (offset - first) as usize;
    let count = (skip + data.len()).div_ceil(4);
    let mut words: Vec<(u64, u32, u32)> =
        (0..count as u64).map(|n| (first + 4 * n, 0, 0)).collect();
    for (n, &byte) in data.iter().enumerate() {
        let at = skip + n;
        let shift = 8 * (at % 4);
        words[at / 4].1 |= u32::from(byte) << shift;
        words[at / 4].2 |= 0xFF << shift;
    }
    words
}

fn trace_arrival(tracer: &Tracer, access: &Mmio, now: Time) {
    if let Mmio::Write {
        bar: Bar::Nvme,
        offset,
        data,
    } = access
    {
        if let Ok(word) = <[u8; 4]>::try_from(&data[..]) {
            let (offset, value) = (*offset, u32::from_le_bytes(word));
            tracer.record(now, &TraceEvent::Arrived { offset, value });
        }
    }
}
