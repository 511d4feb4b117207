// SPDX-License-Identifier: Apache-2.0

//! Nothing shows what registers hold at power-on.

mod common;

use common::bench;
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, InitialValues, PowerUpRegisters, RtlDevice};
use sim::{Bar, Media, Time};

const EACH: [InitialValues; 4] = [
    InitialValues::Zeros,
    InitialValues::Ones,
    InitialValues::Random(1),
    InitialValues::Random(2),
];

/// Reads these words of a device just after power-on, and again later. Returns the first values and
/// the time of the last read.
fn words(name: &str, places: &[(Bar, u64)], contents: InitialValues) -> Vec<String> {
    let config = DeviceConfig {
        registers: PowerUpRegisters::Always(contents),
        ..common::design(name)
    };
    let media = Media::memory(1 << 30).unwrap();
    let device = RtlDevice::build(config, media, &mut stderr_progress(name)).unwrap();
    let mut b = bench::Bench::of(Box::new(device));
    let mut seen = Vec::new();
    for pass in 0..2 {
        for &(bar, at) in places {
            let word = b.read(bar, at, 4);
            seen.push(format!("{pass} {bar:?} {at:#x}: {word:x?}"));
        }
        seen.push(format!("{}", b.device.cycles().0));
        b.run(Time::us(20));
    }
    seen
}

fn the_same_words(name: &str, engines: u64) {
    let nvme = (0..0x60).chain(0x2000..0x2100).chain(0x3000..0x3010);
    // PCI leaves addresses and data of the MSI-X table undefined.
    let nvme = nvme.filter(|at| !(0x2000..0x3000).contains(at) || at % 16 == 12);
    let delays = (0..2).flat_map(|c| 0x1_0000 + 0x1000 * c..0x1_0400 + 0x1000 * c);
    let registers = (0..engines).flat_map(|e| 0x8_0000 + 0x1000 * e..0x8_0240 + 0x1000 * e);
    let control = (0..0x100)
        .chain(0x1000..0x1080)
        .chain(delays)
        .chain(registers);
    let places: Vec<(Bar, u64)> = (nvme.map(|at| (Bar::Nvme, at)))
        .chain(control.map(|at| (Bar::Control, at)))
        .filter(|(_, at)| at % 4 == 0)
        .collect();
    let zeros = words(name, &places, EACH[0]);
    for contents in &EACH[1..] {
        for (zeros, others) in zeros.iter().zip(words(name, &places, *contents)) {
            assert_eq!(*zeros, others, "{contents:?} beside zeros");
        }
    }
}

#[test]
fn power_up_contents_change_no_readable_word() {
    the_same_words("default", 0);
}

#[test]
#[ignore = "compiles a separate device"]
fn power_up_contents_change_no_engine_word() {
    the_same_words("engines", 6);
}
