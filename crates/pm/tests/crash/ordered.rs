// SPDX-License-Identifier: Apache-2.0

//! A CPU that relies on the order of posted stores waits for one read-back per transaction, and
//! stays consistent.

use super::{any_time, cases, every_point, prepare, run, Case, On};

fn by_the_cpu(on: On, seed: u64, transactions: usize) -> impl Iterator<Item = Case> {
    let own = cases(seed, transactions).filter(|case| !case.offloaded);
    own.map(move |case| Case { on, ..case })
}

#[test]
fn ordered_stores_on_one_channel_survive_crashes() {
    by_the_cpu(On::Ordered, 4, 8).for_each(|case| any_time(case, 6));
}

/// Where stores are lost in any order, relying on the order violates atomicity, which the test
/// above detects.
#[test]
#[ignore = "takes seconds"]
fn ordered_stores_on_two_channels_find_violations() {
    for case in by_the_cpu(On::Unordered, 1, 6) {
        let (mut count, mut broken) = (0, 0);
        every_point(case, 2, |why| {
            count += 1;
            broken += usize::from(why.is_some());
        });
        let mechanism = case.mechanism;
        assert!(broken > 0, "{mechanism:?}: none of {count} broken");
    }
}

/// It waits less, and still orders the other stores.
#[test]
fn ordered_fences_between_stores_are_posted() {
    for case in by_the_cpu(On::Ordered, 2, 6) {
        let took = [On::Single, On::Ordered].map(|on| {
            let case = Case { on, ..case };
            let (bench, pool, tree) = prepare(&case);
            let begin = bench.now();
            run(&case, &bench, &bench.shared.cpu(0), &pool, tree);
            bench.now() - begin
        });
        assert!(took[1] < took[0], "{:?}: {took:?}", case.mechanism);
    }
}
