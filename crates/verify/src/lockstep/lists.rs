// SPDX-License-Identifier: Apache-2.0

//! Lists of the pipeline: commands of the engines of tables in sequence, each on the results of the
//! earlier ones. Their results are computed from the media, as `tables` does for a single command.

use std::ops::Range;

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use crate::commands::{table_command, DECODE, ENTRY, MOST_ENTRIES, PIPELINE, SHUFFLE, SORT, UNIT};
use crate::generate::Command;
use crate::lockstep::content::{around, held, laid, unknown, Blocks};
use crate::lockstep::effects::{Effects, PlannedCommand};
use crate::lockstep::engines::Job;
use crate::lockstep::kernels::{Sort, BAD_DATA, BAD_ENTRY, WRONG};
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::tables::{column, indexes, random_count, rows};
use crate::random::{chance, pick};
use crate::BLOCK;

/// Bit of `kind`: reports are written after the list.
const REPORT: u64 = 1;

/// A list during its generation.
struct ListBuilder<'a> {
    random: &'a mut Random,
    locks: &'a mut RangeLocks,
    /// The range that places in entries are relative to.
    reach: Range<u64>,
    /// Content of the media before its next entry.
    media: Vec<u8>,
    /// Ranges with known content that entries have written.
    made: Vec<Range<u64>>,
    writes: Vec<(u64, Vec<u8>)>,
    lays: Vec<(u64, Vec<u8>)>,
}

/// An entry, and its results.
struct ListEntry {
    sqe: Sqe,
    /// Its return value.
    result: u32,
    /// Ranges that it writes, and their content; empty where it is unknown.
    at: u64,
    bytes: u64,
    data: Option<Vec<u8>>,
}

/// A job that runs a list of entries with places in `reach`.
pub fn job(
    random: &mut Random,
    media: &[u8],
    locks: &mut RangeLocks,
    reach: Range<u64>,
) -> Option<Job> {
    let most = pick(random, &[3, 3, 6, MOST_ENTRIES]);
    let count = 1 + random.below(most);
    let kind = if chance(random, 60) { REPORT } else { 0 };
    let mut list = ListBuilder {
        random,
        locks,
        media: media.to_vec(),
        reach: reach.clone(),
        made: Vec::new(),
        writes: Vec::new(),
        lays: Vec::new(),
    };
    let at = list.place((count * ENTRY) << kind, true)?;
    let mut bytes = Vec::new();
    let (mut done, mut result) = (0, 0);
    for _ in 0..count {
        let mut entry = list.entry()?;
        if result == 0 && chance(list.random, 4) {
            list.corrupt(&mut entry);
        }
        bytes.extend(entry.sqe.to_bytes());
        if result != 0 {
            continue;
        }
        result = match entry.result {
            0 => 0,
            WRONG => BAD_ENTRY,
            _ => BAD_DATA,
        };
        done += u64::from(result == 0);
        list.apply_entry(entry);
    }
    // Reports contain cycles, which differ between devices.
    let mut writes = match kind {
        REPORT => unknown(at + count * ENTRY..at + 2 * count * ENTRY),
        _ => Vec::new(),
    };
    writes.append(&mut list.writes);
    let mut lays = list.lays;
    lays.extend(laid(media, at, &bytes));
    Some(Job {
        arguments: vec![at, count, reach.start, reach.end - reach.start, kind],
        writes,
        lays,
        ends: Some((result, done)),
    })
}

impl ListBuilder<'_> {
    /// A place without conflicts.
    fn place(&mut self, bytes: u64, write: bool) -> Option<u64> {
        let room = (self.reach.end - self.reach.start).checked_sub(bytes)?;
        for _ in 0..12 {
            let unit = match self.random.below(8) {
                0 => room / UNIT,
                _ => self.random.below(room / UNIT + 1),
            };
            let at = self.reach.start + unit * UNIT;
            if self.locks.lock_exclusive(around(&(at..at + bytes)), write) {
                return Some(at);
            }
        }
        None
    }

    /// A source of an entry: the output of an earlier entry, or any place.
    fn source(&mut self, bytes: u64) -> Option<u64> {
        let fits = |made: &&Range<u64>| made.end - made.start >= bytes;
        let made: Vec<u64> = self.made.iter().filter(fits).map(|m| m.start).collect();
        match !made.is_empty() && chance(self.random, 60) {
            true => Some(pick(self.random, &made)),
            false => self.place(bytes, false),
        }
    }

    /// Stores the source of an entry.
    fn place_content(&mut self, at: u64, data: &[u8]) {
        self.lays.extend(laid(&self.media, at, data));
        self.media[at as usize..at as usize + data.len()].copy_from_slice(data);
    }

    fn unit(&self, at: u64) -> u32 {
        ((at - self.reach.start) / UNIT) as u32
    }

    fn entry(&mut self) -> Option<ListEntry> {
        match self.random.below(3) {
            0 => self.sort(),
            1 => self.shuffle(),
            _ => self.decode(),
        }
    }

    fn sort(&mut self) -> Option<ListEntry> {
        let count = random_count(self.random, 4000);
        let job = Sort::generate(self.random, count);
        let [keys, out, _] = job.sizes();
        let (src, dst) = (self.source(keys)?, self.place(out, true)?);
        let data = job.made(held(&self.media, src, keys));
        let (src, to) = (self.unit(src), self.unit(dst));
        let tmp = self.random.next() as u32;
        let dwords = [src, to, tmp, count as u32, job.kind as u32, 0];
        Some(ListEntry {
            sqe: table_command(SORT, dwords),
            result: 0,
            at: dst,
            bytes: out,
            data: Some(data),
        })
    }

    fn shuffle(&mut self) -> Option<ListEntry> {
        let (rows, bad) = rows(self.random, self.reach.end - self.reach.start);
        let [listed, table, out] = rows.sizes();
        let list = match chance(self.random, 30) {
            true => self.source(listed)?,
            false => {
                let at = self.place(listed, true)?;
                let old = held(&self.media, at, listed).to_vec();
                let places = indexes(self.random, &rows, &old, bad);
                self.place_content(at, &places);
                at
            }
        };
        let (src, dst) = (self.source(table)?, self.place(out, true)?);
        let mut data = rows.made(
            held(&self.media, list, listed),
            held(&self.media, src, table),
        );
        let (result, _) = rows.ends(&data);
        // Unwritten bytes stay.
        let begun = data.len();
        data.extend_from_slice(&held(&self.media, dst, out)[begun..]);
        let (list, src, to) = (self.unit(list), self.unit(src), self.unit(dst));
        let last = rows.row as u32 | (rows.kind as u32) << 24;
        let dwords = [list, src, to, rows.count as u32, rows.rows as u32, last];
        Some(ListEntry {
            sqe: table_command(SHUFFLE, dwords),
            result,
            at: dst,
            bytes: out,
            data: Some(data),
        })
    }

    fn decode(&mut self) -> Option<ListEntry> {
        let (column, keys) = column(self.random);
        let (log, bytes) = (column.kind >> 8 & 3, keys.len() as u64);
        let (entries, out) = (column.entries << log, column.count << log);
        let dict = match column.is_plain() {
            true => None,
            false => Some(self.source(entries)?),
        };
        let (src, dst) = (self.place(bytes.max(1), true)?, self.place(out, true)?);
        if bytes > 0 {
            self.place_content(src, &keys);
        }
        let table = dict.map_or(&[][..], |at| held(&self.media, at, entries));
        let (made, (result, _)) = column.made(table, &keys);
        let dict = match dict {
            Some(at) => self.unit(at),
            None => self.random.next() as u32,
        };
        let (src, to) = (self.unit(src), self.unit(dst));
        let how = column.width() << 16 | log << 24 | (column.kind >> 16 & 3) << 26;
        let last = (column.entries - 1) | how;
        let dwords = [
            dict,
            src,
            to,
            column.count as u32,
            bytes as u32,
            last as u32,
        ];
        Some(ListEntry {
            sqe: table_command(DECODE, dwords),
            result,
            at: dst,
            bytes: out,
            data: (result == 0).then_some(made),
        })
    }

    /// Corrupts an entry so that it is invalid, or refused by its kernel: it changes nothing.
    fn corrupt(&mut self, entry: &mut ListEntry) {
        let units = (self.reach.end - self.reach.start).div_ceil(UNIT) as u32;
        let sort = entry.sqe.opcode() == SORT;
        let dw = &mut entry.sqe.dw;
        let target = if sort { 11 } else { 12 };
        match self.random.below(8) {
            0 => dw[0] = pick(self.random, &[0, 0xC0, 0xDC, 0xD1, 0xD5, u32::MAX]),
            1 => dw[0] |= 1 << (8 + self.random.below(24)),
            2 => dw[1 + self.random.below(9) as usize] = 1 << self.random.below(32),
            3 => dw[13] = pick(self.random, &[0, (1 << 31) + 1, u32::MAX]),
            4 => dw[target] = pick(self.random, &[units, units + 1, 1 << 20, u32::MAX]),
            5 => dw[if sort { 14 } else { 15 }] |= 1 << 31,
            6 if sort => dw[15] = 1 << self.random.below(32),
            // The target over the list of indexes; keys of 33 bits.
            6 if dw[0] == u32::from(SHUFFLE) => dw[12] = dw[10],
            6 => dw[15] = (dw[15] & !(63 << 16)) | 33 << 16,
            _ => *dw = [self.random.next() as u32 | 1; 16],
        }
        (entry.result, entry.bytes) = (WRONG, 0);
    }

    /// Applies the output of an entry, for later entries.
    fn apply_entry(&mut self, entry: ListEntry) {
        let target = entry.at..entry.at + entry.bytes;
        match entry.data {
            _ if entry.bytes == 0 => {}
            None => self.writes.extend(unknown(target)),
            Some(data) => {
                self.writes.extend(laid(&self.media, entry.at, &data));
                self.media[target.start as usize..target.end as usize].copy_from_slice(&data);
                self.made.push(target);
            }
        }
    }
}

/// A command of a list in a namespace, and the content that has to be there before.
pub fn command(
    random: &mut Random,
    media: &[u8],
    locks: &mut RangeLocks,
    ns: &Namespace,
) -> Option<(PlannedCommand, Blocks)> {
    let reach = ns.base * BLOCK..(ns.base + ns.blocks) * BLOCK;
    let job = job(random, media, locks, reach.clone())?;
    let unit = (job.arguments[0] - reach.start) / UNIT;
    let sqe = Sqe::new(PIPELINE)
        .with_nsid(ns.nsid)
        .with_cdw(10, unit as u32)
        .with_cdw(13, job.arguments[1] as u32)
        .with_cdw(14, job.arguments[4] as u32);
    let effects = Effects {
        reads: Vec::new(),
        writes: job.writes,
        torn: true,
    };
    let command = Command::plain(sqe);
    Some((PlannedCommand { command, effects }, job.lays))
}

/// Place and bytes of a job's reports, if it has any.
pub fn reports(job: &Job) -> Option<(u64, u32)> {
    let [at, count, _, _, REPORT] = job.arguments[..] else {
        return None;
    };
    job.ends?;
    Some((at + count * ENTRY, (count * ENTRY) as u32))
}

/// Reports without the times of the entries.
pub fn without_cycles(mut reports: Vec<u8>) -> Vec<u8> {
    for report in reports.chunks_mut(ENTRY as usize) {
        report[8..16].fill(0);
    }
    reports
}

/// A job with an invalid list: it changes nothing, and reads nothing.
pub fn wrong_job(random: &mut Random, media: u64) -> Vec<u64> {
    let at = random.below(media / UNIT) * UNIT;
    let mut arguments = vec![at, 3, 0, media, 0];
    let changes = [
        (0, at + 64),
        (0, u64::MAX - 63),
        (0, !(UNIT - 1)),
        (1, 0),
        (1, MOST_ENTRIES + 1),
        (1, 1 | 1 << 32),
        (1, u64::MAX),
        (2, 512),
        (2, !(UNIT - 1)),
        (3, 511),
        (3, !511),
        (4, 2),
        (4, 1 << 32),
    ];
    let (n, value) = pick(random, &changes);
    arguments[n] = value;
    // Such a range wraps only if it does not begin at 0.
    if (n, value) == (3, !511) {
        arguments[2] = UNIT;
    }
    arguments
}
