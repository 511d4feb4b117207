// SPDX-License-Identifier: Apache-2.0

//! Random lists of the pipeline and commands that name them: mostly valid, sometimes with a wrong
//! entry or a wrong command.

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use super::{Command, Generator};
use crate::commands::{ENTRY, MOST_ENTRIES, PIPELINE, TABLES, UNIT};
use crate::BLOCK;

/// The location of a list.
pub struct List {
    /// Its namespace.
    pub ns: Namespace,
    /// Its offset in the namespace, in units.
    pub unit: u64,
    /// Number of its entries.
    pub entries: u64,
}

impl List {
    /// A random location, at which most likely no list was written.
    pub fn anywhere(random: &mut Random, ns: &Namespace) -> List {
        let units = (ns.blocks * BLOCK).div_ceil(UNIT);
        List {
            ns: *ns,
            unit: random.below(units),
            entries: 1 + random.below(MOST_ENTRIES),
        }
    }

    /// Its first byte on the media.
    pub fn byte(&self) -> u64 {
        self.ns.base * BLOCK + self.unit * UNIT
    }
}

impl Generator<'_> {
    /// A list and its bytes, at an unused location; `None` if a few attempts find none. A `long`
    /// list has an entry that covers a large part of the largest namespace.
    pub fn list(&mut self, long: bool) -> Option<(List, Vec<u8>)> {
        let ns = self.large_namespace(if long { 0 } else { 40 });
        let most = self.pick(&[3, 3, 6, MOST_ENTRIES]);
        let entries = 1 + self.random.below(most);
        let list = (0..6).find_map(|_| {
            let mut list = List::anywhere(self.random, &ns);
            list.entries = entries;
            if self.chance(5) {
                // At the end of the namespace, or of its last whole unit.
                list.unit = (ns.blocks * BLOCK - entries * ENTRY) / UNIT;
            }
            let block = list.byte() / BLOCK;
            let free = !self.host.in_use(block..block + UNIT / BLOCK);
            free.then_some(list)
        })?;
        let slow = self.random.below(entries);
        let mut bytes = Vec::new();
        for n in 0..entries {
            let opcode = self.pick(&TABLES);
            let mut sqe = self.valid_table(opcode, &ns, long && n == slow)?;
            if self.is_wrong(10) {
                self.corrupt_table(&mut sqe, &ns);
            }
            if self.is_wrong(10) {
                match self.random.below(4) {
                    // The target overlaps the list, or its reports.
                    0 => sqe.dw[11 + usize::from(sqe.dw[0] & 0xFF != 0xD0)] = list.unit as u32,
                    1 => sqe.dw[self.random.below(10) as usize] ^= 1 << self.random.below(32),
                    2 => sqe.dw[0] = self.pick(&[0, 1, 0xC0, 0xDC, 0xD1, 0xFF, u32::MAX]),
                    _ => sqe.dw = [self.random.next() as u32; 16],
                }
            }
            bytes.extend(sqe.to_bytes());
        }
        Some((list, bytes))
    }

    /// The command that runs a list. One that is `refused` has an error for certain, so that the
    /// engine does not read the list.
    pub fn list_command(&mut self, list: &List, refused: bool) -> Option<Command> {
        let units = list.ns.blocks * BLOCK / UNIT;
        let mut sqe = Sqe::new(PIPELINE)
            .with_nsid(list.ns.nsid)
            .with_cdw(10, list.unit as u32)
            .with_cdw(13, list.entries as u32)
            .with_cdw(14, self.random.below(2) as u32);
        if refused && self.has_error {
            return None;
        }
        if refused || self.is_wrong(10) {
            self.has_error = true;
            match self.random.below(4) {
                0 => sqe.dw[10] = self.pick(&[units + 1, 1 << 20, u64::from(u32::MAX)]) as u32,
                1 => sqe.dw[13] = self.pick(&[0, 17, 1 << 20, 1 << 26, u32::MAX]),
                2 => sqe.dw[14] ^= 2 << self.random.below(31),
                _ => sqe.dw[self.pick(&[11, 12, 15])] ^= 1 << self.random.below(32),
            }
        } else if self.is_hostile() && self.chance(5) {
            // Another list.
            sqe.dw[10] = self.pick(&[units.saturating_sub(1), units]) as u32;
            sqe.dw[13] = 1 + self.random.below(MOST_ENTRIES) as u32;
        }
        sqe = sqe.with_nsid(self.nsid(list.ns.nsid));
        self.flags(&mut sqe, &[3], &[3]);
        Some(Command::plain(sqe))
    }
}
