// SPDX-License-Identifier: Apache-2.0

//! Runs a campaign. Arguments: WORKLOAD MECHANISM BY MODEL CUTS TRANSACTIONS SEED `[WITHOUT|-
//! [DEVICES [devices|host [tracked]]]]`.

use std::time::Instant;

use crash::{run, Campaign};
use design::Design;
use device::{Factory, RtlOptions};
use pm::{Mechanism, Synchronisation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |n: usize| args.get(n).map(String::as_str).unwrap_or_default();
    let executor = arg(2).parse()?;
    let name = if executor == crash::Executor::Cpu {
        "default"
    } else {
        "nearpm"
    };
    let design = Design::find(name)?.with_values("[cpu]\nprofile = \"nearpm\"\n")?;
    let factory = Factory::new(
        &design,
        arg(3).parse()?,
        &RtlOptions::default(),
        &mut |_| true,
    )?;
    let mechanism = Mechanism::ALL
        .into_iter()
        .find(|m| format!("{m:?}").to_lowercase() == arg(1));
    let campaign = Campaign {
        workload: arg(0).into(),
        mechanism: mechanism.ok_or("no such mechanism")?,
        tracked: arg(10) == "tracked",
        executor,
        cuts: arg(4).parse()?,
        transactions: arg(5).parse()?,
        seed: arg(6).parse()?,
        devices: match arg(8) {
            "" => 1,
            count => count.parse()?,
        },
        synchronise: match arg(9) {
            "" => Synchronisation::default(),
            name => name.parse()?,
        },
        later: None,
        words: false,
        fault: Some(arg(7))
            .filter(|t| !matches!(*t, "" | "-"))
            .map(str::parse)
            .transpose()?,
        jobs: 2,
    };
    let start = Instant::now();
    let report = run(&factory, &campaign, &mut |_, _| true)?;
    println!("{:#}", report.json());
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
