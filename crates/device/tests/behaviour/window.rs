// SPDX-License-Identifier: Apache-2.0

//! Loads and stores of the PM window, and their effects on the media.

use std::path::PathBuf;

use design::Profile;
use device::Model;
use driver::control::DelayRegisters;
use sim::memctrl::MemoryModel;
use sim::{Bar, Media, Random, Time};
use spec::bar4;
use spec::regs::nvm_delay;

use crate::common::{self, design, model, Bench};

const MEDIA: u64 = 1 << 30;
const NVM_DELAY: u64 = 0x1_0000;

fn bench() -> Bench {
    Bench::new(&design("default"))
}

pub fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

mod sampled {
    use super::*;

    #[test]
    fn window_has_64_loads_under_way() {
        let latency = Time::us(2);
        let mut b = Bench::with(&design("default"), MemoryModel::Fixed(latency));
        b.run(Time::us(4)); // nvm_delay sweeps its counters after reset
        let start = b.device.now();
        let tags: Vec<u32> = (0..65)
            .map(|i| b.host.ask(start, Bar::Pm, i * 4096 + 64 * i, 64))
            .collect();
        b.run(latency + Time::ns(700));
        let answers: Vec<_> = tags.iter().map(|&tag| b.host.answer(tag)).collect();
        // The first 64, one in each clock; no ID is left for the last one until the first is
        // answered.
        let there = answers.iter().filter(|a| **a == Some(Some(vec![0; 64])));
        assert_eq!(there.count(), 64);
        assert_eq!(answers[64], None);
        b.run(latency);
        assert_eq!(b.host.answer(tags[64]), Some(Some(vec![0; 64])));
    }

    #[test]
    fn window_loads_share_one_return_path() {
        const LOADS: u64 = 8;
        let design = design("default");
        let mut b = Bench::with(&design, MemoryModel::Fixed(Time::ns(50)));
        b.run(Time::us(20));
        let start = b.device.now();
        for n in 0..LOADS {
            b.host.ask(start, Bar::Pm, 4096 * n, 4096);
        }
        b.run(Time::us(10));
        let answers = b.host.log.iter().filter(|event| event.1 == "answer");
        let last = answers.map(|event| event.0).max().unwrap();
        let cycles = (last - start).0 as f64 / (1000.0 * design.clock().ns(1.0));
        // A beat a cycle, whatever the number of channels, and the latency of the first.
        let beats = (LOADS * 64) as f64;
        assert!((beats..beats + 60.0).contains(&cycles), "{cycles}");
    }

    /// Stores to a slow memory, posted at once, and then a load: the time until its answer, in ns.
    fn load_after_stores(write_ns: f64, cap: u32, stores: &[u64], bytes: usize) -> f64 {
        let design = design("default");
        let mut b = bench();
        let clock = design.clock();
        let registers =
            Profile::latencies("x", 0.0, write_ns).registers(clock, design.interleave());
        for (channel, registers) in (0..).zip(&registers.unwrap()) {
            let of = DelayRegisters::of_channel(channel);
            for (offset, value) in of.writes(registers).unwrap() {
                b.write32(Bar::Control, offset, value);
            }
            let block = NVM_DELAY + bar4::DELAY_STEP * u64::from(channel);
            b.write32(Bar::Control, block + nvm_delay::WRITE_CAP, cap);
            let commit = nvm_delay::command::COMMIT.mask() as u32;
            b.write32(Bar::Control, block + nvm_delay::COMMAND, commit);
        }
        b.run(Time::us(30));
        let start = b.device.now();
        for &at in stores {
            b.host.post(start, Bar::Pm, at, &vec![1; bytes]);
        }
        let tag = b.host.ask(start, Bar::Pm, 0, 8);
        for _ in 0..400 {
            b.run(Time::us(10));
            let mut log = b.host.log.iter();
            let answer = log.find(|event| event.1 == "answer" && event.2 == u64::from(tag));
            if let Some(event) = answer {
                return (event.0 - start).0 as f64 / 1000.0;
            }
        }
        panic!("no answer within 4 ms");
    }

    #[test]
    fn window_calibrations_are_written_one_at_a_time() {
        let mut b = bench();
        b.run(Time::us(20));
        let start = b.device.now();
        let at = NVM_DELAY + nvm_delay::CALIBRATION;
        for _ in 0..8 {
            b.host.post(start, Bar::Control, at, &[0; 4]);
        }
        let tag = b.host.ask(start, Bar::Pm, 0, 8);
        b.run(Time::us(5));
        let mut log = b.host.log.iter();
        let answer = log.find(|event| event.1 == "answer" && event.2 == u64::from(tag));
        let cycles =
            (answer.unwrap().0 - start).0 as f64 / (1000.0 * design("default").clock().ns(1.0));
        // The times are copied in 24 cycles.
        assert!((165.0..250.0).contains(&cycles), "{cycles}");
    }

    #[test]
    fn window_stores_wait_for_space_and_not_for_responses() {
        // 16 B in 5 cycles, and 0.7 ms until a response: all data have passed long before the
        // first.
        let pages: Vec<u64> = (0..16).map(|n| 4096 * (7 * n % 16)).collect();
        let ns = load_after_stores(700_000.0, 209_715, &pages, 512);
        assert!((700_000.0..740_000.0).contains(&ns), "{ns}");
    }

    #[test]
    fn window_stores_to_one_channel_delay_the_others() {
        // A beat in 16 cycles: 20 pages take nearly as long as in one channel. Some beats of each
        // pass during the page before.
        let pages: Vec<u64> = (0..20).map(|n| 4096 * n).collect();
        let ns = load_after_stores(300.0, 4 << 16, &pages, 4096);
        let data = design("default").clock().ns(20.0 * 64.0 * 16.0);
        assert!((0.9 * data..data).contains(&ns), "{ns} of {data}");
    }

    #[test]
    fn window_stores_with_one_id_keep_their_order() {
        // The second 64 go to the other channel, and have the IDs of the first.
        let lines: Vec<u64> = (0..128).map(|n| 64 * n).collect();
        let ns = load_after_stores(100_000.0, 0, &lines, 64);
        assert!((200_000.0..210_000.0).contains(&ns), "{ns}");
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
        let stored = b.stored(0, shadow.len());
        assert!(stored == shadow, "BAR2 and media have the same addresses");
        assert_eq!(b.read(Bar::Pm, MEDIA, 64), None, "beyond the media");
        assert_eq!(b.counter("mmio.lost_writes"), 0.0);
    }
}

#[test]
fn window_long_loads_are_answered_in_parts() {
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
            // Each except the last ends at the end of a largest completion, and leaves before the
            // next has arrived.
            at += part.3.len() as u64;
            assert_eq!((part.1, at % 256), ("part", 0));
            let lines = next.3.len().div_ceil(64) as u64;
            let apart = next.0 - part.0;
            match model() {
                Model::Rtl => assert_eq!(apart, Time::ns(48 * lines), "{len} at {offset}"),
                // The model sends eight beats at a time, counted from the first beat of the load.
                Model::Fast => assert!(apart <= Time::ns(48 * 8), "{len} at {offset}: {apart}"),
            }
        }
        assert_eq!(parts.last().unwrap().1, "answer");
    }
}

#[test]
fn window_loads_follow_stores_on_a_late_memory() {
    let fuzz = design("fuzz");
    let late = MemoryModel::Random {
        max: Time::us(2),
        seed: 3,
    };
    for memory in [None, Some(late)] {
        let factory = match memory {
            Some(memory) => common::factory_with(&fuzz, memory),
            None => common::factory(&fuzz),
        };
        let mut host = common::host_of(&fuzz, common::device(&factory, &fuzz));
        let number = host.device();
        let system = host.system_mut();
        let mut random = Random::new(7);
        let mut model = vec![0u8; 64 << 10];
        for n in 0..400u64 {
            let at = random.below(60 << 10) as usize;
            let len = 1 + random.below(3000) as usize;
            if random.below(2) == 0 {
                let data: Vec<u8> = (0..len as u64)
                    .map(|b| (b * 31 + n * 7 + 1) as u8)
                    .collect();
                system
                    .mmio_write(number, Bar::Pm, at as u64, &data)
                    .unwrap();
                model[at..at + len].copy_from_slice(&data);
            } else {
                let data = system.mmio_read(number, Bar::Pm, at as u64, len).unwrap();
                let wrong = data.iter().zip(&model[at..]).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "load {n} of {len} bytes at {at:#x}");
            }
        }
    }
}

#[test]
fn window_latency_follows_a_slow_memory() {
    let time = |latency| {
        let mut b = Bench::with(&design("default"), MemoryModel::Fixed(latency));
        b.run(Time::us(4));
        let start = b.device.now();
        b.read(Bar::Pm, 0, 64).unwrap();
        b.host.log.last().unwrap().0 - start
    };
    assert_eq!(time(Time::ns(420)) - time(Time::ns(20)), Time::ns(400));
}

#[test]
fn window_stores_survive_power_cuts() {
    let path = scratch("window-media");
    let file = || Media::file(&path, MEDIA).unwrap();
    let mut b = Bench::on(&design("default"), file());
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
    let mut b = Bench::on(&design("default"), file());
    assert_eq!(
        b.read(Bar::Pm, 0x12_3456, 22).unwrap(),
        b"written before the cut"
    );
}

#[test]
fn window_accesses_fail_on_a_full_disk() {
    let path = scratch("window-no-room");
    let mut b = Bench::on(&design("default"), Media::file(&path, MEDIA).unwrap());
    b.post(Bar::Pm, 0x100, &[7; 64]);
    b.run(Time::us(5));
    // An access after the cut raises SIGBUS, as a hole does when the disk is full.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(MEDIA / 2).unwrap();
    b.post(Bar::Pm, MEDIA - 64, &[8; 64]);
    b.run(Time::us(2));
    assert_eq!(b.read(Bar::Pm, MEDIA - 64, 64), None, "an error");
    assert_eq!(b.read(Bar::Pm, 0x100, 64).unwrap(), [7; 64], "goes on");
    assert_eq!(b.counter("mmio.lost_writes"), 1.0);
    assert_eq!(b.device.lost_writes(), 1);
    assert_eq!(b.counter("media.failures"), 2.0);
    file.set_len(MEDIA).unwrap();
    b.post(Bar::Pm, MEDIA - 64, &[9; 64]);
    b.run(Time::us(2));
    assert_eq!(b.read(Bar::Pm, MEDIA - 64, 64).unwrap(), [9; 64]);
    b.device.finish().unwrap();
}
