// SPDX-License-Identifier: Apache-2.0

//! A load at rest takes the time of its profile, whatever the stages of the device are:
//! `nvm_delay`'s calibration accounts for them.

use design::{Design, Profile};
use driver::control::DelayRegisters;
use sim::{Bar, Random, Time};

use crate::common::{designs, Bench};

const LOADS: u64 = 400;
const READ_NS: f64 = 305.0;
const WRITE_NS: f64 = 94.0;

/// A bench whose media have two latencies.
fn timed(design: &Design) -> Bench {
    let mut b = Bench::new(design);
    let registers = Profile::latencies("x", READ_NS, WRITE_NS)
        .registers(design.clock(), design.interleave())
        .unwrap();
    for (channel, registers) in (0..).zip(&registers) {
        for (offset, value) in DelayRegisters::of_channel(channel)
            .writes(registers)
            .unwrap()
        {
            b.write32(Bar::Control, offset, value);
        }
    }
    b.run(Time::us(20));
    b
}

/// Time from a load's arrival to its answer in ns: the mean of arrivals that are spread evenly
/// between two edges of the clock. With `store`, after a store that arrives with it.
fn mean_ns(design: &Design, store: bool) -> f64 {
    let mut b = timed(design);
    let period = design.clock().ns(1.0) * 1000.0;
    let mut random = Random::new(5);
    let mut sum = 0;
    for n in 0..LOADS {
        let gap = (1000 + random.below(2000)) as f64;
        let edge = (b.device.now().0 as f64 / period).ceil() + gap;
        let at = Time((period * (edge + (n as f64 + 0.5) / LOADS as f64)) as u64);
        let addr = 64 * random.below(1 << 16);
        if store {
            b.host.post(at, Bar::Pm, addr, &[n as u8; 64]);
        }
        let tag = b.host.ask(at, Bar::Pm, addr, 64);
        let span = at - b.device.now() + Time::us(2);
        b.run(span);
        let data = b.host.answer(tag).unwrap().unwrap();
        assert!(!store || data == [n as u8; 64]);
        let answered = b.host.log.iter().rev().find(|event| event.1 == "answer");
        sum += (answered.unwrap().0 - at).0;
    }
    sum as f64 / 1000.0 / LOADS as f64
}

/// Within a twentieth of a cycle.
fn check(design: &Design, store: bool, want: f64) {
    let found = mean_ns(design, store);
    let name = &design.name;
    println!(
        "{name}, {}: {found:.2} ns, by the profile {want}",
        design.clock()
    );
    assert!(
        (found - want).abs() < design.clock().ns(0.05),
        "{name}: {found} ns, not {want}"
    );
}

mod sampled {
    use super::*;

    #[test]
    fn calibration_gives_loads_their_profiles_time() {
        check(&designs::design("default"), false, READ_NS);
    }

    #[test]
    fn calibration_adds_store_and_load() {
        let design = designs::design("default");
        // It is sent with the store's response, so it does not wait for another edge.
        let edge = design.clock().ns(0.5);
        check(&design, true, WRITE_NS + READ_NS - edge);
    }
}

#[test]
fn calibration_holds_in_other_designs_and_clocks() {
    for values in [
        "clock_mhz = 100",
        "clock_mhz = 300\nchannels = 4",
        "channels = 1\n[[memory]]\nname = \"local\"\nbytes = \"1 MiB\"",
    ] {
        let design = designs::design("default").with_values(values).unwrap();
        check(&design, false, READ_NS);
    }
    for name in ["engines", "guest"] {
        check(&designs::design(name), false, READ_NS);
    }
}
