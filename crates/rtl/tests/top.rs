// SPDX-License-Identifier: Apache-2.0

//! The device top in the RTL model: waveforms, and what is not a hang.

mod common;

use std::path::PathBuf;

use common::Bench;
use design::Design;
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, RtlDevice, TraceWindow};
use sim::{Bar, Fault, Media, Time};

const MEDIA: u64 = 1 << 30;

fn config() -> DeviceConfig {
    // A read without an answer is to end in a dump, not in a time-out.
    DeviceConfig {
        hang_cycles: 20_000,
        ..common::design("default")
    }
}

fn bench_with(config: DeviceConfig, media: Media) -> Bench {
    let device = RtlDevice::build(config, media, &mut stderr_progress("nearside_top"));
    Bench::of(Box::new(device.unwrap()))
}

/// The design's key is a parameter that the device top has.
#[test]
fn doorbell_buffer_of_a_design_is_a_parameter_of_the_top() {
    let path = config().root.join("hw/top/rtl/nearside_top.sv");
    let text = std::fs::read_to_string(path).unwrap();
    for (key, value) in [("true", "1"), ("false", "0")] {
        let values = format!("[nvme]\ndoorbell_buffer = {key}\n");
        let design = Design::find("default").unwrap();
        let design = design.with_values(&values).unwrap();
        let config = DeviceConfig::from_design(&design).unwrap();
        let top = design::export::top(&text, &config.parameters).unwrap();
        let line = format!("  parameter bit DoorbellBuffer = {value},\n");
        assert!(top.contains(&line), "{key}");
    }
}

/// The queue memory of the admin queue cannot be read and the link never answers: the controller
/// waits forever.
#[test]
fn hang_is_not_reported_on_a_silent_link() {
    let mut b = bench_with(
        DeviceConfig {
            hang_cycles: 2000,
            ..config()
        },
        Media::memory(MEDIA).unwrap(),
    );
    b.host.latency = Time::ms(1);
    for (offset, value) in [
        (0x24, 0x000F_000F),
        (0x28, 0x1000),
        (0x2C, 0),
        (0x30, 0x2000),
        (0x34, 0),
        (0x14, 0x0046_0001),
    ] {
        b.write32(Bar::Nvme, offset, value);
    }
    b.run(Time::us(100));
    assert_eq!(b.read32(Bar::Nvme, 0x1C) & 1, 1, "CSTS.RDY");
    b.write32(Bar::Nvme, 0x1000, 1);
    match b.try_run(Time::us(200)) {
        Ok(()) => {}
        Err(Fault::Hang(dump)) => panic!("{dump}"),
        Err(other) => panic!("{other}"),
    }
    assert!(
        b.host.log.iter().any(|e| e.1 == "read" && e.2 == 0x1000),
        "the command is fetched"
    );
}

/// Waveforms of the small device are tested every day.
mod long {
    use super::*;

    #[test]
    #[ignore = "compiles a separate device"]
    fn waveform_of_one_channel() {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("top.fst");
        let _ = std::fs::remove_file(&path);
        let window = TraceWindow {
            from: Time::us(2),
            to: Time::us(3),
            path: path.clone(),
        };
        let config = DeviceConfig {
            trace: Some(window),
            hang_cycles: config().hang_cycles,
            ..common::channels(1)
        };
        let mut b = bench_with(config, Media::memory(MEDIA).unwrap());
        b.run(Time::us(1));
        for page in 0..32u64 {
            b.post(Bar::Pm, page * 4096, &[page as u8 + 1; 4096]);
        }
        b.run(Time::us(50));
        drop(b);
        let written = std::fs::metadata(&path).unwrap().len();
        assert!(written > 10_000, "{written} bytes of waveforms");
    }
}
