// SPDX-License-Identifier: Apache-2.0

//! Registers of 64 bits, which the device holds as two words, and reads of what has just been
//! written.

use super::*;

/// Device 0 alone, with a pool and an open log 0, which is selected.
fn number_zero() -> Devices {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    kit.select(0, 0);
    kit
}

fn get_word(kit: &mut Devices, register: u64) -> u32 {
    let at = kit.registers + register;
    let mut word = [0; 4];
    kit.host.read(Bar::Control, at, &mut word).unwrap();
    u32::from_le_bytes(word)
}

/// Device 1 reports a transaction to device 0.
fn tell(kit: &mut Devices, log: u8, sequence: u64) {
    let log = kit.pool.number << 4 | log;
    let word = Completion { log, sequence }.to_word();
    kit.set(0, register::DONE + 8, word);
}

/// A transaction completes whose number differs in both words from the one before. A read returns
/// either number, and no mixture.
#[test]
fn register_of_64_bits_is_read_whole() {
    let mut kit = number_zero();
    let mut others = Vec::new();
    for register in [register::SEEN, register::ALL, register::HIGHEST] {
        for step in 0..150 {
            let before = kit.get(0, register::HIGHEST) | 0xFFFF_FFFF;
            let first = kit.commit(0, before, 1);
            kit.fine(0, &first);
            kit.until_all(0, 0, before);
            let second = kit.commit(0, before + 1, 1);
            let end = kit.submit(0, &second);
            kit.rest(Time::ns(4 * step));
            let is = kit.get(0, register);
            if is != before && is != before + 1 {
                others.push((register, step, is));
            }
            assert_eq!(kit.finish(0, end).result, 0);
            kit.until_all(0, 0, before + 1);
        }
    }
    assert!(others.is_empty(), "{others:x?}");
}

/// A host that reads words, the low one first, gets a number that existed.
#[test]
fn register_upper_word_matches_the_low_one() {
    let mut kit = number_zero();
    for register in [register::SEEN + 8, register::HIGHEST] {
        let before = kit.get(0, register::HIGHEST) | 0xFFFF_FFFF;
        let upper = (before >> 32) as u32;
        tell(&mut kit, 0, before);
        assert_eq!(get_word(&mut kit, register), u32::MAX);
        tell(&mut kit, 0, before + 1);
        assert_eq!(get_word(&mut kit, register + 4), upper);
        assert_eq!(get_word(&mut kit, register + 4), upper + 1);
        assert_eq!(get_word(&mut kit, register), 0);
        assert_eq!(get_word(&mut kit, register::ALL + 4), 0);
        assert_eq!(get_word(&mut kit, register + 4), upper + 1);
    }
}

/// A peer's address is written while a commit is to be reported to it. Nothing is sent to half of
/// an address.
#[test]
fn register_half_address_is_not_used() {
    let mut kit = Devices::bare(2, false);
    kit.name();
    let pool = kit.pool;
    kit.fine(0, &pool.open(0, 1));
    kit.select(1, 0);
    let lost = kit.host.system().memory().dropped_writes();
    for transaction in 1..=150 {
        kit.set(0, register::PEER + 8, 0);
        kit.rest(Time::us(2));
        let commit = kit.commit(0, transaction, 0b11);
        let end = kit.submit(0, &commit);
        kit.rest(Time::ns(4 * transaction));
        kit.introduce(0, 1);
        assert_eq!(kit.finish(0, end).result, 0);
        kit.rest(Time::us(10));
        assert_eq!(kit.get(1, register::SEEN), transaction);
        let now = kit.host.system().memory().dropped_writes();
        assert_eq!(now, lost, "transaction {transaction}");
        kit.fine(0, &pool.command(Operation::Recover, 0));
    }
    // The low half alone has no effect.
    kit.set_word(0, register::PEER + 8, 0);
    let commit = kit.commit(0, 151, 0b11);
    kit.fine(0, &commit);
    kit.rest(Time::us(10));
    assert_eq!(kit.get(1, register::SEEN), 151);
    assert_eq!(kit.host.system().memory().dropped_writes(), lost);
}

/// Reads return the log that was just selected and what a peer has just reported, while the device
/// scans all logs.
#[test]
fn register_reads_return_the_latest_write() {
    let mut kit = number_zero();
    for log in 0..2 {
        tell(&mut kit, log, u64::from(log) + 7);
    }
    kit.rest(Time::us(5));
    let mut wrong = Vec::new();
    for n in 0..200 {
        let log = (n % 2) as u8;
        // A peer without an address is not notified.
        kit.set(0, register::PEER + 8, 0);
        kit.rest(Time::ns(37 * (n / 2)));
        kit.select(0, log);
        let selected = kit.get(0, register::SEEN + 8);
        tell(&mut kit, log, selected + 2);
        let seen = kit.get(0, register::SEEN + 8);
        let wanted = n / 2 * 2 + u64::from(log) + 7;
        if (selected, seen) != (wanted, wanted + 2) {
            wrong.push((n, selected, seen));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
