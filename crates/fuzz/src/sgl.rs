//! What an SGL means (NVM Express 1.4, 4.4; dword granularity), for the reference model.

use spec::nvme::sgl_type::{BIT_BUCKET, DATA_BLOCK, LAST_SEGMENT, SEGMENT};

use crate::memory::{Memory, PAGE};
use crate::walk::{Fault, Segment, Walk};

/// Bytes of a descriptor.
pub const DESCRIPTOR: u64 = 16;
/// Descriptors of a command that may move nothing.
const MOST_EMPTY: u32 = 4096;
/// Bytes of a segment that may be read before they are needed.
const AHEAD: u64 = 4 * 64;

/// A descriptor, as the two qwords that PRP1 and PRP2 would be.
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

    /// As it stands in a segment.
    pub fn bytes(&self) -> [u8; 16] {
        let value = u128::from(self.addr) | u128::from(self.high()) << 64;
        value.to_le_bytes()
    }
}

/// The segment that a walk is in.
struct Place {
    start: u64,
    /// Bytes of descriptors that were looked at.
    taken: u64,
    /// Bytes of the others.
    left: u64,
    last: bool,
}

impl Place {
    /// What the controller may have read of it by now: the lines of what was looked at, and some ahead.
    fn leave(&self, walk: &mut Walk, memory: &Memory) {
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

/// Walks the SGL that begins with this descriptor. Bit buckets take what would go to the host, and are nothing otherwise;
/// what comes after the data's end is not looked at.
pub fn walk_sgl(memory: &Memory, first: Descriptor, bytes: u64, to_host: bool) -> Walk {
    let mut walk = Walk::default();
    // The descriptor in the command itself is a segment of one.
    let mut place = Place {
        start: 0,
        taken: 0,
        left: 0,
        last: false,
    };
    let (mut descriptor, mut done, mut empty) = (first, 0, 0);
    let fault = loop {
        if let Some(fault) = check(&descriptor, &place) {
            break Some(fault);
        }
        let segment = matches!(descriptor.kind, SEGMENT | LAST_SEGMENT);
        let drop = descriptor.kind == BIT_BUCKET;
        if segment || descriptor.len == 0 || drop && !to_host {
            empty += 1;
            if empty > MOST_EMPTY {
                break Some(Fault::Count);
            }
        } else {
            let len = u64::from(descriptor.len).min(bytes - done);
            walk.dropped |= drop;
            if !drop {
                block(&mut walk, descriptor.addr, len, done);
            }
            done += len;
        }
        if segment {
            place.leave(&mut walk, memory);
            place = Place {
                start: descriptor.addr,
                taken: 0,
                left: descriptor.len.into(),
                last: descriptor.kind == LAST_SEGMENT,
            };
        }
        if done == bytes {
            break None;
        }
        if place.left == 0 {
            break Some(Fault::Length);
        }
        let at = place.start.wrapping_add(place.taken);
        let qwords = (memory.qword(at), memory.qword(at.wrapping_add(8)));
        let (Some(low), Some(high)) = qwords else {
            break Some(Fault::Host);
        };
        descriptor = Descriptor::new(low, high);
        place.taken += DESCRIPTOR;
        place.left -= DESCRIPTOR;
    };
    place.leave(&mut walk, memory);
    walk.fault = fault;
    walk
}

/// What is wrong with a descriptor where it stands.
fn check(d: &Descriptor, place: &Place) -> Option<Fault> {
    match d.kind {
        DATA_BLOCK if d.addr % 4 != 0 || d.len % 4 != 0 => Some(Fault::Granularity),
        BIT_BUCKET if d.len % 4 != 0 => Some(Fault::Granularity),
        DATA_BLOCK | BIT_BUCKET => None,
        SEGMENT | LAST_SEGMENT => {
            let fits = d.len > 0 && d.len % 16 == 0 && d.addr % 8 == 0;
            if place.last || !fits {
                Some(Fault::Segment)
            } else if place.left > 0 {
                Some(Fault::Count)
            } else {
                None
            }
        }
        _ => Some(Fault::Type),
    }
}

/// A block of data, page by page.
fn block(walk: &mut Walk, addr: u64, len: u64, offset: u64) {
    let (mut addr, mut offset, end) = (addr, offset, offset + len);
    while offset < end {
        let len = (end - offset).min(PAGE - addr % PAGE);
        walk.segments.push(Segment { addr, len, offset });
        (addr, offset) = (addr.wrapping_add(len), offset + len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    fn d(kind: u8, addr: u64, len: u32) -> Descriptor {
        Descriptor { addr, len, kind }
    }

    /// Memory with a page of these descriptors, and its address.
    fn page(descriptors: &[Descriptor]) -> (Memory, u64) {
        let mut memory = Memory::new(4);
        let page = memory.take(&mut Random::new(1)).unwrap();
        for (n, descriptor) in (0..).zip(descriptors) {
            memory.put(page + n * DESCRIPTOR, &descriptor.bytes());
        }
        (memory, page)
    }

    #[test]
    fn blocks_are_cut_at_pages_and_what_is_beyond_the_data_counts_for_nothing() {
        let (memory, p) = page(&[]);
        let w = walk_sgl(&memory, d(DATA_BLOCK, p + 4092, 9000), 512, true);
        let parts: Vec<(u64, u64)> = w.segments.iter().map(|s| (s.addr, s.len)).collect();
        assert_eq!(
            (parts, w.fault),
            (vec![(p + 4092, 4), (p + 4096, 508)], None)
        );
        assert!(w.lists.is_empty() && !w.unsure);
    }

    #[test]
    fn a_bucket_takes_what_goes_to_the_host_only() {
        let list = [
            d(BIT_BUCKET, 3, 256),
            d(DATA_BLOCK, 1 << 32, 256),
            d(DATA_BLOCK, 1 << 32, 256),
        ];
        let (memory, p) = page(&list);
        let first = d(LAST_SEGMENT, p, 48);
        let w = walk_sgl(&memory, first, 512, true);
        assert_eq!(
            (w.segments.len(), w.bytes(), w.segments[0].offset),
            (1, 256, 256)
        );
        let w = walk_sgl(&memory, first, 512, false);
        assert_eq!((w.segments.len(), w.fault), (2, None));
        assert_eq!(w.lists, [(p, 48)]);
    }

    #[test]
    fn every_error_has_its_name() {
        let fault = |list: &[Descriptor]| {
            let (memory, p) = page(list);
            let first = d(SEGMENT, p, 16 * list.len() as u32);
            walk_sgl(&memory, first, 512, true).fault
        };
        let p = 1 << 32;
        assert_eq!(fault(&[d(DATA_BLOCK, p, 508)]), Some(Fault::Length));
        assert_eq!(
            fault(&[d(DATA_BLOCK, p + 2, 512)]),
            Some(Fault::Granularity)
        );
        assert_eq!(fault(&[d(BIT_BUCKET, 0, 2)]), Some(Fault::Granularity));
        assert_eq!(fault(&[d(0x01, p, 512)]), Some(Fault::Type));
        assert_eq!(fault(&[d(0x40, p, 512)]), Some(Fault::Type));
        assert_eq!(fault(&[d(SEGMENT, p, 8)]), Some(Fault::Segment));
        assert_eq!(fault(&[d(SEGMENT, p + 4, 16)]), Some(Fault::Segment));
        assert_eq!(
            fault(&[d(SEGMENT, p, 16), d(DATA_BLOCK, p, 4)]),
            Some(Fault::Count)
        );
        assert_eq!(fault(&[d(SEGMENT, 1 << 50, 16)]), Some(Fault::Host));
        let (memory, p) = page(&[d(LAST_SEGMENT, 1 << 32, 16)]);
        let w = walk_sgl(&memory, d(LAST_SEGMENT, p, 16), 512, true);
        assert_eq!(w.fault, Some(Fault::Segment));
    }

    #[test]
    fn a_ring_of_segments_ends() {
        let (mut memory, p) = page(&[]);
        memory.put(p, &d(SEGMENT, p, 16).bytes());
        let w = walk_sgl(&memory, d(SEGMENT, p, 16), 512, true);
        assert_eq!(w.fault, Some(Fault::Count));
    }

    #[test]
    fn lines_ahead_may_fail_before_they_are_needed() {
        let list = [d(DATA_BLOCK, 1 << 32, 512)];
        let (mut memory, _) = page(&list);
        let last = (1 << 32) + 4 * PAGE - 16;
        memory.put(last, &list[0].bytes());
        let w = walk_sgl(&memory, d(SEGMENT, last, 32), 512, true);
        assert_eq!((w.fault, w.unsure), (None, true));
    }
}
