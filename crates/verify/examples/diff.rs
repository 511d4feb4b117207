// SPDX-License-Identifier: Apache-2.0

//! Compares RTL model and fast model: `diff COMMANDS SEED [REPLAY]`. `LEFT=fast` compares the fast
//! model with itself. `DESIGN` names another design than `fuzz`; `VALUES` override its keys.
//! `SECONDS` limits the wall-clock time.

#[path = "../tests/common/mod.rs"]
mod common;

use device::Model;
use verify::campaign::{Campaign, Conditions};
use verify::lockstep::{self, DevicePair, Shape};

use common::{from_env, Devices};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: &str| args.get(n).cloned().unwrap_or(default.into());
    let name = std::env::var("DESIGN").unwrap_or("fuzz".into());
    let design = common::design(&name)?;
    let left = std::env::var("LEFT").unwrap_or("rtl".into());
    let left: Model = left.parse().map_err(|e: device::Error| e.to_string())?;
    let campaign = Campaign {
        seed: arg(2, "1").parse().map_err(|_| "seed")?,
        amount: arg(1, "1000").parse().map_err(|_| "commands")?,
        per_episode: from_env("PER_EPISODE", 2000),
        first_episode: from_env("FIRST", 0) as u32,
        shrinks: from_env("SHRINKS", 60) as u32,
        replay: args.get(3).map(|r| r.parse()).transpose()?,
    };
    let options = common::lockstep_options();
    let mut devices = [left, Model::Fast].map(|model| Devices::new(&design, model, &options));
    let mut make = |conditions: &Conditions| -> Result<DevicePair, String> {
        let [one, other] = &mut devices;
        Ok([
            (left.name(), one.make(conditions)?),
            (Model::Fast.name(), other.make(conditions)?),
        ])
    };
    let start = std::time::Instant::now();
    let shape = Shape::of(&design)?;
    let limit = std::time::Duration::from_secs(from_env("SECONDS", u64::MAX));
    let mut keep_running = |_, _| start.elapsed() < limit;
    let report = lockstep::run(&mut make, &shape, &campaign, &mut keep_running)?;
    common::print_counts([&report.kinds, &report.outcomes]);
    if std::env::var("KINDS").is_ok() {
        for (kind, latency) in &report.latencies {
            let [a, b] = latency.ns.map(|ns| ns / latency.count as f64);
            println!("  {kind}: {} took {a:.1} and {b:.1} ns", latency.count);
        }
    }
    println!(
        "{} commands, {} steps, {} episodes, {} bytes of media in {:?}",
        report.commands,
        report.steps,
        report.episodes,
        report.compared_bytes,
        start.elapsed()
    );
    common::print_failure(report.failure, from_env("HISTORY", 12) as usize)
}
