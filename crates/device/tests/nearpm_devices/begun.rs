// SPDX-License-Identifier: Apache-2.0

//! Commands that have begun when another one of their log ends with an error and the power fails;
//! and a wrong bit in what is kept of them.

use spec::regs::nearpm::FORGET;

use super::*;

const LEN: u64 = 65_536;

/// An apply of 64 KiB has begun when a short apply of the same log ends as torn. The long one is
/// completed after any loss of power.
#[test]
fn begun_apply_is_completed_despite_an_error_in_its_log() {
    let _alone = alone();
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &vec![7; LEN as usize]);
    kit.fine(&pool.redo(0, 0, LEN, 2 * LEN));
    let second = 64 + 64 + LEN;
    kit.fine(&pool.redo(0, 0, 64, 4 * LEN));
    let apply = kit.submit(&pool.apply(0, 64, LEN, 2 * LEN));
    // Its header names another address: torn.
    kit.submit(&pool.apply(0, second, 64, 5 * LEN));
    let mut cuts = Vec::new();
    for _ in 0..40 {
        common::rest(&mut kit.host, Time::ns(400));
        let one = || {
            kit.lose_power(&design("nearpm"), Time::us(20));
            kit.fine(&pool.map());
            let is = kit.load(pool.media + 2 * LEN, LEN as usize);
            let done = is.iter().filter(|byte| **byte == 7).count();
            (done as u64).to_le_bytes().to_vec()
        };
        cuts.push(Fork::start(one).unwrap());
    }
    let ends: Vec<u64> = cuts
        .into_iter()
        .map(|cut| u64::from_le_bytes(cut.answer().unwrap().try_into().unwrap()))
        .collect();
    assert_eq!(kit.finish(apply).result, 0, "without a cut");
    assert!(
        ends.iter().all(|done| *done == LEN),
        "half of an apply: {ends:?}"
    );
}

/// The same with an undo whose object is stored to afterwards: the record is there, or the store is
/// missing.
#[test]
fn begun_undo_is_recorded_despite_an_error_in_its_log() {
    let _alone = alone();
    let (mut kit, pool) = Kit::with_pool("");
    kit.store(pool.media, &vec![7; LEN as usize]);
    kit.fine(&pool.redo(0, 0, 64, 4 * LEN));
    kit.submit(&pool.undo(0, 0, LEN));
    kit.submit(&pool.apply(0, 64, 64, 5 * LEN));
    kit.host.write(Bar::Pm, pool.media, &[9; 64]).unwrap();
    let mut cuts = Vec::new();
    for _ in 0..40 {
        common::rest(&mut kit.host, Time::ns(400));
        let one = || {
            kit.lose_power(&design("nearpm"), Time::us(20));
            kit.fine(&pool.map());
            let stored = kit.load(pool.media, 1)[0];
            let recover = kit.ends(&pool.command(Operation::Recover, 0));
            let back = kit.load(pool.media, 1)[0];
            vec![stored, recover.result as u8, recover.value as u8, back]
        };
        cuts.push(Fork::start(one).unwrap());
    }
    let ends: Vec<Vec<u8>> = cuts.into_iter().map(|cut| cut.answer().unwrap()).collect();
    assert!(ends.iter().all(|end| end[3] == 7), "{ends:?}");
}

/// If any bit of what is kept is wrong, nothing is restored.
#[test]
fn restore_refuses_a_wrong_bit() {
    let _alone = alone();
    use std::os::unix::fs::FileExt;
    let design = design("nearpm");
    let media = sim::Media::shared(design.media.bytes.0).unwrap();
    let file: std::fs::File = media
        .shared_file()
        .unwrap()
        .try_clone_to_owned()
        .unwrap()
        .into();
    let factory = common::factory(&design);
    let mut kit = Kit::before(factory.device(media).unwrap(), &design);
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    let at = design.media.bytes.0 - (128 << 10);
    let forget = design.engines().unwrap()[0].offset + FORGET;
    let mut all = Vec::new();
    for (n, byte) in [
        0u64, 7, 8, 11, 12, 15, 16, 20, 32, 63, 64, 8192, 9000, 20_000,
    ]
    .into_iter()
    .enumerate()
    {
        let generation = n as u64 + 5;
        kit.fine(&pool.open(n as u8 % 4, generation));
        let number = kit.host.device();
        kit.host.system_mut().power_off(number);
        common::rest(&mut kit.host, Time::us(20));
        let mut is = [0];
        file.read_exact_at(&mut is, at + byte).unwrap();
        file.write_all_at(&[is[0] ^ 4], at + byte).unwrap();
        kit.host.system_mut().power_on(number);
        kit.page = Kit::page_of(&design);
        let sync = pool.command(Operation::Sync, n as u8 % 4);
        all.push((byte, kit.ends(&sync).result != ErrorBit::ReadError as u32));
        // Nor is it forgotten until the host says so.
        kit.host.system_mut().function_reset(number);
        kit.page = Kit::page_of(&design);
        kit.refused(&pool.map(), ErrorBit::ReadError);
        kit.host.write32(Bar::Control, forget, 1).unwrap();
        common::rest(&mut kit.host, Time::us(5));
        kit.host.system_mut().function_reset(number);
        kit.page = Kit::page_of(&design);
        kit.fine(&pool.map());
    }
    let back: Vec<u64> = all.iter().filter(|one| one.1).map(|one| one.0).collect();
    assert!(back.is_empty(), "{back:?}");
}
