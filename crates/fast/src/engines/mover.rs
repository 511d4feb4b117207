// SPDX-License-Identifier: Apache-2.0

//! Copies ranges of any alignment and length within the device's memories (hw/lib/rtl/ns_dma.sv).

use std::collections::VecDeque;

use super::ports::EnginePorts;

/// Burst numbers of a mover: the maximum of [`MoverParameters::bursts`].
pub(super) const BURSTS: usize = 16;
const BEAT: u64 = 64;
/// Cycles of reads and writes through the crossbar, in addition to those of [`EnginePorts::read`].
const CROSSBAR_CYCLES: u64 = 2;
/// Cycles from a channel to the mover's buffer, and from the buffer to the write logic.
const RETURN_CYCLES: u64 = 7;

/// Parameters of the RTL.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoverParameters {
    /// Bytes of a burst.
    pub(super) burst: u64,
    /// Maximum number of read bursts that are open or buffered, and of open write bursts.
    pub(super) bursts: usize,
    /// Maximum number of commands.
    pub(super) commands: usize,
}

impl MoverParameters {
    /// Maximum number of beats that wait to be written.
    fn depth(&self) -> u64 {
        4 * self.burst / BEAT
    }
}

/// Errors of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Errors {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// A range to copy.
struct CopyCommand {
    src: u64,
    dst: u64,
    bytes: u64,
    /// Bytes requested, and bytes sent.
    requested: u64,
    sent: u64,
    /// Writes that have not been answered.
    open: u32,
    errors: Errors,
}

/// A read burst.
#[derive(Clone)]
struct ReadSlot {
    addr: u64,
    len: usize,
    data: Vec<u8>,
    /// Arrival time, and whether the read succeeded.
    arrival: Option<(u64, bool)>,
}

/// One mover. The caller defines the number of its first burst and wake-up.
pub(super) struct Mover {
    parameters: MoverParameters,
    number: u32,
    /// Commands that have not ended, oldest first.
    commands: VecDeque<CopyCommand>,
    /// Index of the command whose reads are issued, and of the one whose writes are issued.
    requesting: usize,
    sending: usize,
    slots: Vec<ReadSlot>,
    /// Next slot to read into, next slot to forward, and the number of slots between them.
    head: usize,
    tail: usize,
    used: usize,
    /// Bytes that were forwarded and have not been sent, and the offset of the first one.
    data: Vec<u8>,
    begin: usize,
    /// Bytes forwarded and sent in total, and the forwarded beats that could not be read.
    passed: u64,
    sent: u64,
    bad: VecDeque<(u64, u64)>,
    /// The command number of each open write burst.
    writes: Vec<Option<u64>>,
    next_write: usize,
    /// Number of commands that have ended.
    ended: u64,
    /// Next free edges of reads, of forwarded beats, and of writes.
    read_free: u64,
    forward_free: u64,
    write_free: u64,
    /// Edge of the scheduled wake-up.
    scheduled: u64,
}

impl Mover {
    pub(super) fn new(number: u32, parameters: MoverParameters) -> Mover {
        let slot = ReadSlot {
            addr: 0,
            len: 0,
            data: vec![0; parameters.burst as usize],
            arrival: None,
        };
        Mover {
            parameters,
            number,
            commands: VecDeque::with_capacity(parameters.commands),
            requesting: 0,
            sending: 0,
            slots: vec![slot; parameters.bursts],
            head: 0,
            tail: 0,
            used: 0,
            data: Vec::with_capacity(2 * parameters.bursts * parameters.burst as usize),
            begin: 0,
            passed: 0,
            sent: 0,
            bad: VecDeque::new(),
            writes: vec![None; parameters.bursts],
            next_write: 0,
            ended: 0,
            read_free: 0,
            forward_free: 0,
            write_free: 0,
            scheduled: 0,
        }
    }

    /// A command can be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.commands.len() < self.parameters.commands
    }

    /// Starts a copy of at least one byte. The ranges do not overlap, and the target is within one
    /// granule.
    pub(super) fn push(&mut self, src: u64, dst: u64, bytes: u64) {
        self.commands.push_back(CopyCommand {
            src,
            dst,
            bytes,
            requested: 0,
            sent: 0,
            open: 0,
            errors: Errors::default(),
        });
    }

    /// Takes the result of the oldest command if it has ended.
    pub(super) fn take_finished(&mut self) -> Option<Errors> {
        let ended = |c: &CopyCommand| c.sent == c.bytes && c.open == 0;
        if !self.commands.front().is_some_and(ended) {
            return None;
        }
        self.requesting -= 1;
        self.sending -= 1;
        self.ended += 1;
        self.commands.pop_front().map(|command| command.errors)
    }

    fn schedule_wake_up(&mut self, cycle: u64, ports: &mut EnginePorts) {
        let now = ports.now();
        if self.scheduled <= now || cycle < self.scheduled {
            self.scheduled = cycle;
            ports.wake(cycle, self.number);
        }
    }

    /// Does all work that is possible up to the current edge.
    pub(super) fn advance(&mut self, ports: &mut EnginePorts) {
        while self.forward_read(ports) | self.issue_write(ports) {}
        self.issue_reads(ports);
    }

    /// Forwards the oldest read burst to the write logic.
    fn forward_read(&mut self, ports: &mut EnginePorts) -> bool {
        if self.used == 0 {
            return false;
        }
        let slot = &self.slots[self.tail];
        let Some((arrived, ok)) = slot.arrival else {
            return false;
        };
        let beats = (slot.addr % BEAT + slot.len as u64).div_ceil(BEAT);
        let waiting = (self.data.len() - self.begin) as u64;
        if waiting.div_ceil(BEAT) + beats > self.parameters.depth() {
            return false;
        }
        let done = (self.forward_free + beats).max(arrived + RETURN_CYCLES);
        if done > ports.now() {
            self.schedule_wake_up(done, ports);
            return false;
        }
        self.forward_free = done;
        if self.begin >= self.parameters.bursts * self.parameters.burst as usize
            || self.begin == self.data.len()
        {
            self.data.drain(..self.begin);
            self.begin = 0;
        }
        let slot = &mut self.slots[self.tail];
        self.data.extend_from_slice(&slot.data[..slot.len]);
        let until = self.passed + slot.len as u64;
        if !ok {
            self.bad.push_back((self.passed, until));
        }
        self.passed = until;
        slot.arrival = None;
        self.tail = (self.tail + 1) % self.parameters.bursts;
        self.used -= 1;
        true
    }

    /// Sends a write burst whose bytes are all available.
    fn issue_write(&mut self, ports: &mut EnginePorts) -> bool {
        let (sending, next, burst) = (self.sending, self.next_write, self.parameters.burst);
        let Some(command) = self.commands.get_mut(sending) else {
            return false;
        };
        let at = command.dst.wrapping_add(command.sent);
        let len = (burst - at % burst).min(command.bytes - command.sent);
        if self.writes[next].is_some() || ((self.data.len() - self.begin) as u64) < len {
            return false;
        }
        if self.write_free > ports.now() {
            self.schedule_wake_up(self.write_free, ports);
            return false;
        }
        command.sent += len;
        command.open += 1;
        let id = (self.number as usize * BURSTS + next) as u16;
        let inside = ports.write(CROSSBAR_CYCLES, id, at, len as u32, id.into());
        let data = &self.data[self.begin..self.begin + len as usize];
        // Lines with a byte that could not be read are not written.
        let mut from = 0;
        while from < len {
            let until = match self.bad.is_empty() {
                true => len,
                false => (from + BEAT - (at + from) % BEAT).min(len),
            };
            let (first, last) = (self.sent + from, self.sent + until);
            let bad = self.bad.iter().any(|&(a, b)| a < last && first < b);
            command.errors.read |= bad;
            if !bad && inside {
                let ok = ports.store(at + from, &data[from as usize..until as usize]);
                command.errors.write |= !ok;
            }
            from = until;
        }
        if command.sent == command.bytes {
            self.sending += 1;
        }
        self.begin += len as usize;
        self.sent += len;
        while self
            .bad
            .front()
            .is_some_and(|&(_, until)| until <= self.sent)
        {
            self.bad.pop_front();
        }
        self.writes[next] = Some(self.ended + sending as u64);
        self.next_write = (next + 1) % self.parameters.bursts;
        self.write_free = ports.now() + (at % BEAT + len).div_ceil(BEAT);
        true
    }

    /// Issues the reads that there is room for.
    fn issue_reads(&mut self, ports: &mut EnginePorts) {
        let burst = self.parameters.burst;
        while let Some(command) = self.commands.get_mut(self.requesting) {
            if self.used == self.parameters.bursts {
                return;
            }
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.schedule_wake_up(cycle, ports);
            }
            let at = command.src.wrapping_add(command.requested);
            let len = (burst - at % burst).min(command.bytes - command.requested);
            command.requested += len;
            if command.requested == command.bytes {
                self.requesting += 1;
            }
            let slot = &mut self.slots[self.head];
            (slot.addr, slot.len) = (at, len as usize);
            let id = (self.number as usize * BURSTS + self.head) as u16;
            self.head = (self.head + 1) % self.parameters.bursts;
            self.used += 1;
            self.read_free = ports.now() + 1;
            ports.read(CROSSBAR_CYCLES, id, at, len as u32, id.into());
        }
    }

    /// A read burst has arrived. Its number counts from the mover's first one.
    pub(super) fn read_arrived(&mut self, burst: usize, ok: bool, ports: &mut EnginePorts) {
        let slot = &mut self.slots[burst];
        let ok = ok && ports.load(slot.addr, &mut slot.data[..slot.len]);
        slot.arrival = Some((ports.now(), ok));
        if burst == self.tail {
            self.advance(ports);
        }
    }

    /// A write burst was answered.
    pub(super) fn write_answered(&mut self, burst: usize, ok: bool, ports: &mut EnginePorts) {
        let number = self.writes[burst].take().expect("the burst is open");
        let command = &mut self.commands[(number - self.ended) as usize];
        command.open -= 1;
        command.errors.write |= !ok;
        if burst == self.next_write {
            self.advance(ports);
        }
    }
}
