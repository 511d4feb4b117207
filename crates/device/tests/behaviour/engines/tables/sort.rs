// SPDX-License-Identifier: Apache-2.0

//! The sorter.

use super::*;

/// Records that one pass sorts.
pub use spec::tables::ONE_PASS_KEYS as CHUNK;
/// A bit of `kind`: runs are merged in pairs.
const PAIRS: u64 = 1 << 6;

pub fn key_bytes(kind: u64) -> usize {
    4 << (kind & 3)
}

/// Bytes of an output record.
pub fn out_bytes(kind: u64) -> usize {
    match kind & 32 {
        0 => 2 * key_bytes(kind),
        _ => 4,
    }
}

/// Keys, some of them equal, some of them at the limits of the orders.
pub fn keys(random: &mut Random, kind: u64, count: usize) -> Vec<u8> {
    let len = key_bytes(kind);
    let spread = pick(random, &[1, 3, 100, u64::MAX]);
    let mut all = Vec::with_capacity(count * len);
    for _ in 0..count {
        let edge = pick(random, &[0, 1, 2, 0x7F, 0x80, 0xFF]);
        let mut key = vec![if edge & 1 == 0 { 0 } else { 0xFF }; len];
        match random.below(4) {
            0 => key[len - 1] = edge,
            1 => key[..4].copy_from_slice(&(random.below(spread) as u32).to_le_bytes()),
            _ => key = (0..len).map(|_| random.below(256) as u8).collect(),
        }
        if spread < 100 {
            key[..len - 1].fill(0);
            key[0] = random.below(spread) as u8;
        }
        all.extend(key);
    }
    all
}

/// A number whose order is that of the key.
fn rank(kind: u64, key: &[u8]) -> i128 {
    let value = key.iter().rev().fold(0, |v: u128, &b| v << 8 | b as u128);
    let above = 128 - 8 * key.len() as u32;
    let signed = (value << above) as i128 >> above;
    match kind >> 2 & 3 {
        0 => (value ^ 1 << 127) as i128,
        1 => signed,
        // Of two negative keys, the one with the larger magnitude is less.
        _ if signed < 0 => signed ^ i128::MAX,
        _ => signed,
    }
}

/// The expected output of the sorter.
pub fn sorted(kind: u64, keys: &[u8]) -> Vec<u8> {
    let len = key_bytes(kind);
    let mut all: Vec<(usize, &[u8])> = keys.chunks(len).enumerate().collect();
    all.sort_by(|(_, a), (_, b)| {
        let order = rank(kind, a).cmp(&rank(kind, b));
        match kind & 16 {
            0 => order,
            _ => order.reverse(),
        }
    });
    let mut out = Vec::with_capacity(all.len() * out_bytes(kind));
    for (index, key) in all {
        let begin = out.len();
        if kind & 32 == 0 {
            out.extend_from_slice(key);
        }
        out.extend((index as u32).to_le_bytes());
        out.resize(begin + out_bytes(kind), 0);
    }
    out
}

fn kinds() -> impl Iterator<Item = u64> {
    (0..128).filter(|kind| kind & 3 < 3 && kind >> 2 & 3 < 3)
}

fn sorts(b: &mut Bench, random: &mut Random, kind: u64, count: u64) {
    let keys = keys(random, kind, count as usize);
    let src = 8 * MIB + 64 * random.below(4096);
    let dst = pick(random, &[9 * MIB, LOCAL]) + 64 * (1 + random.below(4096));
    b.store(src, &keys);
    let expected = sorted(kind, &keys);
    // The scratch address does not matter.
    let arguments = [src, dst, src + 3, count, kind];
    let found = b.made(SORT, &arguments, (dst, expected.len()));
    assert!(found == expected, "{kind:#x} {count}");
    assert!(b.load(src, keys.len()) == keys, "{kind:#x} {count}: source");
}

mod sampled {
    use super::*;

    #[test]
    fn sort_columns_of_all_kinds() {
        let mut b = bench();
        let mut random = Random::new(1);
        for (n, kind) in kinds().enumerate() {
            let counts = [1, 7, 8, 9, 15, 63, 64, 65, 100, 129, 300, 1025];
            sorts(&mut b, &mut random, kind, counts[n % counts.len()]);
        }
        sorts(&mut b, &mut random, 0, 2049);
        let registers = b.registers(SORT);
        let outputs = registers.outputs(&mut b.host, 5, 1).unwrap();
        assert_eq!(outputs, [1], "passes");
    }

    #[test]
    fn sort_refuses_wrong_columns() {
        let mut b = bench();
        let a = REACH.start;
        let far = u64::MAX - 63;
        let two = CHUNK + 1;
        for wrong in [
            [a + 4, 4 * MIB, 0, 9, 0],
            [a, 4 * MIB + 32, 0, 9, 0],
            [a, 4 * MIB, 6 * MIB + 8, two, 0],
            [a, 4 * MIB, 0, 0, 0],
            [a, 4 * MIB, 0, (1 << 31) + 1, 0],
            [a, 4 * MIB, 0, 1 << 32, 0],
            [a, 4 * MIB, 0, 9 | 1 << 63, 0],
            [a, 4 * MIB, 0, 9, 3],
            [a, 4 * MIB, 0, 9, 3 << 2],
            [a, 4 * MIB, 0, 9, 1 << 7],
            [a, 4 * MIB, 0, 9, 1 << 32],
            [a, 4 * MIB, 0, 9, 1 << 63],
            [a, a, 0, 9, 0],
            [a, a + 64, 0, 17, 0],
            [a + 64, a, 0, 9, 0],
            [a, a + 4 * CHUNK, 6 * MIB, two, 0],
            [a, 4 * MIB, a, two, 0],
            [a, 4 * MIB, 4 * MIB + CHUNK * 8, two, 0],
            [a, 4 * MIB + CHUNK * 8, 4 * MIB, two, 32],
            [far, 4 * MIB, 0, 17, 0],
            [a, far, 0, 9, 0],
            [a, 4 * MIB, far, two, 0],
            [far, 0, 0, 1 << 31, 0],
        ] {
            assert_eq!(b.launch(SORT, &wrong), WRONG, "{wrong:x?}");
            let ended = b.submit(SORT, &wrong);
            assert_eq!(b.finish(SORT, ended).result, WRONG, "{wrong:x?}");
        }
        // Adjacent ranges, with 16 and with 8 keys in a line.
        for fine in [[a, a + 64, 3, 16, 0], [a + 64, a, 3, 8, 0]] {
            assert_eq!(b.launch_outputs(SORT, &fine), (0, 1), "{fine:x?}");
            let ended = b.submit(SORT, &fine);
            let ended = b.finish(SORT, ended);
            assert_eq!((ended.result, ended.value), (0, 1));
        }
    }

    /// The sort ends soon, however much it had left to write.
    #[test]
    fn sort_ends_soon_on_stop_and_error() {
        let mut b = bench();
        let mut random = Random::new(2);
        let count = 120_000;
        let column = keys(&mut random, 0, count as usize);
        b.store(2 * MIB, &column);
        for (src, result) in [(2 * MIB, HALT), (1 << 63, READ)] {
            for after in [1000, 4000, 30_000] {
                b.start(SORT, &[src, 4 * MIB, 7 * MIB, count, 0]);
                let begin = b.host.now();
                if result == HALT {
                    b.pass(after);
                    let registers = b.registers(SORT);
                    registers.stop(&mut b.host).unwrap();
                }
                assert_eq!(b.wait(SORT), result, "{after}");
                let took = (b.host.now() - begin).as_ns();
                let most = if result == HALT { after as f64 } else { 0.0 } + 8000.0;
                assert!(took < most, "{after}: {took} ns");
            }
        }
        // The output follows all keys of a chunk. Pairs of chunks would take two more passes.
        let mut took = |count, kind, dst, tmp, result| {
            let begin = b.host.now();
            assert_eq!(b.launch(SORT, &[2 * MIB, dst, tmp, count, kind]), result);
            (b.host.now() - begin).as_ns()
        };
        let whole = took(count, 0, 4 * MIB, 0, 0);
        let lost = took(count, 0, 1 << 62, 0, WRITE);
        assert!(lost < 0.8 * whole, "{lost} of {whole} ns");
        let lost = took(3 * CHUNK, PAIRS, 4 * MIB, 1 << 62, WRITE);
        assert!(lost < 5.5 * whole, "{lost}, {whole} ns");
    }

    #[test]
    fn sort_stays_within_its_bounds() {
        let mut b = bench();
        let fence = Fence::new(&mut b);
        let mut random = Random::new(3);
        let a = 4 * MIB;
        for (src, dst, count, wrong) in [
            (0, a, 100, READ),
            (REACH.start - 64, a, 100, READ),
            (REACH.end - 64, a, 17, READ),
            (REACH.end - 8192, a, 4000, READ),
            (REACH.end, a, 1, READ),
            (LOCAL + MIB - 64, a, 17, READ),
            (1 << 63, a, 17, READ),
            (a, 0, 100, WRITE),
            (a, REACH.start - 64, 9, WRITE),
            (a, REACH.end - 64, 9, WRITE),
            (a, REACH.end - 4096, 1000, WRITE),
            (a, MEDIA - 4096, 300, WRITE),
            (a, LOCAL + MIB - 64, 9, WRITE),
            (a, 1 << 62, 9, WRITE),
            // Ranges that end at 2^64 do not wrap.
            (u64::MAX - 63, a, 16, READ),
            (a, u64::MAX - 63, 8, WRITE),
        ] {
            let what = format!("{src:#x} {dst:#x} {count}");
            assert_eq!(b.launch(SORT, &[src, dst, 0, count, 0]), wrong, "{what}");
            fence.check(&mut b, &what);
            sorts(&mut b, &mut random, 0, 50);
        }
        // Neither exists, and the target ends at 2^64; the host may learn of that instead.
        for count in [8, 1000, 4000] {
            let dst = 0u64.wrapping_sub(8 * count);
            let result = b.launch(SORT, &[1 << 63, dst, 0, count, 0]);
            assert_eq!(result & !WRITE, READ, "{count}");
            b.start(SORT, &[a, dst, 0, count, 0]);
            let registers = b.registers(SORT);
            registers.stop(&mut b.host).unwrap();
            assert_ne!(b.wait(SORT) & (HALT | WRITE), 0, "{count}");
        }
        // Both limits are included.
        let keys = keys(&mut random, 0, 16);
        b.store(REACH.end - 64, &keys);
        let edge = [REACH.end - 64, REACH.start, 0, 16, 0];
        assert_eq!(b.launch(SORT, &edge), 0);
        assert!(b.load(REACH.start, 128) == sorted(0, &keys));
        fence.check(&mut b, "edges");
    }
}

#[test]
fn sort_columns_of_all_lengths() {
    let mut b = bench();
    let mut random = Random::new(5);
    for turn in 0..60 {
        let kind = pick(&mut random, &kinds().collect::<Vec<_>>());
        let most = [70, 600, 2050, 20_000][turn % 4];
        let count = 1 + random.below(most);
        sorts(&mut b, &mut random, kind, count);
    }
}

#[test]
#[ignore = "takes seconds"]
fn sort_needs_two_passes_beyond_one() {
    let mut b = bench();
    let mut random = Random::new(6);
    for (count, kind) in [
        (CHUNK, 0),
        (CHUNK + 1, 0),
        (CHUNK + 1, 32),
        (200_001, 4),
        (5 * CHUNK / 2, 32 | 16 | 8),
        (CHUNK + 77, 1 | 4),
        (CHUNK + 1, PAIRS),
        (2 * CHUNK, PAIRS | 32),
    ] {
        let keys = keys(&mut random, kind, count as usize);
        // Chunks and runs begin anywhere within a burst.
        let mut near = |at: u64| at - 64 * (1 + random.below(100));
        let (src, dst, tmp) = (near(3 * MIB), near(5 * MIB), near(7 * MIB));
        b.store(src, &keys);
        let expected = sorted(kind, &keys);
        let found = b.made(SORT, &[src, dst, tmp, count, kind], (dst, expected.len()));
        assert!(found == expected, "{count} {kind:#x}");
        assert!(b.load(src, keys.len()) == keys);
        let registers = b.registers(SORT);
        let outputs = registers.outputs(&mut b.host, 5, 1).unwrap();
        assert_eq!(outputs, [1 + u64::from(count > CHUNK)], "passes");
    }
    // Its scratch is out of reach.
    let fence = Fence::new(&mut b);
    for tmp in [0, REACH.end, REACH.end - MIB, 1 << 40] {
        let result = b.launch(SORT, &[2 * MIB, 4 * MIB, tmp, CHUNK + 1, 0]);
        assert_eq!(result & (WRITE | WRONG | HALT), WRITE, "{tmp:#x}");
        fence.check(&mut b, "scratch");
        sorts(&mut b, &mut random, 0, 500);
    }
}

#[test]
#[ignore = "takes seconds"]
fn sort_merges_runs_in_pairs() {
    let values = "media.bytes = \"128 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\", \"100 MiB\"]";
    let mut b = Bench::of(&designs::tables().with_values(values).unwrap());
    let mut random = Random::new(7);
    let (src, dst, tmp) = (2 * MIB, 16 * MIB, 48 * MIB);
    for (count, kind, passes) in [
        (2 * CHUNK + 1, 0, 3),
        (3 * CHUNK - 5, 32, 3),
        (4 * CHUNK, 32 | 16, 3),
        (5 * CHUNK + 77, 32 | 1, 4),
    ] {
        let kind = kind | PAIRS;
        let keys = keys(&mut random, kind, count as usize);
        b.store(src, &keys);
        let outputs = b.launch_outputs(SORT, &[src, dst, tmp, count, kind]);
        assert_eq!(outputs, (0, passes), "{count}");
        let expected = sorted(kind, &keys);
        assert!(b.load(dst, expected.len()) == expected, "{count} {kind:#x}");
    }
    // With three passes the target holds intermediate records.
    let near = [src, dst, dst + 4 * (2 * CHUNK + 64), 2 * CHUNK + 1, 32];
    assert_eq!(b.launch(SORT, &near), 0);
    let pairs = [near[0], near[1], near[2], near[3], near[4] | PAIRS];
    assert_eq!(b.launch(SORT, &pairs), WRONG);
}

#[test]
fn sort_can_be_stopped() {
    let mut b = bench();
    let mut random = Random::new(9);
    let count = 140_000u64;
    let column = keys(&mut random, 0, count as usize);
    b.store(2 * MIB, &column);
    let long = [2 * MIB, 4 * MIB, 7 * MIB, count, 0];
    let registers = b.registers(SORT);
    let mut halted = 0;
    let rounds = common::rounds(60, 8);
    for n in 0..rounds {
        b.start(SORT, &long);
        b.pass(n * 170_000 / rounds + random.below(500));
        registers.stop(&mut b.host).unwrap();
        let result = b.wait(SORT);
        assert!([0, HALT].contains(&result), "{n}: {result}");
        halted += u32::from(result == HALT);
        sorts(&mut b, &mut random, 0, 40);
    }
    assert!(halted > 3);
    assert!(b.load(2 * MIB, column.len()) == column);
    // A stop in the cycle of the start.
    b.start(SORT, &long);
    registers.stop(&mut b.host).unwrap();
    b.wait(SORT);
    b.set(registers.base + 0xC, 1);
    b.set(registers.base, 3);
    assert_eq!(b.wait(SORT), HALT);
    assert_eq!(b.launch(SORT, &long), 0);
    assert!(b.load(4 * MIB, 8 * count as usize) == sorted(0, &column));
}

mod long {
    use super::*;

    #[test]
    #[ignore = "three passes: 8 Mi keys"]
    fn sort_needs_three_passes_beyond_two() {
        let values = "media.bytes = \"512 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\", \"500 MiB\"]";
        let mut b = Bench::of(&designs::tables().with_values(values).unwrap());
        let mut random = Random::new(8);
        let (count, kind) = (64 * CHUNK + 9, 32);
        let keys: Vec<u8> = (0..count)
            .flat_map(|_| (random.next() as u32 >> 7).to_le_bytes())
            .collect();
        let (src, dst, tmp) = (2 * MIB, 64 * MIB, 256 * MIB);
        b.store(src, &keys);
        assert_eq!(
            b.launch_outputs(SORT, &[src, dst, tmp, count, kind]),
            (0, 3)
        );
        let expected = sorted(kind, &keys);
        assert!(b.load(dst, expected.len()) == expected);
    }
}
