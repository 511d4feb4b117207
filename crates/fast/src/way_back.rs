//! The way of read data from the channels back through a port: `ns_axi_demux`, a beat a cycle.

use std::collections::VecDeque;

use crate::memory::PIECE;

/// A part of a burst that has left its channel.
pub(crate) struct Part {
    /// Whose.
    pub(crate) load: u32,
    /// The cycle of its last beat, if the way is free.
    pub(crate) last: u64,
    pub(crate) beats: u32,
    /// It ends the burst.
    pub(crate) end: bool,
}

impl Part {
    fn first(&self) -> u64 {
        (self.last + 1).saturating_sub(self.beats.into())
    }
}

/// Channels take turns, up to a burst's last beat or a pause in it.
pub(crate) struct WayBack {
    /// Parts that wait, by channel.
    lines: Vec<VecDeque<Part>>,
    waiting: usize,
    /// The channel that is asked first.
    turn: usize,
    /// That one is within a burst.
    within: bool,
    /// The next free cycle.
    free: u64,
}

impl WayBack {
    pub(crate) fn new() -> WayBack {
        WayBack {
            lines: Vec::new(),
            waiting: 0,
            turn: 0,
            within: false,
            free: 0,
        }
    }

    pub(crate) fn put(&mut self, channel: usize, part: Part) {
        if self.lines.len() <= channel {
            self.lines.resize_with(channel + 1, VecDeque::new);
        }
        self.lines[channel].push_back(part);
        self.waiting += 1;
    }

    /// The next part that passes, its channel, and the cycle of its last beat. `follows` says whether a channel has a further part by a cycle.
    pub(crate) fn pass(
        &mut self,
        now: u64,
        follows: impl Fn(usize, u64) -> bool,
    ) -> Option<(usize, Part, u64)> {
        if self.waiting == 0 {
            return None;
        }
        let next = self.lines.get(self.turn).and_then(VecDeque::front);
        // What follows the burst's last beat without a pause is told when it ends.
        let last = self.free + u64::from(PIECE) - 1;
        if self.within && next.is_none() && now <= last && follows(self.turn, last) {
            return None;
        }
        let fronts = || self.lines.iter().filter_map(VecDeque::front);
        let start = self.free.max(fronts().map(Part::first).min()?);
        let channels = self.lines.len();
        let channel = (0..channels)
            .map(|n| (self.turn + n) % channels)
            .find(|&c| self.lines[c].front().is_some_and(|p| p.first() <= start))?;
        let part = self.lines[channel].pop_front()?;
        self.waiting -= 1;
        let last = part.last.max(start + u64::from(part.beats.max(1)) - 1);
        self.free = last + 1;
        self.within = !part.end;
        self.turn = channel + usize::from(part.end);
        Some((channel, part, last.max(now)))
    }

    /// Channels of which parts wait, and the first cycle in which something may follow these.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let some = match self.waiting {
            0 => &[],
            _ => &self.lines[..],
        };
        let free = self.free;
        some.iter().enumerate().filter_map(move |(channel, line)| {
            let beats: u32 = line.iter().map(|part| part.beats).sum();
            (beats > 0).then_some((channel, free + u64::from(beats)))
        })
    }

    /// When to look again at what waits.
    pub(crate) fn again(&self) -> Option<u64> {
        (self.waiting > 0).then_some(self.free + u64::from(PIECE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(load: u32, last: u64, end: bool) -> Part {
        Part {
            load,
            last,
            beats: PIECE,
            end,
        }
    }

    #[test]
    fn a_channel_has_the_way_up_to_the_end_of_its_burst_or_a_pause() {
        let mut way = WayBack::new();
        way.put(0, part(0, 17, false));
        assert!(matches!(way.pass(17, |_, _| true), Some((0, _, 17))));
        way.put(1, part(1, 18, true));
        assert!(way
            .pass(18, |channel, by| channel == 0 && by == 25)
            .is_none());
        assert_eq!(way.waiting().collect::<Vec<_>>(), [(1, 26)]);
        way.put(0, part(0, 25, true));
        assert!(matches!(way.pass(25, |_, _| true), Some((0, _, 25))));
        assert!(matches!(way.pass(25, |_, _| true), Some((1, _, 33))));
        // A pause: the other one does not wait.
        way.put(0, part(2, 41, false));
        assert!(matches!(way.pass(41, |_, _| false), Some((0, _, 41))));
        way.put(1, part(3, 44, true));
        assert!(matches!(way.pass(44, |_, _| false), Some((1, _, 49))));
        assert_eq!(way.again(), None);
    }
}
