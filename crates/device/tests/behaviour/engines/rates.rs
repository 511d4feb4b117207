// SPDX-License-Identifier: Apache-2.0

//! Rates of engines.

use super::*;

/// GB/s of the claims `engine.copy.rate`, `engine.scan.rate` and `engine.scan.filter` on the RTL
/// model (docs/validation.md).
const COPY_RATE: f64 = 15.43;
const SCAN_RATE: f64 = 30.60;
const FILTER_RATE: f64 = 29.79;

fn rate(engine: usize, arguments: &[u64]) -> f64 {
    let mut b = Bench::new("");
    let begin = b.host.now();
    assert_eq!(b.launch(engine, arguments), 0);
    let rate = (32 * MIB) as f64 / (b.host.now() - begin).as_ns();
    println!("engine {engine}: {rate:.2} GB/s");
    rate
}

#[test]
fn rates_of_scans_match_the_rtl_model() {
    for (kind, expected) in [(0, SCAN_RATE), (4, FILTER_RATE)] {
        let rate = rate(SCAN0, &[0, 32 * MIB, 0, (1 << 30) - 1, kind, 64 * MIB]);
        assert!((rate / expected - 1.0).abs() < 0.05, "{rate} GB/s");
    }
}

#[test]
fn rates_of_copies_match_the_rtl_model() {
    let rate = rate(COPY0, &[0, 256 * MIB, 32 * MIB]);
    assert!((rate / COPY_RATE - 1.0).abs() < 0.05, "{rate} GB/s");
}
