// SPDX-License-Identifier: Apache-2.0

//! How long a device works after the power fails.

mod common;

use common::Bench;
use design::{Design, Profile};
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, RtlDevice};
use sim::{Bar, Device, Media, Random, Time};

const MEDIA: u64 = 1 << 30;
const PAGE: u64 = 4096;
const NVM_DELAY: u64 = 0x1_0000;

/// What a media profile writes to the `nvm_delay` of each channel: (offset, value).
fn settings(name: &str) -> Vec<(u64, u32)> {
    let (design, profile) = (
        Design::find("default").unwrap(),
        Profile::find(name).unwrap(),
    );
    let r = &profile
        .registers(design.clock(), design.interleave())
        .unwrap()[0];
    let timing = (0..4).map(|i| (0x40 + 4 * i, r.timing[i as usize]));
    [(0x10, r.control), (0x20, r.read_cap), (0x24, r.write_cap)]
        .into_iter()
        .chain(timing)
        .chain([(0x14, 1)])
        .collect()
}

fn set(b: &mut Bench, registers: &[(u64, u32)]) {
    for channel in 0..2 {
        for &(offset, value) in registers {
            b.write32(Bar::Control, NVM_DELAY + 0x1000 * channel + offset, value);
        }
    }
}

/// With each media profile all writes that have begun end while the energy lasts.
#[test]
fn power_hold_up_of_10_us_is_enough() {
    let mut worst = Time::ZERO;
    let profiles = ["dram", "nand", "optane-dcpmm", "pcm", "reram", "stt-mram"];
    for name in profiles {
        let config = DeviceConfig {
            hang_cycles: 20_000,
            ..common::design("default")
        };
        let media = Media::memory(MEDIA).unwrap();
        let device = RtlDevice::build(config, media, &mut stderr_progress("default"));
        let mut b = Bench::of(Box::new(device.unwrap()));
        let mut random = Random::new(6);
        for phase in 0..25 {
            b.run(Time::us(3));
            set(&mut b, &settings(name));
            b.run(Time::us(1));
            let now = b.device.now();
            // As many bursts as are allowed, all to one channel and each to another row.
            for i in 0..40 {
                let data: Vec<u8> = (0..PAGE).map(|_| random.next() as u8).collect();
                b.host.post(now, Bar::Pm, i * (1 << 21), &data);
            }
            b.run(Time::ns(150 * phase));
            b.device.power_off();
            b.host.forget();
            let held_up = b.device.held_up().unwrap();
            assert!(held_up.ended, "{name}, phase {phase}: {held_up:?}");
            worst = worst.max(held_up.time);
            b.device.power_on();
        }
    }
    println!("the longest of them took {worst}");
    assert!(worst < Time::us(10));
}
