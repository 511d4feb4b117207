// SPDX-License-Identifier: Apache-2.0

//! `nvm_delay` and its memory compared with the RTL:
//! `cargo test --profile checked -p nearside-fast -- --include-ignored`.

use design::media::DelaySizes;
use design::Profile;
use fast::memory::{Channel, ChannelConfig, ChannelEvent, ChannelStages};
use rtl::bitstream::stderr_progress;
use rtl::delay_bench::{AddressPattern, DelayBench, DelayBenchCounters, Traffic, TrafficMix};
use sim::memctrl::MemoryModel;
use sim::{Clock, DramConfig, Media, Random, Time};
use spec::nvm_delay::{Interleave, Registers};
use spec::regs::nvm_delay::{self, command, counters};

const BYTES: u64 = 1 << 28;
const SIZES: DelaySizes = DelaySizes {
    read_slots: 64,
    write_slots: 64,
    buffer_beats: 512,
};

fn bench(memory: &MemoryModel) -> DelayBench {
    let media = Media::memory(BYTES).unwrap();
    let mut progress = stderr_progress("nvm_delay");
    let clock = Clock::default();
    DelayBench::new(
        &design::checkout().unwrap(),
        clock,
        memory,
        media,
        Some(SIZES),
        &mut progress,
    )
    .unwrap()
}

fn channel(memory: &MemoryModel) -> Channel {
    Channel::new(ChannelConfig {
        masters: 1,
        sizes: SIZES,
        clock: Clock::default(),
        memory: memory.clone(),
        stages: ChannelStages::BARE,
    })
}

/// The writes that set a profile without regions.
fn settings(r: &Registers) -> Vec<(u64, u32)> {
    let times = [
        (nvm_delay::TIMING, r.timing),
        (nvm_delay::CALIBRATION, r.calibration),
    ];
    let mut writes: Vec<(u64, u32)> = times
        .into_iter()
        .flat_map(|(base, values)| (0u64..).map(move |n| base + 4 * n).zip(values))
        .collect();
    writes.extend([
        (nvm_delay::READ_CAP, r.read_cap),
        (nvm_delay::WRITE_CAP, r.write_cap),
        (nvm_delay::CONTROL, r.control & 1),
        (nvm_delay::COMMAND, command::COMMIT.mask() as u32),
        (nvm_delay::COMMAND, command::CLEAR.mask() as u32),
    ]);
    writes
}

fn counted(channel: &mut Channel, cycle: u64) -> [DelayBenchCounters; 2] {
    let snapshot = command::SNAPSHOT.mask() as u32;
    channel.set_register(cycle, nvm_delay::COMMAND, snapshot, 0xF);
    let at = [
        (counters::READ, counters::READ_BUCKET),
        (counters::WRITE, counters::WRITE_BUCKET),
    ];
    at.map(|(words, buckets)| {
        use counters::read as of;
        let word = |offset| channel.register(nvm_delay::COUNTERS + words + offset);
        let wide = |offset| u64::from(word(offset)) | u64::from(word(offset + 4)) << 32;
        DelayBenchCounters {
            transactions: wide(of::TRANSACTIONS_LO),
            beats: wide(of::BEATS_LO),
            late: wide(of::LATE_LO),
            latency_sum: wide(of::SUM_LO),
            latency_min: word(of::MIN),
            latency_max: word(of::MAX),
            buckets: (0..counters::READ_BUCKET_COUNT)
                .map(|n| {
                    let at = buckets + counters::READ_BUCKET_STRIDE * n;
                    channel.register(nvm_delay::COUNTERS + at)
                })
                .collect(),
        }
    })
}

/// Sends the traffic of `DelayBench::run` to the model from cycle `start` on; returns the cycles
/// that it takes.
fn run(channel: &mut Channel, traffic: &Traffic, start: u64) -> u64 {
    let t = *traffic;
    let span = (u64::from(t.beats) * 64).next_power_of_two();
    let places = BYTES / span;
    let mut random = Random::new(t.seed);
    let mut events = Vec::new();
    let (mut issued, mut done, mut free, mut next) = (0, 0, start, start);
    let mut end = start;
    while done < t.count {
        let issue = if issued < t.count && issued - done < t.outstanding {
            next.max(free)
        } else {
            u64::MAX
        };
        let event = channel.next_event().unwrap_or(u64::MAX);
        if event < issue {
            channel.advance(event, &mut events);
            for event in events.drain(..) {
                let (last, cycle) = match event {
                    ChannelEvent::Read { end, cycle, .. } => (end, cycle),
                    ChannelEvent::Write { cycle, .. } => (true, cycle),
                };
                if last {
                    done += 1;
                    (free, end) = (cycle + 1, cycle);
                }
            }
            continue;
        }
        next = issue + 1;
        if t.gap > 0 {
            next = issue + t.gap + random.below(t.gap + 1);
        }
        let write = match t.mix {
            TrafficMix::Reads => false,
            TrafficMix::Writes => true,
            TrafficMix::Both => random.below(2) == 1,
        };
        let place = match t.addresses {
            AddressPattern::Random => random.below(places),
            AddressPattern::Sequential => issued as u64 % places,
        };
        let id = (issued % usize::from(t.ids)) as u16;
        let (addr, bytes) = (place * span, t.beats * 64);
        if write {
            channel.write(issue, 0, id, addr, bytes, issued as u64);
        } else {
            channel.read(issue, 0, id, addr, bytes, issued as u64);
        }
        issued += 1;
    }
    end - start
}

struct Row {
    what: String,
    /// Deviation of bandwidth and of mean read and write latency from the RTL, in percent.
    off: [f64; 3],
    late: [[u64; 2]; 2],
}

impl Row {
    fn check(&self, traffic: &Traffic, most: [f64; 3]) {
        for (off, most) in self.off.iter().zip(most) {
            assert!(
                off.abs() <= most,
                "{}: {:?} % of {traffic:?}",
                self.what,
                self.off
            );
        }
    }
}

/// Runs both models with the same traffic.
fn compare(
    bench: &mut DelayBench,
    memory: &MemoryModel,
    registers: &Registers,
    t: &Traffic,
) -> Row {
    for (offset, value) in settings(registers) {
        bench.write(offset, value).unwrap();
    }
    let first = bench.edges();
    let samples = bench.run(t, &mut |_, _| true).unwrap();
    let begin = samples.iter().map(|s| s.start).min().unwrap_or(first);
    let end = samples.iter().map(|s| s.start + u64::from(s.latency()));
    let cycles = end.max().unwrap_or(0) - begin;
    let expected = bench.counters().unwrap();
    let mut model = channel(memory);
    for (offset, value) in settings(registers) {
        model.set_register(100, offset, value, 0xF);
    }
    let taken = run(&mut model, t, 10_000);
    let actual = counted(&mut model, taken + 20_000);
    let mean = |c: &DelayBenchCounters| c.latency_sum as f64 / c.transactions.max(1) as f64;
    let off = |a: f64, b: f64| if b > 0.0 { 100.0 * (a / b - 1.0) } else { 0.0 };
    for (e, g) in expected.iter().zip(&actual) {
        assert_eq!((e.transactions, e.beats), (g.transactions, g.beats));
        assert_eq!(
            g.buckets.iter().map(|&n| u64::from(n)).sum::<u64>(),
            g.transactions
        );
    }
    let row = Row {
        what: format!(
            "{:?} {:?} {:2} beats x {:3}",
            t.addresses, t.mix, t.beats, t.outstanding
        ),
        off: [
            off(cycles as f64, taken as f64),
            off(mean(&actual[0]), mean(&expected[0])),
            off(mean(&actual[1]), mean(&expected[1])),
        ],
        late: [0, 1].map(|d: usize| [expected[d].late, actual[d].late]),
    };
    println!(
        "{:36} {:6.2} GB/s {:+5.1} %, read {:8.1} {:+5.1} % ({}..{}, {}..{}), write {:8.1} {:+5.1} \
         % ({}..{}, {}..{}), late {:?}",
        row.what,
        t.count as f64 * f64::from(t.beats) * 16.0 / cycles as f64,
        row.off[0],
        mean(&expected[0]),
        row.off[1],
        expected[0].latency_min as i32,
        expected[0].latency_max,
        actual[0].latency_min as i32,
        actual[0].latency_max,
        mean(&expected[1]),
        row.off[2],
        expected[1].latency_min as i32,
        expected[1].latency_max,
        actual[1].latency_min as i32,
        actual[1].latency_max,
        row.late,
    );
    row
}

fn registers(profile: &str) -> Registers {
    let profile = Profile::find(profile).unwrap();
    let interleave = Interleave {
        channels: 2,
        granule: 4096,
    };
    profile
        .registers(Clock::default(), interleave)
        .unwrap()
        .swap_remove(0)
}

/// Allowed deviation of bandwidth, read latency and write latency, in percent. It is larger where
/// the DRAM is nearly saturated, with both directions: see `crates/sim/tests/bursts.rs`.
fn bounds(mix: TrafficMix) -> [f64; 3] {
    match mix {
        TrafficMix::Reads => [2.0, 2.0, 0.0],
        TrafficMix::Writes => [2.0, 0.0, 3.0],
        TrafficMix::Both => [9.0, 14.0, 47.0],
    }
}

#[test]
#[ignore = "needs the RTL: minutes"]
fn delay_profiles_take_the_time_of_the_rtl() {
    let memory = MemoryModel::Ddr4(DramConfig::default());
    let mut bench = bench(&memory);
    let mut worst = [0.0f64; 3];
    for profile in ["optane-dcpmm", "pcm", "reram", "stt-mram", "dram", "nand"] {
        println!("{profile}");
        let registers = registers(profile);
        let nand = profile == "nand";
        let mut patterns = vec![];
        for mix in [TrafficMix::Reads, TrafficMix::Writes, TrafficMix::Both] {
            for (addresses, beats, outstanding, count) in [
                (AddressPattern::Random, 1, 1, 1000),
                (AddressPattern::Random, 1, 16, 4000),
                (AddressPattern::Random, 1, 64, 6000),
                (AddressPattern::Sequential, 1, 16, 4000),
                (AddressPattern::Sequential, 8, 16, 2000),
                (AddressPattern::Random, 64, 1, 200),
                (AddressPattern::Random, 64, 8, 600),
                (AddressPattern::Sequential, 64, 64, 600),
            ] {
                let count = match (nand, mix) {
                    (true, TrafficMix::Reads) => count.min(20 * outstanding),
                    (true, _) => count.min(6 * outstanding),
                    _ => count,
                };
                patterns.push(Traffic {
                    mix,
                    addresses,
                    beats,
                    count,
                    outstanding,
                    ids: 64,
                    ..Traffic::default()
                });
            }
        }
        for traffic in &patterns {
            let row = compare(&mut bench, &memory, &registers, traffic);
            row.check(traffic, bounds(traffic.mix));
            for (worst, off) in worst.iter_mut().zip(row.off) {
                *worst = worst.max(off.abs());
            }
        }
    }
    println!("worst: {worst:?} %");
}

#[test]
#[ignore = "needs the RTL: minutes"]
fn delay_without_dram_matches_every_cycle_of_the_rtl() {
    for ns in [0, 40, 200] {
        let memory = MemoryModel::Fixed(Time::ns(ns));
        let mut bench = bench(&memory);
        for (base, beat, calibration) in [
            (0, 0, [0; 4]),
            (3 << 12, 0, [0; 4]),
            (12_345, 0, [0; 4]),
            (61 << 12, 0, [0; 4]),
            (200_123, 0, [0; 4]),
            (100_000, 10_000, [0; 4]),
            (500_123, 0, [26_624, 0, 17_321, 0]),
            (500_000, 20_000, [17_321, 10_000, 26_624, 5_000]),
            // Less than the calibration.
            (30_000, 40_960, [30_001, 0, u32::MAX, 0]),
            (40_960, 3, [0, 4, 0, u32::MAX]),
        ] {
            let registers = Registers {
                control: 1,
                timing: [base, beat, base, beat],
                calibration,
                ..Registers::default()
            };
            for mix in [TrafficMix::Reads, TrafficMix::Writes] {
                for beats in [1, 4, 8, 64] {
                    let traffic = Traffic {
                        mix,
                        beats,
                        count: 50,
                        ..Traffic::default()
                    };
                    print!("{ns} ns, {base} + {beat} - {calibration:?}: ");
                    let row = compare(&mut bench, &memory, &registers, &traffic);
                    row.check(&traffic, [0.1; 3]);
                }
            }
        }
        let off = Registers::default();
        for mix in [TrafficMix::Reads, TrafficMix::Writes] {
            for beats in [1, 4, 8, 64] {
                let traffic = Traffic {
                    mix,
                    beats,
                    count: 50,
                    ..Traffic::default()
                };
                print!("{ns} ns, off: ");
                compare(&mut bench, &memory, &off, &traffic).check(&traffic, [0.1; 3]);
            }
        }
    }
}

#[test]
#[ignore = "needs the RTL: a minute"]
fn delay_registers_read_as_those_of_the_rtl() {
    let memory = MemoryModel::Fixed(Time::ns(40));
    let mut bench = bench(&memory);
    let mut model = channel(&memory);
    let mut random = Random::new(5);
    let traffic = Traffic {
        count: 40,
        mix: TrafficMix::Both,
        beats: 3,
        ..Traffic::default()
    };
    for round in 0..20 {
        for _ in 0..60 {
            let offset = 4 * random.below(0x400);
            // Times are short, so that committed values do not take for ever.
            let value = (random.next() as u32) & 0x1_FFFF;
            if offset != nvm_delay::COMMAND {
                bench.write(offset, value).unwrap();
                model.set_register(0, offset, value, 0xF);
            }
        }
        for bits in [1, random.below(8) as u32] {
            bench.write(nvm_delay::COMMAND, bits).unwrap();
            model.set_register(0, nvm_delay::COMMAND, bits, 0xF);
        }
        if round % 4 == 3 {
            for (offset, value) in settings(&registers("optane-dcpmm")) {
                bench.write(offset, value).unwrap();
                model.set_register(0, offset, value, 0xF);
            }
            // A command waits for a clear of the counters in progress, which the model does not
            // have.
            bench.idle(1000).unwrap();
            bench.run(&traffic, &mut |_, _| true).unwrap();
            run(&mut model, &traffic, 1_000_000 * (round + 1));
            let bits = (command::SNAPSHOT.mask() | command::CLEAR.mask()) as u32;
            bench.write(nvm_delay::COMMAND, bits).unwrap();
            model.set_register(0, nvm_delay::COMMAND, bits, 0xF);
        }
        for offset in (0..0x1000).step_by(4) {
            let expected = bench.read(offset).unwrap();
            assert_eq!(
                model.register(offset),
                expected,
                "{offset:#x} in round {round}"
            );
        }
    }
}
