// SPDX-License-Identifier: Apache-2.0

//! The in-flight access table: accepted commands that have not ended, with the ranges that each
//! accesses and its dependencies.

use spec::nearpm::{Operation, COMMANDS, INTERNAL_RECORDS};

use super::unit_command::{AccessRanges, LineRange, UnitCommand};

/// Maximum number of storage channels.
pub(super) const CHANNELS: usize = 4;

/// Places of the table: the host's commands, by the line of the page, then internal records.
pub(super) const PLACES: usize = COMMANDS + INTERNAL_RECORDS;

/// A set of command numbers.
pub(super) type CommandSet = u128;

/// The dependencies of a command other than older commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prerequisites {
    /// PM window stores that have to be answered, counted from the first one.
    pub(super) stores: u64,
    /// Writes of the NVMe controller to each channel that have to be answered.
    pub(super) writes: [u64; CHANNELS],
    /// Lines of each channel's queue that have to be in the memory.
    pub(super) lines: [u64; CHANNELS],
}

/// The progress of all these dependencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrerequisiteProgress(pub(super) Prerequisites);

impl Prerequisites {
    fn are_met(&self, done: &PrerequisiteProgress) -> bool {
        let reached = |wanted: &[u64], done: &[u64]| wanted.iter().zip(done).all(|(w, d)| w <= d);
        self.stores <= done.0.stores
            && reached(&self.writes, &done.0.writes)
            && reached(&self.lines, &done.0.lines)
    }
}

/// A command that may start.
pub(super) struct ReadyCommand {
    pub(super) number: u8,
    pub(super) job: UnitCommand,
    /// It ends without having started.
    pub(super) failed: bool,
}

pub(super) struct TableEntry {
    pub(super) job: UnitCommand,
    ranges: AccessRanges,
    /// Older commands.
    pub(super) commands: CommandSet,
    pub(super) before: Prerequisites,
    /// A unit executes it.
    begun: bool,
    /// Its log was closed by an error: it does not start.
    pub(super) failed: bool,
    /// Its pool has been unmapped: it does not access the logs that may be there now.
    pub(super) stale: bool,
    /// Its number in acceptance order.
    order: u64,
    /// It starts at this edge at the earliest.
    from: u64,
}

pub(super) struct Table {
    entries: Vec<Option<TableEntry>>,
    count: usize,
    accepted: u64,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            entries: (0..PLACES).map(|_| None).collect(),
            count: 0,
            accepted: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of commands and internal records in the table.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The lowest free number of an internal record.
    pub(super) fn free_internal(&self) -> Option<u8> {
        let mut numbers = COMMANDS..PLACES;
        let free = numbers.find(|number| self.entries[*number].is_none());
        free.map(|number| number as u8)
    }

    fn iter(&self) -> impl Iterator<Item = (u8, &TableEntry)> {
        let entries = (0..).zip(&self.entries);
        entries.filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }

    fn matching(&self, wanted: impl Fn(&TableEntry) -> bool) -> CommandSet {
        let all = self.iter().filter(|(_, entry)| wanted(entry));
        all.fold(0, |set, (number, _)| set | 1 << number)
    }

    /// Commands that a store depends on.
    pub(super) fn touching(&self, lines: &LineRange) -> CommandSet {
        self.matching(|entry| entry.ranges.accesses_overlap(lines))
    }

    /// Commands that a load depends on.
    pub(super) fn writing(&self, lines: &LineRange) -> CommandSet {
        self.matching(|entry| entry.ranges.writes_overlap(lines))
    }

    /// Inserts a command that depends on the older ones with which it conflicts.
    pub(super) fn insert(
        &mut self,
        number: u8,
        job: UnitCommand,
        before: Prerequisites,
        from: u64,
    ) {
        let ranges = job.ranges();
        let commands = self.matching(|old| {
            let reads = ranges
                .reads
                .is_some_and(|lines| old.ranges.writes_overlap(&lines));
            let writes = ranges
                .writes
                .is_some_and(|lines| old.ranges.accesses_overlap(&lines));
            // A page is copied before another one replaces it. Older commands don't close a log
            // that has been opened.
            let in_order = match job.operation {
                Operation::Switch => old.job.operation == Operation::Copy,
                operation => operation == Operation::LogOpen,
            };
            reads || writes || (in_order && old.job.log == job.log)
        });
        self.restore(number, job, commands, before, from);
    }

    /// Inserts a restored command with known dependencies.
    pub(super) fn restore(
        &mut self,
        number: u8,
        job: UnitCommand,
        commands: CommandSet,
        before: Prerequisites,
        from: u64,
    ) {
        let place = &mut self.entries[usize::from(number)];
        debug_assert!(place.is_none(), "a line has one command at a time");
        self.count += 1;
        self.accepted += 1;
        *place = Some(TableEntry {
            job,
            ranges: job.ranges(),
            commands,
            before,
            begun: false,
            failed: false,
            stale: false,
            order: self.accepted,
            from,
        });
    }

    /// Starts the oldest command without dependencies; otherwise returns the edge at which one may
    /// start.
    pub(super) fn next_ready(
        &mut self,
        done: &PrerequisiteProgress,
        now: u64,
    ) -> Result<ReadyCommand, Option<u64>> {
        let ready =
            |entry: &TableEntry| !entry.begun && entry.commands == 0 && entry.before.are_met(done);
        let mut later: Option<u64> = None;
        let mut first: Option<(u64, u8)> = None;
        for (number, entry) in self.iter().filter(|(_, entry)| ready(entry)) {
            if entry.from > now {
                later = Some(later.map_or(entry.from, |later| later.min(entry.from)));
            } else if first.is_none_or(|(order, _)| entry.order < order) {
                first = Some((entry.order, number));
            }
        }
        let Some((_, number)) = first else {
            return Err(later);
        };
        let entry = self.entry(number);
        entry.begun = true;
        Ok(ReadyCommand {
            number,
            job: entry.job,
            failed: entry.failed,
        })
    }

    fn entry(&mut self, number: u8) -> &mut TableEntry {
        let entry = self.entries[usize::from(number)].as_mut();
        entry.expect("a command is in the table until it has ended")
    }

    /// Commands of a log that was closed by an error do not start.
    pub(super) fn close(&mut self, log: u8, stale: bool) {
        let entries = self.entries.iter_mut().flatten();
        let of_log = entries.filter(|e| e.job.log == log && e.stale == stale);
        let later = of_log.filter(|e| !e.begun && e.job.builds_on_log());
        later.for_each(|entry| entry.failed = true);
    }

    /// A pool is unmapped.
    pub(super) fn unmap_pool(&mut self, pool: u8) {
        let entries = self.entries.iter_mut().flatten();
        let of_pool = entries.filter(|entry| entry.job.log >> 4 == pool);
        of_pool.for_each(|entry| entry.stale = true);
    }

    /// The pool of a command has been unmapped.
    pub(super) fn is_stale(&mut self, number: u8) -> bool {
        self.entry(number).stale
    }

    /// Sets the flags of a restored command.
    pub(super) fn set_flags(&mut self, number: u8, failed: bool, stale: bool) {
        let entry = self.entry(number);
        (entry.failed, entry.stale) = (failed, stale);
    }

    /// A command has ended.
    pub(super) fn remove(&mut self, number: u8) {
        let entry = self.entries[usize::from(number)].take();
        debug_assert!(entry.is_some(), "a command ends once");
        self.count -= 1;
        let others = self.entries.iter_mut().flatten();
        others.for_each(|entry| entry.commands &= !(1 << number));
    }

    /// The commands in the table, by number.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u8, &TableEntry)> {
        self.iter()
    }
}
