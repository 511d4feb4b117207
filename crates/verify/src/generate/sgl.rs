// SPDX-License-Identifier: Apache-2.0

//! Random SGLs: data blocks, bit buckets and segments of all shapes, mostly valid, sometimes
//! corrupted.

use nvme::sgl::{Descriptor, DESCRIPTOR};
use sim::Random;
use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};

use crate::oracle::host_model::HostModel;
use crate::random::{chance, pick};
use crate::PAGE;

/// Approximate number of data descriptors in an SGL.
const PIECES: usize = 24;
/// Most data descriptors in a segment.
const MOST_IN_SEGMENT: usize = 128;
/// Upper bound of the bytes that a controller may read beyond the descriptors that it needs.
const SLACK: u64 = 6 * 64;

/// The place of a descriptor: in memory, or in the command (`None`).
#[derive(Clone, Copy)]
struct DescriptorSlot(Option<u64>);

/// Consecutive descriptors in memory.
struct Segment {
    start: u64,
    count: u64,
}

/// An SGL of `bytes` bytes: its first descriptor, and the pages. `None` if there is no room.
pub fn sgl(
    host: &mut HostModel,
    random: &mut Random,
    bytes: u64,
    to_host: bool,
) -> Option<(Descriptor, Vec<u64>)> {
    if (host.memory.free_pages() as u64) < bytes.div_ceil(PAGE) + 2 * PIECES as u64 + 64 {
        return None;
    }
    let mut pages = Vec::new();
    let mut list = data(host, random, bytes, to_host, &mut pages)?;
    let corrupted = !host.valid_only && chance(random, 12);
    if !corrupted && chance(random, 15) {
        // More than the data needs.
        if let Some(last) = list.last_mut() {
            last.len += 4 * random.below(1 << 20) as u32;
        }
    }
    if list.len() == 1 && chance(random, 60) {
        let mut first = list[0];
        if corrupted {
            corrupt(random, &mut first);
        }
        return Some((first, pages));
    }
    if !corrupted && chance(random, 20) {
        // The controller ignores descriptors past the data.
        for _ in 0..1 + random.below(6) {
            list.push(Descriptor::new(random.next(), random.next()));
        }
    }
    let (mut first, segments_placed) = segments(host, random, &list, !corrupted, &mut pages)?;
    if corrupted {
        let ring = 16 * bytes >= 4 * list.iter().map(|d| u64::from(d.len)).sum::<u64>();
        match random.below(10) {
            0 if ring || chance(random, 3) => close_ring(host, random, &segments_placed),
            1 => shorten(host, random, &mut first, &segments_placed),
            _ => {
                let slot = slot(random, &segments_placed);
                let mut d = slot.get(host, &first);
                corrupt(random, &mut d);
                slot.set(host, &mut first, d);
            }
        }
    }
    Some((first, pages))
}

/// Descriptors of `bytes` bytes.
fn data(
    host: &mut HostModel,
    random: &mut Random,
    bytes: u64,
    to_host: bool,
    pages: &mut Vec<u64>,
) -> Option<Vec<Descriptor>> {
    let mut list = Vec::new();
    let mut left = bytes;
    let whole = chance(random, 30);
    while left > 0 {
        if chance(random, 8) {
            let addr = pick(random, &[0, 1 << 33, 4]);
            list.push(Descriptor {
                addr,
                len: 0,
                kind: DATA_BLOCK,
            });
        }
        if !to_host && chance(random, 8) {
            // A bit bucket moves nothing, whatever its length.
            list.push(Descriptor {
                addr: random.next(),
                len: 4 * random.below(1 << 20) as u32,
                kind: BIT_BUCKET,
            });
        }
        let mut len = match whole || list.len() >= PIECES {
            true => left,
            false => 4 * (1 + random.below(left.min(9000) / 4)),
        };
        if to_host && chance(random, 15) {
            list.push(Descriptor {
                addr: random.next(),
                len: len as u32,
                kind: BIT_BUCKET,
            });
            left -= len;
            continue;
        }
        let offset = match random.below(3) {
            0 => 0,
            1 => 4 * random.below(1024),
            _ => PAGE - 4 * (1 + random.below(16)),
        };
        let mut count = (offset + len).div_ceil(PAGE);
        let run = match host.memory.alloc_run(random, count) {
            Some(run) => run,
            None => {
                // Free memory is fragmented.
                (len, count) = (len.min(PAGE - offset), 1);
                host.memory.alloc_any(random)?
            }
        };
        pages.extend((0..count).map(|n| run + n * PAGE));
        list.push(Descriptor {
            addr: run + offset,
            len: len as u32,
            kind: DATA_BLOCK,
        });
        left -= len;
    }
    Some(list)
}

/// Puts descriptors into segments. Returns the first descriptor and the segments. `long` allows the
/// last segment to claim a greater length.
fn segments(
    host: &mut HostModel,
    random: &mut Random,
    list: &[Descriptor],
    long: bool,
    pages: &mut Vec<u64>,
) -> Option<(Descriptor, Vec<Segment>)> {
    let parts = 1 + random.below(4.min(list.len() as u64)) as usize;
    // Many descriptors do not fit into the page of one segment.
    let parts = parts.max(list.len().div_ceil(MOST_IN_SEGMENT));
    let chunks: Vec<&[Descriptor]> = list.chunks(list.len().div_ceil(parts)).collect();
    let mut next: Option<Descriptor> = None;
    let mut segments_placed = Vec::new();
    for chunk in chunks.iter().rev() {
        let count = chunk.len() as u64 + u64::from(next.is_some());
        let size = count * DESCRIPTOR;
        let longer = long && next.is_none() && chance(random, 10);
        let room = if longer { size + SLACK } else { size };
        let two = chance(random, 20) && !longer;
        let two = two.then(|| host.memory.alloc_run(random, 2)).flatten();
        let (run, page) = match two {
            Some(page) => (2, page),
            None => (1, host.memory.alloc_any(random)?),
        };
        pages.extend((0..run).map(|n| page + n * PAGE));
        let start = page
            + match run {
                // Across the boundary of the pages.
                2 => PAGE - 8 * random.below(size / 8),
                _ => 8 * random.below((PAGE - room) / 8 + 1),
            };
        for (n, d) in (0..).zip(chunk.iter().copied().chain(next)) {
            host.memory.store(start + n * DESCRIPTOR, &d.bytes());
        }
        let last = next.is_none() && chance(random, 85);
        next = Some(Descriptor {
            addr: start,
            len: match longer {
                true => size as u32 + 16 * random.below(1 << 27) as u32,
                false => size as u32,
            },
            kind: if last { LAST_SEGMENT } else { SEGMENT },
        });
        segments_placed.push(Segment { start, count });
    }
    segments_placed.reverse();
    Some((next?, segments_placed))
}

impl DescriptorSlot {
    fn get(self, host: &HostModel, first: &Descriptor) -> Descriptor {
        let Some(at) = self.0 else { return *first };
        let word = |at| host.memory.qword(at).unwrap_or(0);
        Descriptor::new(word(at), word(at + 8))
    }

    fn set(self, host: &mut HostModel, first: &mut Descriptor, d: Descriptor) {
        match self.0 {
            None => *first = d,
            Some(at) => host.memory.store(at, &d.bytes()),
        }
    }
}

/// A random descriptor.
fn slot(random: &mut Random, segments_placed: &[Segment]) -> DescriptorSlot {
    let segment = &segments_placed[random.below(segments_placed.len() as u64) as usize];
    match chance(random, 15) {
        true => DescriptorSlot(None),
        false => DescriptorSlot(Some(
            segment.start + DESCRIPTOR * random.below(segment.count),
        )),
    }
}

/// Corrupts one field of a descriptor.
fn corrupt(random: &mut Random, d: &mut Descriptor) {
    let nowhere = pick(
        random,
        &[0, 0x7FFF_F000, 1 << 41, 1 << 52, 1 << 63, u64::MAX - 4095],
    );
    let segment = matches!(d.kind, SEGMENT | LAST_SEGMENT);
    match random.below(10) {
        0 => d.kind = random.next() as u8,
        1 => d.kind |= 1 + random.below(15) as u8,
        2 => d.len |= 1 + random.below(3) as u32,
        3 if segment => d.len ^= 8,
        3 => d.addr |= 1 + random.below(3),
        4 => d.addr |= 1 << random.below(3),
        5 => d.len = 0,
        6 => d.addr = nowhere + d.addr % 64,
        7 => d.len = d.len.saturating_sub(4 * (1 + random.below(8) as u32)),
        8 => d.kind ^= SEGMENT,
        _ => d.kind ^= LAST_SEGMENT ^ SEGMENT,
    }
}

/// Makes a ring: the last descriptor of a segment leads back to an earlier segment, or to the same
/// one.
fn close_ring(host: &mut HostModel, random: &mut Random, segments_placed: &[Segment]) {
    let from = random.below(segments_placed.len() as u64);
    let to = &segments_placed[random.below(from + 1) as usize];
    let from = &segments_placed[from as usize];
    let back = Descriptor {
        addr: to.start,
        len: (to.count * DESCRIPTOR) as u32,
        kind: SEGMENT,
    };
    let at = from.start + (from.count - 1) * DESCRIPTOR;
    host.memory.store(at, &back.bytes());
}

/// Shortens a segment.
fn shorten(
    host: &mut HostModel,
    random: &mut Random,
    first: &mut Descriptor,
    segments_placed: &[Segment],
) {
    let n = random.below(segments_placed.len() as u64) as usize;
    let slot = match n.checked_sub(1).map(|n| &segments_placed[n]) {
        None => DescriptorSlot(None),
        Some(before) => DescriptorSlot(Some(before.start + (before.count - 1) * DESCRIPTOR)),
    };
    let mut d = slot.get(host, first);
    d.len = (DESCRIPTOR * random.below(segments_placed[n].count)) as u32;
    slot.set(host, first, d);
}
