// SPDX-License-Identifier: Apache-2.0

//! The server's log: faults, rejected clients, memory that is missing.

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::*;

const RAM: u64 = 0x10_0000;
/// Parts of the recovery hint.
const RECOVERY_HINT: [&str; 3] = ["function level reset", "nvme reset", "echo 1 > reset"];

#[test]
fn log_reports_a_fault_with_the_recovery_hint() {
    let dir = Dir::new();
    for (command, text) in [(fake::FAIL, "commanded"), (fake::FAIL_AT_REST, "at rest")] {
        let (server, _, log) = serve_fakes_logged(&dir, 1);
        let mut client = Client::new(&dir.socket(0));
        client.write32(BAR4, 0x40, 7);
        client.write32(BAR4, fake::COMMAND, command);
        wait_for("the fault", || client.read32(BAR4, 0x40) == u32::MAX);
        assert_eq!(log.times(text), 1);
        for text in RECOVERY_HINT {
            assert_eq!(log.times(text), 1, "{text}");
        }
        let faults = server.counters()[0]
            .iter()
            .find(|c| c.0 == "faults")
            .unwrap()
            .1;
        assert_eq!(faults, 1);
        // The recovery that the hint describes.
        client.try_write(CONFIG, 0x69, &[0x80]).unwrap();
        assert_eq!(client.read32(BAR4, 0x40), 0);
        server.stop();
        assert_eq!(log.times(text), 1, "once");
    }
}

#[test]
fn log_reports_a_rejected_second_client() {
    let dir = Dir::new();
    let (_server, _, log) = serve_fakes_logged(&dir, 1);
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
        // Repeated clients do not fill the log.
        let words = round.ilog2() as usize + 1;
        wait_for("a word", || log.times("another client") == words);
    }
    // A silent client is not waited for.
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
fn log_reports_dma_without_memory() {
    let dir = Dir::new();
    let (server, seen, log) = serve_fakes_logged(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let ram = memory(0x1000);
    assert_eq!(client.map(RAM, 0x1000, Some((&ram, 0))), 0);
    let order = |client: &mut Client, command: u32, addr: u64| {
        client.write32(BAR4, fake::ADDRESS, addr as u32);
        client.write32(BAR4, fake::LENGTH, 16);
        client.write32(BAR4, fake::COMMAND, command);
        client.read32(BAR4, fake::COMMAND);
    };
    // Without bus mastering, a failed access is only counted.
    order(&mut client, fake::WRITE, RAM);
    assert_eq!(log.times("DMA"), 0);
    client.bus_master(true);
    order(&mut client, fake::WRITE, RAM);
    assert_eq!(log.times("DMA"), 0);
    for n in 1..=3 {
        order(&mut client, fake::WRITE, RAM + 0x1000 * n);
    }
    assert_eq!(log.times("DMA"), 1, "the first one");
    assert_eq!(
        log.times("a write of 16 bytes to 0x101000 is lost: the client has mapped no memory there"),
        1
    );
    let failed = seen[0].lock().unwrap().failed_reads;
    order(&mut client, fake::READ, RAM - 0x1000);
    wait_for("the read", || {
        seen[0].lock().unwrap().failed_reads == failed + 1
    });
    drop(client);
    wait_for("the sum", || log.times("4 DMA accesses") == 1);
    let refused = |server: &vfio_user::Server| {
        let counters = server.counters().remove(0);
        counters
            .iter()
            .find(|c| c.0 == "refused_accesses")
            .unwrap()
            .1
    };
    assert_eq!(refused(&server), 5);
    // The counts of the next client start anew.
    let mut client = Client::new(&dir.socket(0));
    client.bus_master(true);
    order(&mut client, fake::READ, 0x5000);
    wait_for("the next", || {
        log.times("a read of 16 bytes from 0x5000") == 1
    });
    drop(client);
    server.stop();
    assert_eq!(log.times("1 DMA"), 0, "one was already reported");
}

#[test]
fn log_explains_the_first_failed_access() {
    let dir = Dir::new();
    let (_server, seen, log) = serve_fakes_logged(&dir, 1);
    let ram = memory(0x2000);
    let mut fields = [0; 32];
    fields[4] = 1; // reads only
    fields[16..24].copy_from_slice(&RAM.to_le_bytes());
    fields[25] = 0x10;
    for (order, addr, why) in [
        (fake::WRITE, RAM, "the client allows no writes there"),
        (
            fake::READ,
            RAM - 0x1000,
            "the client has mapped no memory there",
        ),
        (
            fake::READ,
            RAM + 0x1000,
            "without a file descriptor: its memory is not shared",
        ),
        (
            fake::WRITE,
            RAM + 0x2000,
            "the client's file has become shorter",
        ),
    ] {
        rustix::fs::ftruncate(&ram, 0x2000).unwrap();
        let mut client = Client::new(&dir.socket(0));
        client.bus_master(true);
        assert_eq!(client.ask(DMA_MAP, &fields, &[ram.as_fd()]).errno, 0);
        assert_eq!(client.map(RAM + 0x1000, 0x1000, None), 0);
        assert_eq!(client.map(RAM + 0x2000, 0x1000, Some((&ram, 0x1000))), 0);
        rustix::fs::ftruncate(&ram, 0x1000).unwrap();
        let before = (log.times(why), seen[0].lock().unwrap().failed_reads);
        // Twice, as only an access detects the end of the file.
        for _ in 0..2 {
            client.write32(BAR4, fake::ADDRESS, addr as u32);
            client.write32(BAR4, fake::LENGTH, 16);
            client.write32(BAR4, fake::COMMAND, order);
            client.read32(BAR4, fake::COMMAND);
        }
        assert_eq!(log.times(why), before.0 + 1, "{why}");
        let failed = seen[0].lock().unwrap().failed_reads - before.1;
        let read = order == fake::READ;
        assert_eq!(failed, if read { 2 } else { 0 }, "{why}");
        // Received Master Abort: reported for a read, as a write is posted.
        let status = |client: &mut Client| client.try_read(CONFIG, 7, 1).unwrap()[0];
        assert_eq!(status(&mut client), if read { 0x20 } else { 0 }, "{why}");
        client.try_write(CONFIG, 7, &[0x20]).unwrap();
        assert_eq!(status(&mut client), 0, "{why}");
    }
}

#[test]
fn log_reports_a_refused_map_with_its_reason() {
    let dir = Dir::new();
    let (server, _, log) = serve_fakes_logged(&dir, 1);
    let mut client = Client::new(&dir.socket(0));
    let ram = memory(0x4000);
    let pipe: std::os::fd::OwnedFd = rustix::pipe::pipe().unwrap().0;
    assert_eq!(client.map(RAM, 0x2000, Some((&ram, 0))), 0);
    assert_eq!(log.times("DMA_MAP"), 0);
    let mut refused = 0;
    for (address, size, file, why) in [
        (
            RAM + 0x1000,
            0x1000,
            Some((&ram, 0)),
            "it overlaps one that is there",
        ),
        (
            RAM + 0x2000,
            0x800,
            Some((&ram, 0)),
            "have to be multiples of 4096",
        ),
        (
            RAM + 0x2000,
            0x3000,
            Some((&ram, 0x2000)),
            "it ends beyond the end of its file",
        ),
        (RAM + 0x2000, 0, Some((&ram, 0)), "its range is empty"),
        (
            RAM + 0x2000,
            0x1000,
            Some((&pipe, 0)),
            "its file is no regular one",
        ),
        (1 << 46, 1 << 45, Some((&ram, 0)), "at most 16 TiB in all"),
    ] {
        // A new client for each reason, as repeated refusals of one client are not all logged.
        drop(client);
        client = Client::new(&dir.socket(0));
        assert_eq!(client.map(RAM, 0x2000, Some((&ram, 0))), 0);
        assert_ne!(client.map(address, size, file), 0, "{why}");
        assert_eq!(log.times(why), 1, "{why}");
        let what = format!("DMA_MAP of {size:#x} bytes at {address:#x} was refused");
        assert_eq!(log.times(&what), 1, "{what}");
        refused += 1;
    }
    let words = log.times("was refused");
    for _ in 0..7 {
        assert_ne!(client.map(RAM, 0x1000, Some((&ram, 0))), 0);
        refused += 1;
    }
    assert_eq!(log.times("was refused"), words + 3, "at 2, 4 and 8");
    let counters = server.counters().remove(0);
    let count = |name| counters.iter().find(|c| c.0 == name).unwrap().1;
    assert_eq!(count("refused_maps"), refused);
    // Unmapping what is not mapped is no error.
    for _ in 0..27 {
        assert_eq!(client.unmap(1 << 40, 0x1000), 0);
    }
    let now = server.counters().remove(0);
    assert_eq!(
        now.iter().find(|c| c.0 == "refused_messages"),
        counters.iter().find(|c| c.0 == "refused_messages")
    );
}

#[test]
fn log_reports_unshared_memory() {
    let dir = Dir::new();
    let (_server, _, log) = serve_fakes_logged(&dir, 1);
    let reported = |times: usize| {
        assert_eq!(log.times("the client's memory is not shared"), times);
        assert_eq!(log.times("share=on"), times);
    };
    // No file: QEMU's memory without a backend. Windows that follow memory have no file either.
    let mut client = Client::new(&dir.socket(0));
    assert_eq!(client.map(0, 0xA_0000, None), 0);
    reported(1);
    assert_eq!(client.map(RAM, 0x1000, None), 0);
    reported(1);
    drop(client);
    // A file that the client shares, and one that it has not mapped.
    let [shared, unmapped, private] = [memory(0x1000), memory(0x1000), memory(0x1000)];
    let file = |fd: &std::os::fd::OwnedFd| std::fs::File::from(fd.try_clone().unwrap());
    let mine = memmap2::MmapRaw::map_raw(&file(&shared)).unwrap();
    let mut client = Client::new(&dir.socket(0));
    assert_eq!(client.map(RAM, 0x1000, Some((&shared, 0))), 0);
    assert_eq!(client.map(RAM + 0x1000, 0x1000, Some((&unmapped, 0))), 0);
    assert_eq!(client.map(0xFE00_0000, 0x1000, None), 0);
    reported(1);
    // A file that the client has mapped privately: QEMU's share=off. SAFETY: the file is never
    // shortened.
    let copy = unsafe { memmap2::MmapOptions::new().map_copy(&file(&private)) }.unwrap();
    assert_eq!(client.map(RAM + 0x2000, 0x1000, Some((&private, 0))), 0);
    reported(2);
    drop((mine, copy));
}
