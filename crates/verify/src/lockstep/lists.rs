// SPDX-License-Identifier: Apache-2.0

//! Lists of the pipeline: commands of the engines of tables in sequence, each on the results of the
//! earlier ones. Their results are computed from the media, as `tables` does for a single command.

use std::ops::Range;

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use crate::commands::{ENTRY, MOST_ENTRIES, PIPELINE, SHUFFLE, SORT, UNIT};
use crate::generate::Command;
use crate::lockstep::content::{laid, unknown, Blocks};
use crate::lockstep::effects::{Effects, PlannedCommand};
use crate::lockstep::engines::Job;
use crate::lockstep::kernels::{BAD_DATA, BAD_ENTRY, WRONG};
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::tables::{Places, TableJob};
use crate::random::{chance, pick};
use crate::BLOCK;

/// Bit of `kind`: reports are written after the list.
const REPORT: u64 = 1;

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
    let mut list = Places::new(random, locks, media, reach.clone(), Some(UNIT));
    let at = list.place((count * ENTRY) << kind, UNIT, true)?;
    // Reports contain cycles, which differ between devices.
    let mut writes = match kind {
        REPORT => unknown(at + count * ENTRY..at + 2 * count * ENTRY),
        _ => Vec::new(),
    };
    let mut bytes = Vec::new();
    let (mut done, mut result) = (0, 0);
    for _ in 0..count {
        let mut entry = match list.random.below(3) {
            0 => list.sort()?,
            1 => list.shuffle()?,
            _ => list.decode()?,
        };
        if result == 0 && chance(list.random, 4) {
            corrupt(&mut list, &mut entry);
        }
        bytes.extend(entry.sqe.to_bytes());
        if result != 0 {
            continue;
        }
        result = match entry.ends.0 {
            0 => 0,
            WRONG => BAD_ENTRY,
            _ => BAD_DATA,
        };
        done += u64::from(result == 0);
        match entry.data {
            _ if entry.ends.0 == WRONG => {}
            None => writes.extend(unknown(entry.target)),
            Some(data) => {
                let (from, to) = (entry.target.start, entry.target.end);
                writes.extend(laid(&list.media, from, &data));
                // For later entries.
                list.media[from as usize..to as usize].copy_from_slice(&data);
                list.made.push(entry.target);
            }
        }
    }
    let mut lays = list.lays;
    lays.extend(laid(media, at, &bytes));
    Some(Job {
        arguments: vec![at, count, reach.start, reach.end - reach.start, kind],
        writes,
        lays,
        ends: Some((result, done)),
    })
}

/// Corrupts an entry so that it is invalid, or refused by its kernel: it changes nothing.
fn corrupt(list: &mut Places, entry: &mut TableJob) {
    let units = (list.reach.end - list.reach.start).div_ceil(UNIT) as u32;
    let sort = entry.sqe.opcode() == SORT;
    let (random, dw) = (&mut *list.random, &mut entry.sqe.dw);
    let target = if sort { 11 } else { 12 };
    match random.below(8) {
        0 => dw[0] = pick(random, &[0, 0xC0, 0xDC, 0xD1, 0xD5, u32::MAX]),
        1 => dw[0] |= 1 << (8 + random.below(24)),
        2 => dw[1 + random.below(9) as usize] = 1 << random.below(32),
        3 => dw[13] = pick(random, &[0, (1 << 31) + 1, u32::MAX]),
        4 => dw[target] = pick(random, &[units, units + 1, 1 << 20, u32::MAX]),
        5 => dw[if sort { 14 } else { 15 }] |= 1 << 31,
        6 if sort => dw[15] = 1 << random.below(32),
        // The target over the list of indexes; keys of 33 bits.
        6 if dw[0] == u32::from(SHUFFLE) => dw[12] = dw[10],
        6 => dw[15] = (dw[15] & !(63 << 16)) | 33 << 16,
        _ => *dw = [random.next() as u32 | 1; 16],
    }
    entry.ends.0 = WRONG;
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
