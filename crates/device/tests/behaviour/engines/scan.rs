// SPDX-License-Identifier: Apache-2.0

//! Scans: counts and bitmaps of values of all kinds.

use sim::{Random, Time};

use super::*;

/// Bits of the return value.
pub const SCAN_READ_ERROR: u32 = 1;
const SCAN_STOPPED: u32 = 2;
pub const SCAN_INVALID: u32 = 4;
const SCAN_WRITE_ERROR: u32 = 8;

/// The values at which comparisons of a kind may go wrong: 0 u32, 1 u64, 2 i32, 3 i64.
fn edges(kind: u64) -> Vec<i128> {
    let bits = if kind & 1 == 1 { 64 } else { 32 };
    let (low, high): (i128, i128) = match kind & 2 {
        2 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    };
    let words = [1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) - 1, -(1 << 32)];
    let mut near = vec![low, low + 1, -1, 0, 1, high - 1, high];
    near.extend(words);
    near.retain(|value| (low..=high).contains(value));
    near
}

/// Values of a kind, and their bytes.
pub fn values(random: &mut Random, kind: u64, count: usize) -> (Vec<i128>, Vec<u8>) {
    let edges = edges(kind);
    let size = if kind & 1 == 1 { 8 } else { 4 };
    let values: Vec<i128> = (0..count)
        .map(|_| {
            edges[random.below(edges.len() as u64) as usize] / (1 + 2 * random.below(2)) as i128
        })
        .collect();
    let bytes = values
        .iter()
        .flat_map(|v| v.to_le_bytes().into_iter().take(size));
    let bytes = bytes.collect();
    (values, bytes)
}

/// Bit n, from the lowest bit of the first byte on: value n is between the bounds.
pub fn bitmap(values: &[i128], low: i128, high: i128) -> Vec<u8> {
    let byte = |eight: &[i128]| {
        let bits = (0..).zip(eight);
        bits.fold(0, |b, (n, v)| b | u8::from((low..=high).contains(v)) << n)
    };
    values.chunks(8).map(byte).collect()
}

mod sampled {
    use super::*;

    #[test]
    fn scan_counts_values_of_all_kinds() {
        let mut b = Bench::new("");
        for kind in 0..4 {
            let mut random = Random::new(kind);
            let size = if kind & 1 == 1 { 8 } else { 4 };
            let (values, data) = values(&mut random, kind, 40_000 / size as usize);
            let base = 7 * MIB - 20_000 / size * size;
            b.store(base, &data);
            let all = values.len() as u64;
            let mut spans = vec![(0, all), (0, 1), (all - 1, all)];
            for turn in 0..40 {
                let first = random.below(all);
                let most = [1, 2, 16, 64, 1024, all][turn % 6];
                spans.push((first, all.min(first + 1 + random.below(most))));
            }
            let edges = edges(kind);
            for (first, limit) in spans {
                let mut draw = || edges[random.below(edges.len() as u64) as usize];
                let (low, high) = (draw(), draw());
                // With 32 bits the upper half of a bound has no meaning.
                let mut bound = |v: i128| match size {
                    8 => v as u64,
                    _ => u64::from(v as u32) | random.below(1 << 32) << 32,
                };
                let range = ScanRange {
                    src: base + first * size,
                    bytes: (limit - first) * size,
                    low: bound(low),
                    high: bound(high),
                    kind,
                    dst: 0,
                };
                let part = &values[first as usize..limit as usize];
                let expected = part.iter().filter(|v| (low..=high).contains(v)).count();
                assert_eq!(
                    b.scan(range),
                    (0, expected as u64),
                    "{kind} {first} {limit}"
                );
            }
        }
    }
}

#[test]
fn scan_writes_bitmaps_of_all_kinds() {
    for granule in ["4 KiB", "8 KiB"] {
        let mut b = Bench::new(&format!("granule = \"{granule}\""));
        for kind in 0..4 {
            let mut random = Random::new(kind);
            let size = if kind & 1 == 1 { 8 } else { 4 };
            let room = 100_000 / size;
            let (values, data) = values(&mut random, kind, room as usize);
            let edges = edges(kind);
            let base = 7 * MIB;
            b.store(base, &data);
            for turn in 0..40 {
                let first = random.below(room) * size / 64 * 64 / size;
                let most = [1, 2, 8, 16, 17, 1024, 5000, room][turn % 8];
                let limit = room.min(first + 1 + random.below(most));
                let mut draw = || edges[random.below(edges.len() as u64) as usize];
                let (one, other) = (draw(), draw());
                let (low, high) = (one.min(other), one.max(other));
                let odd = if size == 8 { 1 } else { 2 };
                let dst = 20 * MIB + 100 + random.below(20_000 / odd) * odd;
                let expected = bitmap(&values[first as usize..limit as usize], low, high);
                let around = bytes(&mut random, expected.len() + 200);
                b.store(dst - 100, &around);
                let range = ScanRange {
                    src: base + first * size,
                    bytes: (limit - first) * size,
                    low: low as u64,
                    high: high as u64,
                    kind: kind | 4,
                    dst,
                };
                let count = expected.iter().map(|b| b.count_ones() as u64).sum();
                assert_eq!(b.scan(range), (0, count));
                let found = b.load(dst - 100, around.len());
                // With 32 bits the last byte may be a zero one.
                let written = expected.len() + usize::from(size == 4) * (expected.len() % 2);
                assert!(
                    found[100..100 + expected.len()] == expected,
                    "{first} {limit} {dst:#x}"
                );
                assert!(found[100 + expected.len()..100 + written]
                    .iter()
                    .all(|b| *b == 0));
                assert!(found[..100] == around[..100]);
                assert!(found[100 + written..] == around[100 + written..]);
            }
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn scan_refuses_wrong_ranges_and_still_works() {
    let mut b = Bench::new("");
    let end = 1024 * MIB;
    let range = |src, bytes, kind, dst| ScanRange {
        src,
        bytes,
        high: u64::MAX,
        kind,
        dst,
        ..ScanRange::default()
    };
    for (range, wrong) in [
        (range(0, 0, 0, 0), SCAN_INVALID),
        (range(2, 64, 0, 0), SCAN_INVALID),
        (range(0, 6, 0, 0), SCAN_INVALID),
        (range(4, 64, 1, 0), SCAN_INVALID),
        (range(0, 12, 3, 0), SCAN_INVALID),
        (range(0, 64, 8, 0), SCAN_INVALID),
        (range(0, 64, 1 << 32, 0), SCAN_INVALID),
        (range(u64::MAX - 63, 128, 0, 0), SCAN_INVALID),
        (range(8, u64::MAX - 7, 0, 0), SCAN_READ_ERROR), // ends at 2^64
        (range(0, u64::MAX - 3, 0, 0), SCAN_READ_ERROR),
        (range(u64::MAX - 63, 64, 0, 0), SCAN_READ_ERROR),
        (range(1 << 63, 8192, 0, 0), SCAN_READ_ERROR),
        (range(end, 4, 0, 0), SCAN_READ_ERROR),
        (range(end - 64, 128, 0, 0), SCAN_READ_ERROR),
        // Bitmaps.
        (range(32, 128, 4, 0), SCAN_INVALID),
        (range(0, 128, 4, 1), SCAN_INVALID),
        (range(0, 128, 4, u64::MAX - 1), SCAN_INVALID), // 4 bytes from there on
        (range(0, 128, 4, u64::MAX - 3), SCAN_WRITE_ERROR), // up to 2^64
        (range(0, 128, 4, end - 2), SCAN_WRITE_ERROR),
        (range(0, 128, 4, 1 << 63), SCAN_WRITE_ERROR),
    ] {
        if range.bytes > 1 << 40 && range.src == 0 {
            // All of the media, up to its end.
            b.start(SCAN0, &range.arguments());
            let registers = b.registers(SCAN0);
            registers.stop(&mut b.host).unwrap();
            assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
            continue;
        }
        let wide = |result| {
            if range.src == 8 {
                SCAN_READ_ERROR
            } else {
                result
            }
        };
        let (result, count) = b.scan(range);
        assert_eq!(wide(result), wrong, "{:x?}", range.arguments());
        assert!(wrong != SCAN_INVALID || count == 0);
        let fine = b.scan(ScanRange {
            src: end - 4096,
            bytes: 4096,
            high: u64::MAX,
            kind: 1,
            ..ScanRange::default()
        });
        assert_eq!(fine, (0, 512));
    }
    let last = range(0, 256, 4, end - 8);
    assert_eq!(b.scan(last), (0, 64));
    assert_eq!(b.load(end - 8, 8), [0xFF; 8]);
}

#[test]
fn scan_can_be_stopped() {
    let mut b = Bench::new("granule = \"8 KiB\"");
    let whole = ScanRange {
        bytes: 512 * MIB,
        ..ScanRange::default()
    };
    let registers = b.registers(SCAN0);
    b.start(SCAN0, &whole.arguments());
    registers.stop(&mut b.host).unwrap();
    assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
    registers.stop(&mut b.host).unwrap(); // a stop without effect
                                          // A stopped bitmap leaves nothing for the next one.
    b.store(32 * MIB, &[0xA5; 4096]);
    for n in 0..12 {
        let long = ScanRange {
            bytes: 16 * MIB,
            kind: 4,
            dst: 48 * MIB + 2 + 4 * n,
            ..ScanRange::default()
        };
        b.start(SCAN0, &long.arguments());
        let until = b.host.now() + Time::ns(2000 + 137 * n);
        while b.host.now() < until {
            b.host.wait(until).unwrap();
        }
        registers.stop(&mut b.host).unwrap();
        assert_eq!(b.wait(SCAN0), SCAN_STOPPED);
        let place = 32 * MIB + 128 * n;
        let short = ScanRange {
            bytes: 64,
            kind: 4,
            dst: place + 6,
            ..ScanRange::default()
        };
        assert_eq!(b.scan(short), (0, 16));
        let mut expected = [0xA5; 128];
        expected[6..8].fill(0xFF);
        assert_eq!(b.load(place, 128), expected);
    }
}
