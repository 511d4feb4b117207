// SPDX-License-Identifier: Apache-2.0

//! Every workload leaves the contents of its oracle, on the fast model.

use design::Design;
use device::Model;
use host::Cpu;
use pm::{Mechanism, Options, Pool};
use testbed::Testbed;
use workloads::{Scale, Workload, NAMES};

/// A CPU of a host with a device.
fn cpu() -> Cpu {
    let design = Design::find("default").unwrap();
    let testbed = Testbed::builder(&design).model(Model::Fast).build();
    testbed.unwrap().cpu(0)
}

/// Runs a number of transactions, and compares the contents now and then.
fn run(name: &str, scale: Scale, mechanism: Mechanism, transactions: u64, every: u64) {
    let cpu = cpu();
    let workload = Workload::new(name, scale).unwrap();
    let layout = workload.layout(mechanism);
    let bytes = workload.pool_bytes().max(scale.records * 4096);
    let pool = Pool::create(&cpu, 0, 0, bytes, &layout, &Options::default()).unwrap();
    let mut thread = pool.thread(&cpu).unwrap();
    workload.create(&mut thread, 7).unwrap();
    let mut contents = workload.initial_contents(7).unwrap();
    let mut aborted = 0;
    for n in 0..=transactions {
        if n % every == 0 {
            let found = workload.inspect(&mut thread).unwrap();
            assert!(found.contents == contents, "{name}, {n} transactions");
            let objects = pool.check(&cpu).unwrap().objects;
            let objects: Vec<u64> = objects.into_iter().map(|o| o.0).collect();
            assert_eq!(found.objects, objects, "{name}, {n} transactions");
        }
        let committed = workload.perform(&mut thread, 7, n).unwrap();
        assert_eq!(workload.apply(&mut contents, 7, n), Ok(committed));
        aborted += u64::from(!committed);
    }
    println!(
        "{name}, {mechanism:?}: {} rows, {aborted} aborted",
        contents.len()
    );
    assert!(contents.len() as u64 >= scale.records / 4);
}

#[test]
#[ignore = "takes seconds"]
fn workloads_agree_with_the_oracle_under_all_mechanisms() {
    for name in NAMES {
        for mechanism in Mechanism::ALL {
            run(name, Scale::SMALL, mechanism, 60, 30);
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn maps_hold_through_many_insertions_and_removals() {
    for name in ["rbtree", "skiplist", "hashmap", "pmemkv"] {
        let scale = Scale {
            records: 400,
            ..Scale::SMALL
        };
        run(name, scale, Mechanism::Undo, 2000, 100);
    }
}

#[test]
fn workload_with_an_unknown_name_is_refused() {
    let error = Workload::new("nothing", Scale::SMALL).err().unwrap();
    let text = error.to_string();
    assert!(
        text.contains("\"nothing\"") && text.contains("skiplist"),
        "{text}"
    );
}
