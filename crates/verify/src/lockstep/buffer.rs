// SPDX-License-Identifier: Apache-2.0

//! Buffers of commands: PRPs and SGLs of all shapes, some with one corrupted field.
//!
//! A corrupted buffer has a single error, as the controller may report either of two errors.

use nvme::sgl::{Descriptor, DESCRIPTOR};
use sim::Random;
use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};
use spec::nvme::Sqe;

use crate::lockstep::memory::Arena;
use crate::random::{chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Approximate number of data descriptors in an SGL.
const PIECES: usize = 12;

/// The memory of a command.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// Its pages, including those of lists.
    pub pages: Vec<u64>,
    /// Its segments in order: offset in the data, address, length.
    pub pieces: Vec<(u64, u64, u64)>,
    /// One field is corrupted.
    pub corrupted: bool,
    /// A page is named twice.
    pub twice: bool,
    /// Stores that the host has to make first.
    pub stores: Vec<(u64, Vec<u8>)>,
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
    pub fn fill(&mut self, data: &[u8]) {
        for &(offset, addr, len) in &self.pieces {
            if let Some(piece) = data.get(offset as usize..(offset + len) as usize) {
                self.stores.push((addr, piece.to_vec()));
            }
        }
    }
}

/// An address without memory and outside the interrupt range.
fn nowhere(random: &mut Random) -> u64 {
    match chance(random, 50) {
        true => pick(
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
        ),
        false => (1 << 44) + random.below(1 << 20) * PAGE,
    }
}

/// PRPs of `bytes` bytes. `None` if there is no room.
pub fn prps(
    random: &mut Random,
    arena: &mut Arena,
    sqe: Sqe,
    bytes: u64,
    corrupt: u64,
) -> Option<(Sqe, Buffer)> {
    let offset = if chance(random, 50) {
        0
    } else {
        random.below(1024) * 4
    };
    let count = (offset + bytes).div_ceil(PAGE).max(1);
    let mut data = Vec::new();
    for _ in 0..count {
        data.push(arena.alloc(random)?);
    }
    let mut buffer = Buffer {
        pages: data.clone(),
        ..Buffer::default()
    };
    let mut at = 0;
    for (n, &page) in (0..).zip(&data) {
        let skip = if n == 0 { offset } else { 0 };
        let len = (PAGE - skip).min(bytes - at);
        buffer.pieces.push((at, page + skip, len));
        at += len;
    }
    let mut prp1 = data[0] + offset;
    let mut targets = data[1..].to_vec();
    let corrupted = chance(random, corrupt);
    let what = random.below(9);
    buffer.corrupted = corrupted;
    if corrupted {
        match what {
            0 | 1 => prp1 |= 1 + random.below(3),
            2 => prp1 = nowhere(random) + offset,
            3 | 4 if !targets.is_empty() => {
                let n = random.below(targets.len() as u64) as usize;
                targets[n] |= 1 << random.below(12);
            }
            5 | 6 if !targets.is_empty() => {
                let n = random.below(targets.len() as u64) as usize;
                targets[n] = nowhere(random);
            }
            7 if targets.len() > 1 => {
                let (from, to) = (
                    random.below(targets.len() as u64),
                    random.below(targets.len() as u64),
                );
                targets[to as usize] = targets[from as usize];
                buffer.twice = true;
            }
            _ => {}
        }
    }
    let mut prp2 = match targets.len() {
        0 if chance(random, 20) => random.next(),
        0 => 0,
        1 => targets[0],
        _ => list(random, arena, &targets, &mut buffer)?,
    };
    if corrupted && what == 8 && targets.len() > 1 {
        match chance(random, 50) {
            true => prp2 |= 1 + random.below(7),
            false => prp2 = nowhere(random),
        }
    }
    Some((sqe.with_prps(prp1, prp2), buffer))
}

/// A PRP list from any entry of its page on.
fn list(
    random: &mut Random,
    arena: &mut Arena,
    targets: &[u64],
    buffer: &mut Buffer,
) -> Option<u64> {
    let mut page = arena.alloc(random)?;
    buffer.pages.push(page);
    let first = match random.below(4) {
        0 | 1 => 0,
        2 => random.below(512),
        _ => 505 + random.below(7),
    };
    let start = page + 8 * first;
    let mut slot = first;
    for (n, &target) in targets.iter().enumerate() {
        if slot == 511 && n + 1 < targets.len() {
            let next = arena.alloc(random)?;
            buffer.pages.push(next);
            buffer
                .stores
                .push((page + 8 * slot, next.to_le_bytes().to_vec()));
            (page, slot) = (next, 0);
        }
        buffer
            .stores
            .push((page + 8 * slot, target.to_le_bytes().to_vec()));
        slot += 1;
    }
    Some(start)
}

/// An SGL of `bytes` bytes. `None` if there is no room.
pub fn sgl(
    random: &mut Random,
    arena: &mut Arena,
    sqe: Sqe,
    bytes: u64,
    to_host: bool,
    corrupt: u64,
) -> Option<(Sqe, Buffer)> {
    let mut buffer = Buffer::default();
    let mut list = blocks(random, arena, bytes, to_host, &mut buffer)?;
    let corrupted = chance(random, corrupt);
    buffer.corrupted = corrupted;
    if !corrupted && chance(random, 15) {
        // More than the data needs.
        if let Some(last) = list.last_mut() {
            last.len += 4 * random.below(1 << 20) as u32;
        }
    }
    let mut first = list[0];
    if list.len() > 1 || chance(random, 40) {
        first = segments(random, arena, &mut list, corrupted, &mut buffer)?;
    }
    if corrupted && (buffer.stores.is_empty() || chance(random, 15)) {
        corrupt_one(random, &mut first);
    }
    let mut sqe = sqe.with_prps(first.addr, first.high());
    sqe.dw[0] |= pick(random, &[1 << 14, 2 << 14]);
    Some((sqe, buffer))
}

/// Descriptors of `bytes` bytes.
fn blocks(
    random: &mut Random,
    arena: &mut Arena,
    bytes: u64,
    to_host: bool,
    buffer: &mut Buffer,
) -> Option<Vec<Descriptor>> {
    let mut list = Vec::new();
    let mut at = 0;
    let whole = chance(random, 30);
    while at < bytes {
        if chance(random, 8) {
            let addr = pick(random, &[0, 1 << 33, 4]);
            list.push(Descriptor {
                addr,
                len: 0,
                kind: DATA_BLOCK,
            });
        }
        let left = bytes - at;
        let mut len = match whole || list.len() >= PIECES {
            true => left,
            false => 4 * (1 + random.below(left.min(9000) / 4)),
        };
        if chance(random, 10) {
            // A bit bucket: to the host it discards some of the data; otherwise it moves nothing,
            // whatever its length.
            let addr = random.next();
            let kind = BIT_BUCKET;
            list.push(Descriptor {
                addr,
                len: len as u32,
                kind,
            });
            at += if to_host { len } else { 0 };
            continue;
        }
        let offset = match random.below(3) {
            0 => 0,
            1 => 4 * random.below(1024),
            _ => PAGE - 4 * (1 + random.below(16)),
        };
        let mut count = (offset + len).div_ceil(PAGE);
        let run = match arena.alloc_run(random, count) {
            Some(run) => run,
            None => {
                (len, count) = (len.min(PAGE - offset), 1);
                arena.alloc(random)?
            }
        };
        buffer.pages.extend((0..count).map(|n| run + n * PAGE));
        buffer.pieces.push((at, run + offset, len));
        list.push(Descriptor {
            addr: run + offset,
            len: len as u32,
            kind: DATA_BLOCK,
        });
        at += len;
    }
    Some(list)
}

/// Puts descriptors into segments; returns the first descriptor.
fn segments(
    random: &mut Random,
    arena: &mut Arena,
    list: &mut [Descriptor],
    corrupted: bool,
    buffer: &mut Buffer,
) -> Option<Descriptor> {
    let parts = 1 + random.below(4.min(list.len() as u64)) as usize;
    let parts = parts.max(list.len().div_ceil(128));
    let size = list.len().div_ceil(parts);
    let count = list.len().div_ceil(size);
    let bad = corrupted.then(|| random.below(count as u64) as usize);
    let mut next: Option<Descriptor> = None;
    for (n, chunk) in list.chunks(size).enumerate().rev() {
        let mut group: Vec<Descriptor> = chunk.iter().copied().chain(next).collect();
        let last = next.is_none() && chance(random, 85);
        if bad == Some(n) {
            let at = random.below(group.len() as u64) as usize;
            corrupt_one(random, &mut group[at]);
        }
        let len = group.len() as u64 * DESCRIPTOR;
        let page = arena.alloc_run(random, 2)?;
        buffer.pages.extend([page, page + PAGE]);
        let start = match chance(random, 20) {
            // Across the boundary of the pages.
            true => page + PAGE - 8 * random.below(len / 8),
            false => page + 8 * random.below((PAGE - len) / 8),
        };
        for (n, d) in (0..).zip(&group) {
            buffer
                .stores
                .push((start + n * DESCRIPTOR, d.bytes().to_vec()));
        }
        next = Some(Descriptor {
            addr: start,
            len: len as u32,
            kind: if last { LAST_SEGMENT } else { SEGMENT },
        });
    }
    next
}

/// Corrupts one field of a descriptor.
fn corrupt_one(random: &mut Random, d: &mut Descriptor) {
    let segment = matches!(d.kind, SEGMENT | LAST_SEGMENT);
    match random.below(9) {
        0 => d.kind = random.next() as u8,
        1 => d.kind |= 1 + random.below(15) as u8,
        2 => d.len |= 1 + random.below(3) as u32,
        3 if segment => d.len ^= 8,
        3 => d.addr |= 1 + random.below(3),
        4 => d.addr |= 1 << random.below(3),
        5 => d.len = 0,
        6 => d.addr = nowhere(random) + d.addr % 64,
        7 => d.len = d.len.saturating_sub(4 * (1 + random.below(8) as u32)),
        _ => d.kind ^= LAST_SEGMENT ^ SEGMENT,
    }
}
