// SPDX-License-Identifier: Apache-2.0

//! Speed of other simulators: constants, measured once on a machine with two cores of the same
//! kind, with one thread, per CPU second. The versions are those available in the autumn of 2026.

/// Another simulator.
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// Commands or requests of a CPU second: slowest and fastest of the workloads that were tried.
    pub per_second: [f64; 2],
    /// What it leaves out.
    pub notes: &'static str,
}

/// Of NVMe commands, 4 KiB each.
pub const COMMANDS: &[Peer] = &[
    Peer {
        name: "SimpleSSD",
        per_second: [63e3, 92e3],
        notes: "4 KiB commands, no data; 1 to 3 GB of memory",
    },
    Peer {
        name: "MQSim",
        per_second: [27e3, 49e3],
        notes: "4 KiB commands, no data; 1 to 3 GB of memory",
    },
];

/// Of 64-byte accesses to memory.
pub const ACCESSES: &[Peer] = &[
    Peer {
        name: "ramulator2",
        per_second: [138e3, 244e3],
        notes: "64-byte requests, DRAM alone, no data",
    },
    Peer {
        name: "DRAMsim3",
        per_second: [120e3, 169e3],
        notes: "64-byte requests, DRAM alone, no data",
    },
];
