// SPDX-License-Identifier: Apache-2.0

//! Broken and hostile clients harm no device but the one that they are attached to.

mod common;

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use common::*;
use rustix::event::{eventfd, EventfdFlags};
use sim::Random;

const RAM: u64 = 0x10_0000;

/// Checks that the server still serves this device. A panic of a thread would end that.
fn assert_alive(dir: &Dir, n: usize) {
    let mut client = Client::new(&dir.socket(n));
    assert_eq!(client.read32(BAR4, SETUP.offset), SETUP.value);
}

#[test]
fn messages_before_the_version_are_refused() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::silent(&dir.socket(0));
    for command in [DMA_MAP, GET_INFO, GET_REGION_INFO, REGION_READ, RESET, 99] {
        assert_eq!(client.ask(command, &[0; 32], &[]).errno, 22);
    }
    assert_eq!(client.ask(VERSION, &[1, 0, 0, 0], &[]).errno, 22);
    assert_eq!(client.ask(VERSION, &[], &[]).errno, 22);
    assert_eq!(client.ask(VERSION, &[0, 0, 1, 0], &[]).errno, 0, "no text");
    assert_eq!(client.ask(99, &[], &[]).errno, 95);
}

#[test]
fn region_accesses_beyond_the_end_are_refused() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    for (region, size) in [
        (BAR0, 1u64 << 16),
        (BAR2, 1 << 20),
        (BAR4, 1 << 20),
        (CONFIG, 4096),
    ] {
        for offset in [size - 3, size, size + 1, 1 << 40, u64::MAX, u64::MAX - 3] {
            assert_eq!(
                client.try_read(region, offset, 4),
                Err(22),
                "{region} {offset:#x}"
            );
            assert_eq!(client.try_write(region, offset, &[0; 4]), Err(22));
        }
        assert!(client.try_read(region, size - 4, 4).is_ok());
    }
    for region in [1, 3, 5, 6, 8, 9, u32::MAX] {
        assert_eq!(client.try_read(region, 0, 4), Err(22));
        assert_eq!(client.try_write(region, 0, &[0; 4]), Err(22));
    }
    assert_eq!(client.try_read(BAR2, 0, u32::MAX), Err(22));
    // A write with more or fewer bytes than its header says.
    for count in [0u32, 3, 5, 1000, u32::MAX] {
        let mut body = Vec::new();
        body.extend(0u64.to_le_bytes());
        body.extend(BAR2.to_le_bytes());
        body.extend(count.to_le_bytes());
        body.extend([1, 2, 3, 4]);
        assert_eq!(client.ask(REGION_WRITE, &body, &[]).errno, 22);
    }
    assert_eq!(client.try_read(BAR2, 0, 4), Ok(vec![0; 4]));
}

#[test]
fn maps_and_interrupts_with_invalid_fields_are_refused() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let ram = memory(0x4000);
    for (address, size, offset) in [
        (RAM, 0, 0),
        (RAM + 1, 0x1000, 0),
        (RAM, 0x1001, 0),
        (RAM, 0x5000, 0),
        (RAM, 0x1000, 0x4000),
        (RAM, 0x1000, !0xFFF),
        (RAM, 0x1000, 1),
        (RAM, 0x1000, 512),
        (RAM, 0x1000, 0x1FFF),
        (!0xFFF, 0x2000, 0),
        (RAM, !0xFFF, 0),
    ] {
        assert_ne!(client.map(address, size, Some((&ram, offset))), 0);
    }
    for flags in [4u32, 7, 1 << 31, u32::MAX] {
        let mut body = [0; 32];
        body[4..8].copy_from_slice(&flags.to_le_bytes());
        body[25] = 0x10; // a size of 4 KiB
        let errno = client.ask(DMA_MAP, &body, &[ram.as_fd()]).errno;
        assert_eq!(errno, 22, "flags {flags:#x}");
    }
    let device = std::fs::File::open("/dev/zero").unwrap().into();
    assert_ne!(client.map(RAM, 0x1000, Some((&device, 0))), 0);
    assert_eq!(client.map(RAM, 0x4000, Some((&ram, 0))), 0);
    assert_ne!(
        client.map(RAM + 0x1000, 0x1000, Some((&ram, 0))),
        0,
        "overlap"
    );
    let two = [ram.as_fd(), ram.as_fd()];
    assert_eq!(client.ask(DMA_MAP, &[0; 32], &two).errno, 22);
    assert_ne!(client.unmap(RAM + 0x1000, 0x1000), 0, "half of it");
    assert_eq!(client.unmap(RAM, 0x4000), 0);
    // Unmapping what is not mapped is no error.
    assert_eq!(client.unmap(RAM, 0x4000), 0, "again");
    assert_eq!(client.unmap(0, 1 << 63), 0, "half of all addresses");
    assert_ne!(client.unmap(RAM, 0), 0, "no bytes");

    let (not_an_eventfd, nothing): ([BorrowedFd<'_>; 1], [BorrowedFd<'_>; 0]) = ([ram.as_fd()], []);
    for (flags, index, start, count, fds) in [
        (0x24, 2, 0, 1, &not_an_eventfd[..]),
        (0x24, 2, 0, 2, &not_an_eventfd[..]),
        (0x24, 2, 4, 1, &nothing[..]),
        (0x24, 2, u32::MAX, u32::MAX, &nothing[..]),
        (0x24, 2, 0, u32::MAX, &nothing[..]),
        (0x24, 0, 0, 1, &nothing[..]),
        (0x24, 5, 0, 1, &nothing[..]),
        (0x3F, 2, 0, 1, &nothing[..]),
        (0x0, 2, 0, 1, &nothing[..]),
        (0x20, 2, 0, 1, &nothing[..]),
        (0xFFFF_FF24, 2, 0, 1, &nothing[..]),
    ] {
        let errno = client.set_irqs(flags, index, start, count, fds);
        assert_eq!(errno, 22, "{flags:#x} {index} {start} {count}");
    }
    assert_eq!(
        client.set_irqs(0x22, 2, 0, 4, &[]),
        0,
        "booleans that are missing are false"
    );
}

#[test]
fn connection_ends_at_worst_on_random_bytes() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 2);
    let mut neighbour = Client::new(&dir.socket(1));
    let mut random = Random::new(7);
    for _ in 0..300 {
        let mut client = Client::silent(&dir.socket(0));
        let len = 1 + random.below(200) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        let _ = client.stream.write_all(&bytes);
    }
    // A header with an invalid length.
    for size in [0u32, 15, 1 << 21, u32::MAX] {
        let mut client = Client::silent(&dir.socket(0));
        let mut bytes = client.message(REGION_READ, &[]);
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        client.stream.write_all(&bytes).unwrap();
        assert!(client.answer().is_none(), "the server hangs up");
    }
    neighbour.write32(BAR4, 0x40, 1);
    assert_eq!(neighbour.read32(BAR4, 0x40), 1);
    assert_alive(&dir, 0);
}

#[test]
fn commands_accept_bodies_of_any_length() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let mut random = Random::new(11);
    let ram = memory(0x4000);
    for round in 0..6000 {
        let command = random.below(17) as u16;
        let len = random.below(48) as usize;
        // Small numbers reach more code than random ones.
        let mut body: Vec<u8> = (0..len)
            .map(|_| (random.next() as u8) & [1, 7, 0xFF][round % 3])
            .collect();
        if random.below(2) == 0 {
            body.iter_mut()
                .skip(2)
                .for_each(|b| *b &= 3 * u8::from(random.below(6) == 0));
        }
        let fds = [ram.as_fd(), ram.as_fd(), ram.as_fd()];
        client.ask(command, &body, &fds[..random.below(4) as usize]);
    }
    drop(client);
    assert_alive(&dir, 0);
}

#[test]
#[ignore = "takes seconds"]
fn client_without_a_version_loses_the_device() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 3);
    // No message, half a message, and other messages.
    let mut mute: Vec<Client> = (0..3).map(|n| Client::silent(&dir.socket(n))).collect();
    let bytes = mute[1].message(VERSION, &[0; 100]);
    mute[1].stream.write_all(&bytes[..50]).unwrap();
    assert_eq!(mute[2].ask(GET_INFO, &[0; 16], &[]).errno, 22);
    for (n, client) in mute.iter_mut().enumerate() {
        assert!(client.answer().is_none(), "the server hangs up");
        assert_alive(&dir, n);
    }
}

#[test]
fn client_rejection_does_not_wait_for_silent_clients() {
    let dir = Dir::new();
    let (server, _) = serve_fakes(&dir, 1);
    let mut first = Client::new(&dir.socket(0));
    let ask = || {
        let mut client = Client::silent(&dir.socket(0));
        let errno = client.ask(VERSION, &[0, 0, 1, 0], &[]).errno;
        assert!(client.answer().is_none(), "and the connection ends");
        errno
    };
    // One after another, the silent clients' 200 ms would be 10 s. On a busy machine, at least one
    // of several attempts is quick.
    let at_once = (0..20).any(|_| {
        let silent: Vec<Client> = (0..50).map(|_| Client::silent(&dir.socket(0))).collect();
        let start = Instant::now();
        assert_eq!(ask(), 16, "EBUSY");
        let quick = start.elapsed() < Duration::from_millis(1000);
        for mut client in silent {
            assert!(client.answer().is_none(), "hung up on");
        }
        quick
    });
    assert!(at_once);
    // More clients than are waited for.
    let crowd: Vec<Client> = (0..100).map(|_| Client::silent(&dir.socket(0))).collect();
    assert_eq!(ask(), 16);
    drop(crowd);
    assert_eq!(first.read32(BAR4, SETUP.offset), SETUP.value);
    let refused = |c: &&(&str, u64)| c.0.contains("refused") && c.0.contains("client");
    let counters = &server.counters()[0];
    assert!(counters.iter().find(refused).unwrap().1 >= 101);
}

#[test]
fn connection_with_half_a_message_blocks_only_itself() {
    let dir = Dir::new();
    let (server, _) = serve_fakes(&dir, 2);
    let mut stuck = Client::new(&dir.socket(0));
    let bytes = stuck.message(REGION_WRITE, &[0; 100]);
    stuck.stream.write_all(&bytes[..50]).unwrap();
    assert_alive(&dir, 1);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "nor the end");
    assert!(stuck.answer().is_none());
}

/// A client whose device reads and writes its memory without end.
fn storm(dir: &Dir, ram: &std::os::fd::OwnedFd) -> Client {
    let mut client = Client::new(&dir.socket(0));
    assert_eq!(client.map(RAM, 0x1000, Some((ram, 0))), 0);
    client.bus_master(true);
    client.write32(BAR4, fake::ADDRESS, RAM as u32);
    client.write32(BAR4, fake::LENGTH, 4096);
    client.write32(BAR4, fake::COMMAND, fake::STORM);
    wait_for("the storm", || peek(ram, 0xFFF, 1) == [0xEE]);
    client
}

#[test]
fn dma_maps_can_be_removed_during_accesses() {
    let dir = Dir::new();
    let (server, _) = serve_fakes(&dir, 1);
    let ram = memory(0x1000);
    let mut client = storm(&dir, &ram);
    for _ in 0..300 {
        assert_eq!(client.unmap(RAM, 0x1000), 0);
        // After the answer, nothing is written any more.
        poke(&ram, 0, &[0; 4096]);
        std::thread::sleep(Duration::from_micros(100));
        assert_eq!(peek(&ram, 0, 4096), [0; 4096]);
        assert_eq!(client.map(RAM, 0x1000, Some((&ram, 0))), 0);
        wait_for("the storm", || peek(&ram, 0xFFF, 1) == [0xEE]);
    }
    client.bus_master(false);
    poke(&ram, 0, &[0; 4096]);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(peek(&ram, 0, 4096), [0; 4096]);
    server.stop();
}

#[test]
fn dma_file_can_shrink_during_accesses() {
    let dir = Dir::new();
    let (_server, seen) = serve_fakes(&dir, 2);
    let mut neighbour = Client::new(&dir.socket(1));
    for _ in 0..20 {
        let ram = memory(0x1000);
        let client = storm(&dir, &ram);
        let before = seen[0].lock().unwrap().failed_reads;
        rustix::fs::ftruncate(&ram, 0).unwrap();
        wait_for("failed reads", || {
            seen[0].lock().unwrap().failed_reads > before
        });
        drop(client);
    }
    neighbour.write32(BAR4, 0x40, 1);
    assert_eq!(neighbour.read32(BAR4, 0x40), 1);
    assert_alive(&dir, 0);
}

#[test]
fn dma_stops_when_the_client_is_gone() {
    let dir = Dir::new();
    let (_server, seen) = serve_fakes(&dir, 1);
    for round in 0..20 {
        let ram = memory(0x1000);
        let client = storm(&dir, &ram);
        drop(client);
        // The next client is served once the last one is dropped.
        let mut next = Client::new(&dir.socket(0));
        poke(&ram, 0, &[0; 4096]);
        assert_eq!(next.read32(BAR4, fake::LENGTH), 0, "a fresh device");
        let storms = seen[0].lock().unwrap().storms;
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(peek(&ram, 0, 4096), [0; 4096], "round {round}");
        assert_eq!(seen[0].lock().unwrap().storms, storms, "it has stopped");
    }
}

#[test]
fn writes_in_a_flood_are_held_back_not_stored() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    for n in 0..20_000u32 {
        client.write32(BAR2, u64::from(n % 1000) * 4, n);
    }
    assert_eq!(client.read32(BAR2, 999 * 4), 19_999);
}

#[test]
fn interrupts_do_not_wait_for_a_full_eventfd() {
    let dir = Dir::new();
    let (server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    // A counter that blocks writers when it is full. It is emptied and filled repeatedly while the
    // device interrupts.
    let event = eventfd(0, EventfdFlags::empty()).unwrap();
    assert_eq!(client.set_irqs(0x24, 2, 0, 1, &[event.as_fd()]), 0);
    client.bus_master(true);
    client.write32(BAR4, fake::LENGTH, 0);
    client.write32(BAR4, fake::COMMAND, fake::RING);
    let rounds = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (count, filled) = (rounds.clone(), event.try_clone().unwrap());
    // The rest is filled in single steps, in a race with the device. At the end this thread stays
    // blocked in a write.
    std::thread::spawn(move || loop {
        let _ = rustix::io::read(&filled, &mut [0; 8]);
        let _ = rustix::io::write(&filled, &(u64::MAX - 20).to_ne_bytes());
        for _ in 0..20 {
            let _ = rustix::io::write(&filled, &1u64.to_ne_bytes());
        }
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    let (start, mut before) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(300) {
        std::thread::sleep(Duration::from_micros(500));
        let now = rounds.load(std::sync::atomic::Ordering::Relaxed);
        if now == before {
            // The counter stays full while the device interrupts.
            assert_eq!(client.read32(BAR4, SETUP.offset), SETUP.value);
            rustix::io::read(&event, &mut [0; 8]).unwrap();
        }
        before = now;
    }
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "nor the end");
}
