// SPDX-License-Identifier: Apache-2.0

//! Random commands of engines: mostly valid, sometimes wrong in fields that only the engine checks.

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use crate::commands::{BITMAP_UNIT, BLOCKS, COPY, COUNT, FILTER, TABLES};
use crate::generate::lists::{list_command, lists, List};
use crate::generate::tables::table_command;
use crate::generate::{block_count, first_block, flags, namespace, nsid, unused, Command};
use crate::oracle::host_model::HostModel;
use crate::random::{chance, pick};
use crate::BLOCK;

/// A command of an engine. A `long` one covers a large part of the largest namespace.
pub fn engine_command(host: &HostModel, random: &mut Random, long: bool) -> Command {
    let known = &host.model.limits.engines;
    let tables = known.iter().filter(|o| TABLES.contains(o)).count();
    let turn = random.below(known.len().max(1) as u64);
    if turn < tables as u64 {
        return table_command(host, random, long);
    }
    if lists(host) && turn == tables as u64 {
        // Over whatever the media hold there.
        let ns = namespace(host, random);
        let list = List::anywhere(random, &ns);
        return list_command(host, random, &list);
    }
    let opcode = pick(random, &[COUNT, COPY, COPY, FILTER, FILTER]);
    let active = host.model.limits.namespaces.active();
    let ns = match active.max_by_key(|ns| ns.blocks) {
        Some(ns) if long => *ns,
        _ => namespace(host, random),
    };
    // The target needs room beside the source.
    let most = match opcode {
        COUNT => ns.blocks,
        COPY => ns.blocks / 2,
        _ => ns.blocks * 7 / 8,
    };
    let most = most.max(1);
    let mut count = match long || chance(random, 10) {
        true => most.div_ceil(2) + random.below(most.div_ceil(2)),
        false => block_count(random),
    };
    if count > most && chance(random, 95) {
        count = 1 + random.below(most);
    }
    let lba = first_block(host, random, &ns, count);
    let nsid = nsid(host, random, ns.nsid);
    let mut sqe = Sqe::of_blocks(opcode, nsid, lba, count as u32);
    sqe.dw[12] = (count - 1) as u32;
    sqe = match opcode {
        COPY => with_target(host, random, sqe, &ns, count),
        _ => with_values(host, random, sqe, &ns, count),
    };
    if chance(random, 3) {
        sqe.dw[12] = pick(random, &[0xFF_FFFF, 0x80_0000, 0xFFFF, 0x1_0000]);
    }
    if chance(random, 3) {
        sqe.dw[12] |= 1 << (24 + random.below(8));
    }
    if chance(random, 3) {
        sqe.dw[13] |= 1 << random.below(32);
    }
    flags(random, &mut sqe, &[3], &[3]);
    (sqe, Vec::new())
}

/// A target for a copy: beside its source, over a part of it, or anywhere.
fn with_target(host: &HostModel, random: &mut Random, sqe: Sqe, ns: &Namespace, count: u64) -> Sqe {
    let from = sqe.slba();
    let to = match random.below(20) {
        0 => from.wrapping_add(random.below(count)),
        1 => from.wrapping_sub(random.below(count)),
        2 => from.wrapping_add(count),
        3 => from.wrapping_sub(count),
        4 => first_block(host, random, ns, count),
        // The last position that fits, or one block beyond it.
        5 | 6 => ns.blocks.saturating_sub(count) + random.below(2),
        _ => apart(from, count, || {
            unused(host, random, ns, count, ns.blocks, 3)
        }),
    };
    sqe.with_cdw(14, to as u32).with_cdw(15, (to >> 32) as u32)
}

/// Kind of values, bounds that occur in the media, and the place of a bitmap.
fn with_values(host: &HostModel, random: &mut Random, sqe: Sqe, ns: &Namespace, count: u64) -> Sqe {
    let kind = random.below(4) as u32;
    let from = sqe.slba();
    let mut bound = || match random.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next() & 0xFFFF_FFFF,
        3 | 4 => {
            // A value of the media, so that the inclusion of the bounds matters.
            let lba = from.wrapping_add(random.below(count));
            let block = host.media.any(ns.base.wrapping_add(lba));
            let at = random.below(BLOCK / 8) as usize * 8;
            let bytes = block[at..at + 8].iter().rev();
            let value = bytes.fold(0, |v, &b| v << 8 | u64::from(b));
            let half = kind & 1 == 0 && random.below(2) == 1;
            value >> if half { 32 } else { 0 }
        }
        _ => random.next(),
    };
    let (low, high) = (bound(), bound());
    let halves = [(2, low), (3, low >> 32), (14, high), (15, high >> 32)];
    let mut sqe = halves
        .into_iter()
        .fold(sqe, |sqe, (n, value)| sqe.with_cdw(n, value as u32));
    let unit = match (sqe.opcode(), random.below(20)) {
        (COUNT, _) => 0,
        (_, 0) => {
            // It ends with the namespace, or one block beyond it.
            let unit = (ns.blocks - 1) / BITMAP_UNIT;
            let len = ns.blocks - unit * BITMAP_UNIT + random.below(2);
            let count = (len - 1) * values_of(kind) + 1 + random.below(values_of(kind));
            sqe = sqe.with_cdw(10, 0).with_cdw(11, 0);
            sqe.dw[12] = count as u32 - 1;
            unit as u32
        }
        (_, 1) => pick(random, &[(ns.blocks / BITMAP_UNIT) as u32, (1 << 30) - 1]),
        (_, 2) => from.wrapping_add(random.below(count)) as u32 / BITMAP_UNIT as u32,
        _ => bitmap(host, random, ns, from, count, kind),
    };
    sqe.dw[13] = unit << 2 | kind;
    sqe
}

/// Blocks of values that one block of a bitmap covers.
fn values_of(kind: u32) -> u64 {
    if kind & 1 == 1 {
        64
    } else {
        32
    }
}

/// A place for a bitmap outside its source, if a few attempts find one.
fn bitmap(
    host: &HostModel,
    random: &mut Random,
    ns: &Namespace,
    from: u64,
    count: u64,
    kind: u32,
) -> u32 {
    let len = count.div_ceil(values_of(kind));
    let units = ns.blocks.saturating_sub(len) / BITMAP_UNIT + 1;
    let mut unit = 0;
    for _ in 0..12 {
        unit = random.below(units);
        let lba = unit * BITMAP_UNIT;
        let beside = lba + len <= from || from.saturating_add(count) <= lba;
        if beside && !host.media.in_use(ns.base + lba, len) {
            break;
        }
    }
    unit as u32
}

/// A range that does not overlap another one, if a few attempts find one.
fn apart(from: u64, count: u64, mut generate: impl FnMut() -> u64) -> u64 {
    let mut to = generate();
    for _ in 0..12 {
        if to.abs_diff(from) >= count {
            break;
        }
        to = generate();
    }
    to
}

/// A valid command of an engine, of up to 64 KiB; `None` if there is no engine.
pub fn valid_engine_command(host: &HostModel, random: &mut Random) -> Option<Command> {
    let ns = namespace(host, random);
    let known = &host.model.limits.engines;
    // Copies and bitmaps need two ranges.
    let fits = |o: &u8| *o == COUNT || BLOCKS.contains(o) && ns.blocks >= 32;
    let fit: Vec<u8> = known.iter().copied().filter(fits).collect();
    let opcode = *fit.get(random.below(fit.len().max(1) as u64) as usize)?;
    let count = 1 + random.below((ns.blocks / 4).clamp(1, 128));
    // The source lies in one half, the target in the other one.
    let half = ns.blocks / 2;
    let lba = random.below(half.saturating_sub(count) + 1);
    let to = half + random.below((ns.blocks - half).saturating_sub(count) + 1);
    let unit = match opcode {
        FILTER => to / BITMAP_UNIT,
        _ => 0,
    };
    let mut sqe = Sqe::of_blocks(opcode, ns.nsid, lba, count as u32);
    if opcode == COPY {
        return Some((sqe.with_cdw(14, to as u32), Vec::new()));
    }
    // A bitmap may begin before its half, so the source ends before that.
    if opcode == FILTER && lba + count > unit * BITMAP_UNIT {
        sqe = sqe.with_cdw(10, 0).with_cdw(12, 0);
    }
    let kind = random.below(4) as u32;
    sqe = sqe
        .with_cdw(13, (unit as u32) << 2 | kind)
        .with_cdw(15, random.next() as u32);
    Some((sqe, Vec::new()))
}
