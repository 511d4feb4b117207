// SPDX-License-Identifier: Apache-2.0

//! Campaigns against the RTL model of the controller.

mod common;

use design::Design;
use device::{Model, RtlOptions};
use rtl::{InitialValues, PowerUpRegisters};
use verify::campaign::Campaign;
use verify::oracle::{self, Report, Target};

use common::{check, extent, from_env, Devices};

fn design() -> Design {
    Design::find("fuzz").unwrap()
}

fn target(valid_only: bool) -> Target {
    let design = design();
    Target {
        valid_only,
        media_bytes: design.media.bytes.0,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks: from_env("FUZZ_TORN", 0) != 0,
    }
}

fn campaign(amount: u64) -> Campaign {
    common::campaign("FUZZ", amount, 2000, 12)
}

/// The report of a campaign without a mismatch.
fn run(target: &Target, campaign: &Campaign) -> Report {
    run_with(None, target, campaign)
}

/// The same with these register values at power-on. Otherwise they differ in each episode.
fn run_with(values: Option<InitialValues>, target: &Target, campaign: &Campaign) -> Report {
    let options = RtlOptions {
        hang_cycles: Some(1_000_000),
        registers: values.map(PowerUpRegisters::Always),
        ..RtlOptions::default()
    };
    let mut devices = Devices::new(&design(), Model::Rtl, &options);
    let start = std::time::Instant::now();
    let mut make = |conditions: &_| devices.make(conditions);
    let report = oracle::run(&mut make, target, campaign, &mut |_, _| true).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{} commands in {seconds:.1} s", report.commands);
    for (kind, count) in report.kinds.iter().chain(&report.outcomes) {
        eprintln!("  {kind}: {count}");
    }
    check(&report.failure);
    report
}

#[test]
#[ignore = "long: builds a separate device"]
fn controller_matches_the_reference_model() {
    let commands = from_env("FUZZ_COMMANDS", extent(1500, 3000));
    let campaign = campaign(commands);
    let report = run(&target(false), &campaign);
    assert!(
        campaign.replay.is_some() || report.commands >= commands,
        "{}",
        report.commands
    );
}

/// The report of a campaign, including the simulated time, does not depend on the values of
/// registers at power-on.
#[test]
#[ignore = "long: builds a separate device"]
fn power_on_register_values_have_no_effect() {
    let campaign = Campaign {
        seed: 6,
        per_episode: 50,
        ..campaign(extent(150, 300))
    };
    let run = |values| {
        let report = run_with(Some(values), &target(false), &campaign);
        assert!(report.power_cuts > 0, "{report:?}");
        format!("{report:#?}")
    };
    let zeros = run(InitialValues::Zeros);
    for contents in [InitialValues::Ones, InitialValues::Random(1)] {
        assert_eq!(zeros, run(contents), "{contents:?} beside zeros");
    }
}

/// An episode of two devices that access each other's media, connected to one host by links.
const PAIR: u32 = 1;

fn pair_campaign(amount: u64) -> Campaign {
    Campaign {
        first_episode: PAIR,
        ..campaign(amount)
    }
}

#[test]
#[ignore = "long: builds a separate device"]
fn two_devices_match_the_reference_model() {
    let commands = from_env("FUZZ_COMMANDS", extent(500, 1000)).min(2000);
    let report = run(&target(false), &pair_campaign(commands));
    assert!(report.commands >= commands, "{}", report.commands);
    for kind in ["to", "from"] {
        let kind = format!("commands with data {kind} another device");
        assert!(report.kinds.contains_key(&kind), "{:?}", report.kinds);
    }
}

#[test]
#[ignore = "long: builds a separate device"]
fn device_whose_namespaces_take_all_of_its_media_is_alone() {
    let target = Target {
        unclaimed_bytes: oracle::WINDOW_BYTES - 1,
        ..target(false)
    };
    let kinds = run(&target, &pair_campaign(20)).kinds;
    assert!(
        !kinds.contains_key("episodes with two devices"),
        "{kinds:?}"
    );
}

#[test]
#[ignore = "long: builds a separate device"]
fn soak_finds_every_byte_right() {
    let bytes = from_env("SOAK_BYTES", extent(2 << 20, 8 << 20));
    let campaign = Campaign {
        per_episode: 64 << 20,
        ..campaign(bytes)
    };
    let report = run(&target(true), &campaign);
    assert!(
        report.moved_bytes >= bytes && report.dropped == 0,
        "{report:?}"
    );
}

#[test]
#[ignore = "long: builds a separate device"]
fn seed_reproduces_the_run() {
    for first_episode in [0, PAIR] {
        let campaign = Campaign {
            seed: 5,
            first_episode,
            ..campaign(extent(40, 100))
        };
        let text = || format!("{:?}", run(&target(false), &campaign));
        assert_eq!(text(), text());
    }
}
