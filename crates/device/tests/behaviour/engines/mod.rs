// SPDX-License-Identifier: Apache-2.0

//! Engines by their registers, their command pages and NVMe commands. tests/test_engines.py,
//! test_scan.py and test_pages.py test the same from Python.

mod copy;
mod cuts;
mod doorbells;
mod interrupts;
mod nearpm;
mod nearpm_alike;
mod nearpm_beside;
mod nearpm_errors;
mod nearpm_faults;
mod nearpm_tracked;
mod nvme;
mod pages;
mod rates;
mod scan;
mod tables;

use design::Design;
use driver::control::DelayRegisters;
use driver::launch::EngineRegisters;
use driver::page::{CommandPage, CommandResult, SubmittedCommand};
use driver::{Completion, Host, NvmeDriver, SimHost};
use sim::{Bar, Clock, Random, Time};
use spec::nvm_delay::Interleave;
use spec::nvme::{Sqe, Status};

use crate::common::{self, design};

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

/// The host of a device.
struct Bench {
    host: SimHost,
    engines: Vec<design::engine::EngineInstance>,
    pages: Vec<CommandPage>,
}

impl Bench {
    /// A device of `designs/engines.toml`, with other values.
    fn new(values: &str) -> Bench {
        Bench::of(&design("engines").with_values(values).unwrap())
    }

    fn of(design: &Design) -> Bench {
        let engines = design.engines().unwrap();
        let device = common::device(&common::factory(design), design);
        let page = |e: &design::engine::EngineInstance| CommandPage::new(e.page.unwrap());
        Bench {
            host: common::host_of(design, device),
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
    fn scan(&mut self, range: ScanRange) -> (u32, u64) {
        let result = self.launch(SCAN0, &range.arguments());
        let registers = self.registers(SCAN0);
        let outputs = registers.outputs(&mut self.host, 6, 1).unwrap();
        (result, outputs[0])
    }

    fn submit(&mut self, engine: usize, arguments: &[u64]) -> SubmittedCommand {
        let submitted = self.pages[engine].submit(&mut self.host, arguments);
        submitted.unwrap()
    }

    fn finish(&mut self, engine: usize, command: SubmittedCommand) -> CommandResult {
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

    /// Makes the storage's channels as slow as a profile, with a write cap for each.
    fn slow(&mut self, profile: &str, write_cap_gb_s: Option<f64>) {
        let mut profile = design::Profile::find(profile).unwrap();
        if let Some(cap) = write_cap_gb_s {
            profile.write.cap_gb_s = cap;
        }
        let turns = Interleave {
            channels: 2,
            granule: 4096,
        };
        let all = profile.registers(Clock::default(), turns).unwrap();
        for (channel, registers) in (0..).zip(&all) {
            let delay = DelayRegisters::of_channel(channel);
            delay.set(&mut self.host, registers).unwrap();
        }
    }

    /// The same host with queues.
    fn controller(self) -> Queues {
        let config = driver::DriverConfig {
            io_queues: 2,
            ..driver::DriverConfig::default()
        };
        Queues {
            c: NvmeDriver::start(self.host, config).unwrap(),
            engines: self.engines,
        }
    }
}

/// The arguments of a scan.
#[derive(Clone, Copy, Default)]
struct ScanRange {
    src: u64,
    bytes: u64,
    low: u64,
    high: u64,
    kind: u64,
    dst: u64,
}

impl ScanRange {
    fn arguments(&self) -> [u64; 6] {
        [
            self.src, self.bytes, self.low, self.high, self.kind, self.dst,
        ]
    }
}

/// An NVMe host.
struct Queues {
    c: NvmeDriver<SimHost>,
    engines: Vec<design::engine::EngineInstance>,
}

impl Queues {
    fn host(&mut self) -> &mut SimHost {
        self.c.host_mut()
    }

    fn rest(&mut self, ns: u64) {
        common::rest(self.host(), Time::ns(ns));
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

    /// The completions that have arrived in a queue: tags and statuses, sorted.
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
