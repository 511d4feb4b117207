// SPDX-License-Identifier: Apache-2.0

//! The decoder of dictionaries.

use spec::tables::{DICTIONARY_BYTES, DICTIONARY_VALUES};

use super::*;

pub const PLAIN: u64 = 1 << 16;
pub const PACKED: u64 = 1 << 17;

/// Appends a number in 7 bits a byte.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Keys with this number of bits each.
fn bits(keys: &[u32], width: u32) -> Vec<u8> {
    let mut out = vec![0; (keys.len() * width as usize).div_ceil(8)];
    for (n, key) in keys.iter().enumerate() {
        for bit in (0..width).filter(|bit| key >> bit & 1 == 1) {
            let at = n * width as usize + bit as usize;
            out[at / 8] |= 1 << (at % 8);
        }
    }
    out
}

/// Runs of keys, as writers of Parquet may choose them.
pub fn runs(random: &mut Random, keys: &[u32], width: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < keys.len() {
        let left = &keys[at..];
        let same = left.iter().take_while(|key| **key == left[0]).count();
        if random.below(8) < same as u64 {
            let run = 1 + random.below(same as u64) as usize;
            varint(&mut out, (run as u64) << 1);
            out.extend(&left[0].to_le_bytes()[..width.div_ceil(8) as usize]);
            at += run;
        } else {
            let most = (left.len() as u64).div_ceil(8);
            let longest = pick(random, &[1, 3, 63, 10_000]);
            let groups = 1 + random.below(most.min(longest));
            let run = left.len().min(8 * groups as usize);
            varint(&mut out, groups << 1 | 1);
            let mut all = left[..run].to_vec();
            all.resize(8 * groups as usize, random.next() as u32);
            out.extend(bits(&all, width));
            at += run;
        }
    }
    out
}

/// Keys less than `entries`, often with repetitions.
pub fn keys(random: &mut Random, entries: u64, count: usize) -> Vec<u32> {
    let mut all = Vec::with_capacity(count);
    let long = pick(random, &[1, 4, 30, 500]);
    while all.len() < count {
        let key = random.below(entries) as u32;
        let run = 1 + random.below(long) as usize;
        all.resize(count.min(all.len() + run), key);
    }
    all
}

/// The values that keys stand for.
pub fn values(dict: &[u8], size: usize, keys: &[u32]) -> Vec<u8> {
    let values = keys.iter().map(|&key| &dict[key as usize * size..][..size]);
    values.flatten().copied().collect()
}

fn low(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))
}

/// How the runs end: a bit of the return value, and the number of values before.
fn ends(source: &[u8], width: u32, entries: u64, count: u64) -> (u32, u64) {
    let (mut at, mut done) = (0, 0);
    let mask = (1 << width) - 1;
    while done < count {
        let head = &source[at..];
        let stop = head.iter().take(5).position(|byte| byte & 0x80 == 0);
        let Some(stop) = stop else {
            return (TRUNCATED, done);
        };
        let bytes = head[..=stop].iter().rev();
        let head = bytes.fold(0, |v, &b| v << 7 | u64::from(b & 0x7F));
        at += stop + 1;
        let (left, length) = (count - done, head >> 1);
        if length == 0 {
            return (TRUNCATED, done);
        }
        if head & 1 == 0 {
            if length > left {
                return (OVERRUN, done);
            }
            let key = source.get(at..at + width.div_ceil(8) as usize);
            let Some(key) = key else {
                return (TRUNCATED, done);
            };
            if low(key) >= entries {
                return (BAD, done);
            }
            (at, done) = (at + key.len(), done + length);
            continue;
        }
        if length > left.div_ceil(8) {
            return (OVERRUN, done);
        }
        for _ in 0..length {
            let Some(group) = source.get(at..at + width as usize) else {
                return (TRUNCATED, done);
            };
            for n in 0..8.min(count - done) {
                let first = n as usize * width as usize;
                let bytes = &group[first / 8..group.len().min(first / 8 + 8)];
                if low(bytes) >> (first % 8) & mask >= entries {
                    return (BAD, done + n);
                }
            }
            at += width as usize;
            done = count.min(done + 8);
        }
    }
    (0, count)
}

/// Addresses of dictionary, source and target.
const DICT: u64 = 8 * MIB;
const SOURCE: u64 = 8 * MIB + MIB / 2;
const TARGET: u64 = 9 * MIB + 64;

fn decodes(b: &mut Bench, random: &mut Random, width: u32, log: u64, count: usize) {
    let size = 1usize << log;
    let most = (1u64 << width)
        .min(DICTIONARY_VALUES)
        .min(DICTIONARY_BYTES >> log);
    let entries = match random.below(3) {
        0 => most,
        _ => 1 + random.below(most.min(300)),
    };
    let dict = bytes(random, entries as usize * size);
    let keys = keys(random, entries, count);
    let (mut kind, source) = match random.below(3) {
        0 if [8, 16, 32].contains(&width) => (PACKED, bits(&keys, width)),
        _ => (0, runs(random, &keys, width)),
    };
    kind |= u64::from(width) | log << 8;
    b.store(DICT, &dict);
    b.store(SOURCE, &source);
    let more = pick(random, &[0, 0, 1, 63, 5000]);
    let len = source.len() as u64 + more;
    let job = [DICT, entries, SOURCE, len, TARGET, count as u64, kind];
    let found = b.made(DECODE, &job, (TARGET, count * size));
    assert!(found == values(&dict, size, &keys), "{job:x?}");
    assert!(b.load(DICT, dict.len()) == dict && b.load(SOURCE, source.len()) == source);
    let registers = b.registers(DECODE);
    assert_eq!(
        registers.outputs(&mut b.host, 7, 1).unwrap(),
        [count as u64]
    );
}

mod sampled {
    use super::*;

    #[test]
    fn decode_keys_of_all_widths_and_values_of_all_sizes() {
        let mut b = bench();
        let mut random = Random::new(1);
        for width in 0..=32 {
            let count = pick(&mut random, &[1, 7, 8, 9, 16, 17, 100, 1000]);
            let log = u64::from(width) % 4;
            decodes(&mut b, &mut random, width, log, count);
        }
    }

    #[test]
    fn decode_copies_plain_values() {
        let mut b = bench();
        let mut random = Random::new(2);
        for (log, count) in [(0, 1), (0, 63), (0, 65), (1, 4097), (2, 16), (3, 1000)] {
            let data = bytes(&mut random, count << log);
            b.store(SOURCE, &data);
            // A field without a meaning here may hold anything.
            let kind = PLAIN | log << 8 | random.below(33);
            let len = (data.len() as u64) + random.below(2);
            let (dict, entries) = (random.next(), random.next());
            let job = [dict, entries, SOURCE, len, TARGET, count as u64, kind];
            assert!(b.made(DECODE, &job, (TARGET, data.len())) == data);
            for short in [1, (1 << log) + 1].map(|n| (data.len() as u64).saturating_sub(n)) {
                let job = [0, 0, SOURCE, short, TARGET, count as u64, kind];
                let outputs = b.launch_outputs(DECODE, &job);
                assert_eq!(outputs, (TRUNCATED, short >> log), "{job:x?}");
                assert!(b.load(TARGET, data.len()) == data);
            }
        }
    }

    #[test]
    fn decode_refuses_wrong_columns() {
        let mut b = bench();
        let (d, s, t) = (2 * MIB, 4 * MIB, 6 * MIB);
        let far = u64::MAX - 63;
        let kind = 8 | PACKED;
        for wrong in [
            [d + 4, 9, s, 9, t, 9, kind],
            [d, 9, s + 32, 9, t, 9, kind],
            [d, 9, s, 9, t + 1, 9, kind],
            [d, 0, s, 9, t, 9, kind],
            [d, 65537, s, 9, t, 9, kind],
            [d, 1 << 32, s, 9, t, 9, kind],
            [d, 9 | 1 << 63, s, 9, t, 9, kind],
            [d, 9, s, (1 << 40) + 1, t, 9, kind],
            [d, 9, s, 9 | 1 << 63, t, 9, kind],
            [d, 9, s, 9, t, 0, kind],
            [d, 9, s, 9, t, (1 << 31) + 1, kind],
            [d, 9, s, 9, t, 9 | 1 << 32, kind],
            [d, 9, s, 9, t, 9, 33],
            [d, 9, s, 9, t, 9, 63],
            [d, 9, s, 9, t, 9, kind | 1 << 6],
            [d, 9, s, 9, t, 9, kind | 1 << 10],
            [d, 9, s, 9, t, 9, kind | 1 << 18],
            [d, 9, s, 9, t, 9, kind | 1 << 32],
            [d, 9, s, 9, t, 9, kind | 1 << 63],
            [d, 9, s, 9, t, 9, kind | PLAIN],
            [d, 9, s, 9, t, 9, PACKED],
            [d, 9, s, 9, t, 9, 7 | PACKED],
            [d, 9, s, 9, t, 9, 24 | PACKED],
            [d, 9, d, 9, t, 9, kind],
            [d, 65, d + 64, 9, t, 9, kind],
            [d, 9, s, 65, s + 64, 9, kind],
            [d, 9, s, 9, s - 64, 65, kind],
            [d, 9, s, 9, d, 9, kind],
            [d, 65, s, 9, d + 64, 9, kind],
            [far, 65, s, 9, t, 9, kind],
            [d, 9, far, 65, t, 9, kind],
            [d, 9, s, 9, far, 65, kind],
            [d, 9, s + 1, 9, t, 9, PLAIN],
            [d, 9, s, 9, s, 9, PLAIN],
        ] {
            assert_eq!(b.launch_outputs(DECODE, &wrong), (WRONG, 0), "{wrong:x?}");
            let ended = b.submit(DECODE, &wrong);
            assert_eq!(b.finish(DECODE, ended).result, WRONG, "{wrong:x?}");
        }
        b.store(d, &[0; 256]);
        b.store(s, &[0; 256]);
        for fine in [
            [d, 9, d + 64, 9, t, 9, kind],
            [d, 9, s, 9, s + 64, 9, kind],
            [d, 9, s, 9, s - 64, 9, kind],
            [d, 9, s, 0, t, 9, 0],
        ] {
            assert_eq!(b.launch_outputs(DECODE, &fine), (0, 9), "{fine:x?}");
            let ended = b.submit(DECODE, &fine);
            let ended = b.finish(DECODE, ended);
            assert_eq!((ended.result, ended.value), (0, 9));
        }
    }

    #[test]
    fn decode_reports_errors_where_they_are() {
        let mut b = bench();
        let mut random = Random::new(4);
        b.store(DICT, &bytes(&mut random, 4096));
        for (width, entries) in [(1, 1), (5, 20), (9, 300), (16, 1000), (32, 9)] {
            let keys = keys(&mut random, entries, 60);
            let source = runs(&mut random, &keys, width);
            for turn in 0..24u64 {
                let mut source = source.clone();
                let mut count = 60;
                match turn % 3 {
                    0 => source.truncate(random.below(source.len() as u64) as usize),
                    1 => {
                        let at = random.below(source.len() as u64) as usize;
                        source[at] ^= 1 << random.below(8);
                    }
                    _ => count = 1 + random.below(70),
                }
                check_reported_place(&mut b, &source, width, (entries, count));
            }
        }
        for (source, count, expected_outputs) in [
            (&[9 << 1, 5][..], 8, (OVERRUN, 0)),
            (&[8 << 1, 1, 0, 1], 9, (TRUNCATED, 8)),
            (&[1], 9, (TRUNCATED, 0)),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 1, 0], 9, (TRUNCATED, 0)),
            (&[8 << 1, 3, 8 << 1, 8], 16, (BAD, 8)),
            (&[3, 0, 1, 2, 3, 4, 5, 6, 8], 7, (0, 7)),
            (&[3, 0, 1, 2, 3, 4, 5, 6, 8], 8, (BAD, 7)),
            (&[5, 0, 1, 2, 3, 4, 5, 6, 7], 8, (OVERRUN, 0)),
            (&[5, 0, 1, 2, 3, 4, 5, 6, 7], 9, (TRUNCATED, 8)),
        ] {
            assert_eq!(ends(source, 8, 8, count), expected_outputs, "{source:?}");
            check_reported_place(&mut b, source, 8, (8, count));
        }
        // Keys without runs: the count decides.
        let source: Vec<u8> = (0..40).flat_map(|n: u16| n.to_le_bytes()).collect();
        b.store(SOURCE, &source);
        for (entries, bytes, count, expected_outputs) in [
            (40, 80, 40, (0, 40)),
            (40, 79, 40, (TRUNCATED, 39)),
            (40, 1, 40, (TRUNCATED, 0)),
            (40, 0, 40, (TRUNCATED, 0)),
            (30, 80, 40, (BAD, 30)),
            (30, 10, 40, (TRUNCATED, 5)),
            (30, 80, 30, (0, 30)),
        ] {
            let job = [DICT, entries, SOURCE, bytes, TARGET, count, 16 | PACKED];
            assert_eq!(
                b.launch_outputs(DECODE, &job),
                expected_outputs,
                "{entries} {bytes} {count}"
            );
        }
    }

    #[test]
    fn decode_stays_within_its_bounds() {
        let mut b = bench();
        let fence = Fence::new(&mut b);
        let mut random = Random::new(5);
        let (d, s, t) = (3 * MIB, 4 * MIB, 6 * MIB);
        b.store(s, &[0; 8192]);
        b.store(REACH.end - 64, &[0; 64]);
        for (dict, src, dst, expected_outputs) in [
            (0, s, t, (READ, Some(0))),
            (REACH.start - 64, s, t, (READ, Some(0))),
            (REACH.end - 64, s, t, (READ, Some(0))),
            (LOCAL + MIB - 64, s, t, (READ, Some(0))),
            (1 << 63, s, t, (READ, Some(0))),
            (d, 0, t, (READ, Some(0))),
            (d, REACH.start - 4096, t, (READ, Some(0))),
            (d, REACH.end, t, (READ, Some(0))),
            (d, REACH.end - 4096, t, (READ, Some(4096))),
            (d, 1 << 62, t, (READ, Some(0))),
            (d, s, 0, (WRITE, Some(5000))),
            (d, s, REACH.end - 4096, (WRITE, Some(5000))),
            (d, s, MEDIA - 8192, (WRITE, Some(5000))),
            (d, s, 1 << 62, (WRITE, Some(5000))),
        ] {
            if src == REACH.end - 4096 {
                b.store(src, &[0; 4096]);
            }
            let what = format!("{dict:#x} {src:#x} {dst:#x}");
            let job = [dict, 200, src, 5000, dst, 5000, 8 | PACKED];
            let (result, position) = b.launch_outputs(DECODE, &job);
            assert_eq!((result, Some(position)), expected_outputs, "{what}");
            fence.check(&mut b, &what);
            decodes(&mut b, &mut random, 3, 2, 50);
        }
        // Ranges that end at 2^64 do not wrap.
        let far = u64::MAX - 63;
        let job = [d, 64, far, 64, t, 64, 8 | PACKED];
        assert_eq!(b.launch_outputs(DECODE, &job), (READ, 0));
        let job = [d, 9, s, 64, far, 64, 8 | PACKED];
        assert_eq!(b.launch_outputs(DECODE, &job), (WRITE, 64));
        let job = [far, 64, s, 64, t, 64, 8 | PACKED];
        assert_eq!(b.launch_outputs(DECODE, &job), (READ, 0));
        fence.check(&mut b, "2^64");
        // Ranges that are not needed may be anywhere.
        let job = [d, 9, REACH.end - 64, 5000, t, 64, 8 | PACKED];
        assert_eq!(b.launch_outputs(DECODE, &job), (0, 64));
        // So may anything after the last run, however near. A header that lacks something is
        // reported at its run.
        for here in 1..12 {
            let mut source = Vec::new();
            (0..(64 - here) % 2).for_each(|_| source.extend([0x80 | 2, 0, 7]));
            (0..(64 - source.len() - here) / 2).for_each(|_| source.extend([2, 7]));
            let values = source.len() as u64 / 2;
            source.extend([0xE0, 0xD4, 3, 8]); // 30,000 times
            source.resize(64, 0xFF); // a length that continues, or is too long
            b.store(REACH.end - 64, &source);
            let all = values + 30_000;
            let expected_outputs = match here {
                ..4 => [(READ, values); 2],
                4..9 => [(0, all), (READ, all)],
                _ => [(0, all), (TRUNCATED, all)],
            };
            for (more, expected_outputs) in (0..).zip(expected_outputs) {
                let job = [d, 9, REACH.end - 64, 5000, t, values + 30_000 + more, 8];
                assert_eq!(
                    b.launch_outputs(DECODE, &job),
                    expected_outputs,
                    "{here} {more}"
                );
            }
        }
        fence.check(&mut b, "runs");
    }
}

fn check_reported_place(b: &mut Bench, source: &[u8], width: u32, (entries, count): (u64, u64)) {
    // Other bytes follow it.
    let mut all = source.to_vec();
    all.resize(source.len() + 64, 0x55);
    b.store(SOURCE, &all);
    let bytes = source.len() as u64;
    let job = [DICT, entries, SOURCE, bytes, TARGET, count, width.into()];
    let outputs = b.launch_outputs(DECODE, &job);
    let expected = ends(source, width, entries, count);
    assert_eq!(outputs, expected, "{job:x?} {source:x?}");
}

#[test]
fn decode_columns_of_all_kinds() {
    let mut b = bench();
    let mut random = Random::new(6);
    for turn in 0..150u64 {
        let width = random.below(33) as u32;
        let most = [30, 300, 5000, 60_000][turn as usize % 4];
        let count = 1 + random.below(most) as usize;
        decodes(&mut b, &mut random, width, turn % 4, count);
    }
}

#[test]
fn decode_of_noise_ends() {
    let mut b = bench();
    let mut random = Random::new(7);
    b.store(DICT, &bytes(&mut random, 65536));
    for _ in 0..400 {
        let width = 1 + random.below(32) as u32;
        let entries = 1 + random.below(1 << width.min(16));
        let len = pick(&mut random, &[0, 1, 10, 100, 700]);
        let mut source = bytes(&mut random, len);
        // Lengths that fit.
        for at in (0..len).step_by(1 + random.below(12) as usize) {
            source[at] &= 0x1F;
        }
        let count = 1 + random.below(2000);
        check_reported_place(&mut b, &source, width, (entries, count));
    }
}

#[test]
fn decode_can_be_stopped() {
    let mut b = bench();
    let mut random = Random::new(8);
    let keys = keys(&mut random, 1000, 150_000);
    let source = runs(&mut random, &keys, 10);
    let dict = bytes(&mut random, 8000);
    let (d, s, t) = (2 * MIB, 3 * MIB, 5 * MIB);
    b.store(d, &dict);
    b.store(s, &source);
    let len = source.len() as u64;
    let job = [d, 1000, s, len, t, keys.len() as u64, 10 | 3 << 8];
    let registers = b.registers(DECODE);
    let mut halted = 0;
    let rounds = common::rounds(40, 6);
    for n in 0..rounds {
        b.start(DECODE, &job);
        b.pass(n * 100_000 / rounds + random.below(300));
        registers.stop(&mut b.host).unwrap();
        let result = b.wait(DECODE);
        assert!([0, HALT].contains(&result), "{n}: {result}");
        halted += u32::from(result == HALT);
        decodes(&mut b, &mut random, 7, n % 4, 99);
    }
    assert!(halted > 3);
    assert!(b.load(s, source.len()) == source && b.load(d, 8000) == dict);
    assert_eq!(b.launch(DECODE, &job), 0);
    let expected = values(&dict, 8, &keys);
    assert!(b.load(t, expected.len()) == expected);
}
