// SPDX-License-Identifier: Apache-2.0

//! Reservations of commands of one kind, the first slot that fits between them, and the departures
//! from a queue.

use super::map::GROUPS;
use super::Timing;

/// Entries that are kept before old ones are discarded.
const MAX_ENTRIES: usize = 256;
/// Entries that are left after that.
const KEPT_ENTRIES: usize = 128;

/// A clock and its bank group.
#[derive(Clone, Copy)]
struct ReservedCommand {
    clock: u64,
    group: usize,
}

/// Reserved RD and WR commands, which are tCCD apart: a ring of clocks, with a bit where no other
/// command fits.
pub(super) struct ColumnCalendar {
    words: Vec<BusyClocks>,
    /// The first word that is known, and the first word after all that have a bit.
    base: u64,
    top: u64,
    /// The last command.
    last: ReservedCommand,
    short: u64,
    long: u64,
    /// The clocks that a command at bit 7 blocks: for all groups, and for its group.
    masks: [u64; 2],
}

/// 64 clocks: those blocked for all commands, and those blocked for a bank group.
#[derive(Clone, Copy, Default)]
struct BusyClocks {
    any: u64,
    group: [u64; GROUPS],
}

impl ColumnCalendar {
    /// For `requests` at a time; slots farther ahead count as free.
    pub(super) fn new(timing: &Timing, requests: usize) -> ColumnCalendar {
        ColumnCalendar {
            words: vec![BusyClocks::default(); ring_words(requests)],
            base: 0,
            top: 0,
            last: ReservedCommand { clock: 0, group: 0 },
            short: timing.ccd_s,
            long: timing.ccd_l,
            masks: [timing.ccd_s, timing.ccd_l].map(|gap| bits_between(0, 8 - gap, 6 + gap)),
        }
    }

    #[inline]
    fn word(&self, word: u64) -> BusyClocks {
        let mask = self.words.len() - 1;
        self.words[word as usize & mask]
    }

    /// The first clock from `earliest` on at which a command fits.
    #[inline]
    pub(super) fn first_fit(&self, earliest: u64, group: usize) -> u64 {
        let mut clock = earliest.max(self.base * 64);
        while clock / 64 < self.top {
            let word = self.word(clock / 64);
            let busy = (word.any | word.group[group % GROUPS]) >> (clock % 64);
            let clocks = u64::from((!busy).trailing_zeros());
            if clocks < 64 - clock % 64 {
                return clock + clocks;
            }
            clock = (clock / 64 + 1) * 64;
        }
        clock
    }

    /// Whether commands at these clocks are free of conflicts. The clocks are so close that nothing
    /// fits between, and the groups rotate, starting with the first of `groups`.
    #[inline]
    pub(super) fn is_free(&self, clocks: &[u64], groups: [usize; GROUPS]) -> bool {
        let (Some(&first), Some(&last)) = (clocks.first(), clocks.last()) else {
            return false;
        };
        if first >= self.floor(groups[0]) {
            return true;
        }
        if first / 64 < self.base {
            return false;
        }
        let mut word = first / 64;
        while word <= last / 64 && word < self.top {
            if self.word(word).any & bits_between(word, first, last) != 0 {
                return false;
            }
            word += 1;
        }
        // Only the first and the last command of a group can have a neighbour of that group outside
        // the run.
        let ends = clocks.iter().enumerate();
        ends.filter(|&(n, _)| n < GROUPS || n + GROUPS >= clocks.len())
            .all(|(n, &clock)| {
                let group = self.word(clock / 64).group[groups[n % GROUPS] % GROUPS];
                clock / 64 >= self.top || group >> (clock % 64) & 1 == 0
            })
    }

    /// Reserves a clock.
    #[inline]
    pub(super) fn insert(&mut self, clock: u64, group: usize) {
        let (word, bit) = (clock / 64, clock % 64);
        let most = self.base + self.words.len() as u64;
        if word >= self.base && word < most {
            let masks = self.masks;
            if bit < 7 {
                if word > self.base {
                    self.mark(word - 1, group, masks.map(|mask| mask << (57 + bit)));
                }
                self.mark(word, group, masks.map(|mask| mask >> (7 - bit)));
            } else {
                self.mark(word, group, masks.map(|mask| mask << (bit - 7)));
                if bit > 56 && word + 1 < most {
                    self.mark(word + 1, group, masks.map(|mask| mask >> (71 - bit)));
                }
            }
        }
        if clock > self.last.clock {
            self.last = ReservedCommand { clock, group };
        }
    }

    #[inline]
    fn mark(&mut self, word: u64, group: usize, masks: [u64; 2]) {
        let mask = self.words.len() - 1;
        let clocks = &mut self.words[word as usize & mask];
        clocks.any |= masks[0];
        clocks.group[group % GROUPS] |= masks[1];
        self.top = self.top.max(word + 1);
    }

    /// Reserves a run of commands that leaves no free slot: clock and group of the first and of the
    /// last.
    #[inline]
    pub(super) fn insert_run(&mut self, clocks: [u64; 2], groups: [usize; 2]) {
        let [first, last] = clocks;
        let (short, long) = (self.short - 1, self.long - 1);
        let from = first.saturating_sub(long).max(self.base * 64);
        let to = (last + long).min((self.base + self.words.len() as u64) * 64 - 1);
        let mask = self.words.len() - 1;
        if from <= first && first <= last && last <= to && to - from < 64 {
            let word = from / 64;
            let ones = |from: u64, to: u64| {
                (u128::from(u64::MAX) >> (63 - (to - from))) << (from - word * 64)
            };
            let any = ones(from.max(first.saturating_sub(short)), to.min(last + short));
            let (begin, end) = (ones(from, first), ones(last, to));
            let mut mark = |word: u64, shift: u32| {
                let clocks = &mut self.words[word as usize & mask];
                clocks.any |= (any >> shift) as u64;
                clocks.group[groups[0] % GROUPS] |= (begin >> shift) as u64;
                clocks.group[groups[1] % GROUPS] |= (end >> shift) as u64;
            };
            mark(word, 0);
            if to / 64 > word {
                mark(word + 1, 64);
            }
        } else {
            for word in from / 64..to / 64 + 1 {
                let clocks = &mut self.words[word as usize & mask];
                clocks.any |= bits_between(word, first.saturating_sub(short), last + short);
                clocks.group[groups[0] % GROUPS] |= bits_between(word, from, first);
                clocks.group[groups[1] % GROUPS] |= bits_between(word, last, to);
            }
        }
        self.top = self.top.max(to / 64 + 1);
        if last > self.last.clock {
            self.last = ReservedCommand {
                clock: last,
                group: groups[1],
            };
        }
    }

    /// Discards reservations before `clock`.
    #[inline]
    pub(super) fn discard_before(&mut self, clock: u64) {
        // Slightly late requests still find theirs.
        let base = (clock / 64).saturating_sub(1);
        if base < self.base + 8 {
            return;
        }
        let mask = self.words.len() - 1;
        while self.base < base {
            if self.base >= self.top {
                self.base = base;
                return;
            }
            self.words[self.base as usize & mask] = BusyClocks::default();
            self.base += 1;
        }
    }

    /// The first clock after all reservations that fits this bank group.
    #[inline]
    pub(super) fn floor(&self, group: usize) -> u64 {
        match self.last {
            ReservedCommand { clock: 0, .. } => 0,
            last if last.group == group => last.clock + self.long,
            last => last.clock + self.short,
        }
    }

    /// [`ColumnCalendar::floor`] of each bank group.
    #[inline]
    pub(super) fn floors(&self) -> [u64; GROUPS] {
        let mut floors = [self.free(); GROUPS];
        floors[self.last.group % GROUPS] = self.floor(self.last.group);
        floors
    }

    /// The first clock after all reservations that fits any bank group.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        match self.last.clock {
            0 => 0,
            clock => clock + self.short,
        }
    }
}

/// Words of a ring of clocks for this number of requests, each of which may wait for the one before
/// to close its row.
fn ring_words(requests: usize) -> usize {
    (requests + 48).next_power_of_two()
}

/// The bits of a word of clocks from `first` to `last`.
#[inline]
fn bits_between(word: u64, first: u64, last: u64) -> u64 {
    let start = word * 64;
    if last < start || first > start + 63 {
        return 0;
    }
    let from = first.saturating_sub(start);
    let to = (last - start).min(63);
    (u64::MAX << from) & (u64::MAX >> (63 - to))
}

/// Reserved ACT commands, which are tRRD apart, and any five of them more than tFAW.
///
/// An ACT between others shares four windows of tFAW with later ones. Only the window from the
/// command before it on is checked. Checking all of them would block slots around commands that
/// wait for their bank, which a controller that decides later fills. Random reads would then be 4 %
/// slower than with `Channel`; with no check at all they would be 6 % faster.
pub(super) struct ActivateCalendar {
    entries: Vec<ReservedCommand>,
    /// No slot is left up to here.
    dense: u64,
    /// No slot is left from here to the last command, by bank group.
    full: [u64; GROUPS],
    short: u64,
    long: u64,
    faw: u64,
}

impl ActivateCalendar {
    pub(super) fn new(timing: &Timing) -> ActivateCalendar {
        ActivateCalendar {
            entries: Vec::with_capacity(MAX_ENTRIES + 1),
            dense: 0,
            full: [0; GROUPS],
            short: timing.rrd_s,
            long: timing.rrd_l,
            faw: timing.faw,
        }
    }

    #[inline]
    fn gap(&self, entry: ReservedCommand, group: usize) -> u64 {
        if entry.group == group {
            self.long
        } else {
            self.short
        }
    }

    /// The first clock from `earliest` on at which an ACT fits that has been waiting since `seen`,
    /// and its index in the list.
    #[inline]
    pub(super) fn first_fit(&mut self, seen: u64, earliest: u64, group: usize) -> (usize, u64) {
        self.dense = self.dense.max(seen);
        let packed = earliest <= self.dense;
        let mut clock = earliest.max(self.dense);
        let v = &self.entries;
        let n = v.len();
        let mut i = n;
        let full = clock >= self.full[group % GROUPS];
        let from = clock;
        while !full && i > 0 && v[i - 1].clock > clock {
            i -= 1;
        }
        loop {
            if i > 0 {
                clock = clock.max(v[i - 1].clock + self.gap(v[i - 1], group));
            }
            if i > 3 {
                clock = clock.max(v[i - 4].clock + self.faw);
            }
            if i == n {
                break;
            }
            let apart = v[i].clock >= clock + self.gap(v[i], group);
            if apart && (i == 0 || i + 2 >= n || v[i + 2].clock >= v[i - 1].clock + self.faw) {
                break;
            }
            i += 1;
        }
        if i == n && !full {
            self.full[group % GROUPS] = from;
        }
        if packed {
            self.dense = clock;
        }
        (i, clock)
    }

    #[inline]
    pub(super) fn insert(&mut self, index: usize, clock: u64, group: usize) {
        let n = self.entries.len();
        if index == n {
            let next = match self.entries.last() {
                Some(&last) => last.clock + self.gap(last, group),
                None => 0,
            };
            let window = n
                .checked_sub(4)
                .map_or(0, |n| self.entries[n].clock + self.faw);
            // A command later than necessary leaves a slot before it.
            if clock > next.max(window) {
                self.full = [clock; GROUPS];
            }
        }
        insert(&mut self.entries, index, ReservedCommand { clock, group });
    }

    /// The first clock after all reservations that the rank as a whole allows.
    pub(super) fn floor(&self) -> u64 {
        let n = self.entries.len();
        let last = self.entries.last().map_or(0, |e| e.clock + self.short);
        match n.checked_sub(4) {
            Some(fourth) => last.max(self.entries[fourth].clock + self.faw),
            None => last,
        }
    }
}

#[inline]
fn insert(entries: &mut Vec<ReservedCommand>, index: usize, entry: ReservedCommand) {
    entries.insert(index, entry);
    if entries.len() > MAX_ENTRIES {
        entries.drain(..MAX_ENTRIES + 1 - KEPT_ENTRIES);
    }
}

/// When requests leave a queue: a ring of clocks, with at most one departure each.
pub(super) struct DepartureQueue {
    words: Vec<u64>,
    /// All requests before this clock have left.
    at: u64,
    len: usize,
    last: u64,
}

impl DepartureQueue {
    pub(super) fn new(most: usize) -> DepartureQueue {
        DepartureQueue {
            words: vec![0; ring_words(most)],
            at: 0,
            len: 0,
            last: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// When the first request leaves.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.nth(0)
    }

    #[inline]
    fn nth(&self, mut n: usize) -> Option<u64> {
        if n >= self.len {
            return None;
        }
        let mask = self.words.len() - 1;
        let mut word = self.at / 64;
        loop {
            let mut bits = self.words[word as usize & mask];
            while bits != 0 {
                if n == 0 {
                    return Some(word * 64 + u64::from(bits.trailing_zeros()));
                }
                n -= 1;
                bits &= bits - 1;
            }
            word += 1;
        }
    }

    /// When the last request leaves; 0 if there is none.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        match self.len {
            0 => 0,
            _ => self.last,
        }
    }

    /// When a queue of `most` requests has space again, if it has none now.
    #[inline]
    pub(super) fn full_until(&self, most: usize) -> Option<u64> {
        self.nth(self.len.checked_sub(most)?)
    }

    /// Whether departures were not removed for many clocks.
    #[inline]
    pub(super) fn is_stale(&self, clock: u64) -> bool {
        clock > self.at + 512
    }

    /// Removes the requests that leave by `clock`.
    #[inline]
    pub(super) fn remove_until(&mut self, clock: u64) {
        if clock < self.at {
            return;
        }
        let mask = self.words.len() - 1;
        let mut word = self.at / 64;
        while self.len > 0 && word <= clock / 64 {
            let bits = &mut self.words[word as usize & mask];
            let left = *bits & bits_between(word, self.at, clock);
            if left != 0 {
                *bits &= !left;
                self.len -= left.count_ones() as usize;
            }
            word += 1;
        }
        self.at = clock + 1;
    }

    /// Adds requests that leave at these clocks, which are sorted and distinct.
    #[inline]
    pub(super) fn insert_all(&mut self, clocks: &[u64]) {
        let (Some(&first), Some(&last)) = (clocks.first(), clocks.last()) else {
            return;
        };
        if last < self.at {
            return;
        }
        if first < self.at || last / 64 >= self.at / 64 + self.words.len() as u64 - 1 {
            clocks.iter().for_each(|&clock| self.insert(clock));
            return;
        }
        self.last = self.last().max(last);
        if last - first < 64 {
            let bits = clocks
                .iter()
                .fold(0u64, |bits, &clock| bits | 1 << (clock - first));
            let bits = u128::from(bits) << (first % 64);
            self.add(first / 64, bits as u64);
            self.add(first / 64 + 1, (bits >> 64) as u64);
        } else {
            clocks
                .iter()
                .for_each(|&clock| self.add(clock / 64, 1 << (clock % 64)));
        }
    }

    #[inline]
    fn add(&mut self, word: u64, bits: u64) {
        let mask = self.words.len() - 1;
        let all = &mut self.words[word as usize & mask];
        self.len += (bits & !*all).count_ones() as usize;
        *all |= bits;
    }

    /// Adds a request that leaves at `clock` or the next free clock, unless that has passed.
    #[inline]
    pub(super) fn insert(&mut self, clock: u64) {
        if clock < self.at {
            return;
        }
        let mask = self.words.len() - 1;
        let most = (self.at / 64 + self.words.len() as u64 - 1) * 64;
        let mut clock = clock.min(most);
        while self.words[(clock / 64) as usize & mask] >> (clock % 64) & 1 != 0 {
            clock += 1;
            if clock > most + 63 {
                clock = self.at;
            }
        }
        self.words[(clock / 64) as usize & mask] |= 1 << (clock % 64);
        self.last = if self.len == 0 {
            clock
        } else {
            self.last.max(clock)
        };
        self.len += 1;
    }
}
