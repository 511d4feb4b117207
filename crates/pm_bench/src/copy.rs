// SPDX-License-Identifier: Apache-2.0

//! Copies of persistent data, one at a time: the time until a copy is persistent.

use std::collections::VecDeque;
use std::str::FromStr;

use device::Factory;
use host::{Cpu, Fence, Mapping, MemoryType};
use pm::EngineHandle;
use serde::Serialize;
use sim::{Random, Time};
use spec::nearpm::{Command, Operation, LINE, MAX_BYTES};

use crate::{report_progress, testbed, Error, Progress, Result};

/// First source and target in the window, and the distance between those of two copies.
const SOURCE: u64 = 4 << 20;
const TARGET: u64 = 12 << 20;
const STEP: u64 = 64 << 10;
/// Pause before each copy, and the longest addition to it: as long as the interval of two memory
/// refreshes.
const MIN_PAUSE: Time = Time::us(20);
const MAX_EXTRA_PAUSE: Time = Time::ns(3900);
/// Most copies of a measurement, so that no place is used twice.
const MAX_COPIES: u64 = 64;
/// The pool of all sources and targets.
const BASE: u64 = 0x7000_0000_0000;
const POOL: u64 = 32 << 20;

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// By the CPU: loads, up to the number of fill buffers at a time, and non-temporal stores; a
    /// fence that reads back.
    Streamed,
    /// By the CPU: loads and stores through the cache, `clwb` of each line, a fence that reads
    /// back.
    Cached,
    /// A command, and a fence that reads back: the device has accepted it, and a power loss does
    /// not undo that.
    Accepted,
    /// A command, and a load of the last byte of the target: the copy has ended.
    Ended,
}

impl CopyMethod {
    /// All methods.
    pub const ALL: [CopyMethod; 4] = [
        CopyMethod::Streamed,
        CopyMethod::Cached,
        CopyMethod::Accepted,
        CopyMethod::Ended,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CopyMethod::Streamed => "streamed",
            CopyMethod::Cached => "cached",
            CopyMethod::Accepted => "accepted",
            CopyMethod::Ended => "ended",
        }
    }
}

impl FromStr for CopyMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<CopyMethod> {
        let named = CopyMethod::ALL.into_iter().find(|way| way.name() == text);
        named.ok_or_else(|| {
            Error::refused(
                "way",
                text,
                "\"streamed\", \"cached\", \"accepted\", \"ended\"",
            )
        })
    }
}

/// Copies of one size, one after the other; none of their lines is in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// The copy method.
    pub way: CopyMethod,
    /// Bytes of each, 1 to 65,536.
    pub bytes: u64,
    /// Their number, 1 to 64.
    pub count: u64,
    /// Seed of the pauses between them.
    pub seed: u64,
}

/// The times of copies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopyResult {
    /// Mean of all, ns.
    pub mean_ns: f64,
    /// The shortest, ns.
    pub least_ns: f64,
    /// The longest, ns.
    pub most_ns: f64,
}

impl Copies {
    /// Refuses invalid parameters.
    pub fn validate(&self) -> Result<()> {
        let Copies { bytes, count, .. } = *self;
        if !(1..=MAX_BYTES).contains(&bytes) {
            return Err(Error::refused("bytes", bytes, "1 to 65536"));
        }
        if !(1..=MAX_COPIES).contains(&count) {
            return Err(Error::refused("count", count, "1 to 64"));
        }
        Ok(())
    }

    /// Makes the copies on a new device.
    pub fn measure(&self, factory: &Factory, progress: Progress<'_>) -> Result<CopyResult> {
        self.validate()?;
        let Copies { bytes, count, .. } = *self;
        let (testbed, engines) = testbed(factory, 1)?;
        let engine = &engines[0];
        let cpu = testbed.cpu(0);
        map_pool(engine, &cpu)?;
        let pm = Mapping::pm(0, MemoryType::WriteBack);
        let mut random = Random::new(self.seed);
        let mut took = Vec::new();
        for n in 0..count {
            report_progress(progress, n, count)?;
            let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + n + 1) as u8).collect();
            let (source, target) = (SOURCE + n * STEP, TARGET + n * STEP);
            // The source is only in the device's memory, and nothing else is under way.
            for (at, line) in data.chunks(LINE as usize).enumerate() {
                cpu.ntstore(&pm, source + at as u64 * LINE, line)?;
            }
            cpu.fence(Fence::ReadBack)?;
            cpu.compute(MIN_PAUSE + Time(random.below(MAX_EXTRA_PAUSE.0)))?;
            let begin = cpu.now();
            self.copy_once(engine, &cpu, source, target)?;
            took.push((cpu.now() - begin).as_ns());
            let mut found = vec![0; bytes as usize];
            cpu.read(&Mapping::pm(0, MemoryType::Uncached), target, &mut found)?;
            if found != data {
                return Err(Error::WrongData(format!(
                    "a copy of {bytes} bytes ({}) is not what its source is",
                    self.way.name()
                )));
            }
        }
        Ok(CopyResult {
            mean_ns: took.iter().sum::<f64>() / took.len() as f64,
            least_ns: took.iter().copied().fold(f64::INFINITY, f64::min),
            most_ns: took.iter().copied().fold(0.0, f64::max),
        })
    }

    fn copy_once(&self, engine: &EngineHandle, cpu: &Cpu, source: u64, target: u64) -> Result<()> {
        let pm = Mapping::pm(0, MemoryType::WriteBack);
        match self.way {
            CopyMethod::Streamed | CopyMethod::Cached => self.copy_by_cpu(cpu, &pm, source, target),
            CopyMethod::Accepted => {
                self.submit_copy(engine, cpu, source, target)?;
                // The fence reads back a line that does not wait for the copy.
                cpu.note_store(&pm, 0)?;
                Ok(cpu.fence(Fence::ReadBack)?)
            }
            CopyMethod::Ended => {
                self.submit_copy(engine, cpu, source, target)?;
                let last = target + self.bytes - 1;
                Ok(cpu.load(&Mapping::pm(0, MemoryType::Uncached), last, &mut [0])?)
            }
        }
    }

    /// Stores follow the loads as their lines arrive.
    fn copy_by_cpu(&self, cpu: &Cpu, pm: &Mapping, source: u64, target: u64) -> Result<()> {
        let ahead = cpu.shared().with_machine(|m| m.parameters().fill_buffers);
        let lines = self.bytes.div_ceil(LINE);
        let len = |line: u64| LINE.min(self.bytes - line * LINE) as usize;
        let mut under_way = VecDeque::new();
        let (mut asked, mut done) = (0, 0);
        while done < lines {
            while asked < lines && under_way.len() < ahead {
                under_way.push_back(cpu.issue_load(pm, source + asked * LINE, len(asked))?);
                asked += 1;
            }
            let Some(pending) = under_way.pop_front() else {
                break;
            };
            let (data, at) = (cpu.finish_load(pending)?, target + done * LINE);
            if self.way == CopyMethod::Cached {
                cpu.store(pm, at, &data)?;
                cpu.clwb(pm, at)?;
            } else {
                cpu.ntstore(pm, at, &data)?;
            }
            done += 1;
        }
        Ok(cpu.fence(Fence::ReadBack)?)
    }

    fn submit_copy(
        &self,
        engine: &EngineHandle,
        cpu: &Cpu,
        source: u64,
        target: u64,
    ) -> Result<()> {
        let command = Command {
            address: BASE + source,
            bytes: self.bytes,
            target: BASE + target,
            ..Command::new(Operation::Copy, 1, 0, 0)
        };
        engine.submit(cpu, &command)?;
        Ok(())
    }
}

/// Maps the pool.
fn map_pool(engine: &EngineHandle, cpu: &Cpu) -> Result<()> {
    let command = Command {
        address: BASE,
        bytes: POOL,
        target: 0,
        transaction: POOL / 2,
        value: 4096,
        extra: 1,
        ..Command::new(Operation::PoolMap, 1, 0, 0)
    };
    let (results, _) = engine.launch(cpu, &command)?;
    match results.is_ok() {
        true => Ok(()),
        false => Err(pm::Error::Refused(Operation::PoolMap, results).into()),
    }
}
