// SPDX-License-Identifier: Apache-2.0

//! The walk of an SGL (NVMe 1.4, 4.4): descriptors with addresses, at dword granularity.

use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};

use crate::list::{ListReader, NextQwords};
use crate::{List, Segment, WalkError, WalkStep};

/// Bytes of a descriptor.
pub const DESCRIPTOR: u64 = 16;
/// Maximum number of descriptors of a command that move no data, so that a ring of segments ends.
pub const MOST_EMPTY: u32 = 4096;

/// A descriptor as two qwords, in the place of PRP1 and PRP2 (figures 117 to 121 define the types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Address.
    pub addr: u64,
    /// Length.
    pub len: u32,
    /// Type and sub type.
    pub kind: u8,
}

impl Descriptor {
    /// From its qwords.
    pub fn new(low: u64, high: u64) -> Descriptor {
        Descriptor {
            addr: low,
            len: high as u32,
            kind: (high >> 56) as u8,
        }
    }

    /// Its upper qword.
    pub fn high(&self) -> u64 {
        u64::from(self.kind) << 56 | u64::from(self.len)
    }

    /// The bytes in a segment.
    pub fn bytes(&self) -> [u8; 16] {
        let value = u128::from(self.addr) | u128::from(self.high()) << 64;
        value.to_le_bytes()
    }

    /// It points to a segment.
    pub fn is_segment(&self) -> bool {
        matches!(self.kind, SEGMENT | LAST_SEGMENT)
    }
}

/// Walks an SGL. Bit buckets drop data to the host and are ignored in the other direction.
/// Descriptors after the data's end are not checked (SGLS bits 16 and 18).
#[derive(Clone, Debug)]
pub struct Walker {
    bytes: u64,
    to_host: bool,
    /// Bytes that were returned.
    done: u64,
    /// Descriptors that moved no data.
    empty: u32,
    /// The current descriptor; its next data are at `addr`.
    present: Option<Descriptor>,
    /// The current segment. The descriptor in the command is a segment of one.
    segment: ListReader,
    last: bool,
    ended: Option<WalkStep>,
}

impl Walker {
    /// The walk of a transfer of `bytes`, to the host or from it. `first` is the SGL's first
    /// descriptor.
    pub fn new(first: Descriptor, bytes: u64, to_host: bool) -> Walker {
        Walker {
            bytes,
            to_host,
            done: 0,
            empty: 0,
            present: Some(first),
            segment: ListReader::default(),
            last: false,
            ended: None,
        }
    }

    /// The next step. After `Done` and `Failed` it returns the same again.
    pub fn step(&mut self) -> WalkStep {
        loop {
            if let Some(step) = self.ended {
                return step;
            }
            let Some(descriptor) = self.present.take() else {
                if let Some(step) = self.fetch() {
                    return step;
                }
                continue;
            };
            if let Some(fault) = self.check(&descriptor) {
                return self.end(WalkStep::Failed(fault));
            }
            let bucket = descriptor.kind == BIT_BUCKET;
            if !(descriptor.is_segment() || descriptor.len == 0 || bucket && !self.to_host) {
                return self.data(descriptor, bucket);
            }
            self.empty += 1;
            if self.empty > MOST_EMPTY {
                return self.end(WalkStep::Failed(WalkError::Count));
            }
            if descriptor.is_segment() {
                self.segment = ListReader::new(descriptor.addr, u64::from(descriptor.len) / 8);
                self.last = descriptor.kind == LAST_SEGMENT;
            }
        }
    }

    /// The part of the current segment that was not fed, for callers that read ahead.
    pub fn wanted(&self) -> Option<List> {
        self.segment.wanted().filter(|_| self.ended.is_none())
    }

    /// The next qwords of the segment; qwords after its end are ignored.
    pub fn feed(&mut self, qwords: &[u64]) {
        self.segment.feed(qwords);
    }

    /// The next qword of the segment can't be read. Qwords that were fed before are used first.
    pub fn fail(&mut self) {
        self.segment.fail();
    }

    fn end(&mut self, step: WalkStep) -> WalkStep {
        self.ended = Some(step);
        step
    }

    /// Fetches the next descriptor, or returns the step that prevents it.
    fn fetch(&mut self) -> Option<WalkStep> {
        if self.done == self.bytes {
            return Some(self.end(WalkStep::Done));
        }
        if self.segment.remaining() == 0 {
            return Some(self.end(WalkStep::Failed(WalkError::Length)));
        }
        match self.segment.next_qwords() {
            NextQwords::NotFed(list) => Some(WalkStep::NeedList(list)),
            NextQwords::Failed => Some(self.end(WalkStep::Failed(WalkError::Host))),
            NextQwords::Qwords([low, high]) => {
                self.present = Some(Descriptor::new(low, high));
                None
            }
        }
    }

    /// Returns a piece of a descriptor's data. The next step continues after it.
    fn data(&mut self, descriptor: Descriptor, bucket: bool) -> WalkStep {
        let (addr, len) = (descriptor.addr, u64::from(descriptor.len));
        let len = len.min(self.bytes - self.done);
        let piece = match bucket {
            true => Segment {
                addr,
                len,
                offset: self.done,
            },
            false => Segment::first_in_page(addr, len, self.done),
        };
        self.done += piece.len;
        if piece.len < len {
            self.present = Some(Descriptor {
                addr: addr.wrapping_add(piece.len),
                len: descriptor.len.saturating_sub(piece.len as u32),
                ..descriptor
            });
        }
        match (piece.len, bucket) {
            // A transfer of 0 bytes.
            (0, _) => self.end(WalkStep::Done),
            (_, true) => WalkStep::Drop(piece),
            (_, false) => WalkStep::Data(piece),
        }
    }

    /// Checks a descriptor at its position.
    fn check(&self, d: &Descriptor) -> Option<WalkError> {
        match d.kind {
            DATA_BLOCK if d.addr % 4 != 0 || d.len % 4 != 0 => Some(WalkError::Granularity),
            BIT_BUCKET if d.len % 4 != 0 => Some(WalkError::Granularity),
            DATA_BLOCK | BIT_BUCKET => None,
            SEGMENT | LAST_SEGMENT => {
                let fits = d.len > 0 && d.len % 16 == 0 && d.addr % 8 == 0;
                if self.last || !fits {
                    Some(WalkError::Segment)
                } else if self.segment.remaining() > 0 {
                    Some(WalkError::Count)
                } else {
                    None
                }
            }
            _ => Some(WalkError::Type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Memory = BTreeMap<u64, u64>;

    const AT: u64 = 0x1008;

    fn d(kind: u8, addr: u64, len: u32) -> Descriptor {
        Descriptor { addr, len, kind }
    }

    /// Memory with these descriptors from `AT` on.
    fn memory(descriptors: &[Descriptor]) -> Memory {
        let qwords = descriptors.iter().flat_map(|d| [d.addr, d.high()]);
        (AT..).step_by(8).zip(qwords).collect()
    }

    /// Runs a walk that feeds a fixed number of qwords at a time. Returns addresses, lengths and
    /// offsets, the dropped bytes, and the last step.
    fn walk(
        memory: &Memory,
        mut walker: Walker,
        portion: u64,
    ) -> (Vec<(u64, u64, u64)>, u64, Option<WalkError>) {
        let (mut data, mut dropped) = (Vec::new(), 0);
        loop {
            match walker.step() {
                WalkStep::Data(s) => data.push((s.addr, s.len, s.offset)),
                WalkStep::Drop(s) => dropped += s.len,
                WalkStep::NeedList(list) => {
                    assert_eq!(walker.wanted(), Some(list));
                    for n in 0..portion.min(list.entries) {
                        match memory.get(&list.addr.wrapping_add(8 * n)) {
                            Some(&qword) => walker.feed(&[qword]),
                            None => walker.fail(),
                        }
                    }
                }
                WalkStep::Done => return (data, dropped, None),
                WalkStep::Failed(fault) => {
                    assert_eq!(walker.step(), WalkStep::Failed(fault));
                    return (data, dropped, Some(fault));
                }
            }
        }
    }

    #[test]
    fn sgl_data_blocks_are_split_at_pages_and_end_with_the_data() {
        let first = d(DATA_BLOCK, 0x9FFC, 9000);
        let (data, _, fault) = walk(&Memory::new(), Walker::new(first, 512, true), 1);
        assert_eq!(
            (data, fault),
            (vec![(0x9FFC, 4, 0), (0xA000, 508, 4)], None)
        );
        let first = d(DATA_BLOCK, u64::MAX - 3, u32::MAX - 3);
        let (data, _, fault) = walk(&Memory::new(), Walker::new(first, 8, true), 1);
        assert_eq!((data, fault), (vec![(u64::MAX - 3, 4, 0), (0, 4, 4)], None));
        let nothing = walk(&Memory::new(), Walker::new(first, 0, true), 1);
        assert_eq!(nothing, (vec![], 0, None));
    }

    #[test]
    fn sgl_bit_bucket_discards_only_data_to_the_host() {
        let list = [
            d(BIT_BUCKET, 3, 256),
            d(DATA_BLOCK, 1 << 32, 256),
            d(DATA_BLOCK, 1 << 32, 256),
        ];
        let memory = memory(&list);
        let first = d(LAST_SEGMENT, AT, 48);
        for portion in 1..8 {
            let read = walk(&memory, Walker::new(first, 512, true), portion);
            assert_eq!(read, (vec![(1 << 32, 256, 256)], 256, None));
            let (data, dropped, fault) = walk(&memory, Walker::new(first, 512, false), portion);
            assert_eq!((data.len(), dropped, fault), (2, 0, None));
        }
    }

    #[test]
    fn sgl_errors_have_their_own_statuses() {
        let fault = |list: &[Descriptor]| {
            let first = d(SEGMENT, AT, 16 * list.len() as u32);
            walk(&memory(list), Walker::new(first, 512, true), 3).2
        };
        let p = 1 << 32;
        assert_eq!(fault(&[d(DATA_BLOCK, p, 508)]), Some(WalkError::Length));
        assert_eq!(
            fault(&[d(DATA_BLOCK, p + 2, 512)]),
            Some(WalkError::Granularity)
        );
        assert_eq!(fault(&[d(BIT_BUCKET, 0, 2)]), Some(WalkError::Granularity));
        assert_eq!(fault(&[d(0x01, p, 512)]), Some(WalkError::Type));
        assert_eq!(fault(&[d(0x40, p, 512)]), Some(WalkError::Type));
        assert_eq!(fault(&[d(SEGMENT, p, 8)]), Some(WalkError::Segment));
        assert_eq!(fault(&[d(SEGMENT, p + 4, 16)]), Some(WalkError::Segment));
        let both = [d(SEGMENT, p, 16), d(DATA_BLOCK, p, 4)];
        assert_eq!(fault(&both), Some(WalkError::Count));
        assert_eq!(fault(&[d(SEGMENT, 1 << 50, 16)]), Some(WalkError::Host));
        let memory = memory(&[d(LAST_SEGMENT, p, 16)]);
        let first = d(LAST_SEGMENT, AT, 16);
        let found = walk(&memory, Walker::new(first, 512, true), 2).2;
        assert_eq!(found, Some(WalkError::Segment));
    }

    #[test]
    fn sgl_walk_of_a_ring_of_segments_ends() {
        let memory = memory(&[d(SEGMENT, AT, 16)]);
        let walker = Walker::new(d(SEGMENT, AT, 16), 512, true);
        assert_eq!(walk(&memory, walker, 2).2, Some(WalkError::Count));
    }
}
