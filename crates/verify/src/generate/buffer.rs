// SPDX-License-Identifier: Apache-2.0

//! Buffers of random commands: pages, PRPs and SGLs, mostly valid, sometimes corrupted.

use sim::Random;
use spec::nvme::{io, Sqe};

use crate::generate::sgl::sgl;
use crate::generate::Command;
use crate::oracle::host_model::HostModel;
use crate::oracle::model::transfer;
use crate::random::{chance, pick};
use crate::PAGE;

/// An address without memory and outside the interrupt range.
pub fn nowhere(random: &mut Random) -> u64 {
    let page = pick(
        random,
        &[
            0,
            0x1000,
            0x7FFF_F000,
            0xFFFF_F000,
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

/// Content of a buffer.
pub enum Fill {
    /// Zeros.
    Nothing,
    /// Random bytes.
    Random,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// Gives an I/O command a buffer of `bytes` bytes. `None` if there is no room.
pub fn with_data(
    host: &mut HostModel,
    random: &mut Random,
    mut sqe: Sqe,
    bytes: u64,
    fill: Fill,
) -> Option<Command> {
    if chance(random, 60) {
        return with_prps(host, random, sqe, bytes, fill);
    }
    let (first, pages) = sgl(host, random, bytes, sqe.opcode() == io::READ)?;
    sqe = sqe.with_prps(first.addr, first.high());
    sqe.dw[0] |= pick(random, &[1 << 14, 2 << 14]);
    fill_buffer(host, random, &sqe, bytes, fill);
    Some((sqe, pages))
}

/// Gives a command a buffer of `bytes` bytes, with PRPs. `None` if there is no room.
pub fn with_prps(
    host: &mut HostModel,
    random: &mut Random,
    sqe: Sqe,
    bytes: u64,
    fill: Fill,
) -> Option<Command> {
    let (prp1, prp2, pages) = prps(host, random, bytes)?;
    let sqe = sqe.with_prps(prp1, prp2);
    fill_buffer(host, random, &sqe, bytes, fill);
    Some((sqe, pages))
}

/// Fills the buffer that a command names.
fn fill_buffer(host: &mut HostModel, random: &mut Random, sqe: &Sqe, bytes: u64, fill: Fill) {
    let content: Vec<u8> = match fill {
        Fill::Nothing => return,
        Fill::Random => {
            let words = 0..bytes.div_ceil(8);
            words.flat_map(|_| random.next().to_le_bytes()).collect()
        }
        Fill::Bytes(bytes) => bytes,
    };
    for s in transfer(&host.memory, sqe, bytes, false).segments {
        let (from, to) = (s.offset as usize, (s.offset + s.len) as usize);
        if let Some(piece) = content.get(from..to) {
            host.memory.store(s.addr, piece);
        }
    }
}

/// PRP1, PRP2, and the pages of `bytes` bytes. `None` if there is no room.
fn prps(host: &mut HostModel, random: &mut Random, bytes: u64) -> Option<(u64, u64, Vec<u64>)> {
    let offset = if chance(random, 50) {
        0
    } else {
        random.below(1024) * 4
    };
    let count = (offset + bytes).div_ceil(PAGE);
    // Data, and at most two list pages for each 511 entries and a first one with few.
    let room = count + 3;
    if (host.memory.free_pages() as u64) < room + 64 {
        return None;
    }
    let mut pages: Vec<u64> = (0..count)
        .filter_map(|_| host.memory.alloc_any(random))
        .collect();
    let data = pages.clone();
    let mut prp1 = data[0] + offset;
    let mut prp2 = match count {
        1 if chance(random, 20) => random.next(),
        1 => 0,
        2 => data[1],
        _ => list(host, random, &data[1..], &mut pages)?,
    };
    if !host.valid_only && chance(random, 8) {
        corrupt(host, random, count, &mut prp1, &mut prp2);
    }
    Some((prp1, prp2, pages))
}

/// A PRP list of these pages, from any entry of its page on. Sometimes it leads back to its start.
fn list(
    host: &mut HostModel,
    random: &mut Random,
    data: &[u64],
    pages: &mut Vec<u64>,
) -> Option<u64> {
    let take = |host: &mut HostModel, random: &mut Random, pages: &mut Vec<u64>| {
        let page = host.memory.alloc_any(random)?;
        pages.push(page);
        Some(page)
    };
    let mut page = take(host, random, pages)?;
    let first = match random.below(4) {
        0 | 1 => 0,
        2 => random.below(512),
        _ => 505 + random.below(7),
    };
    let start = page + 8 * first;
    let (mut slot, mut entered) = (first, first);
    for (n, &target) in data.iter().enumerate() {
        let left = (data.len() - n) as u64;
        if slot == 511 && left > 1 {
            let cycle = entered > left && chance(random, 50);
            let next = if cycle {
                page
            } else {
                take(host, random, pages)?
            };
            host.memory.store(page + 8 * slot, &next.to_le_bytes());
            (page, slot, entered) = (next, 0, 0);
        }
        host.memory.store(page + 8 * slot, &target.to_le_bytes());
        slot += 1;
    }
    Some(start)
}

/// Corrupts one field of a pair of PRPs.
fn corrupt(host: &mut HostModel, random: &mut Random, count: u64, prp1: &mut u64, prp2: &mut u64) {
    let in_list = |random: &mut Random, list: u64| {
        let entries = (count - 1).min((PAGE - list % PAGE) / 8);
        list + 8 * random.below(entries)
    };
    match random.below(9) {
        0 => *prp1 |= 1 + random.below(3),
        1 => *prp2 |= 4 << random.below(10),
        2 => *prp1 = nowhere(random) + (*prp1 % PAGE),
        3 => *prp2 = nowhere(random),
        4 => (*prp1, *prp2) = (u64::MAX, u64::MAX),
        5 => (*prp1, *prp2) = (0, 0),
        _ if count <= 2 => *prp2 |= 1 + random.below(4095),
        6 => {
            let at = in_list(random, *prp2);
            let entry = host.memory.qword(at).unwrap_or(0) | 1 << random.below(12);
            host.memory.store(at, &entry.to_le_bytes());
        }
        7 => {
            let (at, entry) = (in_list(random, *prp2), nowhere(random));
            host.memory.store(at, &entry.to_le_bytes());
        }
        _ if (PAGE - *prp2 % PAGE) / 8 < count - 1 => *prp1 |= 2,
        _ => {
            // The same page twice.
            let (from, to) = (in_list(random, *prp2), in_list(random, *prp2));
            let entry = host.memory.qword(from).unwrap_or(0);
            host.memory.store(to, &entry.to_le_bytes());
        }
    }
}
