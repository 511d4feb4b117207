// SPDX-License-Identifier: Apache-2.0

//! Commands of the engine `nearpm`, on the fast model, or on the model that `NEARSIDE_MODEL` names.

use std::path::Path;

use design::Design;
use device::{Factory, FaultInjection, Model, RtlOptions};
use fuzz::{Campaign, Conditions, Report};
use sim::memctrl::MemoryModel;
use sim::{Device, Media};

fn from_env(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

fn run(amount: u64, fault: Option<FaultInjection>) -> Report {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = Design::find(&root, "nearpm").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let options = RtlOptions::default();
    let mut factory = Factory::new(&design, model, &options, &mut |_| true).unwrap();
    let bytes = design.media.bytes.0;
    let own = design.dram.clone();
    let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
        factory.set_memory(match conditions.late_memory {
            Some(most) => MemoryModel::Random {
                max: most,
                seed: conditions.seed,
            },
            None => MemoryModel::Ddr4(own.clone()),
        });
        let media = Media::memory(bytes).map_err(|e| e.to_string())?;
        factory
            .device_with_fault(media, fault)
            .map_err(|e| e.to_string())
    };
    let engines = design.engines(&root).unwrap();
    let campaign = Campaign {
        seed: from_env("FUZZ_SEED", 1),
        amount,
        per_episode: 500,
        first_episode: from_env("FUZZ_EPISODE", 0) as u32,
        valid_only: false,
        shrinks: 40,
        media_bytes: bytes,
        unclaimed_bytes: 0,
        torn_blocks: false,
        nearpm: engines[0].page,
        replay: std::env::var("FUZZ_REPLAY")
            .ok()
            .map(|r| r.parse().unwrap()),
    };
    fuzz::run(&mut make, &campaign, &mut |_, _| true).unwrap()
}

mod sampled {
    use device::Model;

    /// Every kind of refusal and of operation occurs, and each command ends as the model expects.
    #[test]
    fn nearpm_commands_match_the_reference_model_and_loads_see_earlier_ones() {
        let fast = matches!(Model::named(Model::Fast), Ok(Model::Fast));
        let amount = super::from_env("FUZZ_COMMANDS", if fast { 3000 } else { 300 });
        let report = super::run(amount, None);
        if let Some(failure) = &report.failure {
            panic!(
                "{}\nreplay {}\n{}",
                failure.what,
                failure.replay,
                failure.history.join("\n")
            );
        }
        if amount < 3000 {
            return;
        }
        let drawn = |what: &str| report.outcomes.keys().any(|key| key.contains(what));
        for what in [
            "Unmapped",
            "WrongProcess",
            "OutOfPool",
            "LogFull",
            "Busy",
            "unknown Invalid",
        ] {
            assert!(drawn(what), "{what}");
        }
        for what in [
            "Undo",
            "Redo",
            "Checkpoint",
            "Copy",
            "Switch",
            "Apply",
            "Abort",
            "Recover",
            "Commit",
        ] {
            assert!(drawn(&format!("{what} ok")), "{what}");
        }
        assert!(report.power_cuts > 5 && report.function_resets > 5);
    }
}

/// Each fault injection is detected.
#[test]
fn nearpm_conflict_filter_that_passes_everything_is_found() {
    if !matches!(Model::named(Model::Fast), Ok(Model::Fast)) {
        return;
    }
    for fault in [
        FaultInjection::ConflictFilter,
        FaultInjection::CommandOrder,
        FaultInjection::PersistenceDomain,
    ] {
        let report = run(3000, Some(fault));
        assert_eq!(report.mismatches, 1, "{fault:?}");
        let failure = report.failure.unwrap();
        assert!(failure.steps < 20, "{fault:?}: {failure:?}");
    }
}
