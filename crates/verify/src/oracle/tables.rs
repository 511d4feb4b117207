// SPDX-License-Identifier: Apache-2.0

//! Commands of the engines that sort tables, for the reference model: `hw/engine/sorter`,
//! `hw/engine/row_shuffle`, `hw/engine/dict_decode`.
//!
//! The content of their output is tested elsewhere (crates/device/tests/behaviour/engines/tables,
//! lockstep). The model checks three things: they access only what their commands name, they
//! report wrong commands, and they end.

use nvme::Namespace;
use spec::nvme::{status, Sqe};
use spec::tables::DICTIONARY_BYTES;

use crate::commands::{sort_bytes, sort_passes, SHUFFLE, SORT, UNIT};
use crate::oracle::expectation::{Expectation, MediaUse};
use crate::BLOCK;

/// Most keys, indexes and values.
const MOST: u64 = 1 << 31;
const MOST_ROW_BYTES: u64 = 64 << 10;

/// A byte range that a command names, relative to the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Its first byte.
    pub from: u64,
    /// Its length.
    pub bytes: u64,
    /// It is written, not read.
    pub written: bool,
}

impl ByteRange {
    fn end(&self) -> u64 {
        self.from + self.bytes
    }

    /// True if the ranges overlap; an empty range overlaps none.
    fn meets(&self, other: &ByteRange) -> bool {
        let some = self.bytes > 0 && other.bytes > 0;
        some && self.from < other.end() && other.from < self.end()
    }
}

/// A decoded command.
struct TableRequest {
    /// The reserved bits are 0.
    clear: bool,
    /// Its numbers are within their limits.
    valid: bool,
    parts: [ByteRange; 3],
    /// Read-only ranges may overlap each other.
    shared: bool,
    /// The data that it reads may be invalid.
    may_refuse: bool,
    /// Dword 0 of its completion.
    dw0: u64,
}

impl TableRequest {
    fn of(sqe: &Sqe) -> TableRequest {
        let dw = |n: usize| u64::from(sqe.dw[n]);
        let part = |n: usize, bytes: u64, written: bool| ByteRange {
            from: dw(n) * UNIT,
            bytes,
            written,
        };
        let (count, kind) = (dw(13), sqe.dw[if sqe.opcode() == SORT { 14 } else { 15 }]);
        let counted = (1..=MOST).contains(&count);
        match sqe.opcode() {
            SORT => {
                let [keys, target, room] = sort_bytes(count, kind);
                TableRequest {
                    clear: kind >> 7 == 0 && sqe.dw[15] == 0,
                    valid: counted && kind & 3 < 3 && kind >> 2 & 3 < 3,
                    parts: [
                        part(10, keys, false),
                        part(11, target, true),
                        part(12, room, true),
                    ],
                    shared: false,
                    may_refuse: false,
                    dw0: sort_passes(count, kind),
                }
            }
            SHUFFLE => {
                let (row, rows) = (u64::from(kind & 0x1_FFFF), dw(14));
                let list = (4 * count) << (kind >> 24 & 3);
                TableRequest {
                    clear: kind & !0x301_FFFF == 0,
                    valid: counted && rows > 0 && (1..=MOST_ROW_BYTES).contains(&row),
                    parts: [
                        part(10, list, false),
                        part(11, rows * row, false),
                        part(12, count * row, true),
                    ],
                    shared: true,
                    may_refuse: true,
                    dw0: count,
                }
            }
            _ => {
                let (entries, size) = (u64::from(kind & 0xFFFF) + 1, kind >> 24 & 3);
                let (width, plain, packed) =
                    (kind >> 16 & 0x3F, kind >> 26 & 1 == 1, kind >> 27 & 1 == 1);
                let dictionary = if plain { 0 } else { entries << size };
                let keys = !packed || !plain && [8, 16, 32].contains(&width);
                TableRequest {
                    clear: kind >> 28 == 0 && kind >> 22 & 3 == 0,
                    valid: counted && width <= 32 && keys && dictionary <= DICTIONARY_BYTES,
                    parts: [
                        part(10, dictionary, false),
                        part(11, dw(14), false),
                        part(12, count << size, true),
                    ],
                    shared: false,
                    may_refuse: true,
                    dw0: count,
                }
            }
        }
    }
}

/// The ranges that a command names.
pub fn parts(sqe: &Sqe) -> [ByteRange; 3] {
    TableRequest::of(sqe).parts
}

/// What such an engine may answer to its command.
pub(crate) fn expectation(sqe: &Sqe, ns: &Namespace) -> Expectation {
    // A wrong command waits for its engine as well, and may be aborted before the engine checks it.
    let refused = |status| Expectation {
        long: true,
        ..Expectation::refused(status)
    };
    let request = TableRequest::of(sqe);
    if !request.clear {
        return refused(status::INVALID_FIELD);
    }
    let bytes = ns.blocks * BLOCK;
    // Only the gather engine checks the place of an empty range.
    let looked = |part: &&ByteRange| part.bytes > 0 || sqe.opcode() == SHUFFLE;
    if request
        .parts
        .iter()
        .filter(looked)
        .any(|part| part.end() > bytes)
    {
        return refused(status::LBA_OUT_OF_RANGE);
    }
    let [a, b, c] = request.parts;
    let pairs = [(a, b), (a, c), (b, c)];
    let overlap = pairs
        .iter()
        .any(|(x, y)| x.meets(y) && (!request.shared || x.written || y.written));
    if !request.valid || overlap {
        return refused(status::INVALID_FIELD);
    }
    let base = ns.base * BLOCK;
    let written = request
        .parts
        .into_iter()
        .filter(|part| part.written && part.bytes > 0);
    let mut expectation = Expectation {
        media: MediaUse::WriteUnknown(written.map(|part| (base + part.from, part.bytes)).collect()),
        dw0: Some(request.dw0 as u32),
        long: true,
        ..Expectation::success()
    };
    if request.may_refuse {
        expectation.statuses.push(status::INVALID_FIELD.dnr());
    }
    expectation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::DECODE;

    /// A namespace of 16 units of 4 KiB.
    const NS: Namespace = Namespace {
        nsid: 1,
        base: 16,
        blocks: 128,
    };

    fn command(opcode: u8, dwords: [u32; 6]) -> Expectation {
        let numbered = dwords.into_iter().zip(10..);
        expectation(
            &numbered.fold(Sqe::new(opcode), |sqe, (value, n)| sqe.with_cdw(n, value)),
            &NS,
        )
    }

    fn statuses(opcode: u8, dwords: [u32; 6]) -> Vec<spec::nvme::Status> {
        command(opcode, dwords).statuses
    }

    #[test]
    fn sort_stays_in_its_namespace_and_off_its_keys() {
        let (field, range) = (
            vec![status::INVALID_FIELD.dnr()],
            vec![status::LBA_OUT_OF_RANGE.dnr()],
        );
        let sort = |dwords| statuses(SORT, dwords);
        assert_eq!(sort([0, 1, 0, 1024, 0, 0]), [status::SUCCESS]);
        assert_eq!(sort([15, 0, 0, 1024, 0, 0]), [status::SUCCESS]);
        assert_eq!(sort([0, 14, u32::MAX, 1024, 0, 0]), [status::SUCCESS]);
        assert_eq!(sort([0, 15, 0, 1024, 0, 0]), range);
        assert_eq!(sort([15, 0, 0, 1025, 0, 0]), range);
        assert_eq!(sort([u32::MAX, 0, 0, 1, 0, 0]), range);
        assert_eq!(sort([1, 0, 0, 1024, 0, 0]), field);
        assert_eq!(sort([1, 0, 0, 1024, 0x20, 0]), [status::SUCCESS]);
        for (count, kind) in [(0, 0), (1, 3), (1, 0xC), (1, 0x80)] {
            assert_eq!(sort([0, 8, 0, count, kind, 0]), field);
        }
        let spoils = |dwords| match command(SORT, dwords).media {
            MediaUse::WriteUnknown(ranges) => ranges,
            other => panic!("{other:?}"),
        };
        assert_eq!(spoils([0, 3, 0, 100, 0, 0]), [(16 * 512 + 3 * 4096, 800)]);
    }

    #[test]
    fn row_shuffle_inputs_may_overlap_but_not_its_target() {
        let shuffle = |dwords| statuses(SHUFFLE, dwords);
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        assert_eq!(shuffle([0, 0, 1, 16, 16, 64]), [status::SUCCESS, field]);
        assert_eq!(shuffle([0, 1, 0, 16, 16, 64]), [field]);
        assert_eq!(shuffle([0, 1, 1, 16, 16, 64]), [field]);
        assert_eq!(shuffle([0, 1, 2, 16, 16, 0]), [field]);
        assert_eq!(shuffle([0, 1, 2, 16, 16, 64 | 1 << 26]), [field]);
        assert_eq!(shuffle([0, 1, 2, u32::MAX, u32::MAX, 0x1_FFFF]), [range]);
        assert_eq!(shuffle([0, 16, 2, 1, 0, 64]), [field]);
        assert_eq!(shuffle([0, 17, 2, 1, 0, 64]), [range]);
    }

    #[test]
    fn dict_decode_dictionary_has_an_end() {
        let decode = |dwords| statuses(DECODE, dwords);
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        let kind = |entries: u32, width: u32, size: u32| (entries - 1) | width << 16 | size << 24;
        assert_eq!(
            decode([0, 1, 2, 16, 64, kind(1024, 8, 2)]),
            [status::SUCCESS, field]
        );
        assert_eq!(decode([0, 1, 2, 16, 64, kind(1025, 8, 2)]), [field]);
        assert_eq!(decode([0, 1, 2, 16, 64, kind(1024, 33, 2)]), [field]);
        assert_eq!(
            decode([0, 1, 2, 16, 64, kind(1024, 8, 2) | 1 << 28]),
            [field]
        );
        assert_eq!(decode([15, 1, 2, 16, 64, kind(1025, 8, 2)]), [range]);
        assert_eq!(
            decode([99, 1, 2, 16, 64, kind(1, 0, 2) | 1 << 26]),
            [status::SUCCESS, field]
        );
        assert_eq!(decode([0, 1, 2, 16, 64, kind(16, 8, 2) | 3 << 26]), [field]);
    }
}
