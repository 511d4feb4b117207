//! A channel that answers at once: what a burst takes follows from what has been reserved before it.
//!
//! Command and data buses, banks, the turns of the bus, refresh and the queues are those of [`super::Channel`], with the same constants.
//! Where that one decides clock by clock which command goes next, this one gives each line of a read the first
//! place that fits when it is asked for: between what is reserved already, or behind it. So a read that comes later never
//! pushes one that has been answered; of writes, which are answered before they reach the DRAM, the one that can go first does.

use super::calendar::{Activates, Columns, Queue};
use super::map::{place, Place, BANKS, GROUPS, LINES};
use super::{ChannelStats, DramConfig, Timing};
use crate::Time;

const CLOSED: u32 = u32::MAX;
const READ: usize = 0;
const WRITE: usize = 1;

/// When a burst of reads is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The first line, backend included.
    pub first: Time,
    /// The last line to come, which may be another one than the last of the burst.
    pub last: Time,
    /// When the controller took the last line into its queue.
    pub taken: Time,
}

/// When a burst of writes is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// When the controller took the last line into its queue.
    pub taken: Time,
    /// When it answers for all of them.
    pub safe: Time,
}

#[derive(Clone, Copy)]
struct Waiting {
    line: u64,
    row: u32,
    /// The first clock in which the scheduler sees it.
    arrived: u64,
    age: u64,
}

/// A bank behind everything that has been reserved in it.
struct Bank {
    row: u32,
    next_act: u64,
    next_pre: u64,
    /// Next RD and WR.
    next_column: [u64; 2],
    /// The row before, and the clock of the PRE that closes it: reads of it that come until then still find it open.
    before: (u32, u64),
    before_column: u64,
    /// The row of the last write: those of a drain that goes on find it open, whatever has a place behind them.
    written: u32,
    /// Closed for the refresh that is next: whatever comes is behind it.
    refreshed: bool,
    /// Writes in the controller, oldest first, and the oldest of those that hit the open row.
    writes: Vec<Waiting>,
    hit: Option<usize>,
}

/// The write that goes next.
#[derive(Clone, Copy)]
struct Next {
    bank: usize,
    index: usize,
    column: u64,
}

/// One DDR4 channel, burst by burst. Calls come in the order of time; one that is a little late counts as if it were not.
pub struct Bursts {
    timing: Timing,
    frontend: Time,
    backend: Time,
    pace: Time,
    rows: u64,
    read_queue: usize,
    write_queue: usize,
    drain_high: usize,
    drain_low: usize,
    banks: [Bank; BANKS],
    columns: Columns,
    activates: Activates,
    /// No RD or WR of any bank before these clocks.
    floor: [u64; 2],
    /// The same by the bank group of the last writes.
    group_floor: [u64; GROUPS],
    next_refresh: u64,
    /// When the next refresh ends, as far as that is decided.
    refreshed: Option<u64>,
    /// The last RD, and the last WR.
    last_read: u64,
    last_write: u64,
    /// When the front end can give the next line of a read, and of a write.
    next_line: [Time; 2],
    /// Columns of the reads in the queue.
    reads: Queue,
    /// Writes in the controller whose time in the DRAM is not decided, by bank and in all.
    waiting: u32,
    unsent: usize,
    /// When those leave the queue whose time is.
    leaving: Queue,
    /// No write can go, or have its row opened, before this clock.
    quiet: u64,
    /// Clocks by which they leave the queue before their columns.
    ahead: u64,
    /// When the last drain ends; writes that come until then go with it.
    drains_until: u64,
    buffered: Vec<u64>,
    ages: u64,
    mode: usize,
    stats: ChannelStats,
}

impl Bursts {
    /// A channel with all banks closed, before which a front end gives a line every `pace` at most. The configuration must be valid.
    pub fn new(config: &DramConfig, pace: Time) -> Bursts {
        let timing = Timing::new(config);
        Bursts {
            frontend: Time::ns(config.frontend_ns),
            backend: Time::ns(config.backend_ns),
            pace,
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
                writes: Vec::with_capacity(8),
                hit: None,
            }),
            columns: Columns::new(&timing),
            activates: Activates::new(&timing),
            floor: [0; 2],
            group_floor: [0; GROUPS],
            next_refresh: timing.refi,
            refreshed: None,
            last_read: 0,
            last_write: 0,
            next_line: [Time::ZERO; 2],
            reads: Queue::new(config.read_queue),
            waiting: 0,
            unsent: 0,
            leaving: Queue::new(2 * config.write_queue),
            quiet: 0,
            ahead: 0,
            drains_until: 0,
            buffered: Vec::with_capacity(config.write_queue),
            ages: 0,
            mode: READ,
            stats: ChannelStats::default(),
            timing,
        }
    }

    /// What the channel has done so far, or has decided to do.
    pub fn stats(&self) -> ChannelStats {
        self.stats
    }

    /// Reads `lines` successive lines of 64 bytes from `addr` on, from `now` on.
    #[inline]
    pub fn read(&mut self, now: Time, addr: u64, lines: u32) -> Answered {
        let mut at = now.max(self.next_line[READ]);
        let (mut first, mut last) = (u64::MAX, 0);
        let mut forwarded = Time::ZERO;
        for line in 0..u64::from(lines.max(1)) {
            let mut seen = self.timing.cycle(at + self.frontend);
            self.reads.leave(seen);
            // The read that has to leave the queue first does so when the scheduler, which is ahead by the frontend, sends it.
            if let Some(leaves) = self.reads.full_until(self.read_queue) {
                seen = leaves;
                at = self.timing.time(leaves).saturating_sub(self.frontend);
            }
            self.drain_until(seen);
            let addr = addr.wrapping_add(line << 6);
            if self.unsent > 0 && self.buffered.contains(&(addr >> 6)) {
                self.stats.forwarded += 1;
                forwarded = forwarded.max(at + self.frontend + self.backend);
            } else {
                let column = self.read_line(place(addr, self.rows), seen + 1);
                self.reads.enter(column);
                first = first.min(column);
                last = last.max(column);
            }
            at += self.pace;
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
        Answered {
            first: begin,
            last: done,
            taken: at - self.pace,
        }
    }

    /// Writes `lines` successive lines of 64 bytes from `addr` on, from `now` on.
    #[inline]
    pub fn write(&mut self, now: Time, addr: u64, lines: u32) -> Buffered {
        let mut at = now.max(self.next_line[WRITE]);
        for line in 0..u64::from(lines.max(1)) {
            let mut clock = self.timing.cycle(at + self.frontend);
            self.drain_until(clock + 1);
            self.leaving.leave(clock);
            while self.unsent + self.leaving.len() >= self.write_queue {
                if self.leaving.len() == 0 {
                    self.send_next();
                }
                let Some(leaves) = self.leaving.first() else {
                    break;
                };
                clock = leaves;
                at = at.max(self.timing.time(leaves).saturating_sub(self.frontend));
                self.drain_until(clock + 1);
                self.leaving.leave(clock);
            }
            let addr = addr.wrapping_add(line << 6);
            let place = place(addr, self.rows);
            let bank = &mut self.banks[place.bank];
            if bank.hit.is_none() && bank.row == place.row {
                bank.hit = Some(bank.writes.len());
            }
            bank.writes.push(Waiting {
                line: addr >> 6,
                row: place.row,
                arrived: clock + 1,
                age: self.ages,
            });
            self.quiet = 0;
            self.buffered.push(addr >> 6);
            self.ages += 1;
            self.unsent += 1;
            self.waiting |= 1 << place.bank;
            self.make_room(clock);
            at += self.pace;
        }
        self.next_line[WRITE] = at;
        let taken = at - self.pace;
        Buffered {
            taken,
            safe: taken + self.frontend,
        }
    }

    /// Reserves the place of a read that the scheduler sees from clock `seen` on; returns the clock of its RD.
    #[inline]
    fn read_line(&mut self, at: Place, seen: u64) -> u64 {
        if self.mode == WRITE {
            self.mode = READ;
            self.stats.turns += 1;
        }
        self.stats.reads += 1;
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
                let (index, column) = self.columns.fit(seen, earliest, group);
                if column >= self.refresh_of(at.bank) {
                    self.refresh_bank(at.bank);
                    continue;
                }
                self.columns.insert(index, column, group);
                let bank = &mut self.banks[at.bank];
                bank.next_pre = bank.next_pre.max(column + t.rtp);
                return self.has_read(column);
            }
            if bank.before.0 == at.row && seen + t.rtp < bank.before.1 {
                let earliest = floor.max(bank.before_column);
                let (index, column) = self.columns.fit(seen, earliest, group);
                if column + t.rtp <= bank.before.1 {
                    self.columns.insert(index, column, group);
                    return self.has_read(column);
                }
            }
            // Rows are opened for reads when the writes before them have gone.
            let from = seen.max(self.last_write + 1);
            let pre = from.max(bank.next_pre);
            let opens = match bank.row {
                CLOSED => bank.next_act.max(from),
                _ => bank.next_act.max(pre + t.rp),
            };
            let (act_index, act) = self.activates.fit(seen, opens, group);
            let (index, column) = self.columns.fit(seen, floor.max(act + t.rcd), group);
            if column >= self.refresh_of(at.bank) {
                self.refresh_bank(at.bank);
                continue;
            }
            self.activates.insert(act_index, act, group);
            self.columns.insert(index, column, group);
            self.opened(at, act, pre);
            let t = &self.timing;
            let bank = &mut self.banks[at.bank];
            bank.next_pre = bank.next_pre.max(column + t.rtp);
            return self.has_read(column);
        }
    }

    /// The first clock at which a bank has to be closed.
    #[inline]
    fn refresh_of(&self, bank: usize) -> u64 {
        match self.banks[bank].refreshed {
            false => self.next_refresh,
            true => self.next_refresh.saturating_add(self.timing.refi),
        }
    }

    #[inline]
    fn has_read(&mut self, column: u64) -> u64 {
        let t = &self.timing;
        // The bus turns: two clocks between read data and write data.
        let turn = column + t.cl + t.burst + 2 - t.cwl;
        self.floor[WRITE] = self.floor[WRITE].max(turn);
        self.last_read = self.last_read.max(column);
        column
    }

    /// A row has been opened with an ACT at clock `act`, after a PRE at `pre` if there was another.
    #[inline]
    fn opened(&mut self, at: Place, act: u64, pre: u64) {
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

    /// Sends what writes can go to the DRAM before clock `until`, since no reads wait.
    #[inline]
    fn drain_until(&mut self, until: u64) {
        while self.unsent > 0 && self.floor[WRITE] < until && self.quiet < until {
            match self.next_write() {
                Some(next) if next.column < until => self.send(next),
                Some(next) => {
                    self.quiet = next.column.min(self.open_rows(until));
                    break;
                }
                None => break,
            }
        }
    }

    /// Closes and opens rows for writes as far as that is done before clock `until`; a read may come then. Returns the clock before which no
    /// other can be opened.
    fn open_rows(&mut self, until: u64) -> u64 {
        let mut banks = self.waiting;
        let mut next = u64::MAX;
        while banks != 0 {
            let number = banks.trailing_zeros() as usize % BANKS;
            banks &= banks - 1;
            let bank = &self.banks[number];
            let Some(write) = bank.writes.first().copied() else {
                continue;
            };
            if bank.hit.is_some() {
                continue;
            }
            let t = &self.timing;
            let seen = write.arrived.max(self.last_read + 1);
            let pre = seen.max(bank.next_pre);
            let opens = match bank.row {
                CLOSED => bank.next_act.max(seen),
                _ => bank.next_act.max(pre + t.rp),
            };
            if opens >= until {
                next = next.min(opens);
                if bank.row != CLOSED && pre < until {
                    self.banks[number].precharge(opens);
                }
                continue;
            }
            let group = number % GROUPS;
            let (index, act) = self.activates.fit(write.arrived, opens, group);
            if act < until && act + t.rcd < self.refresh_of(number) {
                self.activates.insert(index, act, group);
                let at = Place {
                    bank: number,
                    row: write.row,
                };
                self.opened(at, act, pre);
                next = 0;
            } else {
                next = next.min(act.max(until));
                if self.banks[number].row != CLOSED {
                    self.banks[number].precharge(opens);
                }
            }
        }
        next
    }

    /// Sends writes once there are so many that reads have to wait for them.
    #[inline]
    fn make_room(&mut self, clock: u64) {
        let many = self.unsent + self.leaving.len() >= self.drain_high;
        if self.last_read <= clock {
            while many && self.unsent > self.drain_low {
                self.send_next();
            }
        } else if self.drains_until > clock {
            while self.unsent > self.drain_low {
                self.join(clock);
            }
        } else if many {
            self.drain(clock);
        }
    }

    /// Sends writes although reads wait. The reads that have a place keep it, and the writes go behind them; but room for others
    /// comes when they would have gone at once.
    fn drain(&mut self, clock: u64) {
        let t = &self.timing;
        let start = (clock + t.cl + t.burst + 2 - t.cwl).max(self.leaving.last());
        self.ahead = self.floor[WRITE].saturating_sub(start);
        while self.unsent > self.drain_low {
            self.send_next();
        }
        self.ahead = 0;
        self.drains_until = self.leaving.last();
    }

    /// Sends a write with the others of a drain that goes on. What has a place behind these keeps it: the write takes its time of the
    /// buses where there is some, without another turn.
    fn join(&mut self, clock: u64) {
        let Some(next) = self.next_write() else {
            return;
        };
        let write = self.take(next);
        let t = &self.timing;
        let group = next.bank % GROUPS;
        let mut step = t.ccd_s;
        let bank = &self.banks[next.bank];
        if bank.row != write.row && bank.written != write.row {
            step = t.faw.div_ceil(4);
            let opens = clock.max(self.banks[next.bank].next_act);
            let (index, act) = self.activates.fit(clock, opens, group);
            self.activates.insert(index, act, group);
            let at = Place {
                bank: next.bank,
                row: write.row,
            };
            self.opened(at, act, act);
        }
        let column = self.columns.floor(group).max(clock);
        let (index, column) = self.columns.fit(clock, column, group);
        self.columns.insert(index, column, group);
        let leaves = self.leaving.last() + step;
        let t = &self.timing;
        let bank = &mut self.banks[next.bank];
        bank.next_pre = bank.next_pre.max(leaves + t.cwl + t.burst + t.wr);
        self.leaving.enter(leaves);
    }

    /// Takes a write out of the queue.
    fn take(&mut self, next: Next) -> Waiting {
        let bank = &mut self.banks[next.bank];
        let write = bank.writes.remove(next.index);
        bank.find_hit();
        if bank.writes.is_empty() {
            self.waiting &= !(1 << next.bank);
        }
        self.quiet = 0;
        self.unsent -= 1;
        if let Some(place) = self.buffered.iter().position(|&line| line == write.line) {
            self.buffered.swap_remove(place);
        }
        self.stats.writes += 1;
        write
    }

    /// Sends the next write, whatever waits.
    fn send_next(&mut self) {
        if let Some(next) = self.next_write() {
            self.send(next);
        }
    }

    /// The write that can go first, and of those the oldest.
    fn next_write(&self) -> Option<Next> {
        let t = &self.timing;
        let floor = self.floor[WRITE];
        let act_floor = self.activates.floor();
        let from = self.last_read + 1;
        let mut best: Option<(u64, u64, Next)> = None;
        let mut banks = self.waiting;
        while banks != 0 {
            let number = banks.trailing_zeros() as usize % BANKS;
            banks &= banks - 1;
            let bank = &self.banks[number];
            let Some(oldest) = bank.writes.first() else {
                continue;
            };
            let (index, column) = match bank.hit {
                Some(hit) => {
                    let arrived = bank.writes[hit].arrived;
                    (hit, arrived.max(bank.next_column[WRITE]))
                }
                None => {
                    let opens = match bank.row {
                        CLOSED => oldest.arrived.max(from).max(bank.next_act),
                        _ => bank
                            .next_act
                            .max(oldest.arrived.max(from).max(bank.next_pre) + t.rp),
                    };
                    (0, opens.max(act_floor) + t.rcd)
                }
            };
            let column = column.max(floor).max(self.columns.floor(number % GROUPS));
            let age = bank.writes[index].age;
            let next = Next {
                bank: number,
                index,
                column,
            };
            if best.is_none_or(|(c, a, _)| (column, age) < (c, a)) {
                best = Some((column, age, next));
            }
        }
        best.map(|(_, _, next)| next)
    }

    /// Sends a write to the DRAM.
    fn send(&mut self, next: Next) {
        if self.mode == READ {
            self.mode = WRITE;
            self.stats.turns += 1;
        }
        let group = next.bank % GROUPS;
        let write = self.take(next);
        let at = Place {
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
                (Some(self.activates.fit(write.arrived, opens, group)), pre)
            };
            let earliest = match act {
                None => bank.next_column[WRITE],
                Some((_, act)) => act + t.rcd,
            };
            let (index, column) = self.columns.fit(write.arrived, floor.max(earliest), group);
            if write.arrived >= self.next_refresh {
                self.refresh(write.arrived);
                continue;
            }
            if column >= self.refresh_of(next.bank) {
                self.refresh_bank(next.bank);
                continue;
            }
            self.columns.insert(index, column, group);
            if let Some((index, act)) = act {
                self.activates.insert(index, act, group);
                self.opened(at, act, pre);
            }
            break column;
        };
        let t = &self.timing;
        self.last_write = self.last_write.max(column);
        let data_end = column + t.cwl + t.burst;
        let bank = &mut self.banks[next.bank];
        bank.next_pre = bank.next_pre.max(data_end + t.wr);
        bank.written = write.row;
        self.floor[READ] = self.floor[READ].max(data_end + t.wtr_s);
        self.group_floor[group] = self.group_floor[group].max(data_end + t.wtr_l);
        let leaves = column - self.ahead.min(column);
        self.leaving.enter(leaves);
    }

    /// Lets the refreshes pass that are due by clock `now`.
    #[cold]
    fn refresh(&mut self, now: u64) {
        let end = self.refresh_end();
        for bank in &mut self.banks {
            bank.close(end);
            bank.refreshed = false;
        }
        self.stats.refreshes += 1;
        self.next_refresh += self.timing.refi;
        // Those that passed with nothing to do leave only the last one to be seen, and that one took place when it was due.
        if now > self.next_refresh {
            let idle = (now - self.next_refresh) / self.timing.refi;
            self.next_refresh += idle * self.timing.refi;
            self.stats.refreshes += idle;
        }
        self.refreshed = None;
    }

    /// What `bank` is asked for has to wait for the next refresh.
    #[cold]
    fn refresh_bank(&mut self, bank: usize) {
        if self.banks[bank].refreshed {
            self.refresh(self.next_refresh);
        }
        let end = self.refresh_end();
        let bank = &mut self.banks[bank];
        bank.close(end);
        bank.refreshed = true;
    }

    /// When the next refresh ends: it begins when it is due, all banks are closed and what had a place before has gone.
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
    /// Closes the row, with a PRE that lets an ACT follow at clock `opens`.
    fn precharge(&mut self, opens: u64) {
        self.before = (CLOSED, 0);
        self.row = CLOSED;
        self.hit = None;
        self.next_act = opens;
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
