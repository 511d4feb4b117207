// SPDX-License-Identifier: Apache-2.0

//! The cost of a program's crash consistency: its trace is replayed on a simulated host with a
//! device.

use std::collections::BTreeSet;

use host::{Cpu, Fence, Mapping, MemoryType};
use pm::{EngineHandle, Error, Result};
use serde::Serialize;
use sim::{Bar, Time};
use spec::nearpm::{Command, Operation, Tracking, LINE, TRACKED_LINES};
use testbed::Testbed;

use crate::trace::{is_posted, Event};

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each fence waits, as the shim and libpmemobj do it.
    Waiting,
    /// Within a transaction a fence only orders, since the device keeps the order of stores. One
    /// wait at the end of the transaction proves that all is persistent.
    Ordered,
    /// The same where no pool is tracked. In a tracked one a transaction has no fences. At its end
    /// are a fence that orders, a commit, and a wait.
    Tracked,
}

impl Way {
    /// All ways with their names.
    pub const ALL: [(&'static str, Way); 3] = [
        ("waiting", Way::Waiting),
        ("ordered", Way::Ordered),
        ("tracked", Way::Tracked),
    ];
}

impl std::str::FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Way> {
        let found = Way::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, way)| *way).ok_or_else(|| {
            Error::Invalid(format!(
                "way = {name:?}: allowed are waiting, ordered, tracked"
            ))
        })
    }
}

/// The sums over all transactions, from the first transaction on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Outermost transactions.
    pub transactions: u64,
    /// Those in tracked pools.
    pub tracked: u64,
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
    /// Simulated time from the begin of each transaction to its end: the same, and the stores to
    /// the flushed lines. Without the program's computation.
    pub whole_ns: f64,
    /// The most lines that one transaction has stored to.
    pub most_lines: u64,
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

/// A mapped pool: its number, its process, and the places of its contents, without the logs.
struct Pool {
    number: u8,
    process: u16,
    start: u64,
    end: u64,
}

/// Waits until the commands of these logs have ended; an error if one was refused.
fn wait_for_commands(engine: &EngineHandle, cpu: &Cpu, logs: &[Log]) -> Result<()> {
    for ((pool, thread), process) in logs {
        let any = Command::new(Operation::Sync, *process, *pool, *thread);
        engine.sync(cpu, &any)?;
    }
    Ok(())
}

/// A replay under way.
struct Replay<'a> {
    engine: &'a EngineHandle,
    cpu: Cpu,
    fence: Fence,
    way: Way,
    cost: Cost,
    flushed: Time,
    fenced: Time,
    streamed: Time,
    commanded: Time,
    whole: Time,
    /// Logs with posted commands.
    logs: Vec<Log>,
    /// Tracked pools.
    pools: Vec<Pool>,
    /// The begin of the transaction under way.
    began: Option<Time>,
    /// Lines that it has stored to. With tracking also those since the last commit.
    touched: BTreeSet<u64>,
    /// Fences that only order have left their wait to the end of the transaction.
    deferred: bool,
}

impl Replay<'_> {
    fn counts(&self) -> bool {
        self.cost.transactions > 0
    }

    /// Pools are tracked now.
    fn tracks(&self) -> bool {
        !self.pools.is_empty()
    }

    fn pm() -> Mapping {
        Mapping::pm(0, MemoryType::WriteBack)
    }

    fn touch(&mut self, line: u64) -> Result<()> {
        self.touched.insert(line);
        let lines = self.touched.len() as u64;
        if self.tracks() && lines > TRACKED_LINES as u64 {
            return Err(Error::Invalid(format!(
                "a transaction stores to more than {TRACKED_LINES} lines: a tracked pool allows no \
                 more"
            )));
        }
        if self.began.is_some() {
            self.cost.most_lines = self.cost.most_lines.max(lines);
        }
        Ok(())
    }

    fn flush(&mut self, place: u64, bytes: u64) -> Result<()> {
        let pm = Self::pm();
        for (at, _) in lines(place, bytes) {
            let at = at / LINE * LINE;
            self.touch(at)?;
            let mut old = [0; 8];
            self.cpu.load(&pm, at, &mut old)?;
            self.cpu.store(&pm, at, &old)?;
            timed(&self.cpu, &mut self.flushed, || {
                Ok(self.cpu.clwb(&pm, at)?)
            })?;
            self.cost.lines += 1;
        }
        Ok(())
    }

    fn stream(&mut self, place: u64, bytes: u64) -> Result<()> {
        let pm = Self::pm();
        for (at, part) in lines(place, bytes) {
            self.touch(at / LINE * LINE)?;
            let data = [0; LINE as usize];
            let data = &data[..part as usize];
            let store = || Ok(self.cpu.ntstore(&pm, at, data)?);
            timed(&self.cpu, &mut self.streamed, store)?;
        }
        self.cost.streamed += bytes;
        Ok(())
    }

    fn wait(&mut self, what: Fence) -> Result<()> {
        timed(&self.cpu, &mut self.fenced, || Ok(self.cpu.fence(what)?))?;
        self.cost.fences += 1;
        Ok(())
    }

    fn submit(&mut self, command: &Command) -> Result<()> {
        let give = || self.engine.submit(&self.cpu, command).map(drop);
        timed(&self.cpu, &mut self.commanded, give)?;
        self.cost.commands += 1;
        let log = (command.pool, command.thread);
        if !self.logs.iter().any(|(known, _)| *known == log) {
            self.logs.push((log, command.process));
        }
        Ok(())
    }

    /// Waits until all that was sent is persistent. The fence reads back although fences that only
    /// order came before it, and also covers commands.
    fn prove(&mut self) -> Result<()> {
        let page = Mapping {
            device: 0,
            bar: Bar::Control,
            kind: MemoryType::Uncached,
        };
        self.cpu.note_store(&page, self.engine.page())?;
        self.wait(self.fence)
    }

    /// Commits the tracked pools that were stored to.
    fn commit_tracked(&mut self) -> Result<()> {
        let touched = std::mem::take(&mut self.touched);
        let of = |pool: &&Pool| touched.range(pool.start..pool.end).next().is_some();
        let commits: Vec<_> = (self.pools.iter().filter(of))
            .map(|pool| Command::new(Operation::Commit, pool.process, pool.number, 0))
            .collect();
        if commits.is_empty() {
            return Ok(());
        }
        self.wait(Fence::Posted)?;
        for commit in &commits {
            self.submit(commit)?;
        }
        self.prove()
    }

    fn begin(&mut self) -> Result<()> {
        if self.tracks() {
            self.cost.tracked += 1;
            // What was stored to before is not part of the transaction.
            self.commit_tracked()?;
        }
        self.touched.clear();
        self.cost.transactions += 1;
        self.began = Some(self.cpu.now());
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match self.way {
            Way::Waiting => {}
            Way::Tracked if self.tracks() => self.commit_tracked()?,
            Way::Ordered | Way::Tracked if self.deferred => self.prove()?,
            Way::Ordered | Way::Tracked => {}
        }
        self.deferred = false;
        if let Some(began) = self.began.take() {
            self.whole += self.cpu.now() - began;
        }
        Ok(())
    }

    fn on_fence(&mut self) -> Result<()> {
        match self.way {
            Way::Tracked if self.tracks() && self.began.is_some() => Ok(()),
            // Outside of transactions what is fenced must not be undone.
            Way::Tracked if self.tracks() && !self.touched.is_empty() => self.commit_tracked(),
            Way::Ordered | Way::Tracked if self.began.is_some() => {
                self.deferred = true;
                self.wait(Fence::Posted)
            }
            Way::Waiting | Way::Ordered | Way::Tracked => self.wait(self.fence),
        }
    }

    /// A command that the program waits for.
    fn launch(&mut self, command: &Command) -> Result<()> {
        let (results, _) = self.engine.launch(&self.cpu, command)?;
        // A pool is unmapped before it is mapped, in case another process had it.
        if command.operation != Operation::PoolUnmap && !results.is_ok() {
            return Err(Error::Refused(command.operation, results));
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<()> {
        // The replay commits tracked pools by itself.
        if self.tracks() && command.operation == Operation::Commit {
            return Ok(());
        }
        if self.counts() && is_posted(command.operation) {
            return self.submit(command);
        }
        if command.operation == Operation::PoolUnmap {
            let (gone, stay) = std::mem::take(&mut self.logs)
                .into_iter()
                .partition(|((pool, _), _)| *pool == command.pool);
            self.logs = stay;
            self.pools.retain(|pool| pool.number != command.pool);
            let gone: Vec<Log> = gone;
            wait_for_commands(self.engine, &self.cpu, &gone)?;
        }
        let before = self.cpu.now();
        self.launch(command)?;
        if self.way == Way::Tracked && command.operation == Operation::PoolMap {
            self.add_tracked(command);
        }
        if self.counts() && command.operation == Operation::Abort {
            self.commanded += self.cpu.now() - before;
            self.cost.commands += 1;
        }
        Ok(())
    }

    fn add_tracked(&mut self, map: &Command) {
        let tracking = Tracking::from_extra(map.extra).map(|(_, tracking)| tracking);
        if tracking == Some(Tracking::Undo) {
            self.pools.push(Pool {
                number: map.pool,
                process: map.process,
                start: map.target,
                end: map.target + map.transaction,
            });
        }
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        match *event {
            Event::Transaction => self.begin(),
            Event::End if self.counts() => self.end(),
            Event::Flush { place, bytes } if self.counts() => self.flush(place, bytes),
            Event::Stream { place, bytes } if self.counts() => self.stream(place, bytes),
            Event::Fence if self.counts() => self.on_fence(),
            Event::Command(command) => self.command(&command),
            Event::Flush { .. } | Event::Stream { .. } | Event::Fence | Event::End => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Cost> {
        wait_for_commands(self.engine, &self.cpu, &self.logs)?;
        let all = [self.flushed, self.fenced, self.streamed, self.commanded].map(Time::as_ns);
        let cost = &mut self.cost;
        [
            cost.lines_ns,
            cost.fences_ns,
            cost.streams_ns,
            cost.commands_ns,
        ] = all;
        cost.ns = all.iter().sum();
        cost.whole_ns = self.whole.as_ns();
        Ok(self.cost)
    }
}

/// Replays a trace, one event after the other on one CPU. The program's loads and stores take no
/// time: flushed lines are in the cache, and dirty.
pub fn replay(testbed: &Testbed, events: &[Event], fence: Fence, way: Way) -> Result<Cost> {
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
    let mut replay = Replay {
        engine,
        cpu: testbed.cpu(0),
        fence,
        way,
        cost: Cost::default(),
        flushed: Time::ZERO,
        fenced: Time::ZERO,
        streamed: Time::ZERO,
        commanded: Time::ZERO,
        whole: Time::ZERO,
        logs: Vec::new(),
        pools: Vec::new(),
        began: None,
        touched: BTreeSet::new(),
        deferred: false,
    };
    for event in events {
        replay.event(event)?;
    }
    replay.finish()
}
