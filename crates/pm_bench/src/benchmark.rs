// SPDX-License-Identifier: Apache-2.0

//! Transactions of a workload, and the time in which CPU and units work in parallel, as in figure
//! 18 of the paper.

use device::Factory;
use host::Fence;
use pm::{ConsistencyOperation, Mechanism, Options, Pool, Synchronisation};
use serde::Serialize;
use sim::Time;
use workloads::{Scale, Workload};

use crate::activity::{unit_commands, ActivityRecorder};
use crate::devices::{executors, validate_devices, validate_group, validate_order};
use crate::latency::Latencies;
use crate::{report_progress, testbed, Error, Progress, Result};

/// Most transactions of a measurement: the pool has room for their rows.
const MAX_TRANSACTIONS: u64 = 4_000;
/// Longest computation per transaction, ns.
const MAX_WORK_NS: f64 = 1e6;
/// How long the devices are recorded after the last transaction.
const DRAIN_TIME: Time = Time::us(20);

/// A workload of [`workloads`] at small scale, in one thread.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// Its name.
    pub workload: String,
    /// How a transaction is made atomic.
    pub mechanism: Mechanism,
    /// By the engine; else by the CPU.
    pub offloaded: bool,
    /// The pool is tracked ([`pm::Layout::tracked`]).
    pub tracked: bool,
    /// What fences wait for.
    pub fence: Fence,
    /// With the CPU: the device keeps posted stores in order ([`Options::ordered`]).
    pub ordered: bool,
    /// Measured transactions, 1 to 4000, after a tenth as many for warm-up.
    pub transactions: u64,
    /// Computation of the program before each of them, ns.
    pub work_ns: f64,
    /// Seed of the transactions.
    pub seed: u64,
    /// Devices that the pool spans: 1, 2 or 4.
    pub devices: usize,
    /// How engines of several devices are synchronised.
    pub synchronise: Synchronisation,
    /// Transactions become durable later, this number of them at a time
    /// ([`Options::group_commit`]).
    pub group: Option<u64>,
}

/// Mean values per transaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkResult {
    /// Total time, with the program's computation, ns.
    pub ns: f64,
    /// The part in code for crash consistency.
    pub consistency_ns: f64,
    /// Of that, until the copies of old content have been requested ([`pm::Counts::creation`]).
    pub creation_ns: f64,
    /// The part in fences, in which the CPU waits.
    pub fences_ns: f64,
    /// The part in which at least one unit works.
    pub units_ns: f64,
    /// The part of that outside of fences: CPU and units work in parallel.
    pub both_ns: f64,
    /// Commands.
    pub commands: f64,
    /// Log records, of the CPU or the engine.
    pub records: f64,
    /// The fraction of aborted transactions.
    pub aborted: f64,
    /// From the begin of a transaction until it is known to be durable, ns: the mean.
    pub acknowledged_ns: f64,
    /// The 99th percentile of that.
    pub acknowledged_p99_ns: f64,
}

impl Benchmark {
    /// Refuses invalid parameters.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_TRANSACTIONS).contains(&self.transactions) {
            return Err(Error::refused(
                "transactions",
                self.transactions,
                "1 to 4000",
            ));
        }
        if !(0.0..=MAX_WORK_NS).contains(&self.work_ns) {
            return Err(Error::refused("work_ns", self.work_ns, "0 to 1000000"));
        }
        validate_devices(self.devices)?;
        validate_group(self.group, self.devices)?;
        self.load_workload()?;
        Ok(())
    }

    fn load_workload(&self) -> Result<Workload> {
        Ok(Workload::new(&self.workload, Scale::SMALL)?)
    }

    /// Runs it on a new device, and compares the final content with the same transactions in host
    /// memory.
    pub fn measure(&self, factory: &Factory, progress: Progress<'_>) -> Result<BenchmarkResult> {
        self.validate()?;
        let workload = self.load_workload()?;
        validate_order(factory.design(), self.ordered, self.offloaded, self.devices)?;
        let (testbed, engines) = testbed(factory, self.devices)?;
        let recorder = ActivityRecorder::new(self.devices);
        let cpu = testbed.cpu(0);
        let options = Options {
            fence: self.fence,
            ordered: self.ordered,
            listener: Some(recorder.listener()),
            synchronise: self.synchronise,
            group_commit: self.group,
            ..Options::with_engines(executors(&engines, self.offloaded))
        };
        let layout = match self.tracked {
            true => workload.layout(self.mechanism).with_tracking(),
            false => workload.layout(self.mechanism),
        };
        let bytes = self.pool_bytes(&workload, factory.design().media.bytes.0)?;
        let all = bytes * self.devices as u64;
        let devices: Vec<usize> = (0..self.devices).collect();
        let pool = Pool::create(&cpu, devices, 0, all, &layout, &options)?;
        let mut thread = pool.thread(&cpu)?;
        workload.create(&mut thread, self.seed)?;
        let mut contents = workload.initial_contents(self.seed)?;
        let work = Time((self.work_ns * 1e3).round() as u64);
        let before = self.transactions / 10;
        let total = before + self.transactions;
        let mut latencies = Latencies::default();
        let (mut begin, mut counts, mut aborted) = (cpu.now(), thread.counts(), 0);
        for n in 0..total {
            report_progress(progress, n, total)?;
            if n == before {
                thread.sync()?;
                latencies = Latencies::default();
                recorder.start(testbed.machine());
                (begin, counts) = (cpu.now(), thread.counts());
            }
            cpu.compute(work)?;
            let start = cpu.now();
            let committed = match self.group {
                None => workload.perform(&mut thread, self.seed, n)?,
                Some(_) => {
                    let ticket = workload.perform_later(&mut thread, self.seed, n)?;
                    ticket.is_some()
                }
            };
            latencies.add(&thread, start);
            workload.apply(&mut contents, self.seed, n)?;
            aborted += u64::from(!committed && n >= before);
        }
        thread.sync()?;
        latencies.note_durable(&thread);
        let (acknowledged_ns, acknowledged_p99_ns) = latencies.mean_and_p99();
        let (end, after) = (cpu.now(), thread.counts());
        // Accepted commands end, so that their times are known.
        cpu.compute(DRAIN_TIME)?;
        cpu.fence(Fence::ReadBack)?;
        let (parts, events) = (recorder.parts(), recorder.events());
        if workload.inspect(&mut thread)?.contents != contents {
            return Err(Error::WrongData(format!(
                "{}: {total} transactions have left what they should not have",
                self.workload
            )));
        }
        let units = union(events.flat_map(|one| {
            let of = unit_commands(&one).into_iter();
            of.map(|work| (work.begin.max(begin), work.end.min(end)))
        }));
        let fences = union(parts.iter().filter_map(|(part, from, to)| {
            (*part == ConsistencyOperation::Fence).then_some(((*from).max(begin), (*to).min(end)))
        }));
        let each = |time: Time| time.as_ns() / self.transactions as f64;
        Ok(BenchmarkResult {
            ns: each(end - begin),
            consistency_ns: each(after.consistency - counts.consistency),
            creation_ns: each(after.creation - counts.creation),
            fences_ns: each(length(&fences)),
            units_ns: each(length(&units)),
            both_ns: each(length(&units) - length(&intersection(&units, &fences))),
            commands: (after.commands - counts.commands) as f64 / self.transactions as f64,
            records: (after.records - counts.records) as f64 / self.transactions as f64,
            aborted: aborted as f64 / self.transactions as f64,
            acknowledged_ns,
            acknowledged_p99_ns,
        })
    }

    /// Transactions may add rows, which stay.
    fn pool_bytes(&self, workload: &Workload, media: u64) -> Result<u64> {
        let bytes = 4 * workload.pool_bytes();
        match 2 * bytes <= media {
            true => Ok(bytes),
            false => Err(Error::refused("media.bytes", media, "64 MiB and more")),
        }
    }
}

/// Begin and end.
type Interval = (Time, Time);

/// Merges overlapping intervals, in order.
fn union(of: impl Iterator<Item = Interval>) -> Vec<Interval> {
    let mut all: Vec<Interval> = of.filter(|(from, to)| from < to).collect();
    all.sort_unstable();
    let mut out: Vec<Interval> = Vec::new();
    for (from, to) in all {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// The intersection of two unions.
fn intersection(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(one), Some(other)) = (a.get(i), b.get(j)) {
        let both = (one.0.max(other.0), one.1.min(other.1));
        if both.0 < both.1 {
            out.push(both);
        }
        match one.1 <= other.1 {
            true => i += 1,
            false => j += 1,
        }
    }
    out
}

fn length(of: &[Interval]) -> Time {
    of.iter()
        .fold(Time::ZERO, |sum, (from, to)| sum + (*to - *from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(of: &[(u64, u64)]) -> Vec<Interval> {
        let both = |(from, to): &(u64, u64)| (Time::ns(*from), Time::ns(*to));
        of.iter().map(both).collect()
    }

    #[test]
    fn union_counts_overlapping_time_once() {
        let units = union(ns(&[(20, 30), (0, 10), (5, 12), (12, 13), (7, 7)]).into_iter());
        assert_eq!(units, ns(&[(0, 13), (20, 30)]));
        assert_eq!(length(&units), Time::ns(23));
    }

    #[test]
    fn intersection_of_two_unions() {
        let (a, b) = (
            ns(&[(0, 13), (20, 30), (40, 50)]),
            ns(&[(5, 22), (25, 26), (50, 60)]),
        );
        assert_eq!(intersection(&a, &b), ns(&[(5, 13), (20, 22), (25, 26)]));
        assert_eq!(intersection(&a, &b), intersection(&b, &a));
        assert_eq!(intersection(&a, &[]), []);
    }
}
