//! NVMe commands that zero, whatever their length: they keep the order of the access hook.

use driver::page::{CommandPage, Submitted};
use driver::Controller;

use super::*;

const LEN: u64 = 65_536;

/// All units are at work, and an undo of the pool's first bytes waits for one. Returns that, too.
fn undo_behind_others(kit: Kit, pool: &Pool) -> (Controller<SimHost>, CommandPage, Submitted) {
    let Kit { host, mut page } = kit;
    let config = driver::Config {
        io_queues: 1,
        ..driver::Config::default()
    };
    let mut c = Controller::start(host, config).unwrap();
    for n in 3..7 {
        let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
        page.submit(c.host_mut(), &busy.arguments()).unwrap();
    }
    let undo = pool.undo(0, 0, LEN);
    let undo = page.submit(c.host_mut(), &undo.arguments()).unwrap();
    (c, page, undo)
}

/// An NVMe command that zeroes, behind an undo of the same bytes: the record has to have the old bytes.
fn zeroes_behind_an_undo(zero: impl Fn(&mut Controller<SimHost>, u64, u64)) {
    let (mut kit, pool) = Kit::with_pool("");
    let place = pool.media;
    let old = vec![1; LEN as usize];
    kit.store(place, &old);
    let (mut c, page, undo) = undo_behind_others(kit, &pool);
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
fn write_zeroes_waits_for_an_undo_before_its_doorbell() {
    zeroes_behind_an_undo(|c, lba, blocks| c.write_zeroes(lba, blocks).unwrap());
}

#[test]
fn deallocate_waits_for_an_undo_before_its_doorbell() {
    zeroes_behind_an_undo(|c, lba, blocks| {
        let range = driver::Range {
            lba,
            blocks: blocks as u32,
        };
        c.deallocate(&[range]).unwrap();
    });
}

/// Fewer than 128 blocks are zeroed by the controller's own writes, which pass the access hook.
#[test]
fn short_write_zeroes_waits_for_an_undo_before_its_doorbell() {
    zeroes_behind_an_undo(|c, lba, blocks| {
        for n in 0..blocks / 64 {
            c.write_zeroes(lba + 64 * n, 64).unwrap();
        }
    });
}

/// A store that waits in the queue, answered, then an NVMe command that zeroes it. It goes behind that.
#[test]
fn what_is_zeroed_stays_zero() {
    let (kit, pool) = Kit::with_pool("");
    let place = pool.media;
    let (mut c, page, undo) = undo_behind_others(kit, &pool);
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
