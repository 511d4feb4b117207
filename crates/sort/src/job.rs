// SPDX-License-Identifier: Apache-2.0

//! The work of one device on one partition of a table.

use std::ops::Range;
use std::sync::Arc;

use driver::{Completion, Error, Host, NvmeDriver};
use sim::{Clock, Time};
use spec::nvme::Sqe;
use spec::tables::TWO_PASS_KEYS;

use crate::encoded_keys::EncodedShape;
use crate::region::{first_unit, RegionAllocator};
use crate::report::StageReport;
use crate::rows::SpilledRows;
use crate::sampler::{ChannelSample, ChannelSampler, INTERVAL};
use crate::spill::{Spill, Spills};
use crate::transfer::{get, or_stop_all, put, TransferSource, TransferTarget};
use crate::Progress;

/// Simulated time between two checks whether to continue.
const POLL_INTERVAL: Time = Time::us(200);

/// Bytes of an entry of a command list, and of its report (`hw/engine/pipeline`).
const ENTRY_BYTES: usize = 64;
/// Requests reports.
const REPORT_FLAG: u32 = 1;

/// Opcodes of the engines' commands.
#[derive(Clone, Copy, Debug)]
pub struct Opcodes {
    pub sort: u8,
    pub shuffle: u8,
    pub decode: Option<u8>,
    /// If set, the other opcodes are those of entries in command lists.
    pub lists: Option<CommandLists>,
}

impl Opcodes {
    /// Opcodes of list entries. They do not depend on the design.
    pub const OF_ENTRIES: Opcodes = Opcodes {
        sort: 0xD0,
        shuffle: 0xD8,
        decode: Some(0xD4),
        lists: None,
    };
}

/// The engine `pipeline`.
#[derive(Clone, Copy, Debug)]
pub struct CommandLists {
    pub opcode: u8,
    /// Reports count cycles of this clock.
    pub clock: Clock,
}

/// A command of an engine.
struct EngineCommand {
    name: &'static str,
    sqe: Sqe,
    /// Bytes of the keys or rows.
    bytes: u64,
    /// What dword 0 of a failed command's completion counts.
    counted: Option<&'static str>,
}

/// The sizes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionShape {
    pub rows: usize,
    /// Rows that the engine sorts. They come first.
    pub sorted: usize,
    pub row_bytes: usize,
    pub key_bytes: usize,
}

/// Where the engines read keys and rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInput {
    pub keys: Range<u64>,
    pub table: Range<u64>,
}

/// Where the engines write intermediate and sorted data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineWorkspace {
    indexes: Range<u64>,
    scratch: Range<u64>,
    target: Range<u64>,
}

impl PartitionShape {
    /// Allocates space for the data that is sent to a device.
    pub fn input(&self, regions: &mut RegionAllocator) -> EngineInput {
        EngineInput {
            keys: regions.allocate((self.sorted * self.key_bytes) as u64),
            table: regions.allocate((self.rows * self.row_bytes) as u64),
        }
    }

    /// Allocates the working space of a sort.
    pub fn workspace(&self, regions: &mut RegionAllocator) -> EngineWorkspace {
        let sorted = self.sorted as u64;
        let record = match self.key_bytes {
            4 => 8 * sorted,
            bytes => 2 * bytes as u64 * sorted,
        };
        let indexes = if sorted > TWO_PASS_KEYS {
            record
        } else {
            4 * sorted
        };
        EngineWorkspace {
            indexes: regions.allocate(indexes),
            scratch: regions.allocate(record),
            target: regions.allocate(sorted * self.row_bytes as u64),
        }
    }
}

/// Input of the engine `dict_decode`, which makes the keys.
pub struct DecodeInput {
    pub dictionary: Range<u64>,
    pub encoded: Range<u64>,
    pub pages: EncodedShape,
}

/// A job of a device.
pub struct SortJob {
    pub shape: PartitionShape,
    pub source: EngineInput,
    pub work: EngineWorkspace,
    /// Data that is written to the device first.
    pub put: Vec<(Range<u64>, Arc<Spill>)>,
    /// Storage for the rows that are read back.
    pub spills: Spills,
    pub decode: Option<DecodeInput>,
    pub opcodes: Opcodes,
    /// The sorter's argument.
    pub kind: u32,
    /// Expected digest of the rows that are read back, if known.
    pub digest: Option<u64>,
}

/// The result of a job.
pub struct JobResult {
    /// The sorted rows, followed by those that the engine did not sort.
    pub rows: SpilledRows,
    /// Number of rows that the engine sorted.
    pub sorted: usize,
    /// Digest of these rows.
    pub digest: u64,
    pub stages: Vec<StageReport>,
    /// Samples of the channels, if sampling is on.
    pub samples: Vec<ChannelSample>,
}

impl SortJob {
    /// Runs the job.
    pub fn run<H: Host>(
        &self,
        controller: &mut NvmeDriver<H>,
        progress: &Progress,
    ) -> driver::Result<JobResult> {
        let mut stages = StageRunner::new(controller, progress)?;
        let SortJob { shape, .. } = self;
        let (source, work) = (&self.source, &self.work);
        if !self.put.is_empty() {
            let parts = self.put.iter();
            stages.put(parts.map(|(place, data)| (place, &**data as &dyn TransferSource)))?;
        }
        let count = shape.sorted as u32;
        let mut steps = Vec::new();
        if let (Some(decode), Some(opcode)) = (&self.decode, self.opcodes.decode) {
            let bytes = decode.encoded.end - decode.encoded.start;
            let command = Sqe::new(opcode)
                .with_cdw(10, first_unit(&decode.dictionary))
                .with_cdw(11, first_unit(&decode.encoded))
                .with_cdw(12, first_unit(&source.keys))
                .with_cdw(13, count)
                .with_cdw(14, bytes as u32)
                .with_cdw(15, decode.pages.dword());
            steps.push(EngineCommand {
                name: "decode",
                sqe: command,
                bytes,
                counted: Some("value"),
            });
        }
        if count > 0 {
            let sort = Sqe::new(self.opcodes.sort)
                .with_cdw(10, first_unit(&source.keys))
                .with_cdw(11, first_unit(&work.indexes))
                .with_cdw(12, first_unit(&work.scratch))
                .with_cdw(13, count)
                .with_cdw(14, self.kind);
            steps.push(EngineCommand {
                name: "sort",
                sqe: sort,
                bytes: (shape.sorted * shape.key_bytes) as u64,
                counted: None,
            });
            let shuffle = Sqe::new(self.opcodes.shuffle)
                .with_cdw(10, first_unit(&work.indexes))
                .with_cdw(11, first_unit(&source.table))
                .with_cdw(12, first_unit(&work.target))
                .with_cdw(13, count)
                .with_cdw(14, shape.rows as u32)
                .with_cdw(15, shape.row_bytes as u32);
            steps.push(EngineCommand {
                name: "shuffle",
                sqe: shuffle,
                bytes: (shape.sorted * shape.row_bytes) as u64,
                counted: Some("index"),
            });
        }
        match self.opcodes.lists {
            // The list is read before its first entry runs, and its reports are written after the
            // last one. So both fit into the sorter's scratch.
            Some(lists) if !steps.is_empty() => stages.run_list(&lists, &work.scratch, &steps)?,
            _ => steps.iter().try_for_each(|step| stages.run_command(step))?,
        }
        let sorted = (shape.sorted * shape.row_bytes) as u64;
        let all = (shape.rows * shape.row_bytes) as u64;
        let mut rows = or_stop_all(self.spills.zeros(all), progress)?;
        let parts = [
            (work.target.start, 0..sorted),
            (source.table.start + sorted, sorted..all),
        ];
        stages.get(&parts, &mut rows)?;
        let rows = SpilledRows::new(rows, shape.row_bytes);
        let StageRunner {
            done: stages,
            sampler,
            ..
        } = stages;
        let digest = or_stop_all(rows.digest(), progress)?;
        if self.digest.is_some_and(|wanted| wanted != digest) {
            let wrong = "the rows that came back are not those of the table";
            return Err(Error::Misbehaviour(wrong.into()));
        }
        Ok(JobResult {
            rows,
            sorted: shape.sorted,
            digest,
            stages,
            samples: sampler.samples,
        })
    }
}

/// Runs the stages of a job, and records their times.
pub struct StageRunner<'a, H: Host> {
    pub controller: &'a mut NvmeDriver<H>,
    pub progress: &'a Progress,
    pub done: Vec<StageReport>,
    sampler: ChannelSampler,
}

impl<'a, H: Host> StageRunner<'a, H> {
    pub fn new(
        controller: &'a mut NvmeDriver<H>,
        progress: &'a Progress,
    ) -> driver::Result<StageRunner<'a, H>> {
        let sampler = match progress.is_sampled() {
            true => ChannelSampler::new(controller.host_mut())?,
            false => ChannelSampler::default(),
        };
        Ok(StageRunner {
            controller,
            progress,
            done: Vec::new(),
            sampler,
        })
    }

    fn record_stage(&mut self, name: &'static str, begin: Time, bytes: u64, commands: u64) {
        self.done.push(StageReport {
            name,
            partition: 0,
            begin,
            end: self.controller.now(),
            bytes,
            commands,
        });
    }

    /// Writes data to ranges of the namespace.
    pub fn put<'d>(
        &mut self,
        parts: impl IntoIterator<Item = (&'d Range<u64>, &'d dyn TransferSource)>,
    ) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (place, data) in parts {
            let sampler = &mut self.sampler;
            commands += put(self.controller, place.start, data, self.progress, sampler)?;
            bytes += data.bytes();
        }
        self.record_stage("put", begin, bytes, commands);
        Ok(())
    }

    /// Reads ranges of the namespace. Each part names its offset, and its range in the target.
    pub fn get(
        &mut self,
        parts: &[(u64, Range<u64>)],
        out: &mut dyn TransferTarget,
    ) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (start, place) in parts {
            bytes += place.end - place.start;
            let (place, sampler) = (place.clone(), &mut self.sampler);
            commands += get(self.controller, *start, out, place, self.progress, sampler)?;
        }
        self.record_stage("get", begin, bytes, commands);
        Ok(())
    }

    /// Runs a command of an engine.
    fn run_command(&mut self, step: &EngineCommand) -> driver::Result<()> {
        let begin = self.controller.now();
        let completion = self.execute(step.sqe)?;
        check_completion(step.name, completion, step.counted)?;
        self.progress.add(step.bytes);
        self.record_stage(step.name, begin, step.bytes, 1);
        Ok(())
    }

    fn execute(&mut self, sqe: Sqe) -> driver::Result<Completion> {
        let sqe = sqe.with_nsid(self.controller.nsid());
        let interval = match self.progress.is_sampled() {
            true => INTERVAL,
            false => POLL_INTERVAL,
        };
        let (progress, sampler) = (self.progress, &mut self.sampler);
        let mut sampled = Ok(());
        let mut should_continue = |host: &mut H| {
            sampled = sampler.sample_if_due(host);
            sampled.is_ok() && progress.should_continue()
        };
        let completion =
            (self.controller).execute_raw_while(0, sqe, interval, &mut should_continue);
        sampled?;
        self.sampler.sample(self.controller.host_mut())?;
        completion
    }

    /// Runs commands of engines as a list at `place`. The list is one NVMe command, counted in its
    /// first stage.
    fn run_list(
        &mut self,
        lists: &CommandLists,
        place: &Range<u64>,
        steps: &[EngineCommand],
    ) -> driver::Result<()> {
        let dwords = steps.iter().flat_map(|step| step.sqe.dw);
        let mut data: Vec<u8> = dwords.flat_map(u32::to_le_bytes).collect();
        data.resize(2 * ENTRY_BYTES * steps.len(), 0);
        // The list itself is not part of the reported progress.
        let (aside, sampler) = (Progress::default(), &mut self.sampler);
        put(self.controller, place.start, &data, &aside, sampler)?;
        let list = Sqe::new(lists.opcode)
            .with_cdw(10, first_unit(place))
            .with_cdw(13, steps.len() as u32)
            .with_cdw(14, REPORT_FLAG);
        let mut completion = self.execute(list)?;
        let end = self.controller.now();
        let sampler = &mut self.sampler;
        let all = 0..data.len() as u64;
        get(
            self.controller,
            place.start,
            &mut data,
            all,
            &aside,
            sampler,
        )?;
        let reports = &data[ENTRY_BYTES * steps.len()..];
        let dword = |step: usize, n: usize| {
            let bytes = &reports[ENTRY_BYTES * step + 4 * n..][..4];
            bytes.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b))
        };
        let (mut name, mut counted, failed) = ("pipeline", None, completion.result as usize);
        if let Some(step) = steps.get(failed) {
            (name, counted) = (step.name, step.counted);
            completion.result = dword(failed, 1);
        }
        check_completion(name, completion, counted)?;
        let took: Vec<Time> = (0..steps.len())
            .map(|step| lists.clock.edge(dword(step, 2).into()))
            .collect();
        let mut begin = took.iter().fold(end, |end, &took| end.saturating_sub(took));
        for (n, (step, took)) in steps.iter().zip(took).enumerate() {
            self.done.push(StageReport {
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

fn check_completion(
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
