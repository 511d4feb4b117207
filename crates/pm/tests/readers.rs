// SPDX-License-Identifier: Apache-2.0

//! Reads outside of transactions, beside transactions that change the same pages.

mod common;

use common::Bench;
use host::{Cpu, CutScope, Program};
use pm::{Error, Layout, Mechanism, Pool, Transaction};

const PLACE: u64 = 64 << 10;
const OBJECT: usize = 2048;
const ROUNDS: u8 = 40;

/// Two objects in each of four pages. Object 0 is never changed; one CPU reads it while another one
/// writes objects 1, 2, 4 and 6.
fn run(bench: &Bench, mechanism: Mechanism, offloaded: bool, spare_pages: u64) {
    let cpu = bench.shared.cpu(0);
    let layout = Layout {
        spare_pages,
        ..Layout::new("test").with_mechanism(mechanism)
    };
    let options = bench.options(offloaded);
    let pool = Pool::create(&cpu, 0, PLACE, 4 << 20, &layout, &options).unwrap();
    let mut objects = [0; 8];
    let mut thread = pool.thread(&cpu).unwrap();
    for (n, at) in (1..).zip(&mut objects) {
        let made = thread.run(|tx| {
            let at = tx.alloc_bytes(OBJECT as u64)?.offset();
            tx.write(at, &[n; OBJECT])?;
            Ok::<_, Error>(at)
        });
        *at = made.unwrap();
    }
    drop(thread);
    assert_eq!(objects[0] / 4096, objects[1] / 4096);
    let writer: Program<'_, ()> = Box::new(|cpu: &Cpu| {
        let mut thread = pool.thread(cpu).unwrap();
        for n in 0..ROUNDS {
            let of = |tx: &mut Transaction<'_>| {
                [1, 2, 4, 6]
                    .map(|at| tx.write(objects[at], &[n; 64]))
                    .into_iter()
                    .collect()
            };
            thread.run::<(), Error>(of).unwrap();
        }
    });
    let reader: Program<'_, ()> = Box::new(|cpu: &Cpu| {
        let mut thread = pool.thread(cpu).unwrap();
        for _ in 0..ROUNDS {
            let mut bytes = [0; OBJECT];
            thread.read(objects[0], &mut bytes).unwrap();
            assert_eq!(bytes, [1; OBJECT], "{mechanism:?}, offloaded: {offloaded}");
        }
    });
    bench.shared.run(vec![(0, writer), (1, reader)]).unwrap();

    let compare = |pool: &Pool| {
        let mut thread = pool.thread(&cpu).unwrap();
        for (n, at) in (1..).zip(objects) {
            let mut bytes = [0; OBJECT];
            thread.run(|tx| tx.read(at, &mut bytes)).unwrap();
            let mut expected = [n; OBJECT];
            if let 2 | 3 | 5 | 7 = n {
                expected[..64].fill(ROUNDS - 1);
            }
            assert_eq!(bytes, expected, "{mechanism:?}, offloaded: {offloaded}");
        }
        // Stores next to the read bytes leave these unchanged.
        thread.run(|tx| tx.write(objects[0], &[1])).unwrap();
    };
    compare(&pool);
    pool.check(&cpu).unwrap();
    drop(pool);
    bench
        .shared
        .with_machine(|machine| machine.crash(CutScope::All))
        .unwrap();
    bench.restart();
    compare(&Pool::open(&cpu, 0, PLACE, "test", &options).unwrap());
}

#[test]
fn readers_see_unchanged_objects() {
    for bench in [Bench::empty, || Bench::near(1)] {
        for mechanism in Mechanism::ALL {
            for offloaded in [false, true] {
                for spare_pages in [8, 64] {
                    run(&bench(), mechanism, offloaded, spare_pages);
                }
            }
        }
    }
}

/// A transaction waits while its spare pages are being read.
#[test]
fn readers_need_few_spare_pages() {
    for offloaded in [false, true] {
        run(&Bench::near(1), Mechanism::Shadow, offloaded, 4);
    }
}
