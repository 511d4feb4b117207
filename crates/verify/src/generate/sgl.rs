// SPDX-License-Identifier: Apache-2.0

//! Random SGLs: data blocks, bit buckets and segments of all shapes, mostly valid, sometimes
//! corrupted.

use nvme::sgl::{Descriptor, DESCRIPTOR};
use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};
use spec::nvme::{io, Sqe};

use super::buffer::nowhere;
use super::{is_to_host, Buffer, Generator};
use crate::PAGE;

/// Approximate number of data descriptors in an SGL.
const PIECES: usize = 20;
/// Most data descriptors in a segment.
const MOST_IN_SEGMENT: usize = 128;
/// Upper bound of the bytes that a controller may read beyond the descriptors that it needs.
const SLACK: u64 = 6 * 64;

/// Consecutive descriptors in memory.
struct Segment {
    start: u64,
    list: Vec<Descriptor>,
}

fn descriptor(addr: u64, len: u64, kind: u8) -> Descriptor {
    Descriptor {
        addr,
        len: len as u32,
        kind,
    }
}

impl Generator<'_> {
    /// The first descriptor of an SGL of `bytes` bytes, and its memory. `None` if there is no room.
    pub(super) fn sgl(&mut self, sqe: &Sqe, bytes: u64) -> Option<(Descriptor, Buffer)> {
        if !self.host.has_room(bytes.div_ceil(PAGE) + 2 * PIECES as u64) {
            return None;
        }
        let mut buffer = Buffer::default();
        let mut list = self.data_descriptors(bytes, is_to_host(sqe), &mut buffer)?;
        // A list of ranges that is read from another address may name anything.
        let may_err = self.is_hostile() || sqe.opcode() != io::DATASET_MANAGEMENT;
        let corrupted = may_err && self.is_wrong(12);
        buffer.corrupted = corrupted;
        if !corrupted && self.chance(15) {
            // More than the data needs.
            if let Some(last) = list.last_mut() {
                last.len += 4 * self.random.below(1 << 20) as u32;
            }
        }
        if list.len() == 1 && self.chance(60) {
            let mut first = list[0];
            if corrupted {
                self.corrupt_descriptor(&mut first);
            }
            return Some((first, buffer));
        }
        if !corrupted && self.chance(20) {
            // The controller ignores descriptors past the data.
            for _ in 0..1 + self.random.below(6) {
                list.push(Descriptor::new(self.random.next(), self.random.next()));
            }
        }
        let (mut first, mut segments) = self.segments(&list, !corrupted, &mut buffer)?;
        if corrupted {
            let moved = list.iter().map(|d| u64::from(d.len)).sum::<u64>();
            self.corrupt_segments(&mut first, &mut segments, 16 * bytes >= 4 * moved);
        }
        for Segment { start, list } in segments {
            for (n, d) in (0..).zip(list) {
                let at = start + n * DESCRIPTOR;
                buffer.stores.push((at, d.bytes().to_vec()));
            }
        }
        Some((first, buffer))
    }

    /// Descriptors of `bytes` bytes.
    fn data_descriptors(
        &mut self,
        bytes: u64,
        to_host: bool,
        buffer: &mut Buffer,
    ) -> Option<Vec<Descriptor>> {
        let mut list = Vec::new();
        let mut at = 0;
        let whole = self.chance(30);
        while at < bytes {
            if self.chance(8) {
                let addr = self.pick(&[0, 1 << 33, 4]);
                list.push(descriptor(addr, 0, DATA_BLOCK));
            }
            if !to_host && self.chance(8) {
                // A bit bucket moves nothing, whatever its length.
                let len = 4 * self.random.below(1 << 20);
                list.push(descriptor(self.random.next(), len, BIT_BUCKET));
            }
            let left = bytes - at;
            let mut len = match whole || list.len() >= PIECES {
                true => left,
                false => 4 * (1 + self.random.below(left.min(9000) / 4)),
            };
            if to_host && self.chance(15) {
                list.push(descriptor(self.random.next(), len, BIT_BUCKET));
                at += len;
                continue;
            }
            let offset = match self.random.below(3) {
                0 => 0,
                1 => 4 * self.random.below(1024),
                _ => PAGE - 4 * (1 + self.random.below(16)),
            };
            let run = match self.alloc((offset + len).div_ceil(PAGE), buffer) {
                Some(run) => run,
                None => {
                    // Free memory is fragmented.
                    len = len.min(PAGE - offset);
                    self.alloc(1, buffer)?
                }
            };
            buffer.pieces.push((at, run + offset, len));
            list.push(descriptor(run + offset, len, DATA_BLOCK));
            at += len;
        }
        Some(list)
    }

    /// Puts descriptors into segments. Returns the first descriptor and the segments. `long` allows
    /// the last segment to claim a greater length.
    fn segments(
        &mut self,
        list: &[Descriptor],
        long: bool,
        buffer: &mut Buffer,
    ) -> Option<(Descriptor, Vec<Segment>)> {
        let parts = 1 + self.random.below(4.min(list.len() as u64)) as usize;
        // Many descriptors do not fit into the page of one segment.
        let parts = parts.max(list.len().div_ceil(MOST_IN_SEGMENT));
        let chunks: Vec<&[Descriptor]> = list.chunks(list.len().div_ceil(parts)).collect();
        let mut next: Option<Descriptor> = None;
        let mut segments = Vec::new();
        for chunk in chunks.iter().rev() {
            let is_last = next.is_none();
            let list: Vec<Descriptor> = chunk.iter().copied().chain(next).collect();
            let size = list.len() as u64 * DESCRIPTOR;
            let longer = long && is_last && self.chance(10);
            let room = if longer { size + SLACK } else { size };
            let two = !longer && self.chance(20);
            let two = two.then(|| self.alloc(2, buffer)).flatten();
            let start = match two {
                // Across the boundary of the pages.
                Some(pages) => pages + PAGE - 8 * self.random.below(size / 8),
                None => self.alloc(1, buffer)? + 8 * self.random.below((PAGE - room) / 8 + 1),
            };
            let len = match longer {
                true => size + 16 * self.random.below(1 << 27),
                false => size,
            };
            let kind = match is_last && self.chance(85) {
                true => LAST_SEGMENT,
                false => SEGMENT,
            };
            next = Some(descriptor(start, len, kind));
            segments.push(Segment { start, list });
        }
        segments.reverse();
        Some((next?, segments))
    }

    /// Corrupts one descriptor of an SGL. A `ring` of its segments holds enough data.
    fn corrupt_segments(&mut self, first: &mut Descriptor, segments: &mut [Segment], ring: bool) {
        let n = self.random.below(segments.len() as u64) as usize;
        match self.random.below(10) {
            0 if self.is_hostile() && (ring || self.chance(3)) => {
                // The last descriptor leads back to this segment, or to an earlier one.
                let to = &segments[self.random.below(n as u64 + 1) as usize];
                let back = descriptor(to.start, to.list.len() as u64 * DESCRIPTOR, SEGMENT);
                if let Some(last) = segments[n].list.last_mut() {
                    *last = back;
                }
            }
            1 if self.is_hostile() => {
                let len = DESCRIPTOR * self.random.below(segments[n].list.len() as u64);
                let before = n.checked_sub(1).and_then(|n| segments[n].list.last_mut());
                before.unwrap_or(first).len = len as u32;
            }
            _ if self.chance(15) => self.corrupt_descriptor(first),
            _ => {
                let at = self.random.below(segments[n].list.len() as u64) as usize;
                self.corrupt_descriptor(&mut segments[n].list[at]);
            }
        }
    }

    /// Corrupts one field of a descriptor.
    fn corrupt_descriptor(&mut self, d: &mut Descriptor) {
        let segment = matches!(d.kind, SEGMENT | LAST_SEGMENT);
        match self.random.below(10) {
            0 => d.kind = self.random.next() as u8,
            1 => d.kind |= 1 + self.random.below(15) as u8,
            2 => d.len |= 1 + self.random.below(3) as u32,
            3 if segment => d.len ^= 8,
            3 => d.addr |= 1 + self.random.below(3),
            4 => d.addr |= 1 << self.random.below(3),
            5 => d.len = 0,
            6 => d.addr = nowhere(self.random) + d.addr % 64,
            7 => d.len = d.len.saturating_sub(4 * (1 + self.random.below(8) as u32)),
            8 => d.kind ^= SEGMENT,
            _ => d.kind ^= LAST_SEGMENT ^ SEGMENT,
        }
    }
}
