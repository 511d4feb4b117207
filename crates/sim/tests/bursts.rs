// SPDX-License-Identifier: Apache-2.0

//! `dram::BurstChannel` compared with `dram::Channel` downstream of `PortQueues`, in closed loops:
//! bandwidth and latency.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use sim::axi::Ax;
use sim::dram::{BurstChannel, Channel, DramConfig};
use sim::memctrl::{PortQueues, ReadBeatSlots, MAX_RESPONSES};
use sim::{Clock, Random, Time};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Sequential,
    Random,
    /// Different rows of few banks, repeatedly.
    Conflicts,
    /// A copy: a row is read, and written to another row of the same banks at this distance.
    Copy(u64),
    /// Eight random pages, interleaved, as several readers do; only for reads of 8 lines.
    Turns,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mix {
    Reads,
    Writes,
    Half,
}

#[derive(Clone, Copy, Debug)]
struct Pattern {
    at: Where,
    mix: Mix,
    lines: u32,
    depth: usize,
}

struct Source {
    pattern: Pattern,
    random: Random,
    next: u64,
    pages: [u64; 8],
}

impl Source {
    fn new(pattern: Pattern) -> Source {
        Source {
            pattern,
            random: Random::new(7),
            next: 0,
            pages: [0; 8],
        }
    }

    fn draw(&mut self) -> (u64, bool) {
        let p = self.pattern;
        let bytes = u64::from(p.lines) * 64;
        let addr = match p.at {
            Where::Copy(distance) => self.next / 2 * bytes + self.next % 2 * distance,
            Where::Sequential => self.next * bytes,
            Where::Random => self.random.below((4 << 30) / bytes) * bytes,
            Where::Turns => {
                let (page, piece) = (self.next % 8, self.next / 8 % (4096 / bytes));
                if piece == 0 {
                    self.pages[page as usize] = self.random.below(1 << 20) << 12;
                }
                self.pages[page as usize] + piece * bytes
            }
            // The low bits of the row select the bank: rows 16 apart are in the same bank.
            Where::Conflicts => self.random.below(1 << 10) * (16 * 16 * 128 * 64),
        };
        self.next += 1;
        let write = match p.mix {
            Mix::Reads => false,
            Mix::Writes => true,
            Mix::Half if matches!(p.at, Where::Copy(_)) => self.next % 2 == 0,
            Mix::Half => self.random.below(2) == 1,
        };
        (addr, write)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Measured {
    gb_s: f64,
    read_ns: f64,
    write_ns: f64,
}

#[derive(Default)]
struct Sums {
    reads: (u64, u64),
    writes: (u64, u64),
}

impl Sums {
    fn add(&mut self, write: bool, cycles: u64) {
        let sum = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        sum.0 += cycles;
        sum.1 += 1;
    }
    fn measured(&self, cycles: u64, lines: u32) -> Measured {
        let mean = |(sum, n): (u64, u64)| sum as f64 * 4.0 / n.max(1) as f64;
        let bursts = self.reads.1 + self.writes.1;
        Measured {
            gb_s: (bursts * u64::from(lines) * 64) as f64 / (cycles as f64 * 4.0),
            read_ns: mean(self.reads),
            write_ns: mean(self.writes),
        }
    }
}

/// Clock by clock.
fn reference(pattern: Pattern, count: u64) -> Measured {
    let clock = Clock::default();
    let mut queues = PortQueues::new(Box::new(Channel::new(&DramConfig::default())));
    let mut source = Source::new(pattern);
    let (mut ar, mut aw): (VecDeque<Ax>, VecDeque<Ax>) = Default::default();
    let mut w = 0u32;
    let mut starts: BTreeMap<u16, u64> = BTreeMap::new();
    let mut ids: Vec<u16> = (0..256).rev().collect();
    let (mut open, mut done) = (0, 0);
    let mut sums = Sums::default();
    let mut cycle = 0;
    while done < count {
        cycle += 1;
        let now = clock.edge(cycle);
        if open < pattern.depth {
            let (addr, write) = source.draw();
            let id = ids.pop().unwrap();
            starts.insert(id, cycle);
            let ax = Ax::incr(id, addr, pattern.lines);
            if write {
                aw.push_back(ax);
                w += pattern.lines;
            } else {
                ar.push_back(ax);
            }
            open += 1;
        }
        queues.advance(now);
        queues.issue(now);
        let beat = queues.next_beat();
        let response = queues.response();
        let (read, write, data) = (
            queues.can_accept_read(),
            queues.can_accept_write(),
            queues.can_accept_data(),
        );
        let mut end = |id: u16, write: bool| {
            sums.add(write, cycle - starts[&id]);
            ids.insert(0, id);
            open -= 1;
            done += 1;
        };
        if read {
            if let Some(ax) = ar.pop_front() {
                queues.accept_read(ax);
            }
        }
        if data && w > 0 {
            queues.accept_data(now, 0);
            w -= 1;
        }
        if write {
            if let Some(ax) = aw.pop_front() {
                queues.accept_write(ax);
            }
        }
        if let Some((id, _)) = response {
            queues.response_sent();
            end(id, true);
        }
        if let Some((ax, number)) = beat {
            queues.beat_sent();
            if number + 1 == ax.beats() {
                end(ax.id, false);
            }
        }
    }
    sums.measured(cycle, pattern.lines)
}

/// Lines per call where both directions are busy.
const PART: u32 = 8;

/// A burst of which the first `asked` lines were requested.
struct Burst {
    start: u64,
    addr: u64,
    asked: u32,
    /// When the answers so far have arrived.
    end: u64,
}

/// Burst by burst, in parts of [`PART`] lines.
fn analytic(pattern: Pattern, count: u64) -> Measured {
    let clock = Clock::default();
    let mut dram = BurstChannel::new(&DramConfig::default(), clock.edge(1));
    let mut source = Source::new(pattern);
    let mut returns = ReadBeatSlots::new();
    let mut ends: BinaryHeap<Reverse<(u64, u64, bool)>> = BinaryHeap::new();
    let mut sums = Sums::default();
    let (mut issued, mut done, mut open) = (0, 0, 0);
    // Requests that wait for the memory, reads first, and when the memory accepts more of them.
    let mut waiting: [VecDeque<Burst>; 2] = Default::default();
    let mut room = [0u64; 2];
    let mut responses = VecDeque::from(vec![0; MAX_RESPONSES]);
    let up = |time: Time| clock.edge_before(Time(time.0 - 1)) + 1;
    let mut free = 0;
    while done < count {
        let next =
            |w: &VecDeque<Burst>, room: u64| w.front().map_or(u64::MAX, |b| room.max(b.start + 1));
        let read = next(&waiting[0], room[0]);
        let write = next(&waiting[1], room[1].max(responses[0]));
        let end = ends.peek().map_or(u64::MAX, |e| e.0 .0);
        let issue = if open < pattern.depth {
            free.max(issued + 1)
        } else {
            u64::MAX
        };
        if issue <= end && issue <= read.min(write) {
            issued = issue;
            open += 1;
            let (addr, is_write) = source.draw();
            waiting[usize::from(is_write)].push_back(Burst {
                start: issue,
                addr,
                asked: 0,
                end: 0,
            });
        } else if end <= read.min(write) {
            let Some(Reverse((end, start, is_write))) = ends.pop() else {
                break;
            };
            sums.add(is_write, end - start);
            open -= 1;
            done += 1;
            free = end + 1;
        } else {
            let is_write = write < read;
            let cycle = read.min(write);
            let kind = usize::from(is_write);
            let Some(mut burst) = waiting[kind].pop_front() else {
                break;
            };
            let lines = PART.min(pattern.lines - burst.asked);
            let addr = burst.addr + u64::from(burst.asked) * 64;
            burst.asked += lines;
            let taken = if is_write {
                let b = dram.write(clock.edge(cycle), addr, lines);
                burst.end = up(b.safe);
                b.taken
            } else {
                let a = dram.read(clock.edge(cycle), addr, lines);
                returns.remove_until(cycle);
                burst.end = burst
                    .end
                    .max(returns.reserve(up(a.first), up(a.last), lines).1);
                a.taken
            };
            room[kind] = up(taken) + 1;
            if burst.asked < pattern.lines {
                waiting[kind].push_front(burst);
            } else {
                if is_write {
                    responses.pop_front();
                    responses.push_back(burst.end + 1);
                }
                ends.push(Reverse((burst.end, burst.start, is_write)));
            }
        }
    }
    sums.measured(ends.peek().map_or(issued, |e| e.0 .0), pattern.lines)
}

/// Bounds of the differences in bandwidth, read latency and write latency, in percent: the worst
/// pattern of a kind, and the mean.
///
/// With one direction the order within a few lines differs: `Channel` takes a ready line before an
/// older one that is ready a clock later. With both directions, `Channel` drains writes ahead of
/// waiting reads. `BurstChannel` has answered these reads, so it drains after them, and other reads
/// wait instead. Traffic that saturates the DRAM in both directions is therefore answered in
/// another order. With different rows of one bank the number of row changes differs as well. The
/// time of the whole traffic is nearly the same.
fn bounds(at: Where, mix: Mix) -> [[f64; 2]; 3] {
    match (at, mix) {
        (Where::Turns, _) => [[4.5, 1.5], [4.5, 1.5], [0.0; 2]],
        (_, Mix::Reads) => [[4.5, 1.0], [4.5, 1.0], [0.0; 2]],
        (_, Mix::Writes) => [[1.5, 1.0], [0.0; 2], [1.5, 1.0]],
        (Where::Copy(_), Mix::Half) => [[10.5, 4.0], [99.0, 9.0], [22.0, 3.5]],
        (Where::Conflicts, Mix::Half) => [[16.0, 6.0], [16.0, 7.0], [55.0, 15.0]],
        (_, Mix::Half) => [[9.0, 2.5], [17.0, 4.0], [45.0, 9.0]],
    }
}

#[test]
#[ignore = "takes seconds"]
fn bursts_take_the_time_that_their_lines_take() {
    for at in [
        Where::Sequential,
        Where::Random,
        Where::Conflicts,
        Where::Copy(128 << 20),
        Where::Copy((130 << 20) + (32 << 10)),
        Where::Turns,
    ] {
        for mix in [Mix::Reads, Mix::Writes, Mix::Half] {
            let turns = at == Where::Turns;
            let copies = matches!(at, Where::Copy(_));
            if turns && mix != Mix::Reads || copies && mix != Mix::Half {
                continue;
            }
            let bounds = bounds(at, mix);
            let mut sums = [0.0; 3];
            let mut patterns = 0;
            for lines in if turns { vec![8] } else { vec![1, 4, 8, 64] } {
                for depth in [1, 2, 4, 8, 16, 32, 64] {
                    let pattern = Pattern {
                        at,
                        mix,
                        lines,
                        depth,
                    };
                    let count = (60_000 / u64::from(lines)).max(3000);
                    let (r, a) = (reference(pattern, count), analytic(pattern, count));
                    let off = |a: f64, r: f64| if r > 0.0 { 100.0 * (a / r - 1.0) } else { 0.0 };
                    let off = [
                        off(a.gb_s, r.gb_s),
                        off(a.read_ns, r.read_ns),
                        off(a.write_ns, r.write_ns),
                    ];
                    println!(
                        "{at:?} {mix:?} {lines:2} x {depth:2}: {:6.2} GB/s {:+5.1} %, read {:7.1} \
                            ns {:+5.1} %, write {:7.1} ns {:+5.1} %",
                        r.gb_s, off[0], r.read_ns, off[1], r.write_ns, off[2]
                    );
                    for ((off, sum), [most, _]) in off.into_iter().zip(&mut sums).zip(bounds) {
                        assert!(off.abs() <= most, "{pattern:?}: {off} %");
                        *sum += off.abs();
                    }
                    patterns += 1;
                }
            }
            for (sum, [_, most]) in sums.into_iter().zip(bounds) {
                let mean = sum / f64::from(patterns);
                assert!(mean <= most, "{at:?} {mix:?}: {mean} % on average");
            }
        }
    }
}
