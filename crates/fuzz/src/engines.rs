//! Commands of engines, for the reference model: `hw/engine/scan`, `hw/engine/copy`. Each looks at
//! its command itself.

use std::ops::Range;

use nvme::Namespace;
use spec::nvme::{status, Sqe};

use crate::media::BLOCK;
use crate::model::{Expectation, MediaUse};

/// The scan engine's first command: counts values between bounds.
pub const COUNT: u8 = 0xC0;
/// Its second one: writes a bitmap of them, too.
pub const FILTER: u8 = 0xC8;
/// The copy engine's.
pub const COPY: u8 = 0xC4;
/// The sorter's.
pub const SORT: u8 = 0xD0;
/// The gatherer's.
pub const SHUFFLE: u8 = 0xD8;
/// The decoder's.
pub const DECODE: u8 = 0xD4;
/// The pipeline's: a list of commands of these three.
pub const PIPELINE: u8 = 0xDC;
/// Those of the engines that sort tables ([`crate::tables`]).
pub const TABLES: [u8; 3] = [SORT, SHUFFLE, DECODE];
/// Those of the engines that copy and scan.
pub const BLOCKS: [u8; 3] = [COUNT, COPY, FILTER];
/// All that the model knows.
pub const COMMANDS: [u8; 7] = [COUNT, COPY, FILTER, SORT, SHUFFLE, DECODE, PIPELINE];

/// A bitmap's place is told in so many blocks.
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
    /// Those that a command names.
    pub fn of(sqe: &Sqe) -> Bounds {
        Bounds::new(sqe.dw[13].into(), double(sqe, 2), double(sqe, 14))
    }

    /// Those of a job: its `kind`, without the bit for a bitmap, and its bounds.
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

    /// Whether a value lies between them; least significant byte first.
    pub fn hold(&self, value: &[u8]) -> bool {
        let value = value.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        // So that order is that of unsigned numbers of 64 bits.
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

/// How an engine makes what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// As it was read.
    Copy,
    /// A bit for each value.
    Bitmap(Bounds),
}

/// What an engine writes, made of blocks that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOutput {
    /// The first block that it reads.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// The first block that it writes.
    pub to: u64,
    /// How one becomes the other.
    pub how: Transform,
}

impl EngineOutput {
    /// Bytes that one block becomes.
    pub fn share(&self) -> u64 {
        match self.how {
            Transform::Copy => BLOCK,
            Transform::Bitmap(bounds) => BLOCK / bounds.bytes() as u64 / 8,
        }
    }

    /// Blocks that are written, the last one perhaps in part.
    pub fn targets(&self) -> Range<u64> {
        self.to..self.to + (self.count * self.share()).div_ceil(BLOCK)
    }

    /// Blocks that one of these is made of.
    pub fn sources(&self, target: u64) -> Range<u64> {
        let each = BLOCK / self.share();
        let first = (target - self.to) * each;
        self.from + first..self.from + (first + each).min(self.count)
    }
}

/// What an engine says of its command.
pub(crate) fn expectation(sqe: &Sqe, ns: &Namespace) -> Expectation {
    // It waits for its engine like any other, and may be ended before that looks at it.
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
        // Its last block may be beyond all numbers.
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
        media: make.map_or(MediaUse::Count(from, count, bounds), MediaUse::Make),
        dw0: (opcode == COPY).then_some(0),
        long: true,
        ..Expectation::fine()
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
        // 32 blocks of values of 32 bits make one of bits, 64 of values of 64 bits.
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
