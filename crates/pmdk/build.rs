// SPDX-License-Identifier: Apache-2.0

//! Compiles the preloaded libraries. The numbers of the device's registers and commands come from
//! `spec`.

use std::path::{Path, PathBuf};
use std::process::Command;

use spec::nearpm::{
    Operation, Tracking, FIRST_RECORD, LINE, MAX_BYTES, POOLS, RESERVED_BYTES, THREADS,
};
use spec::regs::command_page::line;

/// The libraries, and the sources of each.
const LIBRARIES: [(&str, &[&str]); 1] = [(
    "libnearside_pmdk.so",
    &[
        "crash.c",
        "device.c",
        "instructions.c",
        "memory.c",
        "persist_points.c",
        "output.c",
        "pools.c",
        "process.c",
        "ranges.c",
        "reservations.c",
        "tracked.c",
        "transactions.c",
        "traps.c",
    ],
)];

/// The engine, whose type the status block reports.
const ENGINE: &str = "../../hw/engine/nearpm/engine.toml";

fn engine_type() -> u64 {
    println!("cargo:rerun-if-changed={ENGINE}");
    let text = std::fs::read_to_string(ENGINE).expect("the engine's folder has engine.toml");
    let manifest: toml::Table = text.parse().expect("engine.toml is TOML");
    let kind = manifest.get("kind").and_then(toml::Value::as_integer);
    kind.and_then(|kind| kind.try_into().ok())
        .expect("engine.toml has `kind = NUMBER`")
}

/// The constants of the device for the shims.
fn numbers() -> String {
    let mut all = vec![
        ("POOLS".to_string(), u64::from(POOLS)),
        ("THREADS".to_string(), u64::from(THREADS)),
        ("LINE".to_string(), LINE),
        ("MAX_BYTES".to_string(), MAX_BYTES),
        ("FIRST_RECORD".to_string(), FIRST_RECORD),
        ("RESERVED_BYTES".to_string(), RESERVED_BYTES),
        ("PAGE_STATE".to_string(), line::STATE),
        ("PAGE_RESULT".to_string(), line::RESULT),
        ("PAGE_VALUE_LO".to_string(), line::VALUE_LO),
        ("PAGE_VALUE_HI".to_string(), line::VALUE_HI),
        ("TRACKED".to_string(), Tracking::Undo.bits()),
        ("TYPE".to_string(), engine_type()),
        ("PAGE_BUSY".to_string(), line::state::BUSY.mask()),
        ("PAGE_DONE".to_string(), line::state::DONE.mask()),
    ];
    for operation in Operation::ALL {
        all.push((format!("OP_{operation:?}"), operation as u64));
    }
    all.iter()
        .map(|(name, value)| format!("#define NEARPM_{name} {value}u\n"))
        .collect()
}

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let shim = Path::new("shim");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=CC");
    std::fs::write(out.join("nearpm_numbers.h"), numbers()).expect("OUT_DIR can be written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    for (library, sources) in LIBRARIES {
        let status = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-pthread"])
            // The unwinder is linked statically: a C program need not have it.
            .args([
                "-fPIC",
                "-fvisibility=hidden",
                "-shared",
                "-static-libgcc",
                "-o",
            ])
            .arg(out.join(library))
            .arg("-I")
            .arg(&out)
            .args(sources.iter().map(|source| shim.join(source)))
            .arg("-ldl")
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("{compiler} can't make {library}: {status}"),
            Err(error) => panic!("{compiler} makes {library}, and can't be run: {error}"),
        }
    }
}
