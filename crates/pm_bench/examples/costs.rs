// SPDX-License-Identifier: Apache-2.0

//! Measures the cost of copies and transactions on a design, by the CPU and offloaded: `costs
//! [DESIGN [fast|rtl [INSERTS [TOML]]]]`. All times are simulated.

use design::Design;
use device::{Factory, Model, RtlOptions};
use pm_bench::{Copies, CopyMethod, Transactions};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "nearpm-paper".into());
    let model: Model = arguments.next().as_deref().unwrap_or("fast").parse()?;
    let inserts: u64 = arguments.next().as_deref().unwrap_or("1000").parse()?;
    let values = arguments.next().unwrap_or_default();
    let design = Design::find(&name)?.with_values(&values)?;
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true)?;
    for bytes in [64, 256, 1024, 4096, 16384] {
        let mut line = format!("copy {bytes}:");
        for way in CopyMethod::ALL {
            let count = 8;
            let took = Copies {
                way,
                bytes,
                count,
                seed: 1,
            }
            .measure(&factory, &mut |_, _| true)?;
            line += &format!(" {} {:.0} ns", way.name(), took.mean_ns);
        }
        println!("{line}");
    }
    for mechanism in ["undo", "redo", "checkpoint", "shadow"] {
        let mut regions = Vec::new();
        for (offloaded, fence) in [
            (false, "read_back"),
            (true, "read_back"),
            (true, "posted"),
            (false, "posted"),
            (false, "ordered"),
        ] {
            if fence == "ordered" && design.channels > 1 {
                continue;
            }
            let mut run = Transactions::from_names(mechanism, offloaded, fence)?;
            run.inserts = inserts;
            let ran = run.measure(&factory, &mut |_, _| true)?;
            regions.push((ran.ns, ran.consistency_ns));
            println!(
                "{mechanism:10} {} {fence:9}: {:.0} ns, consistency {:.0}: fences {:.0}, \
                 copies {:.0}, \
                 flushes {:.0}, commands {:.0}; \
                 fences {:.2}, lines {:.2}, commands {:.2}, records {:.2} of {:.0} B, copied \
                 {:.0} B",
                if offloaded { "engine" } else { "CPU   " },
                ran.ns,
                ran.consistency_ns,
                ran.fences_ns,
                ran.copies_ns,
                ran.flushes_ns,
                ran.commands_ns,
                ran.fences,
                ran.lines,
                ran.commands,
                ran.records,
                ran.payload,
                ran.copied,
            );
        }
        let ratios = |name: &str, cpu: usize, engine: usize| {
            if let (Some(cpu), Some(engine)) = (regions.get(cpu), regions.get(engine)) {
                let (all, region) = (cpu.0 / engine.0, cpu.1 / engine.1);
                println!("{mechanism}: {name}: transactions {all:.2}, regions {region:.2}");
            }
        };
        ratios("durable", 0, 1);
        ratios("durable, against a CPU that only orders between", 4, 1);
        ratios("relaxed, both", 3, 2);
    }
    Ok(())
}
