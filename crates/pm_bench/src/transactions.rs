// SPDX-License-Identifier: Apache-2.0

//! Insertions into a B-tree of persistent memory, one transaction each.

use std::sync::{Arc, Mutex, PoisonError};

use device::Factory;
use host::{Cpu, Fence, Program, SharedMachine};
use pm::btree::Tree;
use pm::{EngineHandle, Layout, Mechanism, Options, Pool, Synchronisation};
use serde::Serialize;
use sim::{Random, Time};

use crate::devices::{executors, validate_devices, validate_group, validate_order};
use crate::latency::Latencies;
use crate::{report_progress, testbed, Error, Progress, Result};

/// Bytes of a pool; each of several threads has a separate one.
const POOL: u64 = 32 << 20;
const SMALL_POOL: u64 = 8 << 20;
/// Most threads: the engine has that many pools.
const MAX_THREADS: u64 = 16;
/// Most insertions of each of several threads.
const MAX_INSERTS_PER_THREAD: u64 = 2_000;
/// Most insertions of a measurement: the pool has room for them.
const MAX_INSERTS: u64 = 20_000;
/// Longest computation per insertion, ns.
const MAX_WORK_NS: f64 = 1e6;

/// Insertions of random keys with values of 64 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Transactions {
    /// How a transaction is made atomic.
    pub mechanism: Mechanism,
    /// By the engine; else by the CPU.
    pub offloaded: bool,
    /// The pools are tracked ([`pm::Layout::tracked`]).
    pub tracked: bool,
    /// What fences wait for.
    pub fence: Fence,
    /// With the CPU: the device keeps posted stores in order, as one with a single channel does
    /// ([`Options::ordered`]).
    pub ordered: bool,
    /// Measured insertions, after a tenth as many for warm-up.
    pub inserts: u64,
    /// Computation of the program per insertion, ns.
    pub work_ns: f64,
    /// Threads, 1 to 16, each with a CPU and a pool. Each makes this number of insertions.
    pub threads: u64,
    /// Devices that each pool spans: 1, 2 or 4.
    pub devices: usize,
    /// How engines of several devices are synchronised.
    pub synchronise: Synchronisation,
    /// Transactions become durable later, this number of them at a time
    /// ([`Options::group_commit`]).
    pub group: Option<u64>,
    /// Seed of the keys.
    pub seed: u64,
}

/// Mean values per transaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransactionsResult {
    /// Transactions of all threads per microsecond, from the common begin to the end of the last
    /// one.
    pub per_us: f64,
    /// Total time, ns.
    pub ns: f64,
    /// The part in code for crash consistency.
    pub consistency_ns: f64,
    /// Of that, until the copies of old content have been requested ([`pm::Counts::creation`]).
    pub creation_ns: f64,
    /// Of that, the time of fences.
    pub fences_ns: f64,
    /// The time of copies of old and new bytes: loads of logged bytes, stores of records and pages.
    pub copies_ns: f64,
    /// The time of write-backs of lines.
    pub flushes_ns: f64,
    /// The time of commands.
    pub commands_ns: f64,
    /// Number of fences.
    pub fences: f64,
    /// Number of write-backs.
    pub lines: f64,
    /// Number of commands.
    pub commands: f64,
    /// Number of log records.
    pub records: f64,
    /// Their payload, bytes.
    pub payload: f64,
    /// Bytes that the CPU copied.
    pub copied: f64,
    /// From the begin of a transaction until it is known to be durable, ns: the mean.
    pub acknowledged_ns: f64,
    /// The 99th percentile of that.
    pub acknowledged_p99_ns: f64,
}

/// Parses the name of a mechanism.
fn parse_mechanism(name: &str) -> Result<Mechanism> {
    let named = |m: &Mechanism| format!("{m:?}").eq_ignore_ascii_case(name);
    let allowed = "\"undo\", \"redo\", \"checkpoint\", \"shadow\"";
    let found = Mechanism::ALL.into_iter().find(named);
    found.ok_or_else(|| Error::refused("mechanism", name, allowed))
}

/// Parses the name of a fence. "ordered" is a read-back only at the end of a transaction, on a
/// device that keeps stores in order.
pub fn parse_fence_and_order(name: &str) -> Result<(Fence, bool)> {
    match name {
        "ordered" => Ok((Fence::ReadBack, true)),
        _ => parse_fence(name).map(|fence| (fence, false)).map_err(|_| {
            let allowed = "\"posted\", \"read_back\", \"ordered\", \"completion\"";
            Error::refused("fence", name, allowed)
        }),
    }
}

/// Parses the name of a fence.
pub fn parse_fence(name: &str) -> Result<Fence> {
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
    /// Default parameters with the mechanism and the fence of these names.
    pub fn from_names(
        mechanism_name: &str,
        offloaded: bool,
        fence_name: &str,
    ) -> Result<Transactions> {
        let (fence, ordered) = parse_fence_and_order(fence_name)?;
        Ok(Transactions {
            mechanism: parse_mechanism(mechanism_name)?,
            offloaded,
            tracked: false,
            fence,
            ordered,
            inserts: 1000,
            work_ns: 0.0,
            threads: 1,
            devices: 1,
            synchronise: Synchronisation::default(),
            group: None,
            seed: 1,
        })
    }

    /// Refuses invalid parameters.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_INSERTS).contains(&self.inserts) {
            return Err(Error::refused("inserts", self.inserts, "1 to 20000"));
        }
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(Error::refused("threads", self.threads, "1 to 16"));
        }
        validate_devices(self.devices)?;
        validate_group(self.group, self.devices)?;
        if self.threads > 1 && self.inserts > MAX_INSERTS_PER_THREAD {
            let allowed = "1 to 2000 with several threads";
            return Err(Error::refused("inserts", self.inserts, allowed));
        }
        if !(0.0..=MAX_WORK_NS).contains(&self.work_ns) {
            return Err(Error::refused("work_ns", self.work_ns, "0 to 1000000"));
        }
        Ok(())
    }

    /// Runs the insertions on a new device.
    pub fn measure(&self, factory: &Factory, progress: Progress<'_>) -> Result<TransactionsResult> {
        self.validate()?;
        validate_order(factory.design(), self.ordered, self.offloaded, self.devices)?;
        let (testbed, engines) = testbed(factory, self.devices)?;
        let bytes = if self.threads == 1 { POOL } else { SMALL_POOL };
        let media = factory.design().media.bytes.0;
        if media < self.threads * bytes + POOL {
            let allowed = "64 MiB and more, with several threads 32 MiB and 8 for each";
            return Err(Error::refused("media.bytes", media, allowed));
        }
        let total = self.threads * (self.inserts + self.warmup_inserts());
        let shared_progress = Mutex::new((progress, 0));
        let tell = || {
            let (progress, done) = &mut *shared_progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            report_progress(*progress, *done, total)
        };
        let tell: &(dyn Fn() -> Result<()> + Sync) = &tell;
        let each = 0..self.threads as usize;
        let ready = run_concurrently(testbed.machine(), each.clone(), |n, cpu| {
            self.prepare(&engines, cpu, n as u64, bytes, tell)
        })?;
        // All threads begin at the same time, and nothing else runs until the last one has ended.
        let times = each.clone().map(|n| testbed.cpu(n).now());
        let begin = times.max().unwrap_or(Time::ZERO);
        let mut ready: Vec<_> = ready.into_iter().map(Mutex::new).collect();
        let parts = run_concurrently(testbed.machine(), each.clone(), |n, cpu| {
            cpu.sleep_until(begin)?;
            let mut own = ready[n].lock().unwrap_or_else(PoisonError::into_inner);
            self.perform(&mut own, tell)
        })?;
        let ends = each.map(|n| testbed.cpu(n).now());
        let took = ends.max().unwrap_or(begin) - begin;
        let mut latencies = Latencies::default();
        for own in &mut ready {
            let own = own.get_mut().unwrap_or_else(PoisonError::into_inner);
            own.check()?;
            latencies.extend(std::mem::take(&mut own.latencies));
        }
        let (acknowledged_ns, acknowledged_p99_ns) = latencies.mean_and_p99();
        let sum = |count: fn(&pm::Counts) -> u64| {
            let one = |part: &CountsRange| (count(&part.after) - count(&part.before)) as f64;
            parts.iter().map(one).sum::<f64>()
        };
        let each =
            |count: fn(&pm::Counts) -> u64| sum(count) / (self.threads * self.inserts) as f64;
        let each_ns = |count: fn(&pm::Counts) -> u64| each(count) / 1e3;
        let us = took.as_ns() / 1e3;
        Ok(TransactionsResult {
            per_us: (self.threads * self.inserts) as f64 / us,
            ns: each_ns(|c| c.time.0),
            consistency_ns: each_ns(|c| c.consistency.0),
            creation_ns: each_ns(|c| c.creation.0),
            fences_ns: each_ns(|c| c.by_operation.fences.0),
            copies_ns: each_ns(|c| c.by_operation.copies.0),
            flushes_ns: each_ns(|c| c.by_operation.flushes.0),
            commands_ns: each_ns(|c| c.by_operation.commands.0),
            fences: each(|c| c.fences),
            lines: each(|c| c.lines),
            commands: each(|c| c.commands),
            records: each(|c| c.records),
            payload: each(|c| c.payload),
            copied: each(|c| c.copied),
            acknowledged_ns,
            acknowledged_p99_ns,
        })
    }

    /// Insertions for warm-up.
    fn warmup_inserts(&self) -> u64 {
        self.inserts / 10
    }

    /// Creates the pool and the tree of a thread.
    fn prepare(
        &self,
        engines: &[Arc<EngineHandle>],
        cpu: &Cpu,
        number: u64,
        bytes: u64,
        tell: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<PreparedThread> {
        // The first pages of a pool have most of the traffic, so each pool begins on another
        // device.
        let first = number as usize % self.devices;
        let mut devices: Vec<usize> = (0..self.devices).collect();
        devices.rotate_left(first);
        let mut engines = executors(engines, self.offloaded).to_vec();
        if !engines.is_empty() {
            engines.rotate_left(first);
        }
        let options = Options {
            fence: self.fence,
            ordered: self.ordered,
            pool: number as u8,
            synchronise: self.synchronise,
            group_commit: self.group,
            ..Options::with_engines(&engines)
        };
        let layout = Layout::new("inserts").with_mechanism(self.mechanism);
        let layout = match self.tracked {
            true => layout.with_tracking(),
            false => layout,
        };
        // As many bytes on each device as with one device.
        let all = bytes * self.devices as u64;
        let pool = Pool::create(cpu, devices, number * bytes, all, &layout, &options)?;
        let mut thread = pool.thread(cpu)?;
        let tree = thread.run(Tree::create)?;
        let mut ready = PreparedThread {
            thread,
            tree,
            random: Random::new(self.seed.wrapping_add(number)),
            next: 0,
            latencies: Latencies::default(),
        };
        self.insert(&mut ready, self.warmup_inserts(), tell)?;
        ready.latencies = Latencies::default();
        Ok(ready)
    }

    /// Runs the measured insertions.
    fn perform(
        &self,
        ready: &mut PreparedThread,
        tell: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<CountsRange> {
        let before = ready.thread.counts();
        self.insert(ready, self.inserts, tell)?;
        Ok(CountsRange {
            before,
            after: ready.thread.counts(),
        })
    }

    fn insert(
        &self,
        ready: &mut PreparedThread,
        count: u64,
        tell: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<()> {
        let work = Time((self.work_ns * 1e3).round() as u64);
        for _ in 0..count {
            tell()?;
            let (key, n) = (ready.random.next(), ready.next);
            ready.next += 1;
            let tree = &ready.tree;
            let begin = ready.thread.cpu().now();
            let insert = |tx: &mut pm::Transaction<'_>| {
                tx.cpu().compute(work)?;
                let value = tx.create(&[n; 8])?;
                tree.insert(tx, key, value.offset())?;
                Ok::<_, pm::Error>(())
            };
            match self.group {
                None => ready.thread.run(insert)?,
                Some(_) => ready.thread.run_later(insert)?.0,
            }
            ready.latencies.add(&ready.thread, begin);
        }
        ready.thread.sync()?;
        ready.latencies.note_durable(&ready.thread);
        Ok(())
    }
}

/// Runs an action on each of several CPUs at the same time.
fn run_concurrently<R: Send>(
    machine: &SharedMachine,
    cpus: std::ops::Range<usize>,
    act: impl Fn(usize, &Cpu) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let act = &act;
    let programs = cpus.map(|n| {
        let program: Program<'_, Result<R>> = Box::new(move |cpu: &Cpu| act(n, cpu));
        (n, program)
    });
    let done = machine.run(programs.collect())?;
    done.into_iter().collect()
}

/// A thread with its pool and its tree.
struct PreparedThread {
    thread: pm::Thread,
    tree: Tree,
    random: Random,
    /// Number of insertions so far.
    next: u64,
    latencies: Latencies,
}

impl PreparedThread {
    /// Checks the tree.
    fn check(&mut self) -> Result<()> {
        Ok(self.tree.check(&mut self.thread).map(drop)?)
    }
}

/// The counters of a thread before and after the measured part.
struct CountsRange {
    before: pm::Counts,
    after: pm::Counts,
}
