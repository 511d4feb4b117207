//! The controller of one channel: queues, scheduling, and the state of banks and buses.

use std::collections::VecDeque;

use super::map::{place, BANKS, GROUPS, LINES};
use super::{DramConfig, Timing};
use crate::Time;

/// A 64-byte access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the completion.
    pub tag: u64,
    /// Byte address in the channel; the low 6 bits don't matter.
    pub addr: u64,
    /// Write, else read.
    pub is_write: bool,
}

/// A read whose data is there, or a write that is safe in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// That of the request.
    pub tag: u64,
    /// That of the request.
    pub is_write: bool,
    /// When it completed.
    pub time: Time,
}

/// What a channel has done.
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
    /// Turns of the data bus between reads and writes.
    pub turns: u64,
}

const READ: usize = 0;
const WRITE: usize = 1;
const CLOSED: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Queued {
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
    queue: [Vec<Queued>; 2],
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

/// What a bank wants to do next for its reads or its writes.
#[derive(Clone, Copy)]
struct Candidate {
    /// Not before this clock, as far as the bank itself is concerned.
    ready: u64,
    /// Command and bank group, an index into what the rank allows.
    bound: usize,
    /// Smaller goes first among those of one clock: overdue requests, then row hits, then age. The low bits are the
    /// bank's number.
    rank: u64,
}

impl Candidate {
    const NONE: Candidate = Candidate {
        ready: 0,
        bound: 0,
        rank: 0,
    };
}

/// Bits of a candidate's rank; above them a key has the clock.
const RANK_BITS: u32 = 44;
/// Clocks that a key can tell apart.
const KEY_CLOCKS: u64 = 1 << (64 - RANK_BITS);

/// The command that goes next.
#[derive(Clone, Copy)]
struct Choice {
    cycle: u64,
    command: Command,
    bank: usize,
}

/// One DDR4 channel. Time is the caller's and never goes back.
pub struct Channel {
    config: DramConfig,
    timing: Timing,
    frontend: Time,
    backend: Time,
    age_limit: u64,
    rows: u64,
    banks: Vec<Bank>,
    /// Of each bank, for reads and writes; meant only for banks with a bit in `waiting`.
    candidates: [[Candidate; BANKS]; 2],
    /// No request becomes overdue before this clock.
    overdue: u64,
    /// What `choose` found, as long as nothing has changed.
    chosen: Option<Choice>,
    /// Banks with waiting reads and writes, a bit each.
    waiting: [u32; 2],
    /// How many wait.
    count: [usize; 2],
    /// What the data bus does now: READ or WRITE.
    mode: usize,
    /// A drain that goes on although reads wait.
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
    /// No command can go before this clock.
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

    /// Takes a request at `now`, unless its queue is full.
    pub fn push(&mut self, now: Time, request: Request) -> bool {
        self.run(now);
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
        let at = place(request.addr, self.rows);
        let arrived = self.timing.cycle(seen) + 1;
        let kind = usize::from(is_write);
        let bank = &mut self.banks[at.bank];
        if bank.hit[kind].is_none() && bank.row == at.row {
            bank.hit[kind] = Some(bank.queue[kind].len());
        }
        bank.queue[kind].push(Queued {
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
        self.propose(at.bank, kind);
        true
    }

    /// The oldest completion that is due at `now`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Completion> {
        self.run(now);
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

    /// When [`Channel::poll`] is next worth a call: something completes, or the controller acts and may then have room.
    /// `None` when nothing is under way.
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

    /// True when nothing waits and nothing is to be reported.
    pub fn is_idle(&self) -> bool {
        self.next_event().is_none()
    }

    /// What the channel has done so far.
    pub fn stats(&self) -> ChannelStats {
        self.stats
    }

    /// The constraints in force.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Issues all commands up to what requests accepted by `now` decide.
    fn run(&mut self, now: Time) {
        if self.count == [0, 0] {
            return;
        }
        let until = self.timing.cycle(now + self.frontend);
        if until < self.wake {
            return;
        }
        // Refreshes that passed with nothing to do leave only the last one to be seen, and that one took place when it was due.
        if self.next_refresh < self.wake {
            let idle = self.wake - 1 - self.next_refresh;
            self.next_refresh += idle / self.timing.refi * self.timing.refi;
            self.stats.refreshes += idle / self.timing.refi;
            self.refresh();
        }
        self.cycle = self.cycle.max(self.wake);
        loop {
            if self.cycle > self.overdue {
                self.propose_all();
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

    /// Whether reads or writes have the bus.
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

    /// Works out what `bank` wants next for its reads or writes.
    #[inline]
    fn propose(&mut self, number: usize, kind: usize) {
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

    /// Proposals of all banks anew, and when that is next needed because a request gets overdue.
    fn propose_all(&mut self) {
        self.chosen = None;
        self.overdue = u64::MAX;
        for kind in [READ, WRITE] {
            for number in 0..BANKS {
                self.propose(number, kind);
                if let Some(oldest) = self.banks[number].queue[kind].first() {
                    let due = oldest.arrived + self.age_limit;
                    if due >= self.cycle {
                        self.overdue = self.overdue.min(due);
                    }
                }
            }
        }
    }

    /// The next command of the present mode, which has requests: the earliest, and of those the first by rank.
    #[inline]
    fn choose(&self) -> Choice {
        let kind = self.mode;
        // What the rank as a whole allows, by command and bank group, in clocks from now.
        let act = self.any_act.max(self.faw[self.faw_next]);
        let bounds: [u64; 3 * GROUPS] = std::array::from_fn(|i| match i / GROUPS {
            0 => self.any_column[kind]
                .max(self.group_column[kind][i % GROUPS])
                .max(self.cycle),
            1 => act.max(self.group_act[i % GROUPS]).max(self.cycle),
            _ => self.cycle,
        });
        // The smallest key, without branches that nobody could predict.
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
        Choice {
            cycle: self.cycle + (key >> RANK_BITS),
            command,
            bank,
        }
    }

    /// Puts a command on the bus.
    #[inline]
    fn issue(&mut self, choice: Choice) {
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
        self.propose(choice.bank, READ);
        self.propose(choice.bank, WRITE);
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
            // The bus turns: two clocks between read data and write data.
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

    /// Closes all banks and refreshes them. Nothing else goes in the meantime.
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
        self.propose_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// What went over the command bus.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Bus {
        Act,
        Rd,
        Wr,
        Pre,
        PreAll,
        Ref,
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Logged {
        at: u64,
        command: Bus,
        bank: usize,
    }

    impl Logged {
        pub fn new(choice: Choice, mode: usize) -> Logged {
            let command = match choice.command {
                Command::Activate => Bus::Act,
                Command::Precharge => Bus::Pre,
                Command::Column if mode == READ => Bus::Rd,
                Command::Column => Bus::Wr,
            };
            Logged {
                at: choice.cycle,
                command,
                bank: choice.bank,
            }
        }

        pub fn refresh(precharge: u64, refresh: u64) -> [Logged; 2] {
            let logged = |at, command| Logged {
                at,
                command,
                bank: 0,
            };
            [logged(precharge, Bus::PreAll), logged(refresh, Bus::Ref)]
        }
    }

    /// The least clocks between command `a` and a later `b`, by the standard's tables, not by the controller's state.
    fn least_gap(t: &Timing, a: Logged, b: Logged) -> u64 {
        use Bus::{Act, Pre, PreAll, Rd, Ref, Wr};
        let same_bank = a.bank == b.bank;
        let same_group = a.bank % GROUPS == b.bank % GROUPS;
        let pick = |long, short| if same_group { long } else { short };
        match (a.command, b.command) {
            (Act, Act) if same_bank => t.rc,
            (Act, Act) => pick(t.rrd_l, t.rrd_s),
            (Act, Rd | Wr) if same_bank => t.rcd,
            (Act, Pre) if same_bank => t.ras,
            (Act, PreAll) => t.ras,
            (Rd, Rd) | (Wr, Wr) => pick(t.ccd_l, t.ccd_s),
            (Rd, Wr) => t.cl + t.burst + 2 - t.cwl,
            (Wr, Rd) => t.cwl + t.burst + pick(t.wtr_l, t.wtr_s),
            (Rd, Pre) if same_bank => t.rtp,
            (Rd, PreAll) => t.rtp,
            (Wr, Pre) if same_bank => t.cwl + t.burst + t.wr,
            (Wr, PreAll) => t.cwl + t.burst + t.wr,
            (Pre, Act) if same_bank => t.rp,
            (Pre, Ref) => t.rp,
            (Ref, _) => t.rfc,
            _ => 1,
        }
    }

    /// Checks every pair of commands that can bind each other, the state of banks, and the refresh rate.
    fn check_log(channel: &Channel) {
        let t = channel.timing();
        let log = &channel.log;
        let mut open = [false; BANKS];
        let mut refreshes = 0;
        for (i, &b) in log.iter().enumerate() {
            let before = log[..i]
                .iter()
                .rev()
                .take_while(|a| a.at + t.rfc.max(100) >= b.at);
            for &a in before {
                // The PREA of a refresh with all banks closed already isn't sent; it binds nothing.
                if (a.command, b.command) == (Bus::PreAll, Bus::Ref) {
                    assert!(b.at >= a.at);
                    continue;
                }
                let gap = least_gap(t, a, b);
                assert!(
                    b.at >= a.at + gap || b.command == Bus::PreAll && !open[a.bank],
                    "{a:?} {b:?}: {gap} clocks"
                );
            }
            match b.command {
                Bus::Act => {
                    assert!(
                        !std::mem::replace(&mut open[b.bank], true),
                        "{b:?}: the bank is open"
                    );
                    let acts: Vec<_> = log[..=i]
                        .iter()
                        .rev()
                        .filter(|a| a.command == Bus::Act)
                        .take(5)
                        .collect();
                    assert!(
                        acts.len() < 5 || acts[0].at >= acts[4].at + t.faw,
                        "{b:?}: five within tFAW"
                    );
                }
                Bus::Rd | Bus::Wr => assert!(open[b.bank], "{b:?}: the bank is closed"),
                Bus::Pre => assert!(
                    std::mem::take(&mut open[b.bank]),
                    "{b:?}: the bank is closed"
                ),
                Bus::PreAll => {
                    let any = open.contains(&true);
                    open = [false; BANKS];
                    assert!(
                        !any || log[i + 1].at >= b.at + t.rp,
                        "{b:?}: REF within tRP"
                    );
                }
                Bus::Ref => {
                    refreshes += 1;
                    assert!(
                        b.at + 2 * t.rfc < (refreshes + 1) * t.refi,
                        "refresh {refreshes} is late: {b:?}"
                    );
                }
            }
        }
        let end = log[log.len() - 1].at;
        assert!(
            t.refi == u64::MAX || refreshes >= end / t.refi - 1,
            "{refreshes} refreshes by clock {end}"
        );
    }

    #[test]
    fn every_command_keeps_its_distance_from_every_other() {
        for seed in 0..12u64 {
            let mut random = Random::new(seed);
            let config = DramConfig {
                data_rate_mts: [2133, 2400, 2666, 3200][seed as usize % 4],
                refresh_mode: [2, 1, 4, 0][seed as usize / 2 % 4],
                density_gbit: [4, 8, 16][seed as usize % 3],
                age_limit_ns: [2000, 0, 200][seed as usize % 3],
                ..DramConfig::default()
            };
            config.validate().unwrap();
            let mut channel = Channel::new(&config);
            let span = [1 << 15, 1 << 20, 1 << 33][seed as usize / 4];
            let writes = 1 + random.below(3);
            let mut at = 0;
            let requests: Vec<_> = (0..4000)
                .map(|_| {
                    at = if random.below(3) == 0 {
                        random.below(span)
                    } else {
                        at + 64
                    };
                    (at, random.below(4) < writes)
                })
                .collect();
            drive(&mut channel, Time::ZERO, &requests);
            // Drain the writes as well.
            while let Some(now) = channel.next_event() {
                channel.poll(now);
            }
            assert!(channel.log.len() > 2000);
            check_log(&channel);
        }
    }

    /// A configuration without refresh and fixed latencies, so that the arithmetic stands alone.
    fn bare() -> DramConfig {
        DramConfig {
            refresh_mode: 0,
            frontend_ns: 0,
            backend_ns: 0,
            ..DramConfig::default()
        }
    }

    /// The byte address of column `column` in `row` of bank `bank` of group `group`.
    fn address(group: u64, bank: u64, row: u64, column: u64) -> u64 {
        let group = (group ^ (row >> 2)) & 3;
        let bank = (bank ^ row) & 3;
        ((row << 11) | (bank << 9) | (column << 2) | group) << 6
    }

    /// Pushes as soon as it is accepted, advancing to events; returns the completions in order.
    fn drive(channel: &mut Channel, start: Time, requests: &[(u64, bool)]) -> Vec<Completion> {
        let mut now = start;
        let mut out = Vec::new();
        let mut todo = requests.iter().enumerate().peekable();
        for _ in 0..requests.len() * 20 + 100 {
            while let Some(&(i, &(addr, is_write))) = todo.peek() {
                if !channel.push(
                    now,
                    Request {
                        tag: i as u64,
                        addr,
                        is_write,
                    },
                ) {
                    break;
                }
                todo.next();
            }
            while let Some(completion) = channel.poll(now) {
                assert!(
                    completion.time <= now
                        && out
                            .last()
                            .is_none_or(|c: &Completion| c.time <= completion.time)
                );
                out.push(completion);
            }
            match channel.next_event() {
                Some(time) => {
                    assert!(time > now, "an event in the past");
                    now = time;
                }
                None if todo.peek().is_none() => break,
                None => panic!("refuses with nothing under way"),
            }
        }
        assert_eq!(out.len(), requests.len(), "not everything completed");
        out
    }

    /// When the read at `now` has its data.
    fn read(channel: &mut Channel, now: Time, addr: u64) -> Time {
        drive(channel, now, &[(addr, false)])[0].time
    }

    #[test]
    fn latencies_of_miss_hit_and_conflict_are_jedec_arithmetic() {
        let mut channel = Channel::new(&bare());
        let t = channel.timing().clone();
        // A request is seen in the clock after the one in which it came.
        let issue = |now| t.cycle(now) + 1;
        let start = Time::ns(100);
        assert_eq!(
            read(&mut channel, start, address(0, 0, 0, 0)),
            t.time(issue(start) + t.rcd + t.cl + t.burst)
        );
        let start = Time::ns(400);
        assert_eq!(
            read(&mut channel, start, address(0, 0, 0, 5)),
            t.time(issue(start) + t.cl + t.burst)
        );
        let start = Time::ns(800);
        let conflict = read(&mut channel, start, address(0, 0, 4, 0));
        assert_eq!(
            conflict,
            t.time(issue(start) + t.rp + t.rcd + t.cl + t.burst)
        );
        // In ns at DDR4-2400: 17, 34 and 51 clocks of 0.833 ns, and 4 of data.
        assert!(((conflict - t.time(issue(start))).as_ns() - 55.0 / 1.2).abs() < 0.01);
        // Another row at once: the open row has to stay for tRAS first.
        let start = Time::ns(1200);
        let both = drive(
            &mut channel,
            start,
            &[(address(1, 0, 0, 0), false), (address(1, 0, 4, 0), false)],
        );
        let act = issue(start);
        let pre = (act + t.ras).max(act + t.rcd + t.rtp);
        assert_eq!(
            both[1].time,
            t.time((pre + t.rp).max(act + t.rc) + t.rcd + t.cl + t.burst)
        );
    }

    #[test]
    fn fixed_latencies_add() {
        let fixed = DramConfig {
            frontend_ns: 10,
            backend_ns: 7,
            ..bare()
        };
        let (mut with, mut without) = (Channel::new(&fixed), Channel::new(&bare()));
        let start = Time::ns(90);
        let (a, b) = (
            read(&mut with, start, 0),
            read(&mut without, start + Time::ns(10), 0),
        );
        assert_eq!(a, b + Time::ns(7));
        let write = drive(&mut with, Time::us(1), &[(64, true)])[0];
        assert_eq!(
            (write.time, write.is_write),
            (Time::us(1) + Time::ns(10), true)
        );
    }

    #[test]
    fn column_commands_keep_tccd() {
        for (groups, gap) in [([0, 0], 6), ([0, 1], 4)] {
            let mut channel = Channel::new(&bare());
            let t = channel.timing().clone();
            for group in groups {
                read(&mut channel, Time::ZERO, address(group, 0, 0, 0));
            }
            let requests = groups.map(|group| (address(group, 0, 0, 9), false));
            let out = drive(&mut channel, Time::us(1), &requests);
            assert_eq!(t.cycle(out[1].time) - t.cycle(out[0].time), gap);
        }
    }

    #[test]
    fn write_to_read_turnaround_is_cwl_burst_twtr() {
        for (group, longer) in [(0, true), (1, false)] {
            let mut channel = Channel::new(&bare());
            let t = channel.timing().clone();
            for g in [0, 1] {
                read(&mut channel, Time::ZERO, address(g, 0, 0, 0));
            }
            let start = Time::us(1);
            assert!(channel.push(
                start,
                Request {
                    tag: 0,
                    addr: address(0, 0, 0, 1),
                    is_write: true
                }
            ));
            // By the next clock the write has gone, and the read finds the bus turned.
            let later = t.time(t.cycle(start) + 1);
            assert!(channel.push(
                later,
                Request {
                    tag: 1,
                    addr: address(group, 0, 0, 2),
                    is_write: false
                }
            ));
            let mut out = Vec::new();
            while let Some(now) = channel.next_event().filter(|&now| now < Time::us(2)) {
                out.extend(std::iter::from_fn(|| channel.poll(now)));
            }
            assert_eq!(
                out.iter().map(|c| c.is_write).collect::<Vec<_>>(),
                [true, false]
            );
            let data = out[1].time;
            let write = t.cycle(start) + 1;
            let wtr = if longer { t.wtr_l } else { t.wtr_s };
            assert_eq!(data, t.time(write + t.cwl + t.burst + wtr + t.cl + t.burst));
        }
    }

    #[test]
    fn read_to_write_turnaround_leaves_the_bus_two_clocks() {
        let mut channel = Channel::new(&bare());
        let t = channel.timing().clone();
        read(&mut channel, Time::ZERO, address(0, 0, 0, 0));
        let start = Time::us(1);
        assert!(channel.push(
            start,
            Request {
                tag: 0,
                addr: address(0, 0, 0, 1),
                is_write: false
            }
        ));
        let later = t.time(t.cycle(start) + 1);
        assert!(channel.push(
            later,
            Request {
                tag: 1,
                addr: address(0, 0, 0, 2),
                is_write: true
            }
        ));
        while let Some(now) = channel.next_event() {
            channel.poll(now);
        }
        let [rd, wr] = channel.log[channel.log.len() - 2..] else {
            panic!("nothing issued")
        };
        assert_eq!((rd.command, wr.command), (Bus::Rd, Bus::Wr));
        assert_eq!(wr.at + t.cwl, rd.at + t.cl + t.burst + 2);
    }

    #[test]
    fn activates_keep_trrd_and_tfaw() {
        // One read to each bank: activates bound everything.
        let mut channel = Channel::new(&bare());
        let t = channel.timing().clone();
        let requests: Vec<_> = (0..16)
            .map(|i| (address(i % 4, i / 4, 0, 0), false))
            .collect();
        let out = drive(&mut channel, Time::ZERO, &requests);
        let act = |i: usize| t.cycle(out[i].time) - t.burst - t.cl - t.rcd;
        assert_eq!(act(1) - act(0), t.rrd_s);
        for i in 4..16 {
            assert_eq!(act(i) - act(i - 4), t.faw, "five activates within tFAW");
        }
        // And in the long run, random rows: four lines a tFAW at most.
        let mut channel = Channel::new(&bare());
        let mut random = Random::new(2);
        let requests: Vec<_> = (0..20_000)
            .map(|_| (random.below(1 << 32), false))
            .collect();
        let out = drive(&mut channel, Time::ZERO, &requests);
        let clocks = t.cycle(out[out.len() - 1].time);
        let bound = requests.len() as u64 / 4 * t.faw;
        assert!(
            clocks >= bound * 99 / 100,
            "{clocks} clocks, tFAW alone takes {bound}"
        );
        assert!(
            clocks <= bound * 130 / 100,
            "{clocks} clocks, tFAW alone takes {bound}"
        );
    }

    /// Share of peak that a stream reaches, and the channel.
    fn stream(config: &DramConfig, is_write: bool) -> f64 {
        let mut channel = Channel::new(config);
        let n = 200_000u64;
        let requests: Vec<_> = (0..n).map(|i| (i * 64, is_write)).collect();
        let out = drive(&mut channel, Time::ZERO, &requests);
        let end = out[out.len() - 1].time;
        n as f64 * 64.0 / end.as_ns() / config.peak_bytes_per_ns()
    }

    #[test]
    fn streams_reach_90_percent_of_peak_with_refresh() {
        for data_rate_mts in [2133, 2400, 2666, 3200] {
            let config = DramConfig {
                data_rate_mts,
                ..DramConfig::default()
            };
            for is_write in [false, true] {
                let share = stream(&config, is_write);
                assert!(
                    (0.90..=1.0).contains(&share),
                    "{data_rate_mts} write {is_write}: {share:.4} of peak"
                );
            }
        }
        // Without refresh hardly anything is lost.
        let share = stream(&bare(), false);
        assert!(share > 0.99, "{share}");
    }

    #[test]
    fn the_worst_read_waits_for_a_refresh_in_full() {
        let config = DramConfig {
            frontend_ns: 0,
            backend_ns: 0,
            ..DramConfig::default()
        };
        let t = Timing::new(&config);
        let mut channel = Channel::new(&config);
        // Lone reads 1 us apart, shifting against tREFI.
        let mut worst = Time::ZERO;
        let mut best = Time::MAX;
        let mut slow = 0;
        for i in 0..20_000u64 {
            let start = Time(i * 1_003_000);
            let latency = read(&mut channel, start, address(0, 0, 0, i % 128)) - start;
            slow += u64::from(latency > t.time(1 + t.rp + t.rcd + t.cl + t.burst));
            worst = worst.max(latency);
            best = best.min(latency);
        }
        // At worst it comes with the refresh, which first has to close the row.
        let limit = t.time(1 + t.rp + t.rfc + t.rcd + t.cl + t.burst);
        assert!(worst <= limit, "{worst} against {limit}");
        assert!(
            worst >= t.time(t.rfc + t.rcd + t.cl + t.burst - 20),
            "{worst} against {limit}"
        );
        assert!(best <= t.time(1 + t.cl + t.burst));
        // Refreshes between the reads are over when the next read comes: only those wait that arrive during one.
        let during = 20_000 * (t.rfc + t.rp + 2) / t.refi;
        assert!(
            slow <= during,
            "{slow} reads waited, {during} can have met a refresh"
        );
        // All refreshes took place, also those that fell between the reads.
        let expected = 20_000 * 1_003_000 / t.time(t.refi).0;
        assert!(channel.stats().refreshes.abs_diff(expected) <= 1);
    }

    #[test]
    fn reads_of_buffered_writes_are_answered_from_the_buffer() {
        let mut channel = Channel::new(&DramConfig::default());
        let requests: Vec<_> = (0..8)
            .map(|i| (i * 64, true))
            .chain([(3 * 64 + 7, false)])
            .collect();
        let out = drive(&mut channel, Time::us(1), &requests);
        let last = out.iter().find(|c| !c.is_write).unwrap();
        assert_eq!((last.tag, last.time), (8, Time::us(1) + Time::ns(16)));
        assert_eq!((channel.stats().forwarded, channel.stats().reads), (1, 0));
        // Drained, it comes from the DRAM.
        drive(&mut channel, Time::us(5), &[(3 * 64, false)]);
        assert_eq!((channel.stats().writes, channel.stats().reads), (8, 1));
    }

    #[test]
    fn an_old_request_goes_before_row_hits() {
        // A conflicting read behind an endless stream of row hits in its bank.
        let wait = |age_limit_ns| {
            let config = DramConfig {
                age_limit_ns,
                ..bare()
            };
            let mut channel = Channel::new(&config);
            read(&mut channel, Time::ZERO, address(0, 0, 0, 0));
            let start = Time::us(1);
            let mut now = start;
            channel.push(
                now,
                Request {
                    tag: 0,
                    addr: address(0, 0, 0, 1),
                    is_write: false,
                },
            );
            channel.push(
                now,
                Request {
                    tag: 1,
                    addr: address(0, 0, 4, 0),
                    is_write: false,
                },
            );
            for column in 0u64.. {
                channel.push(
                    now,
                    Request {
                        tag: 2,
                        addr: address(0, 0, 0, column % 128),
                        is_write: false,
                    },
                );
                while let Some(completion) = channel.poll(now) {
                    if completion.tag == 1 {
                        return completion.time - start;
                    }
                }
                if now > Time::us(50) {
                    break;
                }
                now += Time::ns(4);
            }
            Time::MAX
        };
        assert_eq!(wait(1_000_000), Time::MAX, "hits go first");
        assert!(
            wait(2000) >= Time::ns(2000) && wait(2000) < Time::ns(2200),
            "{}",
            wait(2000)
        );
    }

    #[test]
    fn queues_refuse_when_full_and_drain() {
        let config = DramConfig {
            read_queue: 4,
            write_queue: 8,
            drain_high: 6,
            drain_low: 2,
            ..DramConfig::default()
        };
        let mut channel = Channel::new(&config);
        let now = Time::ns(10);
        let accepted = (0..10)
            .filter(|&i| {
                channel.push(
                    now,
                    Request {
                        tag: i,
                        addr: i << 20,
                        is_write: false,
                    },
                )
            })
            .count();
        assert_eq!(
            (
                accepted,
                channel.can_accept(false),
                channel.can_accept(true)
            ),
            (4, false, true)
        );
        let accepted = (0..20)
            .filter(|&i| {
                channel.push(
                    now,
                    Request {
                        tag: i,
                        addr: i << 21,
                        is_write: true,
                    },
                )
            })
            .count();
        assert_eq!(accepted, 8);
        let mut now = now;
        while let Some(event) = channel.next_event() {
            now = event;
            while channel.poll(now).is_some() {}
        }
        assert!(now < Time::us(2));
        let stats = channel.stats();
        assert_eq!((stats.reads, stats.writes), (4, 8));
        assert!(channel.is_idle());
    }

    #[test]
    fn random_mixes_complete_once_and_repeat_exactly() {
        for seed in 0..6 {
            let run = || {
                let mut random = Random::new(seed);
                let config = DramConfig {
                    data_rate_mts: [2133, 2400, 2666, 3200][seed as usize % 4],
                    ..DramConfig::default()
                };
                let mut channel = Channel::new(&config);
                let span = [1 << 14, 1 << 20, 1 << 33][seed as usize % 3];
                let requests: Vec<_> = (0..5000)
                    .map(|_| (random.below(span), random.below(3) == 0))
                    .collect();
                let out = drive(&mut channel, Time::ns(seed), &requests);
                (out, channel.stats())
            };
            let (out, stats) = run();
            assert_eq!((out.clone(), stats), run());
            let mut tags: Vec<_> = out.iter().map(|c| c.tag).collect();
            tags.sort_unstable();
            assert!(tags.into_iter().eq(0..5000));
            assert_eq!(stats.reads + stats.forwarded + stats.writes, 5000);
        }
    }
}
