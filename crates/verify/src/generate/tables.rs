// SPDX-License-Identifier: Apache-2.0

//! Random commands of the engines that sort tables: mostly valid, sometimes wrong in fields that
//! only the engine checks.

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use crate::commands::{DECODE, SHUFFLE, SORT, TABLES};
use crate::generate::{flags, namespace, nsid, Command};
use crate::oracle::host_model::HostModel;
use crate::oracle::tables::{sort_bytes, UNIT};
use crate::random::{chance, pick};
use crate::BLOCK;

/// Units that `bytes` bytes occupy.
fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// A number of elements of `each` bytes that fit into a namespace; small in most cases.
fn element_count(random: &mut Random, ns: &Namespace, each: u64, large: bool) -> u64 {
    let most = (ns.blocks * BLOCK / each.max(1)).max(1);
    match large {
        true => most.div_ceil(2) + random.below(most.div_ceil(2)),
        false => {
            let few = pick(random, &[4, 64, 1500]);
            1 + random.below(most.min(few))
        }
    }
}

/// Three adjacent ranges of `sizes` units in a random order, from a random place on. Without enough
/// room they extend beyond the end of the namespace.
fn places(host: &HostModel, random: &mut Random, ns: &Namespace, sizes: [u64; 3]) -> [u32; 3] {
    let all = ns.blocks * BLOCK / UNIT;
    let room = all.saturating_sub(sizes.iter().sum());
    let mut at = 0;
    for _ in 0..6 {
        at = random.below(room + 1);
        let blocks = UNIT / BLOCK;
        if !host
            .media
            .in_use(ns.base + at * blocks, sizes.iter().sum::<u64>() * blocks)
        {
            break;
        }
    }
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let mut out = [0; 3];
    for n in pick(random, &orders) {
        out[n] = at as u32;
        at += sizes[n] + random.below(2).min(room);
    }
    out
}

/// A command of one of the design's engines for tables. A `long` one covers a large part of the
/// largest namespace.
pub fn table_command(host: &HostModel, random: &mut Random, long: bool) -> Command {
    let active = host.model.limits.namespaces.active();
    let ns = match active.max_by_key(|ns| ns.blocks) {
        Some(ns) if long || chance(random, 60) => *ns,
        _ => namespace(host, random),
    };
    let nsid = nsid(host, random, ns.nsid);
    let known = TABLES.into_iter();
    let known: Vec<u8> = known
        .filter(|o| host.model.limits.engines.contains(o))
        .collect();
    let opcode = pick(random, &known);
    let mut sqe = right(host, random, opcode, &ns, long).with_nsid(nsid);
    corrupt(random, &mut sqe, &ns);
    flags(random, &mut sqe, &[3], &[3]);
    (sqe, Vec::new())
}

/// A valid command, if the namespace has room for it.
pub fn right(host: &HostModel, random: &mut Random, opcode: u8, ns: &Namespace, long: bool) -> Sqe {
    match opcode {
        SHUFFLE => shuffle(host, random, ns, long),
        DECODE => decode(host, random, ns, long),
        _ => sort(host, random, ns, long),
    }
}

fn command(opcode: u8, places: [u32; 3], rest: [u64; 3]) -> Sqe {
    let dwords = places.into_iter().chain(rest.map(|value| value as u32));
    (10..)
        .zip(dwords)
        .fold(Sqe::new(opcode), |sqe, (n, value)| sqe.with_cdw(n, value))
}

fn sort(host: &HostModel, random: &mut Random, ns: &Namespace, long: bool) -> Sqe {
    let width = random.below(3);
    let kind = width | random.below(3) << 2 | random.below(8) << 4;
    let count = element_count(random, ns, 4 << (2 + width), long);
    let sizes = sort_bytes(count, kind as u32).map(units);
    command(SORT, places(host, random, ns, sizes), [count, kind, 0])
}

fn shuffle(host: &HostModel, random: &mut Random, ns: &Namespace, long: bool) -> Sqe {
    let row = pick(random, &[1, 3, 16, 64, 100, 256, 1000, 4096]);
    let count = element_count(random, ns, 3 * row, long);
    let (rows, how) = (element_count(random, ns, 3 * row, long), random.below(4));
    let sizes = [(4 * count) << how, rows * row, count * row].map(units);
    command(
        SHUFFLE,
        places(host, random, ns, sizes),
        [count, rows, row | how << 24],
    )
}

fn decode(host: &HostModel, random: &mut Random, ns: &Namespace, long: bool) -> Sqe {
    let size = random.below(4);
    let count = element_count(random, ns, 3 << size, long);
    let (plain, packed) = pick(random, &[(0, 0), (1, 0), (0, 1)]);
    let width = match packed {
        1 => pick(random, &[8, 16, 32]),
        _ => random.below(17),
    };
    // A dictionary that covers all 8-bit keys holds every value that is looked up.
    let entries = pick(random, &[1, 256, 1 << width.min(16)]);
    let bytes = match (plain, packed) {
        (1, _) => count << size,
        (_, 1) => count * width / 8,
        _ => (count * width).div_ceil(8) + random.below(64),
    };
    let dictionary = if plain == 1 { 0 } else { entries << size };
    let sizes = [dictionary, bytes, count << size].map(units);
    let kind = (entries - 1) | width << 16 | size << 24 | plain << 26 | packed << 27;
    command(
        DECODE,
        places(host, random, ns, sizes),
        [count, bytes, kind],
    )
}

/// Sometimes corrupts a command: places beyond the end or over each other, absurd numbers, reserved
/// bits set.
pub fn corrupt(random: &mut Random, sqe: &mut Sqe, ns: &Namespace) {
    let all = ns.blocks * BLOCK / UNIT;
    let place = 10 + random.below(3) as usize;
    match random.below(24) {
        0 => sqe.dw[place] = sqe.dw[10 + random.below(3) as usize],
        1 => {
            sqe.dw[place] = pick(
                random,
                &[
                    all.saturating_sub(1),
                    all,
                    all + 1,
                    1 << 20,
                    u64::from(u32::MAX),
                ],
            ) as u32
        }
        2 => sqe.dw[place] = sqe.dw[place].wrapping_sub(1),
        3 => sqe.dw[13] = pick(random, &[0, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX]),
        4 => sqe.dw[14] = pick(random, &[0, 1, 1 << 16, u32::MAX]),
        5 => sqe.dw[14] ^= 1 << random.below(32),
        6 => sqe.dw[15] ^= 1 << random.below(32),
        7 => sqe.dw[13] ^= 1 << random.below(32),
        _ => {}
    }
}
