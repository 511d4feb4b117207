// SPDX-License-Identifier: Apache-2.0

//! Devices with other numbers of units and channels: everything under way is restored after a loss
//! of power.

use super::*;

/// All units are busy when the power fails; everything is restored.
fn restores_commands(units: u32, channels: u32) {
    let _alone = alone();
    let path = root().join("designs/nearpm.toml");
    let text = std::fs::read_to_string(&path).unwrap()
        + &format!("parameters = {{ units = {units}, unit_lines = 1024 }}\n");
    let design = design::Design::parse(&text, &path).unwrap();
    let design = design
        .with_values(&format!("channels = {channels}"))
        .unwrap();
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
            kit.lose_power(&design, Time::us(40));
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
fn units_restore_two() {
    restores_commands(2, 2);
}

#[test]
fn units_restore_eight() {
    restores_commands(8, 2);
}

#[test]
fn units_restore_sixteen() {
    restores_commands(16, 2);
}

#[test]
fn units_restore_sixteen_on_one_channel() {
    restores_commands(16, 1);
}

#[test]
fn units_restore_sixteen_on_four_channels() {
    restores_commands(16, 4);
}

/// Commands are refused while many units end theirs, which the memory's refresh has held up. The
/// refused ones are taken in time.
#[test]
fn units_sixteen_do_not_delay_refusals() {
    let path = root().join("designs/nearpm.toml");
    let text = std::fs::read_to_string(&path).unwrap() + "parameters = { units = 16 }\n";
    let design = design::Design::parse(&text, &path).unwrap();
    let design = design.with_values("[media]\nprofile = \"dram\"").unwrap();
    let mut kit = Kit::of(&design);
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    let nothing = Command {
        value: 1,
        ..pool.command(Operation::Sync, 0)
    };
    let mut random = sim::Random::new(1);
    for _ in 0..rounds(20, 200) {
        // They wait for the first copy, and begin together.
        let mut all = vec![kit.submit(&pool.copy(0, 0, 32_768, 0x1_0000))];
        for n in 0..24 {
            let (from, to) = (0x1_0000 + 64 * n, 0x2_0000 + 64 * n);
            all.push(kit.submit(&pool.copy(0, from, 64, to)));
        }
        common::rest(&mut kit.host, Time::ns(random.below(1600)));
        let refused: Vec<_> = (0..32)
            .map(|_| {
                common::rest(&mut kit.host, Time::ns(20));
                kit.submit(&nothing)
            })
            .collect();
        for command in all {
            assert_eq!(kit.finish(command).result, 0);
        }
        for command in refused {
            assert_eq!(kit.finish(command).result, ErrorBit::Invalid as u32);
        }
    }
}
