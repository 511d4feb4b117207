// SPDX-License-Identifier: Apache-2.0

//! Steps with engines: jobs in their registers and command pages, beside NVMe commands of engines
//! and others.

use std::collections::BTreeMap;

use sim::Bar;
use spec::regs::engine;

use crate::campaign::StepResult;
use crate::commands::PIPELINE;
use crate::generate::WRONG;
use crate::lockstep::content::Blocks;
use crate::lockstep::effects::PlannedCommand;
use crate::lockstep::engine_jobs::job;
use crate::lockstep::engines::{EngineKind, Job};
use crate::lockstep::kernels::output_is_defined;
use crate::lockstep::lists;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::pair::{AllowedContents, LockstepPair, UNKNOWN};
use crate::random::{chance, pick};
use crate::BLOCK;

/// Lines of a command page, and bytes of one.
const LINES: u64 = 64;
const LINE: u64 = 64;
/// Number of arguments of a line.
const MOST_ARGUMENTS: usize = 7;
/// Most jobs of a page in a step.
const MOST: u64 = 4;
/// Most NVMe commands of lists in a step.
const MOST_LISTS: u64 = 2;
/// I/O commands beside the jobs.
const BESIDE: u64 = 10;
/// Longest time until a job is stopped, ns.
const STOP: u64 = 6_000;

/// The location of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobLocation {
    Registers,
    /// A line of the page.
    Page(u64),
}

/// A job to start.
pub struct GeneratedJob {
    engine: usize,
    place: JobLocation,
    job: Job,
    /// A reserved field is not 0.
    odd: bool,
}

/// A started job of an engine.
pub struct Started {
    engine: usize,
    place: JobLocation,
    job: Job,
    /// It was stopped.
    stopped: bool,
}

impl LockstepPair {
    /// Jobs in registers and pages, beside commands.
    pub fn engines(&mut self) -> StepResult {
        if self.shape.engines.is_empty() {
            return Ok(());
        }
        self.count("jobs of engines");
        let mut locks = RangeLocks::default();
        let count = self.random.below(BESIDE);
        let before = chance(&mut self.random, 50);
        let stops = chance(&mut self.random, 20);
        let generated = self.generate_jobs(&mut locks, stops)?;
        let lists = self.generate_lists(&mut locks)?;
        let mut sent = Vec::new();
        if before {
            sent = self.submit_after(lists.clone(), count, WRONG, &mut locks);
        }
        let mut jobs = self.start_jobs(generated);
        if !before {
            sent = self.submit_after(lists, count, WRONG, &mut locks);
        }
        if stops {
            let ns = self.random.below(STOP);
            self.wait_ns(ns)?;
            for job in jobs
                .iter_mut()
                .filter(|job| job.place == JobLocation::Registers)
            {
                let at = self.shape.engines[job.engine].registers + engine::CONTROL;
                let stop = engine::control::STOP.mask() as u32;
                self.write32(Bar::Control, at, stop);
                job.stopped = true;
                self.state.loose_engines.insert(job.engine);
            }
        }
        self.wait_until_idle()?;
        self.ended(&jobs)?;
        let mut allowed: BTreeMap<u64, AllowedContents> = BTreeMap::new();
        for started in &jobs {
            for (block, content) in &started.job.writes {
                let may = match started.stopped || content.is_empty() {
                    true => (vec![UNKNOWN], false),
                    false => (vec![content], true),
                };
                allowed.insert(*block, may);
            }
            // The progress of a job with an invalid range is not determined.
            self.state.loose_counts |= started.stopped || started.job.ends.is_none();
        }
        self.check_blocks(&allowed)?;
        self.compare_step(&sent, &LockstepPair::races(&sent))
            .map(drop)
    }

    /// Generates jobs for engines, and stores the content that they need. With `all`, each engine
    /// also has a job in its registers.
    pub fn generate_jobs(
        &mut self,
        locks: &mut RangeLocks,
        all: bool,
    ) -> Result<Vec<GeneratedJob>, String> {
        let (mut jobs, mut blocks) = (Vec::new(), Vec::new());
        for engine in 0..self.shape.engines.len() {
            let mut places = Vec::new();
            if all || chance(&mut self.random, 60) {
                places.push(JobLocation::Registers);
            }
            let first = self.random.below(LINES);
            let count = self.random.below(MOST + 1);
            places.extend((0..count).map(|n| JobLocation::Page((first + n) % LINES)));
            let turn = self.random.below(places.len().max(1) as u64) as usize;
            places.rotate_left(turn);
            for place in places {
                let kind = self.shape.engines[engine].kind;
                let random = &mut self.random;
                let Some(mut job) = job(random, kind, &self.media, locks, WRONG) else {
                    continue;
                };
                // Unused argument fields of a line have to be 0.
                let room = job.arguments.len() < MOST_ARGUMENTS;
                let odd = place != JobLocation::Registers && room && chance(random, WRONG / 2);
                if odd {
                    (job.writes, job.ends) = (Vec::new(), None);
                }
                self.place_content(&job.lays, &mut blocks);
                jobs.push(GeneratedJob {
                    engine,
                    place,
                    job,
                    odd,
                });
            }
        }
        self.equalise_blocks(&blocks)?;
        Ok(jobs)
    }

    /// Generates NVMe commands of lists, and stores the lists.
    fn generate_lists(&mut self, locks: &mut RangeLocks) -> StepResult<Vec<PlannedCommand>> {
        if !self.shape.limits.engines.contains(&PIPELINE) {
            return Ok(Vec::new());
        }
        let (mut commands, mut blocks) = (Vec::new(), Vec::new());
        for _ in 0..self.random.below(MOST_LISTS + 1) {
            let namespaces: Vec<_> = self.shape.limits.namespaces.active().copied().collect();
            let ns = pick(&mut self.random, &namespaces);
            let list = lists::command(&mut self.random, &self.media, locks, &ns);
            if let Some((command, lays)) = list {
                self.count("lists of commands");
                self.place_content(&lays, &mut blocks);
                commands.push(command);
            }
        }
        self.equalise_blocks(&blocks)?;
        Ok(commands)
    }

    /// Sets the required content of blocks, to be stored later by `equalise_blocks`.
    fn place_content(&mut self, lays: &Blocks, blocks: &mut Vec<u64>) {
        for (block, content) in lays {
            let at = (block * BLOCK) as usize;
            self.media[at..at + content.len()].copy_from_slice(content);
            blocks.push(*block);
        }
    }

    /// Starts jobs.
    pub fn start_jobs(&mut self, generated: Vec<GeneratedJob>) -> Vec<Started> {
        let start = |generated: GeneratedJob| {
            let (engine, place, job) = (generated.engine, generated.place, generated.job);
            self.note(format!(
                "  engine {engine}, {place:?}: {:x?}",
                job.arguments
            ));
            match place {
                JobLocation::Registers => self.launch(engine, &job),
                JobLocation::Page(line) => self.write_line(engine, line, &job, generated.odd),
            }
            Started {
                engine,
                place,
                job,
                stopped: false,
            }
        };
        generated.into_iter().map(start).collect()
    }

    /// Starts a job by registers.
    fn launch(&mut self, engine: usize, job: &Job) {
        self.count("jobs in registers");
        let base = self.shape.engines[engine].registers;
        let (all, source) = (self.random.below(2) as u32, self.random.below(2) as u32);
        let start = engine::control::START.mask() as u32;
        for (n, value) in (0..).zip(&job.arguments) {
            let at = base + engine::ARGUMENTS + engine::ARGUMENTS_STRIDE * n;
            self.write64(Bar::Control, at, *value);
        }
        self.write32(Bar::Control, base + engine::STATUS, 1);
        self.write32(Bar::Control, base + engine::INTERRUPT, all);
        self.write32(Bar::Control, base + engine::SOURCES, source);
        self.write32(Bar::Control, base + engine::CONTROL, start);
        self.state.loose_engines.remove(&engine);
    }

    /// Starts a job by a line of a command page, written in pieces of any size and order.
    fn write_line(&mut self, engine: usize, line: u64, job: &Job, odd: bool) {
        self.count("jobs in pages");
        let base = self.shape.engines[engine].page + LINE * line;
        let mut bytes = vec![0; LINE as usize];
        for (n, value) in job.arguments.iter().enumerate() {
            bytes[8 + 8 * n..16 + 8 * n].copy_from_slice(&value.to_le_bytes());
        }
        if odd {
            let end = 8 + 8 * job.arguments.len() as u64;
            let free: Vec<u64> = (0..8).chain(end..LINE).collect();
            let at = pick(&mut self.random, &free) as usize;
            bytes[at] = 1 << self.random.below(8);
        }
        let piece = pick(&mut self.random, &[64, 64, 64, 32, 16, 8, 4]);
        let mut pieces: Vec<(u64, &[u8])> = (0..).step_by(piece).zip(bytes.chunks(piece)).collect();
        if chance(&mut self.random, 50) {
            pieces.reverse();
        }
        for (at, piece) in pieces {
            self.write(Bar::Control, base + at, piece);
        }
    }

    /// Compares registers and lines after the jobs, with each other and with known results.
    fn ended(&mut self, jobs: &[Started]) -> StepResult {
        for started in jobs {
            let engine = &self.shape.engines[started.engine];
            let (registers, page, words) = (engine.registers, engine.page, engine.words);
            let kind = engine.kind;
            let outputs = words - started.job.arguments.len() as u64;
            let output = engine::ARGUMENTS + engine::ARGUMENTS_STRIDE * (words - 1);
            let found = match started.place {
                JobLocation::Registers if started.stopped => continue,
                JobLocation::Registers => self.compare("an engine's end", |dut| {
                    let done = dut.read32(Bar::Control, registers + engine::STATUS)?;
                    let result = dut.read32(Bar::Control, registers + engine::RESULT)?;
                    // Outputs are undefined after an error.
                    if !output_is_defined(kind, result) {
                        return Ok((done, result, 0));
                    }
                    let value = dut.read32(Bar::Control, registers + output)?;
                    let high = dut.read32(Bar::Control, registers + output + 4)?;
                    Ok((done, result, u64::from(high) << 32 | u64::from(value)))
                })?,
                JobLocation::Page(line) => {
                    let line = self.compare("a line of an engine's page", |dut| {
                        let mut line = dut.load(Bar::Control, page + LINE * line, LINE as u32)?;
                        if let Some(line) = line.as_mut().filter(|l| {
                            let result = [4, 5, 6, 7].map(|at| l[at]);
                            !output_is_defined(kind, u32::from_le_bytes(result))
                        }) {
                            line[8..16].fill(0);
                        }
                        Ok(line)
                    })?;
                    let line = line.ok_or("both pages cannot be loaded")?;
                    let word = |at: usize| {
                        let bytes = line[at..at + 8].iter().rev();
                        bytes.fold(0, |v, &b| v << 8 | u64::from(b))
                    };
                    (word(0) as u32 >> 1, (word(0) >> 32) as u32, word(8))
                }
            };
            let reports = (found.1, if outputs == 1 { found.2 } else { 0 });
            if found.0 != 1 || started.job.ends.is_some_and(|ends| ends != reports) {
                return Err(format!(
                    "both engines {} ended {:x?} by {found:x?}, and not by {:x?}",
                    started.engine, started.job.arguments, started.job.ends
                ));
            }
            if let Some((at, bytes)) =
                lists::reports(&started.job).filter(|_| kind == EngineKind::Pipeline)
            {
                self.compare("reports of a list", |dut| {
                    let reports = dut.load(Bar::Pm, at, bytes)?;
                    Ok(reports.map(lists::without_cycles))
                })?;
            }
            if started.place == JobLocation::Registers && found.1 != 0 {
                self.state.loose_engines.insert(started.engine);
            }
        }
        (0..self.shape.engines.len()).try_for_each(|number| self.engine_words(number))
    }

    /// Compares the registers of an idle engine.
    fn engine_words(&mut self, number: usize) -> StepResult {
        let engine = &self.shape.engines[number];
        let loose = self.state.loose_engines.contains(&number);
        let outputs = engine::ARGUMENTS + engine::ARGUMENTS_STRIDE * (engine.words - 1);
        let known = |&at: &u64| !loose || at != engine::RESULT && at < outputs;
        let words = (0..0x100).step_by(4).filter(known);
        let words: Vec<u64> = words.map(|at| engine.registers + at).collect();
        self.compare_registers("registers of an engine", Bar::Control, &words)
    }

    /// After a reset, jobs may have ended at any point.
    pub fn jobs_cut(&mut self, jobs: &[Started]) -> StepResult {
        let blocks = jobs.iter().flat_map(|started| &started.job.writes);
        let allowed = blocks.map(|(block, _)| (*block, (vec![UNKNOWN], false)));
        self.check_blocks(&allowed.collect())?;
        for started in jobs {
            self.state.loose_engines.insert(started.engine);
            self.state.loose_counts = true;
        }
        Ok(())
    }
}
