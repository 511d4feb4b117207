// SPDX-License-Identifier: Apache-2.0

//! The controller of one channel: queues, scheduling, and the state of banks and buses.

use std::collections::VecDeque;

use super::map::{bank_row, BANKS, GROUPS, LINES};
use super::{DramConfig, Timing};
use crate::Time;

/// A 64-byte access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Returned with the completion.
    pub tag: u64,
    /// Byte address in the channel; the low 6 bits are ignored.
    pub addr: u64,
    /// Write, else read.
    pub is_write: bool,
}

/// A read whose data has arrived, or a write that the controller has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// The direction of the request.
    pub is_write: bool,
    /// When it completed.
    pub time: Time,
}

/// Counts of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Reads from the DRAM.
    pub reads: u64,
    /// Reads answered from buffered writes.
    pub forwarded: u64,
    /// Writes to the DRAM.
    pub writes: u64,
    /// ACT commands.
    pub activates: u64,
    /// PRE commands for another row of the bank.
    pub conflicts: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Turnarounds of the data bus between reads and writes.
    pub turns: u64,
}

const READ: usize = 0;
const WRITE: usize = 1;
const CLOSED: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct QueuedRequest {
    tag: u64,
    line: u64,
    row: u32,
    /// The first clock in which the scheduler sees it.
    arrived: u64,
    /// Order of acceptance.
    age: u64,
}

struct Bank {
    row: u32,
    next_act: u64,
    next_pre: u64,
    /// Next RD and WR.
    next_column: [u64; 2],
    /// Waiting reads and writes, oldest first.
    queue: [Vec<QueuedRequest>; 2],
    /// The oldest of each queue that hits the open row.
    hit: [Option<usize>; 2],
}

impl Bank {
    fn find_hits(&mut self) {
        for kind in [READ, WRITE] {
            self.hit[kind] = self.queue[kind].iter().position(|q| q.row == self.row);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Column = 0,
    Activate = 1,
    Precharge = 2,
}

/// The next command of a bank for its reads or its writes.
#[derive(Clone, Copy)]
struct Candidate {
    /// The earliest clock as far as the bank itself is concerned.
    ready: u64,
    /// Command and bank group: an index into the bounds of the rank.
    bound: usize,
    /// Smaller ranks are issued first at the same clock: overdue requests, then row hits, then age.
    /// The low bits are the bank's number.
    rank: u64,
}

impl Candidate {
    const NONE: Candidate = Candidate {
        ready: 0,
        bound: 0,
        rank: 0,
    };
}

/// Bits of a candidate's rank; a key has the clock above them.
const RANK_BITS: u32 = 44;
/// Clocks that a key can represent.
const KEY_CLOCKS: u64 = 1 << (64 - RANK_BITS);

/// The next command.
#[derive(Clone, Copy)]
struct ChosenCommand {
    cycle: u64,
    command: Command,
    bank: usize,
}

/// One DDR4 channel. The caller supplies the time, which never goes back.
pub struct Channel {
    config: DramConfig,
    timing: Timing,
    frontend: Time,
    backend: Time,
    age_limit: u64,
    rows: u64,
    banks: Vec<Bank>,
    /// Per bank, for reads and writes; valid only for banks with a bit in `waiting`.
    candidates: [[Candidate; BANKS]; 2],
    /// No request becomes overdue before this clock.
    overdue: u64,
    /// The result of `choose`, until something changes.
    chosen: Option<ChosenCommand>,
    /// Banks with waiting reads and writes, a bit each.
    waiting: [u32; 2],
    /// Number of waiting reads and writes.
    count: [usize; 2],
    /// The present direction of the data bus: READ or WRITE.
    mode: usize,
    /// A drain that continues although reads wait.
    forced: bool,
    /// Next command slot.
    cycle: u64,
    /// Earliest RD and WR by bank group, earliest of any group, and the same for ACT.
    group_column: [[u64; GROUPS]; 2],
    any_column: [u64; 2],
    group_act: [u64; GROUPS],
    any_act: u64,
    /// The last four ACTs.
    faw: [u64; 4],
    faw_next: usize,
    next_refresh: u64,
    /// No command can be issued before this clock.
    wake: u64,
    ages: u64,
    done_reads: VecDeque<Completion>,
    done_forwarded: VecDeque<Completion>,
    done_writes: VecDeque<Completion>,
    /// Lines of buffered writes.
    buffered: Vec<u64>,
    stats: ChannelStats,
    #[cfg(test)]
    log: Vec<tests::Logged>,
}

impl Channel {
    /// A channel with all banks closed. The configuration must be valid.
    pub fn new(config: &DramConfig) -> Channel {
        let timing = Timing::new(config);
        Channel {
            frontend: Time::ns(config.frontend_ns),
            backend: Time::ns(config.backend_ns),
            age_limit: timing.cycle(Time::ns(config.age_limit_ns)),
            rows: config.bytes() / (BANKS as u64 * LINES * 64),
            banks: (0..BANKS)
                .map(|_| Bank {
                    row: CLOSED,
                    next_act: 0,
                    next_pre: 0,
                    next_column: [0; 2],
                    queue: [Vec::new(), Vec::new()],
                    hit: [None; 2],
                })
                .collect(),
            candidates: [[Candidate::NONE; BANKS]; 2],
            overdue: u64::MAX,
            chosen: None,
            waiting: [0; 2],
            count: [0; 2],
            mode: READ,
            forced: false,
            cycle: 0,
            group_column: [[0; GROUPS]; 2],
            any_column: [0; 2],
            group_act: [0; GROUPS],
            any_act: 0,
            faw: [0; 4],
            faw_next: 0,
            next_refresh: timing.refi,
            wake: u64::MAX,
            ages: 0,
            done_reads: VecDeque::new(),
            done_forwarded: VecDeque::new(),
            done_writes: VecDeque::new(),
            buffered: Vec::with_capacity(config.write_queue),
            stats: ChannelStats::default(),
            #[cfg(test)]
            log: Vec::new(),
            config: config.clone(),
            timing,
        }
    }

    /// Whether a request would be accepted.
    #[inline]
    pub fn can_accept(&self, is_write: bool) -> bool {
        if is_write {
            self.count[WRITE] < self.config.write_queue
        } else {
            self.count[READ] < self.config.read_queue
        }
    }

    /// Accepts a request at `now`, unless its queue is full.
    pub fn push(&mut self, now: Time, request: Request) -> bool {
        self.issue_until(now);
        if !self.can_accept(request.is_write) {
            return false;
        }
        let seen = now + self.frontend;
        let line = request.addr >> 6;
        let Request { tag, is_write, .. } = request;
        if is_write {
            self.done_writes.push_back(Completion {
                tag,
                is_write,
                time: seen,
            });
            self.buffered.push(line);
        } else if self.buffered.contains(&line) {
            self.stats.forwarded += 1;
            let time = seen + self.backend;
            self.done_forwarded.push_back(Completion {
                tag,
                is_write,
                time,
            });
            return true;
        }
        let at = bank_row(request.addr, self.rows);
        let arrived = self.timing.cycle(seen) + 1;
        let kind = usize::from(is_write);
        let bank = &mut self.banks[at.bank];
        if bank.hit[kind].is_none() && bank.row == at.row {
            bank.hit[kind] = Some(bank.queue[kind].len());
        }
        bank.queue[kind].push(QueuedRequest {
            tag,
            line,
            row: at.row,
            arrived,
            age: self.ages,
        });
        self.overdue = self.overdue.min(arrived + self.age_limit);
        self.ages += 1;
        self.count[kind] += 1;
        self.wake = self.wake.min(arrived);
        self.chosen = None;
        self.update_candidate(at.bank, kind);
        true
    }

    /// The oldest completion that is due at `now`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Completion> {
        self.issue_until(now);
        let time = |queue: &VecDeque<Completion>| queue.front().map_or(Time::MAX, |c| c.time);
        let (read, forwarded, write) = (
            time(&self.done_reads),
            time(&self.done_forwarded),
            time(&self.done_writes),
        );
        let first = read.min(forwarded).min(write);
        if first > now {
            None
        } else if read == first {
            self.done_reads.pop_front()
        } else if forwarded == first {
            self.done_forwarded.pop_front()
        } else {
            self.done_writes.pop_front()
        }
    }

    /// When [`Channel::poll`] is next useful: something completes, or the controller acts and may
    /// then have space. `None` if nothing is in flight.
    pub fn next_event(&self) -> Option<Time> {
        let done = [&self.done_reads, &self.done_forwarded, &self.done_writes];
        let done = done
            .into_iter()
            .filter_map(|queue| queue.front().map(|c| c.time))
            .min();
        if self.count == [0, 0] {
            return done;
        }
        let act = self.timing.time(self.wake).saturating_sub(self.frontend);
        Some(done.map_or(act, |done| done.min(act)))
    }

    /// True if nothing waits and nothing is to be reported.
    pub fn is_idle(&self) -> bool {
        self.next_event().is_none()
    }

    /// Counts so far.
    pub fn stats(&self) -> ChannelStats {
        self.stats
    }

    /// The constraints in force.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Issues all commands that the requests accepted by `now` determine.
    fn issue_until(&mut self, now: Time) {
        if self.count == [0, 0] {
            return;
        }
        let until = self.timing.cycle(now + self.frontend);
        if until < self.wake {
            return;
        }
        // Of several refreshes of an idle channel only the last one is visible, and that one took
        // place when it was due.
        if self.next_refresh < self.wake {
            let idle = self.wake - 1 - self.next_refresh;
            self.next_refresh += idle / self.timing.refi * self.timing.refi;
            self.stats.refreshes += idle / self.timing.refi;
            self.refresh();
        }
        self.cycle = self.cycle.max(self.wake);
        loop {
            if self.cycle > self.overdue {
                self.update_all_candidates();
            }
            let choice = match self.chosen {
                Some(choice) => choice,
                None => {
                    self.choose_mode();
                    self.choose()
                }
            };
            self.chosen = Some(choice);
            if self.next_refresh <= choice.cycle {
                if self.next_refresh > until {
                    self.wake = self.next_refresh;
                    return;
                }
                self.chosen = None;
                self.refresh();
                continue;
            }
            if choice.cycle > until {
                self.wake = choice.cycle;
                return;
            }
            self.chosen = None;
            self.issue(choice);
            if self.count == [0, 0] {
                self.wake = u64::MAX;
                return;
            }
        }
    }

    /// Decides whether reads or writes have the bus.
    #[inline]
    fn choose_mode(&mut self) {
        let [reads, writes] = self.count;
        self.forced =
            writes >= self.config.drain_high || (self.forced && writes > self.config.drain_low);
        let mode = if self.forced || reads == 0 {
            WRITE
        } else {
            READ
        };
        if mode != self.mode {
            self.mode = mode;
            self.stats.turns += 1;
        }
    }

    /// Updates the next command of `bank` for its reads or writes.
    #[inline]
    fn update_candidate(&mut self, number: usize, kind: usize) {
        let bank = &self.banks[number];
        let Some(oldest) = bank.queue[kind].first() else {
            self.waiting[kind] &= !(1 << number);
            return;
        };
        let overdue = self.cycle > oldest.arrived + self.age_limit;
        let (command, ready, request) = if bank.row == CLOSED {
            (Command::Activate, bank.next_act, oldest)
        } else {
            match bank.hit[kind] {
                Some(hit) if hit == 0 || !overdue => (
                    Command::Column,
                    bank.next_column[kind],
                    &bank.queue[kind][hit],
                ),
                _ => (Command::Precharge, bank.next_pre, oldest),
            }
        };
        let class = match (overdue, command) {
            (true, _) => 0,
            (false, Command::Column) => 1,
            _ => 2,
        };
        let age = (request.age << 4) & ((1 << (RANK_BITS - 2)) - 1);
        self.waiting[kind] |= 1 << number;
        self.candidates[kind][number] = Candidate {
            ready: ready.max(request.arrived),
            bound: command as usize * GROUPS + number % GROUPS,
            rank: class << (RANK_BITS - 2) | age | number as u64,
        };
    }

    /// Updates all banks, and the time at which a request next becomes overdue.
    fn update_all_candidates(&mut self) {
        self.chosen = None;
        self.overdue = u64::MAX;
        for kind in [READ, WRITE] {
            for number in 0..BANKS {
                self.update_candidate(number, kind);
                if let Some(oldest) = self.banks[number].queue[kind].first() {
                    let due = oldest.arrived + self.age_limit;
                    if due >= self.cycle {
                        self.overdue = self.overdue.min(due);
                    }
                }
            }
        }
    }

    /// The next command of the present mode, which has requests: the earliest; of several, the
    /// first by rank.
    #[inline]
    fn choose(&self) -> ChosenCommand {
        let kind = self.mode;
        // The bounds of the rank, by command and bank group, in clocks from now.
        let act = self.any_act.max(self.faw[self.faw_next]);
        let bounds: [u64; 3 * GROUPS] = std::array::from_fn(|i| match i / GROUPS {
            0 => self.any_column[kind]
                .max(self.group_column[kind][i % GROUPS])
                .max(self.cycle),
            1 => act.max(self.group_act[i % GROUPS]).max(self.cycle),
            _ => self.cycle,
        });
        // The smallest key, without unpredictable branches.
        let mut key = u64::MAX;
        let mut banks = self.waiting[kind];
        while banks != 0 {
            let c = &self.candidates[kind][banks.trailing_zeros() as usize % BANKS];
            banks &= banks - 1;
            let wait = c.ready.max(bounds[c.bound]) - self.cycle;
            key = key.min(wait << RANK_BITS | c.rank);
        }
        debug_assert!(key >> RANK_BITS < KEY_CLOCKS - 1);
        let bank = key as usize % BANKS;
        let command = match self.candidates[kind][bank].bound / GROUPS {
            0 => Command::Column,
            1 => Command::Activate,
            _ => Command::Precharge,
        };
        ChosenCommand {
            cycle: self.cycle + (key >> RANK_BITS),
            command,
            bank,
        }
    }

    /// Puts a command on the bus.
    #[inline]
    fn issue(&mut self, choice: ChosenCommand) {
        let t = &self.timing;
        let at = choice.cycle;
        let group = choice.bank % GROUPS;
        let bank = &mut self.banks[choice.bank];
        self.cycle = at + 1;
        #[cfg(test)]
        self.log.push(tests::Logged::new(choice, self.mode));
        match choice.command {
            Command::Precharge => {
                bank.row = CLOSED;
                bank.hit = [None; 2];
                bank.next_act = bank.next_act.max(at + t.rp);
                self.stats.conflicts += 1;
            }
            Command::Activate => {
                bank.row = bank.queue[self.mode][0].row;
                bank.find_hits();
                bank.next_act = at + t.rc;
                bank.next_pre = at + t.ras;
                bank.next_column = [at + t.rcd; 2];
                self.any_act = at + t.rrd_s;
                self.group_act[group] = at + t.rrd_l;
                self.faw[self.faw_next] = at + t.faw;
                self.faw_next = (self.faw_next + 1) % 4;
                self.stats.activates += 1;
            }
            Command::Column => self.issue_column(choice.bank, at),
        }
        self.update_candidate(choice.bank, READ);
        self.update_candidate(choice.bank, WRITE);
    }

    fn issue_column(&mut self, number: usize, at: u64) {
        let t = &self.timing;
        let kind = self.mode;
        let group = number % GROUPS;
        let bank = &mut self.banks[number];
        let Some(hit) = bank.hit[kind] else { return };
        let request = bank.queue[kind].remove(hit);
        bank.hit[kind] = bank.queue[kind][hit..]
            .iter()
            .position(|q| q.row == bank.row)
            .map(|p| p + hit);
        self.count[kind] -= 1;
        self.any_column[kind] = at + t.ccd_s;
        self.group_column[kind][group] = at + t.ccd_l;
        if kind == READ {
            bank.next_pre = bank.next_pre.max(at + t.rtp);
            // Bus turnaround: two clocks between read data and write data.
            self.any_column[WRITE] = self.any_column[WRITE].max(at + t.cl + t.burst + 2 - t.cwl);
            let time = t.time(at + t.cl + t.burst) + self.backend;
            self.done_reads.push_back(Completion {
                tag: request.tag,
                is_write: false,
                time,
            });
            self.stats.reads += 1;
        } else {
            let data_end = at + t.cwl + t.burst;
            bank.next_pre = bank.next_pre.max(data_end + t.wr);
            self.any_column[READ] = self.any_column[READ].max(data_end + t.wtr_s);
            let read = &mut self.group_column[READ][group];
            *read = (*read).max(data_end + t.wtr_l);
            if let Some(place) = self.buffered.iter().position(|&line| line == request.line) {
                self.buffered.swap_remove(place);
            }
            self.stats.writes += 1;
        }
    }

    /// Closes all banks and refreshes them. No other command is issued meanwhile.
    fn refresh(&mut self) {
        let t = &self.timing;
        let mut at = self.next_refresh.max(self.cycle);
        let mut all_closed = at;
        for bank in &self.banks {
            if bank.row == CLOSED {
                all_closed = all_closed.max(bank.next_act);
            } else {
                at = at.max(bank.next_pre);
                all_closed = all_closed.max(bank.next_act);
            }
        }
        if self.banks.iter().any(|b| b.row != CLOSED) {
            all_closed = all_closed.max(at + t.rp);
        }
        for bank in &mut self.banks {
            bank.row = CLOSED;
            bank.hit = [None; 2];
            bank.next_act = all_closed + t.rfc;
        }
        self.cycle = all_closed + 1;
        #[cfg(test)]
        self.log.extend(tests::Logged::refresh(at, all_closed));
        self.next_refresh += t.refi;
        self.stats.refreshes += 1;
        self.update_all_candidates();
    }
}

#[cfg(test)]
mod tests;
