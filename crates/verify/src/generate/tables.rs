// SPDX-License-Identifier: Apache-2.0

//! Random commands of the engines that sort tables: mostly valid, sometimes wrong in fields that
//! only the engine checks.

use nvme::Namespace;
use spec::nvme::Sqe;

use super::{Command, Generator};
use crate::commands::{sort_bytes, table_command, SHUFFLE, SORT, UNIT};
use crate::BLOCK;

/// Units that `bytes` bytes occupy.
fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

impl Generator<'_> {
    /// A command of one of the design's engines for tables. A `long` one covers a large part of the
    /// largest namespace.
    pub(super) fn table(&mut self, opcode: u8, long: bool) -> Option<Command> {
        let ns = self.large_namespace(if long { 0 } else { 40 });
        let mut sqe = self.valid_table(opcode, &ns, long)?;
        sqe = sqe.with_nsid(self.nsid(ns.nsid));
        if self.is_wrong(40) {
            self.corrupt_table(&mut sqe, &ns);
        }
        self.flags(&mut sqe, &[3], &[3]);
        Some(Command::plain(sqe))
    }

    /// A number of elements of `each` bytes that fit into a namespace; small in most cases.
    fn element_count(&mut self, ns: &Namespace, each: u64, large: bool) -> u64 {
        let most = (ns.blocks * BLOCK / each.max(1)).max(1);
        match large {
            true => most.div_ceil(2) + self.random.below(most.div_ceil(2)),
            false => {
                let few = self.pick(&[4, 64, 1500]);
                1 + self.random.below(most.min(few))
            }
        }
    }

    /// Three ranges of `sizes` units, adjacent or with a gap of a unit, in a random order. Without
    /// room, hostile input has ranges beyond the end of the namespace.
    fn places(&mut self, ns: &Namespace, sizes: [u64; 3]) -> Option<[u32; 3]> {
        let sum = sizes.iter().sum();
        let room = (ns.blocks * BLOCK / UNIT).checked_sub(sum);
        let room = room.or(self.is_hostile().then_some(0))?;
        let per_unit = UNIT / BLOCK;
        let at = self.unused(ns, sum * per_unit, (room + sum) * per_unit, 6) / per_unit;
        let (mut at, mut gaps) = (at, room - at.min(room));
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        let mut out = [0; 3];
        for n in self.pick(&orders) {
            out[n] = at as u32;
            let gap = self.random.below(2).min(gaps);
            (at, gaps) = (at + sizes[n] + gap, gaps - gap);
        }
        Some(out)
    }

    /// A valid command.
    pub(super) fn valid_table(&mut self, opcode: u8, ns: &Namespace, long: bool) -> Option<Sqe> {
        let (sizes, rest) = match opcode {
            SORT => {
                let width = self.random.below(3);
                let kind = width | self.random.below(3) << 2 | self.random.below(8) << 4;
                let count = self.element_count(ns, 4 << (2 + width), long);
                (sort_bytes(count, kind as u32), [count, kind, 0])
            }
            SHUFFLE => {
                let row = self.pick(&[1, 3, 16, 64, 100, 256, 1000, 4096]);
                let count = self.element_count(ns, 3 * row, long);
                let rows = self.element_count(ns, 3 * row, long);
                let how = self.random.below(4);
                let sizes = [(4 * count) << how, rows * row, count * row];
                (sizes, [count, rows, row | how << 24])
            }
            _ => {
                let size = self.random.below(4);
                let count = self.element_count(ns, 3 << size, long);
                let (plain, packed) = self.pick(&[(0, 0), (1, 0), (0, 1)]);
                let width = match packed {
                    1 => self.pick(&[8, 16, 32]),
                    _ => self.random.below(17),
                };
                // A dictionary that covers all 8-bit keys holds every value that is looked up.
                let entries = self.pick(&[1, 256, 1 << width.min(16)]);
                let bytes = match (plain, packed) {
                    (1, _) => count << size,
                    (_, 1) => count * width / 8,
                    _ => (count * width).div_ceil(8) + self.random.below(64),
                };
                let dictionary = if plain == 1 { 0 } else { entries << size };
                let kind = (entries - 1) | width << 16 | size << 24 | plain << 26 | packed << 27;
                ([dictionary, bytes, count << size], [count, bytes, kind])
            }
        };
        let [a, b, c] = self.places(ns, sizes.map(units))?;
        let [d, e, f] = rest.map(|value| value as u32);
        Some(table_command(opcode, [a, b, c, d, e, f]))
    }

    /// Corrupts a command: places beyond the end or over each other, absurd numbers, reserved bits
    /// set.
    pub(super) fn corrupt_table(&mut self, sqe: &mut Sqe, ns: &Namespace) {
        let all = ns.blocks * BLOCK / UNIT;
        let place = 10 + self.random.below(3) as usize;
        match self.random.below(10) {
            0 => sqe.dw[place] = sqe.dw[10 + self.random.below(3) as usize],
            1..=3 => {
                let edges = [
                    all.saturating_sub(1),
                    all,
                    all + 1,
                    1 << 20,
                    u32::MAX.into(),
                ];
                sqe.dw[place] = self.pick(&edges) as u32;
            }
            4 => sqe.dw[place] = sqe.dw[place].wrapping_sub(1),
            5 => sqe.dw[13] = self.pick(&[0, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX]),
            6 => sqe.dw[14] = self.pick(&[0, 1, 1 << 16, u32::MAX]),
            7 => sqe.dw[14] ^= 1 << self.random.below(32),
            8 => sqe.dw[15] ^= 1 << self.random.below(32),
            _ => sqe.dw[13] ^= 1 << self.random.below(32),
        }
    }
}
