// SPDX-License-Identifier: Apache-2.0

//! Campaigns find no violation, and negative controls do. On the fast model, or on the one that
//! `NEARSIDE_MODEL` names.

use crash::{run, Campaign, CutPlan, Executor, InjectedFault, Report};
use design::Design;
use device::{Factory, Model, RtlOptions};
use pm::{Mechanism, Synchronisation};

/// The extent of a test: a sample in `make test`, all of it in `make test-all`.
fn extent<T>(sample: T, all: T) -> T {
    match std::env::var("NEARSIDE_LONG").as_deref() {
        Ok("1") => all,
        _ => sample,
    }
}

/// A campaign on the B-tree.
fn btree(mechanism: Mechanism, executor: Executor, cuts: &str) -> Campaign {
    Campaign {
        workload: "btree".into(),
        mechanism,
        tracked: false,
        executor,
        devices: 1,
        synchronise: Synchronisation::Devices,
        transactions: 12,
        seed: 1,
        cuts: cuts.parse().unwrap(),
        later: None,
        words: false,
        fault: None,
        jobs: 2,
    }
}

struct Campaigns(Factory);

fn campaigns(executor: Executor) -> Campaigns {
    let name = match executor {
        Executor::Cpu => "default",
        Executor::Device => "nearpm",
    };
    let design = Design::find(name).unwrap();
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true).unwrap();
    Campaigns(factory)
}

impl Campaigns {
    fn run(&self, campaign: &Campaign) -> Report {
        run(&self.0, campaign, &mut |_, _| true).unwrap()
    }

    /// Asserts that a campaign finds no violation.
    fn holds(&self, campaign: &Campaign) -> Report {
        let report = self.run(campaign);
        assert_eq!(report.violation, None, "{campaign:?}");
        assert_eq!(report.violated, 0);
        report
    }
}

fn cases() -> impl Iterator<Item = (Executor, Mechanism)> {
    let executor = [Executor::Cpu, Executor::Device];
    executor
        .into_iter()
        .flat_map(|executor| Mechanism::ALL.map(|m| (executor, m)))
}

/// Sampled cuts have all parts that a cut can have, and find nothing.
#[test]
#[ignore = "takes seconds"]
fn drawn_cuts_leave_n_transactions_or_one_more() {
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    let mut all = Report::default();
    for (executor, mechanism) in cases() {
        let report = rigs[executor as usize].holds(&btree(mechanism, executor, "sampled:40"));
        assert_eq!(report.cuts, 40);
        all.more += report.more;
        all.recoveries_cut += report.recoveries_cut;
        all.evicted += report.evicted;
    }
    assert!(
        all.more > 20 && all.recoveries_cut > 50 && all.evicted > 500,
        "{all:?}"
    );
}

/// Mechanisms of tracked pools.
const TRACKED: [Mechanism; 3] = [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow];

fn tracked(workload: &str, mechanism: Mechanism, executor: Executor, cuts: &str) -> Campaign {
    Campaign {
        workload: workload.into(),
        tracked: true,
        ..btree(mechanism, executor, cuts)
    }
}

#[test]
fn tracked_pools_have_n_transactions_or_one_more() {
    if !matches!(Model::named(Model::Fast), Ok(Model::Fast)) {
        return;
    }
    let campaigns = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    for mechanism in TRACKED {
        for executor in [Executor::Cpu, Executor::Device] {
            let all = &campaigns[executor as usize];
            all.holds(&tracked("btree", mechanism, executor, "sampled:20"));
        }
        campaigns[1].holds(&tracked("tatp", mechanism, Executor::Device, "commands"));
    }
}

/// Programs keep their tracked pools. The control is found in each.
fn tracked_pools_need_their_records(programs: &[&str]) {
    if !matches!(Model::named(Model::Fast), Ok(Model::Fast)) {
        return;
    }
    let campaigns = campaigns(Executor::Device);
    for name in programs {
        for mechanism in TRACKED {
            let cuts = extent("sampled:20", "sampled:30");
            campaigns.holds(&tracked(name, mechanism, Executor::Device, cuts));
            let control = Campaign {
                fault: Some(InjectedFault::Tracking),
                ..tracked(
                    name,
                    mechanism,
                    Executor::Device,
                    extent("sampled:40", "sampled:60"),
                )
            };
            let report = campaigns.run(&control);
            assert!(report.violated > 0, "{control:?}: {report:?}");
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn tracked_pools_of_a_program_need_their_records() {
    tracked_pools_need_their_records(&["rbtree"]);
}

#[test]
fn tracking_faults_are_for_tracked_pools_of_engines() {
    let control = |tracked: bool, executor, fault| Campaign {
        tracked,
        fault: Some(fault),
        ..btree(Mechanism::Undo, executor, "sampled:1")
    };
    for (tracked, executor) in [(true, Executor::Cpu), (false, Executor::Device)] {
        let error = control(tracked, executor, InjectedFault::Tracking).validate();
        assert!(error.unwrap_err().to_string().contains("tracked pools"));
    }
    let error = control(true, Executor::Device, InjectedFault::Snapshots).validate();
    assert!(error.unwrap_err().to_string().contains("\"tracking\""));
}

/// Negative controls find violations. The first one is simplified, and its cut reproduces it.
#[test]
#[ignore = "takes seconds"]
fn negative_controls_find_reproducible_violations() {
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    for (executor, mechanism) in cases() {
        let campaigns = &rigs[executor as usize];
        let control = Campaign {
            fault: Some(InjectedFault::Snapshots),
            ..btree(mechanism, executor, "sampled:60")
        };
        let report = campaigns.run(&control);
        assert!(report.violated > 3, "{control:?}: {report:?}");
        let violation = report.violation.unwrap();
        assert!(violation.cut.again.is_empty(), "{:?}", violation.cut);
        let wanted = [
            "host      loses its power",
            "device 0  loses its power",
            "found",
        ];
        for what in wanted {
            let there = violation.timeline.iter().any(|line| line.contains(what));
            assert!(there, "{what}: {:?}", violation.timeline);
        }
        let replay = Campaign {
            cuts: CutPlan::At(vec![violation.cut.clone()]),
            ..control
        };
        let again = campaigns.run(&replay);
        assert_eq!((again.cuts, again.violated), (1, 1));
        assert_eq!(again.violation.unwrap(), violation);
        // Without the fault the same cuts find nothing.
        campaigns.holds(&Campaign {
            fault: None,
            ..btree(mechanism, executor, "sampled:5")
        });
    }
}

/// Mechanisms need the steps that device faults leave out; the crate documentation lists all
/// results.
#[test]
#[ignore = "takes seconds"]
fn mechanisms_need_their_fences_and_snapshots() {
    if !matches!(Model::named(Model::Fast), Ok(Model::Fast)) {
        return;
    }
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    let needs = [
        (Executor::Cpu, InjectedFault::Fences, &Mechanism::ALL[..]),
        (
            Executor::Device,
            InjectedFault::ConflictFilter,
            &[Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow],
        ),
        (
            Executor::Device,
            InjectedFault::CommandOrder,
            &[Mechanism::Undo, Mechanism::Checkpoint],
        ),
        (
            Executor::Device,
            InjectedFault::PersistenceDomain,
            &[Mechanism::Checkpoint],
        ),
    ];
    for (executor, fault, mechanisms) in needs {
        for &mechanism in mechanisms {
            let control = Campaign {
                transactions: 24,
                fault: Some(fault),
                ..btree(mechanism, executor, "sampled:60")
            };
            let report = rigs[executor as usize].run(&control);
            // A transaction with undo logs has one or two commands before its commit. That they
            // end in another order rarely shows in what is left, and always in the order of events.
            let found = match (fault, mechanism) {
                (InjectedFault::CommandOrder, Mechanism::Undo) => report.broken == report.cuts,
                _ => report.has_violation(),
            };
            assert!(found, "{control:?}: {report:?}");
        }
    }
}

/// A campaign over several devices, on a workload whose transactions change data on all of them.
fn several(mechanism: Mechanism, executor: Executor, devices: usize, cuts: &str) -> Campaign {
    Campaign {
        workload: "tpcc".into(),
        devices,
        transactions: 6,
        seed: 2,
        ..btree(mechanism, executor, cuts)
    }
}

/// Each of several devices fails at its time, or keeps its power.
#[test]
#[ignore = "takes seconds"]
fn several_devices_recover_the_same_transaction() {
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    let mut more = 0;
    for (executor, mechanism) in cases() {
        let campaigns = &rigs[executor as usize];
        more += campaigns
            .holds(&several(mechanism, executor, 2, "sampled:8"))
            .more;
    }
    rigs[1].holds(&several(Mechanism::Undo, Executor::Device, 4, "sampled:6"));
    let host = Campaign {
        synchronise: Synchronisation::Host,
        ..several(Mechanism::Undo, Executor::Device, 2, "sampled:8")
    };
    more += rigs[1].holds(&host).more;
    assert!(more > 10, "{more}");
}

/// A device that deletes its log too early can't write back what the others have not completed.
#[test]
#[ignore = "takes seconds"]
fn early_log_deletion_is_detected() {
    let campaigns = campaigns(Executor::Device);
    let control = Campaign {
        fault: Some(InjectedFault::Peers),
        ..several(Mechanism::Checkpoint, Executor::Device, 2, "sampled:60")
    };
    let report = campaigns.run(&control);
    assert!(report.violated > 1, "{report:?}");
    // With the messages of peers no violation is found.
    campaigns.holds(&Campaign {
        fault: None,
        ..control
    });
}

mod long {
    use super::*;

    #[test]
    #[ignore = "minutes"]
    fn tracked_pools_of_all_programs_need_their_records() {
        tracked_pools_need_their_records(&workloads::NAMES);
    }

    /// Several devices, many cuts.
    #[test]
    #[ignore = "thousands of cuts"]
    fn drawn_cuts_of_several_devices_find_no_violation() {
        for (executor, mechanism) in cases() {
            for devices in [2, 4] {
                let campaign = Campaign {
                    transactions: 24,
                    ..several(mechanism, executor, devices, "sampled:1000")
                };
                campaigns(executor).holds(&campaign);
            }
        }
    }

    /// Each clock edge of a run, and each subset of lines that may have left the cache.
    #[test]
    #[ignore = "thousands of cuts"]
    fn all_cuts_of_a_short_run_find_no_violation() {
        for (executor, mechanism) in cases() {
            let campaign = Campaign {
                transactions: 2,
                ..btree(mechanism, executor, "all")
            };
            let report = campaigns(executor).holds(&campaign);
            println!("{executor} {}: {} cuts", mechanism.name(), report.cuts);
            assert!(report.cuts > 300 && report.evicted > 20, "{report:?}");
        }
    }
}

mod sampled {
    use super::*;

    /// A sample of these cuts, for both models.
    #[test]
    #[ignore = "takes seconds"]
    fn selected_cuts_of_a_short_run_leave_n_transactions_or_one_more() {
        // A cut takes seconds on the RTL model.
        let held = match Model::named(Model::Fast).unwrap() {
            Model::Fast => "sampled:20",
            Model::Rtl => "sampled:6",
        };
        for executor in [Executor::Cpu, Executor::Device] {
            let campaign = Campaign {
                transactions: 3,
                ..btree(Mechanism::Undo, executor, "sampled:20")
            };
            let campaigns = campaigns(executor);
            campaigns.holds(&Campaign {
                cuts: held.parse().unwrap(),
                ..campaign.clone()
            });
            let control = Campaign {
                fault: Some(InjectedFault::Snapshots),
                ..campaign
            };
            assert!(campaigns.run(&control).violated > 1);
        }
    }

    /// A tracked pool, on both models.
    #[test]
    #[ignore = "takes seconds"]
    fn selected_cuts_with_a_tracked_pool_leave_n_transactions_or_one_more() {
        // A cut takes seconds on the RTL model.
        let cuts = match Model::named(Model::Fast).unwrap() {
            Model::Fast => "sampled:20",
            Model::Rtl => extent("sampled:2", "sampled:4"),
        };
        campaigns(Executor::Device).holds(&Campaign {
            transactions: 3,
            ..tracked("btree", Mechanism::Undo, Executor::Device, cuts)
        });
    }
}

/// On the RTL model with `make test-all` alone.
mod extended {
    use super::*;

    /// Two devices, each of which fails alone after each command: most commits involve both. A
    /// device that does not wait for the other one is found there, independent of timing.
    #[test]
    #[ignore = "takes seconds"]
    fn cuts_after_commands_to_two_devices_leave_n_transactions_or_one_more() {
        // A cut takes seconds on the RTL model.
        let transactions = match Model::named(Model::Fast).unwrap() {
            Model::Fast => 2,
            Model::Rtl => 1,
        };
        let campaign = Campaign {
            workload: "btree".into(),
            transactions,
            ..several(Mechanism::Undo, Executor::Device, 2, "commands")
        };
        let campaigns = campaigns(Executor::Device);
        let report = campaigns.holds(&campaign);
        println!("{report:?}");
        assert_eq!(report.spanning, transactions, "{report:?}");
        let control = Campaign {
            fault: Some(InjectedFault::Peers),
            transactions: 1,
            ..campaign
        };
        let report = campaigns.run(&control);
        println!("{report:?}");
        assert!(report.violated > 0, "{report:?}");
    }
}

/// A single transaction with thousands of cuts reports its progress, and can be stopped.
#[test]
fn campaign_stops_within_a_transaction() {
    let Campaigns(factory) = campaigns(Executor::Device);
    let campaign = Campaign {
        transactions: 1,
        ..btree(Mechanism::Undo, Executor::Device, "all")
    };
    let (mut last, mut total) = (0, 0);
    let mut on_progress = |done, all| {
        assert!(done >= last, "{last} cuts were done, now {done}");
        (last, total) = (done, all);
        done == 0
    };
    let error = run(&factory, &campaign, &mut on_progress).unwrap_err();
    assert!(matches!(error, crash::Error::Interrupted), "{error}");
    assert!(total > 1000, "{total} cuts");
    assert!((1..total / 2).contains(&last), "{last} of {total} cuts");
}

#[test]
fn campaign_out_of_range_is_refused() {
    let Campaigns(factory) = campaigns(Executor::Cpu);
    let wrong = |campaign: Campaign, what: &str| {
        let error = run(&factory, &campaign, &mut |_, _| true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(what) && error.lines().count() == 1,
            "{error}"
        );
    };
    let own = || btree(Mechanism::Undo, Executor::Cpu, "sampled:2");
    wrong(
        Campaign {
            transactions: 0,
            ..own()
        },
        "transactions = 0: allowed are",
    );
    wrong(Campaign { jobs: 0, ..own() }, "jobs = 0: allowed are");
    wrong(
        Campaign {
            executor: Executor::Device,
            ..own()
        },
        "no crash-consistency engine",
    );
    wrong(
        Campaign {
            workload: "x".into(),
            ..own()
        },
        "allowed are btree",
    );
    wrong(
        Campaign {
            devices: 3,
            ..own()
        },
        "devices = 3: allowed are 1, 2 and 4",
    );
    wrong(
        Campaign {
            fault: Some(InjectedFault::Peers),
            ..own()
        },
        "for engines of several devices",
    );
    for (later, devices, fault, what) in [
        (0, 1, None, "later = 0: allowed are 1 to 1000"),
        (2, 2, None, "devices = 2: allowed is 1 with `later`"),
        (1, 1, Some(InjectedFault::Durability), "later = 2 and more"),
    ] {
        wrong(
            Campaign {
                later: Some(later),
                devices,
                fault,
                ..own()
            },
            what,
        );
    }
    wrong(
        btree(Mechanism::Undo, Executor::Cpu, "at:5"),
        "its transactions from",
    );
    wrong(
        btree(Mechanism::Undo, Executor::Cpu, "commands"),
        "by = \"device\" has them",
    );
    // The transaction only reads, so there are no cuts: that is an error.
    let Campaigns(factory) = campaigns(Executor::Device);
    let reads = Campaign {
        workload: "tatp".into(),
        transactions: 1,
        ..btree(Mechanism::Undo, Executor::Device, "commands")
    };
    let error = run(&factory, &reads, &mut |_, _| true).unwrap_err();
    assert!(
        matches!(error, crash::Error::NoCuts("gives no command to an engine")),
        "{error}"
    );
}

/// Transactions that become durable later: a cut leaves what was durable, or any later prefix.
#[test]
#[ignore = "takes seconds"]
fn later_transactions_leave_a_prefix() {
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    for later in [1, 4, 16] {
        for (executor, mechanism) in cases() {
            let campaign = Campaign {
                later: Some(later),
                transactions: 24,
                ..btree(mechanism, executor, extent("sampled:12", "sampled:40"))
            };
            rigs[executor as usize].holds(&campaign);
        }
    }
}

/// A transaction that is acknowledged before its proof is lost by some cut.
#[test]
#[ignore = "takes seconds"]
fn later_without_durability_finds_violations() {
    let rigs = [campaigns(Executor::Cpu), campaigns(Executor::Device)];
    for (executor, mechanism) in cases() {
        let control = Campaign {
            later: Some(8),
            transactions: 24,
            fault: Some(InjectedFault::Durability),
            ..btree(mechanism, executor, extent("sampled:20", "sampled:60"))
        };
        let report = rigs[executor as usize].run(&control);
        println!(
            "{mechanism:?} by {executor}: {} of {}",
            report.violated, report.cuts
        );
        assert!(report.violated > 0, "{control:?}: {report:?}");
    }
}

/// A word that is ahead by a transaction acknowledges one that some cut loses: while its commit is
/// on the way to the device.
#[test]
#[ignore = "takes seconds"]
fn later_with_early_words_finds_violations() {
    let rig = campaigns(Executor::Device);
    let campaign = Campaign {
        later: Some(8),
        words: true,
        transactions: 24,
        ..btree(Mechanism::Undo, Executor::Device, "sampled:300")
    };
    rig.holds(&campaign);
    let report = rig.run(&Campaign {
        fault: Some(InjectedFault::ProgressWords),
        ..campaign
    });
    println!("{} of 300", report.violated);
    assert!(report.violated > 0, "{report:?}");
}
