// SPDX-License-Identifier: Apache-2.0

//! Clients and emulators that end, err or exaggerate, in simulated time.

mod common;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::channel;
use std::time::Duration;

use common::emulator::{Clock, NEVER};
use common::*;
use rustix::event::{eventfd, EventfdFlags};
use sim::{HostConfig, Time};
use vfio_user::Server;

const RAM: u64 = 1 << 32;
const RAM_BYTES: u64 = 1 << 20;

fn serve(dir: &Dir, devices: usize) -> Server {
    let log = LogLines::default();
    let served = (0..devices).map(|n| fake_device(dir, n, &log).0).collect();
    let clock = dir.path().join("clock");
    Server::start_in_simulated_time(served, &HostConfig::default(), &clock).unwrap()
}

fn set_up(dir: &Dir, n: usize) -> (Client, OwnedFd, OwnedFd) {
    let mut client = Client::new(&dir.socket(n));
    let ram = memory(RAM_BYTES);
    assert_eq!(client.map(RAM, RAM_BYTES, Some((&ram, 0))), 0);
    client.bus_master(true);
    let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    assert_eq!(client.set_irqs(0x24, 2, 1, 1, &[event.as_fd()]), 0);
    (client, ram, event)
}

fn start(client: &mut Client, command: u32, len: u32) {
    for (offset, value) in [
        (fake::ADDRESS, RAM as u32),
        (fake::ADDRESS + 4, (RAM >> 32) as u32),
        (fake::LENGTH, len),
        (fake::COMMAND, command),
    ] {
        client.write32(BAR4, offset, value);
    }
}

fn stops(server: Server) -> bool {
    let (done, wait) = channel();
    std::thread::spawn(move || {
        server.stop();
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(20)).is_ok()
}

fn interrupts(event: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(event, &mut bytes).map_or(0, |_| u64::from_le_bytes(bytes))
}

/// The server ends while a device is busy and the emulator waits.
#[test]
fn simulated_server_stops_while_a_busy_device_runs() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let (mut client, ..) = set_up(&dir, 0);
    start(&mut client, fake::STORM, 4);
    clock.send(&[NEVER.to_le_bytes(), 1u64.to_le_bytes()].concat());
    std::thread::sleep(Duration::from_millis(100));
    assert!(stops(server));
}

/// The emulator ends while a device is busy and it waits.
#[test]
fn simulated_emulator_ends_while_a_busy_device_runs() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let path = dir.path().join("clock");
    let mut clock = Clock::new(&path);
    let (mut client, ..) = set_up(&dir, 0);
    start(&mut client, fake::STORM, 4);
    clock.send(&[(1u64 << 60).to_le_bytes(), 0u64.to_le_bytes()].concat());
    std::thread::sleep(Duration::from_millis(100));
    drop(clock);
    drop(client);
    let (done, wait) = channel();
    let socket = dir.socket(0);
    std::thread::spawn(move || {
        let _clock = Clock::new(&path);
        let mut client = Client::new(&socket);
        done.send(client.read32(BAR4, 0x20)).unwrap();
    });
    assert_eq!(wait.recv_timeout(Duration::from_secs(20)), Ok(SETUP.value));
    assert!(stops(server));
}

/// The CPU's time passes while a device has failed.
#[test]
fn simulated_time_passes_after_a_fault() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let (mut client, ram, _event) = set_up(&dir, 0);
    start(&mut client, fake::FAIL, 4);
    clock.advance(Time::us(10).0, false);
    clock.set_now(Time::us(10));
    assert_eq!(client.read32(BAR4, 0x20), u32::MAX);
    let until = Time::ms(30).0;
    assert_eq!(clock.advance(until, true), [until, 0, NEVER]);
    // The guest's timeout is over: it resets the device.
    clock.set_now(Time(until));
    assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
    client.bus_master(true);
    poke(&ram, 0, &[1; 16]);
    start(&mut client, fake::WRITE, 16);
    assert_eq!(clock.advance(2 * until, true)[0], 2 * until);
    assert_eq!(peek(&ram, 0, 16), [0; 16]);
    server.stop();
}

/// A client that leaves takes no time of the others.
#[test]
fn simulated_disconnection_takes_no_time_of_the_emulator() {
    let dir = Dir::new();
    let server = serve(&dir, 2);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let (mut client, ..) = set_up(&dir, 0);
    let (other, ..) = set_up(&dir, 1);
    clock.advance(Time::ms(1).0, false);
    clock.take_stall();
    clock.set_now(Time::ms(1));
    client.read32(BAR4, 0x20);
    let stall = clock.take_stall();
    let far = Time::ms(500).0;
    clock.advance(far, false);
    drop(other);
    let mut again = Client::new(&dir.socket(1));
    clock.set_now(Time(far));
    again.read32(BAR4, 0x20);
    let found = clock.take_stall();
    assert!(found < Time::us(300), "{stall:?} {found:?}");
    server.stop();
}

/// Times beyond the end.
#[test]
fn simulated_times_beyond_the_end_end_no_server() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let path = dir.path().join("clock");
    for n in 0..6 {
        let mut clock = Clock::new(&path);
        let (mut client, ram, _) = set_up(&dir, 0);
        clock.take_stall();
        if n < 2 {
            poke(&ram, 0, &[1; 16]);
            start(&mut client, fake::WRITE, 16);
            clock.advance(Time::ms(1).0, false);
            assert_eq!(peek(&ram, 0, 16), [0; 16]);
        }
        clock.set_now(Time(u64::MAX));
        client.read32(BAR4, 0x20);
        clock.advance(NEVER - 1, false);
        clock.advance(NEVER - 1, true);
        client.read32(BAR4, 0x20);
        drop(client);
        drop(clock);
    }
    assert!(stops(server));
}

/// A device writes 4096 bytes from 10 us on, and `end` comes at 50 us: how many were not written.
/// With `advance` the device has been advanced to 50 us before. What happened until then counts.
fn bytes_unwritten_at(end: fn(&mut Client), advance: bool) -> usize {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let (mut client, ram, _event) = set_up(&dir, 0);
    poke(&ram, 0, &[1; 4096]);
    clock.set_now(Time::us(10));
    start(&mut client, fake::WRITE, 4096);
    let at = Time::us(50);
    if advance {
        clock.advance(at.0, false);
    }
    clock.set_now(at);
    end(&mut client);
    clock.advance(Time::ms(1).0, false);
    server.stop();
    peek(&ram, 0, 4096).iter().filter(|&&b| b == 1).count()
}

#[test]
fn simulated_reset_happens_at_its_time() {
    let reset = |client: &mut Client| assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
    let found = [true, false].map(|advance| bytes_unwritten_at(reset, advance));
    assert_eq!(found, [0, 0]);
}

#[test]
fn simulated_unmap_happens_at_its_time() {
    let unmap = |client: &mut Client| assert_eq!(client.unmap(RAM, RAM_BYTES), 0);
    let found = [true, false].map(|advance| bytes_unwritten_at(unmap, advance));
    assert_eq!(found, [0, 0]);
}

/// Connections leave no descriptor and no thread.
#[test]
fn simulated_connections_leave_nothing() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let path = dir.path().join("clock");
    // The tests of this file run in threads of one process, so only a leak per connection shows.
    let count = |what: &str| {
        let entries = std::fs::read_dir(format!("/proc/self/{what}"));
        entries.unwrap().count()
    };
    let before = count("fd") + count("task");
    for n in 0..400u64 {
        let mut clock = Clock::new(&path);
        let (mut client, ..) = set_up(&dir, 0);
        clock.take_stall();
        clock.set_now(Time::us(5));
        match n % 5 {
            0 => start(&mut client, fake::STORM, 64),
            1 => start(&mut client, fake::RING, 1),
            2 => start(&mut client, fake::INTERRUPT, 1),
            3 => clock.send(&[0xFF; 7]),
            _ => start(&mut client, fake::FAIL, 1),
        }
        if n % 5 != 3 {
            clock.advance(Time::us(20).0, n % 2 == 0);
        }
        if n % 3 == 0 {
            drop(clock);
            drop(client);
        } else {
            drop(client);
            drop(clock);
        }
    }
    let after = count("fd") + count("task");
    assert!(after < before + 200, "{before} before, {after} after");
    assert!(stops(server));
}

/// A signal during the wait for an emulator.
#[test]
fn simulated_server_stops_after_a_signal() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
    }
    let dir = Dir::new();
    let server = serve(&dir, 1);
    std::thread::sleep(Duration::from_millis(50));
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap();
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap();
        if name.trim() == "clock" || name.trim() == "acceptor" {
            let id: i64 = task.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: a thread of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, libc::SIGUSR2) };
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(stops(server));
}

/// The stop of a server whose emulator never reads.
#[test]
fn simulated_server_stops_while_the_emulator_does_not_read() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let clock = Clock::new(&dir.path().join("clock"));
    let request = [0u8; 16].repeat(1000);
    let writer = std::thread::spawn(move || {
        let mut clock = clock;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loop {
            clock.send(&request);
        }));
        assert!(result.is_err());
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(stops(server));
    writer.join().unwrap();
}

/// A reset with another device busy takes as long as alone.
#[test]
fn simulated_reset_does_not_wait_for_other_devices() {
    let stall = |busy: bool| {
        let dir = Dir::new();
        let server = serve(&dir, 2);
        let clock = Clock::new(&dir.path().join("clock"));
        let (mut client, ..) = set_up(&dir, 0);
        let (mut other, ..) = set_up(&dir, 1);
        clock.take_stall();
        clock.set_now(Time::us(1000));
        if busy {
            start(&mut other, fake::STORM, 64);
        }
        clock.take_stall();
        assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
        let stall = clock.take_stall();
        assert!(stops(server));
        stall
    };
    assert_eq!(stall(true), stall(false));
}

/// Interrupts that are masked when they are due.
#[test]
fn simulated_masks_and_resets_do_not_depend_on_steps() {
    // Without `step`, the emulator advances only where it has to.
    let count = |step: bool, gap: Time, reset: bool| {
        let dir = Dir::new();
        let server = serve(&dir, 1);
        let mut clock = Clock::new(&dir.path().join("clock"));
        let (mut client, _ram, event) = set_up(&dir, 0);
        clock.take_stall();
        let begin = Time::us(1000);
        clock.set_now(begin);
        start(&mut client, fake::INTERRUPT, 1);
        let at = begin + gap;
        while clock.next() < at.0 {
            let next = clock.next();
            clock.advance(next, false);
        }
        if step {
            clock.advance(at.0 - 1000, false);
            clock.advance(at.0, false);
        }
        clock.set_now(at);
        if reset {
            assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
            client.bus_master(true);
        } else {
            // The function mask of MSI-X, in configuration space.
            client
                .try_write(CONFIG, 0xB2, &0xC000u16.to_le_bytes())
                .unwrap();
        }
        clock.advance(Time::us(1100).0, false);
        let found = interrupts(&event);
        assert!(stops(server));
        found
    };
    for reset in [false, true] {
        let gaps: Vec<Time> = (1..25).map(|n| Time::ns(n * 40)).collect();
        let with: Vec<u64> = gaps.iter().map(|&gap| count(true, gap, reset)).collect();
        let without: Vec<u64> = gaps.iter().map(|&gap| count(false, gap, reset)).collect();
        assert_eq!(with, without, "{reset}");
        assert!(with.contains(&1));
    }
}

/// A read of two pages takes as long as the stall says.
#[test]
fn simulated_stall_of_a_read_is_the_time_that_passes() {
    let dir = Dir::new();
    let server = serve(&dir, 1);
    let mut clock = Clock::new(&dir.path().join("clock"));
    let (mut client, ..) = set_up(&dir, 0);
    clock.take_stall();
    let at = Time::us(1000);
    clock.set_now(at);
    client.try_read(BAR2, 0xFFC, 8).unwrap();
    let now = at + clock.take_stall();
    assert_eq!(clock.advance(at.0, false)[0], now.0);
    server.stop();
}
