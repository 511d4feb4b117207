//! One memory channel, as `nearside_channel` builds it: masters, credits, multiplexer, `nvm_delay`, turns of reads, memory.
//!
//! A burst is granted, gets a slot and a target, is asked of the memory in pieces of 8 lines, and leaves piece by piece. Each piece is
//! one entry in a queue of what becomes due; what it waits for before that (a slot, room in the read buffer, its turn at the
//! memory) is known in cycles when it is decided. Data is not the channel's: whoever calls moves it when an event comes.

mod arbiter;
mod mux;
mod queue;
mod returns;
mod slots;

use std::collections::VecDeque;

use design::media::Sizes;
use sim::memctrl::{MemoryModel, MAX_WRITES};
use sim::Clock;
use spec::regs::nvm_delay;

use self::arbiter::{Grant, URGENT};
use self::mux::{Limit, Mux, Request, CONTROLLER};
use self::queue::{Due, DueQueue};
pub(crate) use self::returns::Returns;
use self::slots::{Slot, Slots};
use super::delay::{Cap, Delay, LEAST, READ, WRITE};
use super::edges::Edges;
use super::timing::Timing;
use crate::qos::{Credits, Qos};

/// Masters of a channel: the PM window, the NVMe controller, engines.
pub const MASTERS: usize = 8;
/// Lines of a piece: reads are cut into these, and their answers come in these.
pub const PIECE: u32 = 8;
/// Lines of a burst at most.
const MOST_LINES: u64 = 64;
/// Cycles that a burst is asked of the memory ahead of time, when nothing is before it.
const AHEAD: u64 = 8;

/// The stages around the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Cycles of the multiplexer, each way.
    pub mux: u64,
    /// Cycles of `ns_axi_read_turns`, for read addresses.
    pub turns: u64,
    /// Bursts that wait in it.
    pub bursts: usize,
    /// Lines that it asks of the memory at a time for others than the urgent master.
    pub lines: usize,
    /// Reads stay whole: no other goes between the pieces of one.
    pub whole: bool,
    /// Cycles of the register slice before the memory, for addresses and write data.
    pub slice: u64,
    /// Write addresses that have been taken and whose data has not passed.
    pub writes: usize,
}

impl Stages {
    /// Those of the device.
    pub const DEVICE: Stages = Stages {
        mux: 1,
        turns: 2,
        bursts: 16,
        lines: 32,
        whole: false,
        slice: 1,
        writes: MAX_WRITES + 4,
    };
    /// Those of the engines' local memory.
    pub const LOCAL: Stages = Stages {
        lines: 128,
        whole: true,
        ..Stages::DEVICE
    };
    /// None: the emulator alone between its master and the memory.
    pub const BARE: Stages = Stages {
        mux: 0,
        turns: 0,
        bursts: usize::MAX,
        lines: usize::MAX,
        whole: false,
        slice: 0,
        writes: MAX_WRITES + 2,
    };
}

/// What a channel is made of.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// Masters, up to [`MASTERS`].
    pub masters: usize,
    /// Sizes of the emulator.
    pub sizes: Sizes,
    /// The clock of the device.
    pub clock: Clock,
    /// What is behind it.
    pub memory: MemoryModel,
    /// See [`Stages`].
    pub stages: Stages,
}

/// Something that a master gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of read data.
    Read {
        /// That of the read.
        tag: u64,
        /// The cycle of its last beat.
        cycle: u64,
        /// Its beats: up to [`PIECE`], counted from the start of the burst.
        beats: u32,
        /// It ends the burst.
        end: bool,
    },
    /// The response to a write.
    Write {
        /// That of the write.
        tag: u64,
        /// When.
        cycle: u64,
    },
}

/// Beats of a read that have been given their cycles on the way out.
struct Booked {
    slot: u16,
    /// The first cycle that would do if the way were free, and how many they are.
    from: u64,
    beats: u32,
    /// The cap before them.
    cap: Cap,
}

/// One channel. Calls come in the order of cycles.
pub struct Channel {
    config: ChannelConfig,
    edges: Edges,
    delay: Delay,
    mux: [Mux; 2],
    weights: [i32; MASTERS],
    reads: Slots,
    writes: Slots,
    /// Reads that have been accepted and wait for room in the buffer.
    issue: VecDeque<u16>,
    /// Beats of room in it.
    room: u32,
    /// Reads that take turns at the memory, urgent ones apart, with the cycle from which on they may go.
    rows: [VecDeque<(u16, u64)>; 2],
    /// When the next piece can be asked of the memory.
    read_due: u64,
    next_piece: u64,
    returns: Returns,
    /// Writes whose data is still to go.
    data: VecDeque<u16>,
    write_due: u64,
    next_data: u64,
    /// Data pass without regard to the cap.
    flushing: bool,
    /// The next cycle of each way out.
    out: [u64; 2],
    /// Pieces of reads that have their cycles and have not left, in this order.
    booked: VecDeque<Booked>,
    due: DueQueue,
    timing: Timing,
}

impl Channel {
    /// A channel at rest.
    pub fn new(config: ChannelConfig) -> Channel {
        let edges = Edges::new(config.clock);
        let masters = config.masters.clamp(1, MASTERS);
        let sizes = config.sizes;
        let mut channel = Channel {
            edges,
            delay: Delay::new(sizes),
            mux: [Mux::new(), Mux::new()],
            weights: [1; MASTERS],
            reads: Slots::new(sizes.read_slots, masters),
            writes: Slots::new(sizes.write_slots, masters),
            issue: VecDeque::with_capacity(sizes.read_slots as usize),
            room: sizes.buffer_beats.saturating_sub(sizes.read_slots),
            rows: [VecDeque::with_capacity(64), VecDeque::with_capacity(64)],
            read_due: u64::MAX,
            next_piece: 0,
            returns: Returns::default(),
            data: VecDeque::with_capacity(64),
            write_due: u64::MAX,
            next_data: 0,
            flushing: false,
            out: [0; 2],
            booked: VecDeque::new(),
            due: DueQueue::default(),
            timing: Timing::new(&config.memory, edges.time(1)),
            config,
        };
        let qos = Qos::new();
        (0..MASTERS).for_each(|master| channel.set_credits(0, master, qos.credits(master)));
        channel
    }

    /// What a master may have outstanding from now on, and its share.
    pub fn set_credits(&mut self, cycle: u64, master: usize, credits: Credits) {
        if master < MASTERS {
            self.mux[READ].limits[master] = Limit::new(master, credits.reads, credits.beside);
            self.mux[WRITE].limits[master] = Limit::new(master, credits.writes, credits.beside);
            self.weights[master] = credits.weight.clamp(1, 255) as i32;
            self.grant(READ, cycle);
            self.grant(WRITE, cycle);
        }
    }

    /// Reads a register of the emulator.
    pub fn register(&self, offset: u64) -> u32 {
        self.delay
            .read(offset, [self.reads.used(), self.writes.used()])
    }

    /// Writes bytes of a register of the emulator, those with a bit in `strobe`.
    pub fn set_register(&mut self, cycle: u64, offset: u64, value: u32, strobe: u8) {
        let early = !self.booked.is_empty() && offset & 0xFFC == nvm_delay::COMMAND;
        if early {
            self.unbook(cycle);
        }
        self.delay.write(cycle, offset, value, strobe);
        if early {
            self.book_again();
        }
        if self.write_due != u64::MAX {
            self.plan_data();
        }
    }

    /// Takes back the cycles of beats that have not left by `cycle`: the cap is about to change.
    fn unbook(&mut self, cycle: u64) {
        self.due.remove_placed_reads();
        let mut left = false;
        for booked in &mut self.booked {
            if left {
                continue;
            }
            let mut cap = booked.cap.clone();
            while booked.beats > 0 {
                let before = cap.clone();
                let (at, _) = cap.take(booked.from, 1);
                if at > cycle {
                    cap = before;
                    left = true;
                    break;
                }
                booked.beats -= 1;
                booked.from = at + 1;
            }
            self.delay.caps[READ] = cap;
        }
        let next = self.booked.iter_mut().filter(|booked| booked.beats > 0);
        next.for_each(|booked| booked.from = booked.from.max(cycle + 1));
    }

    /// Gives them new ones.
    fn book_again(&mut self) {
        let mut out = 0;
        for booked in &mut self.booked {
            let from = booked.from.max(out);
            booked.cap = self.delay.caps[READ].clone();
            let last = match booked.beats {
                0 => booked.from - 1,
                beats => self.delay.caps[READ].take(from, beats).1,
            };
            out = last + 1;
            self.due.push(Due {
                cycle: last,
                write: false,
                slot: booked.slot,
                placed: true,
            });
        }
        self.out[READ] = out;
    }

    /// The emulator's state.
    pub fn delay(&self) -> &Delay {
        &self.delay
    }

    /// Lets write data pass without regard to the cap, or not any more.
    pub fn flush(&mut self, cycle: u64, on: bool) {
        self.flushing = on;
        self.next_data = self.next_data.max(cycle);
        self.plan_data();
    }

    /// A reset of the function: all that is under way is forgotten, and all settings and counters are as after power-on. The memory
    /// stays as it is.
    pub fn reset(&mut self) {
        let timing = std::mem::replace(
            &mut self.timing,
            Timing::new(&MemoryModel::Fixed(sim::Time::ZERO), sim::Time(1)),
        );
        let ends = [self.next_piece, self.next_data];
        let mut fresh = Channel::new(self.config.clone());
        fresh.timing = timing;
        [fresh.next_piece, fresh.next_data] = ends;
        *self = fresh;
    }

    /// Nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.reads.used() + self.writes.used() + self.mux[READ].count + self.mux[WRITE].count == 0
    }

    /// Beats of a master's writes that wait for the memory.
    #[inline]
    pub fn held(&self, master: usize) -> u32 {
        self.mux[WRITE].held.get(master).copied().unwrap_or(0)
    }

    /// No read data leave before a cycle: those that have are not taken.
    #[inline]
    pub fn hold_reads(&mut self, cycle: u64) {
        self.out[READ] = self.out[READ].max(cycle);
    }

    /// A read of `bytes` from `addr` on arrives at the multiplexer in `cycle`.
    #[inline]
    pub fn read(&mut self, cycle: u64, master: usize, id: u16, addr: u64, bytes: u32, tag: u64) {
        self.arrive(READ, cycle, master, id, addr, bytes, tag);
    }

    /// A write of `bytes` from `addr` on arrives at the multiplexer in `cycle`; its data follows without a pause.
    #[inline]
    pub fn write(&mut self, cycle: u64, master: usize, id: u16, addr: u64, bytes: u32, tag: u64) {
        self.arrive(WRITE, cycle, master, id, addr, bytes, tag);
    }

    #[inline]
    #[allow(clippy::too_many_arguments)] // the fields of a burst
    fn arrive(
        &mut self,
        direction: usize,
        cycle: u64,
        master: usize,
        id: u16,
        addr: u64,
        bytes: u32,
        tag: u64,
    ) {
        let master = master.min(self.config.masters.clamp(1, MASTERS) - 1);
        let lines = (addr % 64 + u64::from(bytes)).div_ceil(64);
        let request = Request {
            tag,
            addr,
            arrived: cycle,
            id,
            beats: lines.clamp(1, MOST_LINES) as u16,
        };
        let mux = &mut self.mux[direction];
        if direction == WRITE {
            mux.held[master] += u32::from(request.beats);
        }
        mux.waiting[master].push_back(request);
        mux.count += 1;
        mux.masters |= 1 << master;
        self.grant(direction, cycle);
    }

    /// The cycle of the next event, or of something that leads to one.
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        let next = self
            .due
            .next()
            .min(self.ask_at())
            .min(self.write_due)
            .min(self.mux[READ].due)
            .min(self.mux[WRITE].due);
        (next != u64::MAX).then_some(next)
    }

    /// Lets time pass to `cycle`, and appends the events until then.
    #[inline]
    pub fn advance(&mut self, cycle: u64, events: &mut Vec<Event>) {
        loop {
            let read = self.ask_at();
            let (write, due) = (self.write_due, self.due.next());
            let grant = self.mux[READ].due.min(self.mux[WRITE].due);
            let first = read.min(write).min(due).min(grant);
            if first > cycle || first == u64::MAX {
                return;
            }
            if due == first {
                self.leave(events);
            } else if grant == first {
                self.grant(READ, grant);
                self.grant(WRITE, grant);
            } else if read == first {
                self.ask();
            } else {
                self.send_data();
            }
        }
    }

    /// Lets masters pass the multiplexer, as many as can by `now`.
    #[inline]
    fn grant(&mut self, direction: usize, now: u64) {
        let beside = self.mux.iter().any(|mux| mux.open[CONTROLLER] != 0);
        self.mux[direction].due = u64::MAX;
        while self.mux[direction].count > 0 {
            let free = match direction {
                READ => self.reads.any_free(),
                _ => self.writes.any_free() && self.data.len() < self.config.stages.writes,
            };
            if !free {
                return;
            }
            let mux = &mut self.mux[direction];
            let mut requests = 0;
            let mut masters = mux.masters;
            while masters != 0 {
                let master = masters.trailing_zeros() as usize;
                masters &= masters - 1;
                let first = mux.waiting[master].front();
                if first.is_some_and(|r| mux.may(master, r.beats, beside)) {
                    requests |= 1 << master;
                }
            }
            if requests == 0 {
                return;
            }
            if mux.next > now {
                mux.due = mux.next;
                return;
            }
            let cycle = now;
            mux.next = cycle + 1;
            let Grant::Master(master) = mux.arbiter.grant(requests, &self.weights) else {
                continue;
            };
            let Some(request) = mux.waiting[master].pop_front() else {
                return;
            };
            mux.count -= 1;
            if mux.waiting[master].is_empty() {
                mux.masters &= !(1 << master);
            }
            mux.arbiter.granted(master, request.beats.into());
            mux.open[master] += u32::from(request.beats);
            self.accept(direction, cycle.max(request.arrived), master, request);
        }
    }

    /// The emulator takes a burst that has been granted in `cycle`.
    #[inline]
    fn accept(&mut self, direction: usize, cycle: u64, master: usize, request: Request) {
        let received = cycle + self.config.stages.mux;
        let slot = Slot {
            tag: request.tag,
            addr: request.addr,
            received,
            target: self.delay.target(direction, request.addr),
            beats: request.beats,
            master: master as u8,
            ..Slot::default()
        };
        if direction == READ {
            if let Some(number) = self.reads.put(slot, request.id) {
                self.issue.push_back(number);
                self.take_turns(received + 1);
            }
        } else if let Some(number) = self.writes.put(slot, request.id) {
            self.data.push_back(number);
            if self.data.len() == 1 {
                self.plan_data();
            }
        }
    }

    /// Moves reads to the rows of those that take turns, as many as have room in the buffer and there.
    #[inline]
    fn take_turns(&mut self, cycle: u64) {
        let stages = self.config.stages;
        while let Some(&number) = self.issue.front() {
            let slot = &self.reads.all[usize::from(number)];
            let beats = u32::from(slot.beats) - 1;
            if beats > self.room || self.rows[0].len() + self.rows[1].len() >= stages.bursts {
                break;
            }
            self.room -= beats;
            self.issue.pop_front();
            let urgent = usize::from(usize::from(slot.master) == URGENT);
            self.rows[urgent].push_back((number, cycle.max(slot.received + 1) + stages.turns));
        }
        self.plan_reads();
        while self.read_due <= cycle + AHEAD {
            self.ask();
        }
    }

    /// Finds when the next piece can be asked of the memory.
    #[inline]
    fn plan_reads(&mut self) {
        let urgent = self.rows[1].front().map_or(u64::MAX, |&(_, ready)| ready);
        let normal = match self.rows[0].front() {
            None => u64::MAX,
            Some(&(number, ready)) => {
                let slot = &self.reads.all[usize::from(number)];
                let lines = PIECE.min(u32::from(slot.beats - slot.asked)) as usize;
                let allowed = self.config.stages.lines.saturating_sub(lines);
                // All but so many have to have come, the cycle before.
                match self.returns.len().checked_sub(allowed + 1) {
                    None => ready,
                    Some(n) => self.returns.nth(n).map_or(ready, |c| ready.max(c + 1)),
                }
            }
        };
        let first = urgent.min(normal);
        self.read_due = if first == u64::MAX {
            first
        } else {
            first.max(self.next_piece)
        };
    }

    /// When it is, as far ahead as may be.
    #[inline]
    fn ask_at(&self) -> u64 {
        match self.read_due {
            u64::MAX => u64::MAX,
            due => due.saturating_sub(AHEAD),
        }
    }

    /// Asks the memory for a piece.
    #[inline]
    fn ask(&mut self) {
        let stages = self.config.stages;
        let cycle = self.read_due;
        let urgent = self.rows[1].front().is_some_and(|&(_, r)| r <= cycle);
        let row = usize::from(urgent);
        let Some((number, ready)) = self.rows[row].pop_front() else {
            self.read_due = u64::MAX;
            return;
        };
        let slot = &mut self.reads.all[usize::from(number)];
        let lines = PIECE.min(u32::from(slot.beats - slot.asked));
        let addr = slot.addr.wrapping_add(u64::from(slot.asked) * 64);
        let from = self.edges.time(cycle + stages.slice + 1);
        let answered = self.timing.read(from, addr, lines);
        let last = self.edges.after(answered.last);
        let first = match lines {
            1 => last,
            _ => self.edges.after(answered.first),
        };
        self.returns.forget(cycle.saturating_sub(1));
        let came = self.returns.take(first, last, lines);
        slot.asked += lines as u16;
        let end = slot.asked == slot.beats;
        let mut out = came + 1;
        if !slot.target.off {
            // A beat a cycle, none before its deadline.
            let first = slot
                .target
                .cycles(u32::from(slot.asked) - lines + 1)
                .max(LEAST);
            let target = slot.target.cycles(slot.asked.into());
            let deadline = slot.received + target.max(first + u64::from(lines) - 1);
            let passes = slot.beats == 1 || slot.target.together();
            // What arrives in the cycle before the last that would do is stored, and comes a cycle late.
            out = match came + 2 {
                c if c < deadline => deadline,
                c if c == deadline => deadline + 1,
                _ if passes => deadline.max(came + 1),
                _ => deadline.max(came + 3),
            };
        }
        out = out.max(slot.ready);
        slot.ready = out;
        self.due.push(Due {
            cycle: out + stages.mux,
            write: false,
            slot: number,
            placed: false,
        });
        // An address goes a cycle. Without turns they wait before the controller instead, which comes to the same: there is nobody
        // who would overtake them.
        self.next_piece = match stages.lines {
            usize::MAX => (self.edges.after(answered.taken) - stages.slice).max(cycle + 1),
            _ => cycle + 1,
        };
        if !end && stages.whole {
            self.rows[row].push_front((number, ready.max(cycle + 1)));
        } else if !end {
            self.rows[row].push_back((number, ready.max(cycle + 2)));
        } else if !self.issue.is_empty() {
            self.take_turns(cycle + 1);
            return;
        }
        self.plan_reads();
    }

    /// Finds when the next write data can go to the memory.
    #[inline]
    fn plan_data(&mut self) {
        self.write_due = match self.data.front() {
            None => u64::MAX,
            Some(&number) => {
                let slot = &self.writes.all[usize::from(number)];
                (slot.received + 2 + self.config.stages.slice).max(self.next_data)
            }
        };
    }

    /// Sends a piece of write data to the memory.
    fn send_data(&mut self) {
        let Some(&number) = self.data.front() else {
            self.write_due = u64::MAX;
            return;
        };
        let slot = &mut self.writes.all[usize::from(number)];
        let mut lines = PIECE.min(u32::from(slot.beats - slot.asked));
        let addr = slot.addr.wrapping_add(u64::from(slot.asked) * 64);
        let from = self.write_due;
        let mut passed = 0;
        let cap = &mut self.delay.caps[WRITE];
        if !cap.is_off() && !self.flushing {
            let open = cap.open(from);
            if open > from {
                self.write_due = open;
                return;
            }
            lines = cap.within(lines);
            passed = cap.take(from, lines).1;
        }
        let buffered = self.timing.write(self.edges.time(from), addr, lines);
        let taken = self.edges.after(buffered.taken);
        let held = passed.saturating_sub(taken);
        slot.asked += lines as u16;
        self.mux[WRITE].held[usize::from(slot.master)] -= lines;
        self.next_data = taken + held + 1;
        self.delay.counters[WRITE].beats += u64::from(lines);
        if slot.asked == slot.beats {
            let came = self.edges.after(buffered.safe) + held;
            let mut out = came + 1;
            if !slot.target.off {
                let target = slot.target.cycles(slot.beats.into()).max(LEAST);
                out = out.max(slot.received + target);
            }
            slot.ready = out;
            self.due.push(Due {
                cycle: out + self.config.stages.mux,
                write: true,
                slot: number,
                placed: false,
            });
            self.data.pop_front();
            if self.mux[WRITE].count > 0 {
                self.grant(WRITE, self.next_data);
            }
        }
        self.plan_data();
    }

    /// Lets go what is due first.
    #[inline]
    fn leave(&mut self, events: &mut Vec<Event>) {
        let Some(due) = self.due.pop() else { return };
        match due.write {
            true => self.leave_write(due, events),
            false => self.leave_read(due, events),
        }
    }

    #[inline]
    fn leave_read(&mut self, due: Due, events: &mut Vec<Event>) {
        let slot = &mut self.reads.all[usize::from(due.slot)];
        if !slot.head {
            slot.parked += 1;
            return;
        }
        if !due.placed {
            let beats = PIECE.min(u32::from(slot.beats - slot.placed));
            // Its beats but the last one have gone in the cycles before, each when it was due, if the way was free.
            let sent = u32::from(slot.placed);
            slot.placed += beats as u16;
            let target = slot.target.cycles(sent + beats);
            let span = match due.cycle - self.config.stages.mux == slot.received + target {
                true => target - slot.target.cycles(sent + 1),
                false => 0,
            };
            let before = span.max(u64::from(beats) - 1);
            let wanted = due.cycle.saturating_sub(before);
            let from = wanted.max(self.out[READ]);
            let cap = self.delay.caps[READ].clone();
            let (_, last) = self.delay.caps[READ].take(from, beats);
            // While a read is put into the calendar no other beat can be.
            let lost = sent == 0 && slot.beats > 1 && !slot.target.together();
            self.out[READ] = last + 1 + u64::from(lost);
            if last > due.cycle {
                let slot = due.slot;
                self.booked.push_back(Booked {
                    slot,
                    from: wanted,
                    beats,
                    cap,
                });
                self.due.push(Due {
                    cycle: last,
                    placed: true,
                    ..due
                });
                return;
            }
        } else {
            self.booked.pop_front();
        }
        let beats = PIECE.min(u32::from(slot.beats - slot.sent));
        let first = slot.sent == 0;
        slot.sent += beats as u16;
        let end = slot.sent == slot.beats;
        events.push(Event::Read {
            tag: slot.tag,
            cycle: due.cycle,
            beats,
            end,
        });
        self.room += beats - u32::from(first);
        let master = usize::from(slot.master);
        self.mux[READ].open[master] -= beats;
        let counters = &mut self.delay.counters[READ];
        counters.beats += u64::from(beats);
        if end {
            let latency = due.cycle - self.config.stages.mux - slot.received;
            let late = !slot.target.off && latency > slot.target.cycles(slot.beats.into());
            counters.count(latency, late);
            if let Some(next) = self.reads.end(due.slot) {
                self.unpark(false, next, due.cycle);
            }
        }
        if !self.issue.is_empty() {
            self.take_turns(due.cycle);
        }
        self.grant_after(READ, master, due.cycle + 1);
    }

    #[inline]
    fn leave_write(&mut self, due: Due, events: &mut Vec<Event>) {
        let slot = &mut self.writes.all[usize::from(due.slot)];
        if !slot.head {
            slot.parked += 1;
            return;
        }
        if !due.placed {
            let cycle = due.cycle.max(self.out[WRITE]);
            self.out[WRITE] = cycle + 1;
            if cycle > due.cycle {
                self.due.push(Due {
                    cycle,
                    placed: true,
                    ..due
                });
                return;
            }
        }
        events.push(Event::Write {
            tag: slot.tag,
            cycle: due.cycle,
        });
        let master = usize::from(slot.master);
        self.mux[WRITE].open[master] -= u32::from(slot.beats);
        let latency = due.cycle - self.config.stages.mux - slot.received;
        let late = !slot.target.off && latency > slot.target.cycles(slot.beats.into());
        self.delay.counters[WRITE].count(latency, late);
        if let Some(next) = self.writes.end(due.slot) {
            self.unpark(true, next, due.cycle);
        }
        self.grant_after(WRITE, master, due.cycle + 1);
    }

    /// A master has fewer beats outstanding in a direction: who waits for that may go.
    #[inline]
    fn grant_after(&mut self, direction: usize, master: usize, cycle: u64) {
        if self.mux[direction].count > 0 {
            self.grant(direction, cycle);
        }
        // When the controller has nothing outstanding any more the others' limits are higher, both ways.
        if master == CONTROLLER && self.mux[1 - direction].count > 0 {
            self.grant(1 - direction, cycle);
        }
    }

    /// A transaction has become the oldest of its ID: what has waited for that goes.
    #[inline]
    fn unpark(&mut self, write: bool, number: u16, cycle: u64) {
        let slots = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let slot = &mut slots.all[usize::from(number)];
        for _ in 0..std::mem::take(&mut slot.parked) {
            self.due.push(Due {
                cycle,
                write,
                slot: number,
                placed: false,
            });
        }
    }
}
