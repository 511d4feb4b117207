// SPDX-License-Identifier: Apache-2.0

//! Random commands of engines: mostly valid, sometimes wrong in fields that only the engine checks.

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use super::{Command, Generator, List, Policy};
use crate::commands::{values_per_block, BITMAP_UNIT, BLOCKS, COPY, COUNT, PIPELINE, TABLES};
use crate::random::pick;

impl Generator<'_> {
    /// A command of an engine. A `long` one covers a large part of the largest namespace.
    pub fn engine(&mut self, long: bool) -> Option<Command> {
        let mut engines = self.limits.engines.clone();
        if self.policy == Policy::Valid {
            // Those whose output the host knows.
            engines.retain(|opcode| BLOCKS.contains(opcode));
        }
        if engines.is_empty() {
            return None;
        }
        match self.pick(&engines) {
            PIPELINE => {
                // Over whatever the media hold there.
                let ns = self.namespace();
                let list = List::anywhere(self.random, &ns);
                self.list_command(&list, self.policy != Policy::Hostile)
            }
            opcode if TABLES.contains(&opcode) => self.table(opcode, long),
            opcode => self.blocks(opcode, long),
        }
    }

    /// A command of the engines that copy and scan.
    fn blocks(&mut self, opcode: u8, long: bool) -> Option<Command> {
        let ns = self.large_namespace(if long { 0 } else { 100 });
        // The target needs room beside the source.
        let most = match opcode {
            COUNT => ns.blocks,
            COPY => ns.blocks / 2,
            _ => ns.blocks * 7 / 8,
        };
        let most = most.max(1);
        let count = match long || self.chance(8) {
            true => most.div_ceil(2) + self.random.below(most.div_ceil(2)),
            false => self.block_count().min(most),
        };
        let lba = self.first_block(&ns, count);
        let mut sqe = Sqe::of_blocks(opcode, self.nsid(ns.nsid), lba, count as u32);
        sqe.dw[12] = (count - 1) as u32;
        sqe = match opcode {
            COPY => self.with_target(sqe, &ns, count)?,
            _ => self.with_values(sqe, &ns, count)?,
        };
        if self.is_wrong(3) {
            sqe.dw[12] = self.pick(&[0xFF_FFFF, 0x80_0000, 0xFFFF, 0x1_0000]);
        }
        if self.is_wrong(3) {
            sqe.dw[12] |= 1 << (24 + self.random.below(8));
        }
        if self.is_wrong(3) {
            sqe.dw[13] |= 1 << self.random.below(32);
        }
        self.flags(&mut sqe, &[3], &[3]);
        Some(Command::plain(sqe))
    }

    /// A target for a copy: beside its source, over a part of it, or anywhere.
    fn with_target(&mut self, sqe: Sqe, ns: &Namespace, count: u64) -> Option<Sqe> {
        let from = sqe.slba();
        let to = match self.is_wrong(20) {
            true => match self.random.below(4) {
                0 => from.wrapping_add(self.random.below(count)),
                1 => from.wrapping_sub(self.random.below(count)),
                2 => self.far_block(ns, count),
                // The last position that fits, or beyond it.
                _ => ns.blocks.saturating_sub(count) + self.random.below(2),
            },
            false => self.apart(ns, (from, count), (count, 1))?,
        };
        Some(sqe.with_cdw(14, to as u32).with_cdw(15, (to >> 32) as u32))
    }

    /// Kind of values, bounds that occur in the media, and the place of a bitmap.
    fn with_values(&mut self, mut sqe: Sqe, ns: &Namespace, count: u64) -> Option<Sqe> {
        let kind = self.random.below(4) as u32;
        let from = sqe.slba();
        for n in [2, 14] {
            let block = from.wrapping_add(self.random.below(count));
            let source = self.content(ns.base.wrapping_add(block), 1);
            let bound = bound(self.random, &source);
            sqe = sqe
                .with_cdw(n, bound as u32)
                .with_cdw(n + 1, (bound >> 32) as u32);
        }
        let each = values_per_block(kind);
        let unit = match sqe.opcode() {
            COUNT => 0,
            _ if self.is_wrong(15) => match self.random.below(3) {
                0 => {
                    // It ends with the namespace, or one block beyond it.
                    let unit = (ns.blocks - 1) / BITMAP_UNIT;
                    let len = ns.blocks - unit * BITMAP_UNIT + self.random.below(2);
                    let count = (len - 1) * each + 1 + self.random.below(each);
                    sqe = sqe.with_cdw(10, 0).with_cdw(11, 0);
                    sqe.dw[12] = count as u32 - 1;
                    unit
                }
                1 => self.pick(&[ns.blocks / BITMAP_UNIT, (1 << 30) - 1]),
                _ => from.wrapping_add(self.random.below(count)) / BITMAP_UNIT & 0x3FFF_FFFF,
            },
            _ => {
                let bits = (count.div_ceil(each), BITMAP_UNIT);
                self.apart(ns, (from, count), bits)? / BITMAP_UNIT
            }
        };
        sqe.dw[13] = (unit as u32) << 2 | kind;
        Some(sqe)
    }

    /// A place for `len` blocks, a multiple of `unit`, off a source; in use by other commands only
    /// if a few attempts find no other. `None` without room, except that hostile input then has
    /// any place.
    fn apart(
        &mut self,
        ns: &Namespace,
        (from, count): (u64, u64),
        (len, unit): (u64, u64),
    ) -> Option<u64> {
        // Places before the source, and the first place past it.
        let before = from
            .min(ns.blocks)
            .checked_sub(len)
            .map_or(0, |most| most / unit + 1);
        let past = from.saturating_add(count).div_ceil(unit);
        let all = ns.blocks.checked_sub(len).map_or(0, |most| most / unit + 1);
        let places = before + all.saturating_sub(past);
        if places == 0 {
            return self.is_hostile().then_some(0);
        }
        let mut to = 0;
        for _ in 0..6 {
            let place = match self.random.below(10) {
                // Next to the source.
                0 if before > 0 => before - 1,
                1 if all > past => before,
                _ => self.random.below(places),
            };
            to = unit
                * if place < before {
                    place
                } else {
                    past + place - before
                };
            if !self.host.in_use(ns.base + to..ns.base + to + len) {
                break;
            }
        }
        Some(to)
    }
}

/// A bound: a value of the source, so that its inclusion matters, or a random number.
pub fn bound(random: &mut Random, source: &[u8]) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next() & 0xFFFF_FFFF,
        3 => random.next(),
        _ => {
            let at = random.below(source.len() as u64 / 8) as usize * 8;
            let word = source.get(at..at + 8).unwrap_or(&[0; 8]);
            let value = word.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
            value >> pick(random, &[0, 0, 32])
        }
    }
}
