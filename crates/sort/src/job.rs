//! What one device does with a partition of a table.

use std::ops::Range;
use std::sync::Arc;

use driver::{Completion, Error, Host, NvmeDriver};
use sim::{Clock, Time};
use spec::nvme::Sqe;

use crate::pages::Shape as Pages;
use crate::report::Stage;
use crate::room::{unit, Room};
use crate::rows::Rows;
use crate::spill::{Spill, Spills};
use crate::transfer::{get, or_end, put, Data, Target};
use crate::watch::{Look, Watch, INTERVAL};
use crate::Progress;

/// Keys up to which the sorter writes nothing but indexes to its target.
const TWO_PASSES: u64 = 8 << 20;
/// Simulated time between two looks at whether to go on.
const PIECE: Time = Time::us(200);

/// Bytes of an entry of a list, and of its report (hw/engine/pipeline).
const ENTRY: usize = 64;
/// Asks for reports.
const REPORT: u32 = 1;

/// Opcodes of the engines' commands.
#[derive(Clone, Copy, Debug)]
pub struct Opcodes {
    pub sort: u8,
    pub shuffle: u8,
    pub decode: Option<u8>,
    /// Those are of entries in lists of a pipeline.
    pub lists: Option<Lists>,
}

impl Opcodes {
    /// Of entries in lists, whatever opcodes a design gives its engines.
    pub const OF_ENTRIES: Opcodes = Opcodes {
        sort: 0xD0,
        shuffle: 0xD8,
        decode: Some(0xD4),
        lists: None,
    };
}

/// An engine `pipeline`.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    pub opcode: u8,
    /// In its cycles it says how long entries took.
    pub clock: Clock,
}

/// A command of an engine.
struct Step {
    name: &'static str,
    sqe: Sqe,
    /// Of keys or rows.
    bytes: u64,
    /// What dword 0 of its completion counts.
    counted: Option<&'static str>,
}

/// A partition's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    /// Rows that the engine sorts; they come first.
    pub sorted: usize,
    pub row_bytes: usize,
    pub key_bytes: usize,
}

/// Where the engines find keys and rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub keys: Range<u64>,
    pub table: Range<u64>,
}

/// Where they work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    indexes: Range<u64>,
    scratch: Range<u64>,
    target: Range<u64>,
}

impl Shape {
    /// Room for what goes to a device.
    pub fn source(&self, room: &mut Room) -> Source {
        Source {
            keys: room.take((self.sorted * self.key_bytes) as u64),
            table: room.take((self.rows * self.row_bytes) as u64),
        }
    }

    /// Room to sort.
    pub fn work(&self, room: &mut Room) -> Work {
        let sorted = self.sorted as u64;
        let record = match self.key_bytes {
            4 => 8 * sorted,
            bytes => 2 * bytes as u64 * sorted,
        };
        let indexes = if sorted > TWO_PASSES {
            record
        } else {
            4 * sorted
        };
        Work {
            indexes: room.take(indexes),
            scratch: room.take(record),
            target: room.take(sorted * self.row_bytes as u64),
        }
    }
}

/// Keys that the engine `dict_decode` makes.
pub struct Decode {
    pub dictionary: Range<u64>,
    pub encoded: Range<u64>,
    pub pages: Pages,
}

/// A device's work.
pub struct Job {
    pub shape: Shape,
    pub source: Source,
    pub work: Work,
    /// What goes to the device before.
    pub put: Vec<(Range<u64>, Arc<Spill>)>,
    /// Where the rows come back to.
    pub spills: Spills,
    pub decode: Option<Decode>,
    pub opcodes: Opcodes,
    /// The sorter's argument.
    pub kind: u32,
    /// Of the rows that must come back, if it is known.
    pub digest: Option<u64>,
}

/// What a device has done.
pub struct Done {
    /// The sorted rows, and behind them those that the engine did not sort.
    pub rows: Rows,
    /// How many the engine sorted.
    pub sorted: usize,
    /// Of these rows.
    pub digest: u64,
    pub stages: Vec<Stage>,
    /// If it is watched.
    pub looks: Vec<Look>,
}

impl Job {
    /// Does it.
    pub fn run<H: Host>(
        &self,
        controller: &mut NvmeDriver<H>,
        progress: &Progress,
    ) -> driver::Result<Done> {
        let mut stages = Stages::new(controller, progress)?;
        let Job { shape, .. } = self;
        let (source, work) = (&self.source, &self.work);
        if !self.put.is_empty() {
            let parts = self.put.iter();
            stages.put(parts.map(|(place, data)| (place, &**data as &dyn Data)))?;
        }
        let count = shape.sorted as u32;
        let mut steps = Vec::new();
        if let (Some(decode), Some(opcode)) = (&self.decode, self.opcodes.decode) {
            let bytes = decode.encoded.end - decode.encoded.start;
            let command = Sqe::new(opcode)
                .with_cdw(10, unit(&decode.dictionary))
                .with_cdw(11, unit(&decode.encoded))
                .with_cdw(12, unit(&source.keys))
                .with_cdw(13, count)
                .with_cdw(14, bytes as u32)
                .with_cdw(15, decode.pages.dword());
            steps.push(Step {
                name: "decode",
                sqe: command,
                bytes,
                counted: Some("value"),
            });
        }
        if count > 0 {
            let sort = Sqe::new(self.opcodes.sort)
                .with_cdw(10, unit(&source.keys))
                .with_cdw(11, unit(&work.indexes))
                .with_cdw(12, unit(&work.scratch))
                .with_cdw(13, count)
                .with_cdw(14, self.kind);
            steps.push(Step {
                name: "sort",
                sqe: sort,
                bytes: (shape.sorted * shape.key_bytes) as u64,
                counted: None,
            });
            let shuffle = Sqe::new(self.opcodes.shuffle)
                .with_cdw(10, unit(&work.indexes))
                .with_cdw(11, unit(&source.table))
                .with_cdw(12, unit(&work.target))
                .with_cdw(13, count)
                .with_cdw(14, shape.rows as u32)
                .with_cdw(15, shape.row_bytes as u32);
            steps.push(Step {
                name: "shuffle",
                sqe: shuffle,
                bytes: (shape.sorted * shape.row_bytes) as u64,
                counted: Some("index"),
            });
        }
        match self.opcodes.lists {
            // It is read before its first entry runs, and its reports are written behind the last one: the sorter's scratch has room.
            Some(lists) if !steps.is_empty() => stages.list(&lists, &work.scratch, &steps)?,
            _ => steps.iter().try_for_each(|step| stages.command(step))?,
        }
        let sorted = (shape.sorted * shape.row_bytes) as u64;
        let all = (shape.rows * shape.row_bytes) as u64;
        let mut rows = or_end(self.spills.zeros(all), progress)?;
        let parts = [
            (work.target.start, 0..sorted),
            (source.table.start + sorted, sorted..all),
        ];
        stages.get(&parts, &mut rows)?;
        let rows = Rows::new(rows, shape.row_bytes);
        let Stages {
            done: stages,
            watch,
            ..
        } = stages;
        let digest = or_end(rows.digest(), progress)?;
        if self.digest.is_some_and(|wanted| wanted != digest) {
            let wrong = "the rows that came back are not those of the table";
            return Err(Error::Misbehaviour(wrong.into()));
        }
        Ok(Done {
            rows,
            sorted: shape.sorted,
            digest,
            stages,
            looks: watch.looks,
        })
    }
}

/// What is done with a device, stage by stage.
pub struct Stages<'a, H: Host> {
    pub controller: &'a mut NvmeDriver<H>,
    pub progress: &'a Progress,
    pub done: Vec<Stage>,
    watch: Watch,
}

impl<'a, H: Host> Stages<'a, H> {
    pub fn new(
        controller: &'a mut NvmeDriver<H>,
        progress: &'a Progress,
    ) -> driver::Result<Stages<'a, H>> {
        let watch = match progress.is_watched() {
            true => Watch::new(controller.host_mut())?,
            false => Watch::default(),
        };
        Ok(Stages {
            controller,
            progress,
            done: Vec::new(),
            watch,
        })
    }

    fn end(&mut self, name: &'static str, begin: Time, bytes: u64, commands: u64) {
        self.done.push(Stage {
            name,
            partition: 0,
            begin,
            end: self.controller.now(),
            bytes,
            commands,
        });
    }

    /// Writes bytes to their places.
    pub fn put<'d>(
        &mut self,
        parts: impl IntoIterator<Item = (&'d Range<u64>, &'d dyn Data)>,
    ) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (place, data) in parts {
            let watch = &mut self.watch;
            commands += put(self.controller, place.start, data, self.progress, watch)?;
            bytes += data.bytes();
        }
        self.end("put", begin, bytes, commands);
        Ok(())
    }

    /// Reads bytes from places on, each to its place in the target.
    pub fn get(&mut self, parts: &[(u64, Range<u64>)], out: &mut dyn Target) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (start, place) in parts {
            bytes += place.end - place.start;
            let (place, watch) = (place.clone(), &mut self.watch);
            commands += get(self.controller, *start, out, place, self.progress, watch)?;
        }
        self.end("get", begin, bytes, commands);
        Ok(())
    }

    /// Runs a command of an engine.
    fn command(&mut self, step: &Step) -> driver::Result<()> {
        let begin = self.controller.now();
        let completion = self.execute(step.sqe)?;
        check(step.name, completion, step.counted)?;
        self.progress.add(step.bytes);
        self.end(step.name, begin, step.bytes, 1);
        Ok(())
    }

    fn execute(&mut self, sqe: Sqe) -> driver::Result<Completion> {
        let sqe = sqe.with_nsid(self.controller.nsid());
        let interval = match self.progress.is_watched() {
            true => INTERVAL,
            false => PIECE,
        };
        let (progress, watch) = (self.progress, &mut self.watch);
        let mut looked = Ok(());
        let mut go_on = |host: &mut H| {
            looked = watch.pass(host);
            looked.is_ok() && progress.go_on()
        };
        let completion = (self.controller).execute_raw_while(0, sqe, interval, &mut go_on);
        looked?;
        self.watch.look(self.controller.host_mut())?;
        completion
    }

    /// Runs commands of engines as a list, which stands at `place`. The list is one command; its first stage has it.
    fn list(&mut self, lists: &Lists, place: &Range<u64>, steps: &[Step]) -> driver::Result<()> {
        let dwords = steps.iter().flat_map(|step| step.sqe.dw);
        let mut data: Vec<u8> = dwords.flat_map(u32::to_le_bytes).collect();
        data.resize(2 * ENTRY * steps.len(), 0);
        // What moves here is none of the table.
        let (aside, watch) = (Progress::default(), &mut self.watch);
        put(self.controller, place.start, &data, &aside, watch)?;
        let list = Sqe::new(lists.opcode)
            .with_cdw(10, unit(place))
            .with_cdw(13, steps.len() as u32)
            .with_cdw(14, REPORT);
        let mut completion = self.execute(list)?;
        let end = self.controller.now();
        let watch = &mut self.watch;
        let all = 0..data.len() as u64;
        get(self.controller, place.start, &mut data, all, &aside, watch)?;
        let reports = &data[ENTRY * steps.len()..];
        let dword = |step: usize, n: usize| {
            let bytes = &reports[ENTRY * step + 4 * n..][..4];
            bytes.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b))
        };
        let (mut name, mut counted, failed) = ("pipeline", None, completion.result as usize);
        if let Some(step) = steps.get(failed) {
            (name, counted) = (step.name, step.counted);
            completion.result = dword(failed, 1);
        }
        check(name, completion, counted)?;
        let took: Vec<Time> = (0..steps.len())
            .map(|step| lists.clock.edge(dword(step, 2).into()))
            .collect();
        let mut begin = took.iter().fold(end, |end, &took| end.saturating_sub(took));
        for (n, (step, took)) in steps.iter().zip(took).enumerate() {
            self.done.push(Stage {
                name: step.name,
                partition: 0,
                begin,
                end: begin + took,
                bytes: step.bytes,
                commands: u64::from(n == 0),
            });
            self.progress.add(step.bytes);
            begin += took;
        }
        Ok(())
    }
}

fn check(
    name: &'static str,
    mut completion: Completion,
    counted: Option<&str>,
) -> driver::Result<()> {
    completion.command = name;
    let outcome = completion.check();
    match (outcome, counted) {
        (Err(error), Some(what)) => {
            let position = completion.result;
            Err(Error::Invalid(format!("{error}, at {what} {position}")))
        }
        (outcome, _) => outcome,
    }
}
