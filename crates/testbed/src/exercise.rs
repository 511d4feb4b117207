// SPDX-License-Identifier: Apache-2.0

//! A short mixed workload that uses all parts of a device.

use design::{Cpu, Profile};
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, Host, NvmeDriver};
use sim::{Bar, Device};

use crate::{driver_costs, host_of, set_media_profile, Result};

/// Attaches `device` to a separate host, and reads and writes in several sizes on all queues, with
/// and without emulated latencies. Profile-guided builds are trained with it.
pub fn exercise(device: Box<dyn Device + Send>, media_bytes: u64) -> Result<()> {
    let host = host_of(device, media_bytes, driver_costs(&Cpu::default()), 0)?;
    let mut controller = NvmeDriver::start(host, DriverConfig::default())?;
    let queues = controller.io_queues().min(16);
    let job = |bytes, commands, read_percent| IoJob {
        read_percent,
        min_bytes: bytes,
        max_bytes: bytes,
        queues,
        depth: 8,
        commands,
        ..IoJob::default()
    };
    for latency_ns in [0, 300] {
        if latency_ns > 0 {
            let profile = Profile::latencies("exercise", 305.0, 94.0);
            set_media_profile(controller.host_mut(), &profile)?;
        }
        for (bytes, commands, read_percent) in [
            (4096, 1000, 50),
            (4096, 300, 100),
            (16384, 100, 50),
            (512, 300, 50),
        ] {
            run_job(
                &mut controller,
                &job(bytes, commands, read_percent),
                &mut |_, _| true,
            )?;
        }
        for line in 0..64u64 {
            let at = (line * 4160 % media_bytes) & !63;
            let mut data = [line as u8; 64];
            let host = controller.host_mut();
            host.write(Bar::Pm, at, &data)?;
            host.read(Bar::Pm, at, &mut data)?;
        }
    }
    Ok(())
}
