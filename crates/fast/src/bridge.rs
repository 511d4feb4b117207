//! What arrives at the BARs, in order: registers, loads and stores of the PM window, command pages.
//!
//! As at the RTL's ports: a write is started only after the writes before it on the other port are done, a read only after all
//! writes before it; reads do not hold up later accesses to the PM window.

use std::collections::VecDeque;

use sim::{Bar, HostPort, LineRange, Mmio, OrderEvent, Time, TraceEvent, Tracer};
use spec::bar4;

use crate::cx::{Cx, Event, TAG_LOAD, TAG_STORE};
use crate::engines::Store as Verdict;
use crate::memory::delay::copying;
use crate::memory::{master, Channel, Returns};
use crate::port::BEAT;
use crate::slab::Slab;

/// Sizes of BAR0 and BAR4.
const BAR0_BYTES: u64 = 64 << 10;
const BAR4_BYTES: u64 = 1 << 20;
/// Write beats that may wait.
const MAX_BEATS: u64 = 64;
/// And such that the device has taken and the memory has not.
const TAKEN_BEATS: u64 = 8;
/// Of these, such as may be left of a store for one channel when the next one goes to another: the last is shown to the channel, and
/// two are in its slice.
const LEFT_BEATS: u32 = 3;
/// From the cycle in which data make room for those behind them, until these are shown to a channel.
const MOVE_UP: u64 = 2;
/// Loads under way.
const MAX_LOADS: usize = 64;
/// Cycles of a register access: until it counts, and until the next one may begin.
const REGISTER: u64 = 4;
const REGISTER_STEP: u64 = 3;
/// From a write that has all times of an `nvm_delay` copied until the next one to a time or a command can be done.
const COPY: u64 = 25;
/// A load or store, to the channel's multiplexer, and its data back.
const LOAD: u64 = 3;
const LOAD_BACK: u64 = 1;
/// Read data that has passed is forgotten after so many cycles: parts that come later began no earlier.
const HISTORY: u64 = 64;
const STORE: u64 = 3;
/// A write into a command page of a device with an access hook, until what is behind it may pass.
const TAKEN: u64 = 6;

/// A load of a command page: until its first line is asked for, and each line.
const PAGE_LOAD: u64 = 6;
const PAGE_LINE: u64 = 2;

/// An access to registers, word by word.
#[derive(Clone, Debug)]
pub(crate) enum Registers {
    /// A word to write: offset, value.
    Word(Bar, u64, u32),
    /// Words to write: offset, value, the bits that are written.
    Write(Bar, Vec<(u64, u32, u32)>),
    /// Words to read, from an offset on; the answer is so many bytes from a place in them.
    Read {
        bar: Bar,
        first: u64,
        words: u64,
        skip: usize,
        len: usize,
        tag: u32,
    },
}

/// What the bridge cannot do by itself.
pub(crate) enum Asked {
    Nothing,
    Registers(Registers),
    /// A store to the command pages: offset in BAR4, bytes.
    Page(u64, Vec<u8>),
    /// A load from them: offset, bytes, tag.
    PageLoad(u64, u32, u32),
}

/// A store whose channel has not seen its address.
struct Store {
    channel: usize,
    addr: u64,
    bytes: u32,
    beats: u64,
    id: u16,
    tag: u64,
    /// When it would get there if nothing were before it.
    at: u64,
}

/// The response to a store.
struct Response {
    /// The channel that it comes from.
    channel: usize,
    come: bool,
}

struct Load {
    tag: u32,
    at: u64,
    len: u32,
    /// Beats that have come.
    beats: u64,
    /// Up to here all is on its way.
    sent: u64,
    failed: bool,
    channel: usize,
}

/// An answer, or a part of it.
struct Answer {
    cycle: u64,
    tag: u32,
    data: Option<Vec<u8>>,
    last: bool,
}

pub(crate) struct Bridge {
    held: Option<Mmio>,
    /// The registers' port is free from this edge on.
    lite_free: u64,
    /// `nvm_delay`s copy their times until then.
    copies: Vec<u64>,
    /// The PM window's port has its next write beat free from this edge on, and its next load.
    beats_free: u64,
    load_free: u64,
    loads: Slab<Load>,
    loading: usize,
    /// The way of read data, a beat a cycle from all channels together.
    way_back: Returns,
    /// Stores that have begun, and of these the first ones whose responses have all come; behind them, which have.
    stored: u64,
    answered: u64,
    responses: VecDeque<Response>,
    /// IDs of stores take turns.
    store_id: u16,
    /// Stores that wait for data of those before them, their beats, and the channel of the last that did not.
    line: VecDeque<Store>,
    line_beats: u64,
    last_channel: usize,
    answers: VecDeque<Answer>,
    /// Bytes of the largest completion.
    chunk: u64,
    pub(crate) lost_writes: u64,
}

impl Bridge {
    pub(crate) fn new(chunk: u32) -> Bridge {
        Bridge {
            held: None,
            lite_free: 0,
            copies: Vec::new(),
            beats_free: 0,
            load_free: 0,
            loads: Slab::new(),
            loading: 0,
            way_back: Returns::default(),
            stored: 0,
            answered: 0,
            responses: VecDeque::new(),
            store_id: 0,
            line: VecDeque::new(),
            line_beats: 0,
            last_channel: 0,
            answers: VecDeque::new(),
            chunk: chunk.into(),
            lost_writes: 0,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.held.is_none() && self.loading == 0 && !self.stores() && self.answers.is_empty()
    }

    /// Stores have begun whose responses have not come.
    fn stores(&self) -> bool {
        self.answered != self.stored
    }

    /// How many stores have begun, and how many of the first ones of these have all been answered.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.stored, self.answered)
    }

    /// It waits for something of its own before it takes a further access.
    pub(crate) fn is_blocked(&self) -> bool {
        self.held.is_some()
    }

    /// An answer is due.
    pub(crate) fn has_answer(&self, now: u64) -> bool {
        let first = self.answers.front();
        first.is_some_and(|answer| answer.cycle <= now)
    }

    /// Sends answers that are due. When to call again, clock edge.
    pub(crate) fn answer(&mut self, now: u64, time: Time, host: &mut dyn HostPort) -> Option<u64> {
        while let Some(answer) = self.answers.front() {
            if answer.cycle > now {
                return Some(answer.cycle);
            }
            if let Some(answer) = self.answers.pop_front() {
                match (answer.last, answer.data) {
                    (true, data) => host.mmio_data(time, answer.tag, data),
                    (false, Some(data)) => host.mmio_part(time, answer.tag, data),
                    (false, None) => {}
                }
            }
        }
        None
    }

    /// Answers a read at an edge.
    pub(crate) fn reply(&mut self, cycle: u64, tag: u32, data: Option<Vec<u8>>, cx: &mut Cx) {
        self.insert(Answer {
            cycle,
            tag,
            data,
            last: true,
        });
        cx.plan(cycle, Event::Bridge);
    }

    /// Answers a load of the command pages, whose lines come one behind the other from an edge on: what leaves before the end does so at
    /// multiples of the largest completion.
    pub(crate) fn reply_lines(&mut self, tag: u32, offset: u64, data: &[u8], cx: &mut Cx) {
        let stop = offset + data.len() as u64;
        let (mut from, first) = (offset, offset / BEAT);
        while from < stop {
            let to = (from - from % self.chunk + self.chunk).min(stop);
            let lines = to.div_ceil(BEAT) - first;
            let cycle = cx.now + PAGE_LOAD + PAGE_LINE * lines;
            self.insert(Answer {
                cycle,
                tag,
                data: Some(data[(from - offset) as usize..(to - offset) as usize].to_vec()),
                last: to == stop,
            });
            cx.calendar.plan(cycle, Event::Bridge);
            from = to;
        }
    }

    /// Answers go in the order of their data.
    fn insert(&mut self, answer: Answer) {
        let behind = self.answers.iter().rposition(|a| a.cycle <= answer.cycle);
        self.answers.insert(behind.map_or(0, |n| n + 1), answer);
    }

    /// A register of a channel's `nvm_delay` is written: what is behind it may have to wait until times have been copied.
    pub(crate) fn delay_written(&mut self, channel: usize, offset: u64, value: u32, now: u64) {
        let (waits, copies) = copying(offset, value);
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

    /// Takes the next access, if it may begin now.
    pub(crate) fn take(&mut self, cx: &mut Cx, host: &mut dyn HostPort) -> Option<Asked> {
        let time = cx.clock.edge(cx.now);
        let access = match self.held.take() {
            Some(access) => access,
            None => {
                let access = host.mmio(time)?;
                if let Some(tracer) = cx.tracer {
                    tell_arrival(tracer, &access, time);
                }
                access
            }
        };
        match self.start(access, cx) {
            Ok(asked) => Some(asked),
            Err((access, again)) => {
                self.held = Some(access);
                if let Some(again) = again {
                    cx.plan(again.max(cx.now + 1), Event::Bridge);
                }
                None
            }
        }
    }

    /// Begins an access, or gives it back with the edge to try again at, if that is known.
    fn start(&mut self, access: Mmio, cx: &mut Cx) -> Result<Asked, (Mmio, Option<u64>)> {
        let now = cx.now;
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
                let at = self.beats_free.max(now);
                if at - now >= MAX_BEATS {
                    return Err((access, Some(at - MAX_BEATS + 1)));
                }
                let len = data.len() as u64;
                if self.is_full(cx) || waits_for_hook(bar, offset, len, cx) {
                    return Err((access, None));
                }
                // The stores behind a command wait until the engine at the hook has taken it.
                let taken = match (bar, cx.hook.is_some()) {
                    (Bar::Control, true) => TAKEN,
                    _ => 0,
                };
                self.beats_free = at + beats + taken;
                let Mmio::Write { bar, offset, data } = access else {
                    return Ok(Asked::Nothing);
                };
                if bar == Bar::Control {
                    return Ok(Asked::Page(offset, data));
                }
                self.store(offset, &data, at, cx);
                Ok(Asked::Nothing)
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } if window(bar, offset, len.into()) => {
                let closed = cx.hook.as_deref().is_some_and(|hook| hook.is_closed());
                let busy = self.stores() || self.loading >= MAX_LOADS || closed;
                if lite_busy.is_some() || busy {
                    return Err((access, lite_busy));
                }
                if bar == Bar::Control {
                    return Ok(Asked::PageLoad(offset, len, tag));
                }
                self.load(offset, len, tag, cx);
                Ok(Asked::Nothing)
            }
            Mmio::Write {
                bar,
                offset,
                ref data,
            } => {
                if lite_busy.is_some() || self.stores() {
                    return Err((access, lite_busy));
                }
                if !within(bar, offset, data.len() as u64) {
                    self.lost_writes += 1;
                    return Ok(Asked::Nothing);
                }
                if let (0, Ok(word)) = (offset % 4, <[u8; 4]>::try_from(&data[..])) {
                    self.lite_free = now + REGISTER_STEP;
                    let word = Registers::Word(bar, offset, u32::from_le_bytes(word));
                    return Ok(Asked::Registers(word));
                }
                let words = words_of(offset, data);
                self.lite_free = now + REGISTER_STEP * words.len() as u64;
                Ok(Asked::Registers(Registers::Write(bar, words)))
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } => {
                if lite_busy.is_some() || self.stores() {
                    return Err((access, lite_busy));
                }
                if !within(bar, offset, len.into()) {
                    self.reply(now, tag, None, cx);
                    return Ok(Asked::Nothing);
                }
                let (first, skip) = (offset & !3, (offset % 4) as usize);
                let words = (skip as u64 + u64::from(len)).div_ceil(4);
                self.lite_free = now + (REGISTER + REGISTER_STEP) * words;
                Ok(Asked::Registers(Registers::Read {
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

    /// A memory that is slower than the link stops what comes over it, until data have passed: [`Bridge::passed`].
    fn is_full(&self, cx: &Cx) -> bool {
        let held = |channel: &Channel| u64::from(channel.held(master::PM));
        let all: u64 = cx.memory.channels.iter().map(held).sum();
        all + self.line_beats >= MAX_BEATS + TAKEN_BEATS
    }

    /// Data may have passed to the memory: what has waited for that goes on.
    #[inline]
    pub(crate) fn passed(&mut self, cx: &mut Cx) {
        if !self.line.is_empty() {
            self.move_up(cx);
        }
        if self.held.is_some() && self.stores() {
            cx.after(1, Event::Bridge);
        }
    }

    /// Data have one way to all channels, in order: a store goes to another channel than the one before it only behind its data.
    fn move_up(&mut self, cx: &mut Cx) {
        while let Some(store) = self.line.front() {
            let channel = store.channel;
            let before = &cx.memory.channels[self.last_channel];
            if channel != self.last_channel && before.held(master::PM) > LEFT_BEATS {
                return;
            }
            if self.same_id(channel) {
                return;
            }
            let Some(store) = self.line.pop_front() else {
                return;
            };
            self.line_beats -= store.beats;
            self.last_channel = channel;
            let at = store.at.max(cx.now + MOVE_UP);
            let Store {
                id,
                addr,
                bytes,
                tag,
                ..
            } = store;
            cx.memory.channels[channel].write(at, master::PM, id, addr, bytes, tag);
            cx.channel_changed(channel);
        }
    }

    /// The store before the first in the line that has its ID is under way to another channel: their responses keep their order.
    fn same_id(&self, channel: usize) -> bool {
        let number = self.line.front().map_or(0, |store| store.tag as u32);
        let place = number.wrapping_sub(self.answered as u32) as usize;
        let before = place.checked_sub(MAX_LOADS);
        let response = before.and_then(|place| self.responses.get(place));
        response.is_some_and(|response| !response.come && response.channel != channel)
    }

    fn load(&mut self, offset: u64, len: u32, tag: u32, cx: &mut Cx) {
        let place = cx.memory.place(offset);
        let Some(place) = place.filter(|_| !is_barred(offset, len.into(), cx)) else {
            let cycle = cx.now + LOAD + LOAD_BACK;
            self.reply(cycle, tag, None, cx);
            return;
        };
        let load = self.loads.insert(Load {
            tag,
            at: offset,
            len,
            beats: 0,
            sent: offset,
            failed: false,
            channel: place.channel,
        });
        self.loading += 1;
        tell(place.channel, cx, |channel| OrderEvent::LoadArrived {
            channel,
            id: load,
            lines: LineRange::of(offset, len.into()),
        });
        let hook = cx.hook.as_deref_mut();
        if hook.is_none_or(|hook| hook.load(place.channel, offset, len.into(), load)) {
            self.go_on(load, cx);
        }
    }

    /// A load that nothing is in the way of goes to its channel.
    pub(crate) fn go_on(&mut self, load: u32, cx: &mut Cx) {
        let Some(Load {
            at: offset, len, ..
        }) = self.loads.get(load)
        else {
            return;
        };
        let (offset, len) = (*offset, *len);
        let Some(place) = cx.memory.place(offset) else {
            return;
        };
        tell(place.channel, cx, |channel| OrderEvent::LoadIssued {
            channel,
            id: load,
        });
        let at = self.load_free.max(cx.now);
        self.load_free = at + 1;
        let skip = offset % BEAT;
        let bytes = (skip + u64::from(len)).next_multiple_of(BEAT) as u32;
        let (tag, addr) = (TAG_LOAD | u64::from(load), place.addr - skip);
        cx.memory.channels[place.channel].read(
            at + LOAD,
            master::PM,
            load as u16,
            addr,
            bytes,
            tag,
        );
        cx.channel_changed(place.channel);
    }

    /// A part of the data of a load, so many beats, has left its channel; the last part, or not.
    pub(crate) fn loaded(
        &mut self,
        number: u32,
        channel: usize,
        (cycle, beats, end): (u64, u32, bool),
        cx: &mut Cx,
    ) {
        let Some(load) = self.loads.get_mut(number) else {
            return;
        };
        let first = (cycle + 1).saturating_sub(beats.into());
        self.way_back.forget(first.saturating_sub(HISTORY));
        let gone = self.way_back.take(first, cycle, beats);
        if gone > cycle {
            // What stands behind them in their channel waits, whosever it is.
            cx.memory.channels[channel].hold_reads(gone + 1);
        }
        let cycle = gone + LOAD_BACK;
        let stop = load.at + u64::from(load.len);
        let start = load.at & !(BEAT - 1);
        load.beats += u64::from(beats);
        let here = match end {
            true => stop,
            false => (start + load.beats * BEAT).min(stop),
        };
        // What leaves before the end does so at multiples of the largest completion.
        let to = match end {
            true => stop,
            false => here - here % self.chunk,
        };
        let from = load.sent;
        if to <= from && !end {
            return;
        }
        load.sent = to;
        let tag = load.tag;
        let mut data = vec![0; (to - from) as usize];
        let fine = cx.memory.read(from, &mut data);
        load.failed |= !fine;
        let failed = load.failed;
        if end {
            tell(load.channel, cx, |channel| OrderEvent::LoadServed {
                channel,
                id: number,
            });
            self.loads.remove(number);
            self.loading -= 1;
            cx.after(1, Event::Bridge);
        }
        if failed {
            if end {
                self.reply(cycle, tag, None, cx);
            }
            return;
        }
        // A channel tells of several beats at once, which may be more than a completion holds.
        let mut at = from;
        loop {
            let next = (at - at % self.chunk + self.chunk).min(to);
            self.insert(Answer {
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
        cx.plan(cycle, Event::Bridge);
    }

    /// A store: its bytes are there as soon as it stands before the channel, since those to one place stay in order whatever their
    /// responses do, and since what stands there ends, also without the host.
    fn store(&mut self, offset: u64, data: &[u8], at: u64, cx: &mut Cx) {
        let bytes = data.len() as u32;
        let place = cx.memory.place(offset);
        let Some(place) = place.filter(|_| !is_barred(offset, bytes.into(), cx)) else {
            self.lost_writes += 1;
            return;
        };
        let beats = (offset % BEAT + u64::from(bytes)).div_ceil(BEAT);
        let tag = TAG_STORE | u64::from(self.stored as u32);
        self.stored += 1;
        self.responses.push_back(Response {
            channel: place.channel,
            come: false,
        });
        let id = self.store_id;
        self.store_id = (id + 1) % MAX_LOADS as u16;
        let number = tag as u32;
        tell(place.channel, cx, |channel| OrderEvent::StoreArrived {
            channel,
            lines: LineRange::of(offset, bytes.into()),
        });
        if let Some(hook) = cx.hook.as_deref_mut() {
            let queued = hook.store(place.channel, offset, bytes.into()) == Verdict::Queues;
            if queued {
                let there = at + STORE + beats;
                hook.queue(place.channel, offset, data, there, number);
                cx.plan(there, Event::Hook);
            }
            tell(place.channel, cx, |channel| OrderEvent::StoreIssued {
                channel,
                number,
                queued,
            });
            if queued {
                return;
            }
        }
        tell(place.channel, cx, |channel| {
            OrderEvent::StoreReachedMemory { channel, number }
        });
        self.lost_writes += u64::from(!cx.memory.write(offset, data));
        self.line_beats += beats;
        self.line.push_back(Store {
            channel: place.channel,
            addr: place.addr,
            bytes,
            beats,
            id,
            tag,
            at: at + STORE,
        });
        self.move_up(cx);
    }

    /// The response to a store.
    pub(crate) fn stored(&mut self, number: u32, cx: &mut Cx) {
        let place = number.wrapping_sub(self.answered as u32) as usize;
        if let Some(response) = self.responses.get_mut(place) {
            response.come = true;
            tell(response.channel, cx, |channel| OrderEvent::StorePersisted {
                channel,
                number,
            });
        }
        while self.responses.front().is_some_and(|first| first.come) {
            self.responses.pop_front();
            self.answered += 1;
        }
        cx.after(1, Event::Bridge);
    }
}

/// Tells of the order at the access hook, which has the channels of the storage alone.
#[inline]
fn tell(channel: usize, cx: &Cx, event: impl FnOnce(u8) -> OrderEvent) {
    if cx.order.is_some() && cx.hook.as_deref().is_some_and(|h| channel < h.channels()) {
        cx.order(|| event(channel as u8));
    }
}

/// A store has to wait in front of the access hook.
fn waits_for_hook(bar: Bar, offset: u64, len: u64, cx: &Cx) -> bool {
    let Some(hook) = cx.hook.as_deref() else {
        return false;
    };
    match (bar, cx.memory.place(offset)) {
        (Bar::Pm, Some(place)) => hook.store(place.channel, offset, len) == Verdict::Waits,
        _ => hook.is_closed(),
    }
}

/// The access is to what an engine has reserved.
fn is_barred(offset: u64, len: u64, cx: &Cx) -> bool {
    let hook = cx.hook.as_deref();
    hook.is_some_and(|hook| hook.bars(offset, len))
}

/// The access lies within its BAR.
fn within(bar: Bar, offset: u64, len: u64) -> bool {
    let size = match bar {
        Bar::Nvme => BAR0_BYTES,
        Bar::Control => BAR4_BYTES,
        Bar::Pm => return false,
    };
    len > 0 && offset.checked_add(len).is_some_and(|end| end <= size)
}

/// Words that a write touches, with the bits that it writes.
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

fn tell_arrival(tracer: &Tracer, access: &Mmio, now: Time) {
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
