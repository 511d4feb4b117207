// SPDX-License-Identifier: Apache-2.0

//! Timelines of transactions at the limits of their parameters.

use design::Design;
use device::{Factory, Model, RtlOptions};
use pm::{Mechanism, Synchronisation};
use pm_bench::Timeline;

#[test]
#[ignore = "takes seconds"]
fn timeline_logs_hold_the_largest_transactions() {
    let values = "[media]\nbytes = \"256 MiB\"\nprofile = \"dram\"\n[nvme]\nnamespaces = [\"1 \
                  MiB\"]\n[cpu]\nprofile = \"nearpm\"\n";
    let design = Design::find("nearpm-paper").unwrap();
    let design = design.with_values(values).unwrap();
    let options = RtlOptions::default();
    let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
    for mechanism in Mechanism::ALL {
        for (offloaded, devices) in [(false, 1), (true, 1), (true, 2), (true, 4)] {
            for bytes in [8, 16 << 10] {
                let timeline = Timeline {
                    mechanism,
                    tracked: false,
                    offloaded,
                    devices,
                    synchronise: Synchronisation::Devices,
                    objects: 8,
                    bytes,
                    transactions: 8,
                };
                let drawn = timeline.measure(&factory);
                let drawn = drawn.unwrap_or_else(|error| panic!("{timeline:?}: {error}"));
                assert!(drawn.took_ns > 0., "{timeline:?}");
            }
        }
    }
}
