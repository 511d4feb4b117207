// SPDX-License-Identifier: Apache-2.0

//! The conflict filter: dependencies of PM window stores and loads, and of accesses of the NVMe
//! controller.
//!
//! Each access is looked up once. It depends on older commands that it overlaps, and on older lines
//! of its channel's queue.

use std::any::Any;
use std::collections::VecDeque;

use spec::nearpm::{LINE, QUEUE_LINES, WAITING_LOADS};

use super::contexts::Contexts;
use super::table::{
    CommandSet, PrerequisiteProgress, Prerequisites, ReadyCommand, Table, CHANNELS,
};
use super::unit_command::{LineRange, UnitCommand};
use crate::config::{Config, FaultInjection};
use crate::conflict_filter::{ConflictFilter, StoreDecision, TrackedStore};

/// Cycles from a line's data, and from a command's end, until the line is issued.
const ISSUE_CYCLES: u64 = 3;
/// Cycles to find out whether the first tracked line of a store has a record, and each further one.
const FIRST_LOOKUP: u64 = 3;
const LOOKUP: u64 = 2;
/// Cycles to insert a record.
const INSERT: u64 = 5;

/// The dependencies of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dependencies {
    commands: CommandSet,
    /// Lines of its channel's queue, counted from the first one.
    lines: u64,
}

/// A line of a store that waits, or that the memory has not answered.
pub(super) struct QueuedLine {
    /// Number of the line on the media.
    pub(super) line: u64,
    /// The bytes that are written, one bit each.
    pub(super) strobes: u64,
    pub(super) data: [u8; LINE as usize],
    pub(super) commands: CommandSet,
    /// Its data are available from this edge on.
    pub(super) from: u64,
    /// It has been issued to the memory.
    begun: bool,
}

/// A waiting load. Only the first ones have been looked up.
struct WaitingLoad {
    number: u32,
    lines: LineRange,
    dependencies: Option<Dependencies>,
}

/// A controller address that has been looked up and waits.
#[derive(Clone, Copy)]
struct HeldAccess {
    addr: u64,
    dependencies: Dependencies,
}

#[derive(Default)]
struct Channel {
    lines: VecDeque<QueuedLine>,
    /// Lines that have been queued, and that are in the memory.
    queued: u64,
    written: u64,
    /// The next line is issued at this edge at the earliest.
    free: u64,
    loads: VecDeque<WaitingLoad>,
    /// By direction: 0 reads, 1 writes.
    held_accesses: [Option<HeldAccess>; 2],
    /// Writes of the controller that have passed.
    passed: u64,
}

/// A line that is issued to the memory.
pub(crate) struct IssuedLine {
    pub(crate) addr: u64,
    pub(crate) strobes: u64,
    pub(crate) data: [u8; LINE as usize],
    pub(crate) cycle: u64,
}

/// The filter, its table of commands, and the pools and logs by which it tracks stores.
pub(crate) struct NearPmFilter {
    pub(super) table: Table,
    pub(super) contexts: Contexts,
    /// Number of internal records so far.
    pub(super) tracked: u32,
    /// What has come before the last command of the host: an internal record waits for no more,
    /// since no store of its epoch has changed its line.
    before_host: Prerequisites,
    channels: Vec<Channel>,
    done: PrerequisiteProgress,
    /// Queued stores whose answer is scheduled: edge and tag.
    answers: Vec<(u64, u32)>,
    /// The range from here to the end of the media is reserved for the engine.
    pub(super) reserved: u64,
    media: u64,
    /// The PM window and the command pages are closed because a restored command has not ended. No
    /// command starts before the edge.
    closed: Option<u64>,
    /// Saved state could not be restored: accesses are errors until a reset.
    restore_failed: bool,
    /// A line of a queue could not be written.
    pub(super) line_error: bool,
    /// Maximum fill level of a queue, and the number of stores that had to wait.
    max_lines: usize,
    queued_stores: u32,
    fault_injection: Option<FaultInjection>,
}

impl NearPmFilter {
    /// The filter of a device whose engine has reserved bytes at the end of the media. It is closed
    /// until an edge.
    pub(super) fn new(config: &Config, reserved: u64, opens: u64) -> NearPmFilter {
        let channels = config.storage.channels as usize;
        NearPmFilter {
            table: Table::new(),
            contexts: Contexts::new(config.storage.bytes - reserved),
            tracked: 0,
            before_host: Prerequisites::default(),
            channels: (0..channels).map(|_| Channel::default()).collect(),
            done: PrerequisiteProgress::default(),
            answers: Vec::new(),
            reserved: config.storage.bytes - reserved,
            media: config.storage.bytes,
            closed: Some(opens),
            restore_failed: false,
            line_error: false,
            max_lines: 0,
            queued_stores: 0,
            fault_injection: config.fault_injection,
        }
    }

    /// Number of lines in a channel's queue.
    pub(super) fn queued(&self, channel: usize) -> usize {
        self.channels.get(channel).map_or(0, |c| c.lines.len())
    }

    /// Maximum fill level, stores that had to wait, and loads that wait.
    pub(super) fn counts(&self) -> [u32; 3] {
        let loads: usize = self.channels.iter().map(|c| c.loads.len()).sum();
        [self.max_lines as u32, self.queued_stores, loads as u32]
    }

    pub(super) fn has_failed_restore(&self) -> bool {
        self.restore_failed
    }

    /// Opens when all restored commands have ended. True: it opened now.
    pub(super) fn open_if_idle(&mut self, now: u64) -> bool {
        let is_drained = self.is_empty() && self.closed.is_some_and(|at| at <= now);
        if is_drained {
            self.closed = None;
        }
        is_drained
    }

    /// There is no command and no waiting line.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty() && self.channels.iter().all(|c| c.lines.is_empty())
    }

    /// The dependencies of an access to a channel.
    fn dependencies(&self, channel: usize, lines: &LineRange, write: bool) -> Dependencies {
        let commands = match write {
            true => self.table.touching(lines),
            false => self.table.writing(lines),
        };
        let channel = &self.channels[channel];
        let within = |line: &QueuedLine| (lines.first..=lines.last).contains(&line.line);
        let lines = match channel.lines.iter().any(within) {
            true => channel.queued,
            false => 0,
        };
        Dependencies { commands, lines }
    }

    fn is_free(&self, channel: usize, dependencies: &Dependencies) -> bool {
        if self.fault_injection == Some(FaultInjection::ConflictFilter) {
            return true;
        }
        dependencies.commands == 0 && dependencies.lines <= self.channels[channel].written
    }

    /// Takes a load of a channel whose dependencies are resolved.
    pub(super) fn next_free_load(&mut self, channel: usize) -> Option<u32> {
        for place in 0..self.channels[channel].loads.len().min(WAITING_LOADS) {
            let load = &self.channels[channel].loads[place];
            let dependencies = match load.dependencies {
                Some(dependencies) => dependencies,
                None => self.dependencies(channel, &load.lines, false),
            };
            if self.is_free(channel, &dependencies) {
                let load = self.channels[channel].loads.remove(place);
                return load.map(|load| load.number);
            }
            self.channels[channel].loads[place].dependencies = Some(dependencies);
        }
        None
    }

    /// Inserts a command that follows the first `stores` stores to the PM window.
    pub(super) fn insert(&mut self, number: u8, job: UnitCommand, stores: u64, from: u64) {
        self.before_host.stores = stores;
        for (n, channel) in self.channels.iter().enumerate().take(CHANNELS) {
            self.before_host.writes[n] = channel.passed;
            self.before_host.lines[n] = channel.queued;
        }
        self.insert_after_host(number, job, from);
    }

    /// Inserts a command that waits only for what has come before the last command of the host.
    fn insert_after_host(&mut self, number: u8, job: UnitCommand, from: u64) {
        let ranges = job.ranges();
        let mut before = self.before_host;
        for (n, channel) in self.channels.iter().enumerate().take(CHANNELS) {
            let is_older = |(line, _): &(u64, &QueuedLine)| *line <= self.before_host.lines[n];
            let overlaps = |(_, line): (u64, &QueuedLine)| {
                ranges.accesses_overlap(&LineRange {
                    first: line.line,
                    last: line.line,
                })
            };
            let mut older = (channel.written + 1..)
                .zip(&channel.lines)
                .take_while(is_older);
            if !older.any(overlaps) {
                before.lines[n] = 0;
            }
        }
        match self.fault_injection {
            Some(FaultInjection::CommandOrder) => self.table.restore(number, job, 0, before, from),
            _ => self.table.insert(number, job, before, from),
        }
    }

    /// Takes a command that may start, or returns the edge at which one may.
    pub(super) fn next_ready(&mut self, now: u64) -> Result<ReadyCommand, Option<u64>> {
        if let Some(at) = self.closed.filter(|at| *at > now) {
            return Err(Some(at));
        }
        self.table.next_ready(&self.done, now)
    }

    /// A command has ended.
    pub(super) fn command_ended(&mut self, number: u8) {
        self.table.remove(number);
        let left = !(1 << number);
        for channel in &mut self.channels {
            channel
                .lines
                .iter_mut()
                .for_each(|line| line.commands &= left);
            let loads = channel
                .loads
                .iter_mut()
                .filter_map(|load| load.dependencies.as_mut());
            let held_accesses = channel.held_accesses.iter_mut().flatten();
            let dependencies = loads.chain(held_accesses.map(|held| &mut held.dependencies));
            dependencies.for_each(|dependencies| dependencies.commands &= left);
        }
    }

    /// Issues the next line of a channel's queue if it has no dependency.
    pub(super) fn issue_line(&mut self, channel: usize, now: u64) -> Option<IssuedLine> {
        if self.closed.is_some_and(|at| at > now) {
            return None;
        }
        let channel = &mut self.channels[channel];
        let line = channel.lines.iter_mut().find(|line| !line.begun)?;
        if line.from > now || line.commands != 0 {
            return None;
        }
        line.begun = true;
        let cycle = (now + ISSUE_CYCLES).max(channel.free);
        channel.free = cycle + 1;
        Some(IssuedLine {
            addr: line.line * LINE,
            strobes: line.strobes,
            data: line.data,
            cycle,
        })
    }

    /// The oldest line of a channel's queue is in the memory.
    pub(super) fn line_written(&mut self, channel: usize) {
        let channel = &mut self.channels[channel];
        let line = channel.lines.pop_front();
        debug_assert!(line.is_some_and(|line| line.begun), "lines end in order");
        channel.written += 1;
        self.done.0.lines = std::array::from_fn(|n| self.channels.get(n).map_or(0, |c| c.written));
    }

    /// The edge of the next change that needs no external event.
    pub(super) fn next_wake_up(&self, now: u64) -> Option<u64> {
        let answers = self.answers.iter().map(|answer| answer.0);
        let lines = self.channels.iter().filter_map(|channel| {
            let line = channel.lines.iter().find(|line| !line.begun)?;
            (line.commands == 0 && line.from > now).then_some(line.from)
        });
        let opens = self.closed.filter(|at| *at > now);
        answers.chain(lines).chain(opens).min()
    }

    /// Lines of a channel's queue, oldest first.
    pub(super) fn lines(&self, channel: usize) -> impl Iterator<Item = &QueuedLine> {
        self.channels[channel].lines.iter()
    }

    /// Number of lines of a channel that are still to be written up to and including the given one.
    pub(super) fn lines_before(&self, channel: usize, line: u64) -> u64 {
        line.saturating_sub(self.channels[channel].written)
    }

    /// Restores a saved line.
    pub(super) fn restore_line(
        &mut self,
        channel: usize,
        line: u64,
        strobes: u64,
        commands: CommandSet,
        data: &[u8],
    ) {
        let mut bytes = [0; LINE as usize];
        bytes.copy_from_slice(&data[..LINE as usize]);
        let channel = &mut self.channels[channel];
        channel.queued += 1;
        channel.lines.push_back(QueuedLine {
            line,
            strobes,
            data: bytes,
            commands,
            from: 0,
            begun: false,
        });
    }

    /// Restored commands start at an edge.
    pub(super) fn close_until(&mut self, cycle: u64) {
        self.closed = Some(cycle);
    }

    /// Saved state could not be restored.
    pub(super) fn fail_restore(&mut self) {
        self.restore_failed = true;
    }
}

impl ConflictFilter for NearPmFilter {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn channels(&self) -> usize {
        self.channels.len()
    }

    fn is_idle(&self) -> bool {
        self.is_empty() && self.closed.is_none() && self.answers.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn is_reserved(&self, addr: u64, bytes: u64) -> bool {
        addr < self.media && addr + bytes > self.reserved
    }

    fn has_waiting_lines(&self, channel: usize) -> bool {
        let channel = self.channels.get(channel);
        channel.is_some_and(|channel| channel.lines.back().is_some_and(|line| !line.begun))
    }

    fn track_store(
        &mut self,
        (channel, addr, bytes): (usize, u64, u64),
        from: u64,
    ) -> TrackedStore {
        let mut tracked = TrackedStore::default();
        let is_off = self.fault_injection == Some(FaultInjection::Tracking);
        if is_off || channel >= self.channels.len() || !self.contexts.has_tracked_pool() {
            return tracked;
        }
        let lines = LineRange::of(addr, bytes);
        for line in lines.first..=lines.last {
            if !self.contexts.is_tracked(line) {
                continue;
            }
            tracked.cycles += match tracked.cycles {
                0 => FIRST_LOOKUP,
                _ => LOOKUP,
            };
            let Some(pool) = self.contexts.pool_without_record(line) else {
                continue;
            };
            let Some(number) = self.table.free_internal() else {
                tracked.waits = true;
                break;
            };
            let job = self.contexts.record_line(pool, line);
            tracked.cycles += INSERT;
            self.insert_after_host(number, job, from + tracked.cycles);
            self.tracked = self.tracked.wrapping_add(1);
            tracked.records.push(job.ordered(number));
        }
        tracked
    }

    fn check_store(&self, channel: usize, addr: u64, bytes: u64) -> StoreDecision {
        if self.is_closed() {
            return StoreDecision::Wait;
        }
        if channel >= self.channels.len() || self.is_empty() {
            return StoreDecision::Pass;
        }
        let lines = LineRange::of(addr, bytes);
        let dependencies = self.dependencies(channel, &lines, true);
        if self.is_free(channel, &dependencies) {
            return StoreDecision::Pass;
        }
        match self.channels[channel].lines.len() + lines.count() <= QUEUE_LINES {
            true => StoreDecision::Queue,
            false => StoreDecision::Wait,
        }
    }

    fn queue_store(&mut self, channel: usize, addr: u64, data: &[u8], from: u64, number: u32) {
        let lines = LineRange::of(addr, data.len() as u64);
        let commands = self.dependencies(channel, &lines, true).commands;
        let channel = &mut self.channels[channel];
        for line in lines.first..=lines.last {
            let (begin, end) = (line * LINE, (line + 1) * LINE);
            let (first, last) = (addr.max(begin), (addr + data.len() as u64).min(end));
            let (at, len) = ((first - begin) as usize, (last - first) as usize);
            let mut bytes = [0; LINE as usize];
            let source = (first - addr) as usize;
            bytes[at..at + len].copy_from_slice(&data[source..source + len]);
            channel.queued += 1;
            channel.lines.push_back(QueuedLine {
                line,
                strobes: u64::MAX >> (LINE as usize - len) << at,
                data: bytes,
                commands,
                from,
                begun: false,
            });
        }
        let max_lines = channel.lines.len();
        self.max_lines = self.max_lines.max(max_lines);
        self.queued_stores = self.queued_stores.wrapping_add(1);
        self.answers.push((from, number));
    }

    fn next_answer(&mut self, now: u64) -> Option<u32> {
        let place = self.answers.iter().position(|&(at, _)| at <= now)?;
        Some(self.answers.remove(place).1)
    }

    fn set_answered_stores(&mut self, stores: u64) {
        self.done.0.stores = stores;
    }

    fn check_load(&mut self, channel: usize, addr: u64, bytes: u64, number: u32) -> bool {
        let Some(own) = self.channels.get(channel) else {
            return true;
        };
        if own.loads.is_empty() && self.is_empty() {
            return true;
        }
        let lines = LineRange::of(addr, bytes);
        let dependencies = match own.loads.len() < WAITING_LOADS {
            true => Some(self.dependencies(channel, &lines, false)),
            false => None,
        };
        if dependencies.is_some_and(|dependencies| self.is_free(channel, &dependencies)) {
            return true;
        }
        self.channels[channel].loads.push_back(WaitingLoad {
            number,
            lines,
            dependencies,
        });
        false
    }

    fn admit_nvme(&mut self, write: bool, channel: usize, addr: u64, bytes: u64) -> bool {
        let way = usize::from(write);
        let held = self.channels[channel].held_accesses[way].filter(|held| held.addr == addr);
        if held.is_none() && self.is_empty() {
            return true;
        }
        let dependencies = match held {
            Some(held) => held.dependencies,
            None => self.dependencies(channel, &LineRange::of(addr, bytes), write),
        };
        let free = self.is_free(channel, &dependencies);
        self.channels[channel].held_accesses[way] =
            (!free).then_some(HeldAccess { addr, dependencies });
        free
    }

    fn nvme_write_issued(&mut self, channel: usize) {
        self.channels[channel].passed += 1;
    }

    fn nvme_write_done(&mut self, channel: usize) {
        self.done.0.writes[channel] += 1;
    }
}
