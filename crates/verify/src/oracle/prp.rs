// SPDX-License-Identifier: Apache-2.0

//! Resolves a pair of PRP entries in host memory, for the reference model.

use nvme::{prp, WalkStep};

use crate::oracle::memory::Memory;
use crate::oracle::walk::Walk;

/// Walks the PRPs of a transfer of `bytes` bytes.
pub fn walk(memory: &Memory, prp1: u64, prp2: u64, bytes: u64) -> Walk {
    let mut walk = Walk::default();
    let mut walker = prp::Walker::new(prp1, prp2, bytes);
    loop {
        match walker.step() {
            WalkStep::Data(segment) => walk.segments.push(segment),
            // PRPs have no bit buckets.
            WalkStep::Done | WalkStep::Drop(_) => return walk,
            WalkStep::Failed(fault) => {
                walk.fault = Some(fault);
                return walk;
            }
            // A list page is read at once, so it is noted once.
            WalkStep::NeedList(list) => {
                walk.lists.push((list.addr, list.entries * 8));
                for n in 0..list.entries {
                    match memory.qword(list.addr + 8 * n) {
                        Some(entry) => walker.feed(&[entry]),
                        None => {
                            walker.fail();
                            break;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;
    use nvme::WalkError;
    use sim::Random;

    #[test]
    fn prp_lists_are_noted_and_end_where_no_memory_is() {
        let mut memory = Memory::new(8);
        let mut random = Random::new(3);
        let p: Vec<u64> = (0..8).filter_map(|_| memory.alloc(&mut random)).collect();
        // The list begins at the last but one entry of its page. The last entry leads back to the
        // page's start.
        memory.store(p[0] + 4080, &p[1].to_le_bytes());
        memory.store(p[0] + 4088, &p[0].to_le_bytes());
        for (n, page) in p[2..4].iter().enumerate() {
            memory.store(p[0] + 8 * n as u64, &page.to_le_bytes());
        }
        let w = walk(&memory, p[4], p[0] + 4080, 4 * PAGE);
        assert_eq!((w.segments.len(), w.fault), (4, None));
        assert_eq!(w.lists, [(p[0] + 4080, 16), (p[0], 16)]);
        let w = walk(&memory, p[3], 0x1000, 3 * PAGE);
        assert_eq!((w.segments.len(), w.fault), (1, Some(WalkError::Host)));
        assert_eq!(w.lists, [(0x1000, 16)]);
    }
}
