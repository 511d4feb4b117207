// SPDX-License-Identifier: Apache-2.0

//! The latency of a load agrees with NearPM's paper.

use design::Design;
use device::{Factory, Model, RtlOptions};
use host::{Mapping, MemoryType};
use sim::Random;

/// Section 7: "the access latency to the emulated PM is 436 ns".
const PAPER_NS: f64 = 436.0;
const LOADS: u64 = 400;

/// Mean latency of dependent loads, ns.
fn dependent_ns(model: Model) -> f64 {
    let design = Design::find("nearpm-paper").unwrap();
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true).unwrap();
    let (testbed, _) = pm_bench::testbed(&factory, 1).unwrap();
    let cpu = testbed.cpu(0);
    let pm = Mapping::pm(0, MemoryType::WriteBack);
    // A ring of lines in random order.
    let mut lines: Vec<u64> = (0..LOADS).map(|n| n * 64 * 33).collect();
    let mut random = Random::new(1);
    for n in (1..lines.len()).rev() {
        lines.swap(n, random.below(n as u64 + 1) as usize);
    }
    for (n, line) in lines.iter().enumerate() {
        let next = lines[(n + 1) % lines.len()];
        cpu.ntstore(&pm, *line, &next.to_le_bytes()).unwrap();
    }
    cpu.fence(host::Fence::ReadBack).unwrap();
    let begin = cpu.now();
    let mut at = lines[0];
    for _ in 0..LOADS {
        let mut next = [0; 8];
        cpu.load(&pm, at, &mut next).unwrap();
        at = u64::from_le_bytes(next);
    }
    assert_eq!(at, lines[0]);
    (cpu.now() - begin).as_ns() / LOADS as f64
}

fn as_the_paper_states(model: Model) {
    let found = dependent_ns(model);
    println!("{model}: {found:.1} ns");
    assert!((found / PAPER_NS - 1.0).abs() <= 0.01, "{found} ns");
}

#[test]
fn dependent_load_takes_the_published_time() {
    as_the_paper_states(Model::Fast);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "compiles a separate device"]
    fn dependent_load_takes_the_published_time_on_the_rtl() {
        as_the_paper_states(Model::Rtl);
    }
}
