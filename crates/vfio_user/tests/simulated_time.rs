// SPDX-License-Identifier: Apache-2.0

//! Devices in simulated time: an emulator says how far they run. `NEARSIDE_MODEL` names the model;
//! the default is the fast one.

mod common;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use common::emulator::{Clock, Emulator, NEVER};
use common::machine::{self, VECTORS};
use common::*;
use design::Design;
use device::{Factory, Model, RtlOptions};
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, Host, HostCosts, Latencies, NvmeDriver};
use rustix::event::{eventfd, EventfdFlags};
use sim::{Bar, HostConfig, Media, Time};
use vfio_user::Server;

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

fn serve_fake(dir: &Dir) -> Server {
    let (served, _) = fake_device(dir, 0, &LogLines::default());
    let clock = dir.path().join("clock");
    Server::start_in_simulated_time(vec![served], &HostConfig::default(), &clock).unwrap()
}

fn emulator(dir: &Dir) -> Emulator {
    Emulator::new(&dir.socket(0), &dir.path().join("clock"))
}

fn config() -> DriverConfig {
    DriverConfig {
        io_queues: 4,
        ..DriverConfig::default()
    }
}

fn job() -> IoJob {
    IoJob {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 16384,
        queues: 4,
        depth: 8,
        commands: 300,
        ..IoJob::default()
    }
}

fn mean_ns(latencies: &Latencies) -> f64 {
    latencies.summary().unwrap().mean_ns
}

#[test]
fn simulated_time_is_that_of_a_host_in_process() {
    let design = Design::find("default").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true).unwrap();
    let device = factory.device(factory.media().unwrap()).unwrap();
    let bytes = design.window_bytes();
    // With interrupts, as the emulator.
    let costs = HostCosts {
        interrupt_ps: 1,
        ..HostCosts::default()
    };
    let inside = testbed::host_of(device, bytes, costs, VECTORS).unwrap();
    let mut inside = NvmeDriver::start(inside, config()).unwrap();
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut outside = NvmeDriver::start(emulator(&dir), config()).unwrap();
    let alone = IoJob {
        depth: 1,
        queues: 1,
        ..job()
    };
    // Set-up takes other times, so the phases of clock and DRAM refresh differ. Under load the
    // order of commands depends on them.
    for (job, tolerance) in [(alone, 0.01), (job(), 0.1)] {
        let expected = run_job(&mut inside, &job, &mut |_, _| true);
        let found = run_job(&mut outside, &job, &mut |_, _| true);
        let (found, expected) = (found.unwrap().report, expected.unwrap().report);
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < tolerance, "{a} and {b}");
        assert_eq!(found.commands, expected.commands);
        close(found.elapsed.as_secs(), expected.elapsed.as_secs());
        close(mean_ns(&found.read), mean_ns(&expected.read));
        close(mean_ns(&found.write), mean_ns(&expected.write));
    }
    outside.shutdown().unwrap();
    server.stop();
}

#[test]
fn simulated_time_passes_only_when_the_emulator_says() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut machine = emulator(&dir);
    machine.now += machine.clock.take_stall();
    let start = machine.now;
    let mut read = || {
        let mut data = [0; 4];
        machine.read(Bar::Nvme, 0, &mut data).unwrap();
        machine.now
    };
    let first = read() - start;
    let second = read() - start;
    assert!(first > Time::ZERO);
    // Wall-clock time makes no difference.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let third = read() - start;
    assert_eq!(second - first, third - second);
    server.stop();
}

#[test]
fn simulated_time_holds_an_interrupt_until_an_advance() {
    let dir = Dir::new();
    let server = serve_fake(&dir);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let mut client = vfio_user_client::Client::new(&dir.socket(0)).unwrap();
    client.region_write(CONFIG, 4, &[6, 0]).unwrap();
    let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    client
        .set_irqs(2, 0x24, 1, 1, &[event.as_fd().as_raw_fd()])
        .unwrap();
    let count = |fd: &OwnedFd| {
        let mut bytes = [0; 8];
        rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_le_bytes(bytes))
    };
    let mut word = |offset: u64, value: u32| {
        client
            .region_write(BAR4, offset, &value.to_le_bytes())
            .unwrap();
    };
    word(fake::LENGTH, 1);
    word(fake::COMMAND, fake::INTERRUPT);
    // A read takes so long that the interrupt arrives meanwhile.
    let mut back = [0; 4];
    client.region_read(BAR4, fake::COMMAND, &mut back).unwrap();
    let now = clock.take_stall();
    assert_eq!(count(&event), 0);
    assert!(clock.next() <= now.0, "the emulator has to ask at once");
    let [reached, interrupts, _] = clock.advance(now.0, false);
    assert_eq!((reached, interrupts, count(&event)), (now.0, 1, 1));
    server.stop();
}

#[test]
fn simulated_time_needs_an_emulator() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    assert!(vfio_user_client::Client::new(&dir.socket(0)).is_err());
    drop(emulator(&dir));
    // The next one begins at zero again.
    let mut controller = NvmeDriver::start(emulator(&dir), config()).unwrap();
    assert!(controller.host().now() < Time::ms(5));
    run_job(&mut controller, &job(), &mut |_, _| true).unwrap();
    server.stop();
}

#[test]
fn simulated_time_of_two_devices_is_one() {
    let dir = Dir::new();
    let server = serve(&dir, 2);
    let mut first = emulator(&dir);
    let mut second = vfio_user_client::Client::new(&dir.socket(1)).unwrap();
    // That of the set-up.
    first.clock.take_stall();
    first.now = Time::us(50);
    let mut data = [0; 4];
    first.read(Bar::Nvme, 0, &mut data).unwrap();
    let before = first.now;
    // The other device is at that time, too: its read takes what that of the first took.
    first.clock.set_now(before);
    second.region_read(BAR0, 0, &mut data).unwrap();
    let stall = first.clock.take_stall();
    let clock = Time::ns(4);
    assert!((before - Time::us(50)).0.abs_diff(stall.0) < clock.0);
    // Nothing is under way.
    assert_eq!(first.clock.advance(NEVER, true), [NEVER, 0, NEVER]);
    server.stop();
}

#[test]
fn simulated_time_survives_hostile_requests() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let path = dir.path().join("clock");
    let mut clock = Clock::new(&path);
    // Times in the past, and beyond the end.
    let [far, ..] = clock.advance(1 << 40, false);
    assert_eq!(far, 1 << 40);
    let [reached, ..] = clock.advance(5, false);
    assert_eq!(reached, far, "time does not go back");
    assert_eq!(clock.advance(u64::MAX, true)[0], NEVER);
    clock.set_now(Time(u64::MAX));
    // Half a request, and then nothing.
    clock.send(&[0; 7]);
    drop(clock);
    drop(Clock::new(&path));
    let mut controller = NvmeDriver::start(emulator(&dir), config()).unwrap();
    run_job(&mut controller, &job(), &mut |_, _| true).unwrap();
    server.stop();
}
