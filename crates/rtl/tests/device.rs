// SPDX-License-Identifier: Apache-2.0

//! The RTL model as a [`sim::Device`], on the fixture device.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::Bench;
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, InitialValues, PowerUpRegisters, RtlDevice, TraceWindow};
use sim::{Bar, Clock, Device, Fault, Media, Output, Random, Time};

const MEDIA: u64 = 1 << 20;
const CONTROL: u64 = 0x08;

fn config() -> DeviceConfig {
    DeviceConfig {
        top: "rtl_fixture".to_string(),
        filelists: vec![PathBuf::from("hw/top/sim/rtl_fixture.f")],
        channels: 1,
        hang_cycles: 5000,
        // Most registers of this block have no reset, and tests write those that they need.
        registers: PowerUpRegisters::Always(InitialValues::Zeros),
        ..DeviceConfig::new().unwrap()
    }
}

fn bench_with(config: DeviceConfig, media: Media) -> Bench {
    let device = RtlDevice::build(config, media, &mut stderr_progress("rtl_fixture"));
    Bench::of(Box::new(device.unwrap()))
}

fn bench() -> Bench {
    bench_with(config(), Media::memory(MEDIA).unwrap())
}

fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn registers_in_all_sizes() {
    let mut b = bench();
    assert_eq!(b.read32(Bar::Control, 0), 0x4649_5854);
    b.post(Bar::Nvme, 0x10, &0x1122_3344_5566_7788u64.to_le_bytes());
    assert_eq!(
        b.read(Bar::Nvme, 0x10, 8).unwrap(),
        0x1122_3344_5566_7788u64.to_le_bytes()
    );
    assert_eq!(b.read32(Bar::Nvme, 0x10), 0x5566_7788);
    assert_eq!(
        b.read(Bar::Nvme, 0x12, 4).unwrap(),
        [0x66, 0x55, 0x44, 0x33],
        "across words"
    );
    assert_eq!(b.read(Bar::Nvme, 0x8000, 4), None, "nothing is there");
    assert_eq!(b.read(Bar::Nvme, 0x1_0000, 4), None, "beyond the BAR");
    b.write32(Bar::Nvme, 0x8000, 1);
    b.run(Time::us(1));
    let lost = b
        .device
        .counters()
        .into_iter()
        .find(|c| c.name == "mmio.lost_writes")
        .unwrap();
    assert_eq!(lost.value, 1.0);
}

#[test]
fn window_matches_a_shadow() {
    let mut b = bench();
    let mut random = Random::new(7);
    let mut shadow = vec![0u8; 1 << 14];
    for _ in 0..400 {
        let len = if random.below(4) == 0 {
            1 + random.below(4096)
        } else {
            1 + random.below(64)
        };
        let page = random.below(shadow.len() as u64 / 4096) * 4096;
        let offset = page + random.below(4096 - len + 1);
        let range = offset as usize..(offset + len) as usize;
        if random.below(2) == 0 {
            let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
            shadow[range].copy_from_slice(&data);
            b.post(Bar::Pm, offset, &data);
        } else {
            let data = b.read(Bar::Pm, offset, len as u32).unwrap();
            assert_eq!(data, shadow[range], "offset {offset:#x}, {len} bytes");
        }
    }
    b.run(Time::us(10));
    let mut stored = vec![0; shadow.len()];
    b.device.media().read(0, &mut stored);
    assert!(stored == shadow);
    assert_eq!(b.read(Bar::Pm, MEDIA, 64), None, "beyond the media");
    assert!(b.read(Bar::Pm, MEDIA - 64, 64).is_some());
}

fn copy(b: &mut Bench, from: u64, to: u64, beats: u32) {
    let before = b.read32(Bar::Control, 0x0C);
    for (offset, value) in [
        (0x10, from as u32),
        (0x14, (from >> 32) as u32),
        (0x18, to as u32),
        (0x1C, (to >> 32) as u32),
        (0x20, beats - 1),
    ] {
        b.write32(Bar::Control, offset, value);
    }
    b.write32(Bar::Control, CONTROL, 1);
    b.run(Time::us(5));
    assert_eq!(b.read32(Bar::Control, 0x0C), before + 1);
}

#[test]
fn dma_copies_in_host_memory() {
    let mut b = bench();
    let mut random = Random::new(3);
    for byte in &mut b.host.memory {
        *byte = random.next() as u8;
    }
    for beats in [1, 2, 63, 64] {
        copy(&mut b, 0x4000, 0x8000, beats);
        let bytes = beats as usize * 64;
        assert!(b.host.memory[0x4000..0x4000 + bytes] == b.host.memory[0x8000..0x8000 + bytes]);
        assert!(
            b.host.memory[0x4000 + bytes..0x5000] != b.host.memory[0x8000 + bytes..0x9000]
                || beats == 64
        );
        assert_eq!(b.read32(Bar::Control, 0x28), 0);
    }
    b.host.bad_from = 0x4000;
    copy(&mut b, 0x4000, 0x8000, 2);
    assert_eq!(b.read32(Bar::Control, 0x28), 2, "a failed read is SLVERR");
}

#[test]
fn dma_copies_reach_the_end_of_the_address_space() {
    const LAST_PAGE: u64 = u64::MAX - 4095;
    let mut b = bench();
    for beats in [1, 2, 64] {
        let start = LAST_PAGE + 64 * u64::from(64 - beats);
        b.host.log.clear();
        copy(&mut b, 0x4000, start, beats);
        let mut next = Some(start);
        for (_, _, addr, data) in b.host.log.iter().filter(|e| e.1 == "write") {
            assert_eq!(Some(*addr), next);
            next = addr.checked_add(data.len() as u64);
        }
        assert_eq!(next, None, "up to the last byte");
        copy(&mut b, start, 0x8000, beats);
        let read = |e: &&(Time, &str, u64, Vec<u8>)| e.1 == "read" && e.2 == start;
        assert_eq!(b.host.log.iter().filter(read).count(), 1);
        assert_eq!(b.read32(Bar::Control, 0x28), 2, "a failed read is SLVERR");
    }
}

#[test]
fn hang_on_a_lost_answer() {
    // The device has nothing else to do, or never rests.
    for work in [false, true] {
        let slow = DeviceConfig {
            clock: Clock::from_mhz(1).unwrap(),
            hang_cycles: u64::MAX,
            ..config()
        };
        let mut b = bench_with(slow, Media::memory(MEDIA).unwrap());
        b.host.lost_from = 0x4000;
        b.write32(Bar::Control, 0x10, 0x4000);
        b.write32(Bar::Control, 0x20, 0);
        b.write32(Bar::Control, CONTROL, 1);
        let mut outcome = Ok(());
        while outcome.is_ok() && b.device.now() < Time::ms(24) {
            if work {
                b.post(Bar::Pm, 0x100, &[8; 64]);
            }
            outcome = b.try_run(Time::us(15));
        }
        let Err(Fault::Hang(dump)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            dump.contains("read of 64 bytes at 0x4000") && dump.contains("answer"),
            "{dump}"
        );
        assert!(b.device.now() >= Time::ms(20), "{}", b.device.now());
    }
}

/// The link is asked for more all the time, and accepts something now and then.
#[test]
fn hang_is_not_reported_on_a_busy_link() {
    let slow = DeviceConfig {
        clock: Clock::from_mhz(1).unwrap(),
        hang_cycles: u64::MAX,
        ..config()
    };
    let mut b = bench_with(slow, Media::memory(MEDIA).unwrap());
    b.host.write_gap = Time::ms(6);
    b.write32(Bar::Control, 0x10, 0x4000);
    b.write32(Bar::Control, 0x18, 0x8000);
    b.write32(Bar::Control, 0x20, 63);
    b.write32(Bar::Control, CONTROL, 1);
    let writes = |b: &Bench| b.host.log.iter().filter(|e| e.1 == "write").count();
    while b.device.now() < Time::ms(40) {
        b.try_run(Time::us(100)).unwrap();
    }
    assert!(writes(&b) > 4, "{}", writes(&b));
}

#[test]
fn dma_requests_that_break_the_rules_are_reported() {
    let mut b = bench();
    b.write32(Bar::Control, 0x10, 0x4800); // 64 beats from here cross the page
    b.write32(Bar::Control, 0x20, 63);
    b.write32(Bar::Control, CONTROL, 1);
    match b.try_run(Time::us(5)) {
        Err(Fault::Assertion(text)) => assert!(text.contains("4 KiB page"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn idle_time_is_skipped() {
    let mut b = bench();
    b.run(Time::ms(10));
    let (evaluated, skipped) = b.device.cycles();
    assert!(
        evaluated < 100 && evaluated + skipped == 2_500_000,
        "{evaluated} + {skipped}"
    );
    let tag = b.host.ask(Time::ms(15) + Time(1), Bar::Control, 0, 4);
    b.run(Time::ms(10));
    assert!(b.host.answer(tag).is_some());
    assert_eq!(b.device.now(), Time::ms(20));
    let answered = b.host.log.iter().find(|e| e.1 == "answer").unwrap().0;
    assert!(
        answered > Time::ms(15) && answered < Time::ms(15) + Time::ns(100),
        "{answered}"
    );
    assert!(b.device.cycles().0 < 200);
    assert!(b.device.idle());
}

/// The k-th edge is at floor(k * 10^6 / f) ps, no matter whether cycles are evaluated, skipped, or
/// pass without power.
#[test]
fn clock_edges_are_exact_at_every_frequency() {
    for mhz in [1u32, 7, 150, 300, 999, 1000] {
        let clock = Clock::from_mhz(mhz).unwrap();
        let f = u128::from(mhz);
        let edge = |k: u64| Time((u128::from(k) * 1_000_000 / f) as u64);
        let last = |time: Time| ((u128::from(time.0) + 1) * f).div_ceil(1_000_000) as u64 - 1;
        let mut runs = Vec::new();
        for skip_idle in [true, false] {
            let mut b = bench_with(
                DeviceConfig {
                    clock,
                    skip_idle,
                    ..config()
                },
                Media::memory(MEDIA).unwrap(),
            );
            let mut random = Random::new(mhz.into());
            let mut until = Time::ZERO;
            for round in 0..60 {
                if round == 40 {
                    b.device.power_off();
                } else if round == 50 {
                    b.device.power_on();
                }
                if random.below(3) == 0 {
                    b.post(Bar::Pm, 64 * random.below(1000), &[round; 64]);
                    b.host
                        .ask(b.device.now(), Bar::Pm, 64 * random.below(1000), 64);
                }
                until = until
                    + edge(random.below(200))
                    + Time(random.below(2_000_000 / u64::from(mhz)));
                b.device.advance(until, &mut b.host).unwrap();
                assert_eq!(
                    b.device.now(),
                    edge(last(until)),
                    "{mhz} MHz, until {until:?}"
                );
            }
            let times = b.host.log.iter().map(|e| e.0);
            for time in times {
                assert_eq!(time, edge(last(time)), "{mhz} MHz: {time:?} is no edge");
            }
            let (evaluated, skipped) = b.device.cycles();
            assert_eq!(skipped > 0, skip_idle, "{mhz} MHz");
            assert!(evaluated + skipped <= last(until));
            runs.push(b.host.hash());
        }
        assert_eq!(runs[0], runs[1], "{mhz} MHz: skipped cycles show");
    }
}

#[test]
fn runs_repeat() {
    let run = || {
        let mut b = bench();
        let mut random = Random::new(11);
        for _ in 0..50 {
            let data: Vec<u8> = (0..64).map(|_| random.next() as u8).collect();
            b.post(Bar::Pm, random.below(1000) * 64, &data);
            b.host
                .ask(b.device.now(), Bar::Pm, random.below(1000) * 64, 64);
            b.run(Time::ns(random.below(300)));
        }
        copy(&mut b, 0, 0x1000, 32);
        b.run(Time::us(50));
        (b.host.hash(), b.device.cycles())
    };
    assert_eq!(run(), run());
}

#[test]
fn hang_is_reported() {
    let mut b = bench();
    b.write32(Bar::Control, CONTROL, 2);
    match b.try_run(Time::ms(1)) {
        Err(Fault::Hang(dump)) => {
            assert!(
                dump.contains("m_axi_ddr[0]") && dump.contains("valid/ready"),
                "{dump}"
            );
            assert!(b.device.now() < Time::us(25), "{}", b.device.now());
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(b.try_run(Time::us(1)), Err(Fault::Hang(_))),
        "it stays hung"
    );
}

#[test]
fn hang_is_not_reported_while_the_host_owes() {
    let mut b = bench();
    b.host.latency = Time::us(100); // 25,000 cycles, five times the limit
    b.write32(Bar::Control, 0x20, 0);
    b.write32(Bar::Control, CONTROL, 1);
    b.run(Time::us(150));
    assert_eq!(b.read32(Bar::Control, 0x0C), 1);
}

#[test]
fn assertion_failure_is_a_fault() {
    let mut b = bench();
    b.write32(Bar::Control, CONTROL, 4);
    match b.try_run(Time::us(1)) {
        Err(Fault::Assertion(text)) => assert!(text.contains("fail_requested"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn power_cycles_keep_the_media() {
    let mut b = bench();
    b.post(Bar::Pm, 0x100, &[7; 64]);
    b.write32(Bar::Control, 4, 1234);
    b.run(Time::us(1));
    assert_eq!(b.read32(Bar::Control, 4), 1234);
    b.device.power_off();
    let off = b.device.now();
    b.post(Bar::Pm, 0x100, &[8; 64]);
    assert_eq!(b.read(Bar::Control, 0, 4), None);
    b.run(Time::us(3));
    assert!(b.device.now() >= off + Time::us(3) && b.device.idle());
    b.device.power_on();
    assert_eq!(b.read32(Bar::Control, 4), 0);
    assert_eq!(b.read(Bar::Pm, 0x100, 64).unwrap(), [7; 64]);
    // A hung device works again after a power cycle.
    b.write32(Bar::Control, CONTROL, 2);
    assert!(b.try_run(Time::ms(1)).is_err());
    b.device.power_off();
    b.device.power_on();
    assert_eq!(b.read(Bar::Pm, 0x100, 64).unwrap(), [7; 64]);
}

#[test]
fn media_files_survive_the_device() {
    let path = scratch("device-media");
    let mut b = bench_with(config(), Media::file(&path, MEDIA).unwrap());
    b.post(Bar::Pm, MEDIA - 10, b"still here");
    b.run(Time::us(1));
    drop(b);
    let mut b = bench_with(config(), Media::file(&path, MEDIA).unwrap());
    assert_eq!(b.read(Bar::Pm, MEDIA - 10, 10).unwrap(), b"still here");
}

#[test]
fn waveform_of_a_time_window() {
    let path = scratch("device.fst");
    let window = TraceWindow {
        from: Time::us(2),
        to: Time::us(3),
        path: path.clone(),
    };
    let mut b = bench_with(
        DeviceConfig {
            trace: Some(window),
            ..config()
        },
        Media::memory(MEDIA).unwrap(),
    );
    b.run(Time::us(1));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    for _ in 0..20 {
        b.write32(Bar::Control, 4, 0x5555);
        b.read32(Bar::Control, 4);
    }
    b.run(Time::us(2));
    b.read32(Bar::Control, 4);
    assert!(std::fs::metadata(&path).unwrap().len() > 500);
}

fn traced(path: &Path, from: Time, to: Time) -> DeviceConfig {
    let path = path.into();
    DeviceConfig {
        trace: Some(TraceWindow { from, to, path }),
        ..config()
    }
}

#[test]
fn waveform_that_cannot_be_written_is_an_error() {
    let full = Path::new("/dev/full");
    for to in [2, 100] {
        let config = traced(full, Time::ZERO, Time::us(to));
        let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
        let outcome = b.try_run(Time::us(3)).and_then(|()| b.device.finish());
        let Err(Fault::File(text)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(text.starts_with("waveform /dev/full: "), "{text}");
    }
}

/// The file of a waveform is refused before anything is compiled.
fn refused(path: &Path, wanted: &str) {
    let config = traced(path, Time::us(2), Time::us(3));
    let media = Media::memory(MEDIA).unwrap();
    let built = RtlDevice::build(config, media, &mut |_| panic!("it compiles"));
    let error = built.unwrap_err().to_string();
    let start = format!("{}: ", path.display());
    assert!(
        error.starts_with(&start) && error.contains(wanted),
        "{error}"
    );
}

#[test]
fn waveform_to_an_impossible_place_is_refused() {
    refused(Path::new("/nonexistent/w.fst"), "No such file");
    let pipe = scratch("pipe.fst");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    refused(&pipe, "can't go to a pipe");
}

#[test]
fn waveform_locks_its_file_and_respects_locks() {
    let busy = "name another file";
    let path = scratch("busy.fst");
    let media = Media::file(&path, MEDIA).unwrap();
    refused(&path, busy);
    drop(media);
    assert_eq!(std::fs::read(&path).unwrap(), vec![0; MEDIA as usize]);
    let output = Output::open(&path).unwrap();
    refused(&path, busy);
    drop(output);
    // The waveform covers the time from power-on to the end of the window, even if its file is
    // renamed.
    let config = traced(&path, Time::us(2), Time::us(4));
    let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
    let moved = scratch("moved.fst");
    std::fs::rename(&path, &moved).unwrap();
    std::fs::write(&path, "another").unwrap();
    for _ in 0..2 {
        refused(&moved, busy);
        assert!(Media::file(&moved, MEDIA).is_err());
        assert!(Output::open(&moved).is_err());
        b.run(Time::ns(2200));
        b.read32(Bar::Control, 4);
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"another");
    assert!(std::fs::metadata(&moved).unwrap().len() < MEDIA, "cleared");
    Output::open(&moved).unwrap();
    // The file of the next life is refused at its power-on.
    let config = traced(&path, Time::ZERO, Time::us(100));
    let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
    let media = Media::file(&scratch("busy.2.fst"), MEDIA).unwrap();
    b.device.power_off();
    b.device.power_on();
    let outcome = b.try_run(Time::us(1));
    assert!(
        matches!(&outcome, Err(Fault::File(text)) if text.contains(busy)),
        "{outcome:?}"
    );
    drop(media);
}

#[test]
fn waveform_that_is_complete_is_not_reopened() {
    let [path, next] = ["finished.fst", "finished.2.fst"].map(scratch);
    let window = TraceWindow {
        from: Time::ZERO,
        to: Time::us(100),
        path: path.clone(),
    };
    let config = DeviceConfig {
        trace: Some(window),
        ..config()
    };
    let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
    b.read32(Bar::Control, 4);
    b.device.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    b.read32(Bar::Control, 4);
    b.device.finish().unwrap();
    assert!(std::fs::read(&path).unwrap() == whole);
    b.device.power_off();
    b.device.power_on();
    b.read32(Bar::Control, 4);
    assert!(!next.exists());
}

#[test]
fn waveform_of_each_life_is_kept() {
    let paths = ["lives.fst", "lives.2.fst", "lives.3.fst"].map(scratch);
    let window = TraceWindow {
        from: Time::ZERO,
        to: Time::us(100),
        path: paths[0].clone(),
    };
    let config = DeviceConfig {
        trace: Some(window),
        ..config()
    };
    let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
    let mut sizes = Vec::new();
    for path in &paths {
        for _ in 0..20 {
            b.write32(Bar::Control, 4, 0x5555);
            b.read32(Bar::Control, 4);
        }
        b.device.power_off();
        b.run(Time::us(1));
        sizes.push(std::fs::metadata(path).unwrap().len());
        b.device.power_on();
    }
    assert!(sizes.iter().all(|&size| size > 500), "{sizes:?}");
    b.run(Time::us(1));
    drop(b);
    let after = paths.map(|path| std::fs::metadata(path).unwrap().len());
    assert_eq!(sizes, after, "a later life touches no earlier file");
}

#[test]
fn config_errors_are_one_line() {
    for (config, wanted) in [
        (
            DeviceConfig {
                granule: 1000,
                ..config()
            },
            "granule = 1000",
        ),
        (
            DeviceConfig {
                channels: 3,
                ..config()
            },
            "m_axi_ddr_",
        ),
        (
            DeviceConfig {
                host_chunk: 100,
                ..config()
            },
            "host_chunk = 100",
        ),
    ] {
        let error = RtlDevice::build(config, Media::memory(MEDIA).unwrap(), &mut |_| true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(wanted) && error.lines().count() == 1,
            "{error}"
        );
    }
}
