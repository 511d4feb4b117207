// SPDX-License-Identifier: Apache-2.0

//! The gatherer of rows.

use super::*;

/// Indexes as a list holds them.
pub fn list(random: &mut Random, indexes: &[u32], kind: u64) -> Vec<u8> {
    let each = 4usize << kind;
    let mut all = bytes(random, each * indexes.len());
    let at = if kind == 0 { 0 } else { each / 2 };
    for (place, index) in all.chunks_mut(each).zip(indexes) {
        place[at..at + 4].copy_from_slice(&index.to_le_bytes());
    }
    all
}

/// The rows that a list names.
pub fn gathered(table: &[u8], row: usize, indexes: &[u32]) -> Vec<u8> {
    let rows = indexes.iter().map(|&n| &table[n as usize * row..][..row]);
    rows.flatten().copied().collect()
}

fn shuffles(b: &mut Bench, random: &mut Random, row: usize, (rows, count): (usize, usize)) {
    let kind = random.below(4);
    let indexes: Vec<u32> = (0..count)
        .map(|_| random.below(rows as u64) as u32)
        .collect();
    let list = list(random, &indexes, kind);
    let table = bytes(random, row * rows);
    let at = 8 * MIB + 64 * random.below(1000);
    let src = pick(random, &[8 * MIB + MIB / 2, LOCAL]) + random.below(5000);
    let dst = 9 * MIB + MIB / 4 + random.below(5000);
    b.store(at, &list);
    b.store(src, &table);
    let [c, r, n] = [count, row, rows].map(|n| n as u64);
    let arguments = [at, src, dst, c, r, n, kind];
    let found = b.made(SHUFFLE, &arguments, (dst, row * count));
    assert!(found == gathered(&table, row, &indexes), "{arguments:x?}");
    assert!(b.load(src, table.len()) == table && b.load(at, list.len()) == list);
    let registers = b.registers(SHUFFLE);
    assert_eq!(registers.outputs(&mut b.host, 7, 1).unwrap(), [c]);
}

mod sampled {
    use super::*;

    /// A list may have space for more than any memory holds. It ends at the first index out of
    /// range.
    #[test]
    fn gather_reads_the_longest_lists() {
        let mut b = bench();
        b.store(2 * MIB, &[0; 4096]);
        b.store(2 * MIB + 2048, &[0xFF; 64]);
        for (count, kind) in (0..4).flat_map(|kind| [(1 << 31, kind), ((1 << 30) + 1, kind)]) {
            b.start(SHUFFLE, &[2 * MIB, 9 * MIB, 1 << 40, count, 1, 50, kind]);
            b.pass(100_000);
            let registers = b.registers(SHUFFLE);
            assert_eq!(
                b.word(registers.base) >> 2 & 1,
                1,
                "{count:#x} {kind}: idle"
            );
            assert_ne!(b.word(registers.base + 0x10), 0, "{count:#x} {kind}");
        }
    }

    #[test]
    fn gather_rows_of_all_sizes() {
        let mut b = bench();
        let mut random = Random::new(1);
        for row in [1, 3, 4, 8, 63, 64, 65, 100, 256, 4096, 5001] {
            let count = 1 + random.below(12_000 / row as u64 + 2).min(200) as usize;
            let rows = 1 + random.below(40_000 / row as u64).min(300) as usize;
            shuffles(&mut b, &mut random, row, (rows, count));
        }
    }

    #[test]
    fn gather_refuses_wrong_rows() {
        let mut b = bench();
        let (l, s, d) = (3 * MIB, 4 * MIB, 7 * MIB);
        let far = u64::MAX - 63;
        for wrong in [
            [l + 4, s, d, 9, 9, 9, 0],
            [l + 32, s, d, 9, 9, 9, 2],
            [l, s, d, 0, 9, 9, 0],
            [l, s, d, (1 << 31) + 1, 1, 9, 0],
            [l, s, d, 1 << 32, 9, 9, 0],
            [l, s, d, 9 | 1 << 63, 9, 9, 0],
            [l, s, d, 9, 0, 9, 0],
            [l, s, d, 9, 65537, 9, 0],
            [l, s, d, 9, 1 << 32, 9, 0],
            [l, s, d, 9, 9 | 1 << 63, 9, 0],
            [l, s, d, 9, 9, 0, 0],
            [l, s, d, 9, 9, 1 << 32, 0],
            [l, s, d, 9, 9, 9 | 1 << 63, 0],
            [l, s, d, 9, 9, 9, 4],
            [l, s, d, 9, 9, 9, 1 << 31],
            [l, s, d, 9, 9, 9, 1 << 32],
            [l, s, d, 9, 9, 9, 1 << 63],
            [l, s, l, 9, 9, 9, 0],
            [l, s, l + 35, 9, 9, 9, 0],
            [l, s, l - 80, 9, 9, 9, 0],
            [l, s, l + 287, 9, 9, 9, 3],
            [l, s, s, 9, 9, 9, 0],
            [l, s, s + 80, 9, 9, 9, 0],
            [l, s, s - 80, 9, 9, 9, 0],
            [far, s, d, 17, 9, 9, 0],
            [l, u64::MAX - 79, d, 9, 9, 9, 0],
            [l, s, u64::MAX - 79, 9, 9, 9, 0],
        ] {
            assert_eq!(b.launch(SHUFFLE, &wrong), WRONG, "{wrong:x?}");
            let ended = b.submit(SHUFFLE, &wrong);
            assert_eq!(b.finish(SHUFFLE, ended).result, WRONG, "{wrong:x?}");
        }
        b.store(l, &[0; 512]);
        for fine in [
            [l, s, l + 36, 9, 9, 9, 0],
            [l, s, l - 81, 9, 9, 9, 0],
            [l, s, l + 288, 9, 9, 9, 3],
            [l, s, s + 81, 9, 9, 9, 0],
            [l, s, s - 81, 9, 9, 9, 0],
            [l, l, d, 9, 4, 9, 0], // a list may be its table
        ] {
            assert_eq!(b.launch_outputs(SHUFFLE, &fine), (0, 9), "{fine:x?}");
            let ended = b.submit(SHUFFLE, &fine);
            let ended = b.finish(SHUFFLE, ended);
            assert_eq!((ended.result, ended.value), (0, 9));
        }
    }

    #[test]
    fn gather_ends_at_a_bad_index() {
        let mut b = bench();
        let mut random = Random::new(2);
        let (row, rows) = (24usize, 50usize);
        let table = bytes(&mut random, row * rows);
        b.store(4 * MIB, &table);
        for (n, bad) in [0, 1, 14, 15, 16, 40, 99].into_iter().enumerate() {
            let mut indexes: Vec<u32> =
                (0..100).map(|_| random.below(rows as u64) as u32).collect();
            indexes[bad] = pick(&mut random, &[rows as u32, rows as u32 + 1, u32::MAX]);
            let kind = n as u64 % 4;
            b.store(2 * MIB, &list(&mut random, &indexes, kind));
            b.store(7 * MIB, &[0xEE; 2400]);
            let job = [
                2 * MIB,
                4 * MIB,
                7 * MIB,
                100,
                row as u64,
                rows as u64,
                kind,
            ];
            assert_eq!(b.launch_outputs(SHUFFLE, &job), (BAD, bad as u64));
            let mut expected = gathered(&table, row, &indexes[..bad]);
            expected.resize(2400, 0xEE);
            assert!(b.load(7 * MIB, 2400) == expected, "{bad}");
            shuffles(&mut b, &mut random, 100, (9, 9));
        }
    }

    #[test]
    fn gather_stays_within_its_bounds() {
        let mut b = bench();
        let fence = Fence::new(&mut b);
        let mut random = Random::new(3);
        let (l, s, d) = (2 * MIB, 4 * MIB, 7 * MIB);
        let indexes: Vec<u32> = (0..100).collect();
        b.store(l, &list(&mut random, &indexes, 0));
        b.store(REACH.end - 64, &list(&mut random, &indexes[..16], 0));
        for (list, src, dst, wrong) in [
            (0, s, d, READ),
            (REACH.start - 64, s, d, READ),
            (REACH.end - 64, s, d, READ),
            (1 << 63, s, d, READ),
            (l, 0, d, READ),
            (l, REACH.start - 1, d, READ),
            (l, REACH.end - 6399, d, READ),
            (l, LOCAL + MIB - 6399, d, READ),
            (l, s, 0, WRITE),
            (l, s, REACH.end - 6399, WRITE),
            (l, s, REACH.end + 1, WRITE),
            (l, s, MEDIA - 6400, WRITE),
            (l, s, 1 << 62, WRITE),
            // Ranges that end at 2^64 do not wrap.
            (l, u64::MAX - 6399, d, READ),
            (l, s, u64::MAX - 6399, WRITE),
        ] {
            let what = format!("{list:#x} {src:#x} {dst:#x}");
            let result = b.launch(SHUFFLE, &[list, src, dst, 100, 64, 100, 0]);
            assert_eq!(result, wrong, "{what}");
            fence.check(&mut b, &what);
            shuffles(&mut b, &mut random, 33, (20, 20));
        }
        // A table may end outside of the reach if no row there is named.
        let job = [l, REACH.end - 64, d, 1, 64, 1 << 20, 0];
        assert_eq!(b.launch_outputs(SHUFFLE, &job), (0, 1));
        fence.check(&mut b, "table");
    }
}

#[test]
fn gather_rows_of_random_sizes() {
    let mut b = bench();
    let mut random = Random::new(4);
    for turn in 0..60 {
        let most = [8, 130, 1000, 5000, 65536][turn % 5];
        let row = 1 + random.below(most) as usize;
        let rows = 1 + random.below((500_000 / row as u64).min(5000)) as usize;
        let count = 1 + random.below((300_000 / row as u64).clamp(1, 3000)) as usize;
        shuffles(&mut b, &mut random, row, (rows, count));
    }
    shuffles(&mut b, &mut random, 65536, (5, 9));
}

#[test]
fn gather_can_be_stopped() {
    let mut b = bench();
    let mut random = Random::new(5);
    let (row, rows, count) = (40usize, 20_000usize, 10_000usize);
    let table = bytes(&mut random, row * rows);
    let indexes: Vec<u32> = (0..count)
        .map(|_| random.below(rows as u64) as u32)
        .collect();
    b.store(2 * MIB, &list(&mut random, &indexes, 0));
    b.store(4 * MIB, &table);
    let all = gathered(&table, row, &indexes);
    let job = [2 * MIB, 4 * MIB, 7 * MIB, count as u64, 40, rows as u64, 0];
    let registers = b.registers(SHUFFLE);
    let mut halted = 0;
    let rounds = common::rounds(40, 6);
    for n in 0..rounds {
        b.store(7 * MIB, &vec![0xEE; all.len()]);
        b.start(SHUFFLE, &job);
        b.pass(n * 60_000 / rounds + random.below(300));
        registers.stop(&mut b.host).unwrap();
        let result = b.wait(SHUFFLE);
        assert!([0, HALT].contains(&result), "{n}: {result}");
        halted += u32::from(result == HALT);
        let position = registers.outputs(&mut b.host, 7, 1).unwrap()[0] as usize;
        let found = b.load(7 * MIB, all.len());
        assert!(found[..row * position] == all[..row * position], "{n}");
        assert!(found[row * position..].iter().all(|&b| b == 0xEE), "{n}");
        shuffles(&mut b, &mut random, 64, (9, 9));
    }
    assert!(halted > 3);
    assert!(b.load(4 * MIB, table.len()) == table);
}
