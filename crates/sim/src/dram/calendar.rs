//! When commands of one kind are reserved, and where the next one fits between them.

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

    /// The first clock from `earliest` on at which a command fits, and its place in the list.
    #[inline]
    pub(super) fn fit(&mut self, earliest: u64, group: usize) -> (usize, u64) {
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
/// Where more wait than fit, they get a quarter of tFAW each: those that have to wait for their bank then leave no gaps that are
/// of no use to others.
pub(super) struct Activates {
    entries: Vec<Entry>,
    /// Up to here no place is left, in quarters of a clock.
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
        let waits = 4 * seen <= self.dense;
        let packed = 4 * earliest <= self.dense;
        let dense = self.dense;
        // In quarters of a clock, too: of those that wait, whole steps from where there is no place.
        let step = self.faw;
        let align = |clock: u64| {
            if waits {
                let steps = (4 * clock).saturating_sub(dense).div_ceil(step);
                let exact = dense + steps * step;
                (exact, exact.div_ceil(4))
            } else {
                (4 * clock, clock)
            }
        };
        let (mut exact, mut clock) = align(earliest);
        let v = &self.entries;
        let n = v.len();
        let mut i = n;
        while i > 0 && v[i - 1].clock > clock {
            i -= 1;
        }
        loop {
            let mut least = clock;
            if i > 0 {
                least = least.max(v[i - 1].clock + self.gap(v[i - 1], group));
            }
            if i > 3 {
                least = least.max(v[i - 4].clock + self.faw);
            }
            if least > clock {
                (exact, clock) = align(least);
            }
            if i == n {
                break;
            }
            let far = |after: usize, before: usize| {
                i + after >= n || i < before || v[i + after].clock >= v[i - before].clock + self.faw
            };
            let fits = v[i].clock >= clock + self.gap(v[i], group)
                && (i + 3 >= n || v[i + 3].clock >= clock + self.faw)
                && far(0, 3)
                && far(1, 2)
                && far(2, 1);
            if fits {
                break;
            }
            i += 1;
        }
        if packed {
            self.dense = exact;
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
