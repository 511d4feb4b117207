//! Crash consistency near memory (hw/engine/nearpm): takes commands in the order of the host's accesses, and makes logs, copies and
//! checkpoints of what the host goes on with, behind an access hook.

mod bits;
mod contexts;
mod hook;
mod job;
mod mover;
mod peers;
mod save;
mod table;
mod unit;

use std::ops::Range;

use design::engine::Plugged;
use sim::{OrderEvent, OrderWatch, Time, TraceEvent};
use spec::nearpm::{register, Command, Operation, Refusal};
use spec::regs::nearpm::{
    control, domain, forget, CONTROL, DOMAIN, FORGET, LINES, LINES_COUNT, LINES_STRIDE, LOADS,
    MOST_LINES, REFUSED, STORES, TAKEN, UNDER_WAY, WORKING,
};
use spec::regs::Field;

use self::contexts::{Contexts, Taken};
pub(crate) use self::hook::{Hook, Store};
use self::mover::{Rates, NUMBERS};
use self::peers::Peers;
use self::save::Found;
use self::table::Begins;
use self::unit::Unit;
use super::page::Page;
use super::ports::{Ports, Reach};
use super::{what, End};
use crate::config::Config;
use crate::cx::{Cx, Event, TAG_LINE};
use crate::memory::{master, Memories};

/// The type in the status block, and the name in `engine.toml`.
pub(super) const KIND: (u32, &str) = (22, "nearpm");
/// Cycles from a command's store until a unit can have it.
const TAKE: u64 = 11;
/// Cycles until a device without anything to restore opens, and for each line that is.
const OPEN: u64 = 80;
const RESTORE: u64 = 2;
/// Lines of a queue that may wait in front of the memory.
const IN_FRONT: u32 = 4;
/// Units at most.
const MOST_UNITS: u32 = 16;
/// The wake-up in which peers are told; those of units stand below.
const TELLS: u32 = MOST_UNITS << 1;
/// The AXI ID of lines that leave the queue: none of the PM window's.
const LINE_ID: u16 = 64;

/// The engine of a device.
pub(super) struct NearPm {
    number: u8,
    /// Its registers in BAR4.
    pub(super) place: Range<u64>,
    pub(super) page_at: Option<u64>,
    reach: Reach,
    page: Page,
    contexts: Contexts,
    peers: Peers,
    /// A wake-up is planned in which a peer is told.
    telling: bool,
    units: Vec<Unit>,
    /// Commands that were taken, and such that were refused.
    taken: u32,
    refused: u32,
    under_way: u32,
    /// Something was restored.
    restored: bool,
    /// A life was not saved, though it had something that has to survive; until that is forgotten.
    lost: bool,
    /// The header of the reserved range says that there is such a thing, or should; it could not be written.
    lives: bool,
    unmarked: bool,
}

impl NearPm {
    pub(super) fn new(number: u8, plugged: &Plugged, config: &Config) -> NearPm {
        let manifest = &plugged.manifest;
        let parameter =
            |name: &str, most: u64| plugged.parameter(name).map_or(most, |v| v.min(most));
        let units = parameter("units", MOST_UNITS.into()).max(1) as u32;
        let rates = Rates::new(units, config.channels(), parameter("unit_lines", 1024));
        NearPm {
            number,
            place: plugged.offset..plugged.offset + manifest.registers.0,
            page_at: plugged.page,
            reach: Reach::new(plugged, config),
            page: Page::new(manifest.arguments.len()),
            contexts: Contexts::new(config.storage.bytes - manifest.reserved.0),
            peers: Peers::new(),
            telling: false,
            units: (0..units).map(|n| Unit::new(n, rates)).collect(),
            taken: 0,
            refused: 0,
            under_way: 0,
            restored: false,
            lost: false,
            lives: false,
            unmarked: false,
        }
    }

    /// The header of the reserved range says whether there is something that has to survive.
    fn mark(&mut self, hook: Option<&Hook>, memory: &mut Memories) {
        let Some(hook) = hook.filter(|hook| !hook.is_unread()) else {
            return;
        };
        let is_numbered = self.peers.device().is_some();
        let lives = self.lost || self.contexts.is_used() || !hook.is_at_rest() || is_numbered;
        if lives != self.lives {
            self.lives = lives;
            self.unmarked = !save::mark(hook, lives, memory);
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.page.is_quiet() && self.peers.is_quiet() && self.units.iter().all(Unit::rests)
    }

    /// Bytes that the page reads as.
    pub(super) fn read_page(&self, at: usize, len: usize, data: &mut Vec<u8>) {
        self.page.read(at, len, data);
    }

    /// Bytes come into the page; its whole commands are taken. `stores`: how many the PM window has had before.
    pub(super) fn write_page(&mut self, at: usize, data: &[u8], stores: u64, cx: &mut Cx) {
        self.page.write(at, data, stores);
        while let Some(line) = self.page.take_line() {
            let job = self.page.job_of(line);
            self.taken = self.taken.wrapping_add(1);
            let command = match job.malformed {
                true => None,
                false => Command::from_arguments(&job.arguments),
            };
            let taken = match cx.hook.as_deref().is_some_and(Hook::is_unread) {
                true => Err(Refusal::ReadError),
                false => self.contexts.take(command, &self.peers),
            };
            match (taken, cx.hook.as_deref_mut()) {
                (Ok(Taken::Job(job)), Some(hook)) => {
                    self.under_way += 1;
                    if job.operation == Operation::PoolUnmap {
                        hook.table.leave(job.log >> 4);
                    }
                    hook.insert(line, job, stores, cx.now + TAKE);
                    cx.after(TAKE, Event::Hook);
                    cx.order(|| OrderEvent::CommandAccepted(job.ordered(line)));
                }
                (Ok(_), _) => {
                    cx.order(|| OrderEvent::CommandSkipped { number: line });
                    self.page.end_line(line, &End::default());
                }
                (Err(refusal), _) => {
                    cx.order(|| OrderEvent::CommandSkipped { number: line });
                    self.refused = self.refused.wrapping_add(1);
                    let end = End {
                        result: refusal as u32,
                        ..End::default()
                    };
                    self.page.end_line(line, &end);
                }
            }
        }
        self.mark(cx.hook.as_deref(), cx.memory);
    }

    /// Commands that may begin do so, as units are free.
    pub(super) fn dispatch(&mut self, cx: &mut Cx) {
        self.mark(cx.hook.as_deref(), cx.memory);
        while let Some(unit) = self.units.iter().position(Unit::rests) {
            let now = cx.now;
            let Some(hook) = cx.hook.as_deref_mut() else {
                return;
            };
            match hook.begin(now) {
                Ok(Begins {
                    number,
                    failed: true,
                    ..
                }) => {
                    cx.order(|| OrderEvent::CommandEnded {
                        number,
                        fine: false,
                    });
                    self.over(number, Refusal::Unmapped as u32, 0, cx);
                }
                Ok(Begins { number, job, .. }) => {
                    cx.tell(now, || TraceEvent::UnitBegins {
                        unit: unit as u8,
                        command: number,
                        operation: job.operation as u8,
                        bytes: job.bytes.into(),
                    });
                    cx.order(|| OrderEvent::CommandStarted { number });
                    self.with_unit(unit, cx, |unit, ports| unit.begin(number, job, ports));
                }
                Err(Some(later)) => return cx.plan(later, Event::Hook),
                Err(None) => return,
            }
        }
    }

    fn with_unit<T>(
        &mut self,
        unit: usize,
        cx: &mut Cx,
        call: impl FnOnce(&mut Unit, &mut Ports) -> T,
    ) -> Option<T> {
        let mut ports = Ports {
            cx,
            number: self.number,
            reach: &self.reach,
            part: 0,
        };
        let unit = self.units.get_mut(unit)?;
        Some(call(unit, &mut ports))
    }

    /// Something that was planned.
    pub(super) fn handle(&mut self, event: u32, cx: &mut Cx) {
        let number = event & ((1 << what::BITS) - 1);
        if event >> what::BITS != what::WAKE {
            // Bursts outside of the media are none of the engine's.
            return self.answered(number, false, cx);
        }
        if number == TELLS {
            self.telling = false;
            self.peers.tell(cx);
            return self.plan_tells(cx);
        }
        let (unit, about) = ((number >> 1) as usize, number & 1);
        let ended = self.with_unit(unit, cx, |unit, ports| unit.wake(about, ports));
        let Some(ended) = ended.flatten() else {
            return;
        };
        cx.tell(cx.now, || TraceEvent::UnitEnds { unit: unit as u8 });
        let table = cx.hook.as_deref_mut().map(|hook| &mut hook.table);
        let stale = (table.as_deref()).is_some_and(|table| table.is_stale(ended.command));
        if ended.result != 0 && ended.job.closes_log() {
            if !stale {
                self.contexts.close(ended.job.log, ended.spoils);
            }
            if let Some(table) = table {
                table.close(ended.job.log, stale);
            }
        }
        let job = ended.job;
        cx.order(|| OrderEvent::CommandEnded {
            number: ended.command,
            fine: ended.result == 0,
        });
        if ended.result == 0 && job.operation == Operation::Commit && job.bytes != 0 {
            if let Some(done) = self.contexts.ended(&job).filter(|_| !stale) {
                self.peers
                    .complete(job.log, done.sequence, done.participants);
                self.delete_if_complete(job.log, cx);
                self.plan_tells(cx);
            }
        }
        self.over(ended.command, ended.result, ended.value, cx);
    }

    /// The records of a log are void once all devices have completed its transaction.
    fn delete_if_complete(&mut self, log: u8, cx: &mut Cx) {
        let Some(pending) = self.contexts.pending(log) else {
            return;
        };
        let (sequence, participants) = (pending.sequence, pending.participants);
        if self.peers.is_complete(log, sequence, participants) {
            cx.order(|| OrderEvent::LogVoid {
                log,
                transaction: sequence,
            });
            let (place, descriptor) = self.contexts.delete(log, sequence);
            if !cx.memory.write_beside(place, &descriptor.to_line()) {
                // What the media say of it is as it was.
                self.contexts.close(log, false);
                if let Some(hook) = cx.hook.as_deref_mut() {
                    hook.table.close(log, false);
                }
                return;
            }
            self.peers.all_complete(log, sequence);
            cx.tell(cx.now, || TraceEvent::LogDeleted { log });
        }
    }

    /// Peers are told one after another.
    fn plan_tells(&mut self, cx: &mut Cx) {
        let next = self.peers.next(cx.now).filter(|_| !self.telling);
        if let Some(next) = next {
            self.telling = true;
            let about = what::WAKE << what::BITS | TELLS;
            cx.plan(next, Event::Engine(self.number, about));
        }
    }

    /// Writes the bits `bits` of a word of its registers.
    pub(super) fn write_register(&mut self, at: u64, value: u32, bits: u32, cx: &mut Cx) {
        if at == FORGET && value & bits & forget::FORGET.mask() as u32 != 0 {
            self.forget(cx);
        }
        let is_unread = cx.hook.as_deref().is_some_and(Hook::is_unread);
        let tells = (register::DONE..register::SEEN).contains(&at);
        // What peers tell goes on from what was kept.
        if !(is_unread && tells) {
            if let Some(log) = self.peers.write(at, value, bits) {
                self.delete_if_complete(log, cx);
            }
        }
        self.plan_tells(cx);
        self.mark(cx.hook.as_deref(), cx.memory);
    }

    /// What is lost is forgotten; what could not be brought back is not there for the next reset.
    fn forget(&mut self, cx: &mut Cx) {
        match cx.hook.as_deref().filter(|hook| hook.is_unread()) {
            Some(hook) => self.unmarked = !save::mark(hook, false, cx.memory),
            None => self.lost = false,
        }
    }

    /// A command has ended.
    fn over(&mut self, command: u8, result: u32, value: u64, cx: &mut Cx) {
        let mut end = End {
            result,
            ..End::default()
        };
        end.outputs[0] = value;
        self.page.end_line(command, &end);
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(hook) = cx.hook.as_deref_mut() {
            hook.end(command);
        }
        self.mark(cx.hook.as_deref(), cx.memory);
        cx.plan(cx.now, Event::Hook);
    }

    /// A word of its registers; where none is, 0.
    pub(super) fn read_register(&mut self, at: u64, hook: Option<&Hook>) -> u32 {
        let Some(hook) = hook else { return 0 };
        let [most, stores, loads] = hook.counts();
        let working = self.units.iter().enumerate();
        let working = working.fold(0, |set, (n, unit)| set | u32::from(!unit.rests()) << n);
        let lines = LINES..LINES + LINES_STRIDE * LINES_COUNT;
        match at {
            CONTROL if self.under_way == 0 => control::IDLE.mask() as u32,
            TAKEN => self.taken,
            REFUSED => self.refused,
            UNDER_WAY => self.under_way,
            WORKING => working,
            MOST_LINES => most,
            register::DEVICE..register::END => self.peers.load(at),
            LOADS => loads,
            STORES => stores,
            DOMAIN => {
                let set = |on: bool, field: Field| if on { field.mask() as u32 } else { 0 };
                set(self.restored, domain::RESTORED)
                    | set(!hook.is_closed() && !hook.is_unread(), domain::OPEN)
                    | set(hook.line_error, domain::LINE_ERROR)
                    | set(hook.is_unread(), domain::UNREAD)
                    | set(self.lost, domain::LOST)
                    | set(self.unmarked, domain::UNKEPT)
            }
            _ if lines.contains(&at) && at % LINES_STRIDE == 0 => {
                hook.queued(((at - LINES) / LINES_STRIDE) as usize) as u32
            }
            _ => 0,
        }
    }

    /// A burst has ended.
    pub(super) fn answered(&mut self, burst: u32, fine: bool, cx: &mut Cx) {
        let (unit, burst) = ((burst / NUMBERS) as usize, burst % NUMBERS);
        self.with_unit(unit, cx, |unit, ports| unit.answered(burst, fine, ports));
    }

    /// The power fails, or the function is reset. What could not be read stays as it is. False: not all could be written.
    pub(super) fn save(&self, hook: &Hook, memory: &mut Memories) -> bool {
        hook.is_unread() || save::save(&self.contexts, &self.peers, hook, self.lost, memory)
    }

    /// What [`NearPm::save`] would write, and where.
    pub(super) fn last_writes(&self, hook: &Hook) -> (u64, Vec<u8>) {
        let writes = match hook.is_unread() {
            true => Vec::new(),
            false => save::range(&self.contexts, &self.peers, hook, self.lost),
        };
        (hook.reserved, writes)
    }

    /// The device comes up, and takes nothing before an edge.
    pub(super) fn restore(
        &mut self,
        config: &Config,
        reserved: u64,
        from: u64,
        memory: &mut Memories,
    ) -> Box<Hook> {
        let mut hook = Hook::new(config, reserved, from);
        let found = save::restore(&mut self.contexts, &mut self.peers, &mut hook, memory);
        memory.shut = matches!(found, Found::Unread { .. });
        let mut lines = 1;
        match found {
            Found::Unread { unmarked } => {
                hook.stay_closed();
                self.unmarked = unmarked;
            }
            Found::Nothing { lost } => (self.lost, self.lives) = (lost, lost),
            Found::All { lines: all, lost } => {
                lines = all;
                (self.restored, self.lost, self.lives) = (true, lost, true);
                self.under_way = hook.table.entries().count() as u32;
            }
        }
        hook.close_until(from + OPEN + RESTORE * lines);
        self.mark(Some(&hook), memory);
        Box::new(hook)
    }
}

/// Bytes that failing power writes for a device with so many channels.
pub(super) fn last_bytes(channels: usize) -> usize {
    save::bytes(channels)
}

/// Tells what has come back when the power did.
pub(crate) fn tell_restored(hook: &Hook, order: &OrderWatch, time: Time) {
    for (number, entry) in hook.table.entries() {
        order.record(time, OrderEvent::CommandRestored(entry.job.ordered(number)));
    }
    for channel in 0..hook.channels() {
        for waiting in hook.lines(channel) {
            let line = OrderEvent::QueueLineRestored {
                channel: channel as u8,
                line: waiting.line,
            };
            order.record(time, line);
        }
    }
}

/// Looks at all that waits in the hook but commands. Loads that may go on are appended.
pub(crate) fn go_on(loads: &mut Vec<u32>, cx: &mut Cx) {
    let now = cx.now;
    let channels = cx.hook.as_deref().map_or(0, Hook::channels);
    for channel in 0..channels {
        while cx.memory.channels[channel].held(master::PM) < IN_FRONT {
            let line = cx
                .hook
                .as_deref_mut()
                .and_then(|hook| hook.take_line(channel, now));
            let Some(line) = line else { break };
            cx.order(|| OrderEvent::QueueLineIssued {
                channel: channel as u8,
            });
            let written = store_bytes(cx.memory, line.addr, line.strobes, &line.data);
            if let Some(hook) = cx.hook.as_deref_mut() {
                hook.line_error |= !written;
            }
            let addr = cx.memory.place(line.addr).map_or(0, |place| place.addr);
            let tag = TAG_LINE | channel as u64;
            let bytes = line.data.len() as u32;
            let to = &mut cx.memory.channels[channel];
            to.write(line.cycle, master::PM, LINE_ID, addr, bytes, tag);
            cx.channel_changed(channel);
        }
        while let Some(load) = cx
            .hook
            .as_deref_mut()
            .and_then(|hook| hook.take_load(channel))
        {
            loads.push(load);
        }
    }
    if let Some(hook) = cx.hook.as_deref_mut() {
        if hook.opens(now) {
            cx.order(|| OrderEvent::WindowOpened);
            cx.plan(now, Event::Bridge);
        } else if let Some(next) = hook.next(now) {
            cx.plan(next, Event::Hook);
        }
    }
}

/// Writes those bytes of a line that have a strobe. False: they could not be.
fn store_bytes(memory: &mut Memories, addr: u64, strobes: u64, data: &[u8]) -> bool {
    let mut written = true;
    let mut at = 0;
    while at < data.len() {
        let run = (strobes >> at).trailing_ones() as usize;
        if run > 0 {
            let end = (at + run).min(data.len());
            let done = memory.write_beside(addr + at as u64, &data[at..end]);
            memory.lost_writes += u64::from(!done);
            written &= done;
        }
        at += run.max(1);
    }
    written
}

/// A line of a channel's queue is in the memory.
pub(crate) fn line_written(channel: u32, cx: &mut Cx) {
    cx.order(|| OrderEvent::QueueLineWritten {
        channel: channel as u8,
    });
    if let Some(hook) = cx.hook.as_deref_mut() {
        hook.line_written(channel as usize);
    }
    cx.plan(cx.now, Event::Hook);
}
