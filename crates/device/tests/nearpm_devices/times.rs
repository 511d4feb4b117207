// SPDX-License-Identifier: Apache-2.0

//! Times as the host sees them, to the nanosecond. Both models are deterministic, so a change of
//! any of them is noticed here. No other test notices a change of times alone.

use device::Model;

use super::*;

/// Time until a load that is sent last has been answered, in ns: on the fast model, and on the RTL
/// model.
const TIMES: [(&str, u64, u64); 24] = [
    ("nothing", 928, 940),
    ("undo of 8 bytes", 1464, 1576),
    ("undo of 700 bytes", 1736, 1896),
    ("abort", 4072, 4636),
    ("undo of 64 KiB", 13528, 14628),
    ("commit", 1096, 1180),
    ("checkpoint of a page", 2252, 2428),
    ("recover", 4404, 4904),
    ("redo of 300 bytes", 1612, 1736),
    ("commit_redo, apply, delete", 2436, 2772),
    ("copy of a line", 1400, 1504),
    ("copy of 16 KiB", 3144, 3172),
    ("copy of 64 KiB", 7608, 7348),
    ("copy to any byte", 2416, 2644),
    ("switch", 1100, 1184),
    ("three copies of 16 KiB", 6884, 6972),
    ("nine copies of 4 KiB", 5136, 5396),
    ("a chain of three", 4388, 4836),
    ("a store after a copy", 2208, 2400),
    ("stores after a copy", 2760, 2988),
    ("more than the queue holds", 6276, 5732),
    ("a command after stores", 2804, 3020),
    ("coming back", 26784, 37860),
    ("coming back with a copy", 29376, 40740),
];
/// The largest difference of the fast model from the RTL model, in %. It does not hold after a loss
/// of power, where the fast model neither saves nor reads anything.
const APART: u64 = 13;
const POWER: &str = "coming back";

struct Times {
    kit: Kit,
    pool: Pool,
    all: Vec<(&'static str, u64)>,
}

impl Times {
    /// Time of commands that are sent at rest, until a line of the pool can be read.
    fn of(&mut self, what: &'static str, commands: &[Command], place: u64) {
        self.with(what, place, |kit| {
            for command in commands {
                kit.submit(command);
            }
        });
    }

    fn with(&mut self, what: &'static str, place: u64, act: impl FnOnce(&mut Kit)) {
        common::rest(&mut self.kit.host, Time::us(60));
        let begin = self.kit.host.now();
        act(&mut self.kit);
        self.kit.load(self.pool.media + place, 8);
        let took = self.kit.host.now() - begin;
        self.all.push((what, took.0 / 1000));
    }
}

fn measured() -> Vec<(&'static str, u64)> {
    let (kit, pool) = Kit::with_pool("");
    let all = Vec::new();
    let mut times = Times { kit, pool, all };
    let log = pool.logs;
    let command = |operation| pool.command(operation, 0);
    times.of("nothing", &[], 0);
    times.of("undo of 8 bytes", &[pool.undo(0, 4, 8)], log + 64);
    times.of("undo of 700 bytes", &[pool.undo(0, 0x1004, 700)], log + 192);
    times.of("abort", &[command(Operation::Abort)], 4);
    times.of("undo of 64 KiB", &[pool.undo(0, 0, 65_536)], log + 64);
    times.of("commit", &[command(Operation::Commit)], log);
    let checkpoint = Command {
        operation: Operation::Checkpoint,
        ..pool.undo(0, 0x2000, 4096)
    };
    times.of("checkpoint of a page", &[checkpoint], log + 64);
    times.of("recover", &[command(Operation::Recover)], 0x2000);
    let redo = pool.redo(0, 0x3000, 300, 0x5010);
    times.of("redo of 300 bytes", &[redo], log + 64);
    let applied = [
        command(Operation::CommitRedo),
        pool.apply(0, 64, 300, 0x5010),
        command(Operation::Delete),
    ];
    times.of("commit_redo, apply, delete", &applied, log);
    times.of(
        "copy of a line",
        &[pool.copy(0, 0x6000, 64, 0x7000)],
        0x7000,
    );
    times.of("copy of 16 KiB", &[pool.copy(0, 0, 16_384, 0x8000)], 0x8000);
    times.of(
        "copy of 64 KiB",
        &[pool.copy(0, 0, 65_536, 0x1_0000)],
        0x1_0000,
    );
    times.of("copy to any byte", &[pool.copy(0, 3, 5000, 0x8011)], 0x9000);
    times.of("switch", &[pool.switch(0, 0x9000, 7)], 0x9000);
    let copies = |count: u64, bytes: u64| -> Vec<Command> {
        let each =
            (0..count).map(|n| pool.copy(n as u8 % 4, n * bytes, bytes, (count + n) * bytes));
        each.collect()
    };
    times.of("three copies of 16 KiB", &copies(3, 16_384), 5 * 16_384);
    times.of("nine copies of 4 KiB", &copies(9, 4096), 17 * 4096);
    times.of(
        "a chain of three",
        &[(0, 1), (1, 2), (2, 3)].map(|(from, to)| pool.copy(0, from * 4096, 4096, to * 4096)),
        3 * 4096,
    );
    times.with("a store after a copy", 0, |kit| {
        kit.submit(&pool.copy(0, 0, 8192, 0x8000));
        kit.store(pool.media, &[1; 64]);
    });
    times.with("stores after a copy", 0x1000, |kit| {
        kit.submit(&pool.copy(0, 0, 8192, 0x8000));
        kit.store(pool.media, &[2; 8192 - 64]);
    });
    times.with("more than the queue holds", 0x1000, |kit| {
        kit.submit(&pool.copy(0, 0, 32_768, 0x8000));
        kit.store(pool.media, &[3; 20_000]);
    });
    times.with("a command after stores", 0x8000, |kit| {
        kit.store(pool.media, &[4; 4096]);
        kit.submit(&pool.copy(0, 0, 4096, 0x8000));
    });
    let power = |kit: &mut Kit| kit.lose_power(&design("nearpm"), Time::us(20));
    times.with("coming back", 0, power);
    times.with("coming back with a copy", 0, |kit| {
        kit.submit(&pool.copy(0, 0, 16_384, 0x8000));
        kit.store(pool.media, &[5; 640]);
        kit.load(pool.media + 0x4_0000, 1);
        power(kit);
    });
    times.all
}

#[test]
fn times_match_the_table() {
    let all = measured();
    let known = TIMES.map(|(what, fast, rtl)| match common::model() {
        Model::Fast => (what, fast),
        Model::Rtl => (what, rtl),
    });
    let found: String = all.iter().map(|time| format!("    {time:?},\n")).collect();
    assert!(all == known, "other times than known, in ns:\n{found}");
}

#[test]
fn times_of_both_models_are_close() {
    for (what, fast, rtl) in TIMES.iter().filter(|(what, ..)| !what.starts_with(POWER)) {
        assert!(fast.abs_diff(*rtl) * 100 <= rtl * APART, "{what}");
    }
}
