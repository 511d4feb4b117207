// SPDX-License-Identifier: Apache-2.0

//! Timing of the memory of a channel, burst by burst.

use sim::dram::{BurstChannel, ReadTimes, WriteTimes};
use sim::memctrl::MemoryModel;
use sim::{Random, Time};

/// Timing of each kind of [`MemoryModel`].
pub enum MemoryTiming {
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

impl MemoryTiming {
    /// Timing of a memory whose front end issues a line every `pace` at most, for reads and writes
    /// separately.
    pub fn new(memory: &MemoryModel, pace: Time) -> MemoryTiming {
        match memory {
            MemoryModel::Ddr4(config) => {
                MemoryTiming::Ddr4(Box::new(BurstChannel::new(config, pace)))
            }
            // The front end checks for answers before it issues the next line.
            MemoryModel::Fixed(latency) => MemoryTiming::Fixed {
                latency: (*latency).max(Time(1)),
                pace,
                next: [Time::ZERO; 2],
            },
            MemoryModel::Random { max, seed } => MemoryTiming::Late {
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
            MemoryTiming::Ddr4(bursts) => bursts.read(now, addr, lines),
            MemoryTiming::Fixed {
                latency,
                pace,
                next,
            } => {
                let (from, taken) = issue_lines(now, lines, *pace, &mut next[0]);
                ReadTimes {
                    first: from + *latency,
                    last: taken + *latency,
                    taken,
                }
            }
            MemoryTiming::Late {
                most,
                random,
                pace,
                next,
                ..
            } => {
                let (from, taken) = issue_lines(now, lines, *pace, &mut next[0]);
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
            MemoryTiming::Ddr4(bursts) => bursts.write(now, addr, lines),
            MemoryTiming::Fixed {
                latency,
                pace,
                next,
            } => {
                let (_, taken) = issue_lines(now, lines, *pace, &mut next[1]);
                WriteTimes {
                    taken,
                    safe: taken + *latency,
                }
            }
            MemoryTiming::Late {
                most,
                random,
                written,
                pace,
                next,
            } => {
                let (from, taken) = issue_lines(now, lines, *pace, &mut next[1]);
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

/// The times at which the first and the last of `lines` lines are issued to the memory.
fn issue_lines(now: Time, lines: u32, pace: Time, next: &mut Time) -> (Time, Time) {
    let from = now.max(*next);
    let taken = Time(from.0 + u64::from(lines.saturating_sub(1)) * pace.0);
    *next = taken + pace;
    (from, taken)
}
