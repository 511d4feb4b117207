//! Engines by their registers, their command pages and NVMe commands, on the fast engine: what tests/test_engines.py, test_scan.py and
//! test_pages.py ask of the RTL.

use std::path::Path;

use design::media::Turns;
use design::{Cpu, Design};
use driver::control::Delay;
use driver::launch::EngineRegisters;
use driver::page::{CommandPage, Ended, Submitted};
use driver::{Completion, Controller, Host, SimHost};
use fast::{Config, FastDevice};
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, RtlDevice};
use sim::{Bar, Clock, Device, HostConfig, LinkConfig, Media, Random, System, Time};
use spec::nvme::properties::{CC, CSTS, MSIX_ENTRY, MSIX_TABLE};
use spec::nvme::{status, Sqe, Status};
use spec::regs::command_page::line;

const MIB: u64 = 1 << 20;
/// Bits of the copy engine's return value.
const READ_ERROR: u32 = 1;
const WRITE_ERROR: u32 = 2;
const STOPPED: u32 = 4;
const INVALID: u32 = 8;
/// Engines of designs/engines.toml.
const COPY0: usize = 0;
const COPY1: usize = 1;
const SCAN0: usize = 2;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The device of a design: in the fast engine, or in RTL with `NEARSIDE_TEST_RTL` set, which answers the same.
fn device(design: &Design) -> Box<dyn Device + Send> {
    let media = Media::memory(design.media.bytes.0).unwrap();
    if std::env::var_os("NEARSIDE_TEST_RTL").is_some() {
        let config = DeviceConfig::of(design).unwrap();
        let mut progress = stderr_progress(&design.name);
        return Box::new(RtlDevice::build(config, media, &mut progress).unwrap());
    }
    let config = Config::of(design, &root()).unwrap();
    Box::new(FastDevice::new(config, media).unwrap())
}

/// A host of a device.
struct Bench {
    host: SimHost,
    engines: Vec<design::engine::Plugged>,
    pages: Vec<CommandPage>,
}

impl Bench {
    fn new(name: &str, values: &str) -> Bench {
        let design = Design::find(&root(), name).unwrap();
        let design = design.with_values(values).unwrap();
        let engines = design.engines(&root()).unwrap();
        let device = device(&design);
        let mut system = System::new(&HostConfig::default()).unwrap();
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, design.window_bytes()),
            (Bar::Control, 1 << 20),
        ];
        let number = system
            .add_device(device, &LinkConfig::default(), &windows)
            .unwrap();
        let page = |e: &design::engine::Plugged| CommandPage::new(e.page.unwrap());
        Bench {
            host: SimHost::new(system, number, Cpu::default().costs(), 0),
            pages: engines.iter().map(page).collect(),
            engines,
        }
    }

    fn registers(&self, engine: usize) -> EngineRegisters {
        EngineRegisters {
            base: self.engines[engine].offset,
            size: self.engines[engine].manifest.registers.0,
        }
    }

    fn store(&mut self, at: u64, data: &[u8]) {
        for (n, piece) in (0..).zip(data.chunks(4096)) {
            self.host.write(Bar::Pm, at + 4096 * n, piece).unwrap();
        }
    }

    fn load(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        for (n, piece) in (0..).zip(data.chunks_mut(4096)) {
            self.host.read(Bar::Pm, at + 4096 * n, piece).unwrap();
        }
        data
    }

    fn start(&mut self, engine: usize, arguments: &[u64]) {
        let registers = self.registers(engine);
        registers.start(&mut self.host, arguments).unwrap();
    }

    fn wait(&mut self, engine: usize) -> u32 {
        let deadline = self.host.now() + Time::ms(200);
        let registers = self.registers(engine);
        let result = registers.wait(&mut self.host, Time::ns(500), deadline, &mut || true);
        result.unwrap().expect("it has not ended in 200 ms")
    }

    fn launch(&mut self, engine: usize, arguments: &[u64]) -> u32 {
        self.start(engine, arguments);
        self.wait(engine)
    }
}

impl Bench {
    fn word(&mut self, at: u64) -> u32 {
        self.host.read32(Bar::Control, at).unwrap()
    }

    fn set(&mut self, at: u64, value: u32) {
        self.host.write32(Bar::Control, at, value).unwrap();
    }

    /// The scan's return value and count.
    fn scan(&mut self, range: Scan) -> (u32, u64) {
        let result = self.launch(SCAN0, &range.arguments());
        let registers = self.registers(SCAN0);
        let outputs = registers.outputs(&mut self.host, 6, 1).unwrap();
        (result, outputs[0])
    }

    fn submit(&mut self, engine: usize, arguments: &[u64]) -> Submitted {
        let submitted = self.pages[engine].submit(&mut self.host, arguments);
        submitted.unwrap()
    }

    fn finish(&mut self, engine: usize, command: Submitted) -> Ended {
        let deadline = self.host.now() + Time::ms(50);
        let page = &self.pages[engine];
        let ended = page.wait(
            &mut self.host,
            command,
            Time::ns(500),
            deadline,
            &mut || true,
        );
        ended.unwrap().expect("it has not ended in 50 ms")
    }

    /// The storage's channels as slow as a profile says, and each with a cap for writes.
    fn slow(&mut self, profile: &str, write_cap_gb_s: Option<f64>) {
        let mut profile = design::Profile::find(&root(), profile).unwrap();
        if let Some(cap) = write_cap_gb_s {
            profile.write.cap_gb_s = cap;
        }
        let turns = Turns {
            channels: 2,
            granule: 4096,
        };
        let all = profile.registers(Clock::default(), turns).unwrap();
        for (channel, registers) in (0..).zip(&all) {
            let delay = Delay::of_channel(channel);
            delay.set(&mut self.host, registers).unwrap();
        }
    }

    /// The same host with queues.
    fn controller(self) -> Queues {
        let config = driver::Config {
            io_queues: 2,
            ..driver::Config::default()
        };
        Queues {
            c: Controller::start(self.host, config).unwrap(),
            engines: self.engines,
        }
    }
}

/// What is scanned.
#[derive(Clone, Copy, Default)]
struct Scan {
    src: u64,
    bytes: u64,
    low: u64,
    high: u64,
    kind: u64,
    dst: u64,
}

impl Scan {
    fn arguments(&self) -> [u64; 6] {
        [
            self.src, self.bytes, self.low, self.high, self.kind, self.dst,
        ]
    }
}

/// An NVMe host.
struct Queues {
    c: Controller<SimHost>,
    engines: Vec<design::engine::Plugged>,
}

impl Queues {
    fn host(&mut self) -> &mut SimHost {
        self.c.host_mut()
    }

    fn rest(&mut self, ns: u64) {
        let system = self.c.host_mut().system_mut();
        let until = system.now() + Time::ns(ns);
        system.advance_until(until).unwrap();
    }

    fn execute(&mut self, sqe: Sqe) -> Completion {
        self.c.execute_raw(0, sqe).unwrap()
    }

    fn register(&mut self, engine: usize, at: u64) -> u32 {
        let at = self.engines[engine].offset + at;
        self.host().read32(Bar::Control, at).unwrap()
    }

    fn set(&mut self, engine: usize, at: u64, value: u32) {
        let at = self.engines[engine].offset + at;
        self.host().write32(Bar::Control, at, value).unwrap();
    }

    fn start(&mut self, engine: usize, arguments: &[u64]) {
        for (n, value) in (0..).zip(arguments) {
            self.set(engine, 0x20 + 0x10 * n, *value as u32);
            self.set(engine, 0x24 + 0x10 * n, (value >> 32) as u32);
        }
        self.set(engine, 0xC, 1);
        self.set(engine, 0, 1);
    }

    fn wait(&mut self, engine: usize) -> u32 {
        for _ in 0..4000 {
            if self.register(engine, 0xC) & 1 == 1 {
                return self.register(engine, 0x10);
            }
            self.rest(1000);
        }
        panic!("engine {engine} has not ended");
    }

    /// What has come of a queue: tags and statuses, sorted.
    fn ended(&mut self, queue: usize) -> Vec<(u64, Status)> {
        let mut all = Vec::new();
        self.rest(10_000); // the CPU may be busy
        while let Some(completion) = self.c.poll(queue).unwrap() {
            all.push((completion.tag, completion.status));
            self.rest(1000);
        }
        self.c.ring(queue).unwrap();
        all.sort_unstable_by_key(|(tag, _)| *tag);
        all
    }

    fn bytes(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.c.read(at / 512, &mut data).unwrap();
        data
    }
}

fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

#[test]
fn copies_of_any_alignment_and_length() {
    let mut b = Bench::new("engines", "");
    let mut random = Random::new(1);
    let span = 40_000u64;
    for base in [0, 5 * MIB, 1024 * MIB - 40_000] {
        let mut model = bytes(&mut random, span as usize);
        b.store(base, &model);
        for turn in 0..40 {
            let most = [1, 63, 64, 65, 4096, 300, 15_000][turn % 7];
            let len = 1 + random.below(most);
            let src = random.below(span / 2 - len);
            let dst = span / 2 + random.below(span / 2 - len);
            assert_eq!(b.launch(COPY0, &[base + src, base + dst, len]), 0);
            model.copy_within(src as usize..(src + len) as usize, dst as usize);
            assert!(b.load(base, span as usize) == model, "{src} {dst} {len}");
        }
    }
}

#[test]
fn copies_between_the_memories() {
    let mut b = Bench::new("engines", "");
    let data = bytes(&mut Random::new(2), 70_000);
    let local = 1024 * MIB;
    b.store(100, &data);
    assert_eq!(b.launch(COPY0, &[100, local + 7, data.len() as u64]), 0);
    assert!(b.load(local + 7, data.len()) == data);
    assert_eq!(
        b.launch(COPY0, &[local + 7, 90 * MIB + 1, data.len() as u64]),
        0
    );
    assert!(b.load(90 * MIB + 1, data.len()) == data);
    // The design bars the second one.
    assert_eq!(b.launch(COPY1, &[600 * MIB, local, 64]), WRITE_ERROR);
    assert_eq!(b.launch(COPY1, &[local, 600 * MIB, 64]), READ_ERROR);
    // Behind the local memory's end.
    assert_eq!(
        b.launch(COPY0, &[0, local + 64 * MIB - 64, 128]),
        WRITE_ERROR
    );
    assert_eq!(b.launch(COPY0, &[0, 1, local + 64 * MIB + 1]), INVALID);
}

#[test]
fn an_engine_stays_within_its_bounds() {
    let mut b = Bench::new("engines", "");
    let mut random = Random::new(4);
    for (src, dst, len, wrong) in [
        (0, 513 * MIB, 64, READ_ERROR), // another namespace
        (512 * MIB - 64, 513 * MIB, 128, READ_ERROR),
        (513 * MIB, 0, 64, WRITE_ERROR),
        (513 * MIB, 768 * MIB - 4096, 4097, WRITE_ERROR),
        (513 * MIB, 768 * MIB, 1, WRITE_ERROR),
        (64, 0, 64, READ_ERROR | WRITE_ERROR),
        (u64::MAX - 63, 513 * MIB, 64, READ_ERROR),
        (513 * MIB, 1 << 63, 64, WRITE_ERROR),
        (u64::MAX - 63, 513 * MIB, 65, INVALID),
        (513 * MIB, u64::MAX, 2, INVALID),
        (513 * MIB, 514 * MIB, 0, INVALID),
        (1, 2, u64::MAX, INVALID),
    ] {
        let mut around: Vec<u64> = [src, dst]
            .into_iter()
            .filter(|at| *at < 1024 * MIB)
            .map(|at| at.saturating_sub(8192))
            .collect();
        around.dedup();
        let before: Vec<Vec<u8>> = around
            .iter()
            .map(|&at| {
                let data = bytes(&mut random, 16384);
                b.store(at, &data);
                data
            })
            .collect();
        assert_eq!(
            b.launch(COPY1, &[src, dst, len]),
            wrong,
            "{src:#x} {dst:#x}"
        );
        for (&at, before) in around.iter().zip(&before) {
            let now = b.load(at, before.len());
            for n in (0..before.len()).filter(|&n| now[n] != before[n]) {
                let at = at + n as u64;
                assert!((512 * MIB..768 * MIB).contains(&at));
                assert!((dst..dst + len).contains(&at));
            }
        }
        // What could be copied has been, and it goes on working.
        let data = bytes(&mut random, 4096);
        b.store(520 * MIB, &data);
        assert_eq!(b.launch(COPY1, &[520 * MIB, 530 * MIB, 4096]), 0);
        assert!(b.load(530 * MIB, 4096) == data);
    }
    let data = bytes(&mut random, 192);
    b.store(512 * MIB - 64, &data);
    let wrong = b.launch(COPY1, &[512 * MIB - 64, 514 * MIB + 3, 192]);
    assert_eq!(wrong, READ_ERROR);
    // The line with the last byte that could not be read is left out.
    assert!(b.load(514 * MIB + 128, 67) == data[125..]);
}

#[test]
fn a_copy_can_be_stopped() {
    let mut b = Bench::new("engines", "");
    let data = bytes(&mut Random::new(5), 4096);
    b.store(0, &data);
    b.start(COPY0, &[0, 64 * MIB, 32 * MIB]);
    let registers = b.registers(COPY0);
    let again = registers.start(&mut b.host, &[0, 64 * MIB, 64]);
    assert!(again.unwrap_err().to_string().contains("works already"));
    assert_eq!(registers.ended(&mut b.host).unwrap(), None);
    registers.stop(&mut b.host).unwrap();
    assert_eq!(b.wait(COPY0), STOPPED);
    assert!(b.load(64 * MIB, 4096) == data);
    registers.stop(&mut b.host).unwrap(); // of what does not work
    assert_eq!(b.launch(COPY0, &[0, 64 * MIB, 64]), 0);
    // Beside its start.
    let base = registers.base;
    b.host.write32(Bar::Control, base + 0xC, 1).unwrap();
    b.host.write32(Bar::Control, base, 3).unwrap();
    assert_eq!(b.wait(COPY0), STOPPED);
}

#[test]
fn registers_answer_as_their_map_says() {
    let mut b = Bench::new("engines", "");
    let base = b.registers(COPY0).base;
    let read = |b: &mut Bench, at: u64| b.host.read32(Bar::Control, base + at).unwrap();
    for (at, value) in [(0, 4), (4, 0), (8, 0), (0xC, 0), (0x10, 0), (0x20, 0)] {
        assert_eq!(read(&mut b, at), value, "{at:#x}");
    }
    for at in (4..0x1000).step_by(4) {
        b.host.write32(Bar::Control, base + at, u32::MAX).unwrap();
    }
    let kept = |at| match at {
        0 => 4,
        4 | 8 => 1,
        0x20 | 0x24 | 0x30 | 0x34 | 0x40 | 0x44 => u32::MAX,
        _ => 0,
    };
    for at in (0..0x1000).step_by(4) {
        assert_eq!(read(&mut b, at), kept(at), "{at:#x}");
    }
    // Bytes of words, and words in one access.
    b.host.write(Bar::Control, base + 0x21, &[1, 2]).unwrap();
    assert_eq!(read(&mut b, 0x20), 0xFF02_01FF);
    b.host.write(Bar::Control, base + 0x20, &[7; 8]).unwrap();
    assert_eq!(
        (read(&mut b, 0x20), read(&mut b, 0x24)),
        (0x0707_0707, 0x0707_0707)
    );
    // Invalid; status is cleared by a 1 alone.
    b.host.write32(Bar::Control, base, 1).unwrap();
    assert_eq!(b.wait(COPY0), INVALID);
    b.host.write32(Bar::Control, base + 0xC, 0).unwrap();
    assert_eq!(read(&mut b, 0xC), 1);
    b.host.write32(Bar::Control, base + 0x10, 0).unwrap();
    b.host.write32(Bar::Control, base + 0xC, 1).unwrap();
    assert_eq!((read(&mut b, 0xC), read(&mut b, 0x10)), (0, INVALID));
    // Behind the last engine's registers there is nothing.
    let mut word = [0; 4];
    let behind = base + 0x1000 * b.engines.len() as u64;
    assert!(b.host.read(Bar::Control, behind, &mut word).is_err());
}

// ---- scans ----

/// Bits of its return value.
const SCAN_READ_ERROR: u32 = 1;
const SCAN_STOPPED: u32 = 2;
const SCAN_INVALID: u32 = 4;
const SCAN_WRITE_ERROR: u32 = 8;

/// The values next to which comparisons go wrong, of a kind: 0 u32, 1 u64, 2 i32, 3 i64.
fn edges(kind: u64) -> Vec<i128> {
    let bits = if kind & 1 == 1 { 64 } else { 32 };
    let (low, high): (i128, i128) = match kind & 2 {
        2 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    };
    let words = [1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) - 1, -(1 << 32)];
    let mut near = vec![low, low + 1, -1, 0, 1, high - 1, high];
    near.extend(words);
    near.retain(|value| (low..=high).contains(value));
    near
}

/// Values of a kind, and their bytes.
fn values(random: &mut Random, kind: u64, count: usize) -> (Vec<i128>, Vec<u8>) {
    let edges = edges(kind);
    let size = if kind & 1 == 1 { 8 } else { 4 };
    let values: Vec<i128> = (0..count)
        .map(|_| {
            edges[random.below(edges.len() as u64) as usize] / (1 + 2 * random.below(2)) as i128
        })
        .collect();
    let bytes = values
        .iter()
        .flat_map(|v| v.to_le_bytes().into_iter().take(size));
    let bytes = bytes.collect();
    (values, bytes)
}

/// Bit n, from the lowest bit of the first byte on: value n lies between the bounds.
fn bitmap(values: &[i128], low: i128, high: i128) -> Vec<u8> {
    let byte = |eight: &[i128]| {
        let bits = (0..).zip(eight);
        bits.fold(0, |b, (n, v)| b | u8::from((low..=high).contains(v)) << n)
    };
    values.chunks(8).map(byte).collect()
}

#[test]
fn values_of_all_kinds_between_all_bounds() {
    let mut b = Bench::new("engines", "");
    for kind in 0..4 {
        let mut random = Random::new(kind);
        let size = if kind & 1 == 1 { 8 } else { 4 };
        let (values, data) = values(&mut random, kind, 40_000 / size as usize);
        let base = 7 * MIB - 20_000 / size * size;
        b.store(base, &data);
        let all = values.len() as u64;
        let mut spans = vec![(0, all), (0, 1), (all - 1, all)];
        for turn in 0..40 {
            let first = random.below(all);
            let most = [1, 2, 16, 64, 1024, all][turn % 6];
            spans.push((first, all.min(first + 1 + random.below(most))));
        }
        let edges = edges(kind);
        for (first, limit) in spans {
            let mut draw = || edges[random.below(edges.len() as u64) as usize];
            let (low, high) = (draw(), draw());
            // With 32 bits the upper half of a bound says nothing.
            let mut bound = |v: i128| match size {
                8 => v as u64,
                _ => u64::from(v as u32) | random.below(1 << 32) << 32,
            };
            let range = Scan {
                src: base + first * size,
                bytes: (limit - first) * size,
                low: bound(low),
                high: bound(high),
                kind,
                dst: 0,
            };
            let part = &values[first as usize..limit as usize];
            let expected = part.iter().filter(|v| (low..=high).contains(v)).count();
            assert_eq!(
                b.scan(range),
                (0, expected as u64),
                "{kind} {first} {limit}"
            );
        }
    }
}

#[test]
fn bitmaps_of_all_kinds_of_values() {
    for granule in ["4 KiB", "8 KiB"] {
        let mut b = Bench::new("engines", &format!("granule = \"{granule}\""));
        for kind in 0..4 {
            let mut random = Random::new(kind);
            let size = if kind & 1 == 1 { 8 } else { 4 };
            let room = 100_000 / size;
            let (values, data) = values(&mut random, kind, room as usize);
            let edges = edges(kind);
            let base = 7 * MIB;
            b.store(base, &data);
            for turn in 0..40 {
                let first = random.below(room) * size / 64 * 64 / size;
                let most = [1, 2, 8, 16, 17, 1024, 5000, room][turn % 8];
                let limit = room.min(first + 1 + random.below(most));
                let mut draw = || edges[random.below(edges.len() as u64) as usize];
                let (one, other) = (draw(), draw());
                let (low, high) = (one.min(other), one.max(other));
                let odd = if size == 8 { 1 } else { 2 };
                let dst = 20 * MIB + 100 + random.below(20_000 / odd) * odd;
                let expected = bitmap(&values[first as usize..limit as usize], low, high);
                let around = bytes(&mut random, expected.len() + 200);
                b.store(dst - 100, &around);
                let range = Scan {
                    src: base + first * size,
                    bytes: (limit - first) * size,
                    low: low as u64,
                    high: high as u64,
                    kind: kind | 4,
                    dst,
                };
                let count = expected.iter().map(|b| b.count_ones() as u64).sum();
                assert_eq!(b.scan(range), (0, count));
                let found = b.load(dst - 100, around.len());
                // With 32 bits the last byte may be one of zeros.
                let written = expected.len() + usize::from(size == 4) * (expected.len() % 2);
                assert!(
                    found[100..100 + expected.len()] == expected,
                    "{first} {limit} {dst:#x}"
                );
                assert!(found[100 + expected.len()..100 + written]
                    .iter()
                    .all(|b| *b == 0));
                assert!(found[..100] == around[..100]);
                assert!(found[100 + written..] == around[100 + written..]);
            }
        }
    }
}

#[test]
fn wrong_ranges_and_places_are_told_and_it_works_on() {
    let mut b = Bench::new("engines", "");
    let end = 1024 * MIB;
    let range = |src, bytes, kind, dst| Scan {
        src,
        bytes,
        high: u64::MAX,
        kind,
        dst,
        ..Scan::default()
    };
    for (range, wrong) in [
        (range(0, 0, 0, 0), SCAN_INVALID),
        (range(2, 64, 0, 0), SCAN_INVALID),
        (range(0, 6, 0, 0), SCAN_INVALID),
        (range(4, 64, 1, 0), SCAN_INVALID),
        (range(0, 12, 3, 0), SCAN_INVALID),
        (range(0, 64, 8, 0), SCAN_INVALID),
        (range(0, 64, 1 << 32, 0), SCAN_INVALID),
        (range(u64::MAX - 63, 128, 0, 0), SCAN_INVALID),
        (range(8, u64::MAX - 7, 0, 0), SCAN_READ_ERROR), // ends at 2^64
        (range(0, u64::MAX - 3, 0, 0), SCAN_READ_ERROR),
        (range(u64::MAX - 63, 64, 0, 0), SCAN_READ_ERROR),
        (range(1 << 63, 8192, 0, 0), SCAN_READ_ERROR),
        (range(end, 4, 0, 0), SCAN_READ_ERROR),
        (range(end - 64, 128, 0, 0), SCAN_READ_ERROR),
        // Bitmaps.
        (range(32, 128, 4, 0), SCAN_INVALID),
        (range(0, 128, 4, 1), SCAN_INVALID),
        (range(0, 128, 4, u64::MAX - 1), SCAN_INVALID), // 4 bytes from there on
        (range(0, 128, 4, u64::MAX - 3), SCAN_WRITE_ERROR), // up to 2^64
        (range(0, 128, 4, end - 2), SCAN_WRITE_ERROR),
        (range(0, 128, 4, 1 << 63), SCAN_WRITE_ERROR),
    ] {
        if range.bytes > 1 << 40 && range.src == 0 {
            // All of the media, until it ends.
            b.start(SCAN0, &range.arguments());
            let registers = b.registers(SCAN0);
            registers.stop(&mut b.host).unwrap();
            assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
            continue;
        }
        let wide = |result| {
            if range.src == 8 {
                SCAN_READ_ERROR
            } else {
                result
            }
        };
        let (result, count) = b.scan(range);
        assert_eq!(wide(result), wrong, "{:x?}", range.arguments());
        assert!(wrong != SCAN_INVALID || count == 0);
        let fine = b.scan(Scan {
            src: end - 4096,
            bytes: 4096,
            high: u64::MAX,
            kind: 1,
            ..Scan::default()
        });
        assert_eq!(fine, (0, 512));
    }
    let last = range(0, 256, 4, end - 8);
    assert_eq!(b.scan(last), (0, 64));
    assert_eq!(b.load(end - 8, 8), [0xFF; 8]);
}

#[test]
fn a_scan_can_be_stopped() {
    let mut b = Bench::new("engines", "granule = \"8 KiB\"");
    let whole = Scan {
        bytes: 512 * MIB,
        ..Scan::default()
    };
    let registers = b.registers(SCAN0);
    b.start(SCAN0, &whole.arguments());
    registers.stop(&mut b.host).unwrap();
    assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
    registers.stop(&mut b.host).unwrap(); // of what does not work
                                          // A bitmap that was stopped leaves nothing to the next one.
    b.store(32 * MIB, &[0xA5; 4096]);
    for n in 0..12 {
        let long = Scan {
            bytes: 16 * MIB,
            kind: 4,
            dst: 48 * MIB + 2 + 4 * n,
            ..Scan::default()
        };
        b.start(SCAN0, &long.arguments());
        let until = b.host.now() + Time::ns(2000 + 137 * n);
        while b.host.now() < until {
            b.host.wait(until).unwrap();
        }
        registers.stop(&mut b.host).unwrap();
        assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
        let place = 32 * MIB + 128 * n;
        let short = Scan {
            bytes: 64,
            kind: 4,
            dst: place + 6,
            ..Scan::default()
        };
        assert_eq!(b.scan(short), (0, 16));
        let mut expected = [0xA5; 128];
        expected[6..8].fill(0xFF);
        assert_eq!(b.load(place, 128), expected);
    }
}

// ---- pages ----

#[test]
fn pieces_become_one_command_in_whatever_order_they_come() {
    let mut b = Bench::new("engines", "");
    let page = b.engines[COPY0].page.unwrap();
    let mut random = Random::new(3);
    for turn in 0..60u32 {
        let line = random.below(64);
        let (value, dst) = (turn as u8 + 1, 0x1000 + 64 * u64::from(turn));
        b.store(0, &[value]);
        let whole = command(&[0, dst, 1]);
        let mut cuts: Vec<usize> = (0..random.below(6))
            .map(|_| 1 + random.below(63) as usize)
            .collect();
        cuts.extend([0, 64]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
        for n in 0..pieces.len() {
            let other = random.below(pieces.len() as u64) as usize;
            pieces.swap(n, other);
        }
        let last = pieces.len() - 1;
        for (n, piece) in pieces.iter().enumerate() {
            if n == last {
                assert_eq!(b.word(page + line::ACCEPTED), turn, "{pieces:?}");
            }
            let at = page + 64 * line + piece.start as u64;
            // Pieces of another line in between.
            let other = page + 64 * ((line + 1) % 64);
            b.host.write(Bar::Control, other, &[0; 3]).unwrap();
            b.host
                .write(Bar::Control, at, &whole[piece.clone()])
                .unwrap();
        }
        b.until_done(page + 64 * line);
        assert_eq!(b.word(page + line::ENDED), turn + 1);
        assert_eq!(b.load(dst, 1), [value]);
    }
}

/// A command of the page.
fn command(arguments: &[u64]) -> [u8; 64] {
    let mut command = [0; 64];
    for (bytes, value) in command[8..].chunks_exact_mut(8).zip(arguments) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    command
}

impl Bench {
    /// Waits for the end of a line's command; its return value.
    fn until_done(&mut self, at: u64) -> u32 {
        for _ in 0..10_000 {
            if self.word(at + line::STATE) == 2 {
                return self.word(at + line::RESULT);
            }
        }
        panic!("the command at {at:#x} has not ended");
    }
}

#[test]
fn one_store_of_the_whole_page_is_as_many_commands() {
    let mut b = Bench::new("engines", "");
    let page = b.engines[COPY0].page.unwrap();
    b.store(0, &[9]);
    let all: Vec<u8> = (0..64).flat_map(|n| command(&[n, n + 1, 1])).collect();
    b.host.write(Bar::Control, page, &all).unwrap();
    assert_eq!(b.until_done(page + 63 * 64), 0);
    let counts = [line::ACCEPTED, line::ENDED, line::DROPPED].map(|at| b.word(page + at));
    assert_eq!(counts, [64, 64, 0]);
    assert_eq!(b.load(64, 1), [9], "in their order");
}

#[test]
fn a_busy_line_drops_what_is_written_and_holds_nobody_up() {
    let mut b = Bench::new("engines", "");
    let page = b.engines[COPY0].page.unwrap();
    let long = command(&[0, 8 * MIB, MIB]);
    for line in 0..64 {
        b.host.write(Bar::Control, page + 64 * line, &long).unwrap();
    }
    let empty = command(&[0, 0, 0]);
    b.host.write(Bar::Control, page + 5 * 64, &empty).unwrap();
    b.host.write(Bar::Control, page + 6 * 64 + 8, &[1]).unwrap();
    b.store(100, b"stored");
    assert_eq!(b.load(100, 6), b"stored");
    let state = [line::STATE, line::ACCEPTED, line::DROPPED].map(|at| b.word(page + 5 * 64 + at));
    assert_eq!(state, [1, 64, 2]);
    assert!(b.word(page + line::ENDED) < 2);
    // A function reset ends all of them, and forgets what was begun.
    let number = b.host.device();
    b.host.system_mut().function_reset(number);
    for line in [0, 5, 63] {
        let mut bytes = [1; 64];
        b.host
            .read(Bar::Control, page + 64 * line, &mut bytes)
            .unwrap();
        assert_eq!(bytes, [0; 64]);
    }
    b.store(7, &[3]);
    let again = command(&[7, 8, 1]);
    b.host.write(Bar::Control, page + 6 * 64, &again).unwrap();
    assert_eq!(b.until_done(page + 6 * 64), 0);
    assert_eq!(b.load(8, 1), [3]);
}

#[test]
fn what_is_no_page_and_no_command_is_an_error() {
    let mut b = Bench::new("engines", "");
    let (page, behind) = (b.engines[COPY0].page.unwrap(), 0x4_3000);
    for (offset, len) in [
        (behind, 64),
        (0x8_0000 - 64, 64),
        (behind - 4, 8),
        (page - 4, 8),
    ] {
        let mut data = vec![0; len];
        assert!(
            b.host.read(Bar::Control, offset, &mut data).is_err(),
            "{offset:#x}"
        );
        b.host.write(Bar::Control, offset, &data).unwrap();
    }
    for (offset, len) in [(0xFFF, 1), (0, 4096), (3, 13), (60, 8)] {
        let mut data = vec![1; len];
        b.host.read(Bar::Control, page + offset, &mut data).unwrap();
        assert_eq!(data, vec![0; len]);
    }
    for (n, byte) in (0..).zip([0, 7, 32, 63]) {
        let mut wrong = command(&[0, 64, 1]);
        wrong[byte] = 1;
        b.host.write(Bar::Control, page + 64 * n, &wrong).unwrap();
        assert_eq!(b.until_done(page + 64 * n), INVALID);
    }
}

#[test]
fn a_command_reads_what_was_stored_before_it() {
    let mut b = Bench::new("engines", "");
    // A line is held back for more than a microsecond, in each channel.
    b.slow("dram", Some(0.05));
    let mut random = Random::new(1);
    for turn in 0..12 {
        let len = [1, 64, 500, 9000][turn % 4];
        let data = bytes(&mut random, len);
        let at = random.below(4096);
        let last = len.min(50);
        b.store(at, &data);
        let from = at + (len - last) as u64;
        let copy = b.submit(COPY0, &[from, MIB, last as u64]);
        assert_eq!(
            b.finish(COPY0, copy),
            Ended {
                result: 0,
                value: 0
            }
        );
        assert!(b.load(MIB, last) == data[len - last..]);
    }
}

#[test]
fn a_full_page_holds_nobody_up() {
    let mut b = Bench::new("engines", "");
    let slow = b.submit(SCAN0, &[0, 8 * MIB, 0, 0, 0, 0]);
    let others: Vec<_> = (0..63)
        .map(|n| b.submit(SCAN0, &[0, 4, 0, n, 0, 0]))
        .collect();
    let full = b.pages[SCAN0].submit(&mut b.host, &[0, 4, 0, 0, 0, 0]);
    assert!(full.unwrap_err().to_string().contains("all 64 lines"));
    b.store(MIB, b"meanwhile");
    assert_eq!(b.load(MIB, 9), b"meanwhile");
    assert_eq!(b.pages[SCAN0].ended(&mut b.host, others[62]).unwrap(), None);
    assert_eq!(b.finish(SCAN0, others[62]).value, 1);
    assert_eq!(b.finish(SCAN0, slow).value, 2 * MIB - 3);
    let again = b.submit(SCAN0, &[0, 4, 0, u64::MAX, 0, 0]);
    assert_eq!(
        b.finish(SCAN0, again),
        Ended {
            result: 0,
            value: 1
        }
    );
    for (arguments, result) in [
        ([0, 0, 0, 1, 0, 0], SCAN_INVALID),
        ([0, 8, 0, 1, 8, 0], SCAN_INVALID),
        ([0, 8, 0, 1, 1 << 63, 0], SCAN_INVALID),
        ([1 << 62, 8, 0, 1, 1, 0], SCAN_READ_ERROR),
    ] {
        let wrong = b.submit(SCAN0, &arguments);
        assert_eq!(b.finish(SCAN0, wrong).result, result);
    }
}

#[test]
fn a_stop_of_the_registers_does_not_touch_a_command_of_the_page() {
    let mut b = Bench::new("engines", "");
    b.store(0, &[5; 4096]);
    let base = b.registers(COPY0).base;
    let long = b.submit(COPY0, &[0, 8 * MIB, MIB]);
    b.start(COPY0, &[0, 32 * MIB, 4096]);
    b.set(base, 2);
    // It has not begun, so it ends at once.
    assert_eq!(b.word(base + 0xC), 1);
    assert_eq!(b.wait(COPY0), STOPPED);
    assert_eq!(b.finish(COPY0, long).result, 0);
    assert_eq!(b.load(32 * MIB, 1), [0]);
}

// ---- NVMe commands ----

const COPY: u8 = 0xC4;
const COUNT: u8 = 0xC0;
const FILTER: u8 = 0xC8;

fn nvme_copy(from: u64, to: u64, blocks: u32) -> Sqe {
    Sqe::new(COPY)
        .with_nsid(1)
        .with_cdw(10, from as u32)
        .with_cdw(11, (from >> 32) as u32)
        .with_cdw(12, blocks - 1)
        .with_cdw(14, to as u32)
        .with_cdw(15, (to >> 32) as u32)
}

fn nvme_scan(opcode: u8, lba: u64, blocks: u32, kind: u32, high: u32) -> Sqe {
    Sqe::new(opcode)
        .with_nsid(1)
        .with_cdw(10, lba as u32)
        .with_cdw(11, (lba >> 32) as u32)
        .with_cdw(12, blocks.wrapping_sub(1))
        .with_cdw(13, kind)
        .with_cdw(14, high)
}

#[test]
fn nvme_commands_copy_blocks_and_wrong_ones_are_refused() {
    let mut q = Bench::new("engines", "").controller();
    let data = bytes(&mut Random::new(4), 256 * 512);
    q.c.write(2048, &data).unwrap();
    for (source, target, blocks) in [(0, 256, 1), (1, 257, 255), (7, 1000, 9), (8, 16, 8)] {
        let expected = q.bytes(MIB + 512 * source, 512 * blocks as usize);
        let done = q.execute(nvme_copy(2048 + source, 2048 + target, blocks));
        assert_eq!((done.status, done.result), (status::SUCCESS, 0));
        assert!(q.bytes(MIB + 512 * target, 512 * blocks as usize) == expected);
    }
    let blocks = 512 * MIB / 512;
    let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
    for (sqe, answer) in [
        (nvme_copy(0, blocks - 8, 8), status::SUCCESS),
        (nvme_copy(0, blocks - 7, 8), range),
        (nvme_copy(blocks - 7, 0, 8), range),
        (nvme_copy(0, u64::MAX - 3, 8), range),
        (nvme_copy(100, 107, 8), field),
        (nvme_copy(107, 100, 8), field),
        (nvme_copy(100, 100, 1), field),
        (nvme_copy(0, 100, (1 << 24) + 1), field),
        (nvme_copy(0, 100, 1).with_cdw(13, 1), field),
        (nvme_scan(COUNT, blocks - 1, 1, 0, 0), status::SUCCESS),
        (nvme_scan(COUNT, blocks - 1, 2, 0, 0), range),
        (nvme_scan(COUNT, u64::MAX, 2, 0, 0), range),
        (nvme_scan(COUNT, 0, (1 << 24) + 1, 0, 0), field),
        (nvme_scan(COUNT, 0, 1, 4, 0), field),
        (nvme_scan(FILTER, 0, 8, 0, 0), field), // the bitmap would lie in the range
        (nvme_scan(FILTER, 0, 9, 1 << 2, 0), field),
        (nvme_scan(FILTER, 9, 1, 1 << 2, 0), status::SUCCESS),
        (
            nvme_scan(FILTER, 0, 256, (blocks as u32 / 8 - 1) << 2, 0),
            status::SUCCESS,
        ),
        (
            nvme_scan(FILTER, 0, 257, (blocks as u32 / 8 - 1) << 2, 0),
            range,
        ),
    ] {
        assert_eq!(q.execute(sqe).status, answer, "{sqe:?}");
    }
}

#[test]
fn nvme_commands_count_and_filter() {
    let mut q = Bench::new("engines", "").controller();
    let (values, data) = values(&mut Random::new(6), 0, 128 * 77);
    q.c.write(6 * 2048 + 1, &data).unwrap();
    let expected = bitmap(&values, 0, 1 << 31);
    let count: u32 = expected.iter().map(|byte| byte.count_ones()).sum();
    let page = (9 * MIB / 4096) as u32;
    for opcode in [COUNT, FILTER] {
        let kind = if opcode == FILTER { page << 2 } else { 0 };
        let done = q.execute(nvme_scan(opcode, 6 * 2048 + 1, 77, kind, 1 << 31));
        assert_eq!((done.status, done.result), (status::SUCCESS, count));
    }
    assert!(q.bytes(9 * MIB, 4096)[..expected.len()] == expected);
}

#[test]
fn all_ways_to_an_engine_take_turns() {
    let mut b = Bench::new("engines", "");
    b.store(0, &[0; 4096]);
    let command = b.submit(SCAN0, &[0, 4 * MIB, 0, 0, 1, 0]);
    let page = b.engines[SCAN0].page.unwrap() + 64 * command.line;
    let mut q = b.controller();
    q.start(SCAN0, &[0, MIB, 0, 0, 0, 0]);
    let done = q.execute(nvme_scan(COUNT, 0, 8, 0, 0));
    assert_eq!((done.status, done.result), (status::SUCCESS, 1024));
    assert_eq!(q.wait(SCAN0), 0);
    // What the registers tell is of their own scan.
    assert_eq!(q.register(SCAN0, 0x80), (MIB / 4) as u32);
    let value = q
        .host()
        .read32(Bar::Control, page + line::VALUE_LO)
        .unwrap();
    assert_eq!(u64::from(value), 4 * MIB / 8);
}

#[test]
fn nvme_commands_end_by_themselves() {
    for profile in ["dram", "optane-dcpmm", "nand"] {
        let mut b = Bench::new("engines", "");
        let data: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
        b.store(4 * MIB, &data);
        b.slow(profile, None);
        let mut q = b.controller();
        // Nobody reads a register meanwhile: the device must not rest before the entry is posted, however late it is.
        for blocks in [1, 2, 7, 8, 9, 32] {
            let done = q.execute(nvme_scan(COUNT, 8192, blocks, 0, 499));
            assert_eq!(
                (done.status, done.result),
                (status::SUCCESS, 500.min(128 * blocks))
            );
        }
        assert_eq!(q.execute(nvme_copy(8192, 0, 32)).status, status::SUCCESS);
        assert!(q.bytes(0, data.len()) == data);
    }
}

#[test]
fn credits_and_weights_may_change_while_engines_work() {
    let mut b = Bench::new("engines", "");
    let mut random = Random::new(7);
    let data = bytes(&mut random, 300_000);
    b.store(64 * MIB, &data);
    for turn in 0..12 {
        let dst = (70 + turn) * MIB + 3;
        b.start(COPY0, &[64 * MIB, dst, data.len() as u64]);
        for _ in 0..12 {
            let master = random.below(5) * spec::regs::qos::ENGINE_STRIDE;
            for register in [0, 4, 8] {
                let value = [1, 2, 3, 8, 100][random.below(5) as usize];
                b.set(spec::bar4::QOS + master + register, value);
            }
        }
        assert_eq!(b.wait(COPY0), 0);
        assert!(b.load(dst, data.len()) == data);
    }
}

/// A copy of the registers that lasts for 1 ms, and an NVMe command of the same engine, which waits for it.
fn waits_for_a_long_copy() -> Queues {
    let mut q = Bench::new("engines", "").controller();
    q.start(COPY0, &[0, 16 * MIB, 16 * MIB]);
    q.c.submit_raw(1, nvme_copy(0, 8, 1), 0).unwrap();
    q.c.ring(1).unwrap();
    q.rest(50_000);
    assert_eq!(q.ended(1), [], "it waits");
    q
}

fn abort(q: &mut Queues, cid: u32) -> bool {
    let sqe = Sqe::new(0x08).with_cdw(10, cid << 16 | 2);
    q.c.admin(sqe, "Abort").unwrap().result & 1 == 0
}

#[test]
fn an_abort_ends_a_command_whose_engine_works_on_something_else() {
    let mut q = waits_for_a_long_copy();
    assert!(abort(&mut q, 0));
    assert_eq!(
        q.register(COPY0, 0) & 4,
        0,
        "the copy of the registers goes on"
    );
    assert_eq!(q.ended(1), [(0, status::ABORT_REQUESTED)]);
    assert!(!abort(&mut q, 0));
    q.set(COPY0, 0, 2);
    assert_eq!(q.wait(COPY0), STOPPED);
}

#[test]
fn a_controller_stops_whatever_an_engine_does_for_others() {
    let mut q = waits_for_a_long_copy();
    let cc = q.host().read32(Bar::Nvme, CC).unwrap();
    q.host().write32(Bar::Nvme, CC, cc & !1).unwrap();
    q.rest(50_000);
    assert_eq!(q.host().read32(Bar::Nvme, CSTS).unwrap() & 1, 0);
    assert_eq!(
        q.register(COPY0, 0) & 4,
        0,
        "the copy of the registers goes on"
    );
    q.c.reset().unwrap();
    assert_eq!(q.wait(COPY0), 0);
    assert_eq!(q.execute(nvme_copy(0, 8, 1)).status, status::SUCCESS);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    FunctionReset,
    Power,
    Disable,
    Shutdown,
    Abort,
    Deletion,
    Stop,
}

const BLOCKS: u32 = 1024;
const SOURCE: u64 = 64 * MIB;
const TARGET: u64 = 65 * MIB;
const OTHER: u64 = 66 * MIB;

fn begin(q: &mut Queues) {
    let copy = nvme_copy(SOURCE / 512, TARGET / 512, BLOCKS);
    q.c.submit_raw(1, copy, 0).unwrap();
    for tag in 1..3 {
        let scan = nvme_scan(COUNT, SOURCE / 512, BLOCKS, 0, u32::MAX);
        q.c.submit_raw(1, scan, tag).unwrap();
    }
    q.c.ring(1).unwrap();
    q.start(COPY0, &[SOURCE, OTHER, u64::from(BLOCKS) * 512]);
}

fn over(mut q: Queues, cut: Cut, first: u32) -> Queues {
    let one_of = |ended: Vec<(u64, Status)>, other: Status| {
        assert_eq!(ended.len(), 3);
        let fits = |(_, s): &(u64, Status)| *s == status::SUCCESS || *s == other;
        assert!(ended.iter().all(fits), "{ended:?}");
    };
    let number = q.host().device();
    match cut {
        Cut::FunctionReset => q.host().system_mut().function_reset(number),
        Cut::Power => {
            q.host().system_mut().power_off(number);
            q.host().system_mut().power_on(number);
        }
        Cut::Disable | Cut::Shutdown => {
            let cc = q.host().read32(Bar::Nvme, CC).unwrap();
            let (off, mask, wanted) = match cut {
                Cut::Disable => (cc & !1, 1, 0),
                _ => (cc | 1 << 14, 0xC, 8),
            };
            q.host().write32(Bar::Nvme, CC, off).unwrap();
            let mut turns = 0;
            while q.host().read32(Bar::Nvme, CSTS).unwrap() & mask != wanted {
                q.rest(1000);
                turns += 1;
                assert!(turns < 200, "{cut:?} takes long");
            }
            // The copy of the registers is none of the controller's.
            assert_eq!(q.wait(COPY0), 0);
            q.c.reset().unwrap();
            return q;
        }
        Cut::Abort => {
            (first..first + 3).for_each(|cid| {
                abort(&mut q, cid);
            });
            assert_eq!(q.wait(COPY0), 0);
            q.rest(20_000);
            let ended = q.ended(1);
            one_of(ended, status::ABORT_REQUESTED);
            return q;
        }
        Cut::Deletion => {
            let delete = Sqe::delete_io_sq(2);
            q.c.admin(delete, "Delete I/O Submission Queue").unwrap();
            let ended = q.ended(1);
            one_of(ended, status::ABORTED_SQ_DELETION);
            assert_eq!(q.wait(COPY0), 0);
            q.c.reset().unwrap();
            return q;
        }
        Cut::Stop => {
            q.set(COPY0, 0, 2);
            assert!([0, STOPPED].contains(&q.wait(COPY0)));
            q.rest(1_000_000);
            let ended = q.ended(1);
            one_of(ended, status::SUCCESS);
            return q;
        }
    }
    let engines = q.engines;
    let host = q.c.into_host();
    let config = driver::Config {
        io_queues: 2,
        ..driver::Config::default()
    };
    Queues {
        c: Controller::start(host, config).unwrap(),
        engines,
    }
}

#[test]
fn whatever_ends_engines_at_work_leaves_lines_old_or_new() {
    use Cut::*;
    for cut in [
        FunctionReset,
        Power,
        Disable,
        Shutdown,
        Abort,
        Deletion,
        Stop,
    ] {
        let len = BLOCKS as usize * 512;
        let mut q = Bench::new("engines", "").controller();
        let mut half = false;
        let mut random = Random::new(8);
        for moment in 0..12 {
            let (source, old) = (bytes(&mut random, len), bytes(&mut random, len));
            q.c.write(SOURCE / 512, &source).unwrap();
            for at in [TARGET, OTHER] {
                q.c.write(at / 512, &old).unwrap();
            }
            begin(&mut q);
            q.rest(1500 + 9_973 * moment % 190_000);
            q = over(q, cut, 6 * moment as u32);
            for at in [TARGET, OTHER] {
                let is = q.bytes(at, len);
                let lines = is.chunks(64).zip(source.chunks(64).zip(old.chunks(64)));
                let mut new = 0;
                for (is, (source, old)) in lines {
                    assert!(is == source || is == old, "{cut:?} {moment}");
                    new += usize::from(is == source);
                }
                half |= new > 0 && new < len / 64;
            }
            for engine in [COPY0, SCAN0] {
                assert_eq!(q.register(engine, 0) & 4, 4, "{cut:?} {moment}: idle");
            }
            // All goes on.
            begin(&mut q);
            assert_eq!(q.wait(COPY0), 0);
            q.rest(1_000_000);
            let fine = [0, 1, 2].map(|tag| (tag, status::SUCCESS));
            assert_eq!(q.ended(1), fine, "{cut:?} {moment}");
            assert!(q.bytes(TARGET, len) == source && q.bytes(OTHER, len) == source);
        }
        assert!(half, "{cut:?}: nothing was half done");
    }
}

// ---- interrupts ----

#[test]
fn an_engine_tells_its_end() {
    let mut b = Bench::new("engines", "");
    let (vector, base) = (u64::from(b.engines[COPY0].vector), b.registers(COPY0).base);
    let entry = MSIX_TABLE + MSIX_ENTRY * vector;
    // Into host memory: a message is a write.
    let place = b.host.alloc(4096, 4096).unwrap();
    for (n, value) in [place as u32, (place >> 32) as u32, 0x77, 0]
        .into_iter()
        .enumerate()
    {
        b.host
            .write32(Bar::Nvme, entry + 4 * n as u64, value)
            .unwrap();
    }
    let told = |b: &mut Bench| {
        let until = b.host.now() + Time::us(5);
        while b.host.now() < until {
            b.host.wait(until).unwrap();
        }
        let mut word = [0; 4];
        b.host.dma_read(place, &mut word);
        b.host.dma_write(place, &[0; 4]);
        u32::from_le_bytes(word) == 0x77
    };
    for (enable, sources, expected) in [(0, 1, false), (1, 0, false), (1, 1, true), (1, 1, true)] {
        b.set(base + 0xC, 1);
        b.set(base + 8, sources);
        b.set(base + 4, enable);
        assert_eq!(b.launch(COPY0, &[0, MIB, 4096]), 0);
        assert_eq!(told(&mut b), expected, "{enable} {sources}");
    }
    // It rises when it comes to be so.
    b.set(base + 4, 0);
    b.set(base + 4, 1);
    assert!(told(&mut b));
    b.set(base + 4, 1);
    assert!(!told(&mut b));
    // Masked it is pending.
    b.host.write32(Bar::Nvme, entry + 12, 1).unwrap();
    assert_eq!(b.launch(COPY0, &[0, MIB, 4096]), 0);
    assert!(!told(&mut b));
    let pending = spec::regs::nvme::MSIX_PENDING + vector / 32 * 4;
    assert_eq!(
        b.host.read32(Bar::Nvme, pending).unwrap(),
        1 << (vector % 32)
    );
    b.host.write32(Bar::Nvme, entry + 12, 0).unwrap();
    assert!(told(&mut b));
}

#[test]
fn an_engine_that_only_the_rtl_has_is_refused_by_name() {
    let values = "engine = [{ name = \"box\", engine = \"tests/engines/mailbox\" }]";
    let design = Design::find(&root(), "engines")
        .unwrap()
        .with_values(values)
        .unwrap();
    let config = Config::of(&design, &root()).unwrap();
    let media = Media::memory(design.media.bytes.0).unwrap();
    let error = FastDevice::new(config, media).err().unwrap();
    let expected = "engine box (tests/engines/mailbox): the fast engine does not have it, only the rtl engine can run it";
    assert_eq!(error, expected);
}

// ---- rates ----

/// GB/s of the claims `engine.copy.rate`, `engine.scan.rate` and `engine.scan.filter` with the RTL (docs/validation.md).
const COPY_RATE: f64 = 15.43;
const SCAN_RATE: f64 = 30.60;
const FILTER_RATE: f64 = 29.79;

fn rate(engine: usize, arguments: &[u64]) -> f64 {
    let mut b = Bench::new("engines", "");
    let begin = b.host.now();
    assert_eq!(b.launch(engine, arguments), 0);
    let rate = (32 * MIB) as f64 / (b.host.now() - begin).as_ns();
    println!("engine {engine}: {rate:.2} GB/s");
    rate
}

#[test]
fn scans_are_as_fast_as_those_of_the_rtl() {
    for (kind, expected) in [(0, SCAN_RATE), (4, FILTER_RATE)] {
        let rate = rate(SCAN0, &[0, 32 * MIB, 0, (1 << 30) - 1, kind, 64 * MIB]);
        assert!((rate / expected - 1.0).abs() < 0.05, "{rate} GB/s");
    }
}

#[test]
fn a_copy_is_as_fast_as_that_of_the_rtl() {
    let rate = rate(COPY0, &[0, 256 * MIB, 32 * MIB]);
    assert!((rate / COPY_RATE - 1.0).abs() < 0.05, "{rate} GB/s");
}
