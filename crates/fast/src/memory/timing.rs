//! The memory behind a channel, burst by burst.

use sim::dram::{BurstChannel, ReadTimes, WriteTimes};
use sim::memctrl::MemoryModel;
use sim::{Random, Time};

/// Timing of a memory; see [`MemoryModel`].
pub enum Timing {
    Ddr4(Box<BurstChannel>),
    Fixed {
        latency: Time,
        pace: Time,
        next: [Time; 2],
    },
    Late {
        most: Time,
        random: Random,
        written: Time,
        pace: Time,
        next: [Time; 2],
    },
}

impl Timing {
    /// Behind a front end that gives it a line every `pace` at most, reads and writes apart.
    pub fn new(memory: &MemoryModel, pace: Time) -> Timing {
        match memory {
            MemoryModel::Ddr4(config) => Timing::Ddr4(Box::new(BurstChannel::new(config, pace))),
            // The front end looks for what has come before it asks for more.
            MemoryModel::Fixed(latency) => Timing::Fixed {
                latency: (*latency).max(Time(1)),
                pace,
                next: [Time::ZERO; 2],
            },
            MemoryModel::Random { max, seed } => Timing::Late {
                most: *max,
                random: Random::new(*seed),
                written: Time::ZERO,
                pace,
                next: [Time::ZERO; 2],
            },
        }
    }

    /// Reads `lines` lines from `now` on.
    #[inline]
    pub fn read(&mut self, now: Time, addr: u64, lines: u32) -> ReadTimes {
        match self {
            Timing::Ddr4(bursts) => bursts.read(now, addr, lines),
            Timing::Fixed {
                latency,
                pace,
                next,
            } => {
                let (from, taken) = give(now, lines, *pace, &mut next[0]);
                ReadTimes {
                    first: from + *latency,
                    last: taken + *latency,
                    taken,
                }
            }
            Timing::Late {
                most,
                random,
                pace,
                next,
                ..
            } => {
                let (from, taken) = give(now, lines, *pace, &mut next[0]);
                let (mut first, mut last) = (Time::MAX, Time::ZERO);
                for line in 0..u64::from(lines) {
                    let end = Time(from.0 + line * pace.0 + 1 + random.below(most.0.max(1)));
                    (first, last) = (first.min(end), last.max(end));
                }
                ReadTimes { first, last, taken }
            }
        }
    }

    /// Writes `lines` lines from `now` on.
    #[inline]
    pub fn write(&mut self, now: Time, addr: u64, lines: u32) -> WriteTimes {
        match self {
            Timing::Ddr4(bursts) => bursts.write(now, addr, lines),
            Timing::Fixed {
                latency,
                pace,
                next,
            } => {
                let (_, taken) = give(now, lines, *pace, &mut next[1]);
                WriteTimes {
                    taken,
                    safe: taken + *latency,
                }
            }
            Timing::Late {
                most,
                random,
                written,
                pace,
                next,
            } => {
                let (from, taken) = give(now, lines, *pace, &mut next[1]);
                for line in 0..u64::from(lines) {
                    let end = Time(from.0 + line * pace.0 + 1 + random.below(most.0.max(1)));
                    *written = end.max(*written);
                }
                WriteTimes {
                    taken,
                    safe: *written,
                }
            }
        }
    }
}

/// When the first and the last of `lines` lines are given to the memory.
fn give(now: Time, lines: u32, pace: Time, next: &mut Time) -> (Time, Time) {
    let from = now.max(*next);
    let taken = Time(from.0 + u64::from(lines.saturating_sub(1)) * pace.0);
    *next = taken + pace;
    (from, taken)
}
