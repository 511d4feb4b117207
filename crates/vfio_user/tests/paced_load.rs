// SPDX-License-Identifier: Apache-2.0

//! Paced devices under load, on a clock that is at once where the pacing thread waits for it. So
//! nothing is late, unless that thread has waited too long.

mod common;

use std::sync::Arc;

use common::machine::{self, Machine};
use common::manual_clock::ManualClock;
use common::*;
use design::Design;
use device::{Model, RtlOptions};
use driver::workload::{run_job, BufferLayout, IoJob};
use driver::{DriverConfig, NvmeDriver};
use sim::{HostConfig, Media, Random, Time};
use vfio_user::{Dilation, PacingReport, Server};

fn work(socket: &std::path::Path, interrupts: bool, seed: u64, pm: bool) {
    let config = DriverConfig {
        io_queues: 4,
        command_timeout: Time(120_000_000_000_000),
        ..DriverConfig::default()
    };
    let machine = Machine::new(socket, interrupts);
    let mut controller = NvmeDriver::start(machine, config).unwrap();
    let mut random = Random::new(seed);
    for n in 0..4 {
        let job = IoJob {
            read_percent: 60,
            min_bytes: 512,
            max_bytes: 16384,
            queues: 4,
            depth: 64,
            commands: 100,
            layout: BufferLayout::Scattered,
            verify: true,
            span: 1 << 22,
            seed: seed + 10 * n,
            ..IoJob::default()
        };
        run_job(&mut controller, &job, &mut |_, _| true).unwrap();
        for _ in 0..if pm { 20 } else { 0 } {
            let at = random.below(1 << 20) * 8;
            let client = &mut controller.host_mut().client;
            let mut data = [0; 64];
            client.region_read(BAR2, at, &mut data).unwrap();
            client.region_write(BAR2, at, &data).unwrap();
        }
    }
    controller.shutdown().unwrap();
}

fn run(factor: f64, interrupts: bool, seed: u64) -> Vec<PacingReport> {
    let dir = Dir::new();
    let design = Design::find("default").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let served = (0..2).map(|n| {
        let media = Media::memory(design.media.bytes.0).unwrap();
        let options = RtlOptions::default();
        machine::served(&design, model, &options, dir.socket(n), media)
    });
    let clock = Arc::new(ManualClock::running());
    let dilation = Dilation::new(factor).unwrap();
    let host = HostConfig::default();
    let server = Server::start_paced(served.collect(), &host, dilation, clock).unwrap();
    std::thread::scope(|scope| {
        for n in 0..2 {
            let socket = dir.socket(n);
            scope.spawn(move || work(&socket, interrupts, seed + n as u64, n == 1));
        }
    });
    let report = server.pacing();
    server.stop();
    report
}

#[test]
fn paced_load_is_never_late_on_an_exact_clock() {
    for (factor, interrupts, seed) in [
        (1.0, true, 1),
        (0.01, true, 2),
        (100_000.0, false, 3),
        (3.7, false, 4),
    ] {
        for report in run(factor, interrupts, seed) {
            for kind in [report.completions, report.interrupts, report.reads] {
                assert_eq!((kind.late, kind.max_ns), (0, 0.0), "{factor} {report:?}");
            }
            assert!(report.completions.count >= 400 && report.set_back_ns == 0.0);
        }
    }
}
