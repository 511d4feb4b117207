// SPDX-License-Identifier: Apache-2.0

//! Accuracy of `nvm_delay`: the latencies, bandwidths and counters that it has to keep.

mod common;

use design::media::DelaySizes;
use design::Profile;
use rtl::bitstream::stderr_progress;
use rtl::delay_bench::{
    delay_bench, AddressPattern, DelayBench, TargetLatencies, Traffic, TrafficMix,
};
use rtl::MemoryModel;
use sim::{DramConfig, Media, Time};
use spec::nvm_delay::Interleave;

fn bench(memory: MemoryModel) -> DelayBench {
    sized(memory, None)
}

fn sized(memory: MemoryModel, sizes: Option<DelaySizes>) -> DelayBench {
    let media = Media::memory(1 << 26).unwrap();
    DelayBench::new(
        &design::checkout().unwrap(),
        sim::Clock::default(),
        &memory,
        media,
        sizes,
        &mut stderr_progress("nvm_delay"),
    )
    .unwrap()
}

fn mean(latencies: impl Iterator<Item = u32>) -> f64 {
    let (sum, count) = latencies.fold((0u64, 0u64), |(sum, n), l| (sum + u64::from(l), n + 1));
    sum as f64 / count as f64
}

#[test]
fn delay_random_accesses_meet_the_optane_targets() {
    let mut bench = bench(MemoryModel::Ddr4(DramConfig::default()));
    let targets = TargetLatencies {
        read_base: 305.0 / 4.0,
        write_base: 94.0 / 4.0,
        ..TargetLatencies::default()
    };
    for (mix, target) in [
        (TrafficMix::Reads, targets.read_base),
        (TrafficMix::Writes, targets.write_base),
    ] {
        let traffic = Traffic {
            mix,
            count: 2000,
            ids: 4,
            ..Traffic::default()
        };
        let (samples, counters) =
            delay_bench(&mut bench, &targets, &traffic, &mut |_, _| true).unwrap();
        let mean = mean(samples.iter().map(|s| s.latency()));
        let direction = usize::from(mix == TrafficMix::Writes);
        println!(
            "{mix:?}: mean {mean:.3} target {target} late {}",
            counters[direction].late
        );
        assert!(
            (mean / target - 1.0).abs() < 0.001,
            "{mix:?}: mean {mean} cycles, target {target}"
        );
        assert!(
            samples
                .iter()
                .all(|s| (f64::from(s.latency()) - target).abs() <= 1.0),
            "{mix:?}"
        );
        // The emulator counts the same transactions, at the same ports.
        assert_eq!(counters[direction].transactions, 2000);
        assert_eq!(
            counters[direction].latency_sum,
            samples.iter().map(|s| u64::from(s.latency())).sum::<u64>()
        );
        assert_eq!(counters[direction].buckets.iter().sum::<u32>(), 2000);
        assert_eq!(counters[1 - direction].transactions, 0);
    }
}

#[test]
fn delay_bursts_beat_by_beat() {
    let mut bench = bench(MemoryModel::Fixed(Time::ns(40)));
    let targets = TargetLatencies {
        read_base: 100.0,
        read_beat: 2.5,
        ..TargetLatencies::default()
    };
    for beats in [1, 7, 64] {
        let traffic = Traffic {
            beats,
            count: 50,
            ..Traffic::default()
        };
        let (samples, _) = delay_bench(&mut bench, &targets, &traffic, &mut |_, _| true).unwrap();
        for beat in 0..beats as usize {
            let target = 100.0 + 2.5 * (beat + 1) as f64;
            assert!(
                samples
                    .iter()
                    .all(|s| (f64::from(s.latencies[beat]) - target).abs() <= 1.0),
                "beat {beat}"
            );
        }
    }
}

#[test]
fn delay_reads_in_parallel() {
    let mut bench = bench(MemoryModel::Fixed(Time::ns(40)));
    let targets = TargetLatencies {
        read_base: 200.0,
        ..TargetLatencies::default()
    };
    let traffic = Traffic {
        count: 8,
        outstanding: 8,
        addresses: AddressPattern::Sequential,
        ..Traffic::default()
    };
    let (samples, _) = delay_bench(&mut bench, &targets, &traffic, &mut |_, _| true).unwrap();
    let end = samples
        .iter()
        .map(|s| s.start + u64::from(s.latency()))
        .max()
        .unwrap();
    assert!(
        end - samples[0].start <= 220,
        "{} cycles",
        end - samples[0].start
    );
}

#[test]
fn delay_mixed_traffic_keeps_its_data() {
    let mut bench = bench(MemoryModel::Ddr4(DramConfig::default()));
    let targets = TargetLatencies {
        read_base: 30.0,
        read_beat: 1.0,
        write_base: 20.0,
        write_beat: 1.5,
    };
    let traffic = Traffic {
        mix: TrafficMix::Both,
        beats: 16,
        count: 1000,
        outstanding: 40,
        ids: 7,
        ..Traffic::default()
    };
    let (samples, counters) =
        delay_bench(&mut bench, &targets, &traffic, &mut |_, _| true).unwrap();
    assert_eq!(samples.len(), 1000);
    assert_eq!(counters[0].transactions + counters[1].transactions, 1000);
    assert_eq!(counters[0].beats + counters[1].beats, 16_000);
    let again = bench
        .run(
            &Traffic {
                count: 300,
                mix: TrafficMix::Reads,
                ..traffic
            },
            &mut |_, _| true,
        )
        .unwrap();
    assert_eq!(again.len(), 300);
    let stopped = bench.run(&traffic, &mut |_, _| false).unwrap();
    assert!(stopped.len() < 1000, "what is sent is answered");
    bench.off().unwrap();
    let (small, wide) = (
        Traffic {
            size: 2,
            beats: 16,
            count: 200,
            mix: TrafficMix::Both,
            ..traffic
        },
        Traffic {
            size: 4,
            beats: 256,
            count: 50,
            ..traffic
        },
    );
    bench.run(&small, &mut |_, _| true).unwrap();
    bench.run(&wide, &mut |_, _| true).unwrap();
}

#[test]
#[ignore = "takes seconds"]
fn delay_memory_without_answer_is_a_hang() {
    let mut bench = bench(MemoryModel::Fixed(Time::ms(20)));
    let traffic = Traffic {
        mix: TrafficMix::Reads,
        count: 1,
        ..Traffic::default()
    };
    let error = bench.run(&traffic, &mut |_, _| true).unwrap_err();
    assert!(
        matches!(&error, sim::Fault::Hang(text) if text.contains("no handshake")),
        "{error:?}"
    );
}

/// Bandwidth in GB/s of one of two channels with this profile, both directions: `count` bursts, as
/// many in flight as the channel takes.
fn bandwidth(
    bench: &mut DelayBench,
    profile: &Profile,
    mix: TrafficMix,
    beats: u32,
    count: usize,
) -> f64 {
    let clock = sim::Clock::default();
    let turns = Interleave {
        channels: 2,
        granule: 4096,
    };
    let registers = profile.registers(clock, turns).unwrap();
    bench.set_profile(&registers[0]).unwrap();
    let traffic = Traffic {
        mix,
        addresses: AddressPattern::Sequential,
        beats,
        count,
        outstanding: 256,
        ids: 64,
        ..Traffic::default()
    };
    let samples = bench.run(&traffic, &mut |_, _| true).unwrap();
    let mut ends: Vec<u64> = samples
        .iter()
        .map(|s| s.start + u64::from(s.latency()))
        .collect();
    ends.sort_unstable();
    // Measured from the first burst that was issued after another completed, until the last one.
    let (first, last) = (count / 3, count - 1);
    let bytes = 64 * u64::from(beats) * (last - first) as u64;
    bytes as f64 / clock.ns((ends[last] - ends[first]) as f64)
}

#[test]
#[ignore = "takes long on the RTL"]
fn delay_sized_by_its_profile_reaches_memory_bandwidth() {
    let profile = |name: &str| Profile::find(name).unwrap();
    let ddr = || MemoryModel::Ddr4(DramConfig::default());
    let of = |name: &str| {
        let profile = profile(name);
        let sizes = profile.sizes(sim::Clock::default(), 2);
        (sized(ddr(), Some(sizes)), profile)
    };
    // Half of 3 GB/s with reads of 4 KiB. With reads of 512 bytes, 128 in flight bring twice the
    // bandwidth of 64.
    let (mut bench, nand) = of("nand");
    let reached = bandwidth(&mut bench, &nand, TrafficMix::Reads, 64, 400);
    println!("nand reads {reached:.3} GB/s");
    assert!(
        (0.95 * 1.5..=1.5 * 1.01).contains(&reached),
        "nand reads: {reached} GB/s"
    );
    let short = bandwidth(&mut bench, &nand, TrafficMix::Reads, 8, 1500);
    // Writes take 701.4 us each: 256 of them are 1.495 GB/s.
    let written = bandwidth(&mut bench, &nand, TrafficMix::Writes, 64, 1000);
    println!("nand writes {written:.3} GB/s");
    assert!(written >= 0.95 * 1.5, "nand writes: {written} GB/s");
    let default = DelaySizes {
        read_slots: 64,
        write_slots: 64,
        buffer_beats: 512,
    };
    let fewer = bandwidth(
        &mut sized(ddr(), Some(default)),
        &nand,
        TrafficMix::Reads,
        8,
        1500,
    );
    println!("nand reads of 512 bytes {short:.3} GB/s, with 64 slots {fewer:.3}");
    assert!(
        short >= 1.9 * fewer,
        "nand reads of 512 bytes: {short} and {fewer} GB/s"
    );

    for name in ["pcm", "reram", "stt-mram", "optane-dcpmm"] {
        let (mut bench, profile) = of(name);
        for (mix, timing) in [
            (TrafficMix::Reads, &profile.read),
            (TrafficMix::Writes, &profile.write),
        ] {
            let cap = timing.cap_gb_s / 2.0;
            // A channel carries 16 GB/s; the DRAM may be slower.
            if cap < 16.0 {
                let reached = bandwidth(&mut bench, &profile, mix, 64, 400);
                println!("{name} {mix:?} {reached:.3} of {cap} GB/s");
                assert!(
                    (0.95 * cap..=1.01 * cap).contains(&reached),
                    "{name} {mix:?}: {reached} of {cap} GB/s"
                );
            }
        }
    }
}
