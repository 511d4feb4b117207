// SPDX-License-Identifier: Apache-2.0

//! The power fails, and again before the device is ready: what was answered is there in the third
//! life, whatever registers hold at power-on.

use device::{InitialValues, Model, PowerUpRegisters, RtlOptions};
use driver::NvmeDriver;
use sim::Random;

use super::*;

const LEN: u64 = 16_384;
const COPIES: u64 = 8;
const EACH: [InitialValues; 3] = [
    InitialValues::Zeros,
    InitialValues::Ones,
    InitialValues::Random(7),
];

/// This number of cycles of the device's clock.
fn cycles(count: u64) -> Time {
    Time::ns(4 * count)
}

/// Stores to what copies read that wait for a unit: answered, and in the queue of the access hook.
/// Returns (address, value) of each.
fn stores_that_wait(contents: InitialValues) -> (Kit, Pool, Vec<(u64, u8)>) {
    let design = design("nearpm");
    let options = RtlOptions {
        registers: Some(PowerUpRegisters::Always(contents)),
        ..RtlOptions::default()
    };
    let factory = common::made_with(&design, options);
    let mut kit = Kit::before(common::device(&factory, &design), &design);
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    for n in 0..COPIES {
        kit.submit(&pool.copy(0, n * LEN, LEN, (COPIES + n) * LEN));
    }
    let mut stored = Vec::new();
    for n in 0..24 {
        let copy = COPIES - 1 - n % 3;
        let place = pool.media + copy * LEN + 64 * (5 * n + 1);
        kit.store(place, &[n as u8 + 1; 64]);
        stored.push((place, n as u8 + 1));
    }
    // This load comes after the answers of all of them.
    kit.load(pool.media + COPIES * 3 * LEN, 1);
    (kit, pool, stored)
}

/// Stores that are missing, and lines that a copy should have taken before a store, and did not.
fn lost(kit: &mut Kit, pool: &Pool, stored: &[(u64, u8)]) -> Vec<u8> {
    kit.fine(&pool.map());
    let mut lost = [0; 2];
    for (place, value) in stored {
        lost[0] += u8::from(kit.load(*place, 64) != [*value; 64]);
        lost[1] += u8::from(kit.load(*place + COPIES * LEN, 64) != [0; 64]);
    }
    lost.to_vec()
}

/// Time from power-on until the engine marks what was kept as restored. From then on only registers
/// have it.
fn marked_after(kit: &mut Kit) -> Time {
    if common::model() == Model::Fast {
        // The fast model has that at once.
        return cycles(100);
    }
    let mark = || {
        let (begin, writes) = (kit.host.now(), common::counter(&kit.host, "axi.ddr.writes"));
        while common::counter(&kit.host, "axi.ddr.writes") == writes {
            common::rest(&mut kit.host, cycles(1));
        }
        (kit.host.now() - begin).0.to_le_bytes().to_vec()
    };
    let time = Fork::start(mark).unwrap().answer().unwrap();
    Time(u64::from_le_bytes(time.try_into().unwrap()))
}

#[test]
fn restore_survives_power_that_fails_before_the_window_opens() {
    let _alone = alone();
    let design = design("nearpm");
    for contents in EACH {
        let (mut kit, pool, stored) = stores_that_wait(contents);
        let number = kit.host.device();
        kit.host.system_mut().power_off(number);
        common::rest(&mut kit.host, Time::us(20));
        kit.host.system_mut().power_on(number);
        let mark = marked_after(&mut kit);
        // Long before the mark, and then every few cycles until the load has been answered.
        let before = [Time(mark.0 / 2), mark - cycles(8), mark - cycles(4)];
        let after = (0..rounds(12, 4)).map(|n| mark + cycles(5 * n));
        let mut bad = Vec::new();
        let mut at = Time::ZERO;
        for cut in before.into_iter().chain(after) {
            common::rest(&mut kit.host, cut - at);
            at = cut;
            let again = || {
                kit.lose_power(&design, Time::us(20));
                lost(&mut kit, &pool, &stored)
            };
            let is = Fork::start(again).unwrap().answer().unwrap();
            if is != [0, 0] {
                bad.push((cut, is));
            }
        }
        assert!(
            bad.is_empty(),
            "{contents:?}: of {} stores are lost, and of copies wrong, by the time of the cut: \
                {bad:?}",
            stored.len()
        );
    }
}

/// Everything that a host sees of three lives, times of the device's clock included.
fn seen(contents: InitialValues) -> Vec<String> {
    let (mut kit, pool, stored) = stores_that_wait(contents);
    let design = design("nearpm");
    let mut seen = Vec::new();
    let mut note = |kit: &Kit, what: String| {
        let counters = ["axi.handshakes", "axi.ddr.writes", "cycles.evaluated"];
        let counters = counters.map(|name| match common::model() {
            Model::Rtl => common::counter(&kit.host, name),
            Model::Fast => 0.0,
        });
        seen.push(format!("{}: {counters:?} {what}", kit.host.now()));
    };
    let mut random = Random::new(3);
    for life in 0..3 {
        note(&kit, format!("life {life}"));
        // Queues are made in each life, and differently.
        let config = driver::DriverConfig {
            io_queues: 1 + life,
            ..driver::DriverConfig::default()
        };
        let Kit { host, page } = kit;
        let mut c = NvmeDriver::start(host, config).unwrap();
        for n in 0..6 {
            let mut data = vec![random.next() as u8; 4096];
            let lba = (64 << 11) + random.below(1000);
            match n % 3 {
                0 => c.write(lba, &data).unwrap(),
                1 => c.read(lba, &mut data).unwrap(),
                _ => c.write_zeroes(lba, 8).unwrap(),
            }
        }
        let host = c.into_host();
        kit = Kit { host, page };
        note(&kit, "NVMe".into());
        kit.ends(&pool.map());
        let open = kit.ends(&pool.open(1, 5 + life as u64));
        let undo = kit.ends(&pool.undo(1, 0, 3000));
        let recover = kit.ends(&pool.command(Operation::Recover, 2));
        let lines: Vec<u8> = stored.iter().map(|(at, _)| kit.load(*at, 1)[0]).collect();
        note(&kit, format!("{open:?} {undo:?} {recover:?} {lines:?}"));
        let registers = design.engines().unwrap()[0].offset;
        let words = (0..0x210)
            .step_by(4)
            .map(|at| kit.host.read32(Bar::Control, registers + at));
        let words: Vec<String> = words.map(|word| format!("{word:x?}")).collect();
        note(&kit, words.join(" "));
        kit.submit(&pool.copy(0, 0, LEN, COPIES * LEN));
        kit.store(pool.media + 64, &[life as u8; 64]);
        kit.lose_power(&design, Time::us(20));
    }
    seen
}

#[test]
fn registers_at_power_on_change_nothing() {
    let first = seen(EACH[0]);
    for contents in [
        InitialValues::Ones,
        InitialValues::Random(1),
        InitialValues::Random(2),
    ] {
        for (zeros, others) in first.iter().zip(seen(contents)) {
            assert_eq!(*zeros, others, "{contents:?} beside zeros");
        }
    }
}
