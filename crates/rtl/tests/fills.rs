//! What the memories zero by themselves: exact to the block, and in the time that writing takes.

mod common;

use std::time::Instant;

use design::Cpu;
use driver::workload::{run_job, Job};
use driver::{Buffer, Config, Controller, Erase, Host, Io, Range, SimHost};
use rtl::{DeviceConfig, Memory};
use sim::{Bar, Time};
use spec::nvme::{io, status, Sqe};

const MEDIA: u64 = 1 << 30;

fn counter(c: &Controller<SimHost>, name: &str) -> f64 {
    let counters = c.host().system().device(0).unwrap().counters();
    counters.iter().find(|x| x.name == name).unwrap().value
}

fn now(c: &Controller<SimHost>) -> Time {
    c.host().system().now()
}

#[test]
fn ranges_of_any_size_at_any_place() {
    let mut c = common::controller("default", MEDIA);
    let base = 5000; // blocks
    let mut want: Vec<u8> = (0..6u32 << 20).map(|i| (i * 11 / 7) as u8 | 1).collect();
    for (i, part) in want.chunks(1 << 20).enumerate() {
        c.write(base + 2048 * i as u64, part).unwrap();
    }
    let mut random = sim::Random::new(7);
    let blocks = want.len() as u64 / 512;
    for round in 0..12 {
        let mut ranges = Vec::new();
        for _ in 0..1 + random.below(5) {
            let most = [20, 129, 700, 5000][random.below(4) as usize];
            let len = 1 + random.below(most);
            let at = random.below(blocks - len);
            want[at as usize * 512..(at + len) as usize * 512].fill(0);
            if round % 2 == 0 {
                c.write_zeroes(base + at, len).unwrap();
            } else {
                let lba = base + at;
                let blocks = len as u32;
                ranges.push(Range { lba, blocks });
            }
        }
        c.deallocate(&ranges).unwrap();
        let mut back = vec![0; want.len()];
        for (i, part) in back.chunks_mut(1 << 20).enumerate() {
            c.read(base + 2048 * i as u64, part).unwrap();
        }
        let wrong = want.iter().zip(&back).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "round {round}: first wrong byte");
        for i in 0..20 {
            let at = (random.below(blocks - 8) & !7) as usize * 512;
            let data = vec![i * 2 + 1; 4096];
            c.write(base + at as u64 / 512, &data).unwrap();
            want[at..at + 4096].copy_from_slice(&data);
        }
    }
    assert!(counter(&c, "axi.ddr.fill_beats") > 10_000.0);
    c.shutdown().unwrap();
}

#[test]
fn beside_other_traffic() {
    let mut c = common::controller("default", MEDIA);
    for _ in 0..3 {
        c.write_zeroes(1 << 20, 4096).unwrap();
        let job = Job {
            read_percent: 50,
            max_bytes: 1 << 14,
            commands: 200,
            verify: true,
            ..Job::default()
        };
        let outcome = run_job(&mut c, &job, &mut |_, _| true).unwrap();
        assert_eq!(outcome.report.commands, 200);
    }
    c.shutdown().unwrap();
}

/// The whole device within seconds of this machine, and at the memories' speed.
#[test]
fn all_of_it() {
    let mut c = common::controller("default", MEDIA);
    c.write((MEDIA >> 9) - 8, &[7; 4096]).unwrap();
    let (from, wall) = (now(&c), Instant::now());
    let evaluated = counter(&c, "cycles.evaluated");
    let all = Range {
        lba: 0,
        blocks: (MEDIA >> 9) as u32,
    };
    let limits = c.dataset_limits();
    assert_eq!(
        (limits.ranges, limits.range_blocks, limits.blocks),
        (255, 1 << 17, 1 << 17)
    );
    c.deallocate(&[all]).unwrap();
    let took = now(&c) - from;
    println!(
        "1 GiB: {took} simulated, {:.2} s here",
        wall.elapsed().as_secs_f64()
    );
    let mut back = [1; 4096];
    c.read((MEDIA >> 9) - 8, &mut back).unwrap();
    assert_eq!(back, [0; 4096]);
    let rate = MEDIA as f64 / took.as_secs();
    assert!((20e9..40e9).contains(&rate), "{rate} bytes/s");
    let evaluated = counter(&c, "cycles.evaluated") - evaluated;
    assert!(evaluated < 1e6, "{evaluated} cycles evaluated");
    c.write(0, &[7; 4096]).unwrap();
    c.format(1, Erase::None).unwrap();
    c.read(0, &mut back).unwrap();
    assert_eq!(back, [0; 4096]);
    c.shutdown().unwrap();
}

/// Lists beyond what Identify recommends (DMRL, DMRSL, DMSL) are done whole: not all hosts ask, and none has to.
#[test]
fn beyond_the_limits() {
    let entry = |range: &Range| {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&range.blocks.to_le_bytes());
        bytes[8..].copy_from_slice(&range.lba.to_le_bytes());
        bytes
    };
    let mut c = common::controller("default", MEDIA);
    let last = (MEDIA >> 9) - 1;
    let single: Vec<Range> = (0..256)
        .map(|i| Range {
            lba: 16 * i,
            blocks: 1,
        })
        .collect();
    let large = Range {
        lba: 5,
        blocks: (last - 4) as u32,
    };
    let half = Range {
        lba: last - (1 << 17) + 1,
        blocks: 1 << 17,
    };
    let list = c.host_mut().alloc(4096, 4096).unwrap();
    for (ranges, at) in [
        (single, 16 * 255),
        (vec![large], last),
        (vec![half; 2], last),
    ] {
        c.write(at, &[7; 512]).unwrap();
        let bytes: Vec<u8> = ranges.iter().flat_map(entry).collect();
        c.host_mut().dma_write(list, &bytes);
        let from = now(&c);
        let sqe = Sqe::deallocate(1, ranges.len()).with_prps(list, 0);
        c.submit_raw(0, sqe, 0).unwrap();
        c.ring(0).unwrap();
        let done = loop {
            if let Some(done) = c.poll(0).unwrap() {
                break done;
            }
            c.wait(from + Time::ms(200), "the list").unwrap();
        };
        assert_eq!(done.status, status::SUCCESS);
        println!("{} ranges: {}", ranges.len(), now(&c) - from);
        let mut back = [1; 512];
        c.read(at, &mut back).unwrap();
        assert_eq!(back, [0; 512]);
    }
    c.shutdown().unwrap();
}

/// The device that writes its zeros itself.
fn inside() -> (&'static str, DeviceConfig) {
    ("default with ns_axi_fill", common::fill_inside())
}

/// The memory's short cut takes the simulated time of the writes that `ns_axi_fill` would make.
#[test]
#[ignore = "compiles a device of its own"]
fn as_long_as_writes() {
    let spans = |name: &str, config: DeviceConfig| {
        let mut c = common::controller_of(name, config, MEDIA, Cpu::default().costs(), 0);
        [256, 1000, 4096, 65536].map(|blocks| {
            let from = now(&c);
            c.write_zeroes(777, blocks).unwrap();
            (now(&c) - from).0 as f64
        })
    };
    let (name, inside) = inside();
    let written = spans(name, inside);
    let short = spans("default", common::design("default"));
    for (a, b) in written.iter().zip(&short) {
        println!(
            "{:.3} us written, {:.3} us filled, {:+.2} %",
            a / 1e6,
            b / 1e6,
            100.0 * (b / a - 1.0)
        );
    }
    for (i, (a, b)) in written.iter().zip(&short).enumerate() {
        let limit = if i < 2 { 0.05 } else { 0.01 }; // of little, what surrounds it counts
        assert!((b / a - 1.0).abs() < limit, "{a} ps written, {b} ps filled");
    }
}

#[test]
fn cut_off() {
    whole_when_cut_off("default", common::design("default"));
}

#[test]
#[ignore = "compiles a device of its own"]
fn cut_off_inside() {
    let (name, config) = inside();
    whole_when_cut_off(name, config);
}

/// However a fill is cut off, each block is zero or as it was, and the next life zeroes as if nothing had been.
fn whole_when_cut_off(name: &str, config: DeviceConfig) {
    let mut c = common::controller_of(name, config, MEDIA, Cpu::default().costs(), 0);
    let blocks = 2048u64;
    let old: Vec<u8> = (0..blocks * 512)
        .map(|i| (i / 512 % 255) as u8 + 1)
        .collect();
    let mut part = [false; 3];
    for phase in 0..18u64 {
        c.write(5, &old).unwrap();
        let sqe = Sqe::of_blocks(io::WRITE_ZEROES, 1, 5, blocks as u32);
        c.submit_raw(0, sqe, 0).unwrap();
        c.ring(0).unwrap();
        advance(&mut c, Time::ns(1000 + 2000 * phase));
        let cut = phase as usize % 3;
        match cut {
            0 => c.reset().unwrap(),
            1 => c = function_reset(c),
            _ => {
                let mut host = c.into_host();
                let number = host.device();
                host.system_mut().power_off(number);
                host.system_mut().power_on(number);
                c = Controller::start(host, Config::default()).unwrap();
            }
        }
        let mut is = vec![0; old.len()];
        c.read(5, &mut is).unwrap();
        let mut zeros = 0u64;
        for (at, (is, old)) in is.chunks(512).zip(old.chunks(512)).enumerate() {
            let zero = is.iter().all(|&byte| byte == 0);
            assert!(zero || is == old, "phase {phase}: block {at} is torn");
            zeros += u64::from(zero);
        }
        println!("phase {phase}: {zeros} of {blocks} blocks are zero");
        part[cut] |= 0 < zeros && zeros < blocks;
        c.write_zeroes(5, blocks).unwrap();
        c.read(5, &mut is).unwrap();
        assert!(is.iter().all(|&byte| byte == 0), "phase {phase}");
    }
    assert_eq!(part, [true; 3], "none was cut off in the middle");
    c.shutdown().unwrap();
}

/// Resets the function in the middle of what it does; it comes up anew.
fn function_reset(c: Controller<SimHost>) -> Controller<SimHost> {
    let mut host = c.into_host();
    let number = host.device();
    host.system_mut().function_reset(number);
    Controller::start(host, Config::default()).unwrap()
}

fn advance(c: &mut Controller<SimHost>, time: Time) {
    let system = c.host_mut().system_mut();
    system.advance_until(system.now() + time).unwrap();
}

/// A memory that answers after so long, slower than a reset waits for, and a Write Zeroes that it begins, then the reset.
fn fill_of_an_earlier_life(name: &str, config: DeviceConfig, latency: Time) -> Controller<SimHost> {
    let config = DeviceConfig {
        memory: Memory::Fixed(latency),
        ..config
    };
    let mut c = common::controller_of(name, config, MEDIA, Cpu::default().costs(), 0);
    let sqe = Sqe::of_blocks(io::WRITE_ZEROES, 1, 0, 2048);
    c.submit_raw(0, sqe, 0).unwrap();
    c.ring(0).unwrap();
    advance(&mut c, Time::us(40));
    function_reset(c)
}

/// Whatever a memory still zeroes for an earlier life, nothing that a later one has written is lost; until the memory has
/// answered, what is asked of it fails at once.
fn lives_are_apart(name: &str, config: DeviceConfig) {
    let mut c = fill_of_an_earlier_life(name, config, Time::us(3100));
    let data = [7; 4096];
    let asked = now(&c);
    for outcome in [
        c.write(512, &data),
        c.read(512, &mut [0; 4096]),
        c.write_zeroes(0, 4),
        c.write_zeroes(0, 256),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(
            error.contains("Write Fault") || error.contains("Unrecovered Read Error"),
            "{error}"
        );
    }
    let took = now(&c) - asked;
    assert!(took < Time::us(60), "{took}");
    advance(&mut c, Time::ms(4));
    c.write(512, &data).unwrap();
    for _ in 0..5 {
        let mut back = [1; 4096];
        c.read(512, &mut back).unwrap();
        assert_eq!(back, data, "at {}", now(&c));
        advance(&mut c, Time::ms(3));
    }
    c.write_zeroes(0, 2048).unwrap();
    c.shutdown().unwrap();
}

#[test]
fn lives_are_apart_in_the_memory() {
    lives_are_apart("default", common::design("default"));
}

#[test]
#[ignore = "compiles a device of its own"]
fn lives_are_apart_inside() {
    let (name, config) = inside();
    lives_are_apart(name, config);
}

/// A memory that never answers is no reason for commands to hang, nor for the controller not to be disabled.
#[test]
fn a_memory_that_is_lost_for_good() {
    let mut c = fill_of_an_earlier_life("default", common::design("default"), Time::ms(400_000));
    c = function_reset(c);
    for blocks in [4, 128] {
        c.write_zeroes(0, blocks).unwrap_err();
    }
    let cc = c.host_mut().read32(Bar::Nvme, 0x14).unwrap();
    c.host_mut().write32(Bar::Nvme, 0x14, cc & !1).unwrap();
    advance(&mut c, Time::us(100));
    let csts = c.host_mut().read32(Bar::Nvme, 0x1c).unwrap();
    assert_eq!(csts & 1, 0);
}

/// The same with reads that the memory owes.
#[test]
fn fills_behind_reads_that_are_lost() {
    let config = DeviceConfig {
        memory: Memory::Fixed(Time::ms(400_000)),
        ..common::design("default")
    };
    let mut c = common::controller_of("default", config, MEDIA, Cpu::default().costs(), 0);
    let buffer = c.host_mut().alloc(8192, 4096).unwrap();
    let read = Io::Read { lba: 0, blocks: 16 };
    c.submit(0, read, &Buffer::Contiguous(buffer), 0).unwrap();
    c.ring(0).unwrap();
    advance(&mut c, Time::us(40));
    let mut c = function_reset(c);
    let asked = now(&c);
    for blocks in [4, 128, 2048] {
        let error = c.write_zeroes(0, blocks).unwrap_err().to_string();
        assert!(error.contains("Write Fault"), "{error}");
    }
    let took = now(&c) - asked;
    assert!(took < Time::us(60), "{took}");
}
