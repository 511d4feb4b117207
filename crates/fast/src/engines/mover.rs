//! Copies ranges of any alignment and length within the device's memories (hw/lib/rtl/ns_dma.sv).

use std::collections::VecDeque;

use super::ports::Ports;

/// Numbers of bursts of a mover: the most that [`Shape::bursts`] may be.
pub(super) const BURSTS: usize = 16;
const BEAT: u64 = 64;
/// Cycles that reads and writes take through the crossbar, besides those of [`Ports::read`].
const CROSSBAR: u64 = 2;
/// From a channel to the mover's buffer, and out of it to where writes begin.
const BACK: u64 = 7;

/// Parameters of the RTL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bytes of a burst.
    pub(super) burst: u64,
    /// Read bursts under way or in the buffer, and write bursts under way.
    pub(super) bursts: usize,
    /// Commands inside.
    pub(super) commands: usize,
}

impl Shape {
    /// Beats that wait to be written.
    fn depth(&self) -> u64 {
        4 * self.burst / BEAT
    }
}

/// What could not be done of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Errors {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// A range to copy.
struct Command {
    src: u64,
    dst: u64,
    bytes: u64,
    /// Bytes that have been asked for, and that have been sent.
    asked: u64,
    sent: u64,
    /// Writes that have not been answered.
    open: u32,
    errors: Errors,
}

/// A read burst.
#[derive(Clone)]
struct Slot {
    addr: u64,
    len: usize,
    data: Vec<u8>,
    /// When it came, and whether it could be read.
    here: Option<(u64, bool)>,
}

/// One mover. The number of its first burst and of its wake-ups are its caller's.
pub(super) struct Mover {
    shape: Shape,
    number: u32,
    /// From the oldest that has not ended on.
    commands: VecDeque<Command>,
    /// Which of them is asked for, and which is sent.
    asking: usize,
    sending: usize,
    slots: Vec<Slot>,
    /// The next slot to ask with, the next one that is handed on, and those between.
    head: usize,
    tail: usize,
    used: usize,
    /// Bytes that were handed on and have not been sent, from a place in it on.
    data: Vec<u8>,
    begin: usize,
    /// How many have been handed on and sent in all, and which of them could not be read.
    passed: u64,
    sent: u64,
    bad: VecDeque<(u64, u64)>,
    /// The command of each write burst under way, counted from the first one on.
    writes: Vec<Option<u64>>,
    next_write: usize,
    /// Commands that have ended.
    ended: u64,
    /// The next edges of a read, of a beat that is handed on, and of a write.
    read_free: u64,
    pass_free: u64,
    write_free: u64,
    /// A wake-up is planned.
    planned: u64,
}

impl Mover {
    pub(super) fn new(number: u32, shape: Shape) -> Mover {
        let slot = Slot {
            addr: 0,
            len: 0,
            data: vec![0; shape.burst as usize],
            here: None,
        };
        Mover {
            shape,
            number,
            commands: VecDeque::with_capacity(shape.commands),
            asking: 0,
            sending: 0,
            slots: vec![slot; shape.bursts],
            head: 0,
            tail: 0,
            used: 0,
            data: Vec::with_capacity(2 * shape.bursts * shape.burst as usize),
            begin: 0,
            passed: 0,
            sent: 0,
            bad: VecDeque::new(),
            writes: vec![None; shape.bursts],
            next_write: 0,
            ended: 0,
            read_free: 0,
            pass_free: 0,
            write_free: 0,
            planned: 0,
        }
    }

    /// A command may come.
    pub(super) fn has_room(&self) -> bool {
        self.commands.len() < self.shape.commands
    }

    /// Begins a copy of a byte at least; the ranges do not overlap, and that which is written lies in one granule.
    pub(super) fn push(&mut self, src: u64, dst: u64, bytes: u64) {
        self.commands.push_back(Command {
            src,
            dst,
            bytes,
            asked: 0,
            sent: 0,
            open: 0,
            errors: Errors::default(),
        });
    }

    /// Takes the end of the oldest command.
    pub(super) fn take_ended(&mut self) -> Option<Errors> {
        let over = |c: &Command| c.sent == c.bytes && c.open == 0;
        if !self.commands.front().is_some_and(over) {
            return None;
        }
        self.asking -= 1;
        self.sending -= 1;
        self.ended += 1;
        self.commands.pop_front().map(|command| command.errors)
    }

    fn wake(&mut self, cycle: u64, ports: &mut Ports) {
        let now = ports.now();
        if self.planned <= now || cycle < self.planned {
            self.planned = cycle;
            ports.wake(cycle, self.number);
        }
    }

    /// Does all that can be done by now.
    pub(super) fn go_on(&mut self, ports: &mut Ports) {
        while self.pass(ports) | self.write(ports) {}
        self.read(ports);
    }

    /// Hands the oldest read burst on to where writes begin.
    fn pass(&mut self, ports: &mut Ports) -> bool {
        if self.used == 0 {
            return false;
        }
        let slot = &self.slots[self.tail];
        let Some((here, fine)) = slot.here else {
            return false;
        };
        let beats = (slot.addr % BEAT + slot.len as u64).div_ceil(BEAT);
        let waiting = (self.data.len() - self.begin) as u64;
        if waiting.div_ceil(BEAT) + beats > self.shape.depth() {
            return false;
        }
        let done = (self.pass_free + beats).max(here + BACK);
        if done > ports.now() {
            self.wake(done, ports);
            return false;
        }
        self.pass_free = done;
        if self.begin >= self.shape.bursts * self.shape.burst as usize
            || self.begin == self.data.len()
        {
            self.data.drain(..self.begin);
            self.begin = 0;
        }
        let slot = &mut self.slots[self.tail];
        self.data.extend_from_slice(&slot.data[..slot.len]);
        let until = self.passed + slot.len as u64;
        if !fine {
            self.bad.push_back((self.passed, until));
        }
        self.passed = until;
        slot.here = None;
        self.tail = (self.tail + 1) % self.shape.bursts;
        self.used -= 1;
        true
    }

    /// Sends a write burst whose bytes are all here.
    fn write(&mut self, ports: &mut Ports) -> bool {
        let (sending, next, burst) = (self.sending, self.next_write, self.shape.burst);
        let Some(command) = self.commands.get_mut(sending) else {
            return false;
        };
        let at = command.dst.wrapping_add(command.sent);
        let len = (burst - at % burst).min(command.bytes - command.sent);
        if self.writes[next].is_some() || ((self.data.len() - self.begin) as u64) < len {
            return false;
        }
        if self.write_free > ports.now() {
            self.wake(self.write_free, ports);
            return false;
        }
        command.sent += len;
        command.open += 1;
        let id = (self.number as usize * BURSTS + next) as u16;
        let inside = ports.write(CROSSBAR, id, at, len as u32, id.into());
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
                let fine = ports.store(at + from, &data[from as usize..until as usize]);
                command.errors.write |= !fine;
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
        self.next_write = (next + 1) % self.shape.bursts;
        self.write_free = ports.now() + (at % BEAT + len).div_ceil(BEAT);
        true
    }

    /// Asks for what there is room for.
    fn read(&mut self, ports: &mut Ports) {
        let burst = self.shape.burst;
        while let Some(command) = self.commands.get_mut(self.asking) {
            if self.used == self.shape.bursts {
                return;
            }
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.wake(cycle, ports);
            }
            let at = command.src.wrapping_add(command.asked);
            let len = (burst - at % burst).min(command.bytes - command.asked);
            command.asked += len;
            if command.asked == command.bytes {
                self.asking += 1;
            }
            let slot = &mut self.slots[self.head];
            (slot.addr, slot.len) = (at, len as usize);
            let id = (self.number as usize * BURSTS + self.head) as u16;
            self.head = (self.head + 1) % self.shape.bursts;
            self.used += 1;
            self.read_free = ports.now() + 1;
            ports.read(CROSSBAR, id, at, len as u32, id.into());
        }
    }

    /// A read burst is here; its number counts from the mover's first one on.
    pub(super) fn arrived(&mut self, burst: usize, fine: bool, ports: &mut Ports) {
        let slot = &mut self.slots[burst];
        let fine = fine && ports.load(slot.addr, &mut slot.data[..slot.len]);
        slot.here = Some((ports.now(), fine));
        if burst == self.tail {
            self.go_on(ports);
        }
    }

    /// A write burst has been answered.
    pub(super) fn written(&mut self, burst: usize, fine: bool, ports: &mut Ports) {
        let Some(number) = self.writes[burst].take() else {
            return;
        };
        let place = number.wrapping_sub(self.ended) as usize;
        if let Some(command) = self.commands.get_mut(place) {
            command.open -= 1;
            command.errors.write |= !fine;
        }
        if burst == self.next_write {
            self.go_on(ports);
        }
    }
}
