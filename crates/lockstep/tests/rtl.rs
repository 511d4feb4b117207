// SPDX-License-Identifier: Apache-2.0

//! Lockstep of the RTL model and the fast model, and of two fast models with different host timing.

use design::Design;
use device::{Factory, Model, RtlOptions};
use lockstep::{Campaign, Conditions, DevicePair, Report, Shape};
use rtl::bitstream::stderr_progress;
use sim::memctrl::MemoryModel;
use sim::Media;

fn design() -> Design {
    Design::find("fuzz").unwrap()
}

fn from_env(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn campaign(commands: u64) -> Campaign {
    Campaign {
        seed: from_env("DIFF_SEED", 1),
        commands,
        per_episode: 500,
        first_episode: 0,
        shrinks: from_env("DIFF_SHRINKS", 20) as u32,
        replay: std::env::var("DIFF_REPLAY")
            .ok()
            .map(|r| r.parse().unwrap()),
    }
}

fn run(models: [Model; 2], campaign: &Campaign) -> Report {
    run_of(&design(), models, campaign)
}

fn run_of(design: &Design, models: [Model; 2], campaign: &Campaign) -> Report {
    let options = RtlOptions {
        hang_cycles: Some(200_000),
        // Hosts occasionally never answer.
        link_patience: Some(sim::Time::MAX),
        ..RtlOptions::default()
    };
    let mut factories = models
        .map(|model| Factory::new(design, model, &options, &mut stderr_progress("diff")).unwrap());
    let mut make = |conditions: &Conditions| -> Result<DevicePair, String> {
        let mut one = |n: usize| {
            let memory = match conditions.late_memory {
                Some(most) => MemoryModel::Random {
                    max: most,
                    seed: conditions.seed,
                },
                None => MemoryModel::Ddr4(design.dram.clone()),
            };
            factories[n].set_memory(memory);
            let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
            let device = factories[n].device(media).map_err(|e| e.to_string())?;
            Ok::<_, String>((models[n].name(), device))
        };
        Ok([one(0)?, one(1)?])
    };
    let shape = Shape::of(design).unwrap();
    lockstep::run(&mut make, &shape, campaign, &mut |_, _| true).unwrap()
}

fn check(report: &Report) {
    if let Some(failure) = &report.failure {
        panic!(
            "{}\nreplay {} ({} of {} steps)\n{}",
            failure.what,
            failure.replay,
            failure.steps,
            failure.of_steps,
            failure.history.join("\n")
        );
    }
}

#[test]
#[ignore = "long: builds a separate device"]
fn fast_model_matches_the_rtl() {
    let commands = from_env("DIFF_COMMANDS", 2000);
    let campaign = campaign(commands);
    let report = run([Model::Rtl, Model::Fast], &campaign);
    check(&report);
    assert!(campaign.replay.is_some() || report.commands >= commands);
}

#[test]
#[ignore = "takes seconds"]
fn comparison_does_not_depend_on_time() {
    let report = run([Model::Fast; 2], &campaign(10_000));
    check(&report);
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
    let report = run_of(&tables(), [Model::Fast; 2], &campaign(10_000));
    check(&report);
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
    let design = design();
    let other = design.with_values("clock_mhz = 299").unwrap();
    let options = RtlOptions::default();
    let quiet = &mut |_| true;
    let factories = [
        Factory::new(&design, Model::Fast, &options, quiet).unwrap(),
        Factory::new(&other, Model::Fast, &options, quiet).unwrap(),
    ];
    let mut make = |_: &Conditions| -> Result<DevicePair, String> {
        let one = |n: usize| {
            let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
            let device = factories[n].device(media).map_err(|e| e.to_string())?;
            Ok::<_, String>((["one", "other"][n], device))
        };
        Ok([one(0)?, one(1)?])
    };
    let campaign = Campaign {
        shrinks: 100,
        ..campaign(10_000)
    };
    let shape = Shape::of(&design).unwrap();
    let report = lockstep::run(&mut make, &shape, &campaign, &mut |_, _| true).unwrap();
    let failure = report.failure.unwrap();
    assert_eq!(report.mismatches, 1);
    assert_eq!(failure.steps, 1, "{failure:?}");
    assert!(failure.what.contains("list of blocks"), "{failure:?}");
    let replay = Campaign {
        replay: Some(failure.replay.parse().unwrap()),
        shrinks: 0,
        ..campaign
    };
    let again = lockstep::run(&mut make, &shape, &replay, &mut |_, _| true).unwrap();
    assert_eq!(again.failure.unwrap().what, failure.what);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "builds a separate device"]
    fn table_engines_match_the_rtl() {
        let campaign = campaign(from_env("DIFF_COMMANDS", 500));
        check(&run_of(&tables(), [Model::Rtl, Model::Fast], &campaign));
    }
}
