//! Crash consistency near memory (hw/engine/nearpm): takes commands in the order of the host's accesses, and makes logs, copies and
//! checkpoints of what the host goes on with, behind an access hook.

mod bits;
mod contexts;
mod hook;
mod job;
mod mover;
mod save;
mod table;
mod unit;

use std::ops::Range;

use design::engine::Plugged;
use spec::nearpm::Command;

use self::contexts::{Contexts, Taken};
pub(crate) use self::hook::{Hook, Store};
use self::mover::NUMBERS;
use self::unit::Unit;
use super::page::Page;
use super::ports::{Ports, Reach};
use super::{what, End};
use crate::config::Config;
use crate::cx::{Cx, Event, TAG_LINE};
use crate::memory::{master, Memories};

/// The type in the status block, and the name in `engine.toml`.
pub(super) const KIND: (u32, &str) = (22, "nearpm");
/// Units of a device.
const UNITS: u32 = 4;
/// Cycles from a command's store until a unit can have it.
const TAKE: u64 = 8;
/// Cycles until a device without anything to restore opens, and for each line that is.
const OPEN: u64 = 80;
const RESTORE: u64 = 2;
/// Lines of a queue that may wait in front of the memory.
const IN_FRONT: u32 = 4;
/// The AXI ID of lines that leave the queue: none of the PM window's.
const LINE_ID: u16 = 64;

/// The engine of a device.
pub(super) struct NearPm {
    number: u8,
    /// Its registers in BAR4: there are none but those that read 0.
    pub(super) place: Range<u64>,
    pub(super) page_at: Option<u64>,
    reach: Reach,
    page: Page,
    contexts: Contexts,
    units: Vec<Unit>,
}

impl NearPm {
    pub(super) fn new(number: u8, plugged: &Plugged, config: &Config) -> NearPm {
        let manifest = &plugged.manifest;
        NearPm {
            number,
            place: plugged.offset..plugged.offset + manifest.registers.0,
            page_at: plugged.page,
            reach: Reach::new(plugged, config),
            page: Page::new(manifest.arguments.len()),
            contexts: Contexts::new(config.storage.bytes - manifest.reserved.0),
            units: (0..UNITS).map(Unit::new).collect(),
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.page.is_quiet() && self.units.iter().all(Unit::rests)
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
            let command = match job.malformed {
                true => None,
                false => Command::from_arguments(&job.arguments),
            };
            match (self.contexts.take(command), cx.hook.as_deref_mut()) {
                (Ok(Taken::Job(job)), Some(hook)) => {
                    hook.insert(line, job, stores, cx.now + TAKE);
                    cx.after(TAKE, Event::Hook);
                }
                (Ok(_), _) => self.page.end_line(line, &End::default()),
                (Err(refusal), _) => {
                    let end = End {
                        result: refusal as u32,
                        ..End::default()
                    };
                    self.page.end_line(line, &end);
                }
            }
        }
    }

    /// Commands that may begin do so, as units are free.
    pub(super) fn dispatch(&mut self, cx: &mut Cx) {
        while let Some(unit) = self.units.iter().position(Unit::rests) {
            let now = cx.now;
            let Some(hook) = cx.hook.as_deref_mut() else {
                return;
            };
            match hook.begin(now) {
                Ok((command, job)) => {
                    self.with_unit(unit, cx, |unit, ports| unit.begin(command, job, ports));
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
        let (unit, about) = ((number >> 1) as usize, number & 1);
        let ended = self.with_unit(unit, cx, |unit, ports| unit.wake(about, ports));
        let Some(ended) = ended.flatten() else {
            return;
        };
        if ended.result != 0 && ended.job.uses_log() {
            self.contexts.close(ended.job.log);
        }
        let mut end = End {
            result: ended.result,
            ..End::default()
        };
        end.outputs[0] = ended.value;
        self.page.end_line(ended.command, &end);
        if let Some(hook) = cx.hook.as_deref_mut() {
            hook.end(ended.command);
        }
        cx.plan(cx.now, Event::Hook);
    }

    /// A burst has ended.
    pub(super) fn answered(&mut self, burst: u32, fine: bool, cx: &mut Cx) {
        let (unit, burst) = ((burst / NUMBERS) as usize, burst % NUMBERS);
        self.with_unit(unit, cx, |unit, ports| unit.answered(burst, fine, ports));
    }

    /// The power fails, or the function is reset.
    pub(super) fn save(&self, hook: &Hook, memory: &mut Memories) {
        save::save(&self.contexts, hook, memory);
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
        let lines = save::restore(&mut self.contexts, &mut hook, memory);
        hook.close_until(from + OPEN + RESTORE * lines);
        Box::new(hook)
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
            store_bytes(cx.memory, line.addr, line.strobes, &line.data);
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
            cx.plan(now, Event::Bridge);
        } else if let Some(next) = hook.next(now) {
            cx.plan(next, Event::Hook);
        }
    }
}

/// Writes those bytes of a line that have a strobe.
fn store_bytes(memory: &mut Memories, addr: u64, strobes: u64, data: &[u8]) {
    let mut at = 0;
    while at < data.len() {
        let run = (strobes >> at).trailing_ones() as usize;
        if run > 0 {
            let end = (at + run).min(data.len());
            memory.write(addr + at as u64, &data[at..end]);
        }
        at += run.max(1);
    }
}

/// A line of a channel's queue is in the memory.
pub(crate) fn line_written(channel: u32, cx: &mut Cx) {
    if let Some(hook) = cx.hook.as_deref_mut() {
        hook.line_written(channel as usize);
    }
    cx.plan(cx.now, Event::Hook);
}
