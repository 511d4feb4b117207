// SPDX-License-Identifier: Apache-2.0

//! Buffers of random commands: PRPs of all shapes, mostly valid, sometimes corrupted.

use sim::Random;
use spec::nvme::Sqe;

use super::{Buffer, Command, Generator};
use crate::random::{bytes, chance, pick};
use crate::{BLOCK, PAGE};

/// Content of a buffer.
pub enum Fill {
    /// Zeros.
    Nothing,
    /// Random bytes.
    Random,
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Buffer {
    /// True if no block of its data lies in two pages or descriptors.
    pub fn is_blockwise(&self) -> bool {
        self.pieces.iter().all(|&(offset, addr, len)| {
            let to_page_end = PAGE - addr % PAGE;
            offset % BLOCK == 0 && (len <= to_page_end || (offset + to_page_end) % BLOCK == 0)
        })
    }

    /// Adds stores of these bytes to the places of the command's data.
    fn fill(&mut self, data: &[u8]) {
        for &(offset, addr, len) in &self.pieces {
            if let Some(piece) = data.get(offset as usize..(offset + len) as usize) {
                self.stores.push((addr, piece.to_vec()));
            }
        }
    }
}

/// The last page before the memory of hosts.
const BEFORE_MEMORY: u64 = 0xFFFF_F000;

/// An address without memory, far from the memory of hosts and from the interrupt range.
pub(super) fn nowhere(random: &mut Random) -> u64 {
    let page = pick(
        random,
        &[
            0,
            0x1000,
            0x7FFF_F000,
            1 << 41,
            1 << 52,
            1 << 63,
            u64::MAX - 4095,
        ],
    );
    match chance(random, 50) {
        true => page,
        // Pages that no other command uses.
        false => (1 << 44) + random.below(1 << 20) * PAGE,
    }
}

impl Generator<'_> {
    /// Gives an I/O command a buffer of `bytes` bytes. `None` if there is no room.
    pub fn with_data(&mut self, sqe: Sqe, bytes: u64, fill: Fill) -> Option<Command> {
        if self.chance(60) {
            return self.with_prps(sqe, bytes, fill);
        }
        let (first, buffer) = self.sgl(&sqe, bytes)?;
        let mut sqe = sqe.with_prps(first.addr, first.high());
        sqe.dw[0] |= self.pick(&[1 << 14, 2 << 14]);
        Some(self.with_buffer(sqe, buffer, bytes, fill))
    }

    /// Gives a command a buffer of `bytes` bytes, with PRPs. `None` if there is no room.
    pub fn with_prps(&mut self, sqe: Sqe, bytes: u64, fill: Fill) -> Option<Command> {
        let (prp1, prp2, buffer) = self.prps(bytes)?;
        Some(self.with_buffer(sqe.with_prps(prp1, prp2), buffer, bytes, fill))
    }

    fn with_buffer(&mut self, sqe: Sqe, mut buffer: Buffer, len: u64, fill: Fill) -> Command {
        let data = match fill {
            Fill::Nothing => Vec::new(),
            Fill::Random => bytes(self.random, len),
            Fill::Bytes(bytes) => bytes,
        };
        buffer.fill(&data);
        Command {
            sqe,
            buffer,
            bytes: len,
            data,
        }
    }

    /// PRP1, PRP2, and the memory of `bytes` bytes. `None` if there is no room.
    fn prps(&mut self, bytes: u64) -> Option<(u64, u64, Buffer)> {
        let offset = match self.chance(50) {
            true => 0,
            false => self.random.below(1024) * 4,
        };
        let count = (offset + bytes).div_ceil(PAGE).max(1);
        // Data, and at most two list pages for each 511 entries and a first one with few.
        if !self.host.has_room(count + 3) {
            return None;
        }
        let mut buffer = Buffer::default();
        for _ in 0..count {
            self.alloc(1, &mut buffer)?;
        }
        let (mut at, mut skip) = (0, offset);
        for &page in &buffer.pages {
            let len = (PAGE - skip).min(bytes - at);
            buffer.pieces.push((at, page + skip, len));
            (at, skip) = (at + len, 0);
        }
        let mut prp1 = buffer.pages[0] + offset;
        let mut targets = buffer.pages[1..].to_vec();
        buffer.corrupted = self.is_wrong(9);
        let most = if self.is_hostile() { 12 } else { 9 };
        let corruption = buffer.corrupted.then(|| self.random.below(most));
        let mut any = || self.random.below(targets.len().max(1) as u64) as usize;
        let (n, other) = (any(), any());
        let far = match self.chance(10) {
            true => BEFORE_MEMORY,
            false => nowhere(self.random),
        };
        match corruption {
            None | Some(9..) => {}
            Some(8) if targets.len() > 1 => {}
            Some(2) => prp1 = far + offset,
            Some(3 | 4) if !targets.is_empty() => targets[n] |= 1 << self.random.below(12),
            Some(5 | 6) if !targets.is_empty() => targets[n] = far,
            Some(7) if targets.len() > 1 => {
                targets[n] = targets[other];
                buffer.twice = true;
            }
            _ => prp1 |= 1 + self.random.below(3),
        }
        let mut prp2 = match targets[..] {
            [] if self.chance(20) => self.random.next(),
            [] => 0,
            [page] => page,
            _ => self.prp_list(&targets, &mut buffer)?,
        };
        match corruption {
            Some(8) if targets.len() > 1 => match self.chance(50) {
                true => prp2 |= 1 + self.random.below(7),
                false => prp2 = far,
            },
            Some(9) => prp2 |= 4 << self.random.below(10),
            Some(10) => (prp1, prp2) = (u64::MAX, u64::MAX),
            Some(11) => (prp1, prp2) = (0, 0),
            _ => {}
        }
        Some((prp1, prp2, buffer))
    }

    /// A PRP list of these pages, from any entry of its page on. Sometimes it leads back to its
    /// start.
    fn prp_list(&mut self, targets: &[u64], buffer: &mut Buffer) -> Option<u64> {
        let mut page = self.alloc(1, buffer)?;
        let first = match self.random.below(4) {
            0 | 1 => 0,
            2 => self.random.below(512),
            _ => 505 + self.random.below(7),
        };
        let start = page + 8 * first;
        let (mut slot, mut entered) = (first, first);
        for (n, target) in targets.iter().enumerate() {
            let left = (targets.len() - n) as u64;
            if slot == 511 && left > 1 {
                let next = match entered > left && self.chance(50) {
                    true => page,
                    false => self.alloc(1, buffer)?,
                };
                let entry = next.to_le_bytes().to_vec();
                buffer.stores.push((page + 8 * slot, entry));
                (page, slot, entered) = (next, 0, 0);
            }
            let entry = target.to_le_bytes().to_vec();
            buffer.stores.push((page + 8 * slot, entry));
            slot += 1;
        }
        Some(start)
    }
}
