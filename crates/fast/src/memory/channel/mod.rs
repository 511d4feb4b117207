// SPDX-License-Identifier: Apache-2.0

//! One memory channel, as `nearside_channel` builds it: masters, credits, multiplexer, `nvm_delay`,
//! interleaving of reads, memory.
//!
//! A burst is granted, gets a slot and a target latency, is requested from the memory in pieces of
//! 8 lines, and is answered piece by piece. Each piece is one entry in a queue by due cycle.
//! Everything that a piece waits for before that is computed as a cycle when it is decided: a slot,
//! room in the read buffer, its turn at the memory.
//!
//! The channel holds no data. The caller moves it when an event is reported.

mod arbiter;
mod mux;
mod queue;
mod returns;
mod slots;

use std::collections::VecDeque;

use design::media::DelaySizes;
use sim::memctrl::{MemoryModel, MAX_WRITES};
use sim::Clock;
use spec::regs::nvm_delay;

use self::arbiter::{Grant, URGENT};
use self::mux::{BurstRequest, MasterLimit, Mux, CONTROLLER};
use self::queue::{DueAnswer, DueQueue};
pub(crate) use self::returns::ReturnPath;
use self::slots::{Slot, Slots};
use super::clock_converter::ClockConverter;
use super::delay::{BandwidthCap, Delay, MIN_LATENCY, READ, WRITE};
use super::memory_timing::MemoryTiming;
use crate::qos::{Credits, Qos};

/// Masters of a channel: the PM window, the NVMe controller, engines.
pub const MASTERS: usize = 8;
/// Lines of a piece. Reads are requested and answered in pieces.
pub const PIECE: u32 = 8;
/// Largest number of lines of a burst.
const MAX_LINES: u64 = 64;
/// Cycles by which a request to the memory may be computed ahead of time.
const AHEAD: u64 = 8;

/// Parameters of the stages around `nvm_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelStages {
    /// Cycles of the multiplexer, each way.
    pub mux: u64,
    /// Cycles of the read interleaver for read addresses.
    pub arbitration: u64,
    /// Bursts that wait in the read interleaver.
    pub bursts: usize,
    /// Lines that it requests from the memory at a time for masters other than the urgent one.
    pub lines: usize,
    /// The pieces of a read are not interleaved with other reads.
    pub whole: bool,
    /// Cycles of the register slice before the memory, for addresses and write data.
    pub slice: u64,
    /// Accepted write addresses whose data has not passed.
    pub writes: usize,
}

impl ChannelStages {
    /// The stages of the device's storage.
    pub const DEVICE: ChannelStages = ChannelStages {
        mux: 1,
        arbitration: 2,
        bursts: 16,
        lines: 32,
        whole: false,
        slice: 1,
        writes: MAX_WRITES + 4,
    };
    /// The stages of the local memory.
    pub const LOCAL: ChannelStages = ChannelStages {
        lines: 128,
        whole: true,
        ..ChannelStages::DEVICE
    };
    /// `nvm_delay` alone between its master and the memory.
    pub const BARE: ChannelStages = ChannelStages {
        mux: 0,
        arbitration: 0,
        bursts: usize::MAX,
        lines: usize::MAX,
        whole: false,
        slice: 0,
        writes: MAX_WRITES + 2,
    };
}

/// Parameters of a channel.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// Number of masters, up to [`MASTERS`].
    pub masters: usize,
    /// Sizes of `nvm_delay`.
    pub sizes: DelaySizes,
    /// The clock of the device.
    pub clock: Clock,
    /// The memory controller and its DRAM.
    pub memory: MemoryModel,
    /// The stages around `nvm_delay`.
    pub stages: ChannelStages,
}

/// An answer to a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// A piece of read data.
    Read {
        /// Tag of the read.
        tag: u64,
        /// The cycle of its last beat.
        cycle: u64,
        /// Number of its beats, up to [`PIECE`], counted from the start of the burst.
        beats: u32,
        /// It ends the burst.
        end: bool,
    },
    /// The response to a write.
    Write {
        /// Tag of the write.
        tag: u64,
        /// The cycle of the response.
        cycle: u64,
    },
}

/// Read beats whose cycles on the return path are fixed.
struct ScheduledBeats {
    slot: u16,
    /// The first cycle without contention, and the number of beats.
    from: u64,
    beats: u32,
    /// The bandwidth cap before these beats.
    cap: BandwidthCap,
}

/// One channel. Calls have to be in the order of cycles.
pub struct Channel {
    config: ChannelConfig,
    converter: ClockConverter,
    delay: Delay,
    mux: [Mux; 2],
    weights: [i32; MASTERS],
    reads: Slots,
    writes: Slots,
    /// Accepted reads that wait for room in the buffer.
    issue: VecDeque<u16>,
    /// Free beats of the buffer.
    room: u32,
    /// Reads that are interleaved at the memory, normal and urgent, with the earliest cycle of
    /// each.
    read_queues: [VecDeque<(u16, u64)>; 2],
    /// When the next piece can be requested from the memory.
    read_due: u64,
    next_piece: u64,
    returns: ReturnPath,
    /// Writes whose data is not at the memory yet.
    data: VecDeque<u16>,
    write_due: u64,
    next_data: u64,
    /// Write data ignores the bandwidth cap.
    flushing: bool,
    /// The next free cycle of each return path.
    out: [u64; 2],
    /// Pieces of reads whose cycles are fixed and which have not been answered, in order.
    scheduled: VecDeque<ScheduledBeats>,
    due: DueQueue,
    timing: MemoryTiming,
}

impl Channel {
    /// An idle channel.
    pub fn new(config: ChannelConfig) -> Channel {
        let converter = ClockConverter::new(config.clock);
        let masters = config.masters.clamp(1, MASTERS);
        let sizes = config.sizes;
        let mut channel = Channel {
            converter,
            delay: Delay::new(sizes),
            mux: [Mux::new(), Mux::new()],
            weights: [1; MASTERS],
            reads: Slots::new(sizes.read_slots, masters),
            writes: Slots::new(sizes.write_slots, masters),
            issue: VecDeque::with_capacity(sizes.read_slots as usize),
            room: sizes.buffer_beats.saturating_sub(sizes.read_slots),
            read_queues: [VecDeque::with_capacity(64), VecDeque::with_capacity(64)],
            read_due: u64::MAX,
            next_piece: 0,
            returns: ReturnPath::default(),
            data: VecDeque::with_capacity(64),
            write_due: u64::MAX,
            next_data: 0,
            flushing: false,
            out: [0; 2],
            scheduled: VecDeque::new(),
            due: DueQueue::default(),
            timing: MemoryTiming::new(&config.memory, converter.edge_time(1)),
            config,
        };
        let qos = Qos::new();
        (0..MASTERS).for_each(|master| channel.set_credits(0, master, qos.credits(master)));
        channel
    }

    /// Sets the credits and the weight of a master.
    pub fn set_credits(&mut self, cycle: u64, master: usize, credits: Credits) {
        if master < MASTERS {
            self.mux[READ].limits[master] = MasterLimit::new(master, credits.reads, credits.beside);
            self.mux[WRITE].limits[master] =
                MasterLimit::new(master, credits.writes, credits.beside);
            self.weights[master] = credits.weight.clamp(1, 255) as i32;
            self.grant(READ, cycle);
            self.grant(WRITE, cycle);
        }
    }

    /// Reads a register of `nvm_delay`.
    pub fn register(&self, offset: u64) -> u32 {
        self.delay
            .read(offset, [self.reads.used(), self.writes.used()])
    }

    /// Writes the bytes of a register of `nvm_delay` that `strobe` selects.
    pub fn set_register(&mut self, cycle: u64, offset: u64, value: u32, strobe: u8) {
        let early = !self.scheduled.is_empty() && offset & 0xFFC == nvm_delay::COMMAND;
        if early {
            self.unschedule(cycle);
        }
        self.delay.write(cycle, offset, value, strobe);
        if early {
            self.reschedule();
        }
        if self.write_due != u64::MAX {
            self.schedule_data();
        }
    }

    /// Releases the cycles of beats that are not answered by `cycle`, because the cap is about to
    /// change.
    fn unschedule(&mut self, cycle: u64) {
        self.due.remove_placed_reads();
        let mut left = false;
        for scheduled in &mut self.scheduled {
            if left {
                continue;
            }
            let mut cap = scheduled.cap.clone();
            while scheduled.beats > 0 {
                let before = cap.clone();
                let (at, _) = cap.pass_beats(scheduled.from, 1);
                if at > cycle {
                    cap = before;
                    left = true;
                    break;
                }
                scheduled.beats -= 1;
                scheduled.from = at + 1;
            }
            self.delay.caps[READ] = cap;
        }
        let next = self
            .scheduled
            .iter_mut()
            .filter(|scheduled| scheduled.beats > 0);
        next.for_each(|scheduled| scheduled.from = scheduled.from.max(cycle + 1));
    }

    /// Assigns new cycles to released beats.
    fn reschedule(&mut self) {
        let mut out = 0;
        for scheduled in &mut self.scheduled {
            let from = scheduled.from.max(out);
            scheduled.cap = self.delay.caps[READ].clone();
            let last = match scheduled.beats {
                0 => scheduled.from - 1,
                beats => self.delay.caps[READ].pass_beats(from, beats).1,
            };
            out = last + 1;
            self.due.push(DueAnswer {
                cycle: last,
                write: false,
                slot: scheduled.slot,
                placed: true,
            });
        }
        self.out[READ] = out;
    }

    /// The state of `nvm_delay`.
    pub fn delay(&self) -> &Delay {
        &self.delay
    }

    /// Sets whether write data ignores the bandwidth cap.
    pub fn flush(&mut self, cycle: u64, on: bool) {
        self.flushing = on;
        self.next_data = self.next_data.max(cycle);
        self.schedule_data();
    }

    /// Resets the channel with the function: everything in flight is dropped, and settings and
    /// counters are those after power-on. The memory keeps its state.
    pub fn reset(&mut self) {
        let timing = std::mem::replace(
            &mut self.timing,
            MemoryTiming::new(&MemoryModel::Fixed(sim::Time::ZERO), sim::Time(1)),
        );
        let ends = [self.next_piece, self.next_data];
        let mut fresh = Channel::new(self.config.clone());
        fresh.timing = timing;
        [fresh.next_piece, fresh.next_data] = ends;
        *self = fresh;
    }

    /// Nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.reads.used() + self.writes.used() + self.mux[READ].count + self.mux[WRITE].count == 0
    }

    /// Beats of a master's writes that wait for the memory.
    #[inline]
    pub fn waiting_write_beats(&self, master: usize) -> u32 {
        self.mux[WRITE].waiting_beats[master]
    }

    /// Blocks the return path of reads until a cycle.
    #[inline]
    pub fn hold_reads(&mut self, cycle: u64) {
        self.out[READ] = self.out[READ].max(cycle);
    }

    /// A read of `bytes` at `addr` reaches the multiplexer in `cycle`.
    #[inline]
    pub fn read(&mut self, cycle: u64, master: usize, id: u16, addr: u64, bytes: u32, tag: u64) {
        self.arrive(READ, cycle, master, id, addr, bytes, tag);
    }

    /// A write of `bytes` at `addr` reaches the multiplexer in `cycle`. Its data follows without a
    /// pause.
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
        let request = BurstRequest {
            tag,
            addr,
            arrived: cycle,
            id,
            beats: lines.clamp(1, MAX_LINES) as u16,
        };
        let mux = &mut self.mux[direction];
        if direction == WRITE {
            mux.waiting_beats[master] += u32::from(request.beats);
        }
        mux.waiting[master].push_back(request);
        mux.count += 1;
        mux.masters |= 1 << master;
        self.grant(direction, cycle);
    }

    /// The cycle of the next event, or of an internal step that leads to one.
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        let next = self
            .due
            .next()
            .min(self.request_cycle())
            .min(self.write_due)
            .min(self.mux[READ].due)
            .min(self.mux[WRITE].due);
        (next != u64::MAX).then_some(next)
    }

    /// Advances to `cycle`, and appends the events up to then.
    #[inline]
    pub fn advance(&mut self, cycle: u64, events: &mut Vec<ChannelEvent>) {
        loop {
            let read = self.request_cycle();
            let (write, due) = (self.write_due, self.due.next());
            let grant = self.mux[READ].due.min(self.mux[WRITE].due);
            let first = read.min(write).min(due).min(grant);
            if first > cycle || first == u64::MAX {
                return;
            }
            if due == first {
                self.emit_next(events);
            } else if grant == first {
                self.grant(READ, grant);
                self.grant(WRITE, grant);
            } else if read == first {
                self.request_piece();
            } else {
                self.send_data();
            }
        }
    }

    /// Grants bursts at the multiplexer, up to `now`.
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
                if first.is_some_and(|r| mux.has_credit(master, r.beats, beside)) {
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
            let request = mux.waiting[master].pop_front();
            let request = request.expect("the granted master has a burst");
            mux.count -= 1;
            if mux.waiting[master].is_empty() {
                mux.masters &= !(1 << master);
            }
            mux.arbiter.granted(master, request.beats.into());
            mux.open[master] += u32::from(request.beats);
            self.accept(direction, cycle.max(request.arrived), master, request);
        }
    }

    /// Accepts a burst into `nvm_delay` that was granted in `cycle`.
    #[inline]
    fn accept(&mut self, direction: usize, cycle: u64, master: usize, request: BurstRequest) {
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
            let number = self.reads.allocate(slot, request.id);
            self.issue.push_back(number);
            self.queue_reads(received + 1);
        } else {
            let number = self.writes.allocate(slot, request.id);
            self.data.push_back(number);
            if self.data.len() == 1 {
                self.schedule_data();
            }
        }
    }

    /// Moves accepted reads to the read interleaver while there is room in it and in the buffer.
    #[inline]
    fn queue_reads(&mut self, cycle: u64) {
        let stages = self.config.stages;
        while let Some(&number) = self.issue.front() {
            let slot = &self.reads.all[usize::from(number)];
            let beats = u32::from(slot.beats) - 1;
            if beats > self.room
                || self.read_queues[0].len() + self.read_queues[1].len() >= stages.bursts
            {
                break;
            }
            self.room -= beats;
            self.issue.pop_front();
            let urgent = usize::from(usize::from(slot.master) == URGENT);
            self.read_queues[urgent]
                .push_back((number, cycle.max(slot.received + 1) + stages.arbitration));
        }
        self.schedule_reads();
        while self.read_due <= cycle + AHEAD {
            self.request_piece();
        }
    }

    /// Computes when the next piece can be requested from the memory.
    #[inline]
    fn schedule_reads(&mut self) {
        let urgent = self.read_queues[1]
            .front()
            .map_or(u64::MAX, |&(_, ready)| ready);
        let normal = match self.read_queues[0].front() {
            None => u64::MAX,
            Some(&(number, ready)) => {
                let slot = &self.reads.all[usize::from(number)];
                let lines = PIECE.min(u32::from(slot.beats - slot.requested)) as usize;
                let allowed = self.config.stages.lines.saturating_sub(lines);
                // All but `allowed` of the requested lines have to be answered in the cycle before.
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

    /// The cycle in which that request may be computed at the earliest.
    #[inline]
    fn request_cycle(&self) -> u64 {
        match self.read_due {
            u64::MAX => u64::MAX,
            due => due.saturating_sub(AHEAD),
        }
    }

    /// Requests a piece from the memory.
    #[inline]
    fn request_piece(&mut self) {
        let stages = self.config.stages;
        let cycle = self.read_due;
        let urgent = self.read_queues[1]
            .front()
            .is_some_and(|&(_, r)| r <= cycle);
        let queue = usize::from(urgent);
        let next = self.read_queues[queue].pop_front();
        let (number, ready) = next.expect("a read is due");
        let slot = &mut self.reads.all[usize::from(number)];
        let lines = PIECE.min(u32::from(slot.beats - slot.requested));
        let addr = slot.addr.wrapping_add(u64::from(slot.requested) * 64);
        let from = self.converter.edge_time(cycle + stages.slice + 1);
        let answered = self.timing.read(from, addr, lines);
        let last = self.converter.first_edge_from(answered.last);
        let first = match lines {
            1 => last,
            _ => self.converter.first_edge_from(answered.first),
        };
        self.returns.release_until(cycle.saturating_sub(1));
        let arrived = self.returns.reserve(first, last, lines);
        slot.requested += lines as u16;
        let end = slot.requested == slot.beats;
        let mut out = arrived + 1;
        if !slot.target.off {
            // One beat a cycle, none before its deadline.
            let first = slot
                .target
                .cycles(u32::from(slot.requested) - lines + 1)
                .max(MIN_LATENCY);
            let target = slot.target.cycles(slot.requested.into());
            let deadline = slot.received + target.max(first + u64::from(lines) - 1);
            let passes = slot.beats == 1 || slot.target.together();
            // Data that arrives one cycle before the last possible one is stored, and is late by a
            // cycle.
            out = match arrived + 2 {
                c if c < deadline => deadline,
                c if c == deadline => deadline + 1,
                _ if passes => deadline.max(arrived + 1),
                _ => deadline.max(arrived + 3),
            };
        }
        out = out.max(slot.ready);
        slot.ready = out;
        self.due.push(DueAnswer {
            cycle: out + stages.mux,
            write: false,
            slot: number,
            placed: false,
        });
        // One address a cycle. Without the interleaver, addresses wait at the memory controller,
        // which is equivalent: no other read can overtake them.
        self.next_piece = match stages.lines {
            usize::MAX => {
                (self.converter.first_edge_from(answered.taken) - stages.slice).max(cycle + 1)
            }
            _ => cycle + 1,
        };
        if !end && stages.whole {
            self.read_queues[queue].push_front((number, ready.max(cycle + 1)));
        } else if !end {
            self.read_queues[queue].push_back((number, ready.max(cycle + 2)));
        } else if !self.issue.is_empty() {
            self.queue_reads(cycle + 1);
            return;
        }
        self.schedule_reads();
    }

    /// Computes when the next write data can go to the memory.
    #[inline]
    fn schedule_data(&mut self) {
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
        let number = self.data[0]; // data is due
        let slot = &mut self.writes.all[usize::from(number)];
        let mut lines = PIECE.min(u32::from(slot.beats - slot.requested));
        let addr = slot.addr.wrapping_add(u64::from(slot.requested) * 64);
        let from = self.write_due;
        let mut passed = 0;
        let cap = &mut self.delay.caps[WRITE];
        if !cap.is_off() && !self.flushing {
            let open = cap.open_cycle(from);
            if open > from {
                self.write_due = open;
                return;
            }
            lines = cap.beats_without_pause(lines);
            passed = cap.pass_beats(from, lines).1;
        }
        let buffered = self
            .timing
            .write(self.converter.edge_time(from), addr, lines);
        let accepted = self.converter.first_edge_from(buffered.taken);
        let held = passed.saturating_sub(accepted);
        slot.requested += lines as u16;
        self.mux[WRITE].waiting_beats[usize::from(slot.master)] -= lines;
        self.next_data = accepted + held + 1;
        self.delay.counters[WRITE].beats += u64::from(lines);
        if slot.requested == slot.beats {
            let arrived = self.converter.first_edge_from(buffered.safe) + held;
            let mut out = arrived + 1;
            if !slot.target.off {
                let target = slot.target.cycles(slot.beats.into()).max(MIN_LATENCY);
                out = out.max(slot.received + target);
            }
            slot.ready = out;
            self.due.push(DueAnswer {
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
        self.schedule_data();
    }

    /// Answers what is due first.
    #[inline]
    fn emit_next(&mut self, events: &mut Vec<ChannelEvent>) {
        let due = self.due.pop().expect("an answer is due");
        match due.write {
            true => self.emit_write(due, events),
            false => self.emit_read(due, events),
        }
    }

    #[inline]
    fn emit_read(&mut self, due: DueAnswer, events: &mut Vec<ChannelEvent>) {
        let slot = &mut self.reads.all[usize::from(due.slot)];
        if !slot.head {
            slot.parked += 1;
            return;
        }
        if !due.placed {
            let beats = PIECE.min(u32::from(slot.beats - slot.placed));
            // All beats but the last have left in the cycles before, each when it was due and the
            // path was free.
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
            let (_, last) = self.delay.caps[READ].pass_beats(from, beats);
            // While a read is put into the calendar of `nvm_delay`, no other beat can be.
            let lost = sent == 0 && slot.beats > 1 && !slot.target.together();
            self.out[READ] = last + 1 + u64::from(lost);
            if last > due.cycle {
                let slot = due.slot;
                self.scheduled.push_back(ScheduledBeats {
                    slot,
                    from: wanted,
                    beats,
                    cap,
                });
                self.due.push(DueAnswer {
                    cycle: last,
                    placed: true,
                    ..due
                });
                return;
            }
        } else {
            self.scheduled.pop_front();
        }
        let beats = PIECE.min(u32::from(slot.beats - slot.sent));
        let first = slot.sent == 0;
        slot.sent += beats as u16;
        let end = slot.sent == slot.beats;
        events.push(ChannelEvent::Read {
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
            if let Some(next) = self.reads.retire(due.slot) {
                self.unpark(false, next, due.cycle);
            }
        }
        if !self.issue.is_empty() {
            self.queue_reads(due.cycle);
        }
        self.grant_after(READ, master, due.cycle + 1);
    }

    #[inline]
    fn emit_write(&mut self, due: DueAnswer, events: &mut Vec<ChannelEvent>) {
        let slot = &mut self.writes.all[usize::from(due.slot)];
        if !slot.head {
            slot.parked += 1;
            return;
        }
        if !due.placed {
            let cycle = due.cycle.max(self.out[WRITE]);
            self.out[WRITE] = cycle + 1;
            if cycle > due.cycle {
                self.due.push(DueAnswer {
                    cycle,
                    placed: true,
                    ..due
                });
                return;
            }
        }
        events.push(ChannelEvent::Write {
            tag: slot.tag,
            cycle: due.cycle,
        });
        let master = usize::from(slot.master);
        self.mux[WRITE].open[master] -= u32::from(slot.beats);
        let latency = due.cycle - self.config.stages.mux - slot.received;
        let late = !slot.target.off && latency > slot.target.cycles(slot.beats.into());
        self.delay.counters[WRITE].count(latency, late);
        if let Some(next) = self.writes.retire(due.slot) {
            self.unpark(true, next, due.cycle);
        }
        self.grant_after(WRITE, master, due.cycle + 1);
    }

    /// Grants bursts that waited for the credits of a master.
    #[inline]
    fn grant_after(&mut self, direction: usize, master: usize, cycle: u64) {
        if self.mux[direction].count > 0 {
            self.grant(direction, cycle);
        }
        // Once the controller has nothing outstanding, the limits of the others rise in both
        // directions.
        if master == CONTROLLER && self.mux[1 - direction].count > 0 {
            self.grant(1 - direction, cycle);
        }
    }

    /// Answers what waited until this transaction became the oldest of its ID.
    #[inline]
    fn unpark(&mut self, write: bool, number: u16, cycle: u64) {
        let slots = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let slot = &mut slots.all[usize::from(number)];
        for _ in 0..std::mem::take(&mut slot.parked) {
            self.due.push(DueAnswer {
                cycle,
                write,
                slot: number,
                placed: false,
            });
        }
    }
}
