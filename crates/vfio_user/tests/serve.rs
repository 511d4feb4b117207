// SPDX-License-Identifier: Apache-2.0

//! Well-behaved clients.

mod common;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use memmap2::MmapOptions;
use rustix::event::{eventfd, EventfdFlags};
use rustix::fs::{flock, FlockOperation};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use vfio_user::Server;

const MSIX: u32 = 2;
const ATTACH: u32 = 0x24;
const RAM: u64 = 0x10_0000;

fn count(fd: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    match rustix::io::read(fd, &mut bytes) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => 0,
    }
}

/// Has the fake copy between its buffer and the client's memory, or interrupt.
fn order(client: &mut Client, command: u32, addr: u64, len: u32) {
    client.write32(BAR4, fake::ADDRESS, addr as u32);
    client.write32(BAR4, fake::ADDRESS + 4, (addr >> 32) as u32);
    client.write32(BAR4, fake::LENGTH, len);
    client.write32(BAR4, fake::COMMAND, command);
    // A read completes after all earlier commands.
    client.read32(BAR4, fake::COMMAND);
}

#[test]
fn client_of_another_crate_finds_an_nvme_function() {
    let dir = Dir::new();
    let (server, _) = serve_fakes(&dir, 1);
    let mut client = vfio_user_client::Client::new(&dir.socket(0)).unwrap();
    let sizes: Vec<u64> = (0..9).map(|i| client.region(i).unwrap().size).collect();
    assert_eq!(sizes, [64 << 10, 0, 1 << 20, 0, 1 << 20, 0, 0, 4096, 0]);
    let bar0 = client.region(0).unwrap();
    let area = bar0.sparse_areas[0];
    assert_eq!(
        (area.offset, area.size, bar0.sparse_areas.len()),
        (0x1000, 0x1000, 1)
    );
    assert!(
        bar0.file_offset.is_some(),
        "the doorbell page can be mapped"
    );
    let mut class = [0; 4];
    client.region_read(CONFIG, 8, &mut class).unwrap();
    assert_eq!(u32::from_le_bytes(class) >> 8, 0x01_08_02);
    let vectors: Vec<u32> = (0..5)
        .map(|i| client.get_irq_info(i).unwrap().count)
        .collect();
    assert_eq!(vectors, [0, 0, 4, 0, 0]);
    client.region_write(BAR4, 0x40, &[1, 2, 3, 4]).unwrap();
    let mut back = [0; 4];
    client.region_read(BAR4, 0x40, &mut back).unwrap();
    assert_eq!(back, [1, 2, 3, 4]);
    client.reset().unwrap();
    client.region_read(BAR4, 0x40, &mut back).unwrap();
    assert_eq!(back, [0; 4]);
    drop(client);
    server.stop();
}

#[test]
fn region_accesses_of_any_size_reach_the_windows() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    for (region, offset, len) in [
        (BAR0, 0x5001, 3),
        (BAR2, 0, 100_000),
        (BAR2, 4090, 20),
        (BAR2, (1 << 20) - 1, 1),
        (BAR4, 0xFF0, 4096),
    ] {
        let data: Vec<u8> = (0..len).map(|i: u32| (i * 7 + 1) as u8).collect();
        client.try_write(region, offset, &data).unwrap();
        assert_eq!(client.try_read(region, offset, len), Ok(data));
    }
    assert_eq!(client.try_read(BAR2, 5, 0), Ok(vec![]));
}

#[test]
fn dma_reaches_mapped_memory_with_bus_mastering() {
    let dir = Dir::new();
    let (server, seen) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let ram = memory(0x4000);
    assert_eq!(client.map(RAM, 0x2000, Some((&ram, 0x1000))), 0);
    poke(&ram, 0x1100, b"from the client's memory");
    order(&mut client, fake::READ, RAM + 0x100, 24);
    assert_eq!(seen[0].lock().unwrap().failed_reads, 1, "no bus master yet");
    client.bus_master(true);
    order(&mut client, fake::READ, RAM + 0x100, 24);
    wait_for("the data", || {
        client.try_read(BAR4, fake::BUFFER, 24).unwrap() == b"from the client's memory"
    });
    order(&mut client, fake::WRITE, RAM + 0x1FF0, 16);
    assert_eq!(peek(&ram, 0x2FF0, 16), b"from the client'");
    // Outside the map, in the same file.
    for addr in [RAM - 0x10, RAM + 0x2000, 0, u64::MAX - 0xF] {
        order(&mut client, fake::WRITE, addr, 16);
    }
    assert_eq!(peek(&ram, 0xFF0, 16), [0; 16]);
    assert_eq!(peek(&ram, 0x3000, 16), [0; 16]);
    client.bus_master(false);
    order(&mut client, fake::WRITE, RAM, 16);
    assert_eq!(peek(&ram, 0x1000, 16), [0; 16]);
    let refused = server.counters()[0]
        .iter()
        .find(|c| c.0 == "refused_accesses")
        .unwrap()
        .1;
    assert_eq!(refused, 6);
}

#[test]
fn interrupts_reach_their_eventfds() {
    let dir = Dir::new();
    let (_server, seen) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let fds: Vec<OwnedFd> = (0..2)
        .map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap())
        .collect();
    client.bus_master(true);
    order(&mut client, fake::INTERRUPT, 0, 1);
    let both = [fds[0].as_fd(), fds[1].as_fd()];
    assert_eq!(client.set_irqs(ATTACH, MSIX, 1, 2, &both), 0);
    order(&mut client, fake::INTERRUPT, 0, 1);
    order(&mut client, fake::INTERRUPT, 0, 2);
    order(&mut client, fake::INTERRUPT, 0, 2);
    order(&mut client, fake::INTERRUPT, 0, 3);
    assert_eq!((count(&fds[0]), count(&fds[1])), (1, 2));

    // The function mask, in configuration space.
    client.try_write(CONFIG, 0xB3, &[0xC0]).unwrap();
    order(&mut client, fake::INTERRUPT, 0, 1);
    assert_eq!(seen[0].lock().unwrap().msix, (true, true));
    assert_eq!(count(&fds[0]), 0);
    client.try_write(CONFIG, 0xB3, &[0x80]).unwrap();

    // One vector is masked in the table, then by a mask action.
    client.write32(BAR0, 0x2000 + 16 + 12, 1);
    order(&mut client, fake::INTERRUPT, 0, 1);
    order(&mut client, fake::INTERRUPT, 0, 2);
    assert_eq!((count(&fds[0]), count(&fds[1])), (0, 1));
    client.write32(BAR0, 0x2000 + 16 + 12, 0);
    assert_eq!(client.set_irqs(0x09, MSIX, 2, 1, &[]), 0);
    order(&mut client, fake::INTERRUPT, 0, 1);
    order(&mut client, fake::INTERRUPT, 0, 2);
    assert_eq!((count(&fds[0]), count(&fds[1])), (1, 0));
    assert_eq!(client.set_irqs(0x11, MSIX, 2, 1, &[]), 0);

    // One vector is detached, then all. The client triggers one itself.
    assert_eq!(client.set_irqs(ATTACH, MSIX, 1, 1, &[]), 0);
    order(&mut client, fake::INTERRUPT, 0, 1);
    assert_eq!(client.set_irqs(0x21, MSIX, 2, 1, &[]), 0);
    assert_eq!((count(&fds[0]), count(&fds[1])), (0, 1));
    assert_eq!(client.set_irqs(0x21, MSIX, 0, 0, &[]), 0);
    order(&mut client, fake::INTERRUPT, 0, 2);
    assert_eq!(count(&fds[1]), 0);

    // The table returns what was written, not the device's own entries.
    client.try_write(BAR0, 0x2000, &[0xAB; 64]).unwrap();
    assert_eq!(client.try_read(BAR0, 0x2000, 64), Ok(vec![0xAB; 64]));
}

#[test]
fn interrupts_need_bus_mastering() {
    let dir = Dir::new();
    let (_server, _) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    assert_eq!(client.set_irqs(ATTACH, MSIX, 0, 1, &[fd.as_fd()]), 0);
    order(&mut client, fake::INTERRUPT, 0, 0);
    assert_eq!(count(&fd), 0);
    client.bus_master(true);
    order(&mut client, fake::INTERRUPT, 0, 0);
    assert_eq!(count(&fd), 1);
}

/// Maps the doorbell page, as a client does.
fn doorbells(client: &mut Client) -> memmap2::MmapRaw {
    let words = [64u32, 0, BAR0, 0, 0, 0, 0, 0];
    let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let info = client.ask(GET_REGION_INFO, &body, &[]);
    assert_eq!(info.fds.len(), 1);
    // Argument size, flags, index, first capability; then area 0 of the capability.
    assert_eq!(
        (info.word(0), info.word(4) & 0xC, info.word(12)),
        (64, 0xC, 32)
    );
    assert_eq!((info.word(48), info.word(56)), (0x1000, 0x1000));
    MmapOptions::new()
        .offset(0x1000)
        .len(0x1000)
        .map_raw(&info.fds[0])
        .unwrap()
}

fn ring(page: &memmap2::MmapRaw, offset: usize, value: u32) {
    // SAFETY: within the page, aligned.
    unsafe { AtomicU32::from_ptr(page.as_mut_ptr().add(offset).cast()) }
        .store(value, Ordering::Release);
}

#[test]
fn doorbells_arrive_through_the_shared_page() {
    let dir = Dir::new();
    let (_server, seen) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let page = doorbells(&mut client);
    let got = || seen[0].lock().unwrap().doorbells.clone();
    ring(&page, 8, 5);
    wait_for("the doorbell", || got() == [(0x1008, 5)]);
    ring(&page, 8, 5);
    wait_for("the same value again", || got().len() == 2);
    std::thread::sleep(std::time::Duration::from_millis(30)); // the worker polls rarely by now
    ring(&page, 0xFFC, 7);
    // A doorbell precedes a later register access.
    client.write32(BAR0, 0x1004, 9);
    client.read32(BAR0, 0);
    assert_eq!(got()[2..], [(0x1FFC, 7), (0x1004, 9)]);
}

#[test]
fn reset_leaves_a_configured_device() {
    let dir = Dir::new();
    let (_server, seen) = serve_fakes(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    client.read32(BAR4, 0); // the device is up
                            // A posted write precedes a later reset.
    client.try_write(BAR2, 0x80, b"kept").unwrap();
    for function_level in [false, true] {
        client.bus_master(true);
        client.write32(BAR4, 0x40, 77);
        let before = seen[0].lock().unwrap().power_ups;
        if function_level {
            client.try_write(CONFIG, 0x69, &[0x80]).unwrap();
        } else {
            assert_eq!(client.ask(RESET, &[], &[]).errno, 0);
        }
        assert_eq!(seen[0].lock().unwrap().power_ups, before + 1);
        assert_eq!(client.read32(BAR4, 0x40), 0);
        assert_eq!(client.read32(CONFIG, 4) & 4, 0, "no bus master");
        assert_eq!(client.read32(BAR4, SETUP.offset), SETUP.value);
        assert_eq!(client.try_read(BAR2, 0x80, 4).unwrap(), b"kept");
    }
}

#[test]
fn client_after_client_is_served() {
    let dir = Dir::new();
    let (server, seen) = serve_fakes(&dir, 1);
    let mut old: Option<memmap2::MmapRaw> = None;
    for round in 0..5 {
        let mut client = Client::new(&dir.socket(0));
        assert_eq!(client.read32(BAR4, 0x40), 0, "fresh");
        assert_eq!(client.read32(BAR4, SETUP.offset), SETUP.value);
        client.write32(BAR4, 0x40, 1);
        let page = doorbells(&mut client);
        if let Some(old) = old {
            ring(&old, 0x10, 0xDEAD);
        }
        ring(&page, 0x10, round);
        wait_for("the doorbell", || {
            let seen = seen[0].lock().unwrap();
            assert!(!seen.doorbells.contains(&(0x1010, 0xDEAD)));
            seen.doorbells.contains(&(0x1010, round))
        });
        old = Some(page);
    }
    assert_eq!(server.counters()[0][0], ("connections", 5));
}

#[test]
fn server_devices_are_independent() {
    let dir = Dir::new();
    let (server, seen) = serve_fakes(&dir, 3);
    let mut clients: Vec<Client> = (0..3).map(|n| Client::new(&dir.socket(n))).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        client.write32(BAR4, 0x40, n as u32 + 10);
    }
    // One fails, one is never idle, and one stays.
    clients[0].write32(BAR4, fake::COMMAND, fake::FAIL);
    clients[1].write32(BAR4, fake::COMMAND, fake::STORM);
    wait_for("the fault", || clients[0].read32(BAR4, 0x40) == u32::MAX);
    assert_eq!(clients[1].read32(BAR4, 0x40), 11, "busy, but it answers");
    assert_eq!(clients[2].read32(BAR4, 0x40), 12);
    assert_eq!(clients[0].ask(RESET, &[], &[]).errno, 0);
    assert_eq!(clients[0].read32(BAR4, 0x40), 0, "a reset mends it");
    assert_eq!(seen[2].lock().unwrap().power_ups, 1);
    server.stop();
    for n in 0..3 {
        assert!(!dir.socket(n).exists());
    }
}

/// A server of one fake device.
fn start(path: &Path) -> Result<Server, vfio_user::Error> {
    Server::start(vec![vfio_user::ServedDevice {
        name: "fake".into(),
        socket: path.into(),
        device: Box::new(Fake::new()),
        function: vfio_user::Function {
            pm_bytes: 1 << 20,
            pm_file: None,
            vectors: 4,
            link: sim::LinkConfig::default(),
        },
        setup: Vec::new(),
        tracer: None,
        log: vfio_user::Log::stderr(),
    }])
}

#[test]
fn socket_of_another_program_stays() {
    let dir = Dir::new();
    let refused = |n| matches!(start(&dir.socket(n)), Err(vfio_user::Error::InUse(_)));
    // Live programs of several kinds: a datagram socket, and a bound socket that does not listen.
    let datagram = UnixDatagram::bind(dir.socket(0)).unwrap();
    datagram.set_nonblocking(true).unwrap();
    let deaf = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let address = SocketAddrUnix::new(dir.socket(1)).unwrap();
    rustix::net::bind(&deaf, &address).unwrap();
    assert!(refused(0) && refused(1));
    assert!(datagram.recv(&mut [0; 8]).is_err(), "it hears nothing");
    let other = UnixDatagram::unbound().unwrap();
    other.send_to(b"still here", dir.socket(0)).unwrap();
    assert_eq!(datagram.recv(&mut [0; 16]).unwrap(), 10);
    // Sockets of dead programs are replaced.
    drop((datagram, deaf));
    start(&dir.socket(0)).unwrap().stop();
    start(&dir.socket(1)).unwrap().stop();
    assert!(!dir.socket(0).exists() && !dir.socket(1).exists());
}

#[test]
fn socket_of_a_successor_stays_at_the_end() {
    let dir = Dir::new();
    let socket = dir.socket(0);
    let first = start(&socket).unwrap();
    std::fs::remove_file(&socket).unwrap();
    let second = start(&socket).unwrap();
    first.stop();
    Client::new(&socket);
    // Only the socket is removed, never another file.
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "mine").unwrap();
    second.stop();
    assert_eq!(std::fs::read(&socket).unwrap(), b"mine");
}

#[test]
fn socket_probe_is_no_client() {
    let dir = Dir::new();
    let socket = dir.socket(0);
    let server = start(&socket).unwrap();
    for _ in 0..3 {
        assert!(matches!(start(&socket), Err(vfio_user::Error::InUse(_))));
    }
    let mut client = Client::new(&socket);
    client.read32(BAR4, 0);
    let counters = server.counters();
    assert_eq!(counters[0][0], ("connections", 1));
    assert!(counters[0]
        .iter()
        .all(|c| !c.0.contains("refused") || c.1 == 0));
}

#[test]
#[ignore = "takes seconds"]
fn socket_is_taken_over_by_one_of_two_servers() {
    let dir = Dir::new();
    let socket = dir.socket(0);
    let barrier = std::sync::Barrier::new(2);
    for round in 0..200 {
        if round % 4 > 0 {
            drop(UnixListener::bind(&socket).unwrap()); // else there is none at all
        }
        let both = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                start(&socket)
            };
            let both = [scope.spawn(start), scope.spawn(start)];
            both.map(|thread| thread.join().unwrap())
        });
        let winners = both.iter().filter(|server| server.is_ok()).count();
        assert_eq!(winners, 1, "round {round}");
        Client::new(&socket);
        for server in both {
            match server {
                Ok(server) => server.stop(),
                Err(error) => assert!(matches!(error, vfio_user::Error::InUse(_)), "{error}"),
            }
        }
        assert!(!socket.exists(), "round {round}");
    }
}

#[test]
#[ignore = "takes seconds"]
fn socket_in_a_locked_directory_is_not_replaced() {
    let dir = Dir::new();
    let directory = std::fs::File::open(dir.path()).unwrap();
    flock(&directory, FlockOperation::LockExclusive).unwrap();
    drop(UnixListener::bind(dir.socket(0)).unwrap());
    std::thread::scope(|scope| {
        // Each server gives the other program some seconds.
        let new = scope.spawn(|| start(&dir.socket(1)));
        let error = start(&dir.socket(0)).err().unwrap().to_string();
        assert!(error.contains("another program keeps it locked"), "{error}");
        assert!(dir.socket(0).exists());
        let new = new.join().unwrap().unwrap();
        Client::new(&dir.socket(1));
        new.stop();
    });
    drop(directory);
    start(&dir.socket(0)).unwrap().stop();
}

#[test]
fn socket_in_use_stays() {
    let dir = Dir::new();
    let socket = dir.socket(0);
    drop(UnixListener::bind(&socket).unwrap()); // nobody listens any more
    let server = start(&socket).unwrap();
    assert!(matches!(start(&socket), Err(vfio_user::Error::InUse(_))));
    Client::new(&socket);
    server.stop();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    assert!(matches!(start(&file), Err(vfio_user::Error::InUse(_))));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    for bad in [&dir.path().join("no/such/folder"), Path::new("")] {
        assert!(matches!(start(bad), Err(vfio_user::Error::Start(..))));
    }
}
