// SPDX-License-Identifier: Apache-2.0

//! Events at the same time: the end of a commit and of the power, a peer's introduction and a
//! commit, a pool's number and its former process.

use spec::regs::nearpm::{DOMAIN, WORKING};

use super::*;

/// Device 2 is introduced to device 0 while a commit of devices 0 and 1 is on its way. Both learn
/// of it.
#[test]
fn race_of_commit_and_introduction_notifies_the_peer() {
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

/// Commits of two devices, each a moment after the other, with records, copies and introductions in
/// between. A log is pending only if a participant has not completed the transaction.
#[test]
fn race_of_commits_leaves_no_log_pending() {
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
                if let LogState::Pending(_) = is.state {
                    let missing = own.iter().any(|seen| *seen < is.transaction);
                    assert!(missing, "round {round}, device {device}: {is:?}, {own:?}");
                    devices.fine(device, &pool.command(Operation::Recover, log));
                }
            }
        }
    }
}

/// The power of one device fails around the cycle in which its commit ends, while the other has
/// completed the transaction. Then the transaction is over, for the log, too.
#[test]
fn race_of_commit_and_power_loss_has_one_outcome() {
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
    // The commit is in the last line of the page, and long copies are in the lines before. They
    // begin again before the commit does, if it does.
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
    // The commit waits for this record, so that the copies are under way when it ends.
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
            vec![u8::from(complete == (descriptor.state == LogState::Open))]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    for (n, cut) in cuts.into_iter().enumerate() {
        assert_eq!(cut.answer().unwrap(), [1], "cut {n}: complete and pending");
    }
}

/// The pool's number goes to another process, elsewhere on the media, while a commit of the former
/// process is under way.
#[test]
fn race_of_commit_and_remap_completes_nothing_of_the_new_process() {
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
            // Commands under way begin again when the power is back.
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
        assert_eq!(descriptor.state, LogState::Open, "power off: {off}");
        assert_eq!((descriptor.generation, descriptor.transaction), (2, 6));
        devices.fine(0, &new.undo(0, 0, 64));
    }
}

/// The same with a command of the former process that fails: the log of the new process stays open.
#[test]
fn race_of_error_and_remap_closes_no_log_of_the_new_process() {
    let mut kit = Devices::bare(1, false);
    let old = kit.pool;
    kit.fine(0, &old.map());
    kit.fine(0, &old.open(0, 1));
    let record = kit.fine(0, &old.redo(0, 0, 64, 0x3_0000));
    // It waits for the copy, and is then torn: its length is not the record's.
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
    assert_eq!(kit.finish(0, torn).result, ErrorBit::Torn as u32);
    // Commands that depend on it in the old log still fail.
    assert_eq!(kit.finish(0, builds).result, ErrorBit::Unmapped as u32);
    assert_eq!(kit.fine(0, &new.command(Operation::Commit, 0)), 2);
}

/// After a loss of power a device gets its number before it has restored what it kept, and possibly
/// another number than before.
#[test]
fn race_of_restore_and_device_number_keeps_the_number() {
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
        // Under another number nothing is known.
        let known = if before == Some(2) { 4 } else { 0 };
        assert_eq!(kit.get(0, register::HIGHEST), known, "{before:?}");
        let commit = kit.commit(0, 5, 0b100);
        kit.fine(0, &commit);
    }
}

/// Registers accept bytes as they accept words, and show what is at rest.
#[test]
fn registers_accept_narrow_writes() {
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

/// Writes of upper halves notify, as fast as the link brings them, while commands run. None is
/// lost.
#[test]
fn registers_accept_upper_halves_in_quick_succession() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    for round in 1..=8u32 {
        let notified: Vec<_> = (0..60u64)
            .map(|n| (1 + n % 3, (n * 37 + 11) as u8))
            .collect();
        for (n, (peer, log)) in notified.iter().enumerate() {
            // Its low half is the one from before.
            let upper = u32::from(*log) << 24 | round;
            let at = kit.registers + register::DONE + 8 * peer + 4;
            let host = &mut kit.host;
            host.with_device(0, |host| {
                host.write(Bar::Control, at, &upper.to_le_bytes()).unwrap()
            });
            if n % 9 == 0 {
                kit.submit(0, &pool.command(Operation::Sync, 0));
            }
        }
        kit.rest(Time::us(20));
        for (peer, log) in notified {
            kit.set_word(0, register::SELECT, log.into());
            let seen = kit.get(0, register::SEEN + 8 * peer);
            assert_eq!(seen, u64::from(round) << 32, "log {log:#x}, peer {peer}");
        }
    }
}

/// A store waits for a command, which waits for an older store in another channel. If the power
/// fails before that one is answered, all of them are lost together. What is there can be written
/// back.
#[test]
fn power_loss_takes_stores_with_the_command_that_they_wait_for() {
    let _alone = alone();
    for (busy, from) in [(1, 300), (8, 700)] {
        let design = design("nearpm");
        let domain = design.engines().unwrap()[0].offset + DOMAIN;
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
                kit.lose_power(&design, Time::us(20));
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

#[test]
fn sync_of_a_closed_log_is_refused() {
    let mut kit = Devices::bare(1, false);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    let ended = kit.ends(0, &pool.command(Operation::Sync, 0));
    assert_eq!(ended.result, ErrorBit::Unmapped as u32);
}

/// The engine has no interrupt.
#[test]
fn registers_of_interrupts_stay_zero() {
    let mut kit = Devices::bare(1, false);
    kit.rest(Time::us(100));
    for at in [4, 8] {
        kit.set_word(0, at, 1);
    }
    let is = [kit.get(0, 4) as u32, kit.get(0, 8) as u32];
    assert_eq!(is, [0, 0]);
}

/// The NVMe controller is reset, or its subsystem, or shut down, while commands are under way and
/// stores wait. The engine continues.
#[test]
fn controller_resets_do_not_end_commands() {
    use driver::NvmeDriver;
    const LEN: u64 = 65_536;
    for way in 0..3 {
        let (kit, pool) = Kit::with_pool("");
        let place = pool.media;
        let Kit { host, mut page } = kit;
        let config = driver::DriverConfig {
            io_queues: 1,
            ..driver::DriverConfig::default()
        };
        let mut c = NvmeDriver::start(host, config).unwrap();
        c.host_mut().write(Bar::Pm, place, &[1; 4096]).unwrap();
        let mut all = Vec::new();
        for n in 3..7 {
            let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
            all.push(page.submit(c.host_mut(), &busy.arguments()).unwrap());
        }
        all.push(
            page.submit(c.host_mut(), &pool.undo(0, 0, 4096).arguments())
                .unwrap(),
        );
        c.host_mut().write(Bar::Pm, place, &[2; 64]).unwrap();
        let host = match way {
            0 => {
                c.reset().unwrap();
                c.into_host()
            }
            1 => c.shutdown().unwrap(),
            _ => {
                let word = 0x4E56_4D65u32.to_le_bytes();
                c.host_mut().write(Bar::Nvme, 0x20, &word).unwrap();
                c.into_host()
            }
        };
        let mut kit = Kit { host, page };
        for command in all {
            assert_eq!(kit.finish(command).result, 0, "{way}");
        }
        assert_eq!(kit.load(place, 64), [2; 64], "{way}");
        kit.fine(&pool.command(Operation::Recover, 0));
        assert!(kit.load(place, 4096) == [1; 4096], "{way}");
    }
}

/// The function is reset again and again, under load, at any moment.
#[test]
fn function_resets_in_quick_succession_lose_nothing() {
    let _alone = alone();
    let (mut kit, pool) = Kit::with_pool("");
    for thread in 1..4 {
        kit.fine(&pool.open(thread, 1));
    }
    for n in 0..16 {
        kit.store(pool.media + 16_384 * n, &[n as u8 + 1; 16_384]);
    }
    kit.load(pool.media, 1);
    let mut random = sim::Random::new(5);
    let cuts = (0..rounds(300, 40)).map(|_| {
        let waits = [0; 4].map(|_| {
            let bits = 4 + random.below(12);
            Time::ns(random.below(1 << bits))
        });
        let ways = random.next();
        let cut = || {
            for n in 0..16 {
                let thread = (n % 4) as u8;
                kit.submit(&pool.undo(thread, 16_384 * n, 8192 + 100 * n));
                kit.store(pool.media + 16_384 * n, &[0xEE; 200]);
            }
            // Everything that was stored is there, or waits.
            kit.load(pool.media + (900 << 10), 1);
            for (n, wait) in waits.into_iter().enumerate() {
                common::rest(&mut kit.host, wait);
                let number = kit.host.device();
                if ways >> n & 1 == 0 {
                    kit.host.system_mut().function_reset(number);
                } else {
                    kit.host.system_mut().power_off(number);
                    kit.host.system_mut().power_on(number);
                }
            }
            kit.page = Kit::page_of(&design("nearpm"));
            kit.fine(&pool.map());
            let mut fine = 1;
            for n in 0..16 {
                let is = kit.load(pool.media + 16_384 * n, 200);
                fine &= u8::from(is == [0xEE; 200]);
            }
            for thread in 0..4 {
                fine &= u8::from(kit.ends(&pool.command(Operation::Recover, thread)).value == 4);
            }
            for n in 0..16 {
                let is = kit.load(pool.media + 16_384 * n, 200);
                fine &= u8::from(is == [n as u8 + 1; 200]);
            }
            vec![fine]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    for (n, cut) in cuts.into_iter().enumerate() {
        assert_eq!(cut.answer().unwrap(), [1], "cut {n}");
    }
}

/// The last peer reports that it has completed a transaction, and a recover arrives at the same
/// time. If the recover was in time, the object is as before, and the transaction does not count as
/// completed by all. If it was late, the object stays, and the register says so.
#[test]
fn race_of_recover_and_last_completion_has_one_outcome() {
    let _alone = alone();
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let mut cuts = Vec::new();
    for step in 0..100u64 {
        for first in [false, true] {
            let one = || {
                kit.fine(0, &pool.undo(0, 0, 64));
                kit.store(0, 0, &[1; 64]);
                let commit = kit.commit(0, 5, 0b11);
                kit.fine(0, &commit);
                kit.load(0, 0, 1);
                kit.rest(Time::us(5));
                let word = Completion {
                    log: pool.number << 4,
                    sequence: 5,
                }
                .to_word();
                let mut recover = pool.command(Operation::Recover, 0);
                recover.transaction = 77;
                let end = if first {
                    let end = kit.submit(0, &recover);
                    kit.rest(Time::ns(4 * step));
                    kit.set(0, register::DONE + 8, word);
                    end
                } else {
                    kit.set(0, register::DONE + 8, word);
                    kit.rest(Time::ns(4 * step));
                    kit.submit(0, &recover)
                };
                let ended = kit.finish(0, end);
                kit.rest(Time::us(20));
                let (own, all) = kit.seen(0, 0);
                let object = kit.load(0, 0, 1)[0];
                let descriptor = kit.descriptor(0, 0);
                let undo = kit.ends(0, &pool.undo(0, 0, 64));
                vec![
                    ended.result as u8,
                    ended.value as u8,
                    own as u8,
                    all as u8,
                    object,
                    descriptor.generation as u8,
                    descriptor.transaction as u8,
                    undo.result as u8,
                ]
            };
            cuts.push((first, step, Fork::start(one).unwrap().answer().unwrap()));
        }
    }
    for (first, step, end) in &cuts {
        let (all, object) = (end[3], end[4]);
        assert_eq!(
            all == 5,
            object == 1,
            "recover first: {first}, step {step}: {end:?}"
        );
    }
}
