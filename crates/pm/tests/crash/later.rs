// SPDX-License-Identifier: Apache-2.0

//! Transactions that become durable later: a power loss leaves what was durable, or a later prefix.

use super::{any_time, cases, each_cut, each_thread, every_point, Case, On};

fn groups(seed: u64, transactions: usize) -> impl Iterator<Item = Case> {
    cases(seed, transactions).flat_map(|case| {
        [1, 3, 5].map(|group| Case {
            group: Some(group),
            ..case
        })
    })
}

fn name(case: &Case) -> String {
    format!(
        "{:?}, offloaded: {}, groups of {:?}",
        case.mechanism, case.offloaded, case.group
    )
}

#[test]
#[ignore = "takes seconds"]
fn later_at_every_persist_point_leaves_a_prefix() {
    for case in groups(1, 12) {
        let mut count = 0;
        let stride = 1 + 2 * usize::from(case.mechanism.is_paged());
        every_point(case, stride, |why| {
            count += 1;
            assert_eq!(why, None, "{}", name(&case));
        });
        println!("{}: {count} points", name(&case));
        assert!(count > 10, "{}: {count}", name(&case));
    }
}

#[test]
#[ignore = "takes seconds"]
fn later_at_any_time_and_during_recovery_leaves_a_prefix() {
    groups(2, 10).for_each(|case| any_time(case, 12));
}

#[test]
fn later_on_the_fast_model_leaves_a_prefix() {
    for case in groups(4, 8).filter(|case| case.group == Some(3)) {
        let on = if case.offloaded { On::Near } else { On::Fast };
        any_time(Case { on, ..case }, 4);
    }
}

pub(super) fn on_the_fast_model(cuts: usize) {
    for case in groups(5, 12) {
        let on = if case.offloaded { On::Near } else { On::Fast };
        any_time(Case { on, ..case }, cuts);
    }
}

/// Tickets without a proof lose transactions, which the tests above detect.
#[test]
#[ignore = "takes seconds"]
fn later_without_proofs_finds_violations() {
    for case in cases(6, 12) {
        let on = if case.offloaded { On::Near } else { On::Fast };
        let case = Case {
            on,
            group: Some(5),
            proofs: false,
            ..case
        };
        let mut broken = 0;
        each_cut(case, 40, |_| broken += 1);
        println!("{}: {broken} of 40 broken", name(&case));
        assert!(broken > 0, "{}", name(&case));
    }
}

/// Several threads have no group: an engine's commits are posted one by one.
#[test]
#[ignore = "takes seconds"]
fn later_of_two_threads_leaves_a_prefix_of_each() {
    each_thread(groups(3, 8).filter(|case| case.group == Some(5)));
}
