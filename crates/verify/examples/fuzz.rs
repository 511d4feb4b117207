// SPDX-License-Identifier: Apache-2.0

//! Runs the fuzzer on the fast model: `fuzz DESIGN COMMANDS SEED [REPLAY]`.

use device::{Factory, Model, RtlOptions};
use sim::memctrl::MemoryModel;
use sim::{Device, Media};
use verify::campaign::{Campaign, Conditions};
use verify::oracle::{self, Target};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: &str| args.get(n).cloned().unwrap_or(default.into());
    let design = design::Design::find(&arg(1, "fuzz")).map_err(|e| e.to_string())?;
    let design = match std::env::var("VALUES") {
        Ok(values) => design.with_values(&values).map_err(|e| e.to_string())?,
        Err(_) => design,
    };
    let factory = Factory::new(&design, Model::Fast, &RtlOptions::default(), &mut |_| true);
    let mut factory = factory.map_err(|e| e.to_string())?;
    let bytes = design.media.bytes.0;
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
        media_bytes: bytes,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks: false,
    };
    let memory = MemoryModel::Ddr4(design.dram.clone());
    let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
        factory.set_memory(conditions.memory(&memory));
        let media = Media::memory(bytes).map_err(|e| e.to_string())?;
        factory.device(media).map_err(|e| e.to_string())
    };
    let start = std::time::Instant::now();
    let report = oracle::run(&mut make, &target, &campaign, &mut |_, _| true)?;
    match &report.failure {
        None => println!("no mismatch"),
        Some(failure) => {
            failure
                .history
                .iter()
                .rev()
                .take(arg(5, "6").parse().unwrap_or(6))
                .rev()
                .for_each(|line| println!("{line}"));
            println!("{}\n{}", failure.what, failure.replay);
        }
    }
    println!("{:?}", start.elapsed());
    match report.failure {
        None => Ok(()),
        Some(failure) => Err(format!("replay {}", failure.replay)),
    }
}
