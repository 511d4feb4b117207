//! The multiplexer of a channel, with the credits of its masters before it.

use std::collections::VecDeque;

use super::arbiter::Arbiter;
use super::MASTERS;

/// The master whose bursts make the others' limits lower: the NVMe controller.
pub const CONTROLLER: usize = 1;

/// A burst before the multiplexer.
#[derive(Clone, Copy)]
pub struct Request {
    pub tag: u64,
    pub addr: u64,
    pub arrived: u64,
    pub id: u16,
    pub beats: u16,
}

/// Lines that a master may have outstanding in one direction; 0: no limit.
#[derive(Clone, Copy, Default)]
pub struct Limit {
    /// While the controller has nothing outstanding, and while it has.
    lines: [u32; 2],
}

impl Limit {
    /// Of `lines`, and of at most `beside` where that is not 0.
    pub fn new(master: usize, lines: u32, beside: u32) -> Limit {
        let lower = match (lines, beside) {
            (_, 0) => lines,
            (0, _) => beside,
            _ => lines.min(beside),
        };
        Limit {
            lines: [lines, if master == CONTROLLER { lines } else { lower }],
        }
    }
}

/// The multiplexer of one direction, with the credits before it.
pub struct Mux {
    pub waiting: [VecDeque<Request>; MASTERS],
    /// How many, and whose, a bit each.
    pub count: usize,
    pub masters: u32,
    pub arbiter: Arbiter,
    /// Beats outstanding of each master, and how many there may be.
    pub open: [u32; MASTERS],
    pub limits: [Limit; MASTERS],
    /// The next cycle in which it can pass an address.
    pub next: u64,
    /// When something can be granted that has not been yet.
    pub due: u64,
    /// Beats of each master's writes that have arrived, or are going to, and have not passed to the memory.
    pub waiting_beats: [u32; MASTERS],
}

impl Mux {
    pub fn new() -> Mux {
        Mux {
            waiting: std::array::from_fn(|_| VecDeque::with_capacity(64)),
            count: 0,
            masters: 0,
            arbiter: Arbiter::new(),
            open: [0; MASTERS],
            limits: [Limit::default(); MASTERS],
            next: 0,
            due: u64::MAX,
            waiting_beats: [0; MASTERS],
        }
    }

    /// Whether a master's burst fits into its credits. `beside`: the controller has something outstanding.
    #[inline]
    pub fn has_credit(&self, master: usize, beats: u16, beside: bool) -> bool {
        let (open, limit) = (
            self.open[master],
            self.limits[master].lines[usize::from(beside)],
        );
        limit == 0 || open == 0 || open + u32::from(beats) <= limit
    }
}
