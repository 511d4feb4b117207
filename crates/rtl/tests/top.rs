//! The device, from the outside of its ports.

mod common;

use std::path::PathBuf;

use common::Bench;
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, Memory, RtlDevice, TraceWindow};
use sim::{Bar, Device, Fault, Media, Random, Time};
use spec::regs::nvm_delay;

const MEDIA: u64 = 1 << 30;
const NVM_DELAY: u64 = 0x1_0000;

fn config() -> DeviceConfig {
    // A read that is not answered is to end in a dump, not in a time-out.
    DeviceConfig {
        hang_cycles: 20_000,
        ..common::design("default")
    }
}

fn bench_with(config: DeviceConfig, media: Media) -> Bench {
    Bench::new(RtlDevice::build(config, media, &mut stderr_progress("nearside_top")).unwrap())
}

fn bench() -> Bench {
    bench_with(config(), Media::memory(MEDIA).unwrap())
}

#[test]
fn comes_up() {
    let mut b = bench();
    let cap = u64::from_le_bytes(b.read(Bar::Nvme, 0, 8).unwrap().try_into().unwrap());
    assert_eq!(cap & 0xFFFF, 1023, "CAP.MQES: {cap:#x}");
    assert_eq!(cap >> 32 & 0xF, 0, "CAP.DSTRD: {cap:#x}");
    assert_eq!(b.read32(Bar::Nvme, 8), 0x0001_0400, "VS: 1.4");
    assert_eq!(b.read32(Bar::Nvme, 0x1C) & 1, 0, "CSTS.RDY");
    b.run(Time::us(4)); // nvm_delay sweeps its counters after reset
    assert!(b.device.idle());
}

#[test]
fn lists_its_blocks() {
    let mut b = bench();
    let header: Vec<u32> = (0..8).map(|i| b.read32(Bar::Control, i * 4)).collect();
    assert_eq!(
        header,
        [0x4E53_4456, 1, 6, 250_000, MEDIA as u32, 0, 2, 4096]
    );
    let block = |b: &mut Bench, i: u64| -> Vec<u32> {
        (0..8)
            .map(|w| b.read32(Bar::Control, 0x100 + i * 32 + w * 4))
            .collect()
    };
    assert_eq!(block(&mut b, 0), [1, 0x1_0000, 0, 0, 0, 0x1_0000, 16, 1024]);
    assert_eq!(block(&mut b, 1), [3, 0x1_0000, 0, 2, 0, 0, MEDIA as u32, 0]);
    assert_eq!(block(&mut b, 4), [4, 0x1_0000, 0, 4, 0x1000, 0x1000, 2, 0]);
    for channel in 0..2 {
        let offset = NVM_DELAY as u32 + 0x1000 * channel;
        assert_eq!(
            block(&mut b, 2 + u64::from(channel)),
            [2, 0x1_0000, channel, 4, offset, 0x1000, channel, 512]
        );
        assert_eq!(
            b.read32(Bar::Control, offset.into()),
            0x4E56_444C,
            "nvm_delay's ID"
        );
    }
    let pages = MEDIA as u32 / 4096;
    assert_eq!(
        block(&mut b, 5),
        [6, 0x1_0000, 0, 2, 0, pages, 2 << 16, 4096]
    );
    assert_eq!(block(&mut b, 6), [0; 8]);
    assert_eq!(b.read(Bar::Control, 0x4_0000, 4), None, "reserved");
}

#[test]
fn sixty_four_loads_are_under_way_at_a_time() {
    let latency = Time::us(2);
    let config = DeviceConfig {
        memory: Memory::Fixed(latency),
        ..config()
    };
    let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
    b.run(Time::us(4)); // nvm_delay sweeps its counters after reset
    let start = b.device.now();
    let tags: Vec<u32> = (0..65)
        .map(|i| b.host.ask(start, Bar::Pm, i * 4096 + 64 * i, 64))
        .collect();
    b.run(latency + Time::ns(700));
    let answers: Vec<_> = tags.iter().map(|&tag| b.host.answer(tag)).collect();
    // The first 64, one a clock; no ID is left for the last one until the first is answered.
    let there = answers.iter().filter(|a| **a == Some(Some(vec![0; 64])));
    assert_eq!(there.count(), 64);
    assert_eq!(answers[64], None);
    b.run(latency);
    assert_eq!(b.host.answer(tags[64]), Some(Some(vec![0; 64])));
}

#[test]
fn long_loads_are_answered_as_their_beats_come() {
    let mut b = bench();
    let data: Vec<u8> = (0..8192u32).map(|i| (i ^ i >> 8) as u8).collect();
    b.post(Bar::Pm, 0, &data[..4096]);
    b.post(Bar::Pm, 4096, &data[4096..]);
    b.read(Bar::Pm, 0, 1).unwrap();
    // Beats that come 48 ns apart.
    for (offset, value) in [
        (nvm_delay::TIMING + nvm_delay::timing::READ_BASE, 100 << 12),
        (nvm_delay::TIMING + nvm_delay::timing::READ_BEAT, 12 << 12),
        (nvm_delay::CONTROL, 1),
        (nvm_delay::COMMAND, nvm_delay::command::COMMIT.of(1) as u32),
    ] {
        b.write32(Bar::Control, NVM_DELAY + offset, value);
    }
    b.run(Time::us(4));
    for (offset, len) in [
        (0, 4096),
        (4, 4092),
        (100, 300),
        (250, 6),
        (250, 7),
        (64, 1),
    ] {
        let sent = b.host.log.len();
        let data = &data[offset as usize..offset as usize + len];
        assert_eq!(b.read(Bar::Pm, offset, len as u32).unwrap(), data);
        let events = b.host.log[sent..].iter();
        let parts: Vec<_> = events
            .filter(|e| e.1 == "part" || e.1 == "answer")
            .collect();
        let ends = (offset + 1..offset + len as u64).filter(|end| end % 256 == 0);
        assert_eq!(parts.len(), 1 + ends.count(), "{len} at {offset}");
        let mut at = offset;
        for (part, next) in parts.iter().zip(parts.iter().skip(1)) {
            // Each but the last ends at the end of a largest completion, and leaves before the next has come.
            at += part.3.len() as u64;
            assert_eq!((part.1, at % 256), ("part", 0));
            let lines = next.3.len().div_ceil(64) as u64;
            assert_eq!(next.0 - part.0, Time::ns(48 * lines), "{len} at {offset}");
        }
        assert_eq!(parts.last().unwrap().1, "answer");
    }
}

#[test]
fn window_matches_a_shadow() {
    let mut b = bench();
    let mut random = Random::new(5);
    let mut shadow = vec![0u8; 1 << 15];
    for i in 0..400 {
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
            assert_eq!(
                data, shadow[range],
                "access {i}: offset {offset:#x}, {len} bytes"
            );
        }
    }
    b.run(Time::us(20));
    assert!(b.device.idle(), "at rest when everything is answered");
    let mut stored = vec![0; shadow.len()];
    b.device.media().read(0, &mut stored);
    assert!(stored == shadow, "BAR2 and media have the same addresses");
    assert_eq!(b.read(Bar::Pm, MEDIA, 64), None, "beyond the media");
    let counters = b.device.counters();
    let count = |name: &str| counters.iter().find(|c| c.name == name).unwrap().value;
    assert!(count("axi.ddr.read_beats") > 1000.0 && count("axi.ddr.write_beats") > 1000.0);
    assert_eq!(count("mmio.lost_writes"), 0.0);
}

#[test]
fn instances_share_nothing_and_repeat() {
    let traffic = |b: &mut Bench, seed: u64| {
        let mut random = Random::new(seed);
        for _ in 0..60 {
            let data: Vec<u8> = (0..256).map(|_| random.next() as u8).collect();
            b.post(Bar::Pm, random.below(1000) * 256, &data);
            let now = b.device.now();
            b.host.ask(now, Bar::Pm, random.below(1000) * 256, 256);
            b.run(Time::ns(random.below(500)));
        }
    };
    let alone = |seed| {
        let mut b = bench();
        traffic(&mut b, seed);
        b.run(Time::us(50));
        (b.host.hash(), b.device.cycles())
    };
    let (first, second) = (alone(1), alone(2));
    assert_eq!(first, alone(1));
    assert_ne!(first.0, second.0);
    // Both in one process at the same time, on two threads.
    let together: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = [1, 2]
            .map(|seed| scope.spawn(move || alone(seed)))
            .into_iter()
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(together, [first, second]);
}

#[test]
fn power_cuts_keep_the_media() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("top-media");
    let _ = std::fs::remove_file(&path);
    let mut b = bench_with(config(), Media::file(&path, MEDIA).unwrap());
    b.post(Bar::Pm, 0x12_3456, b"written before the cut");
    b.run(Time::us(5));
    b.post(Bar::Pm, 0x12_4000, &[1; 4096]);
    b.run(Time::ns(60)); // in the middle of it
    b.device.power_off();
    b.run(Time::us(1));
    b.device.power_on();
    assert_eq!(
        b.read(Bar::Pm, 0x12_3456, 22).unwrap(),
        b"written before the cut"
    );
    drop(b);
    let mut b = bench_with(config(), Media::file(&path, MEDIA).unwrap());
    assert_eq!(
        b.read(Bar::Pm, 0x12_3456, 22).unwrap(),
        b"written before the cut"
    );
}

/// With one channel there are waveforms, too: a bitstream of their own.
#[test]
fn other_channel_counts_and_waveforms() {
    for channels in [1, 4] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("top.fst");
        let _ = std::fs::remove_file(&path);
        let window = TraceWindow {
            from: Time::us(2),
            to: Time::us(3),
            path: path.clone(),
        };
        let config = DeviceConfig {
            trace: (channels == 1).then_some(window),
            hang_cycles: config().hang_cycles,
            ..common::channels(channels)
        };
        let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
        assert_eq!(b.read32(Bar::Control, 0x18), channels);
        for page in 0..32u64 {
            b.post(Bar::Pm, page * 4096, &[page as u8 + 1; 4096]);
        }
        b.run(Time::us(50));
        for page in 0..32u64 {
            let mut stored = vec![0; 4096];
            b.device.media().read(page * 4096, &mut stored);
            assert!(
                stored == vec![page as u8 + 1; 4096],
                "{channels} channels, page {page}"
            );
        }
        drop(b);
        let written = std::fs::metadata(&path).map_or(0, |file| file.len());
        assert_eq!(
            written > 10_000,
            channels == 1,
            "{written} bytes of waveforms"
        );
    }
}

/// The queue memory of the admin queue can't be read and the link never answers: the controller waits for ever.
#[test]
fn a_link_that_never_answers_is_not_taken_for_a_hang() {
    let mut b = bench_with(
        DeviceConfig {
            hang_cycles: 2000,
            ..config()
        },
        Media::memory(MEDIA).unwrap(),
    );
    b.host.latency = Time::ms(1);
    for (offset, value) in [
        (0x24, 0x000F_000F),
        (0x28, 0x1000),
        (0x2C, 0),
        (0x30, 0x2000),
        (0x34, 0),
        (0x14, 0x0046_0001),
    ] {
        b.write32(Bar::Nvme, offset, value);
    }
    b.run(Time::us(100));
    assert_eq!(b.read32(Bar::Nvme, 0x1C) & 1, 1, "CSTS.RDY");
    b.write32(Bar::Nvme, 0x1000, 1);
    match b.try_run(Time::us(200)) {
        Ok(()) => {}
        Err(Fault::Hang(dump)) => panic!("{dump}"),
        Err(other) => panic!("{other}"),
    }
    assert!(
        b.host.log.iter().any(|e| e.1 == "read" && e.2 == 0x1000),
        "the command is fetched"
    );
}
