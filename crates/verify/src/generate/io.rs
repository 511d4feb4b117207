// SPDX-License-Identifier: Apache-2.0

//! Random I/O commands.

use nvme::Namespace;
use spec::nvme::{io, Sqe, ALL_NAMESPACES};

use super::{Command, Fill, Generator, Policy};
use crate::commands::{moves, COPY, FUSED_FIRST, FUSED_SECOND};
use crate::BLOCK;

/// Blocks that a long Dataset Management clears, about.
const LONG: u64 = 8192;
/// Most blocks of a command: NLB has 16 bits.
const MOST_BLOCKS: u64 = 65536;
/// Opcodes of the NVM command set.
const NVM: [u8; 7] = [
    io::FLUSH,
    io::WRITE,
    io::READ,
    io::COMPARE,
    io::WRITE_ZEROES,
    io::DATASET_MANAGEMENT,
    io::VERIFY,
];

impl Generator<'_> {
    /// An I/O command.
    pub fn io(&mut self) -> Option<Command> {
        let valid = self.policy == Policy::Valid;
        let opcode = match self.random.below(100) {
            0..=28 => io::READ,
            29..=58 => io::WRITE,
            59..=68 => io::COMPARE,
            69..=75 => io::WRITE_ZEROES,
            76..=79 => io::VERIFY,
            80..=86 if !valid => io::DATASET_MANAGEMENT,
            87..=89 => io::FLUSH,
            // In a soak, few commands move few bytes.
            90..=97 if !self.limits.engines.is_empty() && (!valid || self.chance(20)) => {
                return self.engine(false);
            }
            98 | 99 if self.is_wrong(100) => self.any_opcode(),
            _ => io::READ,
        };
        let mut command = match opcode {
            io::DATASET_MANAGEMENT => self.deallocation()?,
            io::FLUSH => {
                let right = match self.chance(20) {
                    true => ALL_NAMESPACES,
                    false => self.namespace().nsid,
                };
                Command::plain(Sqe::flush(self.nsid(right)))
            }
            _ => self.transfer(opcode)?,
        };
        self.flags(&mut command.sqe, &[3], &[3]);
        Some(command)
    }

    /// Any opcode; without other errors, one that no controller knows.
    fn any_opcode(&mut self) -> u8 {
        let opcode = self.random.next() as u8;
        match NVM.contains(&opcode) || self.limits.engines.contains(&opcode) {
            true if !self.is_hostile() => 0x77,
            _ => opcode,
        }
    }

    /// A command with a range of blocks.
    pub fn transfer(&mut self, opcode: u8) -> Option<Command> {
        let ns = self.namespace();
        let has_data = moves(opcode);
        let mut count = self.block_count();
        if self.policy == Policy::Valid {
            let most = self.random.below(8);
            count = 1 + self.random.below(1 << most);
        } else if !has_data && self.chance(2) {
            // Commands without data may be as long as the field allows.
            count = 1 + self.random.below(MOST_BLOCKS);
        }
        let most = match has_data {
            true => ns.blocks.min(self.limits.transfer / BLOCK),
            false => ns.blocks.min(MOST_BLOCKS),
        };
        if count > most && !self.is_wrong(50) {
            count = 1 + self.random.below(most);
        }
        let lba = self.first_block(&ns, count);
        let nsid = self.nsid(ns.nsid);
        let mut sqe = Sqe::of_blocks(opcode, nsid, lba, count as u32);
        if !has_data {
            if self.policy != Policy::Valid {
                sqe = sqe.with_prps(self.random.next(), self.random.next());
                sqe.dw[0] |= self.pick(&[0, 0, 1, 2]) << 14;
            }
            return Some(Command::plain(sqe));
        }
        let fill = match opcode {
            io::WRITE => Fill::Random,
            io::COMPARE => Fill::Bytes(self.expected(ns.base.wrapping_add(lba), count)),
            _ => Fill::Nothing,
        };
        self.with_data(sqe, (count * BLOCK).min(self.limits.transfer), fill)
    }

    /// The bytes that a Compare should find from this block on, or with one bit inverted.
    fn expected(&mut self, block: u64, count: u64) -> Vec<u8> {
        let mut data = self.content(block, count);
        if self.is_wrong(30) {
            let at = self.random.below(data.len() as u64) as usize;
            data[at] ^= 1 << self.random.below(8);
        }
        data
    }

    fn deallocation(&mut self) -> Option<Command> {
        let ns = self.namespace();
        let count = match self.random.below(20) {
            0 => 1 + self.random.below(256),
            1..=5 => 1 + self.random.below(20),
            _ => 1 + self.random.below(3),
        };
        // Some take long: up to the whole namespace, several times over.
        let most = match count > 1 && self.chance(8) {
            true => (LONG / count).min(ns.blocks),
            false => ns.blocks.min(12),
        };
        let mut list = Vec::new();
        for _ in 0..count {
            let len = match self.chance(3) {
                true => 0,
                false => 1 + self.random.below(most.max(1)),
            };
            // An empty range is within any namespace.
            let lba = match (len > 0 || self.is_hostile()) && self.is_wrong(1) {
                true => self.far_block(&ns, len),
                false => self.unused(&ns, len, ns.blocks, 3),
            };
            list.extend((self.random.next() as u32).to_le_bytes());
            list.extend(range(lba, len));
        }
        let attributes = if self.chance(85) { 4 } else { 0 };
        let sqe = Sqe::deallocate(self.nsid(ns.nsid), count as usize).with_cdw(11, attributes);
        self.with_data(sqe, list.len() as u64, Fill::Bytes(list))
    }

    /// A deallocation of the largest namespace, 256 times.
    pub fn endless(&mut self) -> Option<Command> {
        let ns = self.large_namespace(0);
        let one = [vec![0; 4], range(0, ns.blocks)].concat();
        let list = one.repeat(256);
        let sqe = Sqe::deallocate(ns.nsid, 256);
        self.with_data(sqe, list.len() as u64, Fill::Bytes(list))
    }

    /// A fused Compare and Write, mostly complete and valid.
    pub fn fused(&mut self) -> Option<Vec<Command>> {
        let ns = self.namespace();
        let count = self.block_count().min(ns.blocks).min(64);
        let lba = match self.is_hostile() {
            true => self.first_block(&ns, count),
            false => self.unused(&ns, count, ns.blocks, 6),
        };
        let mut halves = [(io::COMPARE, ns, lba, count), (io::WRITE, ns, lba, count)];
        let mut fuses = vec![FUSED_FIRST, FUSED_SECOND];
        if self.is_wrong(30) {
            let other = self.namespace();
            let odd = &mut halves[self.random.below(2) as usize];
            match self.random.below(12) {
                0 => odd.0 = self.pick(&[io::READ, io::WRITE, io::COMPARE, io::WRITE_ZEROES]),
                1 if self.is_hostile() => {
                    odd.0 = self.pick(&[io::FLUSH, io::DATASET_MANAGEMENT, COPY, 0x77])
                }
                1 => odd.0 = self.pick(&[io::FLUSH, 0x77]),
                2 => odd.1 = other,
                3 => odd.2 = odd.2.wrapping_add(1),
                4 => odd.3 += 1,
                5 => odd.2 = ns.blocks,
                6 => fuses = vec![FUSED_FIRST],
                7 => fuses = vec![FUSED_SECOND],
                8 => fuses = vec![FUSED_FIRST, 0],
                9 => fuses = vec![FUSED_FIRST, 3],
                10 => fuses = vec![FUSED_FIRST, FUSED_FIRST],
                _ => fuses = vec![FUSED_SECOND, FUSED_FIRST],
            }
        }
        let halves = fuses.into_iter().zip(halves);
        halves
            .map(|(fuse, half)| self.fused_half(fuse, half))
            .collect()
    }

    fn fused_half(
        &mut self,
        fuse: u32,
        (opcode, ns, lba, count): (u8, Namespace, u64, u64),
    ) -> Option<Command> {
        let nsid = match self.is_hostile() {
            true => self.nsid(ns.nsid),
            false => ns.nsid,
        };
        let sqe = Sqe::of_blocks(opcode, nsid, lba, count as u32);
        let fill = match opcode {
            io::COMPARE => Fill::Bytes(self.expected(ns.base.wrapping_add(lba), count)),
            _ => Fill::Random,
        };
        let mut command = self.with_data(sqe, count * BLOCK, fill)?;
        command.sqe.dw[0] |= fuse << 8;
        Some(command)
    }
}

/// A range of Dataset Management, without its attributes.
fn range(lba: u64, len: u64) -> Vec<u8> {
    [&(len as u32).to_le_bytes()[..], &lba.to_le_bytes()].concat()
}
