// SPDX-License-Identifier: Apache-2.0

//! Commands of engines, for the reference model: `hw/engine/scan`, `hw/engine/copy`. Each engine
//! checks its commands itself.

use nvme::Namespace;
use spec::nvme::{status, Sqe};

use crate::commands::{double, Bounds, BITMAP_UNIT, COPY, COUNT, FILTER};
use crate::oracle::engine_output::{EngineOutput, Transform};
use crate::oracle::expectation::{Expectation, MediaUse};

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
