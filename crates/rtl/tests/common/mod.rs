// SPDX-License-Identifier: Apache-2.0

//! Devices, designs and hosts that the tests share.
#![allow(dead_code)]

#[path = "../../../device/tests/behaviour/common/bench.rs"]
pub mod bench;
#[path = "../../../device/tests/behaviour/common/cuts.rs"]
pub mod cuts;
#[path = "../../../device/tests/behaviour/common/designs.rs"]
pub mod designs;

use std::path::PathBuf;
use std::sync::Arc;

use design::{Cpu, Design};
use driver::{DriverConfig, HostCosts, NvmeDriver, SimHost};
use rtl::bitstream::{compile, stderr_progress, Bitstream, BitstreamSpec};
use rtl::{DeviceConfig, RtlDevice};
use sim::{Media, Time};
use testbed::driver_costs;

use designs::mailboxes as mailboxes_design;

/// The bitstream spec of the fixture device.
pub fn fixture_spec(trace: bool) -> BitstreamSpec {
    BitstreamSpec {
        root: design::checkout().unwrap(),
        top: "rtl_fixture".to_string(),
        filelists: vec![PathBuf::from("hw/top/sim/rtl_fixture.f")],
        trace,
        ..BitstreamSpec::default()
    }
}

fn free_clocks() -> bool {
    let bypass = std::env::var("CLOCK_GATE_BYPASS").unwrap_or_default();
    !matches!(bypass.as_str(), "" | "0")
}

/// The device of a design of `designs/`: the bitstream that a run of this design uses. With
/// `CLOCK_GATE_BYPASS=1` it is one whose clocks always run.
pub fn design(name: &str) -> DeviceConfig {
    DeviceConfig {
        free_clocks: free_clocks(),
        ..DeviceConfig::from_design(&Design::find(name).unwrap()).unwrap()
    }
}

/// The default device, which writes its zeros itself.
pub fn fill_inside() -> DeviceConfig {
    with_parameters(design("default"), &[("FillInside", "1'b1")])
}

/// The default device with another number of channels, each in turns of 8 KiB.
pub fn channels(channels: u32) -> DeviceConfig {
    let config = DeviceConfig {
        channels,
        granule: 8192,
        ..design("default")
    };
    let number = channels.to_string();
    with_parameters(config, &[("NumChannels", &number), ("Granule", "8192")])
}

fn with_parameters(mut config: DeviceConfig, parameters: &[(&str, &str)]) -> DeviceConfig {
    let parameters = parameters.iter();
    let parameters = parameters.map(|(name, value)| (name.to_string(), value.to_string()));
    config.parameters.extend(parameters);
    config
}

/// A device of [`designs::mailboxes`].
pub fn mailboxes() -> DeviceConfig {
    DeviceConfig {
        hang_cycles: 2_000_000,
        free_clocks: free_clocks(),
        ..DeviceConfig::from_design(&mailboxes_design()).unwrap()
    }
}

/// Cycles of its clock, at 10 MHz.
const MAILBOX_CYCLE: Time = Time::ns(100);

/// That device on empty media, and its host.
pub fn mailbox_bench() -> Bench {
    let media = Media::memory(mailboxes_design().media.bytes.0).unwrap();
    let mut progress = stderr_progress("mailboxes");
    let device = RtlDevice::build(mailboxes(), media, &mut progress);
    Bench::of(Box::new(device.unwrap()))
}

/// A driver for the device of a design at a link, with empty media.
pub fn controller(name: &str, media: u64) -> NvmeDriver<SimHost> {
    controller_with(name, media, driver_costs(&Cpu::default()), 0)
}

/// As above, with this number of interrupt vectors.
pub fn controller_with(
    name: &str,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> NvmeDriver<SimHost> {
    controller_of(name, design(name), media, costs, vectors)
}

/// The same for any device.
pub fn controller_of(
    name: &str,
    config: DeviceConfig,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> NvmeDriver<SimHost> {
    let host = host_of(name, config, media, costs, vectors);
    NvmeDriver::start(host, DriverConfig::default()).unwrap()
}

/// The host of such a device. The controller is not started.
pub fn host_of(
    name: &str,
    config: DeviceConfig,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> SimHost {
    let config = DeviceConfig {
        hang_cycles: 50_000,
        ..config
    };
    let media_of = Media::memory(media).unwrap();
    let device = RtlDevice::build(config, media_of, &mut stderr_progress(name)).unwrap();
    testbed::host_of(Box::new(device), media, costs, vectors).unwrap()
}

/// Builds and loads a bitstream.
pub fn load(spec: &BitstreamSpec) -> Arc<Bitstream> {
    let path = compile(spec, &mut stderr_progress(&spec.top)).unwrap();
    Bitstream::open(&path).unwrap()
}

/// A device and its host.
pub type Bench = bench::Bench<RtlDevice>;

impl Bench {
    /// Runs this number of cycles of [`mailboxes`].
    pub fn cycles(&mut self, cycles: u64) {
        self.run(Time(MAILBOX_CYCLE.0 * cycles));
    }

    /// A byte of the media.
    pub fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.device.media().read(at, &mut byte);
        byte[0]
    }
}
