// SPDX-License-Identifier: Apache-2.0

//! I/O commands of the table engines, in a namespace that does not begin at 0.

use spec::nvme::status;

use super::decode::{runs, values};
use super::shuffle::{gathered, list};
use super::sort::sorted;
use super::*;

const NSID: u32 = 2;
/// Number of 4 KiB units, in which commands give addresses.
const UNITS: u32 = (8 * MIB / 4096) as u32;

fn command(opcode: u8, dwords: [u32; 6]) -> Sqe {
    (10..)
        .zip(dwords)
        .fold(Sqe::new(opcode).with_nsid(NSID), |sqe, (n, value)| {
            sqe.with_cdw(n, value)
        })
}

/// Source, target, scratch, keys, kind.
pub fn sort(dwords: [u32; 5]) -> Sqe {
    let [a, b, c, d, e] = dwords;
    command(0xD0, [a, b, c, d, e, 0])
}

/// List, table, target, indexes, rows, bytes of a row and kind.
pub fn shuffle(dwords: [u32; 6]) -> Sqe {
    command(0xD8, dwords)
}

/// Dictionary, source, target, values, bytes, all others.
pub fn decode(dwords: [u32; 6]) -> Sqe {
    command(0xD4, dwords)
}

fn at(unit: u32) -> u64 {
    REACH.start + 4096 * u64::from(unit)
}

/// Asserts how a command ends.
fn ends(q: &mut Queues, sqe: Sqe, (wanted, dword): (Status, Option<u32>)) {
    let done = q.execute(sqe);
    assert_eq!(done.status, wanted, "{sqe:?}");
    if let Some(dword) = dword {
        assert_eq!(done.result, dword, "{sqe:?}");
    }
}

mod sampled {
    use super::*;

    #[test]
    fn tables_commands_write_expected_results() {
        let mut q = bench().controller();
        let mut random = Random::new(1);
        let fine = |dword| (status::SUCCESS, Some(dword));

        let keys = super::super::sort::keys(&mut random, 5, 700);
        store(q.host(), at(3), &keys);
        ends(&mut q, sort([3, 40, 0, 700, 5]), fine(1));
        let expected = sorted(5, &keys);
        assert!(load(q.host(), at(40), expected.len()) == expected);

        // The target is what the sorter writes: rows in the order of their keys.
        let table = bytes(&mut random, 700 * 24);
        store(q.host(), at(100), &table);
        ends(
            &mut q,
            shuffle([40, 100, 200, 700, 700, 24 | 2 << 24]),
            fine(700),
        );
        let order: Vec<u32> = expected
            .chunks(16)
            .map(|record| u32::from_le_bytes(record[8..12].try_into().unwrap()))
            .collect();
        assert!(load(q.host(), at(200), 16_800) == gathered(&table, 24, &order));

        let keys = super::super::decode::keys(&mut random, 300, 900);
        let (dict, source) = (bytes(&mut random, 1200), runs(&mut random, &keys, 9));
        store(q.host(), at(300), &dict);
        store(q.host(), at(301), &source);
        let word = 299 | 9 << 16 | 2 << 24;
        let len = source.len() as u32;
        ends(
            &mut q,
            decode([300, 301, UNITS - 1, 900, len, word]),
            fine(900),
        );
        assert!(load(q.host(), at(UNITS - 1), 3600) == values(&dict, 4, &keys));
    }

    #[test]
    fn tables_commands_with_wrong_fields_are_refused() {
        let mut q = bench().controller();
        let field = (status::INVALID_FIELD.dnr(), None);
        let range = (status::LBA_OUT_OF_RANGE.dnr(), None);
        let zeros = vec![0; 8192];
        store(q.host(), 0, &zeros);
        let fine = |dword| (status::SUCCESS, Some(dword));
        let last = UNITS - 1;
        let two = super::super::sort::CHUNK as u32 + 1;
        for (sqe, wanted) in [
            (sort([0, 1, 0, 9, 1 << 7]), field),
            (sort([0, 1, 0, 9, 1 << 31]), field),
            (sort([0, 1, 0, 9, 0]).with_cdw(15, 1), field),
            (sort([0, 1, 0, 0, 0]), field),
            (sort([0, 0, 0, 9, 0]), field),
            (sort([0, 1, 0, 1025, 0]), field),
            (sort([0, 1, 0, 9, 3]), field),
            (sort([0, 1, 0, 9, 3 << 2]), field),
            (sort([0, 300, 0, two, 0]), field),
            (sort([UNITS, 1, 0, 9, 1 << 7]), field),
            (sort([last, 1, 0, 1024, 0]), fine(1)),
            (sort([0, last, 0, 512, 0]), fine(1)),
            (sort([0, last, 0, 1024, 32]), fine(1)),
            (sort([last, 1, 0, 1025, 0]), range),
            (sort([0, last, 0, 513, 0]), range),
            (sort([0, last, 0, 1025, 32]), range),
            (sort([UNITS, 1, 0, 9, 0]), range),
            (sort([0, u32::MAX, 0, 9, 0]), range),
            (sort([0, 300, UNITS - 256, two, 0]), range),
            (sort([0, 1, u32::MAX, 9, 0]), fine(1)),
            (sort([0, 1, 0, u32::MAX, 0]), range),
            (shuffle([0, 2, 4, 9, 9, 9 | 1 << 17]), field),
            (shuffle([0, 2, 4, 9, 9, 9 | 1 << 26]), field),
            (shuffle([0, 2, 4, 9, 9, 9 | 1 << 31]), field),
            (shuffle([0, 2, 4, 0, 9, 9]), field),
            (shuffle([0, 2, 4, 9, 0, 9]), field),
            (shuffle([0, 2, 4, 9, 9, 0]), field),
            (shuffle([0, 2, 40, 9, 9, 65537]), field),
            (shuffle([0, 2, 0, 9, 9, 9]), field),
            (shuffle([0, 2, 2, 9, 9, 9]), field),
            (shuffle([UNITS, 2, 4, 9, 9, 9 | 1 << 26]), field),
            (shuffle([last, 2, 4, 1024, 9, 9]), fine(1024)),
            (shuffle([last, 2, 4, 1025, 9, 9]), range),
            (shuffle([last, 2, 4, 129, 9, 9 | 3 << 24]), range),
            (shuffle([0, last, 4, 9, 1024, 4]), fine(9)),
            (shuffle([0, last, 4, 9, 1025, 4]), range),
            (shuffle([0, 4, last, 9, 9, 456]), range),
            (shuffle([0, 4, UNITS, 9, 9, 1]), range),
            (shuffle([0, 4, u32::MAX, 9, 9, 1]), range),
            (shuffle([0, 2, 4, 9, u32::MAX, 65536]), range),
            (decode([0, 1, 2, 9, 9, 8 << 16 | 1 << 27 | 1 << 28]), field),
            (decode([0, 1, 2, 9, 9, 8 << 16 | 1 << 27 | 1 << 22]), field),
            (decode([0, 1, 2, 9, 9, 8 << 16 | 1 << 27 | 1 << 23]), field),
            (decode([0, 1, 2, 9, 9, 8 << 16 | 3 << 26]), field),
            (decode([0, 1, 2, 9, 9, 7 << 16 | 1 << 27]), field),
            (decode([0, 1, 2, 9, 9, 33 << 16]), field),
            (decode([0, 1, 2, 0, 9, 8 << 16 | 1 << 27]), field),
            (decode([0, 0, 2, 9, 9, 8 << 16 | 1 << 27]), field),
            (decode([0, 1, 1, 9, 9, 8 << 16 | 1 << 27]), field),
            (
                decode([0, 1, 600, 9, 9, 65535 | 8 << 16 | 1 << 27 | 3 << 24]),
                field,
            ),
            (
                decode([UNITS, 1, 2, 9, 9, 8 << 16 | 1 << 27 | 1 << 28]),
                field,
            ),
            (
                decode([last, 1, 2, 9, 9, 4095 | 8 << 16 | 1 << 27]),
                fine(9),
            ),
            (decode([last, 1, 2, 9, 9, 4096 | 8 << 16 | 1 << 27]), range),
            (decode([0, last, 2, 9, 4096, 8 << 16 | 1 << 27]), fine(9)),
            (decode([0, last, 2, 9, 4097, 8 << 16 | 1 << 27]), range),
            (
                decode([0, 1, last, 4096, 4096, 8 << 16 | 1 << 27]),
                fine(4096),
            ),
            (decode([0, 1, last, 4097, 4096, 8 << 16 | 1 << 27]), range),
            (decode([u32::MAX, 1, last, 4096, 4096, 1 << 26]), fine(4096)),
            (decode([0, 1, u32::MAX, 9, 9, 8 << 16 | 1 << 27]), range),
            (decode([0, u32::MAX, 1, 9, 0, 0]), fine(9)),
        ] {
            store(q.host(), at(0), &zeros);
            store(q.host(), at(last), &zeros[..4096]);
            ends(&mut q, sqe, wanted);
        }
        // None of these engines has access to the first namespace.
        for sqe in [
            sort([0, 1, 0, 9, 0]),
            shuffle([0, 2, 4, 9, 9, 9]),
            decode([0, 1, 2, 9, 0, 0]),
        ] {
            let done = q.execute(sqe.with_nsid(1));
            assert_ne!(done.status, status::SUCCESS, "{sqe:?}");
        }
        assert!(load(q.host(), 0, 8192) == zeros);
    }

    #[test]
    fn tables_commands_report_bad_data() {
        let mut q = bench().controller();
        let mut random = Random::new(3);
        let field = status::INVALID_FIELD.dnr();
        let indexes: Vec<u32> = (0..20).map(|n| if n == 13 { 50 } else { n }).collect();
        let listed = list(&mut random, &indexes, 1);
        store(q.host(), at(0), &listed);
        ends(
            &mut q,
            shuffle([0, 2, 4, 20, 50, 9 | 1 << 24]),
            (field, Some(13)),
        );
        ends(
            &mut q,
            shuffle([0, 2, 4, 20, 51, 9 | 1 << 24]),
            (status::SUCCESS, Some(20)),
        );
        let source = [8 << 1, 3, 3, 0, 1, 2, 3, 4, 5, 6, 9];
        store(q.host(), at(7), &source);
        let word = |entries: u32| (entries - 1) | 8 << 16;
        ends(
            &mut q,
            decode([6, 7, 8, 16, 11, word(10)]),
            (status::SUCCESS, Some(16)),
        );
        ends(
            &mut q,
            decode([6, 7, 8, 16, 11, word(9)]),
            (field, Some(15)),
        );
        ends(
            &mut q,
            decode([6, 7, 8, 16, 10, word(10)]),
            (field, Some(8)),
        );
        ends(&mut q, decode([6, 7, 8, 8, 1, word(10)]), (field, Some(0)));
        ends(
            &mut q,
            decode([6, 7, 8, 17, 11, word(10)]),
            (field, Some(16)),
        );
        ends(&mut q, decode([6, 7, 8, 7, 11, word(10)]), (field, Some(0)));
        ends(
            &mut q,
            decode([6, 7, 8, 17, 16, 2 << 24 | 1 << 26]),
            (field, Some(4)),
        );
    }
}
