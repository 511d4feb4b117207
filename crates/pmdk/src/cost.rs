// SPDX-License-Identifier: Apache-2.0

//! The cost of a program's crash consistency: its trace is replayed on a simulated host with a
//! device.

use host::{Cpu, Fence, Mapping, MemoryType};
use pm::{EngineHandle, Error, Result};
use serde::Serialize;
use sim::Time;
use spec::nearpm::{Command, Operation, LINE};
use testbed::Testbed;

use crate::trace::{is_posted, Event};

/// The sums over all transactions, from the first transaction on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Outermost transactions.
    pub transactions: u64,
    /// Lines that were written back.
    pub lines: u64,
    /// Fences.
    pub fences: u64,
    /// Bytes that were copied past the cache.
    pub streamed: u64,
    /// Commands to the engine.
    pub commands: u64,
    /// Simulated time of all of these, ns.
    pub ns: f64,
    /// Of that, of write-backs.
    pub lines_ns: f64,
    /// Of fences.
    pub fences_ns: f64,
    /// Of copies.
    pub streams_ns: f64,
    /// Of commands.
    pub commands_ns: f64,
}

/// The lines of a range, each with the part of it that is in the range.
fn lines(place: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = place + bytes;
    let mut at = place;
    std::iter::from_fn(move || {
        let next = (at / LINE + 1) * LINE;
        let piece = (at, next.min(end) - at);
        at = next.min(end);
        (piece.1 > 0).then_some(piece)
    })
}

fn timed(cpu: &Cpu, spent: &mut Time, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = cpu.now();
    act()?;
    *spent += cpu.now() - before;
    Ok(())
}

/// A log, by pool and thread, and its process.
type Log = ((u8, u8), u16);

/// Waits until the commands of these logs have ended; an error if one was refused.
fn wait_for_commands(engine: &EngineHandle, cpu: &Cpu, logs: &[Log]) -> Result<()> {
    for ((pool, thread), process) in logs {
        let any = Command::new(Operation::Sync, *process, *pool, *thread);
        engine.sync(cpu, &any)?;
    }
    Ok(())
}

/// Replays a trace, one event after the other on one CPU. The program's loads and stores take no
/// time: flushed lines are in the cache, and dirty.
pub fn replay(testbed: &Testbed, events: &[Event], fence: Fence) -> Result<Cost> {
    let media = testbed.design(0).media.bytes.0;
    for event in events {
        if let Event::Flush { place, bytes } | Event::Stream { place, bytes } = *event {
            if place > media || bytes > media - place {
                let text = format!(
                    "the program persists {bytes} bytes at {place:#x} of the window: the design's \
                     media have {media}"
                );
                return Err(Error::Invalid(text));
            }
        }
    }
    let engines = EngineHandle::of_testbed(testbed);
    let engine = engines.first().ok_or_else(|| {
        Error::Invalid("the design has no engine `nearpm`: take one that has, as `nearpm`".into())
    })?;
    let cpu = testbed.cpu(0);
    let pm = Mapping::pm(0, MemoryType::WriteBack);
    let mut cost = Cost::default();
    let [mut flushed, mut fenced, mut streamed, mut commanded] = [Time::ZERO; 4];
    let mut logs: Vec<Log> = Vec::new();
    for event in events {
        let counts = cost.transactions > 0;
        match *event {
            Event::Transaction => cost.transactions += 1,
            Event::Flush { place, bytes } if counts => {
                for (at, _) in lines(place, bytes) {
                    let at = at / LINE * LINE;
                    let mut old = [0; 8];
                    cpu.load(&pm, at, &mut old)?;
                    cpu.store(&pm, at, &old)?;
                    timed(&cpu, &mut flushed, || Ok(cpu.clwb(&pm, at)?))?;
                    cost.lines += 1;
                }
            }
            Event::Stream { place, bytes } if counts => {
                for (at, part) in lines(place, bytes) {
                    let data = [0; LINE as usize];
                    let data = &data[..part as usize];
                    timed(&cpu, &mut streamed, || Ok(cpu.ntstore(&pm, at, data)?))?;
                }
                cost.streamed += bytes;
            }
            Event::Fence if counts => {
                timed(&cpu, &mut fenced, || Ok(cpu.fence(fence)?))?;
                cost.fences += 1;
            }
            Event::Command(command) if counts && is_posted(command.operation) => {
                let give = || engine.submit(&cpu, &command).map(drop);
                timed(&cpu, &mut commanded, give)?;
                cost.commands += 1;
                let log = (command.pool, command.thread);
                if !logs.iter().any(|(known, _)| *known == log) {
                    logs.push((log, command.process));
                }
            }
            Event::Command(command) => {
                let unmaps = command.operation == Operation::PoolUnmap;
                if unmaps {
                    let (gone, stay) = logs
                        .into_iter()
                        .partition(|((pool, _), _)| *pool == command.pool);
                    logs = stay;
                    wait_for_commands(engine, &cpu, &gone)?;
                }
                let give = || {
                    let (results, _) = engine.launch(&cpu, &command)?;
                    // A pool is unmapped before it is mapped, in case another process had it.
                    if !unmaps && !results.is_ok() {
                        return Err(Error::Refused(command.operation, results));
                    }
                    Ok(())
                };
                if counts && command.operation == Operation::Abort {
                    timed(&cpu, &mut commanded, give)?;
                    cost.commands += 1;
                } else {
                    give()?;
                }
            }
            Event::Flush { .. } | Event::Stream { .. } | Event::Fence => {}
        }
    }
    wait_for_commands(engine, &cpu, &logs)?;
    let all = [flushed, fenced, streamed, commanded].map(Time::as_ns);
    [
        cost.lines_ns,
        cost.fences_ns,
        cost.streams_ns,
        cost.commands_ns,
    ] = all;
    cost.ns = all.iter().sum();
    Ok(cost)
}
