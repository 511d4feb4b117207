//! Copies of persistent data, one at a time: what a program waits for until the copy is persistent.

use std::collections::VecDeque;
use std::str::FromStr;

use host::{Cpu, Fence, Mapping, MemoryType};
use serde::Serialize;
use sim::{Random, Time};
use spec::nearpm::{Command, Operation, LINE, MAX_BYTES};

use crate::{tell, Bench, Error, Platform, Progress, Result};

/// Where sources and targets begin in the window, and how far apart those of two copies are.
const SOURCE: u64 = 4 << 20;
const TARGET: u64 = 12 << 20;
const STEP: u64 = 64 << 10;
/// Before each copy it is quiet for so long, and up to so much longer: as long as two refreshes of the memory are apart.
const QUIET: Time = Time::us(20);
const LONGER: Time = Time::ns(3900);
/// Copies of a measurement at most, so that no place is used twice.
const MOST: u64 = 64;
/// The pool that all of this is in.
const BASE: u64 = 0x7000_0000_0000;
const POOL: u64 = 32 << 20;

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the CPU: loads, as many at a time as it has fill buffers, and non-temporal stores; a fence that reads back.
    Streamed,
    /// By the CPU: loads and stores through the cache, `clwb` of each line, a fence that reads back.
    Cached,
    /// A command, and a fence that reads back: the device has taken it, and a loss of power does not take it back.
    Accepted,
    /// A command, and a load of the last byte of the target: the copy is there.
    Ended,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::Streamed, Way::Cached, Way::Accepted, Way::Ended];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Streamed => "streamed",
            Way::Cached => "cached",
            Way::Accepted => "accepted",
            Way::Ended => "ended",
        }
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(text: &str) -> Result<Way> {
        let named = Way::ALL.into_iter().find(|way| way.name() == text);
        named.ok_or_else(|| {
            Error::refused(
                "way",
                text,
                "\"streamed\", \"cached\", \"accepted\", \"ended\"",
            )
        })
    }
}

/// Copies of one size, one after the other; no line of theirs is in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// How they are made.
    pub way: Way,
    /// Bytes of each, 1 to 65,536.
    pub bytes: u64,
    /// How many, 1 to 64.
    pub count: u64,
    /// Of the pauses between them.
    pub seed: u64,
}

/// What copies took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copied {
    /// Mean of all, ns.
    pub mean_ns: f64,
    /// The shortest, ns.
    pub least_ns: f64,
    /// The longest, ns.
    pub most_ns: f64,
}

impl Copies {
    /// Refuses what can't be measured.
    pub fn check(&self) -> Result<()> {
        let Copies { bytes, count, .. } = *self;
        if !(1..=MAX_BYTES).contains(&bytes) {
            return Err(Error::refused("bytes", bytes, "1 to 65536"));
        }
        if !(1..=MOST).contains(&count) {
            return Err(Error::refused("count", count, "1 to 64"));
        }
        Ok(())
    }

    /// Makes them on a new device.
    pub fn measure(&self, platform: &Platform<'_>, progress: Progress<'_>) -> Result<Copied> {
        self.check()?;
        let Copies { bytes, count, .. } = *self;
        let bench = platform.bench()?;
        let cpu = bench.shared.cpu(0);
        map(&bench, &cpu)?;
        let pm = Mapping::pm(0, MemoryType::WriteBack);
        let mut random = Random::new(self.seed);
        let mut took = Vec::new();
        for n in 0..count {
            tell(progress, n, count)?;
            let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + n + 1) as u8).collect();
            let (source, target) = (SOURCE + n * STEP, TARGET + n * STEP);
            // The source is in the device's memory and nowhere else; all is quiet.
            for (at, line) in data.chunks(LINE as usize).enumerate() {
                cpu.ntstore(&pm, source + at as u64 * LINE, line)?;
            }
            cpu.fence(Fence::ReadBack)?;
            cpu.compute(QUIET + Time(random.below(LONGER.0)))?;
            let begin = cpu.now();
            self.one(&bench, &cpu, source, target)?;
            took.push((cpu.now() - begin).as_ns());
            let mut found = vec![0; bytes as usize];
            cpu.read(&Mapping::pm(0, MemoryType::Uncached), target, &mut found)?;
            if found != data {
                return Err(Error::new(format!(
                    "a copy of {bytes} bytes ({}) is not what its source is",
                    self.way.name()
                )));
            }
        }
        Ok(Copied {
            mean_ns: took.iter().sum::<f64>() / took.len() as f64,
            least_ns: took.iter().copied().fold(f64::INFINITY, f64::min),
            most_ns: took.iter().copied().fold(0.0, f64::max),
        })
    }

    fn one(&self, bench: &Bench, cpu: &Cpu, source: u64, target: u64) -> Result<()> {
        let pm = Mapping::pm(0, MemoryType::WriteBack);
        match self.way {
            Way::Streamed | Way::Cached => self.by_the_cpu(cpu, &pm, source, target),
            Way::Accepted => {
                self.command(bench, cpu, source, target)?;
                // Read back is something that does not wait for the copy.
                cpu.note_store(&pm, 0)?;
                Ok(cpu.fence(Fence::ReadBack)?)
            }
            Way::Ended => {
                self.command(bench, cpu, source, target)?;
                let last = target + self.bytes - 1;
                Ok(cpu.load(&Mapping::pm(0, MemoryType::Uncached), last, &mut [0])?)
            }
        }
    }

    /// Stores follow the loads as these bring their lines.
    fn by_the_cpu(&self, cpu: &Cpu, pm: &Mapping, source: u64, target: u64) -> Result<()> {
        let ahead = cpu
            .shared()
            .with_machine(|m| m.profile().core.fill_buffers.value) as usize;
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
            if self.way == Way::Cached {
                cpu.store(pm, at, &data)?;
                cpu.clwb(pm, at)?;
            } else {
                cpu.ntstore(pm, at, &data)?;
            }
            done += 1;
        }
        Ok(cpu.fence(Fence::ReadBack)?)
    }

    fn command(&self, bench: &Bench, cpu: &Cpu, source: u64, target: u64) -> Result<()> {
        let command = Command {
            address: BASE + source,
            bytes: self.bytes,
            target: BASE + target,
            ..Command::new(Operation::Copy, 1, 0, 0)
        };
        bench.engine.submit(cpu, &command)?;
        Ok(())
    }
}

/// Maps the pool.
fn map(bench: &Bench, cpu: &Cpu) -> Result<()> {
    let command = Command {
        address: BASE,
        bytes: POOL,
        target: 0,
        transaction: POOL / 2,
        value: 4096,
        extra: 1,
        ..Command::new(Operation::PoolMap, 1, 0, 0)
    };
    let (results, _) = bench.engine.launch(cpu, &command)?;
    match results.is_ok() {
        true => Ok(()),
        false => Err(Error::new(format!("pool_map: {results:?}"))),
    }
}
