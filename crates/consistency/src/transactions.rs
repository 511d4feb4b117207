//! Insertions into a B-tree of persistent memory, one transaction each.

use host::Fence;
use pm::btree::Tree;
use pm::{Layout, Mechanism, Options, Pool};
use serde::Serialize;
use sim::{Random, Time};

use crate::{tell, Error, Platform, Progress, Result};

/// Bytes of a pool.
const POOL: u64 = 32 << 20;
/// Most insertions of a measurement: what fits in the pool.
const MOST: u64 = 20_000;
/// Longest work of an insertion, ns.
const MOST_WORK_NS: f64 = 1e6;

/// Random keys with values of 64 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Transactions {
    /// What makes a transaction whole.
    pub mechanism: Mechanism,
    /// By the engine; else by the CPU.
    pub offloaded: bool,
    /// What fences wait for.
    pub fence: Fence,
    /// Insertions that are measured, behind a tenth as many before.
    pub inserts: u64,
    /// What the program computes for each beside, ns.
    pub work_ns: f64,
    /// Of the keys.
    pub seed: u64,
}

/// What they took, in the mean of a transaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// All of it, ns.
    pub ns: f64,
    /// The part of it in code that is there for crash consistency.
    pub consistency_ns: f64,
    /// Of that, by what the code did.
    pub fences_ns: f64,
    /// Copies of old and new bytes: loads of what is kept, stores of records and pages.
    pub copies_ns: f64,
    /// Write-backs of lines.
    pub flushes_ns: f64,
    /// Commands.
    pub commands_ns: f64,
    /// The same as numbers: fences.
    pub fences: f64,
    /// Write-backs.
    pub lines: f64,
    /// Commands.
    pub commands: f64,
    /// Log records.
    pub records: f64,
    /// Their payload, bytes.
    pub payload: f64,
    /// Bytes that the CPU copied.
    pub copied: f64,
}

/// The mechanism of a name.
fn mechanism(name: &str) -> Result<Mechanism> {
    let named = |m: &Mechanism| format!("{m:?}").eq_ignore_ascii_case(name);
    let allowed = "\"undo\", \"redo\", \"checkpoint\", \"shadow\"";
    let found = Mechanism::ALL.into_iter().find(named);
    found.ok_or_else(|| Error::refused("mechanism", name, allowed))
}

/// The fence of a name.
fn fence(name: &str) -> Result<Fence> {
    match name {
        "posted" => Ok(Fence::Posted),
        "read_back" => Ok(Fence::ReadBack),
        "completion" => Ok(Fence::Completion),
        _ => Err(Error::refused(
            "fence",
            name,
            "\"posted\", \"read_back\", \"completion\"",
        )),
    }
}

impl Transactions {
    /// With names for the mechanism and the fence.
    pub fn named(mechanism_name: &str, offloaded: bool, fence_name: &str) -> Result<Transactions> {
        Ok(Transactions {
            mechanism: mechanism(mechanism_name)?,
            offloaded,
            fence: fence(fence_name)?,
            inserts: 1000,
            work_ns: 0.0,
            seed: 1,
        })
    }

    /// Refuses what can't be measured.
    pub fn check(&self) -> Result<()> {
        if !(1..=MOST).contains(&self.inserts) {
            return Err(Error::refused("inserts", self.inserts, "1 to 20000"));
        }
        if !(0.0..=MOST_WORK_NS).contains(&self.work_ns) {
            return Err(Error::refused("work_ns", self.work_ns, "0 to 1000000"));
        }
        Ok(())
    }

    /// Runs them on a new device.
    pub fn measure(&self, platform: &Platform<'_>, progress: Progress<'_>) -> Result<Ran> {
        self.check()?;
        let bench = platform.bench()?;
        let cpu = bench.shared.cpu(0);
        let options = Options {
            fence: self.fence,
            engine: self.offloaded.then(|| bench.engine.clone()),
            ..Options::default()
        };
        let layout = Layout::new("inserts").with(self.mechanism);
        if bench.bytes < 2 * POOL {
            return Err(Error::refused(
                "media.bytes",
                bench.bytes,
                "64 MiB and more",
            ));
        }
        let pool = Pool::create(&cpu, 0, 0, POOL, &layout, &options)?;
        let mut thread = pool.thread(&cpu)?;
        let tree = thread.run(Tree::create)?;
        let mut random = Random::new(self.seed);
        let work = Time((self.work_ns * 1e3).round() as u64);
        let before = self.inserts / 10;
        let mut counts = thread.counts();
        for n in 0..before + self.inserts {
            tell(progress, n, before + self.inserts)?;
            if n == before {
                counts = thread.counts();
            }
            let key = random.next();
            thread.run(|tx| {
                tx.cpu().compute(work)?;
                let value = tx.create(&[n; 8])?;
                tree.insert(tx, key, value.offset())?;
                Ok::<_, pm::Error>(())
            })?;
        }
        let now = thread.counts();
        tree.check(&mut thread)?;
        let each = |count: fn(&pm::Counts) -> u64| {
            (count(&now) - count(&counts)) as f64 / self.inserts as f64
        };
        let each_ns = |count: fn(&pm::Counts) -> u64| each(count) / 1e3;
        Ok(Ran {
            ns: each_ns(|c| c.time.0),
            consistency_ns: each_ns(|c| c.consistency.0),
            fences_ns: each_ns(|c| c.spent.fences.0),
            copies_ns: each_ns(|c| c.spent.copies.0),
            flushes_ns: each_ns(|c| c.spent.flushes.0),
            commands_ns: each_ns(|c| c.spent.commands.0),
            fences: each(|c| c.fences),
            lines: each(|c| c.lines),
            commands: each(|c| c.commands),
            records: each(|c| c.records),
            payload: each(|c| c.payload),
            copied: each(|c| c.copied),
        })
    }
}
