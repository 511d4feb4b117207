// SPDX-License-Identifier: Apache-2.0

//! The access hook: what an engine holds waits, and other engines do not wait.
//!
//! A reset of the function ends the hold. What the host sends after a command reaches the media
//! only once the engine has taken the command.

mod common;

use common::Bench;
use driver::{DriverConfig, Host, NvmeDriver, SimHost};
use sim::{Bar, Device, Time};
use spec::nvme::Sqe;

const MEDIA: u64 = 16 << 20;
/// Registers of the engine that holds: `tests/engines/hold`.
const HOLD: u64 = 0x8_6000;
const FIRST: u64 = HOLD + 0x20;
const LIMIT: u64 = HOLD + 0x30;
const SWITCH: u64 = HOLD + 0x100;
const WAITS: u64 = HOLD + 0x104;
/// Cycles for which the engine sees a command before it takes it, 0 to 15.
const DELAY: u64 = HOLD + 0x108;
/// Its command page.
const PAGE: u64 = 0x4_3000;
const PM_WRITE: u32 = 1;
const PM_READ: u32 = 2;
const NVME_WRITE: u32 = 4;
const NVME_READ: u32 = 8;
/// The copy engine.
const COPY: u64 = 0x8_2000;
/// Held: the second granule of channel 0, at this media address.
const HELD: u64 = 2 * 4096;

impl Bench {
    fn hold(&mut self, cycles: u32) {
        self.write32(Bar::Control, FIRST, 4096);
        self.write32(Bar::Control, LIMIT, 8192);
        self.write32(Bar::Control, SWITCH, cycles);
        self.cycles(50);
    }

    /// A bench whose engine takes commands after this number of cycles.
    fn that_takes_after(cycles: u32) -> Bench {
        let mut b = common::mailbox_bench();
        b.write32(Bar::Control, DELAY, cycles);
        b.cycles(50);
        b
    }
}

/// A command: local addresses of channel 0, and cycles.
fn command(first: u64, limit: u64, cycles: u64) -> [u8; 64] {
    let mut command = [0; 64];
    for (n, value) in [first, limit, cycles].iter().enumerate() {
        command[8 + 8 * n..16 + 8 * n].copy_from_slice(&value.to_le_bytes());
    }
    command
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_store_waits_for_an_earlier_command() {
    for delay in [0, 1, 2, 7, 15] {
        for piece in [64, 32, 16] {
            let mut b = Bench::that_takes_after(delay);
            let mut at = PAGE;
            for bytes in command(4096, 8192, 1000).chunks(piece) {
                // The access counts as older than the command until it is complete.
                b.post(Bar::Pm, HELD, &[1; 64]);
                b.post(Bar::Control, at, bytes);
                at += piece as u64;
            }
            b.post(Bar::Pm, HELD, &[2; 64]);
            b.cycles(500);
            assert_eq!(b.byte(HELD), 1, "taken after {delay}, pieces of {piece}");
            b.cycles(1000);
            assert_eq!(b.byte(HELD), 2);
            assert_eq!(b.read32(Bar::Control, WAITS), PM_WRITE);
        }
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_load_waits_for_an_earlier_command() {
    for delay in [0, 1, 2, 7, 15] {
        let mut b = Bench::that_takes_after(delay);
        b.post(Bar::Control, PAGE, &command(4096, 8192, 1000));
        let tag = b.host.ask(b.device.now(), Bar::Pm, HELD, 4);
        b.cycles(500);
        assert_eq!(b.host.answer(tag), None, "taken after {delay}");
        b.cycles(1000);
        assert_eq!(b.host.answer(tag), Some(Some(vec![0; 4])));
        assert_eq!(b.read32(Bar::Control, WAITS), PM_READ);
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_store_waits_for_all_earlier_commands() {
    let mut b = Bench::that_takes_after(15);
    // A page at once, of which the last command counts; then a write that is no command, and a
    // command that is dropped.
    let page: Vec<u8> = (0..64).flat_map(|n| command(n * 64, 4160, n)).collect();
    b.post(Bar::Control, PAGE, &page);
    b.post(Bar::Pm, 0, &[1; 64]);
    b.post(Bar::Control, PAGE, &[0; 60]);
    b.post(Bar::Control, PAGE + 0x40, &command(4096, 8192, 1000));
    b.post(Bar::Pm, HELD, &[2; 64]);
    b.post(Bar::Control, PAGE + 0x80, &command(4096, 8192, 2000));
    b.post(Bar::Pm, HELD, &[3; 64]);
    b.cycles(1500);
    assert_eq!((b.byte(0), b.byte(HELD)), (1, 0), "commands take 1024");
    b.cycles(1000);
    assert_eq!(b.byte(HELD), 2);
    b.cycles(2500);
    assert_eq!(b.byte(HELD), 3);
    let answer = b.read(Bar::Control, PAGE, 64).unwrap();
    let word = |at: usize| u32::from_le_bytes(answer[at..at + 4].try_into().unwrap());
    assert_eq!((word(16), word(20), word(24)), (66, 66, 0));
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_held_stores_wait() {
    let mut b = common::mailbox_bench();
    b.device.media_mut().write(8 << 20, &[7; 64]);
    for (n, value) in [8 << 20, HELD, 64].into_iter().enumerate() {
        b.write32(Bar::Control, COPY + 0x20 + 0x10 * n as u64, value as u32);
    }
    b.hold(2000);
    b.write32(Bar::Control, COPY, 1);
    b.post(Bar::Pm, 4096, &[1; 64]); // channel 1
    b.post(Bar::Pm, 0, &[2; 64]); // channel 0, before the range
    b.post(Bar::Pm, HELD + 100, &[3; 64]);
    b.cycles(1000);
    assert_eq!((b.byte(4096), b.byte(0), b.byte(HELD + 100)), (1, 2, 0));
    // Accesses of another engine do not pass through the hook.
    assert_eq!(b.byte(HELD), 7);
    b.cycles(1500);
    assert_eq!((b.byte(HELD + 99), b.byte(HELD + 100)), (0, 3));
    assert_eq!(b.read(Bar::Pm, HELD + 163, 2).unwrap(), [3, 0]);
    assert_eq!(b.read32(Bar::Control, WAITS), PM_WRITE);
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_held_loads_wait() {
    let mut b = common::mailbox_bench();
    b.device.media_mut().write(HELD, b"held");
    b.device.media_mut().write(0, b"free");
    b.hold(1000);
    assert_eq!(b.read(Bar::Pm, 0, 4).unwrap(), b"free");
    let tag = b.host.ask(b.device.now(), Bar::Pm, HELD, 4);
    b.cycles(500);
    assert_eq!(b.host.answer(tag), None);
    b.cycles(1000);
    assert_eq!(b.host.answer(tag).unwrap().unwrap(), b"held");
    assert_eq!(b.read32(Bar::Control, WAITS), PM_READ);
}

#[test]
#[ignore = "compiles a separate device"]
fn command_page_works_after_resets_at_many_moments() {
    for after in 0..30 {
        let mut b = Bench::that_takes_after(15);
        b.post(Bar::Control, PAGE, &command(4096, 8192, 1_000_000));
        b.post(Bar::Pm, HELD, &[1; 64]);
        b.cycles(after);
        b.function_reset();
        b.cycles(500);
        b.post(Bar::Control, PAGE, &command(4096, 8192, 1000));
        b.post(Bar::Pm, HELD, &[2; 64]);
        b.cycles(500);
        assert_eq!(b.byte(HELD), 0);
        assert_eq!(b.read(Bar::Pm, HELD + 63, 1).unwrap(), [2]);
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_function_reset_ends_held_accesses() {
    for after in [1, 3, 20, 100] {
        let mut b = common::mailbox_bench();
        b.hold(1_000_000);
        b.post(Bar::Pm, 0, &[2; 64]);
        b.post(Bar::Pm, HELD, &[3; 256]);
        b.host.ask(b.device.now(), Bar::Pm, HELD + 4096, 64);
        b.cycles(after);
        b.function_reset();
        b.cycles(500);
        assert_eq!(b.byte(HELD), 0, "it had not begun");
        b.post(Bar::Pm, HELD, &[4; 256]);
        assert_eq!(b.read(Bar::Pm, HELD + 255, 1).unwrap(), [4]);
        assert_eq!(b.read32(Bar::Control, WAITS), 0);
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn conflict_filter_nvme_commands_wait_and_others_continue() {
    let costs = testbed::driver_costs(&design::Cpu::default());
    let host = common::host_of("mailboxes", common::mailboxes(), MEDIA, costs, 0);
    let config = DriverConfig {
        admin_entries: 16,
        io_queues: 2,
        io_entries: 64,
        ..DriverConfig::default()
    };
    let mut c: NvmeDriver<SimHost> = NvmeDriver::start(host, config).unwrap();
    c.write(HELD / 512, &[9; 512]).unwrap();
    let set = |c: &mut NvmeDriver<SimHost>, at, value| {
        c.host_mut().write32(Bar::Control, at, value).unwrap();
    };
    let rest = |c: &mut NvmeDriver<SimHost>| {
        let system = c.host_mut().system_mut();
        let until = system.now() + Time::us(200);
        system.advance_until(until).unwrap();
    };
    set(&mut c, FIRST, 4096);
    set(&mut c, LIMIT, 3 * 4096);
    set(&mut c, SWITCH, 5000); // 500 us
    let buffer = c.host_mut().alloc(4096, 4096).unwrap();
    c.host_mut().dma_write(buffer, &[5; 512]);
    let block = |opcode: u8, lba: u64, at: u64| {
        let lba = lba as u32;
        Sqe::new(opcode)
            .with_nsid(1)
            .with_cdw(10, lba)
            .with_prps(at, 0)
    };
    let held = HELD / 512;
    c.submit_raw(0, block(1, held, buffer), 1).unwrap(); // a write
                                                         // A read of the next granule of this
                                                         // channel: a read and a write of one
                                                         // granule wait for each other.
    c.submit_raw(0, block(2, held + 16, buffer + 1024), 2)
        .unwrap();
    c.submit_raw(0, block(2, 8, buffer + 2048), 3).unwrap(); // of the other channel
    c.ring(0).unwrap();
    rest(&mut c);
    let ended = |c: &mut NvmeDriver<SimHost>| {
        let mut tags = Vec::new();
        while let Some(completion) = c.poll(0).unwrap() {
            tags.push(completion.tag);
            rest(c);
        }
        tags.sort_unstable();
        tags
    };
    assert_eq!(ended(&mut c), [3]);
    for _ in 0..3 {
        rest(&mut c);
    }
    assert_eq!(ended(&mut c), [1, 2]);
    c.ring(0).unwrap();
    let waits = c.host_mut().read32(Bar::Control, WAITS).unwrap();
    assert_eq!(waits, NVME_WRITE | NVME_READ);
    let mut back = [0; 512];
    c.read(HELD / 512, &mut back).unwrap();
    assert_eq!(back, [5; 512]);
}
