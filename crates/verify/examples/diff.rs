// SPDX-License-Identifier: Apache-2.0

//! Compares RTL model and fast model: `diff COMMANDS SEED [REPLAY]`. `LEFT=fast` compares the fast
//! model with itself. `DESIGN` names another design than `fuzz`; `VALUES` override its keys.
//! `SECONDS` limits the wall-clock time.

use device::{Factory, Model, RtlOptions};
use sim::memctrl::MemoryModel;
use sim::Media;
use verify::campaign::{Campaign, Conditions};
use verify::lockstep::{self, Shape};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: &str| args.get(n).cloned().unwrap_or(default.into());
    let name = std::env::var("DESIGN").unwrap_or("fuzz".into());
    let design = design::Design::find(&name).map_err(|e| e.to_string())?;
    let values = std::env::var("VALUES").unwrap_or_default();
    let design = design.with_values(&values).map_err(|e| e.to_string())?;
    let left: Model = std::env::var("LEFT")
        .unwrap_or("rtl".into())
        .parse()
        .map_err(|e: device::Error| e.to_string())?;
    let replay = args.get(3).map(|r| r.parse()).transpose()?;
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    let campaign = Campaign {
        seed: arg(2, "1").parse().map_err(|_| "seed")?,
        amount: arg(1, "1000").parse().map_err(|_| "commands")?,
        per_episode: number("PER_EPISODE", 2000),
        first_episode: number("FIRST", 0) as u32,
        shrinks: number("SHRINKS", 60) as u32,
        replay,
    };
    let options = RtlOptions {
        hang_cycles: Some(200_000),
        // Hosts occasionally never answer.
        link_patience: Some(sim::Time::MAX),
        ..RtlOptions::default()
    };
    let memory = MemoryModel::Ddr4(design.dram.clone());
    let mut factories = Vec::new();
    for model in [left, Model::Fast] {
        let made = Factory::new(&design, model, &options, &mut |_| true);
        factories.push(made.map_err(|e| e.to_string())?);
    }
    let mut make = |conditions: &Conditions| -> Result<lockstep::DevicePair, String> {
        let mut one = |n: usize| {
            let factory = &mut factories[n];
            factory.set_memory(conditions.memory(&memory));
            let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
            let device = factory.device(media).map_err(|e| e.to_string())?;
            Ok::<_, String>((factory.model().name(), device))
        };
        Ok([one(0)?, one(1)?])
    };
    let start = std::time::Instant::now();
    let shape = Shape::of(&design)?;
    let limit = std::time::Duration::from_secs(number("SECONDS", u64::MAX));
    let mut keep_running = |_, _| start.elapsed() < limit;
    let report = lockstep::run(&mut make, &shape, &campaign, &mut keep_running)?;
    if std::env::var("KINDS").is_ok() {
        report
            .kinds
            .iter()
            .chain(&report.outcomes)
            .for_each(|(kind, count)| println!("  {kind}: {count}"));
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
    if let Some(failure) = report.failure {
        let lines = number("HISTORY", 12) as usize;
        failure
            .history
            .iter()
            .rev()
            .take(lines)
            .rev()
            .for_each(|line| println!("{line}"));
        println!(
            "{}\n{} ({} of {} steps)",
            failure.what, failure.replay, failure.steps, failure.of_steps
        );
        std::process::exit(1);
    }
    Ok(())
}
