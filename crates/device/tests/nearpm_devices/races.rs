//! What comes at the same time: a commit's end and the power's, a peer's introduction and a commit, a pool's number and its former process.

use spec::regs::nearpm::{DOMAIN, WORKING};

use super::*;

/// Device 2 is introduced to device 0 while a commit of devices 0 and 1 is on its way: both get to know of it.
#[test]
fn a_commit_beside_an_introduction_is_told() {
    let mut devices = Devices::new(3);
    let pool = devices.pool;
    for step in 0..rounds(400, 200) {
        for device in 0..2 {
            devices.fine(device, &pool.undo(0, 0, 64));
        }
        let commit = devices.commit(0, step + 1, 0b011);
        devices.introduce(0, 2);
        devices.rest(Time::ns(2 * step));
        devices.submit(0, &commit);
        devices.rest(Time::us(3));
        devices.fine(1, &commit);
        for device in 0..2 {
            devices.until_all(device, 0, step + 1);
        }
    }
}

/// Commits of two devices, each of them a moment behind the other one's, beside records, copies and introductions: a log is pending only where a participant has not completed
/// the transaction.
#[test]
fn no_log_waits_for_what_has_come() {
    let mut random = sim::Random::new(3);
    let mut devices = Devices::new(2);
    let pool = devices.pool;
    let mut transaction = 0;
    for round in 0..rounds(600, 100) {
        for _ in 0..3 + random.below(10) {
            let (device, log) = (random.below(2) as usize, random.below(2) as u8);
            match random.below(12) {
                0..=2 => {
                    let bytes = [64, 700, 9000][random.below(3) as usize];
                    devices.submit(device, &pool.undo(log, 64 * random.below(64), bytes));
                }
                3..=7 => {
                    transaction += 1;
                    let commit = devices.commit(log, transaction, 0b11);
                    devices.submit(device, &commit);
                    let pause = random.below(3) * random.below(400);
                    devices.rest(Time::ns(pause));
                    devices.submit(1 - device, &commit);
                }
                8 => {
                    let bytes = 1 + random.below(30_000);
                    devices.submit(device, &pool.copy(1, 0x1_0000, bytes, 0x2_0000));
                }
                9 => devices.introduce(device, 1 - device),
                _ => {
                    devices.submit(device, &pool.command(Operation::Sync, log));
                }
            }
            let pause = random.below(3) * random.below(300);
            devices.rest(Time::ns(pause));
        }
        devices.rest(Time::us(100));
        for log in 0..LOGS {
            let own: Vec<u64> = devices.each().map(|n| devices.seen(n, log).0).collect();
            for device in devices.each() {
                let is = devices.descriptor(device, log);
                if let State::Pending(_) = is.state {
                    let missing = own.iter().any(|seen| *seen < is.transaction);
                    assert!(missing, "round {round}, device {device}: {is:?}, {own:?}");
                    devices.fine(device, &pool.command(Operation::Recover, log));
                }
            }
        }
    }
}

/// The power of one device fails around the cycle in which its commit ends, while the other one has completed the transaction: it is over then, for the log, too.
#[test]
fn a_commit_that_ends_as_the_power_fails_has_ended_or_has_not() {
    let _alone = alone();
    let mut devices = Devices::new(2);
    devices.pool = Pool::new(0, 7, 2 << 20);
    let pool = devices.pool;
    for device in devices.each() {
        devices.fine(device, &pool.map());
        for log in 0..LOGS {
            devices.fine(device, &pool.open(log, 1));
        }
        devices.fine(device, &pool.undo(0, 0, 64));
        devices.store(device, 0, &[1; 64]);
    }
    let commit = devices.commit(0, 5, 0b11);
    devices.fine(1, &commit);
    devices.rest(Time::us(5));
    // The commit is in the last line of the page, long copies are in those before: they begin again before it does, if it does.
    let sync = pool.command(Operation::Sync, 0);
    loop {
        let submitted = devices.submit(0, &sync);
        devices.finish(0, submitted);
        if submitted.line == 58 {
            break;
        }
    }
    for n in 2..5 {
        devices.submit(0, &pool.copy(1, 0x1_0000, 65_536, n * 0x1_0000));
    }
    // It waits for this record, so that the copies are under way when it ends.
    devices.submit(0, &pool.undo(0, 0x4000, 16_384));
    let submitted = devices.submit(0, &commit);
    assert_eq!(submitted.line, 63);
    let begin = devices.host.now();
    let measured = Fork::start(|| {
        devices.finish(0, submitted);
        (devices.host.now() - begin).0.to_le_bytes().to_vec()
    });
    let measured = measured.unwrap().answer().unwrap();
    let seen = Time(u64::from_le_bytes(measured.try_into().unwrap()));
    devices.rest(seen - Time::ns(900));
    let cuts = (0..rounds(200, 200)).map(|_| {
        devices.rest(Time::ns(4));
        let cut = || {
            devices.power(0b01, Time::us(20));
            devices.name();
            devices.rest(Time::us(200));
            let descriptor = devices.descriptor(0, 0);
            let complete = devices.seen(0, 0).1 >= 5;
            vec![u8::from(complete == (descriptor.state == State::Open))]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    for (n, cut) in cuts.into_iter().enumerate() {
        assert_eq!(cut.answer().unwrap(), [1], "cut {n}: complete and pending");
    }
}

/// The pool's number goes to another process, elsewhere on the media, while a commit of the former one is under way.
#[test]
fn a_commit_of_the_former_process_completes_nothing() {
    for off in [false, true] {
        let mut devices = Devices::new(2);
        let old = devices.pool;
        devices.submit(0, &old.undo(0, 0, 16_384));
        let commit = devices.commit(0, 5, 0b11);
        devices.submit(0, &commit);
        devices.submit(0, &old.command(Operation::PoolUnmap, 0));
        let new = Pool {
            media: 64 << 20,
            process: 8,
            ..old
        };
        devices.pool = new;
        let map = devices.submit(0, &new.map());
        let open = devices.submit(0, &new.open(0, 1));
        let undo = devices.submit(0, &new.undo(0, 0, 65_536));
        let commit = devices.commit(0, 6, 0b01);
        let commit = devices.submit(0, &commit);
        if off {
            // What is under way is begun again when the power is back.
            devices.load(0, 1 << 18, 1);
            devices.power(0b01, Time::us(5));
            let number = register::DEVICE_IS_SET;
            devices.set_word(0, register::DEVICE, number);
            devices.fine(0, &new.map());
        } else {
            for command in [map, open, undo, commit] {
                assert_eq!(devices.finish(0, command).result, 0);
            }
        }
        devices.until_all(0, 0, 6);
        devices.rest(Time::us(50));
        let descriptor = devices.descriptor(0, 0);
        assert_eq!(descriptor.state, State::Open, "power off: {off}");
        assert_eq!((descriptor.generation, descriptor.transaction), (2, 6));
        devices.fine(0, &new.undo(0, 0, 64));
    }
}

/// The same with a command of the former process that fails: the log of the new one stays open.
#[test]
fn an_error_of_the_former_process_closes_nothing() {
    let mut kit = Devices::bare(1, false);
    let old = kit.pool;
    kit.fine(0, &old.map());
    kit.fine(0, &old.open(0, 1));
    let record = kit.fine(0, &old.redo(0, 0, 64, 0x3_0000));
    // It waits for the copy, and is torn then: its length is not the record's.
    kit.submit(0, &old.copy(1, 0x1_0000, 65_536, 0x3_0000));
    let torn = kit.submit(0, &old.apply(0, record, 32, 0x3_0000));
    let builds = kit.submit(0, &old.command(Operation::Commit, 0));
    kit.submit(0, &old.command(Operation::PoolUnmap, 0));
    let new = Pool {
        media: 64 << 20,
        process: 8,
        ..old
    };
    let ends = [new.map(), new.open(0, 1), new.undo(0, 0, 4096)];
    let ends = ends.map(|command| kit.submit(0, &command));
    assert_eq!(ends.map(|command| kit.finish(0, command).result), [0; 3]);
    assert_eq!(kit.finish(0, torn).result, Refusal::Torn as u32);
    // What builds on it in the old log still fails.
    assert_eq!(kit.finish(0, builds).result, Refusal::Unmapped as u32);
    assert_eq!(kit.fine(0, &new.command(Operation::Commit, 0)), 2);
}

/// Behind a loss of power a device gets its number before it has back what it kept, and maybe another one than it had.
#[test]
fn a_number_that_is_given_early_stays() {
    for before in [None, Some(1), Some(2)] {
        let mut kit = Devices::bare(1, false);
        if let Some(number) = before {
            kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | number);
        }
        let pool = kit.pool;
        kit.fine(0, &pool.map());
        kit.fine(0, &pool.open(0, 1));
        if let Some(number) = before {
            let commit = kit.commit(0, 4, 1 << number);
            kit.fine(0, &commit);
            kit.rest(Time::us(20));
        }
        kit.power(1, Time::us(5));
        let number = register::DEVICE_IS_SET | 2;
        kit.set_word(0, register::DEVICE, number);
        kit.fine(0, &pool.map());
        assert_eq!(kit.get(0, register::DEVICE) as u32, number, "{before:?}");
        // Under another number nothing is left of what was known.
        let known = if before == Some(2) { 4 } else { 0 };
        assert_eq!(kit.get(0, register::HIGHEST), known, "{before:?}");
        let commit = kit.commit(0, 5, 0b100);
        kit.fine(0, &commit);
    }
}

/// Registers take bytes as they take words, and tell of what is at rest.
#[test]
fn registers_take_narrow_writes() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    let write = |kit: &mut Devices, register: u64, data: &[u8]| {
        let at = kit.registers + register;
        let host = &mut kit.host;
        host.with_device(0, |host| host.write(Bar::Control, at, data).unwrap());
    };
    write(&mut kit, register::SELECT, &[0x35]);
    assert_eq!(kit.get(0, register::SELECT) as u32, 0x35);
    write(&mut kit, register::DONE, &9u32.to_le_bytes());
    write(&mut kit, register::DONE + 7, &[0x35]);
    kit.rest(Time::us(1));
    assert_eq!(kit.get(0, register::SEEN), 9);
    assert_eq!(kit.get(0, WORKING) as u32, 0);
}

/// A store that waits for a command, which waits for an older store in another channel: when the power fails before that one is answered all of them are lost together. What is
/// there can be written back.
#[test]
fn a_store_is_lost_with_the_command_that_it_waits_for() {
    let _alone = alone();
    for (busy, from) in [(1, 300), (8, 700)] {
        let design = design("nearpm");
        let domain = design.engines(&root()).unwrap()[0].offset + DOMAIN;
        let mut kit = Kit::of(&design);
        let pool = Pool::new(1, 7, 1 << 20);
        kit.fine(&pool.map());
        kit.fine(&pool.open(0, 1));
        kit.store(pool.media, &[1; 8192]);
        kit.load(pool.media, 1);
        for n in 0..busy {
            kit.store(pool.media + 8192 * n, &[3; 512]);
        }
        kit.submit(&pool.undo(0, 4096, 64));
        kit.store(pool.media + 4096, &[2; 64]);
        common::rest(&mut kit.host, Time::ns(from));
        let cuts = (0..50).map(|_| {
            common::rest(&mut kit.host, Time::ns(8));
            let cut = || {
                let number = kit.host.device();
                kit.host.system_mut().power_off(number);
                common::rest(&mut kit.host, Time::us(20));
                kit.host.system_mut().power_on(number);
                kit.page = Kit::page_of(&design);
                kit.fine(&pool.map());
                let mut restored = [0; 4];
                kit.host.read(Bar::Control, domain, &mut restored).unwrap();
                let recover = kit.ends(&pool.command(Operation::Recover, 0));
                let is = kit.load(pool.media + 4096, 64);
                let recovered = u8::from(recover.result == 0);
                vec![restored[0] & 1, recovered, is[0], is[63]]
            };
            Fork::start(cut).unwrap()
        });
        let cuts: Vec<_> = cuts.collect();
        for (n, cut) in cuts.into_iter().enumerate() {
            let answer = cut.answer().unwrap();
            assert_eq!(answer, [1; 4], "cut {n}, {busy} stores");
        }
    }
}
