// SPDX-License-Identifier: Apache-2.0

//! NVMe commands that zero keep the order of the access hook, whatever their length.

use driver::page::{CommandPage, SubmittedCommand};
use driver::NvmeDriver;

use super::*;

const LEN: u64 = 65_536;

/// All units are busy, and an undo of the pool's first bytes waits for one. Returns that, too.
fn queue_undo_after_copies(
    kit: Kit,
    pool: &Pool,
) -> (NvmeDriver<SimHost>, CommandPage, SubmittedCommand) {
    let Kit { host, mut page } = kit;
    let config = driver::DriverConfig {
        io_queues: 1,
        ..driver::DriverConfig::default()
    };
    let mut c = NvmeDriver::start(host, config).unwrap();
    for n in 3..7 {
        let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
        page.submit(c.host_mut(), &busy.arguments()).unwrap();
    }
    let undo = pool.undo(0, 0, LEN);
    let undo = page.submit(c.host_mut(), &undo.arguments()).unwrap();
    (c, page, undo)
}

/// An NVMe command that zeroes, sent after an undo of the same bytes: the record must have the old
/// bytes.
fn check_zeroes_after_undo(zero: impl Fn(&mut NvmeDriver<SimHost>, u64, u64)) {
    let (mut kit, pool) = Kit::with_pool("");
    let place = pool.media;
    let old = vec![1; LEN as usize];
    kit.store(place, &old);
    let (mut c, page, undo) = queue_undo_after_copies(kit, &pool);
    zero(&mut c, place / 512, LEN / 512);
    let host = c.into_host();
    let mut kit = Kit { host, page };
    assert_eq!(kit.finish(undo).result, 0);
    assert!(kit.load(place, LEN as usize) == vec![0; LEN as usize]);
    let (_, payload) = kit.record(&pool, 0, 64).unwrap();
    let lost = payload.iter().filter(|byte| **byte != 1).count();
    assert_eq!(lost, 0, "bytes of the record that are not the old ones");
    kit.fine(&pool.command(Operation::Abort, 0));
    assert!(kit.load(place, LEN as usize) == old);
}

#[test]
fn nvme_write_zeroes_waits_for_earlier_undo() {
    check_zeroes_after_undo(|c, lba, blocks| c.write_zeroes(lba, blocks).unwrap());
}

#[test]
fn nvme_deallocate_waits_for_earlier_undo() {
    check_zeroes_after_undo(|c, lba, blocks| {
        let range = driver::BlockRange {
            lba,
            blocks: blocks as u32,
        };
        c.deallocate(&[range]).unwrap();
    });
}

/// Fewer than 128 blocks are zeroed by writes of the controller, which pass the access hook.
#[test]
fn nvme_short_write_zeroes_waits_for_earlier_undo() {
    check_zeroes_after_undo(|c, lba, blocks| {
        for n in 0..blocks / 64 {
            c.write_zeroes(lba + 64 * n, 64).unwrap();
        }
    });
}

/// A store is answered and waits in the queue. Then an NVMe command zeroes the same bytes. It is
/// ordered after the store.
#[test]
fn nvme_zeroes_overwrite_earlier_stores() {
    let (kit, pool) = Kit::with_pool("");
    let place = pool.media;
    let (mut c, page, undo) = queue_undo_after_copies(kit, &pool);
    c.host_mut().write(Bar::Pm, place, &[2; 64]).unwrap();
    c.write_zeroes(place / 512, LEN / 512).unwrap();
    let mut now = [9; 64];
    c.read(place / 512, &mut vec![0; 512]).unwrap();
    c.host_mut().read(Bar::Pm, place, &mut now).unwrap();
    let host = c.into_host();
    let mut kit = Kit { host, page };
    assert_eq!(kit.finish(undo).result, 0);
    assert_eq!(now, [0; 64]);
}

/// Compare and Write after an undo of the same bytes and a store that waits. It compares with what
/// was stored.
#[test]
fn nvme_compare_and_write_waits_for_earlier_undo() {
    let (mut kit, pool) = Kit::with_pool("");
    let place = pool.media;
    kit.store(place, &[1; LEN as usize]);
    let (mut c, page, undo) = queue_undo_after_copies(kit, &pool);
    c.host_mut().write(Bar::Pm, place, &[2; 512]).unwrap();
    let same = c
        .compare_and_write(place / 512, &[2; 512], &[3; 512])
        .unwrap();
    let other = c
        .compare_and_write(place / 512 + 1, &[2; 512], &[4; 512])
        .unwrap();
    let third = c.compare(place / 512, &[3; 512]).unwrap();
    let kit = Kit {
        host: c.into_host(),
        page,
    };
    let mut kit = kit;
    assert_eq!(kit.finish(undo).result, 0);
    let is = kit.load(place, 1024);
    let (_, payload) = kit.record(&pool, 0, 64).unwrap();
    let lost = payload.iter().filter(|byte| **byte != 1).count();
    assert_eq!(
        (same, other, third, lost, is[0], is[511], is[512]),
        (true, false, true, 0, 3, 3, 1)
    );
}

/// The power fails while an NVMe write waits for an undo. The record has the old bytes, the block
/// is old or new.
#[test]
fn nvme_write_waiting_for_undo_is_cut_cleanly() {
    let _alone = alone();
    for way in 0..2 {
        let (mut kit, pool) = Kit::with_pool("");
        let place = pool.media;
        kit.store(place, &vec![1; LEN as usize]);
        let (mut c, _, _) = queue_undo_after_copies(kit, &pool);
        let buffer = c.host_mut().alloc(0x1_0000, 0x1000).unwrap();
        c.host_mut().dma_write(buffer, &[5; 0x1_0000]);
        let io = match way {
            0 => driver::IoCommand::Write {
                lba: place / 512,
                blocks: 64,
            },
            _ => driver::IoCommand::Write {
                lba: place / 512,
                blocks: 8,
            },
        };
        let data = driver::Buffer::Contiguous(buffer);
        c.submit(0, io, &data, 7).unwrap();
        c.ring(0).unwrap();
        let mut bad = Vec::new();
        for n in 0..rounds(60, 30) {
            common::rest(c.host_mut(), Time::ns(1300));
            let one = || {
                let number = c.host_mut().device();
                let host = c.host_mut();
                host.system_mut().power_off(number);
                common::rest(host, Time::us(20));
                host.system_mut().power_on(number);
                common::rest(host, Time::us(20));
                let mut page = Kit::page_of(&design("nearpm"));
                let mut end = |host: &mut SimHost, command: &Command| {
                    let submitted = page.submit(host, &command.arguments()).unwrap();
                    let deadline = host.now() + Time::ms(50);
                    page.wait(host, submitted, Time::ns(200), deadline, &mut || true)
                        .unwrap()
                        .unwrap()
                };
                assert_eq!(end(host, &pool.map()).result, 0);
                let recover = end(host, &pool.command(Operation::Recover, 0));
                let mut wrong = 0;
                for n in 0..LEN / 4096 {
                    let mut is = [0; 4096];
                    host.read(Bar::Pm, place + 4096 * n, &mut is).unwrap();
                    wrong += is.iter().filter(|byte| **byte != 1).count() as u32;
                }
                let mut all = vec![recover.result as u8, recover.value as u8];
                all.extend(wrong.to_le_bytes());
                all
            };
            let end = Fork::start(one).unwrap().answer().unwrap();
            if end[..2] != [0, 1] || end[2..] != [0; 4] {
                bad.push((n, end));
            }
        }
        assert!(bad.is_empty(), "way {way}: {bad:?}");
    }
}
