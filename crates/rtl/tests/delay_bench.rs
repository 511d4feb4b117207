//! The accuracy bench, and with it what nvm_delay promises.

mod common;

use rtl::bitstream::{repo_root, stderr_progress};
use rtl::delay_bench::{delay_bench, Addresses, DelayBench, Mix, Targets, Traffic};
use rtl::Memory;
use sim::{DramConfig, Media, Time};

fn bench(memory: Memory) -> DelayBench {
    let media = Media::memory(1 << 26).unwrap();
    DelayBench::new(
        &repo_root().unwrap(),
        sim::Clock::default(),
        &memory,
        media,
        &mut stderr_progress("nvm_delay"),
    )
    .unwrap()
}

fn mean(latencies: impl Iterator<Item = u32>) -> f64 {
    let (sum, count) = latencies.fold((0u64, 0u64), |(sum, n), l| (sum + u64::from(l), n + 1));
    sum as f64 / count as f64
}

#[test]
fn random_accesses_meet_the_optane_targets() {
    let mut bench = bench(Memory::Ddr4(DramConfig::default()));
    let targets = Targets {
        read_base: 305.0 / 4.0,
        write_base: 94.0 / 4.0,
        ..Targets::default()
    };
    for (mix, target) in [
        (Mix::Reads, targets.read_base),
        (Mix::Writes, targets.write_base),
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
        let direction = usize::from(mix == Mix::Writes);
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
fn bursts_are_delayed_beat_by_beat() {
    let mut bench = bench(Memory::Fixed(Time::ns(40)));
    let targets = Targets {
        read_base: 100.0,
        read_beat: 2.5,
        ..Targets::default()
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
fn reads_wait_in_parallel() {
    let mut bench = bench(Memory::Fixed(Time::ns(40)));
    let targets = Targets {
        read_base: 200.0,
        ..Targets::default()
    };
    let traffic = Traffic {
        count: 8,
        outstanding: 8,
        addresses: Addresses::Sequential,
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
fn mixed_traffic_keeps_its_data() {
    let mut bench = bench(Memory::Ddr4(DramConfig::default()));
    let targets = Targets {
        read_base: 30.0,
        read_beat: 1.0,
        write_base: 20.0,
        write_beat: 1.5,
    };
    let traffic = Traffic {
        mix: Mix::Both,
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
                mix: Mix::Reads,
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
            mix: Mix::Both,
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
fn a_memory_that_does_not_answer_is_a_hang() {
    let mut bench = bench(Memory::Fixed(Time::ms(20)));
    let traffic = Traffic {
        mix: Mix::Reads,
        count: 1,
        ..Traffic::default()
    };
    let error = bench.run(&traffic, &mut |_, _| true).unwrap_err();
    assert!(
        matches!(&error, sim::Fault::Hang(text) if text.contains("no handshake")),
        "{error:?}"
    );
}
