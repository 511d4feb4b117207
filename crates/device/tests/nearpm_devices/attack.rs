//! What a review of the hardware has tried.

use super::*;

/// A sync of a log that is not open: README.md, "unmapped: ... or the thread has no open log".
#[test]
fn sync_of_a_closed_log_is_the_same_everywhere() {
    let mut kit = Devices::bare(1, false);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    let ended = kit.ends(0, &pool.command(Operation::Sync, 0));
    assert_eq!(ended.result, Refusal::Unmapped as u32);
}

/// An NVMe command that zeroes, behind an undo of the same bytes: README.md, "host accesses that overlap it wait until it is done". The record has to have the old bytes.
fn zeroes_behind_an_undo(zero: impl Fn(&mut driver::Controller<SimHost>, u64, u64)) {
    use driver::Controller;
    const LEN: u64 = 65_536;
    let (mut kit, pool) = Kit::with_pool("");
    let place = pool.media;
    let old = vec![1; LEN as usize];
    kit.store(place, &old);
    let Kit { host, mut page } = kit;
    let config = driver::Config {
        io_queues: 1,
        ..driver::Config::default()
    };
    let mut c = Controller::start(host, config).unwrap();
    // All units are at work.
    for n in 3..7 {
        let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
        page.submit(c.host_mut(), &busy.arguments()).unwrap();
    }
    let undo = page.submit(c.host_mut(), &pool.undo(0, 0, LEN).arguments());
    zero(&mut c, place / 512, LEN / 512);
    let host = c.into_host();
    let mut kit = Kit { host, page };
    assert_eq!(kit.finish(undo.unwrap()).result, 0);
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
        let range = driver::Range { lba, blocks: blocks as u32 };
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

/// A device has completed transaction 4 as number 1; its number is written `before` ns before it loses power, another one. Under that nothing is left of what was known.
#[test]
fn nothing_of_a_number_is_kept_under_another() {
    let _alone = alone();
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let commit = kit.commit(0, 4, 0b10);
    kit.fine(0, &commit);
    kit.rest(Time::us(20));
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    let cuts = (0..rounds(300, 300)).map(|_| {
        kit.rest(Time::ns(2));
        let cut = || {
            kit.power(1, Time::us(20));
            kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
            kit.fine(0, &pool.map());
            vec![kit.get(0, register::HIGHEST) as u8]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    let ends: Vec<u8> = cuts.into_iter().map(|cut| cut.answer().unwrap()[0]).collect();
    assert!(ends.iter().all(|known| *known == 0), "{ends:?}");
}

/// The same, with the number that is given while what was kept comes back, and a second loss as that ends.
#[test]
fn nothing_of_a_number_is_kept_under_another_when_the_power_fails_twice() {
    let _alone = alone();
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let commit = kit.commit(0, 4, 0b10);
    kit.fine(0, &commit);
    kit.rest(Time::us(20));
    kit.power(1, Time::us(20));
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
    // When all is restored: the register tells, a poll later.
    let begin = kit.host.now();
    let measured = Fork::start(|| {
        while kit.get(0, spec::regs::nearpm::DOMAIN) & 1 == 0 {}
        (kit.host.now() - begin).0.to_le_bytes().to_vec()
    });
    let measured = measured.unwrap().answer().unwrap();
    let seen = Time(u64::from_le_bytes(measured.try_into().unwrap()));
    println!("restored after {} ns", seen.as_ns());
    kit.rest(Time(seen.0.saturating_sub(Time::ns(2500).0)));
    let cuts = (0..rounds(650, 650)).map(|_| {
        kit.rest(Time::ns(4));
        let cut = || {
            kit.power(1, Time::us(20));
            kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 2);
            kit.fine(0, &pool.map());
            vec![kit.get(0, register::HIGHEST) as u8]
        };
        Fork::start(cut).unwrap()
    });
    let cuts: Vec<_> = cuts.collect();
    let ends: Vec<u8> = cuts.into_iter().map(|cut| cut.answer().unwrap()[0]).collect();
    let kept: Vec<usize> = (0..ends.len()).filter(|n| ends[*n] != 0).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

/// The number alone, a byte, given before what was kept is back: registers take bytes as they take words.
#[test]
fn a_byte_of_a_number_that_is_given_early_stays() {
    let mut kit = Devices::bare(1, false);
    kit.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 1);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.power(1, Time::us(5));
    let at = kit.registers + register::DEVICE;
    let host = &mut kit.host;
    host.with_device(0, |host| host.write(Bar::Control, at, &[2]).unwrap());
    kit.fine(0, &pool.map());
    assert_eq!(kit.get(0, register::DEVICE) as u8, 2);
}

/// A store that waits in the queue, answered, then an NVMe command that zeroes it: README.md, "Whatever overlaps a line that waits goes behind it, in order".
#[test]
fn what_is_zeroed_stays_zero() {
    use driver::Controller;
    const LEN: u64 = 65_536;
    let (kit, pool) = Kit::with_pool("");
    let place = pool.media;
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
    let undo = page.submit(c.host_mut(), &pool.undo(0, 0, LEN).arguments());
    c.host_mut().write(Bar::Pm, place, &[2; 64]).unwrap();
    c.write_zeroes(place / 512, LEN / 512).unwrap();
    let mut now = [9; 64];
    c.read(place / 512, &mut vec![0; 512]).unwrap();
    c.host_mut().read(Bar::Pm, place, &mut now).unwrap();
    let host = c.into_host();
    let mut kit = Kit { host, page };
    assert_eq!(kit.finish(undo.unwrap()).result, 0);
    assert_eq!(now, [0; 64]);
}

/// README.md, "torn: a record is not whole: nothing was written". The first redo record is for the header of the second one.
#[test]
fn torn_has_written_nothing() {
    let mut kit = Devices::bare(1, false);
    let pool = kit.pool;
    kit.fine(0, &pool.map());
    kit.fine(0, &pool.open(0, 1));
    let log = pool.log(0) - pool.media;
    let first = kit.fine(0, &pool.redo(0, 0, 64, log + 192));
    assert_eq!((first, kit.fine(0, &pool.redo(0, 0, 64, 4096))), (64, 192));
    kit.fine(0, &pool.command(Operation::CommitRedo, 0));
    let before = kit.load(0, log, 512);
    let ended = kit.ends(0, &pool.command(Operation::Recover, 0));
    println!("{ended:?}");
    assert!(ended.result != Refusal::Torn as u32 || kit.load(0, log, 512) == before);
}

/// All units of a device that has `units` are at work when its power fails: all comes back.
fn many_units(units: u32) {
    many(units, 2);
}

fn many(units: u32, channels: u32) {
    let _alone = alone();
    let path = root().join("designs/nearpm.toml");
    let text = std::fs::read_to_string(&path).unwrap() + &format!("parameters = {{ units = {units}, unit_lines = 1024 }}\n");
    let design = design::Design::parse(&text, &path).unwrap();
    let design = design.with_values(&format!("channels = {channels}")).unwrap();
    let mut kit = Kit::of(&design);
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    for thread in 0..4 {
        kit.fine(&pool.open(thread, 1));
    }
    for n in 0..16 {
        kit.store(pool.media + 16_384 * n, &[n as u8 + 1; 16_384]);
    }
    kit.load(pool.media, 1);
    let mut random = sim::Random::new(units.into());
    let cuts = (0..rounds(60, 24)).map(|_| {
        let wait = Time::ns(400 + random.below(9000));
        let cut = || {
            for n in 0..16 {
                let thread = (n % 4) as u8;
                kit.submit(&pool.undo(thread, 16_384 * n, 8192 + 100 * n));
                kit.store(pool.media + 16_384 * n, &[0xEE; 200]);
                kit.submit(&pool.copy(thread, 16_384 * n, 3000, 0x4_0000 + 16_384 * n));
            }
            common::rest(&mut kit.host, wait);
            let number = kit.host.device();
            kit.host.system_mut().power_off(number);
            common::rest(&mut kit.host, Time::us(40));
            kit.host.system_mut().power_on(number);
            kit.page = Kit::page_of(&design);
            kit.fine(&pool.map());
            let mut fine = 1;
            for thread in 0..4 {
                fine &= u8::from(kit.ends(&pool.command(Operation::Recover, thread)).result == 0);
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

#[test]
fn two_units_come_back() {
    many_units(2);
}

#[test]
fn eight_units_come_back() {
    many_units(8);
}

#[test]
fn sixteen_units_come_back() {
    many_units(16);
}

#[test]
fn sixteen_units_of_one_channel_come_back() {
    many(16, 1);
}

#[test]
fn sixteen_units_of_four_channels_come_back() {
    many(16, 4);
}

/// Three peers tell at once, again and again, while commands are taken: nothing of it is lost.
#[test]
fn what_three_peers_tell_at_once_is_taken() {
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
            let last = (1..=150).rev().find(|round| (round + peer) % 4 == log).unwrap();
            let wanted = 4 * last + peer;
            assert_eq!(kit.get(0, register::SEEN + 8 * peer), wanted, "log {log}, peer {peer}");
        }
    }
    assert_eq!(kit.get(0, register::HIGHEST), 603);
}

/// A log is pending for devices 0 and 1; this one becomes device 2, and the others tell. It is none of the participants.
#[test]
fn a_log_of_another_number_stays_pending() {
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
    assert_eq!(kit.descriptor(0, 0).state, State::Pending(0b11));
}

/// Interrupt enable, and sources: what every engine has (hw/engine/nearpm/regs/nearpm_regs.rdl).
#[test]
fn registers_read_the_same_everywhere() {
    let mut kit = Devices::bare(1, false);
    kit.rest(Time::us(100));
    for at in [4, 8] {
        kit.set_word(0, at, 1);
    }
    let is = [kit.get(0, 4) as u32, kit.get(0, 8) as u32];
    assert_eq!(is, [1, 1]);
}

/// The NVMe controller is reset, or its subsystem, or shut down, while commands are under way and stores wait: the engine goes on.
#[test]
fn what_becomes_of_the_controller_is_nothing_to_commands() {
    use driver::Controller;
    const LEN: u64 = 65_536;
    for way in 0..3 {
        let (kit, pool) = Kit::with_pool("");
        let place = pool.media;
        let Kit { host, mut page } = kit;
        let config = driver::Config {
            io_queues: 1,
            ..driver::Config::default()
        };
        let mut c = Controller::start(host, config).unwrap();
        c.host_mut().write(Bar::Pm, place, &[1; 4096]).unwrap();
        let mut all = Vec::new();
        for n in 3..7 {
            let busy = pool.copy(0, 2 * LEN, LEN, n * LEN);
            all.push(page.submit(c.host_mut(), &busy.arguments()).unwrap());
        }
        all.push(page.submit(c.host_mut(), &pool.undo(0, 0, 4096).arguments()).unwrap());
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
fn resets_of_the_function_in_quick_succession_lose_nothing() {
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
            // All of that is there, or waits.
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
