// SPDX-License-Identifier: Apache-2.0

//! Several threads share an engine's command page, and no command is lost.

use std::sync::atomic::{AtomicBool, Ordering};

use design::Design;
use device::{Factory, Model, RtlOptions};
use host::{Cpu, Program};
use pm_bench::Transactions;
use spec::nearpm::{Command, Operation};

fn small(design: &str) -> Factory {
    let values = "[media]\nbytes = \"256 MiB\"\nprofile = \"dram\"\n[nvme]\nnamespaces = [\"1 \
                  MiB\"]\n[cpu]\nprofile = \"nearpm\"\n";
    let design = Design::find(design).unwrap();
    let design = design.with_values(values).unwrap();
    let options = RtlOptions::default();
    Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap()
}

fn run(mechanism: &str, inserts: u64, devices: usize, seed: u64) {
    let factory = small("nearpm");
    let transactions = Transactions {
        inserts,
        threads: 16,
        devices,
        seed,
        ..Transactions::from_names(mechanism, true, "read_back").unwrap()
    };
    let ran = transactions.measure(&factory, &mut |_, _| true);
    let ran = ran.unwrap_or_else(|e| panic!("{mechanism}, seed {seed}: {e}"));
    println!(
        "{mechanism}, {devices} devices: {:.2} a microsecond",
        ran.per_us
    );
}

/// A line that is reused too early drops a command, which the library reports.
#[test]
#[ignore = "takes seconds"]
fn commands_of_sixteen_threads_are_all_counted() {
    for mechanism in ["undo", "redo", "checkpoint", "shadow"] {
        for (devices, seed) in [(1, 1), (2, 3)] {
            let few = matches!(mechanism, "checkpoint" | "shadow");
            run(mechanism, if few { 30 } else { 120 }, devices, seed);
        }
    }
}

/// The seeds of threads are consecutive, from any first one.
#[test]
fn threads_accept_any_seed() {
    let factory = small("nearpm");
    let transactions = Transactions {
        inserts: 2,
        threads: 2,
        seed: u64::MAX,
        ..Transactions::from_names("undo", true, "read_back").unwrap()
    };
    let ran = transactions.measure(&factory, &mut |_, _| true);
    assert!(ran.unwrap().per_us > 0.0);
}

/// Posted stores have an order on one channel of one device, and engines keep that of their
/// commands.
#[test]
fn ordered_fence_is_refused_where_no_order_is_kept() {
    let order = |design: &str, offloaded: bool, devices: usize| {
        let factory = small(design);
        let transactions = Transactions {
            inserts: 2,
            devices,
            ..Transactions::from_names("undo", offloaded, "ordered").unwrap()
        };
        let ran = transactions.measure(&factory, &mut |_, _| true);
        ran.map_err(|error| error.to_string())
    };
    assert!(order("nearpm-paper", false, 1).is_ok());
    for (design, offloaded, devices) in [
        ("nearpm", false, 1),
        ("nearpm-paper", true, 1),
        ("nearpm-paper", false, 2),
    ] {
        let error = order(design, offloaded, devices).unwrap_err();
        assert!(
            error.contains("one device, and a design of one channel"),
            "{error}"
        );
    }
}

/// One thread waits for the ends of its commands, and others fill all lines. The first thread reads
/// the end of its command, whichever thread has recorded it first.
#[test]
fn command_end_is_read_by_its_own_thread() {
    let (testbed, engines) = pm_bench::testbed(&small("nearpm"), 1).unwrap();
    let engine = &engines[0];
    let base = 1 << 44;
    let own = |operation| Command::new(operation, 7, 3, 0);
    let map = Command {
        address: base,
        bytes: 4 << 20,
        transaction: 2 << 20,
        value: 1 << 16,
        extra: 16,
        ..own(Operation::PoolMap)
    };
    let undo = Command {
        address: base,
        bytes: 64,
        ..own(Operation::Undo)
    };
    let well = |cpu: &Cpu, command: Command| {
        let (results, value) = engine.launch(cpu, &command).unwrap();
        assert!(results.is_ok(), "{command:?}: {results:?}");
        value
    };
    well(&testbed.cpu(0), map);
    for thread in 0..16 {
        let open = Command {
            thread,
            value: 1,
            ..own(Operation::LogOpen)
        };
        well(&testbed.cpu(0), open);
    }
    let waits = AtomicBool::new(true);
    let programs = (0..16).map(|n| {
        let waits = &waits;
        let program: Program<'_, ()> = Box::new(move |cpu: &Cpu| {
            let own = |operation| {
                // A copy: the compiler (1.95) fails on a closure that captures single fields.
                let template = undo;
                Command {
                    operation,
                    thread: n as u8,
                    ..template
                }
            };
            if n == 0 {
                // A header and a line each, after the log's descriptor.
                let wrong = (0..300).find_map(|turn| {
                    let ended = engine.launch(cpu, &own(Operation::Undo)).unwrap();
                    let wanted = 64 + 128 * turn;
                    (!ended.0.is_ok() || ended.1 != wanted).then_some((turn, ended))
                });
                waits.store(false, Ordering::Relaxed);
                assert_eq!(wrong, None, "a turn, and how it ended");
            }
            let sync = Command {
                address: 0,
                bytes: 0,
                ..own(Operation::Sync)
            };
            while waits.load(Ordering::Relaxed) {
                engine.submit(cpu, &sync).unwrap();
            }
        });
        (n, program)
    });
    testbed.machine().run(programs.collect()).unwrap();
}
