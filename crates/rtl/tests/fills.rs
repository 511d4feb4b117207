// SPDX-License-Identifier: Apache-2.0

//! A device that writes its zeros itself (`FillInside`); only the RTL model has it.

mod common;

use common::cuts::{lives_are_apart, whole_when_cut_off, LATE};
use design::Cpu;
use driver::{NvmeDriver, SimHost};
use rtl::MemoryModel;
use sim::Time;

const MEDIA: u64 = 1 << 30;

fn now(c: &NvmeDriver<SimHost>) -> Time {
    c.host().system().now()
}

/// A driver on that device.
fn inside(memory: Option<MemoryModel>) -> NvmeDriver<SimHost> {
    let mut config = common::fill_inside();
    config.memory = memory.unwrap_or(config.memory);
    let name = "default with ns_axi_fill";
    common::controller_of(
        name,
        config,
        MEDIA,
        testbed::driver_costs(&Cpu::default()),
        0,
    )
}

mod long {
    use super::*;

    /// Filling in the memory model takes the simulated time of the writes that `ns_axi_fill` would
    /// make.
    #[test]
    #[ignore = "compiles a separate device"]
    fn fills_take_as_long_as_writes() {
        let spans = |mut c: NvmeDriver<SimHost>| {
            [256, 1000, 4096, 65536].map(|blocks| {
                let from = now(&c);
                c.write_zeroes(777, blocks).unwrap();
                (now(&c) - from).0 as f64
            })
        };
        let written = spans(inside(None));
        let short = spans(common::controller("default", MEDIA));
        for (a, b) in written.iter().zip(&short) {
            println!(
                "{:.3} us written, {:.3} us filled, {:+.2} %",
                a / 1e6,
                b / 1e6,
                100.0 * (b / a - 1.0)
            );
        }
        for (i, (a, b)) in written.iter().zip(&short).enumerate() {
            let limit = if i < 2 { 0.05 } else { 0.01 }; // overhead counts in short fills
            assert!((b / a - 1.0).abs() < limit, "{a} ps written, {b} ps filled");
        }
    }

    #[test]
    #[ignore = "compiles a separate device"]
    fn fills_are_cut_off_inside() {
        whole_when_cut_off(inside(None));
    }

    #[test]
    #[ignore = "compiles a separate device"]
    fn fills_of_separate_lives_are_independent() {
        lives_are_apart(inside(Some(MemoryModel::Fixed(LATE))));
    }
}
