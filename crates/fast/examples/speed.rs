// SPDX-License-Identifier: Apache-2.0

//! NVMe commands per CPU second: `speed BYTES COMMANDS READ_PERCENT [verify]`.

use device::Model;
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig as Driver, NvmeDriver};
use host::HostParameters;
use testbed::Testbed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: u64| args.get(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let design = design::Design::find("default")?;
    let design = design.with_values("[cpu]\nprofile = \"none\"\n[media]\nprofile = \"dram\"")?;
    let testbed = Testbed::builder(&design).model(Model::Fast);
    let host = testbed
        .host(HostParameters::default())
        .build()?
        .into_sim_host(0);
    let mut controller = NvmeDriver::start(host, Driver::default())?;
    let job = IoJob {
        read_percent: arg(3, 50) as u32,
        min_bytes: arg(1, 512),
        max_bytes: arg(1, 512),
        queues: 8,
        depth: 16,
        commands: arg(2, 100_000),
        span: 64 << 20,
        verify: args.get(4).is_some(),
        ..IoJob::default()
    };
    let start = std::time::Instant::now();
    let outcome = run_job(&mut controller, &job, &mut |_, _| true)?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.0} thousand commands a second, {} bytes verified, {:.2} GB/s simulated",
        job.commands as f64 / seconds / 1e3,
        outcome.verified_bytes,
        outcome.report.bytes as f64 / outcome.report.elapsed.as_ns()
    );
    Ok(())
}
