// SPDX-License-Identifier: Apache-2.0

//! How fast the RTL model of the default device is simulated with all queues and channels busy, and
//! where the time goes.
//!
//! cargo run --release -p nearside-rtl --example speed [COMMANDS] [BYTES] [READ_PERCENT]
//! [TARGET_NS] [TRAINED]

use std::time::Instant;

use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, NvmeDriver, SimHost};
use rtl::bitstream::{stderr_progress, Purpose};
use rtl::{DeviceConfig, RtlDevice};
use sim::{Counter, Media};
use testbed::{driver_costs, host_of, set_media_profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let (commands, bytes, read_percent, target_ns, trained) = (
        number(4000)?,
        number(4096)?,
        number(50)?,
        number(0)?,
        number(0)?,
    );

    let design = design::Design::find("default")?;
    let media_bytes = design.media.bytes.0;
    let train = |device: RtlDevice| {
        let bytes = device.media().size();
        Ok(testbed::exercise(Box::new(device), bytes)?)
    };
    let mut config = DeviceConfig::from_design(&design)?;
    if trained != 0 {
        config.purpose = Purpose::Running;
        config.train = Some(train);
    }
    let device = RtlDevice::build(
        config,
        Media::memory(media_bytes)?,
        &mut stderr_progress("nearside_top"),
    )?;
    println!("build: {}", device.bitstream_build());
    let costs = driver_costs(&design::Cpu::default());
    let host = host_of(Box::new(device), media_bytes, costs, 17)?;
    let mut controller = NvmeDriver::start(
        host,
        DriverConfig {
            io_queues: 16,
            ..DriverConfig::default()
        },
    )?;
    if target_ns > 0 {
        let profile = design::Profile::latencies("speed", target_ns as f64, target_ns as f64);
        set_media_profile(controller.host_mut(), &profile)?;
    }
    let job = IoJob {
        read_percent: read_percent as u32,
        min_bytes: bytes,
        max_bytes: bytes,
        queues: 16,
        depth: 8,
        commands,
        ..IoJob::default()
    };
    let counters = |controller: &NvmeDriver<SimHost>| -> Vec<Counter> {
        let host = controller.host();
        host.system()
            .device(host.device())
            .map(|d| d.counters())
            .unwrap_or_default()
    };
    let before = counters(&controller);
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let outcome = run_job(&mut controller, &job, &mut |_, _| true)?;
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let after = counters(&controller);
    let grown = |name: &str| {
        let value = |list: &[Counter]| {
            list.iter()
                .find(|c| c.name == name)
                .map_or(0.0, |c| c.value)
        };
        value(&after) - value(&before)
    };
    let cycles = grown("cycles.evaluated");
    println!(
        "{:.2} GB/s, {:.0} commands/s (simulated)",
        outcome.report.bandwidth() / 1e9,
        outcome.report.iops()
    );
    println!(
        "{cycles:.0} cycles evaluated, {:.0} skipped",
        grown("cycles.skipped")
    );
    println!(
        "{:.0} cycles per CPU second ({cpu:.2} s CPU, {wall:.2} s wall)",
        cycles / cpu
    );
    let (engine, model) = (grown("cpu.engine"), grown("cpu.model"));
    println!(
        "{model:.2} s in the model, {:.2} s in bus models and link",
        engine - model
    );
    println!("outside of the model: {:.1} %", 100.0 * (1.0 - model / cpu));
    for counter in &after {
        println!(
            "  {:<22} {:>14.3} {}",
            counter.name,
            grown(&counter.name),
            counter.unit
        );
    }
    Ok(())
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
