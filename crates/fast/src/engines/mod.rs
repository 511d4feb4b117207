// SPDX-License-Identifier: Apache-2.0

//! Near-data engines: the common part (registers, command page, NVMe commands, interrupt, memory
//! masters) and the trait of an engine kind. See docs/engines.md and hw/ip/engine_launch.

mod copy;
mod dict_decode;
mod launch;
mod mover;
mod nearpm;
mod nvme_source;
mod page;
mod pipeline;
mod ports;
mod registers;
mod row_shuffle;
mod scan;
mod sorter;

use design::engine::EngineInstance;
use spec::nvme::Status;

use crate::config::Config;
use crate::conflict_filter::ConflictFilter;
use crate::context::{Event, SimContext};
use crate::controller::{EngineCommand, EngineResult};
use crate::error::Error;
use crate::memory::Memories;

use launch::EngineUnit;
use nearpm::NearPm;
use ports::EnginePorts;

pub(crate) use nearpm::{line_written, record_restored};

/// Maximum number of arguments of a job: those that a page command has room for.
pub(crate) const MAX_ARGUMENTS: usize = 7;
/// Log2 of a block's bytes.
const BLOCK_BITS: u32 = 9;
/// Log2 of the unit in which NVMe commands of table engines give addresses.
const UNIT_BITS: u32 = 12;
/// Maximum number of outputs.
pub(crate) const MAX_OUTPUTS: usize = 4;

/// A job of an engine, from any source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    /// The arguments in the order of `engine.toml`.
    pub(crate) arguments: [u64; MAX_ARGUMENTS],
    /// A reserved field of the page command is not 0.
    pub(crate) malformed: bool,
}

/// The result of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobResult {
    /// The return value, `results` in `engine.toml`.
    pub(crate) result: u32,
    /// `outputs` in `engine.toml`.
    pub(crate) outputs: [u64; MAX_OUTPUTS],
}

/// An engine kind, which runs one job at a time. After each call the caller checks for the job's
/// end ([`Engine::take_result`]).
pub(crate) trait Engine: Send {
    /// Decodes an NVMe I/O command, or returns the status with which it is rejected.
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status>;

    /// The bits of the return value that mean that the job was stopped.
    fn stopped_mask(&self) -> u32;

    /// Status and dword 0 of the completion of an NVMe I/O command that was not stopped.
    fn completion_status(&self, end: &JobResult) -> (Status, u32);

    /// Starts a job. The engine is idle.
    fn start(&mut self, job: &Job, ports: &mut EnginePorts);

    /// Stops the current job early.
    fn stop(&mut self, ports: &mut EnginePorts);

    /// A wake-up that [`EnginePorts::wake`] scheduled is due.
    fn wake(&mut self, what: u32, ports: &mut EnginePorts);

    /// A part of a read burst has arrived; `end`: the last one. `ok`: the burst is within the
    /// engine's bounds.
    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts);

    /// A write burst was answered. `ok`: it is within the engine's bounds.
    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts);

    /// Takes the result of the current job if it has ended.
    fn take_result(&mut self) -> Option<JobResult>;

    /// Progress of the current or last job, in a unit of the engine kind.
    fn progress(&self) -> u64 {
        0
    }

    /// A register of this engine kind, by its offset.
    fn register(&self, _at: u64, _now: u64) -> Option<u32> {
        None
    }
}

/// A range in a job's arguments (hw/ip/engine_launch/rtl/engine_pkg.sv).
struct Range {
    begin: u64,
    end: u128,
}

impl Range {
    fn new(begin: u64, bytes: u64) -> Range {
        Range {
            begin,
            end: u128::from(begin) + u128::from(bytes),
        }
    }

    fn is_empty(&self) -> bool {
        self.end == u128::from(self.begin)
    }

    /// The range ends at 2^64 at the latest.
    fn fits(&self) -> bool {
        self.end <= 1 << 64
    }

    fn is_disjoint(&self, other: &Range) -> bool {
        u128::from(self.begin) >= other.end || u128::from(other.begin) >= self.end
    }
}

/// Maximum number of open bursts of an engine with two masters, or with one that shares their IDs.
fn bursts_of_two(config: &Config) -> usize {
    match config.storage.channels {
        1 => mover::BURSTS / 2,
        _ => mover::BURSTS,
    }
}

/// An engine of a kind, or `None` if only the RTL model has it. The kinds are those of
/// `engine.toml` and docs/architecture.md, "BARs".
fn make(instance: &EngineInstance, config: &Config) -> Option<Box<dyn Engine>> {
    match (instance.manifest.kind, instance.manifest.name.as_str()) {
        (16, "copy") => Some(Box::new(copy::Copy::new(config))),
        (17, "scan") => Some(Box::new(scan::Scan::new(config))),
        (20, "row_shuffle") => Some(Box::new(row_shuffle::RowShuffle::new(config))),
        (18, "dict_decode") => Some(Box::new(dict_decode::DictDecode::new(mover::BURSTS))),
        (19, "sorter") => Some(Box::new(sorter::Sorter::new(config, mover::BURSTS))),
        (21, "pipeline") => Some(Box::new(pipeline::Pipeline::new(config))),
        _ => None,
    }
}

/// The engine is NearPM, the only one that runs several jobs at a time.
pub(crate) fn is_nearpm(instance: &EngineInstance) -> bool {
    (instance.manifest.kind, instance.manifest.name.as_str()) == nearpm::KIND
}

/// Bytes that the engines of a design save at a power loss; 0: none.
pub(crate) fn last_bytes(config: &Config) -> usize {
    match config.engines.iter().any(is_nearpm) {
        true => nearpm::last_bytes(config.storage.channels as usize),
        false => 0,
    }
}

/// Refuses a device with an engine that only the RTL model has.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    let unknown =
        |instance: &&EngineInstance| !is_nearpm(instance) && make(instance, config).is_none();
    match config.engines.iter().find(unknown) {
        None => Ok(()),
        Some(instance) => Err(Error::Engine {
            name: instance.engine.name.clone(),
            engine: instance.engine.engine.clone(),
        }),
    }
}

/// Event kinds of an engine, in the upper bits of an event number. The lower bits belong to the
/// engine kind.
mod event_kind {
    pub(super) const BITS: u32 = 28;
    /// A wake-up of the engine kind.
    pub(super) const WAKE: u32 = 0;
    /// The answer of a burst outside the bounds.
    pub(super) const READ: u32 = 1;
    pub(super) const WRITE: u32 = 2;
    /// A job may start.
    pub(super) const LAUNCH: u32 = 3;
    /// An NVMe command is decoded.
    pub(super) const DECODED: u32 = 4;
    /// A page command is decoded.
    pub(super) const PAGE: u32 = 5;
    /// A job has ended.
    pub(super) const END: u32 = 6;
}

/// All engines of a device.
pub(crate) struct Engines {
    /// The engines that run one job at a time, by number.
    units: Vec<Option<EngineUnit>>,
    nearpm: Option<(usize, NearPm)>,
    /// NVMe commands that have ended.
    ended: Vec<(u16, EngineResult)>,
}

impl Engines {
    /// The engines of a design, after a reset. Engines that [`check`] rejects are left out.
    pub(crate) fn new(config: &Config) -> Engines {
        let unit = |(number, instance)| {
            let engine = make(instance, config)?;
            Some(EngineUnit::new(number, instance, config, engine))
        };
        let nearpm = config.engines.iter().position(is_nearpm);
        let nearpm = nearpm.map(|n| (n, NearPm::new(n as u8, &config.engines[n], config)));
        Engines {
            units: (0..).zip(&config.engines).map(unit).collect(),
            nearpm,
            ended: Vec::new(),
        }
    }

    /// Restores the saved state of an engine with a conflict filter, and makes the filter. No
    /// command starts before an edge.
    pub(crate) fn restore(
        &mut self,
        config: &Config,
        from: u64,
        memory: &mut Memories,
    ) -> Option<Box<dyn ConflictFilter>> {
        let (number, nearpm) = self.nearpm.as_mut()?;
        let reserved = config.engines[*number].manifest.reserved.0;
        Some(nearpm.restore(config, reserved, from, memory))
    }

    /// The engine with the conflict filter, of a device that has one.
    fn filter_engine(&self) -> &NearPm {
        let nearpm = self.nearpm.as_ref();
        &nearpm.expect("an engine has made the conflict filter").1
    }

    /// Saves the state of the engine with the filter at a power loss or a function reset. False: it
    /// was not saved completely.
    pub(crate) fn save(&self, filter: &dyn ConflictFilter, memory: &mut Memories) -> bool {
        self.filter_engine().save(filter, memory)
    }

    /// The writes of [`Engines::save`]: start address and bytes.
    pub(crate) fn last_writes(&self, filter: &dyn ConflictFilter) -> (u64, Vec<u8>) {
        self.filter_engine().last_writes(filter)
    }

    /// Issues all accesses that wait in the conflict filter. Returns the loads that may continue.
    pub(crate) fn issue_waiting_accesses(&self, ctx: &mut SimContext) -> Vec<u32> {
        let mut loads = Vec::new();
        if self.nearpm.is_some() {
            nearpm::issue_waiting_accesses(&mut loads, ctx);
        }
        loads
    }

    /// The engine with this number, which is no [`EngineUnit`].
    fn nearpm(&mut self, number: usize) -> &mut NearPm {
        let nearpm = self.nearpm.as_mut().filter(|(own, _)| *own == number);
        &mut nearpm.expect("it is the only other engine").1
    }

    /// Starts commands of NearPM that are ready.
    pub(crate) fn dispatch(&mut self, ctx: &mut SimContext) {
        if let Some((_, nearpm)) = &mut self.nearpm {
            nearpm.dispatch(ctx);
        }
    }

    /// No engine has work.
    pub(crate) fn is_idle(&self) -> bool {
        let nearpm = self.nearpm.as_ref();
        self.units.iter().flatten().all(EngineUnit::is_idle)
            && nearpm.is_none_or(|(_, nearpm)| nearpm.is_idle())
    }

    /// The engine that owns a BAR4 offset, and the offset in its registers.
    fn unit_at(&mut self, offset: u64) -> Option<(&mut EngineUnit, u64)> {
        let unit = self
            .units
            .iter_mut()
            .flatten()
            .find(|unit| unit.place.contains(&offset))?;
        let at = offset - unit.place.start;
        Some((unit, at))
    }

    /// Reads a BAR4 dword; `None`: it belongs to no engine.
    pub(crate) fn read_register(
        &mut self,
        offset: u64,
        now: u64,
        filter: Option<&dyn ConflictFilter>,
    ) -> Option<u32> {
        if let (Some((_, nearpm)), Some(filter)) = (&mut self.nearpm, filter) {
            if nearpm.place.contains(&offset) {
                return Some(nearpm.read_register(offset - nearpm.place.start, filter));
            }
        }
        self.unit_at(offset)
            .map(|(unit, at)| unit.read_register(at, now))
    }

    /// Writes the bits `bits` of a BAR4 dword. False: it belongs to no engine.
    pub(crate) fn write_register(
        &mut self,
        offset: u64,
        value: u32,
        bits: u32,
        ctx: &mut SimContext,
    ) -> bool {
        match self.unit_at(offset) {
            Some((unit, at)) => {
                unit.write_register(at, value, bits, ctx);
                true
            }
            None => match &mut self.nearpm {
                Some((_, nearpm)) if nearpm.place.contains(&offset) => {
                    nearpm.write_register(offset - nearpm.place.start, value, bits, ctx);
                    true
                }
                _ => false,
            },
        }
    }

    /// A store to the command pages, at a BAR4 offset. `stores`: number of earlier stores to the PM
    /// window. False: a part of it is outside the pages.
    pub(crate) fn write_page(
        &mut self,
        offset: u64,
        data: &[u8],
        stores: u64,
        answered: u64,
        ctx: &mut SimContext,
    ) -> bool {
        let mut ok = true;
        page::for_each_page(offset, data.len(), |page, at, from, len| {
            let data = &data[from..from + len];
            if let Some((_, nearpm)) = &mut self.nearpm {
                if nearpm.page_at == Some(page) {
                    return nearpm.write_page(at, data, stores, ctx);
                }
            }
            let mut units = self.units.iter_mut().flatten();
            match units.find(|u| u.page_at == Some(page)) {
                Some(unit) => unit.write_page(at, data, stores, answered, ctx),
                None => ok = false,
            }
        });
        ok
    }

    /// A load from the command pages; `None`: a part of it is outside the pages.
    pub(crate) fn read_page(&self, offset: u64, len: u32) -> Option<Vec<u8>> {
        let mut data = Vec::with_capacity(len as usize);
        let mut ok = true;
        page::for_each_page(offset, len as usize, |page, at, _, len| {
            if let Some((_, nearpm)) = &self.nearpm {
                if nearpm.page_at == Some(page) {
                    return nearpm.read_page(at, len, &mut data);
                }
            }
            let mut units = self.units.iter().flatten();
            let found = units.find(|u| u.page_at == Some(page));
            match found.and_then(|unit| unit.page.as_ref()) {
                Some(page) => page.read(at, len, &mut data),
                None => ok = false,
            }
        });
        ok.then_some(data)
    }

    /// The first `answered` stores to the PM window have all been answered.
    pub(crate) fn stores_answered(&mut self, answered: u64, ctx: &mut SimContext) {
        let units = self.units.iter_mut().flatten();
        units.for_each(|unit| unit.accept_page_command(answered, ctx));
        if let Some(filter) = ctx.filter.as_deref_mut() {
            filter.set_answered_stores(answered);
            ctx.schedule(ctx.now, Event::ConflictFilter);
        }
    }

    /// An engine can accept an NVMe command.
    pub(crate) fn has_room(&self, engine: usize) -> bool {
        let unit = self.units.get(engine);
        unit.is_some_and(|unit| unit.as_ref().is_some_and(|unit| unit.nvme.has_room()))
    }

    /// An engine that has room accepts an NVMe command.
    pub(crate) fn start_command(
        &mut self,
        engine: usize,
        command: EngineCommand,
        ctx: &mut SimContext,
    ) {
        let unit = self.units[engine].as_mut();
        unit.expect("an engine has accepted the command")
            .start_command(command, ctx);
    }

    /// Stops the NVMe command of a slot early.
    pub(crate) fn stop_command(&mut self, engine: usize, slot: u16, ctx: &mut SimContext) {
        let unit = self.units[engine].as_mut();
        let unit = unit.expect("an engine has accepted the command");
        unit.stop_command(slot, &mut self.ended, ctx);
    }

    /// Takes the next NVMe command that has ended.
    pub(crate) fn next_ended_command(&mut self) -> Option<(u16, EngineResult)> {
        self.ended.pop()
    }

    /// An event of an engine is due.
    pub(crate) fn handle_event(
        &mut self,
        engine: u8,
        event: u32,
        answered: u64,
        ctx: &mut SimContext,
    ) {
        let number = usize::from(engine);
        match &mut self.units[number] {
            Some(unit) => unit.handle_event(event, answered, &mut self.ended, ctx),
            None => self.nearpm(number).handle_event(event, ctx),
        }
    }

    /// A part of a read burst has arrived.
    pub(crate) fn read_answered(&mut self, tag: u32, end: bool, ctx: &mut SimContext) {
        let (engine, burst) = ports::burst_of(tag);
        match &mut self.units[engine] {
            Some(unit) => unit.read_answered(burst, end, true, ctx),
            None if end => self.nearpm(engine).burst_answered(burst, true, ctx),
            None => {}
        }
    }

    /// A write burst was answered.
    pub(crate) fn write_answered(&mut self, tag: u32, ctx: &mut SimContext) {
        let (engine, burst) = ports::burst_of(tag);
        match &mut self.units[engine] {
            Some(unit) => unit.write_answered(burst, true, ctx),
            None => self.nearpm(engine).burst_answered(burst, true, ctx),
        }
    }
}
