// SPDX-License-Identifier: Apache-2.0

//! One host with two devices, each on another model: both work at the same time, and with each
//! other.

use design::Design;
use device::{Factory, Model, RtlOptions};
use driver::workload::{run_job, IoJob};
use driver::{Buffer, DriverConfig, IoCommand, NvmeDriver, SharedHost};
use host::{Error, HostParameters, Mapping, MemoryType, Program, SharedMachine};
use rtl::bitstream::stderr_progress;
use sim::{Bar, Random, Time};
use testbed::Testbed;

const MODELS: [Model; 2] = [Model::Rtl, Model::Fast];
/// Addresses of jobs, and of loads and stores: apart from each other.
const SPAN: u64 = 1 << 20;
const STORES: u64 = 2 << 20;
/// Where a peer's data are written, and read.
const PEER: u64 = 4 << 20;
const QUEUES: usize = 2;
/// Bytes that go from device to device.
const MOVED: u32 = 256 << 10;
const BLOCK: u32 = 512;

/// When a program began and ended.
type Span = Result<(Time, Time), Error>;

/// A host, and a driver for each of its devices, each on a different CPU.
struct Bench {
    shared: SharedMachine,
    drivers: Vec<NvmeDriver<SharedHost>>,
}

fn bench(models: [Model; 2]) -> Bench {
    let design = Design::find("default").unwrap();
    let factories = models.map(|model| {
        let mut progress = stderr_progress(&design.name);
        Factory::new(&design, model, &RtlOptions::default(), &mut progress).unwrap()
    });
    let testbed = Testbed::of(&factories[0]).host(HostParameters::default());
    let testbed = testbed.beside(&factories[1], factories[1].media().unwrap(), None);
    let testbed = testbed.build().unwrap();
    let drivers = (0..models.len()).map(|n| {
        let config = DriverConfig {
            io_queues: QUEUES as u16,
            io_entries: 64,
            ..DriverConfig::default()
        };
        NvmeDriver::start(testbed.host(n, 0, 8 * (n + 1)), config).unwrap()
    });
    Bench {
        drivers: drivers.collect(),
        shared: testbed.machine().clone(),
    }
}

/// Stores and loads of a device's PM window; loads return what was stored.
fn window(cpu: &host::Cpu, device: usize) -> Result<(), Error> {
    let mapping = Mapping::pm(device, MemoryType::Uncached);
    let mut random = Random::new(device as u64);
    for n in 0..40 {
        let at = STORES + 64 * n;
        let line: Vec<u8> = (0..64).map(|_| random.below(256) as u8).collect();
        cpu.store(&mapping, at, &line)?;
        let mut found = [0; 64];
        cpu.load(&mapping, at, &mut found)?;
        assert_eq!(found[..], line, "device {device} at {at:#x}");
    }
    Ok(())
}

impl Bench {
    /// Jobs of both drivers with loads and stores of both windows; returns when each job began and
    /// ended.
    fn work(&mut self) -> Vec<(Time, Time)> {
        let mut programs: Vec<(usize, Program<'_, Span>)> = Vec::new();
        for (n, driver) in self.drivers.iter_mut().enumerate() {
            let job = IoJob {
                span: SPAN,
                max_bytes: 16384,
                queues: QUEUES,
                depth: 8,
                commands: 300,
                read_percent: 50,
                verify: true,
                seed: n as u64,
                ..IoJob::default()
            };
            let work = move |cpu: &host::Cpu| {
                let begin = cpu.now();
                let done = run_job(driver, &job, &mut |_, _| true).unwrap();
                assert!(done.verified_bytes > 0);
                Ok((begin, driver.now()))
            };
            programs.push((8 * (n + 1), Box::new(work)));
            let loads = move |cpu: &host::Cpu| {
                let begin = cpu.now();
                window(cpu, n).map(|()| (begin, cpu.now()))
            };
            programs.push((n, Box::new(loads)));
        }
        let spans = self.shared.run(programs).unwrap();
        spans.into_iter().map(Result::unwrap).collect()
    }

    /// Moves data of a device's media to its peer's window, and from there to another address of
    /// the device.
    fn through_peer(&mut self, n: usize) {
        let mut random = Random::new(7 + n as u64);
        let words = 0..MOVED / 8;
        let data: Vec<u8> = words.flat_map(|_| random.next().to_le_bytes()).collect();
        let blocks = MOVED / BLOCK;
        let (from, to) = (1 << 14, 1 << 15);
        let peer = (n + 1) % self.drivers.len();
        let window = self
            .shared
            .with_machine(|machine| machine.system().window(peer, Bar::Pm).unwrap());
        // Pages of both channels of the peer, in another order than the data.
        let pages = (0..u64::from(MOVED / 4096)).rev();
        let buffer = Buffer::Pages {
            offset: 0,
            pages: pages.map(|page| window + PEER + 4096 * page).collect(),
        };
        let driver = &mut self.drivers[n];
        driver.write(from, &data).unwrap();
        for io in [
            IoCommand::Read { lba: from, blocks },
            IoCommand::Write { lba: to, blocks },
        ] {
            driver.execute(0, io, &buffer).unwrap().check().unwrap();
        }
        let mut found = vec![0; data.len()];
        driver.read(to, &mut found).unwrap();
        assert!(found == data, "device {n}: what came back from its peer");
        let mut there = vec![0; data.len()];
        let driver = &mut self.drivers[peer];
        driver.read(PEER / u64::from(BLOCK), &mut there).unwrap();
        let last = data.chunks(4096).rev().flatten();
        assert!(there.iter().eq(last), "device {n}: what its peer holds");
    }
}

/// Both orders: which is the first device of the host must not matter.
#[test]
#[ignore = "long: builds a device"]
fn mixed_models_work_in_one_host() {
    for models in [MODELS, [Model::Fast, Model::Rtl]] {
        let mut bench = bench(models);
        let spans = bench.work();
        for window in spans.windows(2) {
            let ((begin, end), (other, last)) = (window[0], window[1]);
            assert!(begin < last && other < end, "not at the same time");
        }
        for n in 0..models.len() {
            bench.through_peer(n);
        }
    }
}

/// The same system gives the same times.
#[test]
#[ignore = "long: builds a device"]
fn mixed_models_repeat() {
    assert_eq!(bench(MODELS).work(), bench(MODELS).work());
}
