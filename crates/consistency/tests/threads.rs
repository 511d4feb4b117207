//! Many threads share an engine's command page: no command is lost, whatever they find there.

use std::path::Path;

use consistency::{Platform, Transactions};
use design::Design;
use device::{Engine, Factory, RtlOptions};

fn run(design: &str, mechanism: &str, inserts: u64, devices: usize, seed: u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let values = "[media]\nbytes = \"256 MiB\"\nprofile = \"dram\"\n[nvme]\nnamespaces = [\"1 MiB\"]\n[cpu]\nprofile = \"nearpm\"\n";
    let design = Design::find(&root, design).unwrap();
    let design = design.with_values(values).unwrap();
    let options = RtlOptions::default();
    let factory = Factory::new(&design, Engine::Fast, &options, &mut |_| true).unwrap();
    let platform = Platform::new(&design, factory, &root).unwrap();
    let transactions = Transactions {
        inserts,
        threads: 16,
        devices,
        seed,
        ..Transactions::named(mechanism, true, "read_back").unwrap()
    };
    let ran = transactions.measure(&platform, &mut |_, _| true);
    let ran = ran.unwrap_or_else(|e| panic!("{mechanism}, seed {seed}: {e}"));
    println!(
        "{mechanism}, {devices} devices: {:.2} a microsecond",
        ran.per_us
    );
}

/// A line that is taken for free too early drops a command, which the library tells.
#[test]
fn sixteen_threads_lose_no_command() {
    for mechanism in ["undo", "redo", "checkpoint", "shadow"] {
        for (devices, seed) in [(1, 1), (1, 2), (2, 3)] {
            let few = matches!(mechanism, "checkpoint" | "shadow");
            run(
                "nearpm",
                mechanism,
                if few { 30 } else { 120 },
                devices,
                seed,
            );
        }
    }
}

/// While one thread waits for the end of its command another one sees it, too; the line is not anybody's until the former has read it. Others'
/// ends were taken for its own with this seed.
#[test]
fn each_reads_the_end_of_its_own_command() {
    run("nearpm-paper", "shadow", 200, 1, 3001);
}
