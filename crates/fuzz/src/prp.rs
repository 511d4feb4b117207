//! What a pair of PRP entries means (NVM Express 1.4, 4.3), for the reference model.

use crate::memory::{Memory, PAGE};
use crate::walk::{Fault, Segment, Walk};

/// Walks the PRPs of a transfer of so many bytes. PRP1 may have any dword offset; PRP2 is the second page, or points to
/// a list at any qword; all other entries have offset 0; the last entry of a list page points to the next list if more
/// than one page is still to come.
pub fn walk(memory: &Memory, prp1: u64, prp2: u64, bytes: u64) -> Walk {
    let mut walk = Walk::default();
    if prp1 % 4 != 0 {
        walk.fault = Some(Fault::Offset);
        return walk;
    }
    let mut done = bytes.min(PAGE - prp1 % PAGE);
    walk.segments.push(Segment {
        addr: prp1,
        len: done,
        offset: 0,
    });
    if done == bytes {
        return walk;
    }
    if bytes - done <= PAGE {
        if prp2 % PAGE != 0 {
            walk.fault = Some(Fault::Offset);
        } else {
            walk.segments.push(Segment {
                addr: prp2,
                len: bytes - done,
                offset: done,
            });
        }
        return walk;
    }
    if prp2 % 8 != 0 {
        walk.fault = Some(Fault::Offset);
        return walk;
    }
    let mut list = prp2;
    loop {
        let pages = (bytes - done).div_ceil(PAGE);
        let room = (PAGE - list % PAGE) / 8;
        let (entries, chained) = (pages.min(room), pages > room);
        walk.lists.push((list, entries * 8));
        for n in 0..entries {
            let Some(entry) = memory.qword(list + 8 * n) else {
                walk.fault = Some(Fault::Host);
                return walk;
            };
            if entry % PAGE != 0 {
                walk.fault = Some(Fault::Offset);
                return walk;
            }
            if chained && n + 1 == entries {
                list = entry;
                break;
            }
            let len = (bytes - done).min(PAGE);
            walk.segments.push(Segment {
                addr: entry,
                len,
                offset: done,
            });
            done += len;
        }
        if done == bytes {
            return walk;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    fn pages(count: usize) -> (Memory, Vec<u64>) {
        let mut memory = Memory::new(count as u64);
        let mut random = Random::new(3);
        let pages = (0..count)
            .filter_map(|_| memory.take(&mut random))
            .collect();
        (memory, pages)
    }

    #[test]
    fn one_and_two_pages() {
        let (memory, p) = pages(2);
        let w = walk(&memory, p[0] + 4, p[1], 8);
        assert_eq!((w.segments.len(), w.bytes(), w.fault), (1, 8, None));
        let w = walk(&memory, p[0] + 4092, p[1], 8);
        assert_eq!(
            w.segments[1],
            Segment {
                addr: p[1],
                len: 4,
                offset: 4
            }
        );
        assert_eq!(walk(&memory, p[0] + 2, 0, 8).fault, Some(Fault::Offset));
        let w = walk(&memory, p[0] + 4092, p[1] + 4, 8);
        assert_eq!((w.segments.len(), w.fault), (1, Some(Fault::Offset)));
    }

    #[test]
    fn lists_are_chained_by_their_last_entry_and_may_point_at_themselves() {
        let (mut memory, p) = pages(8);
        // The list begins with the last but one entry of its page; the last one leads back to the page's start.
        memory.put(p[0] + 4080, &p[1].to_le_bytes());
        memory.put(p[0] + 4088, &p[0].to_le_bytes());
        for (n, page) in p[2..4].iter().enumerate() {
            memory.put(p[0] + 8 * n as u64, &page.to_le_bytes());
        }
        let w = walk(&memory, p[4], p[0] + 4080, 4 * PAGE);
        let addrs: Vec<u64> = w.segments.iter().map(|s| s.addr).collect();
        assert_eq!((addrs, w.fault), (vec![p[4], p[1], p[2], p[3]], None));
        assert_eq!(w.lists, [(p[0] + 4080, 16), (p[0], 16)]);
    }

    #[test]
    fn errors_stop_the_walk_where_they_are() {
        let (mut memory, p) = pages(4);
        memory.put(p[0], &p[1].to_le_bytes());
        memory.put(p[0] + 8, &(p[2] + 8).to_le_bytes());
        let w = walk(&memory, p[3], p[0], 3 * PAGE);
        assert_eq!((w.segments.len(), w.fault), (2, Some(Fault::Offset)));
        let w = walk(&memory, p[3], 0x1000, 3 * PAGE);
        assert_eq!((w.segments.len(), w.fault), (1, Some(Fault::Host)));
        assert_eq!(
            walk(&memory, p[3], 0x1004, 3 * PAGE).fault,
            Some(Fault::Offset)
        );
    }
}
