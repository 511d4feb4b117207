// SPDX-License-Identifier: Apache-2.0

//! One engine of the common launch logic: selects the next job among its sources (engine_launch).

use std::ops::Range;

use design::engine::EngineInstance;

use crate::config::Config;
use crate::context::{Event, SimContext};
use crate::controller::{EngineCommand, EngineResult};

use super::nvme_source::{NvmeSource, PendingCommand};
use super::page::Page;
use super::ports::{AccessBounds, EnginePorts};
use super::registers::Registers;
use super::{event_kind, Engine, JobResult};

/// Sources of jobs, in round-robin order.
const REGISTERS: usize = 0;
const NVME: usize = 1;
const PAGE: usize = 2;
const SOURCES: usize = 3;

/// Cycles from a job request to the job's start in an idle engine: request register, arbitration,
/// start.
const LAUNCH_CYCLES: u64 = 3;
/// Cycles from a job's end to the arbitration of the next job.
const NEXT_JOB_CYCLES: u64 = 2;
/// Cycles to find an NVMe command among the slots, decode it and make a job, and to return its
/// completion.
const DECODE_CYCLES: u64 = 15;
/// Cycles from a complete page command to its job: page registers, then decode.
const PAGE_DECODE_CYCLES: u64 = 3;

/// An engine of a device.
pub(super) struct EngineUnit {
    number: u8,
    /// Range of its registers in BAR4.
    pub(super) place: Range<u64>,
    /// Start of its page in BAR4.
    pub(super) page_at: Option<u64>,
    /// Its MSI-X vector.
    vector: Option<usize>,
    bounds: AccessBounds,
    pub(super) registers: Registers,
    pub(super) nvme: NvmeSource,
    pub(super) page: Option<Page>,
    /// Source of the running job.
    running: Option<usize>,
    /// Result of the job that has ended.
    end: Option<JobResult>,
    /// Source of the last job.
    last_source: usize,
    /// A launch is scheduled.
    scheduled: bool,
    engine: Box<dyn Engine>,
}

impl EngineUnit {
    /// An idle engine.
    pub(super) fn new(
        number: u8,
        instance: &EngineInstance,
        config: &Config,
        engine: Box<dyn Engine>,
    ) -> EngineUnit {
        let manifest = &instance.manifest;
        let arguments = manifest.arguments.len();
        EngineUnit {
            number,
            place: instance.offset..instance.offset + manifest.registers.0,
            page_at: instance.page,
            vector: (manifest.interrupts > 0).then_some(instance.vector.into()),
            bounds: AccessBounds::new(instance, config),
            registers: Registers::new(arguments, manifest.outputs.len()),
            nvme: NvmeSource::default(),
            page: instance.page.map(|_| Page::new(arguments)),
            running: None,
            end: None,
            last_source: PAGE,
            scheduled: false,
            engine,
        }
    }

    /// No job is requested or running.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none()
            && !self.registers.requested
            && self.nvme.has_room()
            && self.page.as_ref().is_none_or(Page::is_idle)
    }

    fn event(&self, about: u32) -> Event {
        Event::Engine(self.number, about << event_kind::BITS)
    }

    /// Reads a dword of the registers.
    pub(super) fn read_register(&self, at: u64, now: u64) -> u32 {
        let specific = self.engine.register(at, now);
        specific.unwrap_or_else(|| self.registers.read(at))
    }

    /// Writes the bits `bits` of a register.
    pub(super) fn write_register(&mut self, at: u64, value: u32, bits: u32, ctx: &mut SimContext) {
        self.registers.write(at, value, bits);
        if self.registers.stop {
            self.stop_source(REGISTERS, &mut Vec::new(), ctx);
        }
        self.update_interrupt(ctx);
        self.schedule_launch(LAUNCH_CYCLES, ctx);
    }

    /// Requests an interrupt if a new reason exists.
    fn update_interrupt(&mut self, ctx: &mut SimContext) {
        if self.registers.interrupt_rises() {
            if let Some(vector) = self.vector {
                ctx.msix.request(vector);
            }
        }
    }

    /// Bytes are written to the page; see [`super::Engines::write_page`].
    pub(super) fn write_page(
        &mut self,
        at: usize,
        data: &[u8],
        stores: u64,
        answered: u64,
        ctx: &mut SimContext,
    ) {
        self.own_page().write(at, data, stores);
        self.accept_page_command(answered, ctx);
    }

    /// The page of an engine that has received a store or a command there.
    fn own_page(&mut self) -> &mut Page {
        self.page.as_mut().expect("the engine has a page")
    }

    /// Accepts the page's next command if it is ready.
    pub(super) fn accept_page_command(&mut self, answered: u64, ctx: &mut SimContext) {
        let page = self.page.as_mut();
        if page.is_some_and(|page| page.accept_next(answered)) {
            ctx.schedule_after(PAGE_DECODE_CYCLES, self.event(event_kind::PAGE));
        }
    }

    /// Accepts an NVMe command. There is room.
    pub(super) fn start_command(&mut self, command: EngineCommand, ctx: &mut SimContext) {
        self.nvme.0 = Some(PendingCommand {
            command,
            job: None,
            stop: false,
        });
        ctx.schedule_after(DECODE_CYCLES, self.event(event_kind::DECODED));
    }

    /// Stops the NVMe command of a slot early.
    pub(super) fn stop_command(
        &mut self,
        slot: u16,
        ended: &mut Vec<(u16, EngineResult)>,
        ctx: &mut SimContext,
    ) {
        match &mut self.nvme.0 {
            Some(pending) if pending.command.slot == slot => pending.stop = true,
            _ => return, // it has just ended
        }
        if self.nvme.requests().0 {
            self.stop_source(NVME, ended, ctx);
        }
    }

    /// Stops the job of a source: the engine aborts it if it runs, otherwise it ends at once.
    fn stop_source(
        &mut self,
        source: usize,
        ended: &mut Vec<(u16, EngineResult)>,
        ctx: &mut SimContext,
    ) {
        if self.running == Some(source) {
            if self.end.is_none() {
                self.with_engine(ctx, |engine, ports| engine.stop(ports));
            }
        } else {
            let end = JobResult {
                result: self.engine.stopped_mask(),
                ..JobResult::default()
            };
            self.finish_job(source, &end, ended, ctx);
        }
    }

    /// Calls the engine, then checks for the job's end.
    fn with_engine(
        &mut self,
        ctx: &mut SimContext,
        call: impl FnOnce(&mut dyn Engine, &mut EnginePorts),
    ) {
        let mut ports = EnginePorts {
            ctx,
            number: self.number,
            bounds: &self.bounds,
            kernel: 0,
        };
        call(&mut *self.engine, &mut ports);
        if let Some(end) = self.engine.take_result() {
            self.end = Some(end);
            ctx.schedule_after(1, self.event(event_kind::END));
        }
    }

    /// The requests of a source: a job, and its stop.
    fn requests(&self, source: usize) -> (bool, bool) {
        match source {
            REGISTERS => (self.registers.requested, self.registers.stop),
            NVME => self.nvme.requests(),
            _ => {
                let page = self.page.as_ref();
                (page.is_some_and(|page| page.job.is_some()), false)
            }
        }
    }

    /// Schedules a launch if a source requests a job.
    fn schedule_launch(&mut self, cycles: u64, ctx: &mut SimContext) {
        let wanted = (0..SOURCES).any(|source| self.requests(source) == (true, false));
        if self.running.is_none() && !self.scheduled && wanted {
            self.scheduled = true;
            ctx.schedule_after(cycles, self.event(event_kind::LAUNCH));
        }
    }

    /// Starts the job of the next source.
    fn launch(&mut self, ctx: &mut SimContext) {
        self.scheduled = false;
        let mut order = (1..=SOURCES).map(|n| (self.last_source + n) % SOURCES);
        // The request may have been stopped.
        let Some(source) = order.find(|&source| self.requests(source) == (true, false)) else {
            return;
        };
        let page = self.page.as_ref();
        let job = match source {
            REGISTERS => Some(self.registers.job()),
            NVME => self.nvme.0.as_ref().and_then(|pending| pending.job),
            _ => page.and_then(|page| page.job),
        };
        let job = job.expect("the source requests a job");
        self.last_source = source;
        self.running = Some(source);
        self.with_engine(ctx, |engine, ports| engine.start(&job, ports));
    }

    /// The job of a source has ended.
    fn finish_job(
        &mut self,
        source: usize,
        end: &JobResult,
        ended: &mut Vec<(u16, EngineResult)>,
        ctx: &mut SimContext,
    ) {
        match source {
            REGISTERS => {
                self.registers.job_ended(end);
                self.update_interrupt(ctx);
            }
            NVME => {
                let pending = self.nvme.0.take();
                let pending = pending.expect("a command stays until its job has ended");
                let stopped = pending.stop && end.result & self.engine.stopped_mask() != 0;
                let end = match stopped {
                    true => EngineResult::Stopped,
                    false => {
                        let (status, dw0) = self.engine.completion_status(end);
                        EngineResult::Done(status, dw0)
                    }
                };
                ended.push((pending.command.slot, end));
            }
            _ => self.own_page().job_ended(end),
        }
    }

    /// A scheduled event is due.
    pub(super) fn handle_event(
        &mut self,
        event: u32,
        answered: u64,
        ended: &mut Vec<(u16, EngineResult)>,
        ctx: &mut SimContext,
    ) {
        let number = event & ((1 << event_kind::BITS) - 1);
        match event >> event_kind::BITS {
            event_kind::WAKE => self.with_engine(ctx, |engine, ports| engine.wake(number, ports)),
            event_kind::READ => self.read_answered(number, true, false, ctx),
            event_kind::WRITE => self.write_answered(number, false, ctx),
            event_kind::LAUNCH => self.launch(ctx),
            event_kind::DECODED => self.decode_nvme_command(ended, ctx),
            event_kind::PAGE => {
                self.own_page().make_job();
                self.schedule_launch(NEXT_JOB_CYCLES, ctx);
            }
            _ => {
                let source = self.running.take().expect("a job runs until its end");
                let end = self.end.take().expect("the engine has reported the end");
                self.finish_job(source, &end, ended, ctx);
                self.accept_page_command(answered, ctx);
                self.schedule_launch(NEXT_JOB_CYCLES, ctx);
            }
        }
    }

    /// The engine decodes the NVMe command: it is rejected or becomes a job.
    fn decode_nvme_command(&mut self, ended: &mut Vec<(u16, EngineResult)>, ctx: &mut SimContext) {
        let pending = self.nvme.0.as_mut();
        let pending = pending.expect("a command stays until it is decoded");
        match self.engine.decode_command(&pending.command) {
            Err(status) => {
                ended.push((pending.command.slot, EngineResult::Done(status, 0)));
                self.nvme.0 = None;
            }
            Ok(job) => {
                pending.job = Some(job);
                if pending.stop {
                    self.stop_source(NVME, ended, ctx);
                }
                self.schedule_launch(NEXT_JOB_CYCLES, ctx);
            }
        }
    }

    /// A part of a read burst has arrived; see [`Engine::read_answered`].
    pub(super) fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ctx: &mut SimContext) {
        self.with_engine(ctx, |engine, ports| {
            engine.read_answered(burst, end, ok, ports)
        });
    }

    /// A write burst was answered; see [`Engine::write_answered`].
    pub(super) fn write_answered(&mut self, burst: u32, ok: bool, ctx: &mut SimContext) {
        self.with_engine(ctx, |engine, ports| engine.write_answered(burst, ok, ports));
    }
}
