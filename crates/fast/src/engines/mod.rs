//! Near-data engines: what all of them have (registers, a command page, NVMe I/O commands, an interrupt, memory masters), and a
//! place for what each kind does. As docs/engines.md and hw/ip/engine_launch say.

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
use crate::context::{Event, SimContext};
use crate::controller::{EngineCommand, EngineResult};
use crate::memory::Memories;

use launch::EngineUnit;
use nearpm::NearPm;
use ports::EnginePorts;

pub(crate) use nearpm::{
    issue_waiting_accesses, line_written, record_restored, ConflictFilter, StoreDecision,
};

/// Arguments of a job at most: what a command of a page holds.
pub(crate) const MAX_ARGUMENTS: usize = 7;
/// Bytes of a block, as a power of two.
const BLOCK_BITS: u32 = 9;
/// Bytes of a unit in which engines of tables tell places in NVMe commands, the same.
const UNIT_BITS: u32 = 12;
/// Outputs at most.
pub(crate) const MAX_OUTPUTS: usize = 4;

/// What an engine is asked to do, by whomever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    /// The arguments of `engine.toml`, in their order.
    pub(crate) arguments: [u64; MAX_ARGUMENTS],
    /// What has to be 0 in a command of the page is not.
    pub(crate) malformed: bool,
}

/// How a job has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobResult {
    /// The return value: `results` of `engine.toml`.
    pub(crate) result: u32,
    /// `outputs` of `engine.toml`.
    pub(crate) outputs: [u64; MAX_OUTPUTS],
}

/// What one kind of engine does: one job at a time. It looks whether a job has ended after each of these calls ([`Engine::take_result`]).
pub(crate) trait Engine: Send {
    /// What an NVMe I/O command comes to, or the status with which it is refused.
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status>;

    /// The bits of the return value that say that a job was stopped.
    fn stopped_mask(&self) -> u32;

    /// How an NVMe I/O command that has not been stopped is answered: status and dword 0.
    fn completion_status(&self, end: &JobResult) -> (Status, u32);

    /// Begins a job; none is under way.
    fn start(&mut self, job: &Job, ports: &mut EnginePorts);

    /// Ends the present job early.
    fn stop(&mut self, ports: &mut EnginePorts);

    /// A time has come that was asked for with [`EnginePorts::wake`].
    fn wake(&mut self, what: u32, ports: &mut EnginePorts);

    /// A part of a read burst has come: its last one, or not. `ok`: the burst lies within the engine's bounds.
    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts);

    /// A write burst has been answered. `ok`: it lies within the engine's bounds.
    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts);

    /// Takes how the present job has ended, if it has.
    fn take_result(&mut self) -> Option<JobResult>;

    /// How far the present job has come, or had, in what its kind counts.
    fn progress(&self) -> u64 {
        0
    }

    /// A register of its kind alone, by its offset.
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

    /// It does not go beyond 2^64.
    fn fits(&self) -> bool {
        self.end <= 1 << 64
    }

    fn is_disjoint(&self, other: &Range) -> bool {
        u128::from(self.begin) >= other.end || u128::from(other.begin) >= self.end
    }
}

/// Bursts that an engine with two masters, or with one that shares their IDs, has under way.
fn bursts_of_two(config: &Config) -> usize {
    match config.storage.channels {
        1 => mover::BURSTS / 2,
        _ => mover::BURSTS,
    }
}

/// An engine of this kind, or none if only the RTL has it. Kinds are those of `engine.toml`, and of docs/architecture.md, "BARs".
fn make(plugged: &EngineInstance, config: &Config) -> Option<Box<dyn Engine>> {
    match (plugged.manifest.kind, plugged.manifest.name.as_str()) {
        (16, "copy") => Some(Box::new(copy::Copy::new(config))),
        (17, "scan") => Some(Box::new(scan::Scan::new(config))),
        (20, "row_shuffle") => Some(Box::new(row_shuffle::RowShuffle::new(config))),
        (18, "dict_decode") => Some(Box::new(dict_decode::DictDecode::new(mover::BURSTS))),
        (19, "sorter") => Some(Box::new(sorter::Sorter::new(config, mover::BURSTS))),
        (21, "pipeline") => Some(Box::new(pipeline::Pipeline::new(config))),
        _ => None,
    }
}

/// It is the one that takes many jobs at a time.
pub(crate) fn is_nearpm(plugged: &EngineInstance) -> bool {
    (plugged.manifest.kind, plugged.manifest.name.as_str()) == nearpm::KIND
}

/// Bytes of what a design's engines write when the power fails; 0: they keep nothing.
pub(crate) fn last_bytes(config: &Config) -> usize {
    match config.engines.iter().any(is_nearpm) {
        true => nearpm::last_bytes(config.storage.channels as usize),
        false => 0,
    }
}

/// Says which engine of a device only the RTL has, in one line.
pub(crate) fn check(config: &Config) -> Result<(), String> {
    let unknown =
        |plugged: &&EngineInstance| !is_nearpm(plugged) && make(plugged, config).is_none();
    match config.engines.iter().find(unknown) {
        None => Ok(()),
        Some(plugged) => Err(format!(
            "engine {} ({}): the fast engine does not have it, only the rtl engine can run it",
            plugged.engine.name, plugged.engine.engine
        )),
    }
}

/// What an event of an engine is about: the upper bits of its number, the lower ones are the kind's own.
mod event_kind {
    pub(super) const BITS: u32 = 28;
    /// A time that the kind has asked for.
    pub(super) const WAKE: u32 = 0;
    /// A burst outside of the bounds is answered.
    pub(super) const READ: u32 = 1;
    pub(super) const WRITE: u32 = 2;
    /// A job may begin.
    pub(super) const LAUNCH: u32 = 3;
    /// An NVMe command has been looked at.
    pub(super) const DECODED: u32 = 4;
    /// A command of the page has been looked at.
    pub(super) const PAGE: u32 = 5;
    /// A job has ended.
    pub(super) const END: u32 = 6;
}

/// All engines of a device.
pub(crate) struct Engines {
    /// Those that do one job at a time, by their numbers.
    units: Vec<Option<EngineUnit>>,
    nearpm: Option<(usize, NearPm)>,
    /// NVMe commands that have ended.
    ended: Vec<(u16, EngineResult)>,
}

impl Engines {
    /// Those of a design, as after a reset. What [`check`] refuses is left out.
    pub(crate) fn new(config: &Config) -> Engines {
        let unit = |(number, plugged)| {
            let engine = make(plugged, config)?;
            Some(EngineUnit::new(number, plugged, config, engine))
        };
        let nearpm = config.engines.iter().position(is_nearpm);
        let nearpm = nearpm.map(|n| (n, NearPm::new(n as u8, &config.engines[n], config)));
        Engines {
            units: (0..).zip(&config.engines).map(unit).collect(),
            nearpm,
            ended: Vec::new(),
        }
    }

    /// Brings back what an engine with the access filter has kept; nothing begins before an edge.
    pub(crate) fn restore(
        &mut self,
        config: &Config,
        from: u64,
        memory: &mut Memories,
    ) -> Option<Box<ConflictFilter>> {
        let (number, nearpm) = self.nearpm.as_mut()?;
        let reserved = config.engines[*number].manifest.reserved.0;
        Some(nearpm.restore(config, reserved, from, memory))
    }

    /// The power fails, or the function is reset: such an engine keeps what it has. False: not all of that could be written.
    pub(crate) fn save(&self, filter: &ConflictFilter, memory: &mut Memories) -> bool {
        let nearpm = self.nearpm.as_ref();
        nearpm.is_none_or(|(_, nearpm)| nearpm.save(filter, memory))
    }

    /// What [`Engines::save`] would write, and where.
    pub(crate) fn last_writes(&self, filter: &ConflictFilter) -> (u64, Vec<u8>) {
        let nearpm = self.nearpm.as_ref();
        let writes = nearpm.map(|(_, nearpm)| nearpm.last_writes(filter));
        writes.unwrap_or_default()
    }

    fn unit(&mut self, number: usize) -> Option<&mut EngineUnit> {
        self.units.get_mut(number)?.as_mut()
    }

    fn nearpm(&mut self, number: usize) -> Option<&mut NearPm> {
        let nearpm = self.nearpm.as_mut().filter(|(own, _)| *own == number);
        nearpm.map(|(_, nearpm)| nearpm)
    }

    /// Commands of an engine with the access filter may begin.
    pub(crate) fn dispatch(&mut self, ctx: &mut SimContext) {
        if let Some((_, nearpm)) = &mut self.nearpm {
            nearpm.dispatch(ctx);
        }
    }

    /// None of them works.
    pub(crate) fn is_idle(&self) -> bool {
        let nearpm = self.nearpm.as_ref();
        self.units.iter().flatten().all(EngineUnit::is_idle)
            && nearpm.is_none_or(|(_, nearpm)| nearpm.is_idle())
    }

    /// The engine whose registers a place in BAR4 is among.
    fn unit_at(&mut self, offset: u64) -> Option<(&mut EngineUnit, u64)> {
        let unit = self
            .units
            .iter_mut()
            .flatten()
            .find(|unit| unit.place.contains(&offset))?;
        let at = offset - unit.place.start;
        Some((unit, at))
    }

    /// A word of BAR4; `None` where no engine is.
    pub(crate) fn read_register(
        &mut self,
        offset: u64,
        now: u64,
        filter: Option<&ConflictFilter>,
    ) -> Option<u32> {
        if let Some((_, nearpm)) = &mut self.nearpm {
            if nearpm.place.contains(&offset) {
                return Some(nearpm.read_register(offset - nearpm.place.start, filter));
            }
        }
        self.unit_at(offset)
            .map(|(unit, at)| unit.read_register(at, now))
    }

    /// Writes the bits `bits` of a word of BAR4. False: no engine is there.
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

    /// A store to the command pages, at an offset in BAR4. `stores`: how many the PM window has had before. False: a part of it is
    /// in no page.
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

    /// A load from them; `None`: a part of it is in no page.
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

    /// So many stores of the PM window have been answered, all that came before these included.
    pub(crate) fn stores_answered(&mut self, answered: u64, ctx: &mut SimContext) {
        let units = self.units.iter_mut().flatten();
        units.for_each(|unit| unit.accept_page_command(answered, ctx));
        if let Some(filter) = ctx.filter.as_deref_mut() {
            filter.set_answered_stores(answered);
            ctx.schedule(ctx.now, Event::ConflictFilter);
        }
    }

    /// An engine has room for an NVMe command.
    pub(crate) fn has_room(&self, engine: usize) -> bool {
        let unit = self.units.get(engine);
        unit.is_some_and(|unit| unit.as_ref().is_some_and(|unit| unit.nvme.has_room()))
    }

    /// An NVMe command comes to an engine that has room.
    pub(crate) fn start_command(
        &mut self,
        engine: usize,
        command: EngineCommand,
        ctx: &mut SimContext,
    ) {
        if let Some(unit) = self.unit(engine) {
            unit.start_command(command, ctx);
        }
    }

    /// The NVMe command of a slot is to end early.
    pub(crate) fn stop_command(&mut self, engine: usize, slot: u16, ctx: &mut SimContext) {
        if let Some(unit) = self.units.get_mut(engine).and_then(Option::as_mut) {
            unit.stop_command(slot, &mut self.ended, ctx);
        }
    }

    /// Takes an NVMe command that has ended.
    pub(crate) fn next_ended_command(&mut self) -> Option<(u16, EngineResult)> {
        self.ended.pop()
    }

    /// Something that was planned for an engine.
    pub(crate) fn handle_event(
        &mut self,
        engine: u8,
        event: u32,
        answered: u64,
        ctx: &mut SimContext,
    ) {
        let number = usize::from(engine);
        if let Some(unit) = self.units.get_mut(number).and_then(Option::as_mut) {
            unit.handle_event(event, answered, &mut self.ended, ctx);
        } else if let Some(nearpm) = self.nearpm(number) {
            nearpm.handle_event(event, ctx);
        }
    }

    /// A part of a read burst has come.
    pub(crate) fn read_answered(&mut self, tag: u32, end: bool, ctx: &mut SimContext) {
        let (engine, burst) = ports::burst_of(tag);
        if let Some(unit) = self.unit(engine) {
            unit.read_answered(burst, end, true, ctx);
        } else if let (Some(nearpm), true) = (self.nearpm(engine), end) {
            nearpm.burst_answered(burst, true, ctx);
        }
    }

    /// A write burst has been answered.
    pub(crate) fn write_answered(&mut self, tag: u32, ctx: &mut SimContext) {
        let (engine, burst) = ports::burst_of(tag);
        if let Some(unit) = self.unit(engine) {
            unit.write_answered(burst, true, ctx);
        } else if let Some(nearpm) = self.nearpm(engine) {
            nearpm.burst_answered(burst, true, ctx);
        }
    }
}
