// SPDX-License-Identifier: Apache-2.0

//! Resolves an SGL in host memory, for the reference model.

use nvme::sgl::{Descriptor, Walker, DESCRIPTOR};
use nvme::WalkStep;

use crate::oracle::memory::Memory;
use crate::oracle::walk::Walk;
use crate::PAGE;

/// Bytes of a segment that may be read before they are needed.
const AHEAD: u64 = 4 * 64;

/// The position of a walk in its segment.
#[derive(Default)]
struct SegmentCursor {
    start: u64,
    /// Bytes of descriptors that were evaluated.
    taken: u64,
    /// Bytes of the remaining descriptors.
    left: u64,
}

impl SegmentCursor {
    /// Notes what the controller may have read by now: the lines of evaluated descriptors, and some
    /// lines ahead.
    fn note_reads(&self, walk: &mut Walk, memory: &Memory) {
        let skew = self.start % 64;
        let most = (skew + self.taken.max(1)).next_multiple_of(64) + AHEAD - skew;
        let mut left = most.min(self.taken + self.left);
        let mut addr = self.start;
        while left > 0 {
            let len = left.min(PAGE - addr % PAGE);
            walk.lists.push((addr, len));
            walk.unsure |= !memory.exists(addr, len);
            (addr, left) = (addr.wrapping_add(len), left - len);
        }
    }
}

/// Walks the SGL that begins with this descriptor.
pub fn walk_sgl(memory: &Memory, first: Descriptor, bytes: u64, to_host: bool) -> Walk {
    let mut walk = Walk::default();
    let mut walker = Walker::new(first, bytes, to_host);
    let mut cursor = SegmentCursor::default();
    loop {
        match walker.step() {
            WalkStep::Data(segment) => walk.segments.push(segment),
            WalkStep::Drop(_) => walk.dropped = true,
            WalkStep::Done => break,
            WalkStep::Failed(fault) => {
                walk.fault = Some(fault);
                break;
            }
            WalkStep::NeedList(list) => {
                if cursor.left == 0 {
                    cursor.note_reads(&mut walk, memory);
                    cursor = SegmentCursor {
                        start: list.addr,
                        taken: 0,
                        left: list.entries * 8,
                    };
                }
                // One descriptor at a time, as descriptors past the data are not evaluated.
                let high = list.addr.wrapping_add(8);
                match (memory.qword(list.addr), memory.qword(high)) {
                    (Some(low), Some(high)) => {
                        walker.feed(&[low, high]);
                        cursor.taken += DESCRIPTOR;
                        cursor.left -= DESCRIPTOR;
                    }
                    _ => walker.fail(),
                }
            }
        }
    }
    cursor.note_reads(&mut walk, memory);
    walk
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;
    use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};

    fn d(kind: u8, addr: u64, len: u32) -> Descriptor {
        Descriptor { addr, len, kind }
    }

    #[test]
    fn sgl_segments_that_were_read_are_noted() {
        let mut memory = Memory::new(4);
        let p = memory.alloc(&mut Random::new(1)).unwrap();
        let list = [
            d(BIT_BUCKET, 3, 256),
            d(DATA_BLOCK, 1 << 32, 256),
            d(DATA_BLOCK, 1 << 32, 256),
        ];
        for (n, descriptor) in (0..).zip(&list) {
            memory.store(p + n * DESCRIPTOR, &descriptor.bytes());
        }
        let w = walk_sgl(&memory, d(LAST_SEGMENT, p, 48), 512, true);
        assert_eq!((w.segments.len(), w.bytes(), w.dropped), (1, 256, true));
        assert_eq!(w.lists, [(p, 48)]);
        let w = walk_sgl(&memory, d(LAST_SEGMENT, p, 48), 512, false);
        assert_eq!((w.segments.len(), w.fault, w.dropped), (2, None, false));
        let w = walk_sgl(&memory, d(DATA_BLOCK, p, 9000), 512, true);
        assert!(w.lists.is_empty() && !w.unsure);
    }

    #[test]
    fn sgl_ring_is_noted_as_often_as_it_is_read() {
        let mut memory = Memory::new(4);
        let p = memory.alloc(&mut Random::new(1)).unwrap();
        memory.store(p, &d(SEGMENT, p, 16).bytes());
        let w = walk_sgl(&memory, d(SEGMENT, p, 16), 512, true);
        assert_eq!(w.lists.len(), nvme::sgl::MOST_EMPTY as usize);
    }

    #[test]
    fn sgl_lines_ahead_may_fail_before_they_are_needed() {
        let list = [d(DATA_BLOCK, 1 << 32, 512)];
        let mut memory = Memory::new(4);
        let last = (1 << 32) + 4 * PAGE - 16;
        memory.store(last, &list[0].bytes());
        let w = walk_sgl(&memory, d(SEGMENT, last, 32), 512, true);
        assert_eq!((w.fault, w.unsure), (None, true));
    }
}
