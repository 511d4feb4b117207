// SPDX-License-Identifier: Apache-2.0

//! Campaigns against the RTL model of the controller.

use std::sync::{Arc, OnceLock};

use design::Design;
use fuzz::{Campaign, Conditions, Replay, Report};
use rtl::bitstream::{stderr_progress, Bitstream};
use rtl::{DeviceConfig, InitialValues, MemoryModel, PowerUpRegisters, RtlDevice};
use sim::{Device, Media};

fn design() -> Design {
    Design::find("fuzz").unwrap()
}

/// The device of `designs/fuzz.toml`, from one bitstream. Its initial register values differ in
/// each episode.
fn device(conditions: &Conditions) -> Result<Box<dyn Device + Send>, String> {
    device_holding(conditions, None)
}

/// The same device with these initial register values, if given.
fn device_holding(
    conditions: &Conditions,
    registers: Option<InitialValues>,
) -> Result<Box<dyn Device + Send>, String> {
    static BUILT: OnceLock<(DeviceConfig, u64, Arc<Bitstream>)> = OnceLock::new();
    let (config, bytes, bitstream) = BUILT.get_or_init(|| {
        let design = design();
        let config = DeviceConfig {
            hang_cycles: 1_000_000,
            ..DeviceConfig::from_design(&design).unwrap()
        };
        let path = config
            .compile(design.media.bytes.0, &mut stderr_progress("fuzz"))
            .unwrap();
        (
            config,
            design.media.bytes.0,
            Bitstream::open(&path).unwrap(),
        )
    });
    let media = Media::memory(*bytes).map_err(|e| e.to_string())?;
    let mut config = config.clone();
    match (registers, config.registers) {
        (Some(contents), _) => config.registers = PowerUpRegisters::Always(contents),
        (None, PowerUpRegisters::Each(_)) => {
            config.registers = PowerUpRegisters::Each(conditions.seed)
        }
        (None, PowerUpRegisters::Always(_)) => {}
    }
    if let Some(most) = conditions.late_memory {
        let seed = conditions.seed;
        config.memory = MemoryModel::Random { max: most, seed };
    }
    let device = RtlDevice::new(bitstream.clone(), config, media).map_err(|e| e.to_string())?;
    Ok(Box::new(device))
}

fn campaign(seed: u64, amount: u64, valid_only: bool, replay: Option<Replay>) -> Report {
    campaign_from(0, seed, amount, valid_only, replay)
}

fn whole_campaign(
    first_episode: u32,
    seed: u64,
    amount: u64,
    valid_only: bool,
    replay: Option<Replay>,
) -> Campaign {
    Campaign {
        seed,
        amount,
        per_episode: if valid_only { 64 << 20 } else { 2000 },
        first_episode,
        media_bytes: design().media.bytes.0,
        unclaimed_bytes: design().nvme.unclaimed_bytes(design().media.bytes),
        torn_blocks: from_env("FUZZ_TORN", 0) != 0,
        nearpm: None,
        valid_only,
        shrinks: from_env("FUZZ_SHRINKS", 12) as u32,
        replay,
    }
}

fn campaign_from(
    first_episode: u32,
    seed: u64,
    amount: u64,
    valid_only: bool,
    replay: Option<Replay>,
) -> Report {
    let campaign = whole_campaign(first_episode, seed, amount, valid_only, replay);
    let start = std::time::Instant::now();
    let report = fuzz::run(&mut device, &campaign, &mut |_, _| true).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{} commands in {seconds:.1} s", report.commands);
    for (kind, count) in report.kinds.iter().chain(&report.outcomes) {
        eprintln!("  {kind}: {count}");
    }
    report
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
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
fn controller_matches_the_reference_model() {
    let replay = std::env::var("FUZZ_REPLAY").ok();
    let whole = replay.is_none();
    let replay = replay.map(|r| r.parse().unwrap());
    let commands = from_env("FUZZ_COMMANDS", 3000);
    let report = campaign(from_env("FUZZ_SEED", 1), commands, false, replay);
    check(&report);
    assert!(!whole || report.commands >= commands, "{}", report.commands);
}

/// The report of a campaign, including the simulated time, does not depend on the values of
/// registers at power-on.
#[test]
#[ignore = "long: builds a separate device"]
fn power_on_register_values_have_no_effect() {
    let campaign = Campaign {
        per_episode: 50,
        ..whole_campaign(0, 6, 300, false, None)
    };
    let run = |contents| {
        let mut device = |conditions: &Conditions| device_holding(conditions, Some(contents));
        let report = fuzz::run(&mut device, &campaign, &mut |_, _| true).unwrap();
        check(&report);
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

#[test]
#[ignore = "long: builds a separate device"]
fn two_devices_match_the_reference_model() {
    let commands = from_env("FUZZ_COMMANDS", 1000).min(2000);
    let report = campaign_from(PAIR, from_env("FUZZ_SEED", 1), commands, false, None);
    check(&report);
    assert!(report.commands >= commands, "{}", report.commands);
    for kind in ["to", "from"] {
        let kind = format!("commands with data {kind} another device");
        assert!(report.kinds.contains_key(&kind), "{:?}", report.kinds);
    }
}

#[test]
#[ignore = "long: builds a separate device"]
fn device_whose_namespaces_take_all_of_its_media_is_alone() {
    let campaign = Campaign {
        unclaimed_bytes: fuzz::WINDOW_BYTES - 1,
        ..whole_campaign(PAIR, 1, 20, false, None)
    };
    let report = fuzz::run(&mut device, &campaign, &mut |_, _| true).unwrap();
    check(&report);
    let kinds = &report.kinds;
    assert!(
        !kinds.contains_key("episodes with two devices"),
        "{kinds:?}"
    );
}

#[test]
#[ignore = "long: builds a separate device"]
fn soak_finds_every_byte_right() {
    let bytes = from_env("SOAK_BYTES", 8 << 20);
    let report = campaign(from_env("FUZZ_SEED", 1), bytes, true, None);
    check(&report);
    assert!(
        report.moved_bytes >= bytes && report.dropped == 0,
        "{report:?}"
    );
}

#[test]
#[ignore = "long: builds a separate device"]
fn seed_reproduces_the_run() {
    for first in [0, PAIR] {
        let text = || format!("{:?}", campaign_from(first, 5, 100, false, None));
        assert_eq!(text(), text());
    }
}
