// SPDX-License-Identifier: Apache-2.0

//! NVMe commands per CPU second: `speed BYTES COMMANDS READ_PERCENT [verify]`.

use driver::workload::{run_job, IoJob};
use driver::{DriverConfig as Driver, NvmeDriver, SimHost};
use fast::{Config, FastDevice};
use sim::{Bar, Media, System};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: u64| args.get(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let design = design::Design::find("default").map_err(|e| e.to_string())?;
    let design = design
        .with_values("[cpu]\nprofile = \"none\"\n[media]\nprofile = \"dram\"")
        .map_err(|e| e.to_string())?;
    let config = Config::of(&design).map_err(|e| e.to_string())?;
    let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
    let device = FastDevice::new(config, media)?;
    let mut system = System::new(&design.host).map_err(|e| e.to_string())?;
    let windows = [
        (Bar::Nvme, 64 << 10),
        (Bar::Pm, design.window_bytes()),
        (Bar::Control, 1 << 20),
    ];
    let slot = system
        .add_device(Box::new(device), &design.pcie, &windows)
        .map_err(|e| e.to_string())?;
    let host = SimHost::new(system, slot, design.cpu.costs(), 0);
    let mut controller = NvmeDriver::start(host, Driver::default()).map_err(|e| e.to_string())?;
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
    let outcome = run_job(&mut controller, &job, &mut |_, _| true).map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.0} thousand commands a second, {} bytes verified, {:.2} GB/s simulated",
        job.commands as f64 / seconds / 1e3,
        outcome.verified_bytes,
        outcome.report.bytes as f64 / outcome.report.elapsed.as_ns()
    );
    Ok(())
}
