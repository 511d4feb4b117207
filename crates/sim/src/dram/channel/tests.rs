// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::random::Random;

/// A command on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BusCommand {
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
    command: BusCommand,
    bank: usize,
}

impl Logged {
    pub fn new(choice: ChosenCommand, mode: usize) -> Logged {
        let command = match choice.command {
            Command::Activate => BusCommand::Act,
            Command::Precharge => BusCommand::Pre,
            Command::Column if mode == READ => BusCommand::Rd,
            Command::Column => BusCommand::Wr,
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
        [
            logged(precharge, BusCommand::PreAll),
            logged(refresh, BusCommand::Ref),
        ]
    }
}

/// The least clocks between command `a` and a later `b`, from the standard's tables, not from the
/// controller's state.
fn least_gap(t: &Timing, a: Logged, b: Logged) -> u64 {
    use BusCommand::{Act, Pre, PreAll, Rd, Ref, Wr};
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

/// Checks every pair of commands that constrain each other, the state of banks, and the refresh
/// rate.
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
            // The PREA of a refresh with all banks closed is not sent and constrains nothing.
            if (a.command, b.command) == (BusCommand::PreAll, BusCommand::Ref) {
                assert!(b.at >= a.at);
                continue;
            }
            let gap = least_gap(t, a, b);
            assert!(
                b.at >= a.at + gap || b.command == BusCommand::PreAll && !open[a.bank],
                "{a:?} {b:?}: {gap} clocks"
            );
        }
        match b.command {
            BusCommand::Act => {
                assert!(
                    !std::mem::replace(&mut open[b.bank], true),
                    "{b:?}: the bank is open"
                );
                let acts: Vec<_> = log[..=i]
                    .iter()
                    .rev()
                    .filter(|a| a.command == BusCommand::Act)
                    .take(5)
                    .collect();
                assert!(
                    acts.len() < 5 || acts[0].at >= acts[4].at + t.faw,
                    "{b:?}: five within tFAW"
                );
            }
            BusCommand::Rd | BusCommand::Wr => assert!(open[b.bank], "{b:?}: the bank is closed"),
            BusCommand::Pre => assert!(
                std::mem::take(&mut open[b.bank]),
                "{b:?}: the bank is closed"
            ),
            BusCommand::PreAll => {
                let any = open.contains(&true);
                open = [false; BANKS];
                assert!(
                    !any || log[i + 1].at >= b.at + t.rp,
                    "{b:?}: REF within tRP"
                );
            }
            BusCommand::Ref => {
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
fn dram_commands_keep_all_jedec_gaps() {
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

/// A configuration without refresh and fixed latencies, to isolate the arithmetic.
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

/// Pushes requests as soon as they are accepted, advancing to events; returns the completions in
/// order.
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

/// The time at which a read at `now` has its data.
fn read(channel: &mut Channel, now: Time, addr: u64) -> Time {
    drive(channel, now, &[(addr, false)])[0].time
}

#[test]
fn dram_latencies_of_miss_hit_conflict_are_jedec_sums() {
    let mut channel = Channel::new(&bare());
    let t = channel.timing().clone();
    // A request is seen in the clock after the one in which it arrived.
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
    // Another row at once: the open row has to stay open for tRAS first.
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
fn dram_least_latencies_match_the_configuration() {
    for data_rate_mts in [2133, 2400, 2666, 3200] {
        let config = DramConfig {
            data_rate_mts,
            refresh_mode: 0,
            ..DramConfig::default()
        };
        let clock = 2000.0 / f64::from(data_rate_mts);
        let mut least = [f64::INFINITY; 2];
        // All phases of the DRAM's clock, each in a bank of an idle channel: first without an open
        // row, then with it.
        for phase in 0..40 {
            let mut channel = Channel::new(&config);
            for (place, column) in [(1, 0), (0, 3)] {
                let start = Time::ns(400 * (3 - place as u64)) + Time(phase * 41);
                let took = read(&mut channel, start, address(0, 0, 0, column)) - start;
                least[place] = least[place].min(took.as_ns());
            }
        }
        for (found, expected) in least.iter().zip(config.read_ns()) {
            assert!(
                (expected..expected + clock).contains(found),
                "{found}, expected {expected}"
            );
        }
    }
}

#[test]
fn dram_fixed_latencies_add() {
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
fn dram_column_commands_keep_tccd() {
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
fn dram_write_to_read_turnaround_is_cwl_burst_twtr() {
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
        // By the next clock the write was issued, so the read finds the bus turned.
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
fn dram_read_to_write_turnaround_leaves_two_clocks() {
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
    assert_eq!((rd.command, wr.command), (BusCommand::Rd, BusCommand::Wr));
    assert_eq!(wr.at + t.cwl, rd.at + t.cl + t.burst + 2);
}

#[test]
fn dram_activates_keep_trrd_and_tfaw() {
    // One read per bank: activates are the bottleneck.
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
    // Random rows in the long run: at most four lines per tFAW.
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
fn dram_streams_reach_90_percent_of_peak_with_refresh() {
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
    // Without refresh almost nothing is lost.
    let share = stream(&bare(), false);
    assert!(share > 0.99, "{share}");
}

#[test]
fn dram_worst_read_waits_for_a_full_refresh() {
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
    // At worst it arrives with the refresh, which first has to close the row.
    let limit = t.time(1 + t.rp + t.rfc + t.rcd + t.cl + t.burst);
    assert!(worst <= limit, "{worst} against {limit}");
    assert!(
        worst >= t.time(t.rfc + t.rcd + t.cl + t.burst - 20),
        "{worst} against {limit}"
    );
    assert!(best <= t.time(1 + t.cl + t.burst));
    // Refreshes between the reads have ended when the next read arrives, so only reads that arrive
    // during one wait.
    let during = 20_000 * (t.rfc + t.rp + 2) / t.refi;
    assert!(
        slow <= during,
        "{slow} reads waited, {during} can have met a refresh"
    );
    // All refreshes took place, including those between the reads.
    let expected = 20_000 * 1_003_000 / t.time(t.refi).0;
    assert!(channel.stats().refreshes.abs_diff(expected) <= 1);
}

#[test]
fn dram_reads_of_buffered_writes_are_forwarded() {
    let mut channel = Channel::new(&DramConfig::default());
    let requests: Vec<_> = (0..8)
        .map(|i| (i * 64, true))
        .chain([(3 * 64 + 7, false)])
        .collect();
    let out = drive(&mut channel, Time::us(1), &requests);
    let last = out.iter().find(|c| !c.is_write).unwrap();
    assert_eq!((last.tag, last.time), (8, Time::us(1) + Time::ns(16)));
    assert_eq!((channel.stats().forwarded, channel.stats().reads), (1, 0));
    // After the drain the data comes from the DRAM.
    drive(&mut channel, Time::us(5), &[(3 * 64, false)]);
    assert_eq!((channel.stats().writes, channel.stats().reads), (8, 1));
}

#[test]
fn dram_overdue_request_precedes_row_hits() {
    // A conflicting read after an endless stream of row hits in its bank.
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
fn dram_queues_refuse_when_full_and_drain() {
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
fn dram_random_mixes_complete_once_and_repeat() {
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
