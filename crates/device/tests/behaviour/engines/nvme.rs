// SPDX-License-Identifier: Apache-2.0

//! Engines as I/O commands.

use sim::Random;
use spec::nvme::properties::{CC, CSTS};
use spec::nvme::status;
use spec::regs::command_page::line;

use super::scan::{bitmap, values};
use super::*;

const COPY: u8 = 0xC4;
pub const COUNT: u8 = 0xC0;
const FILTER: u8 = 0xC8;

pub fn nvme_copy(from: u64, to: u64, blocks: u32) -> Sqe {
    Sqe::new(COPY)
        .with_nsid(1)
        .with_cdw(10, from as u32)
        .with_cdw(11, (from >> 32) as u32)
        .with_cdw(12, blocks - 1)
        .with_cdw(14, to as u32)
        .with_cdw(15, (to >> 32) as u32)
}

pub fn nvme_scan(opcode: u8, lba: u64, blocks: u32, kind: u32, high: u32) -> Sqe {
    Sqe::new(opcode)
        .with_nsid(1)
        .with_cdw(10, lba as u32)
        .with_cdw(11, (lba >> 32) as u32)
        .with_cdw(12, blocks.wrapping_sub(1))
        .with_cdw(13, kind)
        .with_cdw(14, high)
}

#[test]
fn nvme_commands_copy_blocks_or_are_refused() {
    let mut q = Bench::new("").controller();
    let data = bytes(&mut Random::new(4), 256 * 512);
    q.c.write(2048, &data).unwrap();
    for (source, target, blocks) in [(0, 256, 1), (1, 257, 255), (7, 1000, 9), (8, 16, 8)] {
        let expected = q.bytes(MIB + 512 * source, 512 * blocks as usize);
        let done = q.execute(nvme_copy(2048 + source, 2048 + target, blocks));
        assert_eq!((done.status, done.result), (status::SUCCESS, 0));
        assert!(q.bytes(MIB + 512 * target, 512 * blocks as usize) == expected);
    }
    let blocks = 512 * MIB / 512;
    let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
    for (sqe, answer) in [
        (nvme_copy(0, blocks - 8, 8), status::SUCCESS),
        (nvme_copy(0, blocks - 7, 8), range),
        (nvme_copy(blocks - 7, 0, 8), range),
        (nvme_copy(0, u64::MAX - 3, 8), range),
        (nvme_copy(100, 107, 8), field),
        (nvme_copy(107, 100, 8), field),
        (nvme_copy(100, 100, 1), field),
        (nvme_copy(0, 100, (1 << 24) + 1), field),
        (nvme_copy(0, 100, 1).with_cdw(13, 1), field),
        (nvme_scan(COUNT, blocks - 1, 1, 0, 0), status::SUCCESS),
        (nvme_scan(COUNT, blocks - 1, 2, 0, 0), range),
        (nvme_scan(COUNT, u64::MAX, 2, 0, 0), range),
        (nvme_scan(COUNT, 0, (1 << 24) + 1, 0, 0), field),
        (nvme_scan(COUNT, 0, 1, 4, 0), field),
        (nvme_scan(FILTER, 0, 8, 0, 0), field), // the bitmap would be in the range
        (nvme_scan(FILTER, 0, 9, 1 << 2, 0), field),
        (nvme_scan(FILTER, 9, 1, 1 << 2, 0), status::SUCCESS),
        (
            nvme_scan(FILTER, 0, 256, (blocks as u32 / 8 - 1) << 2, 0),
            status::SUCCESS,
        ),
        (
            nvme_scan(FILTER, 0, 257, (blocks as u32 / 8 - 1) << 2, 0),
            range,
        ),
    ] {
        assert_eq!(q.execute(sqe).status, answer, "{sqe:?}");
    }
}

mod sampled {
    use super::*;

    #[test]
    fn nvme_commands_count_and_filter() {
        let mut q = Bench::new("").controller();
        let (values, data) = values(&mut Random::new(6), 0, 128 * 77);
        q.c.write(6 * 2048 + 1, &data).unwrap();
        let expected = bitmap(&values, 0, 1 << 31);
        let count: u32 = expected.iter().map(|byte| byte.count_ones()).sum();
        let page = (9 * MIB / 4096) as u32;
        for opcode in [COUNT, FILTER] {
            let kind = if opcode == FILTER { page << 2 } else { 0 };
            let done = q.execute(nvme_scan(opcode, 6 * 2048 + 1, 77, kind, 1 << 31));
            assert_eq!((done.status, done.result), (status::SUCCESS, count));
        }
        assert!(q.bytes(9 * MIB, 4096)[..expected.len()] == expected);
    }

    #[test]
    fn nvme_abort_ends_a_command_that_waits_for_its_engine() {
        let mut q = waits_for_a_long_copy();
        assert!(abort(&mut q, 0));
        assert_eq!(
            q.register(COPY0, 0) & 4,
            0,
            "the copy of the registers goes on"
        );
        assert_eq!(q.ended(1), [(0, status::ABORT_REQUESTED)]);
        assert!(!abort(&mut q, 0));
        q.set(COPY0, 0, 2);
        assert_eq!(q.wait(COPY0), STOPPED);
    }
}

#[test]
fn nvme_commands_take_turns_with_registers_and_pages() {
    let mut b = Bench::new("");
    b.store(0, &[0; 4096]);
    let command = b.submit(SCAN0, &[0, 4 * MIB, 0, 0, 1, 0]);
    let page = b.engines[SCAN0].page.unwrap() + 64 * command.line;
    let mut q = b.controller();
    q.start(SCAN0, &[0, MIB, 0, 0, 0, 0]);
    let done = q.execute(nvme_scan(COUNT, 0, 8, 0, 0));
    assert_eq!((done.status, done.result), (status::SUCCESS, 1024));
    assert_eq!(q.wait(SCAN0), 0);
    // The registers show the scan that they started.
    assert_eq!(q.register(SCAN0, 0x80), (MIB / 4) as u32);
    let value = q
        .host()
        .read32(Bar::Control, page + line::VALUE_LO)
        .unwrap();
    assert_eq!(u64::from(value), 4 * MIB / 8);
}

#[test]
fn nvme_commands_end_without_polling() {
    for profile in ["dram", "optane-dcpmm", "nand"] {
        let mut b = Bench::new("");
        let data: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
        b.store(4 * MIB, &data);
        b.slow(profile, None);
        let mut q = b.controller();
        // Nothing reads a register meanwhile. The device must not rest before the entry is posted,
        // however late that is.
        for blocks in [1, 2, 7, 8, 9, 32] {
            let done = q.execute(nvme_scan(COUNT, 8192, blocks, 0, 499));
            assert_eq!(
                (done.status, done.result),
                (status::SUCCESS, 500.min(128 * blocks))
            );
        }
        assert_eq!(q.execute(nvme_copy(8192, 0, 32)).status, status::SUCCESS);
        assert!(q.bytes(0, data.len()) == data);
    }
}

#[test]
fn nvme_credits_and_weights_change_under_load() {
    let mut b = Bench::new("");
    let mut random = Random::new(7);
    let data = bytes(&mut random, 300_000);
    b.store(64 * MIB, &data);
    for turn in 0..12 {
        let dst = (70 + turn) * MIB + 3;
        b.start(COPY0, &[64 * MIB, dst, data.len() as u64]);
        for _ in 0..12 {
            let master = random.below(5) * spec::regs::qos::ENGINE_STRIDE;
            for register in [0, 4, 8] {
                let value = [1, 2, 3, 8, 100][random.below(5) as usize];
                b.set(spec::bar4::QOS + master + register, value);
            }
        }
        assert_eq!(b.wait(COPY0), 0);
        assert!(b.load(dst, data.len()) == data);
    }
}

/// A copy by the registers that takes 1 ms, and an NVMe command of the same engine, which waits for
/// it.
fn waits_for_a_long_copy() -> Queues {
    let mut q = Bench::new("").controller();
    q.start(COPY0, &[0, 16 * MIB, 16 * MIB]);
    q.c.submit_raw(1, nvme_copy(0, 8, 1), 0).unwrap();
    q.c.ring(1).unwrap();
    q.rest(50_000);
    assert_eq!(q.ended(1), [], "it waits");
    q
}

pub fn abort(q: &mut Queues, cid: u32) -> bool {
    let sqe = Sqe::new(0x08).with_cdw(10, cid << 16 | 2);
    q.c.admin(sqe, "Abort").unwrap().result & 1 == 0
}

#[test]
fn nvme_controller_stops_while_an_engine_is_busy() {
    let mut q = waits_for_a_long_copy();
    let cc = q.host().read32(Bar::Nvme, CC).unwrap();
    q.host().write32(Bar::Nvme, CC, cc & !1).unwrap();
    q.rest(50_000);
    assert_eq!(q.host().read32(Bar::Nvme, CSTS).unwrap() & 1, 0);
    assert_eq!(
        q.register(COPY0, 0) & 4,
        0,
        "the copy of the registers goes on"
    );
    q.c.reset().unwrap();
    assert_eq!(q.wait(COPY0), 0);
    assert_eq!(q.execute(nvme_copy(0, 8, 1)).status, status::SUCCESS);
}
