// SPDX-License-Identifier: Apache-2.0

//! Jobs of the engines of tables: sorter, gather engine, dictionary decoder. Their results are
//! computed from the media, by their documentation.

use sim::Random;

use crate::commands::ONE_PASS;
use crate::lockstep::content::{held, laid, unknown};
use crate::lockstep::engines::{EngineKind, Job, LINE};
use crate::lockstep::kernels::{Column, Rows, Sort, PACKED, PLAIN};
use crate::lockstep::locks::RangeLocks;
use crate::random::{chance, pick};

/// Runs of keys below a limit.
fn runs(random: &mut Random, column: &Column) -> Vec<u8> {
    let width = column.width();
    let (mut out, mut left) = (Vec::new(), column.count);
    let header = |out: &mut Vec<u8>, mut head: u64| {
        while head > 127 {
            out.push(head as u8 | 0x80);
            head >>= 7;
        }
        out.push(head as u8);
    };
    while left > 0 {
        let most = left.min(pick(random, &[1, 9, 40, 600, 5000]));
        if chance(random, 50) {
            let run = 1 + random.below(most);
            header(&mut out, run << 1);
            let key = random.below(column.entries).to_le_bytes();
            out.extend_from_slice(&key[..width.div_ceil(8) as usize]);
            left -= run;
        } else {
            let groups = 1 + random.below(most.div_ceil(8));
            header(&mut out, groups << 1 | 1);
            let first = out.len();
            out.resize(first + (groups * width) as usize, 0);
            for n in 0..8 * groups {
                let key = random.below(column.entries);
                for bit in (0..width).filter(|bit| key >> bit & 1 == 1) {
                    let at = n * width + bit;
                    out[first + at as usize / 8] |= 1 << (at % 8);
                }
            }
            left = left.saturating_sub(8 * groups);
        }
    }
    out
}

/// A count, mostly small.
pub fn random_count(random: &mut Random, most: u64) -> u64 {
    let usual = pick(random, &[10, 100, 1000, 4000]);
    1 + random.below(most.min(usual).max(1))
}

/// A job of one of these engines.
pub fn job(
    random: &mut Random,
    kind: EngineKind,
    media: &[u8],
    locks: &mut RangeLocks,
) -> Option<Job> {
    match kind {
        EngineKind::Sort => sort(random, media, locks),
        EngineKind::Shuffle => shuffle(random, media, locks),
        _ => decode(random, media, locks),
    }
}

fn sort(random: &mut Random, media: &[u8], locks: &mut RangeLocks) -> Option<Job> {
    let size = media.len() as u64;
    let mut job = Sort::generate(random, 0);
    job.count = match random.below(60) {
        0 => ONE_PASS + random.below(2000),
        _ => random_count(random, ONE_PASS),
    };
    if job.count > ONE_PASS {
        job.kind &= !3;
    }
    let [keys, out, scratch] = job.sizes();
    let src = locks.place(random, (size, keys, LINE), false)?;
    let dst = locks.place(random, (size, out, LINE), true)?;
    let tmp = match scratch {
        0 => random.next(),
        _ => locks.place(random, (size, scratch, LINE), true)?,
    };
    let mut writes = laid(media, dst, &job.made(held(media, src, keys)));
    if scratch > 0 {
        writes.extend(unknown(tmp..tmp + scratch));
    }
    Some(Job {
        arguments: vec![src, dst, tmp, job.count, job.kind],
        writes,
        lays: Vec::new(),
        ends: Some((0, job.passes())),
    })
}

/// Rows to gather, of a table of at most an eighth of `size` bytes, and whether an index is to be
/// invalid.
pub fn rows(random: &mut Random, size: u64) -> (Rows, bool) {
    let row = match random.below(8) {
        0 => 1 + random.below(65536),
        1 | 2 => 64 * (1 + random.below(8)),
        _ => 1 + random.below(300),
    };
    let rows = Rows {
        kind: random.below(4),
        count: random_count(random, (size / 8 / row).max(1)),
        row,
        rows: random_count(random, (size / 8 / row).max(1)),
    };
    (rows, chance(random, 15))
}

/// Indexes that replace the content of the list's place.
pub fn indexes(random: &mut Random, rows: &Rows, held: &[u8], bad: bool) -> Vec<u8> {
    let (each, middle) = (
        rows.each(),
        if rows.kind == 0 { 0 } else { rows.each() / 2 },
    );
    let wrong = random.below(rows.count);
    let mut places = held.to_vec();
    for n in 0..rows.count {
        let index = match bad && n == wrong {
            true => pick(random, &[rows.rows as u32, u32::MAX]),
            false => random.below(rows.rows) as u32,
        };
        let at = (n * each + middle) as usize;
        places[at..at + 4].copy_from_slice(&index.to_le_bytes());
    }
    places
}

fn shuffle(random: &mut Random, media: &[u8], locks: &mut RangeLocks) -> Option<Job> {
    let size = media.len() as u64;
    let (rows, bad) = rows(random, size);
    let [listed, table, out] = rows.sizes();
    let list = locks.place(random, (size, listed, LINE), true)?;
    let src = locks.place(random, (size, table, 1), false)?;
    let dst = locks.place(random, (size, out, 1), true)?;
    let places = indexes(random, &rows, held(media, list, listed), bad);
    let mut made = rows.made(&places, held(media, src, table));
    let ends = rows.ends(&made);
    // Unwritten bytes stay.
    let begun = made.len();
    made.extend_from_slice(&held(media, dst, out)[begun..]);
    Some(Job {
        arguments: vec![list, src, dst, rows.count, rows.row, rows.rows, rows.kind],
        writes: laid(media, dst, &made),
        lays: laid(media, list, &places),
        ends: Some(ends),
    })
}

/// A column to decode, and its keys, which may be invalid.
pub fn column(random: &mut Random) -> (Column, Vec<u8>) {
    let (width, log) = (random.below(33), random.below(4));
    let most = (1 << width).min(65536).min((512 << 10) >> log);
    let usual = pick(random, &[8, 300, 65536]);
    let mut column = Column {
        kind: width | log << 8,
        entries: 1 + random.below(u64::min(most, usual)),
        count: random_count(random, 20_000),
    };
    let values = column.count << log;
    let mut source = match random.below(8) {
        0 => {
            column.kind |= PLAIN;
            (0..values).map(|_| random.next() as u8).collect()
        }
        1 | 2 if width > 0 && width % 8 == 0 && width != 24 => {
            column.kind |= PACKED;
            let keys = (0..column.count).map(|_| random.below(column.entries));
            keys.flat_map(|key| key.to_le_bytes().into_iter().take(width as usize / 8))
                .collect()
        }
        _ => runs(random, &column),
    };
    match random.below(6) {
        0 => source.truncate(random.below(1 + source.len() as u64) as usize),
        1 if !source.is_empty() => {
            let at = random.below(source.len() as u64) as usize;
            source[at] ^= 1 << random.below(8);
        }
        2 => column.count = 1 + random.below(2 * column.count),
        _ => {}
    }
    (column, source)
}

fn decode(random: &mut Random, media: &[u8], locks: &mut RangeLocks) -> Option<Job> {
    let size = media.len() as u64;
    let (column, source) = column(random);
    let log = column.kind >> 8 & 3;
    let (out, bytes) = (column.count << log, source.len() as u64);
    let entries = column.entries;
    let plain = column.is_plain();
    let dict = match plain {
        true => random.next(),
        false => locks.place(random, (size, entries << log, LINE), false)?,
    };
    let table = if plain {
        &[]
    } else {
        held(media, dict, entries << log)
    };
    let (made, ends) = column.made(table, &source);
    // At least one unit, so that no range is empty.
    let src = locks.place(random, (size, bytes.max(1), LINE), true)?;
    let dst = locks.place(random, (size, out, LINE), true)?;
    Some(Job {
        arguments: vec![dict, entries, src, bytes, dst, column.count, column.kind],
        writes: match ends.0 {
            0 => laid(media, dst, &made),
            _ => unknown(dst..dst + out),
        },
        lays: match source.is_empty() {
            true => Vec::new(),
            false => laid(media, src, &source),
        },
        ends: Some(ends),
    })
}

/// A job of which a part lies beyond the media: `bytes` from `end - inside` on.
pub fn beyond(kind: EngineKind, target: bool, own: u64, far: u64, bytes: u64) -> Vec<u64> {
    let (src, dst) = if target { (own, far) } else { (far, own) };
    match kind {
        // Indexes only, with as many bytes as the keys.
        EngineKind::Sort => vec![src, dst, 0, bytes / 4, 32],
        _ => vec![0, 0, src, bytes, dst, bytes, PLAIN],
    }
}

/// A job without effect.
pub fn wrong_job(random: &mut Random, kind: EngineKind, media: u64) -> Vec<u64> {
    let at = random.below(media / 128) * 64;
    let other = media / 2 + random.below(media / 128) * 64;
    let far = u64::MAX - 63;
    let bit = 1 << random.below(64);
    let mut arguments = match kind {
        EngineKind::Sort => vec![at, other, 0, 17, 0],
        EngineKind::Shuffle => vec![at, other, other + 2048, 17, 9, 9, 0],
        _ => vec![at, 65, other, 65, other + 2048, 65, 8 | PACKED],
    };
    let last = arguments.len() - 1;
    let changes: &[(usize, u64)] = match kind {
        EngineKind::Sort => &[
            (0, at + 4),
            (1, other + 32),
            (3, 0),
            (3, (1 << 31) + 1),
            (3, 17 | 1 << 40),
            (4, 3),
            (4, 12),
            (1, at),
            (1, at + 64),
            (0, far),
            (1, far),
        ],
        EngineKind::Shuffle => &[
            (0, at + 4),
            (3, 0),
            (3, (1 << 31) + 1),
            (4, 0),
            (4, 65537),
            (5, 0),
            (5, 1 << 32),
            (2, at),
            (2, at + 67),
            (2, other),
            (0, far),
            (1, far),
            (2, far),
        ],
        _ => &[
            (0, at + 4),
            (1, 0),
            (1, 65537),
            (2, other + 1),
            (3, (1 << 40) + 1),
            (4, other),
            (4, other + 64),
            (4, at),
            (5, 0),
            (5, (1 << 31) + 1),
            (6, 33),
            (6, 9 | PACKED),
            (6, 8 | PACKED | PLAIN),
            (0, far),
            (2, far),
            (4, far),
        ],
    };
    let known = match kind {
        EngineKind::Sort => 63,
        EngineKind::Shuffle => 3,
        _ => 63 | 3 << 8 | PLAIN | PACKED,
    };
    match bit & !known != 0 && chance(random, 20) {
        true => arguments[last] |= bit,
        false => {
            let (n, value) = pick(random, changes);
            arguments[n] = value;
        }
    }
    arguments
}
