// SPDX-License-Identifier: Apache-2.0

//! A device's number among those that a transaction spans: completions under one number mean
//! nothing under another.

use super::*;

/// A device that has completed transaction 4 as number 1.
fn number_one() -> Devices {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let commit = kit.commit(0, 4, 0b10);
    kit.fine(0, &commit);
    kit.rest(Time::us(20));
    kit
}

/// The highest transaction that the device knows as number 2 after a loss of power, if one is
/// written after each of this number of steps.
fn known_as_number_two(kit: &mut Devices, steps: u64, step: Time) -> Vec<u8> {
    let pool = kit.pool;
    let cuts = (0..steps).map(|_| {
        kit.rest(step);
        let cut = || {
            kit.power(1, Time::us(20));
            kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
            kit.fine(0, &pool.map());
            vec![kit.get(0, register::HIGHEST) as u8]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    let ends = cuts.into_iter().map(|cut| cut.answer().unwrap()[0]);
    ends.collect()
}

/// The power fails; then one byte of the number is written before the device has restored what it
/// kept.
fn give_early(kit: &mut Devices, byte: u64, value: u8) {
    let pool = kit.pool;
    kit.power(1, Time::us(5));
    let at = kit.registers + register::DEVICE + byte;
    let host = &mut kit.host;
    host.with_device(0, |host| host.write(Bar::Control, at, &[value]).unwrap());
    kit.fine(0, &pool.map());
}

/// Another number is written just before the power fails. Under that number nothing is known.
#[test]
#[ignore = "takes seconds"]
fn device_number_change_forgets_transactions() {
    let _alone = alone();
    let mut kit = number_one();
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    let ends = known_as_number_two(&mut kit, rounds(300, 300), Time::ns(2));
    assert!(ends.iter().all(|known| *known == 0), "{ends:?}");
}

/// The same, with the number written during the restore, and a second loss of power as the restore
/// ends.
#[test]
fn device_number_change_forgets_transactions_over_two_losses() {
    let _alone = alone();
    let mut kit = number_one();
    kit.power(1, Time::us(20));
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    // When the restore ends: the register shows that one poll later.
    let begin = kit.host.now();
    let measured = Fork::start(|| {
        while kit.get(0, spec::regs::nearpm::DOMAIN) & 1 == 0 {}
        (kit.host.now() - begin).0.to_le_bytes().to_vec()
    });
    let measured = measured.unwrap().answer().unwrap();
    let seen = Time(u64::from_le_bytes(measured.try_into().unwrap()));
    kit.rest(Time(seen.0.saturating_sub(Time::ns(2500).0)));
    let ends = known_as_number_two(&mut kit, rounds(650, 650), Time::ns(4));
    assert!(ends.iter().all(|known| *known == 0), "{ends:?}");
}

/// Only one byte of the number, written before the restore ends. Registers accept bytes as they
/// accept words.
#[test]
fn device_number_byte_written_early_stays() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    give_early(&mut kit, 0, 2);
    assert_eq!(kit.get(0, register::DEVICE) as u8, 2);
}

/// The number byte by byte in either order, with time in between. The register holds it even while
/// it does not count.
#[test]
fn device_number_is_written_byte_by_byte() {
    for order in [[0, 1], [1, 0]] {
        let mut kit = Devices::bare(1, false);
        let number = (register::DEVICE_IS_SET | 2).to_le_bytes();
        for byte in order {
            let at = kit.registers + register::DEVICE + byte;
            let host = &mut kit.host;
            let data = [number[byte as usize]];
            host.with_device(0, |host| host.write(Bar::Control, at, &data).unwrap());
            kit.rest(Time::us(1));
        }
        let is = kit.get(0, register::DEVICE) as u32;
        assert_eq!(is, register::DEVICE_IS_SET | 2, "{order:?}");
    }
}

/// Three peers report at once, again and again, while commands are taken. No report is lost.
#[test]
fn peers_messages_of_three_at_once_are_taken() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    for log in 0..4 {
        kit.fine(0, &pool.open(log, 1));
    }
    for round in 1..=150u64 {
        let mut data = Vec::new();
        for peer in 0..4 {
            let log = pool.number << 4 | (((round + peer) % 4) as u8);
            let sequence = 4 * round + peer;
            data.extend(Completion { log, sequence }.to_word().to_le_bytes());
        }
        if round % 3 == 0 {
            kit.submit(0, &pool.undo((round % 4) as u8, 0, 64));
        }
        let at = kit.registers + register::DONE;
        let host = &mut kit.host;
        host.with_device(0, |host| host.write(Bar::Control, at, &data).unwrap());
        if round % 5 == 0 {
            kit.submit(0, &pool.command(Operation::Commit, (round % 4) as u8));
        }
    }
    kit.rest(Time::us(20));
    for log in 0..4u64 {
        kit.select(0, log as u8);
        for peer in 1..4 {
            let last = (1..=150)
                .rev()
                .find(|round| (round + peer) % 4 == log)
                .unwrap();
            let wanted = 4 * last + peer;
            assert_eq!(
                kit.get(0, register::SEEN + 8 * peer),
                wanted,
                "log {log}, peer {peer}"
            );
        }
    }
    assert_eq!(kit.get(0, register::HIGHEST), 603);
}

/// A log is pending for devices 0 and 1. This device becomes number 2, and the others report
/// completion. It is not one of the participants.
#[test]
fn device_number_change_keeps_pending_log() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let commit = kit.commit(0, 4, 0b11);
    kit.fine(0, &commit);
    kit.rest(Time::us(5));
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    let log = pool.number << 4;
    for peer in 0..2 {
        let word = Completion { log, sequence: 4 }.to_word();
        kit.set(0, register::DONE + 8 * peer, word);
    }
    kit.rest(Time::us(20));
    assert_eq!(kit.descriptor(0, 0).state, LogState::Pending(0b11));
}

/// A commit ends as the power fails, while the number is written. What is kept says of no peer that
/// it has completed anything, since none has reported.
#[test]
fn device_number_written_during_commit_completes_no_peer() {
    let _alone = alone();
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let mut cuts = Vec::new();
    for late in 0..rounds(14, 14) {
        let start = || {
            let commit = kit.commit(0, 4, 0b110);
            kit.submit(0, &commit);
            kit.rest(Time::ns(130 + 6 * late));
            kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
            kit.rest(Time::ns(316));
            let cuts: Vec<_> = (0..36)
                .map(|_| {
                    kit.rest(Time::ns(3));
                    let cut = || {
                        kit.power(1, Time::us(20));
                        // What is restored is read as it is, under any number.
                        kit.fine(0, &pool.map());
                        let number = kit.get(0, register::DEVICE) as u8 & 3;
                        kit.select(0, 0);
                        let seen = (0..4).map(|n| kit.get(0, register::SEEN + 8 * n) as u8);
                        let mut all = vec![number];
                        all.extend(seen);
                        all
                    };
                    Fork::start(cut).unwrap().answer().unwrap()
                })
                .collect();
            cuts.concat()
        };
        cuts.push((late, Fork::start(start).unwrap().answer().unwrap()));
    }
    let mut bad = Vec::new();
    for (late, ends) in &cuts {
        for (n, end) in ends.chunks(5).enumerate() {
            if (0..4).any(|peer| peer != end[0] && end[1 + usize::from(peer)] != 0) {
                bad.push((*late, n, end.to_vec()));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

/// The same byte of the same number again: the device keeps its number and what it knows.
#[test]
fn device_number_low_byte_repeated_early_changes_nothing() {
    let mut kit = number_one();
    assert_eq!(kit.get(0, register::HIGHEST), 4);
    give_early(&mut kit, 0, 1);
    let device = kit.get(0, register::DEVICE) as u32;
    let highest = kit.get(0, register::HIGHEST);
    assert_eq!((device, highest), (register::DEVICE_IS_SET | 1, 4));
}

/// Only the upper byte: the device keeps the number that it restored.
#[test]
fn device_number_high_byte_written_early_changes_nothing() {
    let mut kit = number_one();
    give_early(&mut kit, 1, 1);
    let device = kit.get(0, register::DEVICE) as u32;
    let highest = kit.get(0, register::HIGHEST);
    assert_eq!((device, highest), (register::DEVICE_IS_SET | 1, 4));
}
