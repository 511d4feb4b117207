// SPDX-License-Identifier: Apache-2.0

//! The possible contents of persistent memory: a model without caches, buffers or links.
//!
//! For each line it keeps all contents since the start, and the latest one that a fence has
//! promised to be persistent. After a power cut, a line that is only stored to through the cache
//! holds one of the contents since the promise, as a whole. In other lines this holds for each
//! aligned 8 bytes.

use std::collections::BTreeMap;

use host::{Cpu, Error, Fence, Mapping, MemoryType};
use sim::Random;

pub const LINE: usize = 64;

/// The use of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// By all CPUs, through the cache.
    Shared,
    /// By one CPU, with non-temporal stores among others.
    NonTemporal,
    /// By one CPU, write-combining.
    Combining,
    /// By one CPU, uncached.
    Uncached,
}

impl Use {
    pub fn kind(self) -> MemoryType {
        match self {
            Use::Shared | Use::NonTemporal => MemoryType::WriteBack,
            Use::Combining => MemoryType::WriteCombining,
            Use::Uncached => MemoryType::Uncached,
        }
    }
}

pub struct Lines {
    pub usage: Use,
    pub history: Vec<[u8; LINE]>,
    pub promised: usize,
}

/// By device and line number.
#[derive(Default)]
pub struct Model {
    pub lines: BTreeMap<(usize, u64), Lines>,
}

/// Lines of each kind that a CPU uses of each device.
const EACH: u64 = 6;
pub const CPUS: u64 = 3;
pub const COUNT: u64 = EACH * (1 + 3 * CPUS);

/// The use of line `n` of a device, and its CPU if there is only one.
pub fn usage(n: u64) -> (Use, u64) {
    let group = n / EACH;
    match group {
        0 => (Use::Shared, 0),
        _ => {
            let usage = [Use::NonTemporal, Use::Combining, Use::Uncached];
            (usage[((group - 1) % 3) as usize], (group - 1) / 3)
        }
    }
}

impl Model {
    pub fn new(devices: usize) -> Model {
        let mut model = Model::default();
        for device in 0..devices {
            for n in 0..COUNT {
                let line = Lines {
                    usage: usage(n).0,
                    history: vec![[0; LINE]],
                    promised: 0,
                };
                model.lines.insert((device, n), line);
            }
        }
        model
    }

    fn line(&mut self, at: (usize, u64)) -> &mut Lines {
        self.lines.get_mut(&at).unwrap()
    }

    fn latest(&mut self, at: (usize, u64)) -> usize {
        self.line(at).history.len() - 1
    }

    fn stored(&mut self, at: (usize, u64), start: usize, data: &[u8]) {
        let line = self.line(at);
        let mut now = *line.history.last().unwrap();
        now[start..start + data.len()].copy_from_slice(data);
        line.history.push(now);
    }

    /// Describes what is wrong with the content of a line after a power cut.
    pub fn wrong(&self, at: (usize, u64), found: &[u8]) -> Option<String> {
        let line = &self.lines[&at];
        let allowed = &line.history[line.promised..];
        let ok = match line.usage {
            Use::Shared => allowed.iter().any(|held| held == found),
            _ => (0..LINE).step_by(8).all(|n| {
                let atom = n..n + 8;
                allowed
                    .iter()
                    .any(|held| held[atom.clone()] == found[atom.clone()])
            }),
        };
        (!ok).then(|| {
            format!(
                "{:?} line {at:?} holds {found:?}; promised is version {} of {}: {:?}",
                line.usage,
                line.promised,
                line.history.len(),
                line.history[line.promised],
            )
        })
    }
}

/// The program of one CPU: random accesses, each checked. Ends early at a power cut.
pub fn program(
    cpu: &Cpu,
    model: &std::sync::Mutex<Model>,
    devices: usize,
    fence: Fence,
    promise: bool,
    ops: u64,
    seed: u64,
) -> Result<(), Error> {
    let me = cpu.number() as u64;
    let mut random = Random::new(seed);
    // Lines that were written back or sent, with the version.
    let mut asked: Vec<((usize, u64), usize)> = Vec::new();
    for _ in 0..ops {
        let device = random.below(devices as u64) as usize;
        let n = loop {
            let n = random.below(COUNT);
            if usage(n).0 == Use::Shared || usage(n).1 == me {
                break n;
            }
        };
        let at = (device, n);
        let usage = usage(n).0;
        let mapping = Mapping::pm(device, usage.kind());
        let base = n * LINE as u64;
        let start = random.below(LINE as u64) as usize;
        let len = 1 + random.below((LINE - start) as u64) as usize;
        let (start, len) = match random.below(4) {
            0 => (0, LINE),
            1 => (start & !7, 8),
            _ => (start, len),
        };
        let offset = base + start as u64;
        match random.below(100) {
            0..35 => {
                let value = random.next() as u8;
                let data: Vec<u8> = (0..len).map(|b| value.wrapping_add(b as u8)).collect();
                let outcome = match usage == Use::NonTemporal && random.below(2) == 0 {
                    true => cpu.ntstore(&mapping, offset, &data),
                    false => cpu.store(&mapping, offset, &data),
                };
                if outcome.is_ok() || usage != Use::Shared {
                    model.lock().unwrap().stored(at, start, &data);
                }
                outcome?;
                if usage != Use::Shared {
                    // Non-temporal stores are fenced as they are; other stores to such a line need
                    // their write-back.
                    let latest = model.lock().unwrap().latest(at);
                    if usage != Use::NonTemporal {
                        asked.push((at, latest));
                    }
                }
            }
            35..75 => {
                let from = model.lock().unwrap().latest(at);
                let found = match random.below(2) {
                    0 => {
                        let mut out = vec![0; len];
                        cpu.load(&mapping, offset, &mut out)?;
                        out
                    }
                    _ => {
                        let pending = cpu.issue_load(&mapping, offset, len)?;
                        cpu.compute(sim::Time::ns(random.below(300)))?;
                        cpu.finish_load(pending)?
                    }
                };
                let mut model = model.lock().unwrap();
                let held = &model.line(at).history[from..];
                let ok = held.iter().any(|h| h[start..start + len] == found[..]);
                assert!(
                    ok,
                    "CPU {me} loads {found:?} at {start} of {usage:?} {at:?}, held were {held:?}"
                );
            }
            75..88 => {
                let latest = model.lock().unwrap().latest(at);
                match random.below(3) {
                    0 => cpu.clflushopt(&mapping, offset)?,
                    _ => cpu.clwb(&mapping, offset)?,
                }
                asked.push((at, latest));
            }
            88..95 => {
                let before = std::mem::take(&mut asked);
                cpu.fence(fence)?;
                if promise {
                    let mut model = model.lock().unwrap();
                    for (at, version) in before {
                        let line = model.line(at);
                        line.promised = line.promised.max(version);
                    }
                }
            }
            _ => cpu.compute(sim::Time::ns(random.below(500)))?,
        }
    }
    Ok(())
}
