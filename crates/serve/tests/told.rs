//! What whoever runs the server is told: of faults, of clients that are turned away, of memory that isn't there.

mod common;

use std::time::{Duration, Instant};

use common::*;

const RAM: u64 = 0x10_0000;
/// What a fault is followed by.
const WAY_BACK: [&str; 3] = ["function level reset", "nvme reset", "echo 1 > reset"];

#[test]
fn a_fault_is_told_with_the_way_back_whether_the_device_works_or_rests() {
    let dir = Dir::new();
    for (command, text) in [(fake::FAIL, "told to"), (fake::FAIL_AT_REST, "at rest")] {
        let (server, _, said) = serve_fakes_said(&dir, 1);
        let mut client = Client::new(&dir.socket(0));
        client.write32(BAR4, 0x40, 7);
        client.write32(BAR4, fake::COMMAND, command);
        wait_for("the fault", || client.read32(BAR4, 0x40) == u32::MAX);
        assert_eq!(said.times(text), 1);
        for text in WAY_BACK {
            assert_eq!(said.times(text), 1, "{text}");
        }
        let faults = server.counters()[0]
            .iter()
            .find(|c| c.0 == "faults")
            .unwrap()
            .1;
        assert_eq!(faults, 1);
        // The way that it says.
        client.try_write(CONFIG, 0x69, &[0x80]).unwrap();
        assert_eq!(client.read32(BAR4, 0x40), 0);
        server.stop();
        assert_eq!(said.times(text), 1, "once");
    }
}

#[test]
fn a_second_client_is_turned_away_at_once() {
    let dir = Dir::new();
    let (_server, _, said) = serve_fakes_said(&dir, 1);
    let mut first = Client::new(&dir.socket(0));
    first.write32(BAR4, 0x40, 5);
    for round in 1..=9_usize {
        let start = Instant::now();
        let mut second = Client::silent(&dir.socket(0));
        let (answer, _) = {
            let bytes = second.message(VERSION, &[0, 0, 1, 0]);
            std::io::Write::write_all(&mut second.stream, &bytes).unwrap();
            second.answer().expect("an answer")
        };
        assert_eq!(answer.errno, 16, "EBUSY");
        assert!(second.answer().is_none(), "and the connection ends");
        assert!(start.elapsed() < Duration::from_secs(5));
        // Whoever comes again and again doesn't fill the log.
        let words = round.ilog2() as usize + 1;
        wait_for("a word", || said.times("another client") == words);
    }
    // One that says nothing is not waited for.
    let mut silent = Client::silent(&dir.socket(0));
    assert!(silent.answer().is_none());
    assert_eq!(
        first.read32(BAR4, 0x40),
        5,
        "the first one keeps the device"
    );
    drop(first);
    let mut next = Client::new(&dir.socket(0));
    assert_eq!(next.read32(BAR4, 0x40), 0);
}

#[test]
fn dma_that_no_memory_takes_is_counted_and_told() {
    let dir = Dir::new();
    let (server, seen, said) = serve_fakes_said(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let ram = memory(0x1000);
    assert_eq!(client.map(RAM, 0x1000, Some((&ram, 0))), 0);
    let order = |client: &mut Client, command: u32, addr: u64| {
        client.write32(BAR4, fake::ADDRESS, addr as u32);
        client.write32(BAR4, fake::LENGTH, 16);
        client.write32(BAR4, fake::COMMAND, command);
        client.read32(BAR4, fake::COMMAND);
    };
    // Without bus mastering nothing is to be expected; that is counted only.
    order(&mut client, fake::WRITE, RAM);
    assert_eq!(said.times("DMA"), 0);
    client.bus_master(true);
    order(&mut client, fake::WRITE, RAM);
    assert_eq!(said.times("DMA"), 0);
    for n in 1..=3 {
        order(&mut client, fake::WRITE, RAM + 0x1000 * n);
    }
    assert_eq!(said.times("DMA"), 1, "the first one");
    assert_eq!(said.times("a write of 16 bytes to 0x101000"), 1);
    let failed = seen[0].lock().unwrap().failed_reads;
    order(&mut client, fake::READ, RAM - 0x1000);
    wait_for("the read", || {
        seen[0].lock().unwrap().failed_reads == failed + 1
    });
    drop(client);
    wait_for("the sum", || said.times("4 DMA accesses") == 1);
    let refused = |server: &serve::Server| {
        let counters = server.counters().remove(0);
        counters
            .iter()
            .find(|c| c.0 == "refused_accesses")
            .unwrap()
            .1
    };
    assert_eq!(refused(&server), 5);
    // The next client's are its own.
    let mut client = Client::new(&dir.socket(0));
    client.bus_master(true);
    order(&mut client, fake::READ, 0x5000);
    wait_for("the next", || {
        said.times("a read of 16 bytes from 0x5000") == 1
    });
    drop(client);
    server.stop();
    assert_eq!(said.times("1 DMA"), 0, "one has been told of");
}
