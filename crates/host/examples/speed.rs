// SPDX-License-Identifier: Apache-2.0

//! CPU time of loads, stores and program switches: `cargo run --release -p nearside-host --example
//! speed`.

use std::time::Instant;

use design::Design;
use device::Model;
use host::{Cpu, Fence, Mapping, MemoryType, Program, SharedMachine};
use sim::Time;
use testbed::Testbed;

type Error = Box<dyn std::error::Error>;

fn shared() -> Result<SharedMachine, Error> {
    let design = Design::find("default")?.with_values("[media]\nbytes = \"64 MiB\"\n")?;
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n")?;
    let testbed = Testbed::builder(&design).model(Model::Fast).build()?;
    Ok(testbed.machine().clone())
}

fn tell(name: &str, count: u64, begin: Instant) {
    let each = begin.elapsed().as_secs_f64() / count as f64;
    println!("{name:<44} {:8.0} ns", each * 1e9);
}

fn main() -> Result<(), Error> {
    let pm = Mapping::pm(0, MemoryType::WriteBack);
    let wc = Mapping::pm(0, MemoryType::WriteCombining);
    const COUNT: u64 = 100_000;

    let cpu = shared()?.cpu(0);
    cpu.load(&pm, 0, &mut [0; 8])?;
    let begin = Instant::now();
    for _ in 0..COUNT {
        cpu.load(&pm, 0, &mut [0; 8])?;
    }
    tell("load, in the cache", COUNT, begin);
    let begin = Instant::now();
    for n in 0..COUNT {
        cpu.load(&pm, 64 * (1 + n), &mut [0; 64])?;
    }
    tell("load, missing, one at a time", COUNT, begin);
    let mut out = vec![0; 64 * COUNT as usize];
    let begin = Instant::now();
    cpu.read(&pm, 16 << 20, &mut out)?;
    tell("load, missing, twelve at a time", COUNT, begin);
    let begin = Instant::now();
    for n in 0..COUNT {
        cpu.store(&wc, (32 << 20) + 8 * n, &[1; 8])?;
    }
    tell("store of 8 bytes, write-combining", COUNT, begin);
    let begin = Instant::now();
    for n in 0..COUNT {
        let at = 64 * (n % 1000);
        cpu.store(&pm, at, &[1; 8])?;
        cpu.clwb(&pm, at)?;
        cpu.fence(Fence::ReadBack)?;
    }
    tell("store, clwb, fence with read-back", COUNT, begin);

    for (programs, slack) in [(1, 0), (2, 0), (4, 0), (8, 0), (4, 1000)] {
        let shared = shared()?;
        shared.set_slack(Time::ns(slack));
        let work = |cpu: &Cpu| -> host::Result<()> {
            for _ in 0..20_000 {
                cpu.compute(Time::ns(10))?;
                cpu.load(&pm, 0, &mut [0; 8])?;
            }
            Ok(())
        };
        let all = (0..programs).map(|n| (n, Box::new(work) as Program<'_, host::Result<()>>));
        let begin = Instant::now();
        for outcome in shared.run(all.collect())? {
            outcome?;
        }
        tell(
            &format!("load, in the cache, {programs} programs, slack {slack} ns"),
            20_000 * programs as u64,
            begin,
        );
    }
    Ok(())
}
