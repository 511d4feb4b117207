// SPDX-License-Identifier: Apache-2.0

//! Paced devices on a wall clock that the tests set, so no result depends on a machine's speed.
//! `NEARSIDE_MODEL` names the model of the workload; the default is the fast one.

mod common;

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::emulator;
use common::machine::{self, Machine};
use common::manual_clock::ManualClock;
use common::*;
use design::Design;
use device::{Model, RtlOptions};
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, NvmeDriver};
use rustix::event::{eventfd, EventfdFlags};
use sim::{Counter, Device, Fault, HostConfig, HostPort, Media, Time};
use vfio_user::{Clock, Dilation, MonotonicClock, Server};

const RAM: u64 = 1 << 32;
const RAM_BYTES: u64 = 1 << 20;
const VECTOR: u32 = 1;
/// The moment of the commands. Whatever follows a reset is over.
const MOMENT: Duration = Duration::from_millis(100);
const NS: Duration = Duration::from_nanos(1);

/// Fake devices on a clock that stands still.
struct Paced {
    dir: Dir,
    server: Option<Server>,
    clock: Arc<ManualClock>,
    records: Vec<Arc<Mutex<FakeRecord>>>,
    dilation: Dilation,
}

impl Paced {
    fn new(devices: usize, factor: f64) -> Paced {
        Paced::on(Arc::new(ManualClock::default()), devices, factor)
    }

    fn on(clock: Arc<ManualClock>, devices: usize, factor: f64) -> Paced {
        let dir = Dir::new();
        let log = LogLines::default();
        let fakes = (0..devices).map(|n| fake_device(&dir, n, &log));
        let (served, records): (Vec<_>, Vec<_>) = fakes.unzip();
        let dilation = Dilation::new(factor).unwrap();
        let host = HostConfig::default();
        let server = Server::start_paced(served, &host, dilation, clock.clone()).unwrap();
        Paced {
            dir,
            server: Some(server),
            clock,
            records,
            dilation,
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// The device's time at [`MOMENT`].
    fn moment(&self) -> Time {
        self.dilation.device_time(MOMENT)
    }

    /// A client whose memory and interrupt are set up at [`MOMENT`].
    fn client(&self, device: usize) -> (Client, OwnedFd, OwnedFd) {
        let found = set_up(&self.dir.socket(device));
        if self.clock.now() < MOMENT {
            self.clock.set(MOMENT);
        }
        found
    }

    /// Runs the clock until a thread of a client has ended.
    fn run_clock<T>(&self, thread: std::thread::JoinHandle<T>) -> T {
        wait_for("the end of a client", || {
            if let Some(next) = self.clock.settle() {
                self.clock.set(next);
            }
            thread.is_finished()
        });
        thread.join().unwrap()
    }
}

/// The operands of a command of a fake device, and the command.
fn words(command: u32, len: u32) -> [(u64, u32); 4] {
    [
        (fake::ADDRESS, RAM as u32),
        (fake::ADDRESS + 4, (RAM >> 32) as u32),
        (fake::LENGTH, len),
        (fake::COMMAND, command),
    ]
}

fn start(client: &mut Client, command: u32, len: u32) {
    for (offset, value) in words(command, len) {
        client.write32(BAR4, offset, value);
    }
}

/// Lets a client of the same device in simulated time act at a time, after the same set-up.
fn in_simulated_time<T>(
    at: Time,
    act: impl FnOnce(&mut Client, &OwnedFd, &OwnedFd, &mut emulator::Clock) -> T,
) -> T {
    let dir = Dir::new();
    let (served, _) = fake_device(&dir, 0, &LogLines::default());
    let path = dir.path().join("clock");
    let host = HostConfig::default();
    let _server = Server::start_in_simulated_time(vec![served], &host, &path).unwrap();
    let mut clock = emulator::Clock::new(&path);
    let (mut client, ram, event) = set_up(&dir.socket(0));
    clock.take_stall();
    clock.set_now(at);
    act(&mut client, &ram, &event, &mut clock)
}

/// When a client sees a command that begins at a time, according to the model.
fn modelled_arrival(at: Time, command: u32, len: u32) -> Time {
    in_simulated_time(at, |client, ram, event, clock| {
        mark(ram);
        start(client, command, len);
        // Nothing happens before the time that the devices name, and something happens then.
        loop {
            let next = clock.next();
            clock.advance(next, false);
            if has_completion(ram) || interrupts(event) > 0 {
                return Time(next);
            }
        }
    })
}

/// A client with memory and an interrupt.
fn set_up(socket: &Path) -> (Client, OwnedFd, OwnedFd) {
    let mut client = Client::new(socket);
    let ram = memory(RAM_BYTES);
    assert_eq!(client.map(RAM, RAM_BYTES, Some((&ram, 0))), 0);
    client.bus_master(true);
    let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    assert_eq!(client.set_irqs(0x24, 2, VECTOR, 1, &[event.as_fd()]), 0);
    (client, ram, event)
}

fn counter(paced: &Paced, device: usize, name: &str) -> u64 {
    let counters = paced.server().counters();
    let found = counters[device].iter().find(|counter| counter.0 == name);
    found.unwrap().1
}

fn interrupts(event: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(event, &mut bytes).map_or(0, |_| u64::from_le_bytes(bytes))
}

/// Whether a completion of a fake device has arrived: its buffer is all zeros, so it writes zeros
/// over the mark.
fn mark(ram: &OwnedFd) {
    poke(ram, 0, &[0xA5; 16]);
}

fn has_completion(ram: &OwnedFd) -> bool {
    peek(ram, 0, 16) == [0; 16]
}

#[test]
fn paced_completion_and_interrupt_are_seen_at_their_modelled_time() {
    for factor in [0.5, 1.0, 1.5, 100.0] {
        let paced = Paced::new(1, factor);
        let (mut client, ram, event) = paced.client(0);
        mark(&ram);
        let at = paced.moment();
        start(&mut client, fake::WRITE, 16);
        let seen = paced
            .dilation
            .wall_time(modelled_arrival(at, fake::WRITE, 16));
        assert!(seen > MOMENT);
        paced.clock.set(seen - NS);
        assert!(!has_completion(&ram), "{factor}");
        paced.clock.set(seen);
        assert!(has_completion(&ram), "{factor}");
        // The second command begins at another time, and interrupts.
        let later = seen + Duration::from_micros(77);
        paced.clock.set(later);
        let at = paced.dilation.device_time(later);
        start(&mut client, fake::INTERRUPT, VECTOR);
        let seen = paced
            .dilation
            .wall_time(modelled_arrival(at, fake::INTERRUPT, VECTOR));
        paced.clock.set(seen - NS);
        assert_eq!(interrupts(&event), 0, "{factor}");
        paced.clock.set(seen);
        assert_eq!(interrupts(&event), 1, "{factor}");
        let report = paced.server().pacing()[0];
        assert_eq!(report.dilation, factor);
        for kind in [report.completions, report.interrupts] {
            assert_eq!(
                (kind.count, kind.late, kind.max_ns),
                (1, 0, 0.0),
                "{factor}"
            );
        }
        assert_eq!((report.reads.count, report.set_back_ns), (0, 0.0));
    }
}

#[test]
fn paced_lateness_is_counted() {
    // The machine is late by some time of the device, once within the tolerance.
    for factor in [1.0, 20.0] {
        let paced = Paced::new(1, factor);
        let (mut client, ram, _event) = paced.client(0);
        for late in [Time::ns(900), Time::us(5)] {
            mark(&ram);
            let at = paced.dilation.device_time(paced.clock.now());
            start(&mut client, fake::WRITE, 16);
            let seen = modelled_arrival(at, fake::WRITE, 16);
            paced.clock.set(paced.dilation.wall_time(seen + late));
            assert!(has_completion(&ram));
        }
        let completions = paced.server().pacing()[0].completions;
        assert_eq!((completions.count, completions.late), (2, 1));
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} and {b}");
        close(completions.p50_ns, 900.0);
        close(completions.mean_ns, 2950.0);
        close(completions.p99_ns, 5000.0);
        close(completions.max_ns, 5000.0);
    }
}

#[test]
fn paced_request_begins_when_it_arrives() {
    let paced = Paced::new(1, 3.0);
    let (mut client, ram, _event) = paced.client(0);
    mark(&ram);
    let at = paced.moment();
    start(&mut client, fake::WRITE, 16);
    // A second one, before the first has reached the device.
    let later = MOMENT + Duration::from_nanos(100);
    paced.clock.set(later);
    client.write32(BAR4, fake::COMMAND, fake::WRITE);
    let first = paced
        .dilation
        .wall_time(modelled_arrival(at, fake::WRITE, 16));
    paced.clock.set(first);
    assert!(has_completion(&ram));
    mark(&ram);
    let gap = paced.dilation.device_time(later).0 - at.0;
    // The device takes it at an edge of its clock, which has 4 ns.
    let second = first + paced.dilation.wall_time(Time(gap + 4000));
    paced.clock.set(second);
    assert!(has_completion(&ram));
    let completions = paced.server().pacing()[0].completions;
    assert_eq!((completions.count, completions.late), (2, 0));
}

#[test]
fn paced_read_is_answered_at_its_modelled_time() {
    let paced = Paced::new(1, 7.0);
    let (mut client, ..) = paced.client(0);
    let stall = in_simulated_time(paced.moment(), |client, _, _, clock| {
        client.read32(BAR4, 0x20);
        clock.take_stall()
    });
    let answered = paced.dilation.wall_time(paced.moment() + stall);
    let reader = std::thread::spawn(move || client.read32(BAR4, 0x20));
    wait_for("a request", || paced.clock.settle().is_some());
    paced.clock.set(answered - NS);
    assert_eq!(paced.server().pacing()[0].reads.count, 0);
    assert!(!reader.is_finished());
    paced.clock.set(answered);
    assert_eq!(reader.join().unwrap(), SETUP.value);
    let reads = paced.server().pacing()[0].reads;
    assert_eq!((reads.count, reads.late, reads.max_ns), (1, 0, 0.0));
}

#[test]
fn paced_reset_ends_what_is_held() {
    let paced = Paced::new(1, 1.0);
    let (mut client, ram, event) = paced.client(0);
    mark(&ram);
    start(&mut client, fake::WRITE, 16);
    let requests = paced.clock.wakes();
    let reset = std::thread::spawn(move || {
        assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
        client
    });
    // Otherwise the command could complete before.
    wait_for("the reset", || paced.clock.wakes() > requests);
    let mut client = paced.run_clock(reset);
    paced.clock.set(paced.clock.now() + MOMENT);
    assert!(!has_completion(&ram));
    // The function works again, once the client allows it.
    client.bus_master(true);
    start(&mut client, fake::WRITE, 16);
    start(&mut client, fake::INTERRUPT, VECTOR);
    paced.clock.set(paced.clock.now() + MOMENT);
    assert!(has_completion(&ram));
    assert_eq!(interrupts(&event), 1);
}

#[test]
fn paced_disconnect_ends_what_is_held() {
    let paced = Paced::new(1, 1000.0);
    let (mut client, ram, event) = paced.client(0);
    mark(&ram);
    start(&mut client, fake::WRITE, 16);
    let requests = paced.clock.wakes();
    drop(client);
    wait_for("the disconnection", || paced.clock.wakes() > requests);
    let dir = paced.dir.socket(0);
    let next = std::thread::spawn(move || {
        let mut client = Client::new(&dir);
        assert_eq!(client.read32(BAR4, 0x20), SETUP.value);
        client
    });
    let _client = paced.run_clock(next);
    paced.clock.set(paced.clock.now() + MOMENT);
    assert!(!has_completion(&ram));
    assert_eq!(interrupts(&event), 0);
    assert_eq!(paced.records[0].lock().unwrap().msix, (false, false));
}

#[test]
fn paced_unmap_ends_what_is_held() {
    let paced = Paced::new(1, 10.0);
    let (mut client, ram, _event) = paced.client(0);
    mark(&ram);
    start(&mut client, fake::WRITE, 16);
    assert_eq!(client.unmap(RAM, RAM_BYTES), 0);
    paced.clock.set(paced.clock.now() + MOMENT);
    assert!(!has_completion(&ram));
    assert_eq!(counter(&paced, 0, "refused_accesses"), 1);
    assert_eq!(paced.server().pacing()[0].completions.count, 0);
}

#[test]
fn paced_server_stops_while_completions_and_reads_are_held() {
    let mut paced = Paced::new(2, 1000.0);
    let (mut client, ram, event) = paced.client(0);
    let (mut reader, ..) = paced.client(1);
    mark(&ram);
    start(&mut client, fake::WRITE, 16);
    let accesses = |paced: &Paced| counter(paced, 1, "register_accesses");
    let before = accesses(&paced);
    let reader = std::thread::spawn(move || {
        let read = reader.message(REGION_READ, &Client::access(BAR4, 0x20, 4));
        reader.stream.write_all(&read).unwrap();
        // The server may answer before it closes the connection.
        while reader.answer().is_some() {}
    });
    wait_for("the read", || accesses(&paced) > before);
    let clock = paced.clock.now();
    paced.server.take().unwrap().stop();
    reader.join().unwrap();
    assert_eq!(paced.clock.now(), clock, "nothing waits for the clock");
    assert!(!has_completion(&ram));
    assert_eq!(interrupts(&event), 0);
}

#[test]
fn paced_device_does_not_wait_for_another_one() {
    let paced = Paced::new(2, 1.0);
    let (mut first, ram, _event) = paced.client(0);
    let (second, ..) = paced.client(1);
    mark(&ram);
    let at = paced.moment();
    let mut second = second;
    // A read of the other device is under way all the time.
    let reader = std::thread::spawn(move || second.read32(BAR4, 0x20));
    wait_for("a request", || paced.clock.settle().is_some());
    start(&mut first, fake::WRITE, 16);
    let seen = paced
        .dilation
        .wall_time(modelled_arrival(at, fake::WRITE, 16));
    paced.clock.set(seen - NS);
    assert!(!has_completion(&ram));
    paced.clock.set(seen);
    assert!(has_completion(&ram));
    assert_eq!(paced.run_clock(reader), SETUP.value);
}

#[test]
fn paced_stores_arrive_in_order_when_the_link_is_full() {
    let paced = Paced::new(1, 1.0);
    let (mut client, ..) = paced.client(0);
    // More than the queue of the link has, at one moment.
    let values: Vec<(u64, u32)> = (0..200).map(|n| (0x1000 + 4 * (n % 8), n as u32)).collect();
    for &(offset, value) in &values {
        client.write32(BAR0, offset, value);
    }
    let page: Vec<u8> = (0..4096u32).map(|n| (n * 7) as u8).collect();
    client.try_write(BAR2, 0x3000, &page).unwrap();
    let reader = std::thread::spawn(move || client.try_read(BAR2, 0x3000, 4096).unwrap());
    assert_eq!(paced.run_clock(reader), page);
    assert_eq!(paced.records[0].lock().unwrap().doorbells, values);
}

#[test]
fn paced_device_that_fails_recovers_with_a_reset() {
    let paced = Paced::on(Arc::new(ManualClock::running()), 1, 1.0);
    let (mut client, ram, _event) = paced.client(0);
    start(&mut client, fake::FAIL, 1);
    wait_for("the fault", || client.read32(BAR4, 0x20) == u32::MAX);
    assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
    assert_eq!(client.read32(BAR4, 0x20), SETUP.value);
    client.bus_master(true);
    mark(&ram);
    start(&mut client, fake::WRITE, 16);
    wait_for("a completion", || has_completion(&ram));
}

/// A device whose simulation takes 5,000 times its time.
struct SlowDevice {
    fake: Fake,
    clock: Arc<ManualClock>,
}

impl Device for SlowDevice {
    fn now(&self) -> Time {
        self.fake.now()
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        let (before, busy) = (self.fake.now(), !self.fake.idle());
        let outcome = self.fake.advance(until, host);
        let passed = self.fake.now().saturating_sub(before);
        if busy {
            self.clock.add(Duration::from_nanos(5 * passed.0));
        }
        outcome
    }

    fn idle(&self) -> bool {
        self.fake.idle()
    }

    fn power_off(&mut self) {
        self.fake.power_off();
    }

    fn power_on(&mut self) {
        self.fake.power_on();
    }

    fn set_msix(&mut self, enable: bool, mask: bool) {
        self.fake.set_msix(enable, mask);
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

#[test]
fn paced_device_that_is_always_busy_and_too_slow_answers() {
    let dir = Dir::new();
    let clock = Arc::new(ManualClock::running());
    let (mut served, _) = fake_device(&dir, 0, &LogLines::default());
    served.device = Box::new(SlowDevice {
        fake: Fake::new(),
        clock: clock.clone(),
    });
    let host = HostConfig::default();
    let server = Server::start_paced(vec![served], &host, Dilation::NONE, clock).unwrap();
    let (mut client, ..) = set_up(&dir.socket(0));
    start(&mut client, fake::STORM, 4);
    assert_eq!(client.read32(BAR4, 0x20), SETUP.value);
    // The read takes at least a millisecond of the wall clock. Only a clock that is set back can
    // be reached before the limit of 200 ms.
    for _ in 0..500 {
        assert_eq!(client.read32(BAR4, 0x20), SETUP.value);
    }
    assert!(server.pacing()[0].set_back_ns > 0.0);
    assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
    assert_eq!(client.read32(BAR4, 0x20), SETUP.value);
    server.stop();
}

/// Runs a workload on the model, with interrupts or by polling.
fn run_workload(clock: Arc<dyn Clock>, factor: f64, interrupts: bool) -> Server {
    let dir = Dir::new();
    let design = Design::find("default").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let media = Media::memory(design.media.bytes.0).unwrap();
    let options = RtlOptions::default();
    let served = machine::served(&design, model, &options, dir.socket(0), media);
    let dilation = Dilation::new(factor).unwrap();
    let host = HostConfig::default();
    let server = Server::start_paced(vec![served], &host, dilation, clock).unwrap();
    let config = DriverConfig {
        io_queues: 2,
        command_timeout: Time(120_000_000_000_000), // wall-clock
        ..DriverConfig::default()
    };
    let machine = Machine::new(&dir.socket(0), interrupts);
    let mut controller = NvmeDriver::start(machine, config).unwrap();
    let job = IoJob {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 8192,
        queues: 2,
        depth: 4,
        commands: 60,
        ..IoJob::default()
    };
    let report = run_job(&mut controller, &job, &mut |_, _| true)
        .unwrap()
        .report;
    assert_eq!(report.commands, 60);
    controller.shutdown().unwrap();
    server
}

#[test]
fn paced_model_completes_a_workload() {
    for interrupts in [false, true] {
        let clock = Arc::new(ManualClock::running());
        let report = run_workload(clock, 1.0, interrupts).pacing()[0];
        assert!(report.completions.count >= 60, "{report:?}");
        assert_eq!(report.interrupts.count > 0, interrupts, "{report:?}");
    }
}

#[test]
fn paced_model_completes_a_workload_on_the_machine_clock() {
    // How late it is depends on the machine, and is not checked.
    let report = run_workload(Arc::new(MonotonicClock::default()), 2.0, true).pacing()[0];
    assert!(report.completions.count >= 60 && report.reads.count > 0);
    let completions = report.completions;
    assert!(completions.p50_ns <= completions.p99_ns && completions.p99_ns <= completions.max_ns);
}
