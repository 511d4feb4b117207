// SPDX-License-Identifier: Apache-2.0

//! Commands of engines, for the reference model: `hw/engine/scan`, `hw/engine/copy`. Each engine
//! checks its commands itself.

use std::ops::Range;

use nvme::Namespace;
use spec::nvme::{status, Sqe};

use crate::media::BLOCK;
use crate::model::{Expectation, MediaUse};

/// Opcode of the scan engine that counts values between bounds.
pub const COUNT: u8 = 0xC0;
/// Opcode of the scan engine that also writes a bitmap of these values.
pub const FILTER: u8 = 0xC8;
/// Opcode of the copy engine.
pub const COPY: u8 = 0xC4;
/// Opcode of the sorter.
pub const SORT: u8 = 0xD0;
/// Opcode of the gather engine.
pub const SHUFFLE: u8 = 0xD8;
/// Opcode of the dictionary decoder.
pub const DECODE: u8 = 0xD4;
/// Opcode of the pipeline: a list of commands of the sorter, gather engine and decoder.
pub const PIPELINE: u8 = 0xDC;
/// Opcodes of the engines that sort tables ([`crate::tables`]).
pub const TABLES: [u8; 3] = [SORT, SHUFFLE, DECODE];
/// Opcodes of the engines that copy and scan.
pub const BLOCKS: [u8; 3] = [COUNT, COPY, FILTER];
/// All opcodes of engines that the model knows.
pub const COMMANDS: [u8; 7] = [COUNT, COPY, FILTER, SORT, SHUFFLE, DECODE, PIPELINE];

/// The unit of a bitmap's place, in blocks.
pub const BITMAP_UNIT: u64 = 8;

/// Values of 32 or 64 bits between two bounds, both included, as the scan engine's commands name
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    wide: bool,
    signed: bool,
    low: u64,
    high: u64,
}

impl Bounds {
    /// The bounds that a command names.
    pub fn of(sqe: &Sqe) -> Bounds {
        Bounds::new(sqe.dw[13].into(), double(sqe, 2), double(sqe, 14))
    }

    /// The bounds of a job: its `kind`, without the bit for a bitmap, and its limits.
    pub fn new(kind: u64, low: u64, high: u64) -> Bounds {
        Bounds {
            wide: kind & 1 == 1,
            signed: kind & 2 == 2,
            low,
            high,
        }
    }

    /// Bytes of a value.
    pub fn bytes(&self) -> usize {
        if self.wide {
            8
        } else {
            4
        }
    }

    /// True if a value, least significant byte first, lies between the bounds.
    pub fn hold(&self, value: &[u8]) -> bool {
        let value = value.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        // Maps the order to that of unsigned 64-bit numbers.
        let key = |v: u64| match (self.wide, self.signed) {
            (true, false) => v,
            (true, true) => v ^ 1 << 63,
            (false, false) => u64::from(v as u32),
            (false, true) => u64::from(v as u32 ^ 1 << 31),
        };
        (key(self.low)..=key(self.high)).contains(&key(value))
    }
}

fn double(sqe: &Sqe, n: usize) -> u64 {
    u64::from(sqe.dw[n + 1]) << 32 | u64::from(sqe.dw[n])
}

/// How an engine derives its output from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// A copy of the source.
    Copy,
    /// One bit for each value.
    Bitmap(Bounds),
}

/// The output of an engine, derived from blocks that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOutput {
    /// First source block.
    pub from: u64,
    /// Number of source blocks.
    pub count: u64,
    /// First target block.
    pub to: u64,
    /// How the target follows from the source.
    pub how: Transform,
}

impl EngineOutput {
    /// Output bytes for one source block.
    pub fn share(&self) -> u64 {
        match self.how {
            Transform::Copy => BLOCK,
            Transform::Bitmap(bounds) => BLOCK / bounds.bytes() as u64 / 8,
        }
    }

    /// Target blocks; the last one may be written in part.
    pub fn targets(&self) -> Range<u64> {
        self.to..self.to + (self.count * self.share()).div_ceil(BLOCK)
    }

    /// Source blocks of one target block.
    pub fn sources(&self, target: u64) -> Range<u64> {
        let each = BLOCK / self.share();
        let first = (target - self.to) * each;
        self.from + first..self.from + (first + each).min(self.count)
    }
}

/// What the engine may answer to its command.
pub(crate) fn expectation(sqe: &Sqe, ns: &Namespace) -> Expectation {
    // A wrong command waits for its engine as well, and may be aborted before the engine checks it.
    let refused = |status| Expectation {
        long: true,
        ..Expectation::refused(status)
    };
    let (slba, count) = (sqe.slba(), u64::from(sqe.dw[12] & 0xFF_FFFF) + 1);
    let unit = sqe.dw[13] >> 2;
    let opcode = sqe.opcode();
    let reserved = match opcode {
        COPY => sqe.dw[13] != 0,
        COUNT => unit != 0,
        _ => false,
    };
    if reserved || sqe.dw[12] >> 24 != 0 {
        return refused(status::INVALID_FIELD);
    }
    let bounds = Bounds::of(sqe);
    let product = |to, how| EngineOutput {
        from: slba,
        count,
        to,
        how,
    };
    let written = match opcode {
        COPY => Some(product(double(sqe, 14), Transform::Copy)),
        FILTER => Some(product(
            u64::from(unit) * BITMAP_UNIT,
            Transform::Bitmap(bounds),
        )),
        _ => None,
    };
    let inside = match written {
        // The number of its last block may overflow.
        Some(p) => ns.holds(p.to, 1) && ns.holds(p.to, p.targets().count() as u64),
        None => true,
    };
    if !inside || !ns.holds(slba, count) {
        return refused(status::LBA_OUT_OF_RANGE);
    }
    let overlaps = |p: &EngineOutput| p.to < slba + count && slba < p.targets().end;
    if written.as_ref().is_some_and(overlaps) {
        return refused(status::INVALID_FIELD);
    }
    let from = ns.base + slba;
    let make = written.map(|p| EngineOutput {
        from,
        to: ns.base + p.to,
        ..p
    });
    Expectation {
        media: make.map_or(MediaUse::Count(from, count, bounds), MediaUse::Derive),
        dw0: (opcode == COPY).then_some(0),
        long: true,
        ..Expectation::success()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: Namespace = Namespace {
        nsid: 1,
        base: 16,
        blocks: 100,
    };

    fn command(opcode: u8, lba: u64, count: u32) -> Sqe {
        Sqe::of_blocks(opcode, 1, lba, count)
    }

    fn copy(from: u64, count: u32, to: u64) -> Sqe {
        command(COPY, from, count)
            .with_cdw(14, to as u32)
            .with_cdw(15, (to >> 32) as u32)
    }

    fn answer(sqe: &Sqe) -> spec::nvme::Status {
        expectation(sqe, &NS).statuses[0]
    }

    #[test]
    fn copy_stays_in_its_namespace_and_off_its_source() {
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        assert_eq!(answer(&copy(0, 50, 50)), status::SUCCESS);
        assert_eq!(answer(&copy(0, 50, 51)), range);
        assert_eq!(answer(&copy(51, 50, 0)), range);
        assert_eq!(answer(&copy(0, 4, u64::MAX - 1)), range);
        assert_eq!(answer(&copy(u64::MAX - 1, 4, 0)), range);
        assert_eq!(answer(&copy(10, 4, 13)), field);
        assert_eq!(answer(&copy(10, 4, 7)), field);
        assert_eq!(answer(&copy(10, 4, 14)), status::SUCCESS);
        assert_eq!(answer(&copy(10, 4, 14).with_cdw(13, 1)), field);
        assert_eq!(answer(&copy(10, 4, 14).with_cdw(12, 1 << 24)), field);
    }

    #[test]
    fn scan_bitmap_lies_apart_from_its_source() {
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        let filter = |from, count, unit: u32, kind: u32| {
            answer(&command(FILTER, from, count).with_cdw(13, unit << 2 | kind))
        };
        // 32 blocks of 32-bit values, or 64 blocks of 64-bit values, make one block of bits.
        assert_eq!(filter(9, 32, 1, 0), status::SUCCESS);
        assert_eq!(filter(9, 33, 1, 0), field);
        assert_eq!(filter(9, 64, 1, 1), status::SUCCESS);
        assert_eq!(filter(9, 65, 1, 1), field);
        assert_eq!(filter(0, 9, 1, 0), field);
        assert_eq!(filter(0, 8, 1, 0), status::SUCCESS);
        assert_eq!(filter(0, 90, 12, 0), status::SUCCESS);
        assert_eq!(filter(0, 90, 13, 0), range);
        assert_eq!(answer(&command(COUNT, 0, 1).with_cdw(13, 1 << 2)), field);
    }

    #[test]
    fn scan_bitmap_blocks_follow_from_their_values() {
        let bounds = |kind| Bounds::of(&Sqe::new(FILTER).with_cdw(13, kind));
        let product = |count, how| EngineOutput {
            from: 100,
            count,
            to: 8,
            how,
        };
        let narrow = product(40, Transform::Bitmap(bounds(0)));
        assert_eq!((narrow.share(), narrow.targets()), (16, 8..10));
        assert_eq!((narrow.sources(8), narrow.sources(9)), (100..132, 132..140));
        let wide = product(64, Transform::Bitmap(bounds(1)));
        assert_eq!((wide.targets(), wide.sources(8)), (8..9, 100..164));
        assert_eq!(product(3, Transform::Copy).sources(10), 102..103);
    }
}
