// SPDX-License-Identifier: Apache-2.0

//! Engines: jobs for the engines of a device, and their results (engines of tables: `tables`). A
//! job is started in registers, in a command page, or by an NVMe I/O command.

use std::ops::Range;

use crate::commands::{Bounds, COPY, COUNT, DECODE, FILTER, PIPELINE, SHUFFLE, SORT};
use design::engine::EngineInstance;
use sim::Random;

use crate::generate::bound;
use crate::lockstep::effects::RangeLocks;
use crate::lockstep::{lists, tables};
use crate::random::{chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Types of the engines in the status block.
const COPY_KIND: u32 = 16;
const SCAN_KIND: u32 = 17;
const DECODE_KIND: u32 = 18;
const SORT_KIND: u32 = 19;
const SHUFFLE_KIND: u32 = 20;
const PIPELINE_KIND: u32 = 21;
/// The bit of `kind` that asks a scan for a bitmap.
const BITMAP: u64 = 4;
/// Alignment of a bitmap and its source, in bytes.
pub const LINE: u64 = 64;
/// Upper bound of the bytes of most jobs.
const USUAL: u64 = 20_000;

/// Kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// `hw/engine/copy`.
    Copy,
    /// `hw/engine/scan`.
    Scan,
    /// `hw/engine/sorter`.
    Sort,
    /// `hw/engine/row_shuffle`.
    Shuffle,
    /// `hw/engine/dict_decode`.
    Decode,
    /// `hw/engine/pipeline`.
    Pipeline,
}

/// An engine of a device.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its kind.
    pub kind: EngineKind,
    /// Offset of its registers in BAR4.
    pub registers: u64,
    /// Offset of its command page in BAR4.
    pub page: u64,
    /// Numbers of arguments and outputs.
    pub words: u64,
    /// True if it has NVMe I/O commands, with their default opcodes.
    pub commands: bool,
}

impl Engine {
    /// The engine of a design. An error states why its jobs cannot be compared.
    pub fn of(plugged: &EngineInstance, media: u64) -> Result<Engine, String> {
        let manifest = &plugged.manifest;
        let name = &plugged.engine.name;
        let kind = match manifest.kind {
            COPY_KIND => EngineKind::Copy,
            SCAN_KIND => EngineKind::Scan,
            SORT_KIND => EngineKind::Sort,
            SHUFFLE_KIND => EngineKind::Shuffle,
            DECODE_KIND => EngineKind::Decode,
            PIPELINE_KIND => EngineKind::Pipeline,
            _ => {
                return Err(format!(
                    "engine {name}: differential runs know those of hw/engine alone"
                ))
            }
        };
        if plugged.media != (0..media) || plugged.local || plugged.engine.opcodes.is_some() {
            return Err(format!(
                "engine {name}: differential runs support engines that access all of the media and \
                 nothing else, with their default opcodes"
            ));
        }
        Ok(Engine {
            kind,
            registers: plugged.offset,
            page: plugged.page.unwrap_or_default(),
            words: (manifest.arguments.len() + manifest.outputs.len()) as u64,
            commands: !plugged.commands.is_empty(),
        })
    }

    /// Opcodes of its NVMe I/O commands.
    pub fn opcodes(&self) -> &'static [u8] {
        match (self.commands, self.kind) {
            (false, _) => &[],
            (true, EngineKind::Copy) => &[COPY],
            (true, EngineKind::Scan) => &[COUNT, FILTER],
            (true, EngineKind::Sort) => &[SORT],
            (true, EngineKind::Shuffle) => &[SHUFFLE],
            (true, EngineKind::Decode) => &[DECODE],
            (true, EngineKind::Pipeline) => &[PIPELINE],
        }
    }
}

/// A job of an engine, and its results.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its arguments.
    pub arguments: Vec<u64>,
    /// Blocks that it writes, and their content; empty where it is unknown.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// Blocks that have to hold some content before.
    pub lays: Vec<(u64, Vec<u8>)>,
    /// Return value and output, if they are known.
    pub ends: Option<(u32, u64)>,
}

/// Blocks that contain a byte range.
pub fn around(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)
}

/// The blocks around some bytes, with these bytes replaced.
pub fn laid(media: &[u8], at: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let blocks = around(&(at..at + data.len() as u64));
    let first = blocks.start * BLOCK;
    let mut bytes = media[first as usize..(blocks.end * BLOCK) as usize].to_vec();
    bytes[(at - first) as usize..][..data.len()].copy_from_slice(data);
    blocks
        .zip(bytes.chunks(BLOCK as usize).map(<[u8]>::to_vec))
        .collect()
}

/// The number of values between the bounds, and the bitmap.
pub fn scanned(bounds: &Bounds, source: &[u8]) -> (u64, Vec<u8>) {
    let values = source.chunks(bounds.bytes());
    let mut bits = vec![0; values.len().div_ceil(8)];
    let mut count = 0;
    for (n, value) in values.enumerate() {
        if bounds.hold(value) {
            bits[n / 8] |= 1 << (n % 8);
            count += 1;
        }
    }
    // Values of 32 bits: an even number of bytes.
    if bounds.bytes() == 4 {
        bits.resize(bits.len().next_multiple_of(2), 0);
    }
    (count, bits)
}

/// An aligned place for `bytes` bytes without conflicts.
pub fn place(
    random: &mut Random,
    locks: &mut RangeLocks,
    (media, bytes, unit): (u64, u64, u64),
    write: bool,
) -> Option<u64> {
    let most = (media.checked_sub(bytes)?) / unit + 1;
    for _ in 0..12 {
        let at = match random.below(8) {
            0 => most - 1,
            _ => random.below(most),
        } * unit;
        if locks.lock_exclusive(around(&(at..at + bytes)), write) {
            return Some(at);
        }
    }
    None
}

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
            let at = random.below(media / 2 / PAGE) * PAGE;
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
        place(random, locks, (media, bytes, unit), true)?,
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
    let src = place(random, locks, (size, bytes, unit), false)?;
    let dst = place(random, locks, (size, bytes, unit), true)?;
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
    let src = place(random, locks, (size, bytes, unit), false)?;
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
        let dst = place(random, locks, (size, bits.len() as u64, unit), true)?;
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
