// SPDX-License-Identifier: Apache-2.0

//! Jobs of the engines of tables: sorter, gather engine, dictionary decoder. Their results are
//! computed from the media, by their documentation.

use std::ops::Range;

use sim::Random;
use spec::nvme::Sqe;
use spec::tables::{DICTIONARY_BYTES, DICTIONARY_VALUES, ONE_PASS_KEYS};

use crate::commands::{table_command, DECODE, SHUFFLE, SORT, UNIT};
use crate::lockstep::content::{held, laid, unknown, Blocks};
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
fn random_count(random: &mut Random, most: u64) -> u64 {
    let usual = pick(random, &[10, 100, 1000, 4000]);
    1 + random.below(most.min(usual).max(1))
}

/// Rows to gather, of a table of at most an eighth of `size` bytes, and whether an index is to be
/// invalid.
fn rows(random: &mut Random, size: u64) -> (Rows, bool) {
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
fn indexes(random: &mut Random, rows: &Rows, held: &[u8], bad: bool) -> Vec<u8> {
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

/// A column to decode, and its keys, which may be invalid.
fn column(random: &mut Random) -> (Column, Vec<u8>) {
    let (width, log) = (random.below(33), random.below(4));
    let most = (1 << width)
        .min(DICTIONARY_VALUES)
        .min(DICTIONARY_BYTES >> log);
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

/// Places for jobs, and the content of the media before the next job.
pub struct Places<'a> {
    pub random: &'a mut Random,
    locks: &'a mut RangeLocks,
    /// The range that the places lie in.
    pub reach: Range<u64>,
    /// The alignment of all places; as each engine needs it if `None`.
    unit: Option<u64>,
    pub media: Vec<u8>,
    /// Ranges with known content that earlier jobs have written.
    pub made: Vec<Range<u64>>,
    /// Blocks that have to hold some content before the jobs.
    pub lays: Blocks,
}

/// A job of an engine of tables, and its results.
pub struct TableJob {
    /// Its arguments.
    pub arguments: Vec<u64>,
    /// The same as an entry of a list.
    pub sqe: Sqe,
    /// Return value and output.
    pub ends: (u32, u64),
    /// The range that it writes, and its content; `None` where it is unknown.
    pub target: Range<u64>,
    pub data: Option<Vec<u8>>,
    /// The scratch range.
    scratch: Range<u64>,
}

/// A job of one of these engines.
pub fn job(
    random: &mut Random,
    kind: EngineKind,
    media: &[u8],
    locks: &mut RangeLocks,
) -> Option<Job> {
    let mut places = Places::new(random, locks, media, 0..media.len() as u64, None);
    let job = match kind {
        EngineKind::Sort => places.sort()?,
        EngineKind::Shuffle => places.shuffle()?,
        _ => places.decode()?,
    };
    let mut writes = unknown(job.scratch);
    writes.extend(match job.data {
        Some(data) => laid(media, job.target.start, &data),
        None => unknown(job.target),
    });
    Some(Job {
        arguments: job.arguments,
        writes,
        lays: places.lays,
        ends: Some(job.ends),
    })
}

impl<'a> Places<'a> {
    pub fn new(
        random: &'a mut Random,
        locks: &'a mut RangeLocks,
        media: &[u8],
        reach: Range<u64>,
        unit: Option<u64>,
    ) -> Places<'a> {
        Places {
            random,
            locks,
            reach,
            unit,
            media: media.to_vec(),
            made: Vec::new(),
            lays: Vec::new(),
        }
    }

    /// A place without conflicts.
    pub fn place(&mut self, bytes: u64, align: u64, write: bool) -> Option<u64> {
        let reach = self.reach.clone();
        let unit = self.unit.unwrap_or(align);
        self.locks.place(self.random, (reach, bytes, unit), write)
    }

    /// A source: the output of an earlier job, or any place.
    fn source(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let fits = |made: &&Range<u64>| made.end - made.start >= bytes;
        let made: Vec<u64> = self.made.iter().filter(fits).map(|m| m.start).collect();
        match !made.is_empty() && chance(self.random, 60) {
            true => Some(pick(self.random, &made)),
            false => self.place(bytes, align, false),
        }
    }

    /// Stores the source of a job.
    fn place_content(&mut self, at: u64, data: &[u8]) {
        self.lays.extend(laid(&self.media, at, data));
        self.media[at as usize..at as usize + data.len()].copy_from_slice(data);
    }

    fn held(&self, at: u64, bytes: u64) -> &[u8] {
        held(&self.media, at, bytes)
    }

    /// An entry with these places and numbers.
    fn entry(&self, opcode: u8, places: [u64; 3], numbers: [u64; 3]) -> Sqe {
        let [a, b, c] = places.map(|at| (at.wrapping_sub(self.reach.start) / UNIT) as u32);
        let [d, e, f] = numbers.map(|number| number as u32);
        table_command(opcode, [a, b, c, d, e, f])
    }

    pub fn sort(&mut self) -> Option<TableJob> {
        let mut job = Sort::generate(self.random, 0);
        job.count = match self.random.below(60) {
            // In two passes.
            0 if self.unit.is_none() => ONE_PASS_KEYS + self.random.below(2000),
            _ => random_count(self.random, ONE_PASS_KEYS),
        };
        if job.count > ONE_PASS_KEYS {
            job.kind &= !3;
        }
        let [keys, out, scratch] = job.sizes();
        let (src, dst) = (self.source(keys, LINE)?, self.place(out, LINE, true)?);
        let tmp = match scratch {
            0 => self.random.next(),
            _ => self.place(scratch, LINE, true)?,
        };
        let data = job.made(self.held(src, keys));
        Some(TableJob {
            arguments: vec![src, dst, tmp, job.count, job.kind],
            sqe: self.entry(SORT, [src, dst, tmp], [job.count, job.kind, 0]),
            ends: (0, job.passes()),
            target: dst..dst + out,
            data: Some(data),
            scratch: if scratch > 0 {
                tmp..tmp + scratch
            } else {
                0..0
            },
        })
    }

    pub fn shuffle(&mut self) -> Option<TableJob> {
        let (job, bad) = rows(self.random, self.reach.end - self.reach.start);
        let [listed, table, out] = job.sizes();
        let list = match chance(self.random, 20) {
            true => self.source(listed, LINE)?,
            false => {
                let at = self.place(listed, LINE, true)?;
                let old = self.held(at, listed).to_vec();
                let places = indexes(self.random, &job, &old, bad);
                self.place_content(at, &places);
                at
            }
        };
        let (src, dst) = (self.source(table, 1)?, self.place(out, 1, true)?);
        let mut data = job.made(self.held(list, listed), self.held(src, table));
        let ends = job.ends(&data);
        // Unwritten bytes stay.
        data.extend_from_slice(&self.held(dst, out)[data.len()..]);
        let numbers = [job.count, job.rows, job.row | job.kind << 24];
        Some(TableJob {
            arguments: vec![list, src, dst, job.count, job.row, job.rows, job.kind],
            sqe: self.entry(SHUFFLE, [list, src, dst], numbers),
            ends,
            target: dst..dst + out,
            data: Some(data),
            scratch: 0..0,
        })
    }

    pub fn decode(&mut self) -> Option<TableJob> {
        let (job, keys) = column(self.random);
        let (log, bytes) = (job.kind >> 8 & 3, keys.len() as u64);
        let (table, out) = (job.entries << log, job.count << log);
        let dict = match job.is_plain() {
            true => self.random.next(),
            false => self.source(table, LINE)?,
        };
        // At least one unit, so that no range is empty.
        let src = self.place(bytes.max(1), LINE, true)?;
        let dst = self.place(out, LINE, true)?;
        if bytes > 0 {
            self.place_content(src, &keys);
        }
        let values = match job.is_plain() {
            true => &[],
            false => self.held(dict, table),
        };
        let (made, ends) = job.made(values, &keys);
        let how = job.width() << 16 | log << 24 | (job.kind >> 16 & 3) << 26;
        let numbers = [job.count, bytes, (job.entries - 1) | how];
        Some(TableJob {
            arguments: vec![dict, job.entries, src, bytes, dst, job.count, job.kind],
            sqe: self.entry(DECODE, [dict, src, dst], numbers),
            ends,
            target: dst..dst + out,
            data: (ends.0 == 0).then_some(made),
            scratch: 0..0,
        })
    }
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
