//! When commands of one kind are reserved, and where the next one fits between them; when requests leave a queue.

use std::collections::VecDeque;

use super::Timing;

/// So many are kept before those that lie behind are forgotten.
const MOST: usize = 256;
/// And so many are left then.
const KEPT: usize = 128;

/// A clock and its bank group.
#[derive(Clone, Copy)]
struct Entry {
    clock: u64,
    group: usize,
}

/// Reserved RD and WR commands, which are tCCD apart.
pub(super) struct Columns {
    entries: Vec<Entry>,
    /// Up to here no place is left.
    dense: u64,
    short: u64,
    long: u64,
}

impl Columns {
    pub(super) fn new(timing: &Timing) -> Columns {
        Columns {
            entries: Vec::with_capacity(MOST + 1),
            dense: 0,
            short: timing.ccd_s,
            long: timing.ccd_l,
        }
    }

    #[inline]
    fn gap(&self, entry: Entry, group: usize) -> u64 {
        if entry.group == group {
            self.long
        } else {
            self.short
        }
    }

    /// The first clock from `earliest` on at which a command fits that is known since `seen`, and its place in the list.
    #[inline]
    pub(super) fn fit(&mut self, seen: u64, earliest: u64, group: usize) -> (usize, u64) {
        self.dense = self.dense.max(seen);
        let packed = earliest <= self.dense;
        let mut clock = earliest.max(self.dense);
        let v = &self.entries;
        let mut i = v.len();
        while i > 0 && v[i - 1].clock > clock {
            i -= 1;
        }
        if i > 0 {
            clock = clock.max(v[i - 1].clock + self.gap(v[i - 1], group));
        }
        while i < v.len() && v[i].clock < clock + self.gap(v[i], group) {
            clock = clock.max(v[i].clock + self.gap(v[i], group));
            i += 1;
        }
        if packed {
            self.dense = clock;
        }
        (i, clock)
    }

    #[inline]
    pub(super) fn insert(&mut self, index: usize, clock: u64, group: usize) {
        insert(&mut self.entries, index, Entry { clock, group });
    }

    /// The first clock behind all of them that fits this bank group.
    #[inline]
    pub(super) fn floor(&self, group: usize) -> u64 {
        self.entries
            .last()
            .map_or(0, |&e| e.clock + self.gap(e, group))
    }
}

/// Reserved ACT commands, which are tRRD apart, and four of them tFAW.
///
/// Of the four windows of tFAW that one between others shares with later ones, only that from the one before it on is looked at. All
/// of them would make places useless around those that wait for their bank, which a controller fills that decides later: random
/// reads would come to 4 % less than with `Channel`, and with none of them to 6 % more.
pub(super) struct Activates {
    entries: Vec<Entry>,
    /// Up to here no place is left.
    dense: u64,
    short: u64,
    long: u64,
    faw: u64,
}

impl Activates {
    pub(super) fn new(timing: &Timing) -> Activates {
        Activates {
            entries: Vec::with_capacity(MOST + 1),
            dense: 0,
            short: timing.rrd_s,
            long: timing.rrd_l,
            faw: timing.faw,
        }
    }

    #[inline]
    fn gap(&self, entry: Entry, group: usize) -> u64 {
        if entry.group == group {
            self.long
        } else {
            self.short
        }
    }

    /// The first clock from `earliest` on at which an ACT fits that has been waited for since `seen`, and its place in the list.
    #[inline]
    pub(super) fn fit(&mut self, seen: u64, earliest: u64, group: usize) -> (usize, u64) {
        self.dense = self.dense.max(seen);
        let packed = earliest <= self.dense;
        let mut clock = earliest.max(self.dense);
        let v = &self.entries;
        let n = v.len();
        let mut i = n;
        while i > 0 && v[i - 1].clock > clock {
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
        if packed {
            self.dense = clock;
        }
        (i, clock)
    }

    #[inline]
    pub(super) fn insert(&mut self, index: usize, clock: u64, group: usize) {
        insert(&mut self.entries, index, Entry { clock, group });
    }

    /// The first clock behind all of them that the rank as a whole allows.
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
fn insert(entries: &mut Vec<Entry>, index: usize, entry: Entry) {
    entries.insert(index, entry);
    if entries.len() > MOST {
        entries.drain(..MOST + 1 - KEPT);
    }
}

/// When the requests in a queue leave it.
pub(super) struct Queue {
    /// Sorted.
    clocks: VecDeque<u64>,
}

impl Queue {
    pub(super) fn new(most: usize) -> Queue {
        Queue {
            clocks: VecDeque::with_capacity(most + 1),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.clocks.len()
    }

    /// When the first leaves.
    pub(super) fn first(&self) -> Option<u64> {
        self.clocks.front().copied()
    }

    /// When the last leaves; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.clocks.back().map_or(0, |&clock| clock)
    }

    /// When there is room again in a queue of `most`, if there is none now.
    #[inline]
    pub(super) fn full_until(&self, most: usize) -> Option<u64> {
        let first = self.clocks.len().checked_sub(most)?;
        self.clocks.get(first).copied()
    }

    /// Lets those leave that do so by `clock`.
    #[inline]
    pub(super) fn leave(&mut self, clock: u64) {
        while self.clocks.front().is_some_and(|&first| first <= clock) {
            self.clocks.pop_front();
        }
    }

    /// Takes one that leaves at `clock`.
    #[inline]
    pub(super) fn enter(&mut self, clock: u64) {
        let mut i = self.clocks.len();
        while i > 0 && self.clocks[i - 1] > clock {
            i -= 1;
        }
        if i == self.clocks.len() {
            self.clocks.push_back(clock);
        } else {
            self.clocks.insert(i, clock);
        }
    }
}
