// SPDX-License-Identifier: Apache-2.0

//! Measures the commands per second, in wall-clock time, of a served device on each model.
//!
//! The project's driver polls from another thread, on memory that it shares with the server. SPDK
//! works in the same way. All data are compared. `served_speed [COMMANDS]` prints both rates and
//! their ratio.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::machine::{served, Machine};
use common::Dir;
use design::Design;
use device::{Model, RtlOptions};
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, NvmeDriver};
use rtl::bitstream::Purpose;
use sim::{Media, Time};
use vfio_user::Server;

/// The RTL model gets a fraction of the commands.
const RTL_SHARE: u64 = 20;

fn main() {
    let commands = std::env::args().nth(1);
    let commands = commands.map_or(40_000, |n| n.parse().expect("COMMANDS: a number"));
    println!("kind   bytes  depth      rtl IOPS     fast IOPS   ratio   (wall-clock)");
    for (kind, read_percent) in [("read", 100), ("write", 0), ("half", 50)] {
        for (bytes, queues, depth) in [(512, 1, 1), (4096, 1, 1), (4096, 4, 32), (131_072, 1, 8)] {
            let job = |commands| IoJob {
                read_percent,
                min_bytes: bytes,
                max_bytes: bytes,
                queues,
                depth,
                commands,
                verify: true,
                ..IoJob::default()
            };
            let share = commands * 4096 / bytes.max(4096);
            let rtl = iops(Model::Rtl, &job((share / RTL_SHARE).max(100)));
            let fast = iops(Model::Fast, &job(share.max(100)));
            let ratio = fast / rtl;
            let depth = format!("{queues} x {depth}");
            println!("{kind:5} {bytes:6} {depth:>6} {rtl:13.0} {fast:13.0} {ratio:7.1}");
        }
    }
}

fn iops(model: Model, job: &IoJob) -> f64 {
    let dir = Dir::new();
    let design = Design::find("default").unwrap();
    let options = RtlOptions {
        purpose: Purpose::Running,
        ..RtlOptions::default()
    };
    let media = Media::memory(design.media.bytes.0).unwrap();
    let served = served(&design, model, &options, dir.socket(0), media);
    let server = Server::start(vec![served]).unwrap();
    let config = DriverConfig {
        io_queues: 4,
        command_timeout: Time(120_000_000_000_000), // wall-clock
        ..DriverConfig::default()
    };
    let machine = Machine::new(&dir.socket(0), false);
    let mut controller = NvmeDriver::start(machine, config).unwrap();
    let begun = Instant::now();
    run_job(&mut controller, job, &mut |_, _| true).unwrap();
    let took = begun.elapsed().as_secs_f64();
    controller.shutdown().unwrap();
    server.stop();
    job.commands as f64 / took
}
