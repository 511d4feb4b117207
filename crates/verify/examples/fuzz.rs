// SPDX-License-Identifier: Apache-2.0

//! Runs the fuzzer on the fast model, or on the model that `NEARSIDE_MODEL` names:
//! `fuzz DESIGN COMMANDS SEED [REPLAY [LINES]]`. `VALUES` override keys of the design. `CALM` makes
//! it a soak, and `KINDS` prints counts.

#[path = "../tests/common/mod.rs"]
mod common;

use device::{Model, RtlOptions};
use verify::campaign::Campaign;
use verify::oracle::{self, Target};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: &str| args.get(n).cloned().unwrap_or(default.into());
    let design = common::design(&arg(1, "fuzz"))?;
    let replay = args.get(4).map(|r| r.parse()).transpose()?;
    let campaign = Campaign {
        seed: arg(3, "1").parse().map_err(|_| "seed")?,
        amount: arg(2, "1000").parse().map_err(|_| "commands")?,
        first_episode: 0,
        per_episode: 2000,
        shrinks: if replay.is_some() { 0 } else { 40 },
        replay,
    };
    let target = Target {
        valid_only: std::env::var("CALM").is_ok(),
        media_bytes: design.media.bytes.0,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks: false,
    };
    let model = Model::named(Model::Fast).map_err(|e| e.to_string())?;
    let mut devices = common::Devices::new(&design, model, &RtlOptions::default());
    let start = std::time::Instant::now();
    let mut make = |conditions: &_| devices.make(conditions);
    let report = oracle::run(&mut make, &target, &campaign, &mut |_, _| true)?;
    common::print_counts([&report.kinds, &report.outcomes]);
    println!("{} commands in {:?}", report.commands, start.elapsed());
    common::print_failure(report.failure, arg(5, "6").parse().unwrap_or(6))
}
