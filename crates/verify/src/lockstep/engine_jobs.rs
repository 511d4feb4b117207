// SPDX-License-Identifier: Apache-2.0

//! Random jobs of engines, and those of the engines that copy and scan.

use std::ops::Range;

use sim::Random;

use crate::commands::{Bounds, UNIT};
use crate::generate::bound;
use crate::lockstep::content::{around, laid};
use crate::lockstep::engines::{EngineKind, Job, LINE};
use crate::lockstep::kernels::scanned;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::{lists, tables};
use crate::random::{chance, pick};
use crate::BLOCK;

/// The bit of `kind` that asks a scan for a bitmap.
const BITMAP: u64 = 4;
/// Upper bound of the bytes of most jobs.
const USUAL: u64 = 20_000;

fn length(random: &mut Random, media: u64) -> u64 {
    match random.below(20) {
        0 => 1 + random.below(media / 3),
        1..=8 => 1 + random.below(200),
        _ => 1 + random.below(USUAL),
    }
}

/// A job on unused bytes, or an invalid job.
pub fn job(
    random: &mut Random,
    kind: EngineKind,
    media: &[u8],
    locks: &mut RangeLocks,
    wrong: u64,
) -> Option<Job> {
    if chance(random, wrong) {
        return Some(wrong_job(random, kind, media.len() as u64));
    }
    match kind {
        _ if chance(random, wrong / 2) => beyond(random, kind, media.len() as u64, locks),
        EngineKind::Copy => copy(random, media, locks),
        EngineKind::Scan => scan(random, media, locks),
        EngineKind::Pipeline => {
            let reach = list_range(random, media.len() as u64);
            lists::job(random, media, locks, reach)
        }
        _ => tables::job(random, kind, media, locks),
    }
}

/// The range that a list may access: the whole media, or a part.
fn list_range(random: &mut Random, media: u64) -> Range<u64> {
    match chance(random, 50) {
        true => 0..media,
        false => {
            let at = random.below(media / 2 / UNIT) * UNIT;
            at..media - random.below(media / 4 / BLOCK) * BLOCK
        }
    }
}

/// A job of which a part lies beyond the media.
fn beyond(
    random: &mut Random,
    kind: EngineKind,
    media: u64,
    locks: &mut RangeLocks,
) -> Option<Job> {
    let bytes = length(random, media).next_multiple_of(LINE);
    let inside = LINE * random.below(bytes / LINE);
    let unit = match kind {
        EngineKind::Copy | EngineKind::Scan => 1,
        _ => LINE,
    };
    let (end, own) = (
        media - inside,
        locks.place(random, (0..media, bytes, unit), true)?,
    );
    let (arguments, written) = match kind {
        EngineKind::Scan => (vec![end, bytes, 0, 9, random.below(4), 0], 0..0),
        // If its list or table is missing, the copy of some rows may have begun.
        EngineKind::Shuffle | EngineKind::Pipeline => return None,
        _ if chance(random, 50) => {
            if inside > 0 && !locks.lock_exclusive(around(&(end..media)), true) {
                return None;
            }
            let arguments = match kind {
                EngineKind::Copy => vec![own, end, bytes],
                _ => tables::beyond(kind, true, own, end, bytes),
            };
            (arguments, end..media)
        }
        EngineKind::Copy => (vec![end, own, bytes], own..own + bytes),
        _ => (
            tables::beyond(kind, false, own, end, bytes),
            own..own + bytes,
        ),
    };
    // The source must not change meanwhile.
    if inside > 0 && written.start != end && !locks.lock_exclusive(around(&(end..media)), false) {
        return None;
    }
    Some(Job {
        arguments,
        writes: around(&written).map(|block| (block, Vec::new())).collect(),
        lays: Vec::new(),
        ends: None,
    })
}

fn copy(random: &mut Random, media: &[u8], locks: &mut RangeLocks) -> Option<Job> {
    let size = media.len() as u64;
    let bytes = length(random, size);
    // Occasionally whole granules or lines.
    let unit = pick(random, &[1, 1, 1, 4, 64, 4096]);
    let src = locks.place(random, (0..size, bytes, unit), false)?;
    let dst = locks.place(random, (0..size, bytes, unit), true)?;
    let data = &media[src as usize..(src + bytes) as usize];
    Some(Job {
        arguments: vec![src, dst, bytes],
        writes: laid(media, dst, data),
        lays: Vec::new(),
        ends: Some((0, 0)),
    })
}

fn scan(random: &mut Random, media: &[u8], locks: &mut RangeLocks) -> Option<Job> {
    let size = media.len() as u64;
    let kind = random.below(4);
    let each = if kind & 1 == 1 { 8 } else { 4 };
    let bytes = length(random, size).next_multiple_of(each);
    let bitmap = chance(random, 50);
    let unit = if bitmap { LINE } else { each };
    let src = locks.place(random, (0..size, bytes, unit), false)?;
    let source = &media[src as usize..(src + bytes) as usize];
    let (low, high) = (bound(random, source), bound(random, source));
    let (count, bits) = scanned(&Bounds::new(kind, low, high), source);
    let mut job = Job {
        arguments: vec![src, bytes, low, high, kind, 0],
        writes: Vec::new(),
        lays: Vec::new(),
        ends: Some((0, count)),
    };
    if bitmap {
        let unit = if each == 4 { 2 } else { 1 };
        let dst = locks.place(random, (0..size, bits.len() as u64, unit), true)?;
        job.arguments[4] |= BITMAP;
        job.arguments[5] = dst;
        job.writes = laid(media, dst, &bits);
    }
    Some(job)
}

/// A job without effect: no bytes, too many bytes, or invalid ones.
fn wrong_job(random: &mut Random, kind: EngineKind, media: u64) -> Job {
    let (at, far) = (random.below(media / 64) * 64, u64::MAX - random.below(4096));
    let bytes = 64 * (1 + random.below(16));
    let long = pick(random, &[media + 64, 1 << 40, 1 << 63, !63]);
    let arguments = match (kind, random.below(4)) {
        (EngineKind::Copy, 0) => vec![at, at, 0],
        (EngineKind::Copy, 1) => vec![far, at, bytes + 4096],
        (EngineKind::Copy, 2) => vec![at, far, bytes + 4096],
        (EngineKind::Copy, _) => vec![at, 0, long],
        (EngineKind::Scan, 0) => vec![at, 0, 0, 9, random.below(4), 0],
        (EngineKind::Scan, 1) => vec![at + 1 + random.below(3), bytes, 0, 9, random.below(4), 0],
        (EngineKind::Scan, 2) => vec![at, bytes, 0, 9, 8 << random.below(60), 0],
        (EngineKind::Scan, _) => vec![far & !63, bytes + 4096, 0, 9, random.below(4), 0],
        (EngineKind::Pipeline, _) => lists::wrong_job(random, media),
        _ => tables::wrong_job(random, kind, media),
    };
    Job {
        arguments,
        writes: Vec::new(),
        lays: Vec::new(),
        ends: None,
    }
}
