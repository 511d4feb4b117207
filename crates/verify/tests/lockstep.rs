// SPDX-License-Identifier: Apache-2.0

//! Lockstep of the RTL model and the fast model, and of two fast models with different host timing.

mod common;

use design::Design;
use device::Model;
use verify::campaign::{Campaign, Conditions};
use verify::lockstep::{self, DevicePair, Report, Shape};

use common::{check, extent, from_env, lockstep_options, Devices};

fn design() -> Design {
    Design::find("fuzz").unwrap()
}

fn campaign(commands: u64) -> Campaign {
    common::campaign("DIFF", commands, 500, 20)
}

fn run(models: [Model; 2], campaign: &Campaign) -> Report {
    run_of(&design(), models, campaign)
}

fn run_of(design: &Design, models: [Model; 2], campaign: &Campaign) -> Report {
    let names = models.map(Model::name);
    compare(models.map(|model| (design.clone(), model)), names, campaign)
}

fn compare(of: [(Design, Model); 2], names: [&'static str; 2], campaign: &Campaign) -> Report {
    let shape = Shape::of(&of[0].0).unwrap();
    let mut devices = of.map(|(design, model)| Devices::new(&design, model, &lockstep_options()));
    let mut make = |conditions: &Conditions| -> Result<DevicePair, String> {
        let [left, right] = &mut devices;
        Ok([
            (names[0], left.make(conditions)?),
            (names[1], right.make(conditions)?),
        ])
    };
    lockstep::run(&mut make, &shape, campaign, &mut |_, _| true).unwrap()
}

#[test]
#[ignore = "long: builds a separate device"]
fn fast_model_matches_the_rtl() {
    let commands = from_env("DIFF_COMMANDS", extent(1200, 2000));
    let campaign = campaign(commands);
    let report = run([Model::Rtl, Model::Fast], &campaign);
    check(&report.failure);
    assert!(campaign.replay.is_some() || report.commands >= commands);
}

#[test]
#[ignore = "takes seconds"]
fn comparison_does_not_depend_on_time() {
    let report = run([Model::Fast; 2], &campaign(extent(5_000, 10_000)));
    check(&report.failure);
    for kind in [
        "bursts",
        "bursts cut off",
        "fused pairs and halves",
        "reset: power",
        "jobs in registers",
        "jobs in pages",
    ] {
        assert!(
            report.kinds.contains_key(kind),
            "{kind}: {:?}",
            report.kinds
        );
    }
}

fn tables() -> Design {
    Design::find("fuzz-sort").unwrap()
}

#[test]
#[ignore = "takes seconds"]
fn table_engines_do_not_depend_on_time() {
    let report = run_of(
        &tables(),
        [Model::Fast; 2],
        &campaign(extent(5_000, 10_000)),
    );
    check(&report.failure);
    for kind in ["jobs in pages", "lists of commands"] {
        assert!(report.kinds.contains_key(kind), "{:?}", report.kinds);
    }
    assert!(
        report.outcomes.keys().any(|name| name == "io dc ok"),
        "{:?}",
        report.outcomes
    );
}

#[test]
fn seed_reproduces_the_run() {
    let text = || format!("{:?}", run([Model::Fast; 2], &campaign(1000)));
    assert_eq!(text(), text());
}

#[test]
fn designs_that_cannot_be_compared_are_refused() {
    let large = design().with_values("media.bytes = '128 MiB'").unwrap();
    let error = Shape::of(&large).unwrap_err();
    assert!(error.starts_with("media.bytes = 134217728: "), "{error}");
}

/// A device with a changed word in its list of blocks.
#[test]
#[ignore = "takes seconds"]
fn difference_is_found_and_shrunk() {
    let other = design().with_values("clock_mhz = 299").unwrap();
    let of = || [(design(), Model::Fast), (other.clone(), Model::Fast)];
    let campaign = Campaign {
        shrinks: 100,
        ..campaign(extent(5_000, 10_000))
    };
    let report = compare(of(), ["one", "other"], &campaign);
    let failure = report.failure.unwrap();
    assert_eq!(report.mismatches, 1);
    assert_eq!(failure.steps, 1, "{failure:?}");
    assert!(failure.what.contains("list of blocks"), "{failure:?}");
    let replay = Campaign {
        replay: Some(failure.replay.parse().unwrap()),
        shrinks: 0,
        ..campaign
    };
    let again = compare(of(), ["one", "other"], &replay);
    assert_eq!(again.failure.unwrap().what, failure.what);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "builds a separate device"]
    fn table_engines_match_the_rtl() {
        let campaign = campaign(from_env("DIFF_COMMANDS", 500));
        check(&run_of(&tables(), [Model::Rtl, Model::Fast], &campaign).failure);
    }
}
