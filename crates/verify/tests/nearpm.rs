// SPDX-License-Identifier: Apache-2.0

//! Commands of the engine `nearpm`, on the fast model, or on the model that `NEARSIDE_MODEL` names.

mod common;

use design::Design;
use device::{FaultInjection, Model, RtlOptions};
use verify::nearpm;
use verify::oracle::Report;

fn run(amount: u64, fault: Option<FaultInjection>) -> Report {
    let design = Design::find("nearpm").unwrap();
    let page = design.engines().unwrap()[0].page.unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let mut devices = common::Devices::new(&design, model, &RtlOptions::default());
    devices.fault = fault;
    let campaign = common::campaign("FUZZ", amount, 500, 40);
    let mut make = |conditions: &_| devices.make(conditions);
    let bytes = design.media.bytes.0;
    nearpm::run(&mut make, bytes, page, &campaign, &mut |_, _| true).unwrap()
}

mod sampled {
    use device::Model;

    /// Every kind of refusal and of operation occurs, and each command ends as the model expects.
    #[test]
    fn nearpm_commands_match_the_reference_model_and_loads_see_earlier_ones() {
        let fast = matches!(Model::named(Model::Fast), Ok(Model::Fast));
        let amount = crate::common::from_env("FUZZ_COMMANDS", if fast { 3000 } else { 300 });
        let report = super::run(amount, None);
        crate::common::check(&report.failure);
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
