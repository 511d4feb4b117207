//! One engine in its place: the sources of its jobs take turns (engine_launch).

use std::ops::Range;

use design::engine::EngineInstance;

use crate::config::Config;
use crate::controller::{EngineCommand, EngineEnd};
use crate::cx::{Cx, Event};

use super::nvme::{Kept, Nvme};
use super::page::Page;
use super::ports::{Ports, Reach};
use super::registers::Registers;
use super::{what, End, Engine, Job};

/// Sources of jobs, in the order of their turns.
const REGISTERS: usize = 0;
const NVME: usize = 1;
const PAGE: usize = 2;
const SOURCES: usize = 3;

/// Cycles from a job that is wanted to its start, with an engine at rest: the source's register, the turn, the start.
const LAUNCH: u64 = 3;
/// From the end of a job to the next one's turn.
const NEXT: u64 = 2;
/// An NVMe command is looked for among the slots, judged, and becomes a job; and its answer goes back.
const JUDGE: u64 = 15;
/// From a whole command of the page to its job: the page's registers, then a look.
const LOOK: u64 = 3;

/// An engine of a device.
pub(super) struct Unit {
    number: u8,
    /// Its registers in BAR4.
    pub(super) place: Range<u64>,
    /// Its page in BAR4.
    pub(super) page_at: Option<u64>,
    /// Its MSI-X vector.
    vector: Option<usize>,
    reach: Reach,
    pub(super) registers: Registers,
    pub(super) nvme: Nvme,
    pub(super) page: Option<Page>,
    /// Whose job is under way.
    running: Option<usize>,
    /// How it has ended.
    end: Option<End>,
    /// Who had the last turn.
    turn: usize,
    /// A launch is planned.
    planned: bool,
    engine: Box<dyn Engine>,
}

impl Unit {
    /// An engine at rest.
    pub(super) fn new(
        number: u8,
        plugged: &EngineInstance,
        config: &Config,
        engine: Box<dyn Engine>,
    ) -> Unit {
        let manifest = &plugged.manifest;
        let arguments = manifest.arguments.len();
        Unit {
            number,
            place: plugged.offset..plugged.offset + manifest.registers.0,
            page_at: plugged.page,
            vector: (manifest.interrupts > 0).then_some(plugged.vector.into()),
            reach: Reach::new(plugged, config),
            registers: Registers::new(arguments, manifest.outputs.len()),
            nvme: Nvme::default(),
            page: plugged.page.map(|_| Page::new(arguments)),
            running: None,
            end: None,
            turn: PAGE,
            planned: false,
            engine,
        }
    }

    /// Nothing is asked for or under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.running.is_none()
            && !self.registers.wants
            && self.nvme.has_room()
            && self.page.as_ref().is_none_or(Page::is_quiet)
    }

    fn event(&self, about: u32) -> Event {
        Event::Engine(self.number, about << what::BITS)
    }

    /// A word of its registers.
    pub(super) fn read_register(&self, at: u64, now: u64) -> u32 {
        let own = self.engine.register(at, now);
        own.unwrap_or_else(|| self.registers.read(at))
    }

    /// Writes the bits `bits` of a register.
    pub(super) fn write_register(&mut self, at: u64, value: u32, bits: u32, cx: &mut Cx) {
        self.registers.write(at, value, bits);
        if self.registers.stop {
            self.stop_source(REGISTERS, &mut Vec::new(), cx);
        }
        self.request(cx);
        self.kick(LAUNCH, cx);
    }

    /// Asks for an interrupt if there is a reason since the last time.
    fn request(&mut self, cx: &mut Cx) {
        if self.registers.rises() {
            if let Some(vector) = self.vector {
                cx.msix.request(vector);
            }
        }
    }

    /// Bytes come into the page; see [`super::Engines::write_page`].
    pub(super) fn write_page(
        &mut self,
        at: usize,
        data: &[u8],
        stores: u64,
        answered: u64,
        cx: &mut Cx,
    ) {
        if let Some(page) = &mut self.page {
            page.write(at, data, stores);
        }
        self.next_of_page(answered, cx);
    }

    /// Takes the page's next command, if it may.
    pub(super) fn next_of_page(&mut self, answered: u64, cx: &mut Cx) {
        let page = self.page.as_mut();
        if page.is_some_and(|page| page.take(answered)) {
            cx.after(LOOK, self.event(what::PAGE));
        }
    }

    /// An NVMe command comes; there is room.
    pub(super) fn command(&mut self, command: EngineCommand, cx: &mut Cx) {
        self.nvme.0 = Some(Kept {
            command,
            job: None,
            stop: false,
        });
        cx.after(JUDGE, self.event(what::JUDGED));
    }

    /// The NVMe command of a slot is to end early.
    pub(super) fn stop_command(
        &mut self,
        slot: u16,
        ended: &mut Vec<(u16, EngineEnd)>,
        cx: &mut Cx,
    ) {
        match &mut self.nvme.0 {
            Some(kept) if kept.command.slot == slot => kept.stop = true,
            _ => return,
        }
        if self.nvme.wants().0 {
            self.stop_source(NVME, ended, cx);
        }
    }

    /// The job of a source is to end: it is told the engine, or the job ends at once.
    fn stop_source(&mut self, source: usize, ended: &mut Vec<(u16, EngineEnd)>, cx: &mut Cx) {
        if self.running == Some(source) {
            if self.end.is_none() {
                self.with_engine(cx, |engine, ports| engine.stop(ports));
            }
        } else {
            let end = End {
                result: self.engine.stopped(),
                ..End::default()
            };
            self.over(source, &end, ended, cx);
        }
    }

    /// Calls the engine, and looks whether its job has ended.
    fn with_engine(&mut self, cx: &mut Cx, call: impl FnOnce(&mut dyn Engine, &mut Ports)) {
        let mut ports = Ports {
            cx,
            number: self.number,
            reach: &self.reach,
            part: 0,
        };
        call(&mut *self.engine, &mut ports);
        if let Some(end) = self.engine.ended() {
            self.end = Some(end);
            cx.after(1, self.event(what::END));
        }
    }

    /// What a source asks for: a job, and its end.
    fn wants(&self, source: usize) -> (bool, bool) {
        match source {
            REGISTERS => (self.registers.wants, self.registers.stop),
            NVME => self.nvme.wants(),
            _ => {
                let page = self.page.as_ref();
                (page.is_some_and(|page| page.job.is_some()), false)
            }
        }
    }

    /// Plans a launch if somebody wants one.
    fn kick(&mut self, cycles: u64, cx: &mut Cx) {
        let wanted = (0..SOURCES).any(|source| self.wants(source) == (true, false));
        if self.running.is_none() && !self.planned && wanted {
            self.planned = true;
            cx.after(cycles, self.event(what::LAUNCH));
        }
    }

    /// The next source's job begins.
    fn launch(&mut self, cx: &mut Cx) {
        self.planned = false;
        let mut turns = (1..=SOURCES).map(|n| (self.turn + n) % SOURCES);
        let Some(source) = turns.find(|&source| self.wants(source) == (true, false)) else {
            return;
        };
        let page = self.page.as_ref();
        let job: Option<Job> = match source {
            REGISTERS => Some(self.registers.job()),
            NVME => self.nvme.0.as_ref().and_then(|kept| kept.job),
            _ => page.and_then(|page| page.job),
        };
        if let Some(job) = job {
            self.turn = source;
            self.running = Some(source);
            self.with_engine(cx, |engine, ports| engine.start(&job, ports));
        }
    }

    /// A source's job has ended.
    fn over(&mut self, source: usize, end: &End, ended: &mut Vec<(u16, EngineEnd)>, cx: &mut Cx) {
        match source {
            REGISTERS => {
                self.registers.ended(end);
                self.request(cx);
            }
            NVME => {
                if let Some(kept) = self.nvme.0.take() {
                    let stopped = kept.stop && end.result & self.engine.stopped() != 0;
                    let end = match stopped {
                        true => EngineEnd::Stopped,
                        false => {
                            let (status, dw0) = self.engine.answer(end);
                            EngineEnd::Done(status, dw0)
                        }
                    };
                    ended.push((kept.command.slot, end));
                }
            }
            _ => {
                if let Some(page) = &mut self.page {
                    page.ended(end);
                }
            }
        }
    }

    /// Something that was planned.
    pub(super) fn handle(
        &mut self,
        event: u32,
        answered: u64,
        ended: &mut Vec<(u16, EngineEnd)>,
        cx: &mut Cx,
    ) {
        let number = event & ((1 << what::BITS) - 1);
        match event >> what::BITS {
            what::WAKE => self.with_engine(cx, |engine, ports| engine.wake(number, ports)),
            what::READ => self.read(number, true, false, cx),
            what::WRITE => self.written(number, false, cx),
            what::LAUNCH => self.launch(cx),
            what::JUDGED => self.judged(ended, cx),
            what::PAGE => {
                if let Some(page) = &mut self.page {
                    page.look();
                }
                self.kick(NEXT, cx);
            }
            _ => {
                if let (Some(source), Some(end)) = (self.running.take(), self.end.take()) {
                    self.over(source, &end, ended, cx);
                    self.next_of_page(answered, cx);
                    self.kick(NEXT, cx);
                }
            }
        }
    }

    /// The engine says what is wrong with an NVMe command; if nothing is, it becomes a job.
    fn judged(&mut self, ended: &mut Vec<(u16, EngineEnd)>, cx: &mut Cx) {
        let Some(kept) = &mut self.nvme.0 else { return };
        match self.engine.judge(&kept.command) {
            Err(status) => {
                ended.push((kept.command.slot, EngineEnd::Done(status, 0)));
                self.nvme.0 = None;
            }
            Ok(job) => {
                kept.job = Some(job);
                if kept.stop {
                    self.stop_source(NVME, ended, cx);
                }
                self.kick(NEXT, cx);
            }
        }
    }

    /// A part of a read burst has come; see [`Engine::read`].
    pub(super) fn read(&mut self, burst: u32, end: bool, fine: bool, cx: &mut Cx) {
        self.with_engine(cx, |engine, ports| engine.read(burst, end, fine, ports));
    }

    /// A write burst has been answered; see [`Engine::written`].
    pub(super) fn written(&mut self, burst: u32, fine: bool, cx: &mut Cx) {
        self.with_engine(cx, |engine, ports| engine.written(burst, fine, ports));
    }
}
