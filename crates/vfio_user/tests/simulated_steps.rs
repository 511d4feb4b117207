// SPDX-License-Identifier: Apache-2.0

//! How far an emulator lets devices run at a time makes no difference for what it sees.
//! `NEARSIDE_MODEL` names the model; the default is the fast one.

mod common;

use common::emulator::{Emulator, NEVER};
use common::machine::{self, VECTORS};
use common::*;
use design::Design;
use device::{Model, RtlOptions};
use driver::workload::{run_job, BufferLayout, IoJob};
use driver::{CpuWork, DriverConfig, Host, NvmeDriver, Result};
use sim::{Bar, HostConfig, Media, Random, Time};
use vfio_user::Server;

/// How an emulator lets time pass.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// An idle CPU waits for an interrupt.
    Idle,
    /// No further than a device may act.
    Next,
    /// By random steps of at most so much, too.
    Random(Time, u64),
}

const TABLE: u64 = 0x2000;

/// A machine that does the same whatever its steps are, and records what it sees.
struct Stepper {
    inner: Emulator,
    /// PM window of another device.
    other: Option<vfio_user_client::Client>,
    steps: Steps,
    /// Of the steps.
    step: Random,
    /// Of what the machine does.
    random: Random,
    polls: bool,
    masked: Option<u64>,
    watched: Vec<(u64, u64)>,
    log: Vec<String>,
}

impl Stepper {
    fn new(dir: &Dir, devices: usize, steps: Steps, polls: bool, seed: u64) -> Stepper {
        let inner = Emulator::new(&dir.socket(0), &dir.path().join("clock"));
        let other = (devices > 1).then(|| vfio_user_client::Client::new(&dir.socket(1)).unwrap());
        let steps_seed = match steps {
            Steps::Random(_, seed) => seed,
            _ => 1,
        };
        let mut stepper = Stepper {
            inner,
            other,
            steps,
            step: Random::new(steps_seed),
            random: Random::new(seed),
            polls,
            masked: None,
            watched: Vec::new(),
            log: Vec::new(),
        };
        stepper.inner.now += stepper.inner.clock.take_stall();
        stepper.inner.now = Time::us(200).max(stepper.inner.now);
        stepper
    }

    fn note(&mut self, text: String) {
        let now = self.inner.now.0;
        self.log.push(format!("{now} {text}"));
    }

    fn advance(&mut self, until: Time, idle: bool) -> u64 {
        let [reached, interrupts, next] = self.inner.clock.advance(until.0, idle);
        if reached < NEVER {
            assert!(reached >= self.inner.now.0 || !idle);
            self.inner.now = Time(reached).max(self.inner.now);
        }
        assert!(
            next > self.inner.now.0 || idle,
            "{next} {:?}",
            self.inner.now
        );
        interrupts
    }

    fn snapshot(&mut self) -> Vec<u8> {
        let ranges = self.watched.clone();
        let mut all = Vec::new();
        for (addr, bytes) in ranges {
            let mut data = vec![0; bytes as usize];
            self.inner.dma_read(addr, &mut data);
            all.extend(data);
        }
        all
    }

    /// Runs to a time; with `wakes`, returns at an interrupt or a watched write.
    fn run_to(&mut self, until: Time, wakes: bool) -> bool {
        let before = self.snapshot();
        loop {
            let next = Time(self.inner.clock.next());
            let now = self.inner.now;
            if next <= now {
                if self.advance(now, false) > 0 && wakes {
                    return true;
                }
                if wakes && self.polls && self.snapshot() != before {
                    return true;
                }
                continue;
            }
            if now >= until {
                return false;
            }
            let mut target = until.min(next);
            match self.steps {
                Steps::Idle if wakes && !self.polls => {
                    let woken = self.advance(until, true) > 0;
                    if !woken {
                        self.inner.now = until;
                    }
                    return woken;
                }
                Steps::Random(most, _) if next.saturating_sub(now) < Time::us(20) => {
                    let step = 1 + self.step.below(most.0);
                    target = target.min(now + Time(step));
                }
                _ => {}
            }
            self.inner.now = target;
            if target == until && self.step.below(2) == 0 && target < next {
                return false;
            }
            if self.advance(target, false) > 0 && wakes {
                return true;
            }
            if wakes && self.polls && self.snapshot() != before {
                return true;
            }
        }
    }

    /// The CPU is busy for some time.
    fn work(&mut self, most: Time) {
        let span = self.random.below(most.0 + 1);
        let until = self.inner.now + Time(span);
        self.run_to(until, false);
    }

    fn mask(&mut self, vector: u64, masked: bool) {
        self.inner.clock.set_now(self.inner.now);
        let data = u32::from(masked).to_le_bytes();
        let offset = TABLE + 16 * vector + 12;
        self.inner.client.region_write(BAR0, offset, &data).unwrap();
        self.inner.now += self.inner.clock.take_stall();
    }

    /// Something else that a guest may do.
    fn disturb(&mut self) {
        self.work(Time::us(3));
        match self.random.below(8) {
            0 => {
                let mut data = [0; 64];
                let offset = self.random.below(1 << 18) * 64;
                self.inner.read(Bar::Pm, offset, &mut data).unwrap();
                self.note(format!("pm {offset} {data:?}"));
            }
            1 => {
                let offset = self.random.below(1 << 18) * 64;
                let data = self.random.next().to_le_bytes();
                self.inner.write(Bar::Pm, offset, &data).unwrap();
                self.note("pm write".into());
            }
            2 => {
                if let Some(other) = &mut self.other {
                    let mut data = [0; 8];
                    self.inner.clock.set_now(self.inner.now);
                    other
                        .region_read(BAR2, self.random.below(1000) * 8, &mut data)
                        .unwrap();
                    self.inner.now += self.inner.clock.take_stall();
                    self.note("other".into());
                }
            }
            3 if self.masked.is_none() && !self.polls => {
                let vector = self.random.below(5);
                self.mask(vector, true);
                self.masked = Some(vector);
                self.note(format!("mask {vector}"));
            }
            4 => {
                let mut data = [0; 4];
                self.inner.read(Bar::Nvme, 0x1C, &mut data).unwrap();
                self.note(format!("csts {data:?}"));
            }
            _ => {}
        }
        self.work(Time::us(1));
    }
}

impl Host for Stepper {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.run_to(self.inner.now, false);
        self.inner.read(bar, offset, data)?;
        self.note(format!("read {bar:?} {offset:#x} {data:?}"));
        Ok(())
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        if offset >= 0x1000 {
            self.disturb();
        }
        self.run_to(self.inner.now, false);
        self.inner.write(bar, offset, data)?;
        self.note(format!("write {bar:?} {offset:#x} {data:?}"));
        Ok(())
    }

    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64> {
        self.inner.alloc(bytes, align)
    }

    fn free(&mut self, addr: u64, bytes: u64) {
        self.inner.free(addr, bytes);
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        self.inner.dma_read(addr, data);
        let bytes = data.iter().zip(1..);
        let sum: u64 = bytes.map(|(&byte, n)| n * u64::from(byte)).sum();
        self.note(format!("dma {addr:#x} {} {sum}", data.len()));
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        self.inner.dma_write(addr, data);
    }

    fn run_on(&mut self, _cpu: usize) {}

    fn now(&self) -> Time {
        self.inner.now
    }

    fn busy(&self) -> bool {
        false
    }

    fn spend(&mut self, _work: CpuWork) {}

    fn watch(&mut self, addr: u64, bytes: u64) {
        self.watched.push((addr, bytes));
    }

    fn unwatch(&mut self, addr: u64) {
        self.watched.retain(|watch| watch.0 != addr);
    }

    fn wait(&mut self, until: Time) -> Result<()> {
        if let Some(vector) = self.masked.take() {
            self.work(Time::us(20));
            self.mask(vector, false);
            self.note(format!("unmask {vector}"));
        }
        let woken = self.run_to(until, true);
        self.note(format!("woken {woken}"));
        Ok(())
    }

    fn vectors(&self) -> u16 {
        match self.polls {
            true => 0,
            false => VECTORS,
        }
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        self.inner.message(vector)
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        let taken = self.inner.take_interrupt(vector);
        if taken {
            self.note(format!("interrupt {vector}"));
        }
        taken
    }
}

fn serve(dir: &Dir, devices: usize) -> Server {
    let design = Design::find("default").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let served = (0..devices).map(|n| {
        let media = Media::memory(design.media.bytes.0).unwrap();
        machine::served(&design, model, &RtlOptions::default(), dir.socket(n), media)
    });
    let clock = dir.path().join("clock");
    Server::start_in_simulated_time(served.collect(), &HostConfig::default(), &clock).unwrap()
}

fn run(devices: usize, steps: Steps, polls: bool, seed: u64, commands: u64) -> Vec<String> {
    let dir = Dir::new();
    let server = serve(&dir, devices);
    let stepper = Stepper::new(&dir, devices, steps, polls, seed);
    let config = DriverConfig {
        io_queues: 4,
        ..DriverConfig::default()
    };
    let mut driver = NvmeDriver::start(stepper, config).unwrap();
    let job = IoJob {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 16384,
        queues: 4,
        depth: 8,
        commands,
        layout: BufferLayout::Scattered,
        verify: true,
        span: 1 << 22,
        seed,
        ..IoJob::default()
    };
    let report = run_job(&mut driver, &job, &mut |_, _| true).unwrap().report;
    assert_eq!(report.commands, commands);
    let log = std::mem::take(&mut driver.host_mut().log);
    drop(driver);
    server.stop();
    log
}

#[test]
fn simulated_steps_make_no_difference() {
    let commands = 40;
    for seed in 1..=2 {
        for polls in [false, true] {
            let devices = 1 + (seed % 2) as usize;
            let expected = run(devices, Steps::Next, polls, seed, commands);
            for steps in [
                Steps::Idle,
                Steps::Random(Time::us(2), 3),
                Steps::Random(Time::ns(100), 4),
                Steps::Random(Time::us(50), 5),
            ] {
                let found = run(devices, steps, polls, seed, commands);
                let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
                if let Some(at) = differs {
                    for n in at.saturating_sub(12)..(at + 4).min(found.len()).min(expected.len()) {
                        eprintln!("{n}: {}\n    {}", expected[n], found[n]);
                    }
                    panic!(
                        "{steps:?} polls {polls} seed {seed}: line {at} of {}",
                        found.len()
                    );
                }
                assert_eq!(found.len(), expected.len());
            }
        }
    }
}
