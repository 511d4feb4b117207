// SPDX-License-Identifier: Apache-2.0

//! A channel model that answers at once: the time of a burst follows from earlier reservations.
//!
//! Command and data buses, banks, bus turnarounds, refresh and queues are those of
//! [`super::Channel`], with the same constants. `Channel` decides clock by clock which command is
//! next. `BurstChannel` reserves, for each line of a read, the first slot that fits at the time of
//! the request: between earlier reservations, or after them.
//!
//! A later read therefore never delays one that has been answered. Writes are answered before they
//! reach the DRAM; of the waiting writes, the one that can be issued first is next.

use std::collections::VecDeque;

use super::calendar::{ActivateCalendar, ColumnCalendar, DepartureQueue};
use super::config::REST;
use super::map::{bank_row, BankRow, BANKS, GROUPS, LINES};
use super::{ChannelStats, DramConfig, Timing};
use crate::Time;

const CLOSED: u32 = u32::MAX;
const READ: usize = 0;
const WRITE: usize = 1;
/// Lines that lie together in rows of a bank of each group.
const STRIPE: u64 = GROUPS as u64 * LINES;
/// Most lines whose slots are reserved together.
const RUN: usize = 16;

/// The times of a burst of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTimes {
    /// When the first line is answered, backend included.
    pub first: Time,
    /// When the last line is answered, which may differ from the last line of the burst.
    pub last: Time,
    /// When the controller accepted the last line into its queue.
    pub taken: Time,
}

/// The times of a burst of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTimes {
    /// When the controller accepted the last line into its queue.
    pub taken: Time,
    /// When it answers for all of them.
    pub safe: Time,
}

/// Waiting writes of a bank: lines [`GROUPS`] apart that arrived one after the other.
#[derive(Clone, Copy)]
struct PendingWrites {
    line: u64,
    lines: u32,
    row: u32,
    /// The first clock in which the scheduler sees the first line.
    arrived: u64,
    /// The age of the first line; those of the others are [`GROUPS`] apart as well.
    age: u64,
}

/// The state of a bank after all of its reservations.
struct Bank {
    row: u32,
    next_act: u64,
    next_pre: u64,
    /// Next RD and WR.
    next_column: [u64; 2],
    /// The previous row, and the clock of the PRE that closes it: reads of it that arrive before
    /// find it open.
    before: (u32, u64),
    before_column: u64,
    /// The row of the last write. Further writes of the same drain find it open, whatever is
    /// reserved after them.
    written: u32,
    /// Closed for the next refresh: all new reservations are after it.
    refreshed: bool,
    /// Writes in the controller, oldest first, and the oldest of those that hit the open row.
    writes: VecDeque<PendingWrites>,
    hit: Option<usize>,
}

/// Reads in consecutive slots: the clocks of the first and the last, and the arrival of the line
/// after them.
struct ReadRun {
    first: u64,
    last: u64,
    arrival: (u64, u64),
}

/// The next command of a bank for its writes.
#[derive(Clone, Copy, Default)]
struct Candidate {
    /// The clock of the next WR as far as the bank itself is concerned.
    ready: u64,
    /// The age of the write, and the age with the bank as the lower bits of a key.
    age: u64,
    rank: u64,
    /// The kind of command, see [`HIT`], and the bank group: an index into the bounds that all
    /// banks share.
    bound: usize,
    /// No command is needed to open the row before this clock.
    idle: u64,
}

/// Kinds of candidates: the row is open, no row is, or another row is.
const HIT: usize = 0;
const OPENS: usize = GROUPS;
const CHANGES: usize = 2 * GROUPS;
/// Upper bound of [`Candidate::bound`].
const BOUNDS: usize = 4 * GROUPS;
/// Bits of a rank, and the clocks that fit above it.
const RANK_BITS: u32 = 36;
const LONGEST: u64 = u64::MAX >> RANK_BITS >> 1;

/// The next write.
#[derive(Clone, Copy)]
struct NextWrite {
    bank: usize,
    index: usize,
    column: u64,
}

/// One DDR4 channel, burst by burst. Calls are in the order of time; a call that is slightly late
/// counts as on time.
pub struct BurstChannel {
    timing: Timing,
    frontend: Time,
    backend: Time,
    pace: Time,
    /// The pace in clocks, and the remainder.
    pace_clocks: (u64, u64),
    /// Clocks between the arrivals of lines that are [`GROUPS`] apart.
    pace_groups: u64,
    /// Lines at this pace leave no slot between them for others.
    runs: bool,
    rows: u64,
    read_queue: usize,
    write_queue: usize,
    drain_high: usize,
    drain_low: usize,
    banks: [Bank; BANKS],
    columns: ColumnCalendar,
    activates: ActivateCalendar,
    /// No RD or WR of any bank before these clocks.
    floor: [u64; 2],
    /// The same bound by bank group, from the last writes.
    group_floor: [u64; GROUPS],
    next_refresh: u64,
    /// When the next refresh ends, if decided.
    refreshed: Option<u64>,
    /// The last RD, and the last WR.
    last_read: u64,
    last_write: u64,
    /// When the port can supply the next line of a read, and of a write.
    next_line: [Time; 2],
    /// The columns of the reads in the queue.
    reads: DepartureQueue,
    /// The next command of each bank for its writes, and a bit for each bank whose entry is stale.
    candidates: [Candidate; BANKS],
    stale: u32,
    /// Banks that may have a row to open and were not checked since they changed, and the clock
    /// before which no other bank has.
    unseen: u32,
    idle: u64,
    /// The next write, unless an entry is stale.
    chosen: Option<NextWrite>,
    /// Writes in the controller whose DRAM time is not decided: a bit per bank, and their number.
    waiting: u32,
    unsent: usize,
    /// When the writes with a decided time leave the queue.
    leaving: DepartureQueue,
    /// No write can be issued, or have its row opened, before this clock.
    quiet: u64,
    /// Clocks by which writes leave the queue before their columns.
    ahead: u64,
    /// When the last drain ends; writes that arrive before join it.
    drains_until: u64,
    ages: u64,
    mode: usize,
    stats: ChannelStats,
}

impl BurstChannel {
    /// A channel with all banks closed, whose port supplies a line every `pace` at most. The
    /// configuration must be valid.
    pub fn new(config: &DramConfig, pace: Time) -> BurstChannel {
        let timing = Timing::new(config);
        BurstChannel {
            frontend: Time::ns(config.frontend_ns),
            backend: Time::ns(config.backend_ns),
            pace,
            pace_clocks: timing.cycle_and_rest(pace),
            pace_groups: timing.cycle(Time(pace.0.saturating_mul(GROUPS as u64))),
            runs: (timing.ccd_s..2 * timing.ccd_s - 1).contains(&timing.cycle(pace)),
            rows: config.bytes() / (BANKS as u64 * LINES * 64),
            read_queue: config.read_queue,
            write_queue: config.write_queue,
            drain_high: config.drain_high,
            drain_low: config.drain_low,
            banks: std::array::from_fn(|_| Bank {
                row: CLOSED,
                next_act: 0,
                next_pre: 0,
                next_column: [0; 2],
                before: (CLOSED, 0),
                before_column: 0,
                written: CLOSED,
                refreshed: false,
                writes: VecDeque::with_capacity(8),
                hit: None,
            }),
            columns: ColumnCalendar::new(&timing, config.read_queue + config.write_queue),
            activates: ActivateCalendar::new(&timing),
            floor: [0; 2],
            group_floor: [0; GROUPS],
            next_refresh: timing.refi,
            refreshed: None,
            last_read: 0,
            last_write: 0,
            next_line: [Time::ZERO; 2],
            reads: DepartureQueue::new(config.read_queue),
            candidates: [Candidate::default(); BANKS],
            stale: 0,
            unseen: 0,
            idle: 0,
            chosen: None,
            waiting: 0,
            unsent: 0,
            leaving: DepartureQueue::new(2 * config.write_queue),
            quiet: 0,
            ahead: 0,
            drains_until: 0,
            ages: 0,
            mode: READ,
            stats: ChannelStats::default(),
            timing,
        }
    }

    /// What the channel has done or decided so far.
    pub fn stats(&self) -> ChannelStats {
        self.stats
    }

    /// The clock and remainder of the next line's arrival.
    #[inline]
    fn next_arrival(&self, (clock, rest): (u64, u64)) -> (u64, u64) {
        let (clocks, more) = self.pace_clocks;
        match rest + more {
            rest if rest < REST => (clock + clocks, rest),
            rest => (clock + clocks + 1, rest - REST),
        }
    }

    /// Reads `lines` successive 64-byte lines from `addr`, starting at `now`.
    #[inline]
    pub fn read(&mut self, now: Time, addr: u64, lines: u32) -> ReadTimes {
        let lines = u64::from(lines.max(1));
        let mut at = now.max(self.next_line[READ]);
        let (mut first, mut last) = (u64::MAX, 0);
        let mut forwarded = Time::ZERO;
        let mut arrival = self.timing.cycle_and_rest(at + self.frontend);
        self.columns.discard_before(arrival.0);
        if self.reads.len() + lines as usize > self.read_queue || self.reads.is_stale(arrival.0) {
            self.reads.remove_until(arrival.0);
        }
        let (mut line, mut alone) = (0, 0);
        while line < lines {
            // The read that leaves the queue first does so when the scheduler issues it; the
            // scheduler is ahead by the frontend latency.
            if self.reads.len() >= self.read_queue {
                self.reads.remove_until(arrival.0);
                if let Some(leaves) = self.reads.full_until(self.read_queue) {
                    at = self.timing.time(leaves).saturating_sub(self.frontend);
                    arrival = self.timing.cycle_and_rest(at + self.frontend);
                    arrival.0 = arrival.0.max(leaves);
                    self.reads.remove_until(leaves);
                }
            }
            let seen = arrival.0;
            self.drain_until(seen);
            let addr = addr.wrapping_add(line << 6);
            let place = bank_row(addr, self.rows);
            if self.runs && lines - line >= GROUPS as u64 && line >= alone {
                let row = STRIPE - (addr >> 6) % STRIPE;
                let room = self.read_queue.saturating_sub(self.reads.len());
                let run = (lines - line).min(row).min(room as u64).min(RUN as u64) as usize;
                if run >= GROUPS {
                    if let Some(end) = self.read_run(addr >> 6, place, arrival, run) {
                        first = first.min(end.first);
                        last = last.max(end.last);
                        at = Time(at.0 + self.pace.0 * run as u64);
                        arrival = end.arrival;
                        line += run as u64;
                        continue;
                    }
                }
                alone = line + GROUPS as u64;
            }
            if self.waiting >> place.bank & 1 != 0 && self.banks[place.bank].has_write(addr >> 6) {
                self.stats.forwarded += 1;
                forwarded = forwarded.max(at + self.frontend + self.backend);
            } else {
                let column = self.read_line(place, seen + 1);
                self.reads.insert(column);
                first = first.min(column);
                last = last.max(column);
            }
            at += self.pace;
            arrival = self.next_arrival(arrival);
            line += 1;
        }
        self.next_line[READ] = at;
        let end = |column: u64| {
            let t = &self.timing;
            t.time(column + t.cl + t.burst) + self.backend
        };
        let (mut begin, mut done) = (forwarded, forwarded);
        if last > 0 {
            done = done.max(end(last));
            begin = if first == last { done } else { end(first) };
        }
        ReadTimes {
            first: begin,
            last: done,
            taken: at - self.pace,
        }
    }

    /// Writes `lines` successive 64-byte lines from `addr`, starting at `now`.
    #[inline]
    pub fn write(&mut self, now: Time, addr: u64, lines: u32) -> WriteTimes {
        let mut left = lines.max(1);
        let mut line = addr >> 6;
        let mut at = now.max(self.next_line[WRITE]);
        let mut arrival = self.timing.cycle_and_rest(at + self.frontend);
        self.columns.discard_before(arrival.0);
        while left > 0 {
            self.drain_until(arrival.0 + 1);
            self.leaving.remove_until(arrival.0);
            while self.unsent + self.leaving.len() >= self.write_queue {
                if self.leaving.len() == 0 {
                    self.send_next(1);
                }
                let Some(leaves) = self.leaving.first() else {
                    continue;
                };
                if leaves > arrival.0 {
                    at = at.max(self.timing.time(leaves).saturating_sub(self.frontend));
                    arrival = self.timing.cycle_and_rest(at + self.frontend);
                    arrival.0 = arrival.0.max(leaves);
                }
                self.drain_until(arrival.0 + 1);
                self.leaving.remove_until(arrival.0);
            }
            // The lines that precede a drain or a full queue, and lie in one row of a bank of each
            // group.
            let held = self.unsent + self.leaving.len();
            let room = match self.drain_high.checked_sub(held) {
                None | Some(0) => self.write_queue.saturating_sub(held).min(GROUPS),
                Some(room) => room.min(2 * GROUPS),
            };
            let row = STRIPE - line % STRIPE;
            let lines = left.min(room.max(1) as u32).min(row as u32);
            let mut clock = arrival.0;
            let mut place = bank_row(line << 6, self.rows);
            let group = place.bank % GROUPS ^ line as usize % GROUPS;
            for n in 0..lines {
                clock = arrival.0;
                if n < GROUPS as u32 {
                    let at = line + u64::from(n);
                    place.bank = place.bank / GROUPS * GROUPS + (group ^ at as usize % GROUPS);
                    let waiting = PendingWrites {
                        line: at,
                        lines: (lines - n).div_ceil(GROUPS as u32),
                        row: place.row,
                        arrived: clock + 1,
                        age: self.ages + u64::from(n),
                    };
                    if self.banks[place.bank].enqueue(waiting, self.pace_groups) {
                        self.stale |= 1 << place.bank;
                        self.quiet = 0;
                    }
                    self.waiting |= 1 << place.bank;
                }
                at += self.pace;
                arrival = self.next_arrival(arrival);
            }
            self.ages += u64::from(lines);
            self.unsent += lines as usize;
            line += u64::from(lines);
            left -= lines;
            if self.unsent + self.leaving.len() >= self.drain_high {
                self.leaving.remove_until(clock);
            }
            self.make_room(clock);
        }
        self.next_line[WRITE] = at;
        let taken = at - self.pace;
        WriteTimes {
            taken,
            safe: taken + self.frontend,
        }
    }

    /// Reserves the slots of reads of successive lines, at least one per bank group, if the slots
    /// are consecutive. The lines lie in one row of each bank. If the slots are not consecutive,
    /// rows may have been opened for them.
    fn read_run(
        &mut self,
        line: u64,
        at: BankRow,
        mut arrival: (u64, u64),
        lines: usize,
    ) -> Option<ReadRun> {
        let set = at.bank / GROUPS * GROUPS;
        let change = at.bank % GROUPS ^ line as usize % GROUPS;
        let group = |n: usize| (line as usize + n) % GROUPS ^ change;
        let mut clocks = [0; RUN];
        let clocks = &mut clocks[..lines];
        for clock in clocks.iter_mut() {
            *clock = arrival.0 + 1;
            arrival = self.next_arrival(arrival);
        }
        let refreshes = clocks[lines - 1] + self.timing.rcd >= self.next_refresh;
        if refreshes || self.waiting >> set & ((1 << GROUPS) - 1) != 0 {
            return None;
        }
        for bank in &self.banks[set..set + GROUPS] {
            if bank.refreshed || bank.row != at.row && bank.before.0 == at.row {
                return None;
            }
        }
        let mut clock = 0;
        let mut floors = [0; GROUPS];
        for n in 0..GROUPS {
            let bank = set + group(n);
            if self.banks[bank].row != at.row {
                self.open_for_read(BankRow { bank, ..at }, clocks[n])?;
            }
            floors[n] = self.floor[READ]
                .max(self.group_floor[group(n)])
                .max(self.banks[bank].next_column[READ]);
        }
        let t = &self.timing;
        let (head, tail) = clocks.split_at_mut(GROUPS);
        for (n, (place, floor)) in head.iter_mut().zip(floors).enumerate() {
            let mut next = (*place).max(clock);
            if n == 0 {
                next = self.columns.first_fit(next.max(floor), group(0));
            } else if floor > next + 3 {
                // Lines after one that waits for its bank would not be consecutive.
                return None;
            }
            *place = next.max(floor);
            clock = *place + t.ccd_s;
        }
        for place in tail {
            *place = (*place).max(clock);
            clock = *place + t.ccd_s;
        }
        let (first, last) = (clocks[0], clocks[lines - 1]);
        let groups = std::array::from_fn(group);
        if last >= self.next_refresh || !self.columns.is_free(clocks, groups) {
            return None;
        }
        self.columns
            .insert_run([first, last], [group(0), group(lines - 1)]);
        self.stale |= ((1 << GROUPS) - 1) << set;
        let tail = lines - GROUPS;
        for (n, clock) in clocks[tail..].iter().enumerate() {
            let bank = &mut self.banks[set + group(tail + n)];
            bank.next_pre = bank.next_pre.max(clock + t.rtp);
        }
        self.begin_reads(lines);
        self.note_read(last);
        self.reads.insert_all(clocks);
        Some(ReadRun {
            first,
            last,
            arrival,
        })
    }

    #[inline]
    fn begin_reads(&mut self, lines: usize) {
        if self.mode == WRITE {
            self.mode = READ;
            self.stats.turns += 1;
        }
        self.stats.reads += lines as u64;
    }

    /// Opens a row for a read that the scheduler sees from clock `seen` on, unless a refresh
    /// precedes its column.
    #[inline]
    fn open_for_read(&mut self, at: BankRow, seen: u64) -> Option<()> {
        let bank = &self.banks[at.bank];
        // Rows are opened for reads after the earlier writes were issued.
        let from = seen.max(self.last_write + 1);
        let pre = from.max(bank.next_pre);
        let opens = match bank.row {
            CLOSED => bank.next_act.max(from),
            _ => bank.next_act.max(pre + self.timing.rp),
        };
        let group = at.bank % GROUPS;
        let (index, act) = self.activates.first_fit(seen, opens, group);
        if act + self.timing.rcd >= self.refresh_of(at.bank) {
            return None;
        }
        self.activates.insert(index, act, group);
        self.note_open(at, act, pre);
        Some(())
    }

    /// Reserves the slot of a read that the scheduler sees from clock `seen` on; returns the clock
    /// of its RD.
    #[inline]
    fn read_line(&mut self, at: BankRow, seen: u64) -> u64 {
        self.begin_reads(1);
        let group = at.bank % GROUPS;
        loop {
            if seen >= self.next_refresh {
                self.refresh(seen);
            }
            let t = &self.timing;
            let floor = seen.max(self.floor[READ]).max(self.group_floor[group]);
            let bank = &self.banks[at.bank];
            if bank.row == at.row {
                let earliest = floor.max(bank.next_column[READ]);
                let column = self.columns.first_fit(earliest, group);
                if column >= self.refresh_of(at.bank) {
                    self.refresh_bank(at.bank);
                    continue;
                }
                self.columns.insert(column, group);
                self.stale |= 1 << at.bank;
                let bank = &mut self.banks[at.bank];
                bank.next_pre = bank.next_pre.max(column + t.rtp);
                return self.note_read(column);
            }
            if bank.before.0 == at.row && seen + t.rtp < bank.before.1 {
                let earliest = floor.max(bank.before_column);
                let column = self.columns.first_fit(earliest, group);
                if column + t.rtp <= bank.before.1 {
                    self.columns.insert(column, group);
                    return self.note_read(column);
                }
            }
            // Rows are opened for reads after the earlier writes were issued.
            let from = seen.max(self.last_write + 1);
            let pre = from.max(bank.next_pre);
            let opens = match bank.row {
                CLOSED => bank.next_act.max(from),
                _ => bank.next_act.max(pre + t.rp),
            };
            let (act_index, act) = self.activates.first_fit(seen, opens, group);
            let column = self.columns.first_fit(floor.max(act + t.rcd), group);
            if column >= self.refresh_of(at.bank) {
                self.refresh_bank(at.bank);
                continue;
            }
            self.activates.insert(act_index, act, group);
            self.columns.insert(column, group);
            self.note_open(at, act, pre);
            let t = &self.timing;
            let bank = &mut self.banks[at.bank];
            bank.next_pre = bank.next_pre.max(column + t.rtp);
            return self.note_read(column);
        }
    }

    /// The first clock at which a bank has to be closed for refresh.
    #[inline]
    fn refresh_of(&self, bank: usize) -> u64 {
        match self.banks[bank].refreshed {
            false => self.next_refresh,
            true => self.next_refresh.saturating_add(self.timing.refi),
        }
    }

    #[inline]
    fn note_read(&mut self, column: u64) -> u64 {
        let t = &self.timing;
        // Bus turnaround: two clocks between read data and write data.
        let turn = column + t.cl + t.burst + 2 - t.cwl;
        self.floor[WRITE] = self.floor[WRITE].max(turn);
        self.last_read = self.last_read.max(column);
        self.chosen = None;
        column
    }

    /// Records an ACT at clock `act`, after a PRE at `pre` if another row was open.
    #[inline]
    fn note_open(&mut self, at: BankRow, act: u64, pre: u64) {
        self.stale |= 1 << at.bank;
        let t = &self.timing;
        let bank = &mut self.banks[at.bank];
        if bank.row != CLOSED {
            self.stats.conflicts += 1;
            bank.before = (bank.row, pre);
            bank.before_column = bank.next_column[READ];
        }
        bank.row = at.row;
        bank.find_hit();
        bank.next_act = act + t.rc;
        bank.next_pre = act + t.ras;
        bank.next_column = [act + t.rcd; 2];
        self.stats.activates += 1;
    }

    /// Issues the writes that can reach the DRAM before clock `until`, because no reads wait.
    #[inline]
    fn drain_until(&mut self, until: u64) {
        while self.unsent > 0 && self.floor[WRITE] < until && self.quiet < until {
            let free = self.columns.free();
            if free >= until {
                self.quiet = free.min(self.open_rows(until));
                break;
            }
            match self.next_write() {
                Some(next) if next.column < until => self.send_some(next, until, usize::MAX),
                Some(next) => {
                    self.quiet = next.column.min(self.open_rows(until));
                    break;
                }
                None => break,
            }
        }
    }

    /// Closes and opens rows for writes before clock `until`, at which a read may arrive. Returns
    /// the clock before which no other row can be opened.
    fn open_rows(&mut self, until: u64) -> u64 {
        self.update_candidates();
        let (mut banks, mut next) = match self.idle < until {
            true => (self.waiting, u64::MAX),
            false => (self.waiting & self.unseen, self.idle),
        };
        self.unseen = 0;
        let mut opened = false;
        while banks != 0 {
            let number = banks.trailing_zeros() as usize % BANKS;
            banks &= banks - 1;
            let candidate = &mut self.candidates[number];
            if candidate.bound < OPENS {
                continue;
            } else if candidate.idle >= until {
                next = next.min(candidate.idle);
                continue;
            }
            let bank = &self.banks[number];
            let Some(write) = bank.writes.front().copied() else {
                continue;
            };
            let t = &self.timing;
            let seen = write.arrived.max(self.last_read + 1);
            let pre = seen.max(bank.next_pre);
            let opens = match bank.row {
                CLOSED => bank.next_act.max(seen),
                _ => bank.next_act.max(pre + t.rp),
            };
            if opens >= until {
                next = next.min(opens);
                candidate.idle = opens;
                if bank.row != CLOSED && pre < until {
                    self.banks[number].precharge(opens);
                    self.stale |= 1 << number;
                }
                continue;
            }
            let group = number % GROUPS;
            let (index, act) = self.activates.first_fit(write.arrived, opens, group);
            if act < until && act + t.rcd < self.refresh_of(number) {
                self.activates.insert(index, act, group);
                let at = BankRow {
                    bank: number,
                    row: write.row,
                };
                self.note_open(at, act, pre);
                opened = true;
            } else {
                self.candidates[number].idle = act.max(until);
                next = next.min(act.max(until));
                if self.banks[number].row != CLOSED {
                    self.banks[number].precharge(opens);
                    self.stale |= 1 << number;
                }
            }
        }
        self.idle = next;
        match opened {
            true => 0,
            false => next,
        }
    }

    /// Issues writes once their number makes reads wait.
    #[inline]
    fn make_room(&mut self, clock: u64) {
        let many = self.unsent + self.leaving.len() >= self.drain_high;
        if self.last_read <= clock {
            while many && self.unsent > self.drain_low {
                self.send_next(self.unsent - self.drain_low);
            }
        } else if self.drains_until > clock {
            while self.unsent > self.drain_low {
                self.join_drain(clock);
            }
        } else if many {
            self.drain(clock);
        }
    }

    /// Issues writes although reads wait. Reserved reads keep their slots, and the writes follow
    /// them. Queue space, however, is freed as if the writes had been issued at once.
    fn drain(&mut self, clock: u64) {
        let t = &self.timing;
        let start = (clock + t.cl + t.burst + 2 - t.cwl).max(self.leaving.last());
        self.ahead = self.floor[WRITE].saturating_sub(start);
        while self.unsent > self.drain_low {
            self.send_next(self.unsent - self.drain_low);
        }
        self.ahead = 0;
        self.drains_until = self.leaving.last();
    }

    /// Issues a write within a drain in progress. Later reservations are kept: the write uses free
    /// time of the buses, without another turnaround.
    fn join_drain(&mut self, clock: u64) {
        let Some(next) = self.next_write() else {
            return;
        };
        let write = self.dequeue_write(next);
        let t = &self.timing;
        let group = next.bank % GROUPS;
        let mut step = t.ccd_s;
        let bank = &self.banks[next.bank];
        if bank.row != write.row && bank.written != write.row {
            step = t.faw.div_ceil(4);
            let opens = clock.max(self.banks[next.bank].next_act);
            let (index, act) = self.activates.first_fit(clock, opens, group);
            self.activates.insert(index, act, group);
            let at = BankRow {
                bank: next.bank,
                row: write.row,
            };
            self.note_open(at, act, act);
        }
        let column = self.columns.floor(group).max(clock);
        let column = self.columns.first_fit(column, group);
        self.columns.insert(column, group);
        let leaves = self.leaving.last() + step;
        let t = &self.timing;
        let bank = &mut self.banks[next.bank];
        self.stale |= 1 << next.bank;
        bank.next_pre = bank.next_pre.max(leaves + t.cwl + t.burst + t.wr);
        self.leaving.insert(leaves);
    }

    /// Removes a write from the queue.
    fn dequeue_write(&mut self, next: NextWrite) -> PendingWrites {
        self.stale |= 1 << next.bank;
        let bank = &mut self.banks[next.bank];
        let write = bank.dequeue(next.index, 1, self.pace_groups);
        if bank.writes.is_empty() {
            self.waiting &= !(1 << next.bank);
        }
        self.quiet = 0;
        self.unsent -= 1;
        self.stats.writes += 1;
        write
    }

    /// Issues the next write, whatever waits, and possibly others after it, `most` in all.
    fn send_next(&mut self, most: usize) {
        if let Some(next) = self.next_write() {
            self.send_some(next, u64::MAX, most);
        }
    }

    /// Issues a write, and possibly others after it that can be issued before clock `until`.
    #[inline]
    fn send_some(&mut self, next: NextWrite, until: u64, most: usize) {
        if !self.runs || most < GROUPS || !self.send_run(next, until, most) {
            self.send_write(next);
        }
    }

    /// Issues writes of successive lines that hit open rows, at least one per bank group, if their
    /// slots are consecutive.
    fn send_run(&mut self, next: NextWrite, until: u64, most: usize) -> bool {
        let set = next.bank / GROUPS * GROUPS;
        let banks = ((1 << GROUPS) - 1) << set;
        if self.waiting & banks != banks {
            return false;
        }
        let mut heads = [(0, 0); GROUPS];
        let Some(first) = self.banks[next.bank].writes.get(next.index).copied() else {
            return false;
        };
        let mut rounds = first.lines;
        for (n, bank) in self.banks[set..set + GROUPS].iter().enumerate() {
            let Some(head) = bank.hit.and_then(|hit| bank.writes.get(hit)) else {
                return false;
            };
            let place = head.age.wrapping_sub(first.age) as usize;
            if bank.refreshed || place >= GROUPS || bank.next_column[WRITE] > next.column {
                return false;
            }
            heads[place] = (set + n, head.arrived);
            rounds = rounds.min(head.lines);
        }
        // The first command that another bank could issue in between.
        let (rival, older) = match self.first_of(self.waiting & !banks) {
            Some((age, rival)) => (rival.column, age < first.age),
            None => (u64::MAX, false),
        };
        let mut clocks = [0; RUN];
        let t = &self.timing;
        let end = until.min(self.next_refresh);
        let mut clock = next.column;
        let mut lines = 0;
        for (n, place) in clocks
            .iter_mut()
            .enumerate()
            .take(most.min(rounds as usize * GROUPS))
        {
            let round = (n / GROUPS) as u64;
            let arrived = heads[n % GROUPS].1 + round * self.pace_groups;
            let next = clock.max(arrived);
            let rivals = rival <= next && (older || next > clock) && n > 0;
            if next >= end || rivals || next >= clock + t.ccd_s && n > 0 {
                break;
            }
            *place = next;
            lines += 1;
            clock = next + t.ccd_s;
        }
        let clocks = &clocks[..lines];
        let (Some(&first), Some(&last)) = (clocks.first(), clocks.last()) else {
            return false;
        };
        if !self
            .columns
            .is_free(clocks, heads.map(|(bank, _)| bank % GROUPS))
        {
            return false;
        }
        let groups = [0, lines - 1].map(|n| heads[n % GROUPS].0 % GROUPS);
        self.columns.insert_run([first, last], groups);
        self.stale |= banks;
        if self.mode == READ {
            self.mode = WRITE;
            self.stats.turns += 1;
        }
        for (n, &(number, _)) in heads.iter().enumerate().take(lines) {
            let sent = (lines - n).div_ceil(GROUPS);
            let bank = &mut self.banks[number];
            let Some(hit) = bank.hit else { continue };
            bank.dequeue(hit, sent as u32, self.pace_groups);
            if bank.writes.is_empty() {
                self.waiting &= !(1 << number);
            }
            let data_end = clocks[n + (sent - 1) * GROUPS] + t.cwl + t.burst;
            bank.next_pre = bank.next_pre.max(data_end + t.wr);
            let group = &mut self.group_floor[number % GROUPS];
            *group = (*group).max(data_end + t.wtr_l);
        }
        let data_end = last + t.cwl + t.burst;
        self.floor[READ] = self.floor[READ].max(data_end + t.wtr_s);
        self.last_write = self.last_write.max(last);
        self.quiet = 0;
        self.unsent -= lines;
        self.stats.writes += lines as u64;
        if self.ahead == 0 {
            self.leaving.insert_all(clocks);
        } else {
            for &clock in clocks {
                self.leaving.insert(clock - self.ahead.min(clock));
            }
        }
        true
    }

    /// The write that can be issued first; of several, the oldest.
    #[inline]
    fn next_write(&mut self) -> Option<NextWrite> {
        if self.chosen.is_none() || self.stale != 0 {
            self.chosen = self.first_of(self.waiting).map(|(_, next)| next);
        }
        self.chosen
    }

    /// Updates the entries of the banks that have changed.
    #[inline]
    fn update_candidates(&mut self) {
        let mut stale = self.stale & self.waiting;
        if self.stale != 0 {
            self.chosen = None;
        }
        self.stale = 0;
        self.unseen |= stale;
        while stale != 0 {
            let number = stale.trailing_zeros() as usize % BANKS;
            stale &= stale - 1;
            let mut candidate = self.banks[number].candidate(&self.timing);
            candidate.rank = u64::from(candidate.age as u32) << 4 | number as u64;
            candidate.bound += number % GROUPS;
            self.candidates[number] = candidate;
        }
    }

    /// The first write of some banks, and its age.
    fn first_of(&mut self, mut banks: u32) -> Option<(u64, NextWrite)> {
        if banks == 0 {
            return None;
        }
        self.update_candidates();
        let t = &self.timing;
        let act = self.activates.floor();
        let read = self.last_read + 1;
        let floor = self.floor[WRITE];
        // By kind and group; none is below the floor.
        let opens = floor.max(act.max(read) + t.rcd);
        let changes = floor.max(act.max(read + t.rp) + t.rcd);
        let groups = self.columns.floors();
        let mut bounds = [0; BOUNDS];
        for (group, &clock) in groups.iter().enumerate() {
            bounds[HIT + group] = floor.max(clock);
            bounds[OPENS + group] = opens.max(clock);
            bounds[CHANGES + group] = changes.max(clock);
        }
        let column = |candidate: &Candidate| candidate.ready.max(bounds[candidate.bound % BOUNDS]);
        let mut first = u64::MAX;
        while banks != 0 {
            let number = banks.trailing_zeros() as usize % BANKS;
            banks &= banks - 1;
            let candidate = &self.candidates[number];
            let wait = (column(candidate) - floor).min(LONGEST);
            first = first.min(wait << RANK_BITS | candidate.rank);
        }
        let bank = first as usize % BANKS;
        let candidate = &self.candidates[bank];
        let column = column(candidate);
        let age = candidate.age;
        let index = self.banks[bank].hit.unwrap_or(0);
        let next = NextWrite {
            bank,
            index,
            column,
        };
        Some((age, next))
    }

    /// Issues a write to the DRAM.
    fn send_write(&mut self, next: NextWrite) {
        if self.mode == READ {
            self.mode = WRITE;
            self.stats.turns += 1;
        }
        let group = next.bank % GROUPS;
        let write = self.dequeue_write(next);
        let at = BankRow {
            bank: next.bank,
            row: write.row,
        };
        let column = loop {
            let t = &self.timing;
            let bank = &self.banks[next.bank];
            let floor = write.arrived.max(self.floor[WRITE]);
            let (act, pre) = if bank.row == write.row {
                (None, 0)
            } else {
                let from = write.arrived.max(self.last_read + 1);
                let pre = from.max(bank.next_pre);
                let opens = match bank.row {
                    CLOSED => bank.next_act.max(from),
                    _ => bank.next_act.max(pre + t.rp),
                };
                (
                    Some(self.activates.first_fit(write.arrived, opens, group)),
                    pre,
                )
            };
            let earliest = match act {
                None => bank.next_column[WRITE],
                Some((_, act)) => act + t.rcd,
            };
            let column = self.columns.first_fit(floor.max(earliest), group);
            if write.arrived >= self.next_refresh {
                self.refresh(write.arrived);
                continue;
            }
            if column >= self.refresh_of(next.bank) {
                self.refresh_bank(next.bank);
                continue;
            }
            self.columns.insert(column, group);
            if let Some((index, act)) = act {
                self.activates.insert(index, act, group);
                self.note_open(at, act, pre);
            }
            break column;
        };
        let t = &self.timing;
        self.last_write = self.last_write.max(column);
        let data_end = column + t.cwl + t.burst;
        let bank = &mut self.banks[next.bank];
        bank.next_pre = bank.next_pre.max(data_end + t.wr);
        bank.written = write.row;
        self.stale |= 1 << next.bank;
        self.floor[READ] = self.floor[READ].max(data_end + t.wtr_s);
        self.group_floor[group] = self.group_floor[group].max(data_end + t.wtr_l);
        let leaves = column - self.ahead.min(column);
        self.leaving.insert(leaves);
    }

    /// Performs the refreshes that are due by clock `now`.
    #[cold]
    fn refresh(&mut self, now: u64) {
        let end = self.refresh_end();
        self.stale = u32::MAX;
        for bank in &mut self.banks {
            bank.close(end);
            bank.refreshed = false;
        }
        self.stats.refreshes += 1;
        self.next_refresh += self.timing.refi;
        // Of several refreshes of an idle channel only the last one is visible, and that one took
        // place when it was due.
        if now > self.next_refresh {
            let idle = (now - self.next_refresh) / self.timing.refi;
            self.next_refresh += idle * self.timing.refi;
            self.stats.refreshes += idle;
        }
        self.refreshed = None;
    }

    /// A request for `bank` has to wait for the next refresh.
    #[cold]
    fn refresh_bank(&mut self, bank: usize) {
        if self.banks[bank].refreshed {
            self.refresh(self.next_refresh);
        }
        let end = self.refresh_end();
        self.stale |= 1 << bank;
        let bank = &mut self.banks[bank];
        bank.close(end);
        bank.refreshed = true;
    }

    /// The end of the next refresh. It starts when it is due, all banks are closed and earlier
    /// reservations have been issued.
    fn refresh_end(&mut self) -> u64 {
        if let Some(end) = self.refreshed {
            return end;
        }
        let t = &self.timing;
        let mut at = self.next_refresh;
        if self.banks.iter().any(|b| b.row != CLOSED) {
            let closes = self.banks.iter().map(|b| b.next_pre).max();
            at = at.max(closes.unwrap_or(0)) + t.rp;
        }
        let end = at + t.rfc;
        self.refreshed = Some(end);
        end
    }
}

impl Bank {
    /// The next command for the bank's writes, if there are any.
    fn candidate(&self, t: &Timing) -> Candidate {
        let Some(write) = self.writes.get(self.hit.unwrap_or(0)) else {
            return Candidate::default();
        };
        let (ready, bound) = if self.hit.is_some() {
            (write.arrived.max(self.next_column[WRITE]), HIT)
        } else if self.row == CLOSED {
            (write.arrived.max(self.next_act) + t.rcd, OPENS)
        } else {
            let opens = write.arrived.max(self.next_pre) + t.rp;
            (opens.max(self.next_act) + t.rcd, CHANGES)
        };
        Candidate {
            ready,
            bound,
            age: write.age,
            ..Candidate::default()
        }
    }

    /// Closes the row, with a PRE that allows an ACT at clock `opens`.
    fn precharge(&mut self, opens: u64) {
        self.before = (CLOSED, 0);
        self.row = CLOSED;
        self.hit = None;
        self.next_act = opens;
    }

    /// Removes some of an entry's lines; returns the entry as it was.
    #[inline]
    fn dequeue(&mut self, index: usize, lines: u32, pace: u64) -> PendingWrites {
        let entry = &mut self.writes[index];
        let whole = *entry;
        if lines < whole.lines {
            entry.lines -= lines;
            entry.line += u64::from(lines) * GROUPS as u64;
            entry.age += u64::from(lines) * GROUPS as u64;
            entry.arrived += u64::from(lines) * pace;
            return whole;
        }
        if index == 0 {
            self.writes.pop_front();
        } else {
            self.writes.remove(index);
        }
        self.find_hit();
        whole
    }

    /// Queues writes, joined with the last entry if they follow it. True: the bank's next command
    /// has changed.
    #[inline]
    fn enqueue(&mut self, writes: PendingWrites, pace: u64) -> bool {
        if let Some(last) = self.writes.back_mut() {
            let lines = u64::from(last.lines);
            let apart = lines * GROUPS as u64;
            let follows = last.line + apart == writes.line && last.age + apart == writes.age;
            let arrived = last.arrived + lines * pace;
            if follows && last.row == writes.row && writes.arrived <= arrived + 1 {
                last.lines += writes.lines;
                return false;
            }
        }
        let mut changed = self.writes.is_empty();
        if self.hit.is_none() && self.row == writes.row {
            self.hit = Some(self.writes.len());
            changed = true;
        }
        self.writes.push_back(writes);
        changed
    }

    /// Whether a write of this line waits.
    #[inline]
    fn has_write(&self, line: u64) -> bool {
        self.writes.iter().any(|w| {
            line.checked_sub(w.line).is_some_and(|apart| {
                apart % GROUPS as u64 == 0 && apart / (GROUPS as u64) < u64::from(w.lines)
            })
        })
    }

    #[inline]
    fn find_hit(&mut self) {
        self.hit = self.writes.iter().position(|w| w.row == self.row);
    }

    fn close(&mut self, until: u64) {
        if !self.refreshed {
            self.row = CLOSED;
            self.hit = None;
            self.before = (CLOSED, 0);
            self.next_act = self.next_act.max(until);
        }
    }
}
