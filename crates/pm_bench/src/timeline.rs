// SPDX-License-Identifier: Apache-2.0

//! The activity of CPU, units and devices during transactions, as in figures 5 and 6 of the paper.

use device::Factory;
use host::Fence;
use pm::{ConsistencyOperation, Layout, Mechanism, Options, Pool, Synchronisation};
use serde::Serialize;
use sim::{Time, TraceEvent};
use spec::nearpm::Operation;

use crate::activity::{unit_commands, ActivityRecorder, TimedOperation};
use crate::devices::{executors, validate_devices};
use crate::{testbed, Error, Result};

/// Bytes of the pool.
const POOL: u64 = 32 << 20;
const PAGE: u64 = 4096;
/// Warm-up transactions, so that caches and pages are in a steady state.
const WARMUP_TRANSACTIONS: u64 = 4;
/// Computation of the program before each of its stores.
const WORK: Time = Time::ns(150);
/// How long the devices are recorded after the last transaction.
const DRAIN_TIME: Time = Time::us(4);
/// Limits of a timeline.
const MAX_OBJECTS: u64 = 8;
const MAX_BYTES: u64 = 16 << 10;
const MAX_TRANSACTIONS: u64 = 8;

/// Transactions that change several objects each.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    /// How a transaction is made atomic.
    pub mechanism: Mechanism,
    /// The pool is tracked ([`pm::Layout::tracked`]).
    pub tracked: bool,
    /// By the engines; else by the CPU.
    pub offloaded: bool,
    /// Devices that the pool spans: 1, 2 or 4.
    pub devices: usize,
    /// How engines of several devices are synchronised.
    pub synchronise: Synchronisation,
    /// Objects that each transaction changes, 1 to 8.
    pub objects: u64,
    /// Bytes of each object, a multiple of 8 up to 16 KiB.
    pub bytes: u64,
    /// Number of transactions, 1 to 8.
    pub transactions: u64,
}

/// An activity with a duration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// "CPU", or "device 0, unit 1".
    pub who: String,
    /// Of the CPU "program", "copy", "flush", "command" or "fence"; of a unit the operation.
    pub what: String,
    /// Since the begin of the first transaction, ns.
    pub begin_ns: f64,
    /// As `begin_ns`.
    pub end_ns: f64,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// "CPU", or "device 0".
    pub who: String,
    /// Of the CPU "begin" or "end" of a transaction. Of a device its notification of a peer, or
    /// "deleted" for a log whose records are void.
    pub what: String,
    /// Since the begin of the first transaction, ns.
    pub at_ns: f64,
}

/// All activities and events, in the order of their begin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineResult {
    /// From the begin of the first transaction to the end of the last one, ns.
    pub took_ns: f64,
    /// The part of it in fences, ns.
    pub fences_ns: f64,
    /// Of CPU and units.
    pub spans: Vec<Span>,
    /// Of transactions and devices.
    pub marks: Vec<Mark>,
}

impl Timeline {
    /// Refuses invalid parameters.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_OBJECTS).contains(&self.objects) {
            return Err(Error::refused("objects", self.objects, "1 to 8"));
        }
        if self.bytes == 0 || self.bytes > MAX_BYTES || self.bytes % 8 != 0 {
            let allowed = "multiples of 8 up to 16384";
            return Err(Error::refused("bytes", self.bytes, allowed));
        }
        validate_devices(self.devices)?;
        if !(1..=MAX_TRANSACTIONS).contains(&self.transactions) {
            return Err(Error::refused("transactions", self.transactions, "1 to 8"));
        }
        Ok(())
    }

    /// Runs the transactions on new devices.
    pub fn measure(&self, factory: &Factory) -> Result<TimelineResult> {
        self.validate()?;
        let (testbed, engines) = testbed(factory, self.devices)?;
        let cpu = testbed.cpu(0);
        let recorder = ActivityRecorder::new(self.devices);
        let options = Options {
            fence: Fence::ReadBack,
            synchronise: self.synchronise,
            listener: Some(recorder.listener()),
            ..Options::with_engines(executors(&engines, self.offloaded))
        };
        let layout = Layout::new("timeline").with_mechanism(self.mechanism);
        // All bytes that a transaction changes, in whole pages. Each object has an additional page
        // for record headers, and one for the pool's metadata.
        let room = self.objects * (self.bytes.next_multiple_of(PAGE) + 2 * PAGE);
        let layout = Layout {
            // A record of a line takes two.
            log_bytes: layout.log_bytes.max(room) << u32::from(self.tracked),
            ..layout
        };
        let layout = match self.tracked {
            true => layout.with_tracking(),
            false => layout,
        };
        let devices: Vec<usize> = (0..self.devices).collect();
        let pool = Pool::create(&cpu, devices, 0, POOL, &layout, &options)?;
        let mut thread = pool.thread(&cpu)?;
        let zeros = vec![0; self.bytes as usize];
        let objects = thread.run(|tx| {
            let all = (0..self.objects).map(|_| {
                let at = tx.alloc_bytes(self.bytes)?.offset();
                tx.write(at, &zeros)?;
                Ok::<_, pm::Error>(at)
            });
            all.collect::<std::result::Result<Vec<_>, _>>()
        })?;
        let mut transaction = |n: u64| {
            thread.run(|tx| {
                for at in &objects {
                    tx.cpu().compute(WORK)?;
                    tx.add_range(*at, self.bytes)?;
                    tx.write(*at, &vec![n as u8 + 1; self.bytes as usize])?;
                }
                Ok::<_, pm::Error>(())
            })
        };
        for n in 0..WARMUP_TRANSACTIONS {
            transaction(n)?;
        }
        cpu.compute(Time::us(20))?;
        cpu.fence(Fence::ReadBack)?;
        recorder.start(testbed.machine());
        let begin = cpu.now();
        let mut marks = Vec::new();
        for n in 0..self.transactions {
            marks.push(("begin", cpu.now()));
            transaction(WARMUP_TRANSACTIONS + n)?;
            marks.push(("end", cpu.now()));
        }
        let end = cpu.now();
        cpu.compute(DRAIN_TIME)?;
        cpu.fence(Fence::ReadBack)?;
        drop(thread);
        let parts = recorder.parts().into_iter();
        let parts: Vec<TimedOperation> = parts.filter(|part| part.2 <= end).collect();
        let mut drawn = TimelineResult {
            took_ns: (end - begin).as_ns(),
            fences_ns: parts
                .iter()
                .filter(|part| part.0 == ConsistencyOperation::Fence)
                .map(|part| (part.2 - part.1).as_ns())
                .sum(),
            spans: cpu_spans(&parts, begin, end),
            marks: marks
                .into_iter()
                .map(|(what, at)| Mark {
                    who: "CPU".into(),
                    what: what.into(),
                    at_ns: ns_since(at, begin),
                })
                .collect(),
        };
        for (device, events) in recorder.events().enumerate() {
            add_device(&mut drawn, device, &events, begin);
        }
        Ok(drawn)
    }
}

fn ns_since(at: Time, begin: Time) -> f64 {
    at.as_ns() - begin.as_ns()
}

/// The activities of the CPU: outside of the recorded operations it runs the program, and the
/// library's other code.
fn cpu_spans(parts: &[TimedOperation], begin: Time, end: Time) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut add = |what: &str, from: Time, to: Time| {
        let (begin_ns, end_ns) = (ns_since(from, begin), ns_since(to, begin));
        match spans.last_mut() {
            _ if from >= to => {}
            Some(last) if last.what == what && last.end_ns == begin_ns => last.end_ns = end_ns,
            _ => spans.push(Span {
                who: "CPU".into(),
                what: what.into(),
                begin_ns,
                end_ns,
            }),
        }
    };
    let mut at = begin;
    for (part, from, to) in parts {
        add("program", at, *from);
        let what = match part {
            ConsistencyOperation::Fence => "fence",
            ConsistencyOperation::Copy => "copy",
            ConsistencyOperation::Flush => "flush",
            ConsistencyOperation::Command => "command",
        };
        add(what, *from, *to);
        at = *to;
    }
    add("program", at, end);
    spans
}

/// Adds the activities and events of a device.
fn add_device(
    drawn: &mut TimelineResult,
    device: usize,
    events: &[(Time, TraceEvent)],
    begin: Time,
) {
    drawn
        .spans
        .extend(unit_commands(events).into_iter().map(|work| {
            let operation = Operation::from_number(work.operation);
            Span {
                who: format!("device {device}, unit {}", work.unit),
                what: operation.map_or_else(String::new, |one| format!("{one:?}").to_lowercase()),
                begin_ns: ns_since(work.begin, begin),
                end_ns: ns_since(work.end, begin),
            }
        }));
    for (time, event) in events {
        let what = match event {
            TraceEvent::PeerNotified { .. } => "notified",
            TraceEvent::LogDeleted { .. } => "deleted",
            _ => continue,
        };
        drawn.marks.push(Mark {
            who: format!("device {device}"),
            what: what.into(),
            at_ns: ns_since(*time, begin),
        });
    }
}
