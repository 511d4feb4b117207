// SPDX-License-Identifier: Apache-2.0

//! Fences that wait for completions, as on CXL. A completion takes longer to the host than the
//! device takes to make the store persistent.

use super::{any_time, cases, each_cut, Case, On};

fn on(on: On) -> impl Iterator<Item = Case> {
    cases(5, 8).map(move |case| Case { on, ..case })
}

#[test]
fn completed_stores_survive_power_cuts() {
    on(On::Cxl).for_each(|case| any_time(case, 8));
}

/// Fences that wait for no completion lose transactions, which the test above detects.
#[test]
#[ignore = "takes seconds"]
fn posted_stores_find_violations() {
    for offloaded in [false, true] {
        let mut broken = 0;
        let own = on(On::CxlPosted).filter(|case| case.offloaded == offloaded);
        own.for_each(|case| each_cut(case, 100, |_| broken += 1));
        assert!(broken > 0, "offloaded: {offloaded}: {broken}");
    }
}
