// SPDX-License-Identifier: Apache-2.0

//! Measures the cost of transactions over 1, 2 and 4 devices: `devices [DESIGN [fast|rtl [INSERTS
//! [WORK_NS [TOML]]]]]`. All times are simulated.

use design::Design;
use device::{Factory, Model, RtlOptions};
use pm::{Mechanism, Synchronisation};
use pm_bench::Transactions;

type Failure = Box<dyn std::error::Error>;

/// Offloaded or not, number of devices, and synchronisation.
const CONFIGURATIONS: [(bool, usize, Synchronisation); 8] = [
    (false, 1, Synchronisation::Devices),
    (false, 2, Synchronisation::Devices),
    (false, 4, Synchronisation::Devices),
    (true, 1, Synchronisation::Devices),
    (true, 2, Synchronisation::Host),
    (true, 2, Synchronisation::Devices),
    (true, 4, Synchronisation::Host),
    (true, 4, Synchronisation::Devices),
];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "nearpm-paper".into());
    let model: Model = arguments.next().as_deref().unwrap_or("fast").parse()?;
    let inserts: u64 = arguments.next().as_deref().unwrap_or("1000").parse()?;
    let work_ns: f64 = arguments.next().as_deref().unwrap_or("0").parse()?;
    let values = arguments.next().unwrap_or_default();
    let design = Design::find(&name)?.with_values(&values)?;
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true)?;
    for mechanism in Mechanism::ALL {
        let mut by_cpu = Vec::new();
        for (offloaded, devices, synchronise) in CONFIGURATIONS {
            let named = Transactions::from_names(mechanism.name(), offloaded, "read_back")?;
            let run = Transactions {
                inserts,
                work_ns,
                devices,
                synchronise,
                ..named
            };
            let ran = run.measure(&factory, &mut |_, _| true)?;
            // The CPU's best result: with pools on one device, and on as many as the engines have.
            if !offloaded {
                by_cpu.push((devices, ran.ns, ran.consistency_ns));
            }
            let allowed = by_cpu.iter().filter(|(count, ..)| *count <= devices);
            let best = allowed.min_by(|one, other| one.1.total_cmp(&other.1));
            let (ns, regions) = best.map_or((ran.ns, ran.consistency_ns), |best| (best.1, best.2));
            let by = match (offloaded, devices) {
                (false, _) => "CPU".into(),
                (true, 1) => "engine".into(),
                (true, _) => format!("engines, by {}", synchronise.name()),
            };
            println!(
                "{:10} {devices} {by:19}: {:.0} ns, {:.2} x; consistency {:.0} ns, {:.2} x: \
                 fences {:.0} ns, {:.2}, commands {:.2}, records {:.2}",
                mechanism.name(),
                ran.ns,
                ns / ran.ns,
                ran.consistency_ns,
                regions / ran.consistency_ns,
                ran.fences_ns,
                ran.fences,
                ran.commands,
                ran.records,
            );
        }
    }
    Ok(())
}
