// SPDX-License-Identifier: Apache-2.0

//! What the tests and examples of campaigns share. Each of them uses a part.

#![allow(dead_code)]

use std::collections::BTreeMap;

use design::Design;
use device::{Factory, FaultInjection, Model, RtlOptions};
use rtl::bitstream::stderr_progress;
use sim::memctrl::MemoryModel;
use sim::{Device, Media};
use verify::campaign::{Campaign, Conditions, Failure};

/// Makes the devices of a campaign: of one design, on one model.
pub struct Devices {
    factory: Factory,
    memory: MemoryModel,
    bytes: u64,
    /// A fault of all devices.
    pub fault: Option<FaultInjection>,
}

impl Devices {
    /// Compiles the design for the RTL model, if it is not compiled yet.
    pub fn new(design: &Design, model: Model, options: &RtlOptions) -> Devices {
        Devices {
            factory: Factory::new(design, model, options, &mut stderr_progress("verify")).unwrap(),
            memory: MemoryModel::Ddr4(design.dram.clone()),
            bytes: design.media.bytes.0,
            fault: None,
        }
    }

    /// A device.
    pub fn make(&mut self, conditions: &Conditions) -> Result<Box<dyn Device + Send>, String> {
        self.factory.set_memory(conditions.memory(&self.memory));
        self.factory.vary_registers(conditions.seed);
        let media = Media::memory(self.bytes).map_err(|e| e.to_string())?;
        let device = self.factory.device_with(media, None, self.fault);
        device.map_err(|e| e.to_string())
    }
}

/// A design with the keys that `VALUES` overrides.
pub fn design(name: &str) -> Result<Design, String> {
    let design = Design::find(name).map_err(|e| e.to_string())?;
    let values = std::env::var("VALUES").unwrap_or_default();
    design.with_values(&values).map_err(|e| e.to_string())
}

/// Prints counts by name if `KINDS` is set.
pub fn print_counts(counts: [&BTreeMap<String, u64>; 2]) {
    if std::env::var("KINDS").is_ok() {
        for (name, count) in counts.into_iter().flatten() {
            println!("  {name}: {count}");
        }
    }
}

/// Prints a failure with the last lines of its history, and makes it an error.
pub fn print_failure(failure: Option<Failure>, lines: usize) -> Result<(), String> {
    let Some(failure) = failure else {
        println!("no failure");
        return Ok(());
    };
    let first = failure.history.len().saturating_sub(lines);
    println!("{}", failure.history[first..].join("\n"));
    println!("{}", failure.what);
    let (steps, of_steps) = (failure.steps, failure.of_steps);
    Err(format!(
        "replay {} ({steps} of {of_steps} steps)",
        failure.replay
    ))
}

/// Options of devices whose hosts occasionally never answer.
pub fn lockstep_options() -> RtlOptions {
    RtlOptions {
        hang_cycles: Some(200_000),
        link_patience: Some(sim::Time::MAX),
        ..RtlOptions::default()
    }
}

/// The extent of a test: a sample in `make test`, all of it in `make test-all`.
pub fn extent(sample: u64, all: u64) -> u64 {
    match from_env("NEARSIDE_LONG", 0) {
        0 => sample,
        _ => all,
    }
}

/// A number from the environment, or this one.
pub fn from_env(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A campaign of this amount. `PREFIX_SEED`, `_EPISODE`, `_SHRINKS` and `_REPLAY` of the
/// environment override its parameters.
pub fn campaign(prefix: &str, amount: u64, per_episode: u64, shrinks: u64) -> Campaign {
    let number = |name: &str, default| from_env(&format!("{prefix}_{name}"), default);
    let replay = std::env::var(format!("{prefix}_REPLAY")).ok();
    Campaign {
        seed: number("SEED", 1),
        amount,
        per_episode,
        first_episode: number("EPISODE", 0) as u32,
        shrinks: number("SHRINKS", shrinks) as u32,
        replay: replay.map(|r| r.parse().unwrap()),
    }
}

/// Panics with a failure.
pub fn check(failure: &Option<Failure>) {
    if let Some(failure) = failure {
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
