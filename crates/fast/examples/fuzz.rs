// SPDX-License-Identifier: Apache-2.0

//! Runs the fuzzer on the fast model: `fuzz DESIGN COMMANDS SEED [REPLAY]`.

use std::path::Path;

use fast::{Config, FastDevice};
use fuzz::{Campaign, Conditions};
use sim::{Device, Media};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: &str| args.get(n).cloned().unwrap_or(default.into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = design::Design::find(&root, &arg(1, "fuzz")).map_err(|e| e.to_string())?;
    let design = match std::env::var("VALUES") {
        Ok(values) => design.with_values(&values).map_err(|e| e.to_string())?,
        Err(_) => design,
    };
    let config = Config::of(&design, &root).map_err(|e| e.to_string())?;
    let bytes = design.media.bytes.0;
    let replay = args.get(4).map(|r| r.parse()).transpose()?;
    let campaign = Campaign {
        seed: arg(3, "1").parse().map_err(|_| "seed")?,
        amount: arg(2, "1000").parse().map_err(|_| "commands")?,
        valid_only: std::env::var("CALM").is_ok(),
        media_bytes: bytes,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks: false,
        nearpm: None,
        first_episode: 0,
        per_episode: 2000,
        shrinks: if replay.is_some() { 0 } else { 40 },
        replay,
    };
    let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
        let media = Media::memory(bytes).map_err(|e| e.to_string())?;
        let mut config = config.clone();
        if let Some(most) = conditions.late_memory {
            let seed = conditions.seed;
            config.storage.dram = sim::memctrl::MemoryModel::Random { max: most, seed };
        }
        let device = FastDevice::new(config, media).map_err(|e| e.to_string())?;
        Ok(Box::new(device))
    };
    let start = std::time::Instant::now();
    let report = fuzz::run(&mut make, &campaign, &mut |_, _| true).map_err(|e| e.to_string())?;
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
