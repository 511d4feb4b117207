// SPDX-License-Identifier: Apache-2.0

//! The multiplexer of a channel, and the credits of its masters.

use std::collections::VecDeque;

use super::arbiter::Arbiter;
use super::MASTERS;

/// The NVMe controller. Its outstanding bursts lower the limits of the other masters.
pub const CONTROLLER: usize = 1;

/// A burst that waits for the multiplexer.
#[derive(Clone, Copy)]
pub struct BurstRequest {
    pub tag: u64,
    pub addr: u64,
    pub arrived: u64,
    pub id: u16,
    pub beats: u16,
}

/// Limit of a master's outstanding lines in one direction; 0 is no limit.
#[derive(Clone, Copy, Default)]
pub struct MasterLimit {
    /// Limits while the controller has nothing outstanding, and while it has.
    lines: [u32; 2],
}

impl MasterLimit {
    /// A limit of `lines`, lowered to `beside` unless that is 0.
    pub fn new(master: usize, lines: u32, beside: u32) -> MasterLimit {
        let lower = match (lines, beside) {
            (_, 0) => lines,
            (0, _) => beside,
            _ => lines.min(beside),
        };
        MasterLimit {
            lines: [lines, if master == CONTROLLER { lines } else { lower }],
        }
    }
}

/// The multiplexer of one direction, and the credits of its masters.
pub struct Mux {
    pub waiting: [VecDeque<BurstRequest>; MASTERS],
    /// Number of waiting bursts, and a bit for each master with one.
    pub count: usize,
    pub masters: u32,
    pub arbiter: Arbiter,
    /// Outstanding beats of each master, and their limits.
    pub open: [u32; MASTERS],
    pub limits: [MasterLimit; MASTERS],
    /// The next cycle in which an address can pass.
    pub next: u64,
    /// The cycle in which a waiting burst can be granted.
    pub due: u64,
    /// Beats of each master's writes that were received or announced and have not passed to the
    /// memory.
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
            limits: [MasterLimit::default(); MASTERS],
            next: 0,
            due: u64::MAX,
            waiting_beats: [0; MASTERS],
        }
    }

    /// Whether a master's burst fits into its credits. `beside`: the controller has lines
    /// outstanding.
    #[inline]
    pub fn has_credit(&self, master: usize, beats: u16, beside: bool) -> bool {
        let (open, limit) = (
            self.open[master],
            self.limits[master].lines[usize::from(beside)],
        );
        limit == 0 || open == 0 || open + u32::from(beats) <= limit
    }
}
