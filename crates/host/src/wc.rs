// SPDX-License-Identifier: Apache-2.0

//! The write-combining buffers of one CPU.
//!
//! A buffer collects the stores to one line. It is sent when all 64 bytes are present, when another
//! line needs a buffer, at a fence, at an uncached access, or at a load of the line. At most half
//! of the buffers collect stores. The others are busy until the host's fabric has accepted what
//! they sent, so that a stream of partial lines does not wait for each.

use std::collections::VecDeque;

use sim::Time;

use crate::mapping::{AccessPart, CacheLine, LINE};

/// A buffer with the stores to one line.
#[derive(Clone, Debug)]
pub(crate) struct WcBuffer {
    pub line: CacheLine,
    pub data: [u8; LINE],
    /// A bit for each byte that is present.
    pub valid: u64,
}

/// The bits of a part's bytes.
pub(crate) fn mask(start: usize, len: usize) -> u64 {
    (u64::MAX >> (LINE - len.clamp(1, LINE))) << start
}

impl WcBuffer {
    /// The writes that send the buffer: the whole line as one, or each run of bytes within 8
    /// aligned ones. Source: SDM volume 3A, "Buffering of Write Combining Memory Locations": all
    /// data of such a chunk is sent together. Yields the offset in the line, and the bytes.
    pub fn writes(&self) -> Vec<(usize, &[u8])> {
        if self.valid == u64::MAX {
            return vec![(0, &self.data)];
        }
        let mut out = Vec::new();
        let mut at = 0;
        while at < LINE {
            if self.valid >> at & 1 == 0 {
                at += 1;
                continue;
            }
            let chunk_end = (at / 8 + 1) * 8;
            let end = (at..chunk_end).find(|&n| self.valid >> n & 1 == 0);
            let end = end.unwrap_or(chunk_end);
            out.push((at, &self.data[at..end]));
            at = end;
        }
        out
    }
}

/// What a store needs before it can use a buffer.
pub(crate) enum WcLookup {
    /// A buffer is available.
    Ready,
    /// This buffer has to be sent first.
    Evict(WcBuffer),
    /// All are busy until this time.
    Busy(Time),
}

/// The buffers of one CPU.
pub(crate) struct WcBuffers {
    count: usize,
    /// Oldest first.
    open: VecDeque<WcBuffer>,
    /// When sent buffers are free again.
    leaving: Vec<Time>,
}

impl WcBuffers {
    pub fn new(count: u32) -> WcBuffers {
        WcBuffers {
            count: count.max(1) as usize,
            open: VecDeque::new(),
            leaving: Vec::new(),
        }
    }

    /// Finds a buffer for a line.
    pub fn find_buffer(&mut self, line: &CacheLine, now: Time) -> WcLookup {
        if self.open.iter().any(|b| b.line == *line) {
            return WcLookup::Ready;
        }
        self.leaving.retain(|&end| end > now);
        let most = self.count.div_ceil(2);
        if self.open.len() >= most {
            if let Some(buffer) = self.open.pop_front() {
                return WcLookup::Evict(buffer);
            }
        }
        if self.open.len() + self.leaving.len() < self.count {
            return WcLookup::Ready;
        }
        match self.leaving.iter().min() {
            Some(&end) => WcLookup::Busy(end),
            None => WcLookup::Ready,
        }
    }

    /// Adds a store to its buffer, which is available. Returns the buffer when it is full.
    pub fn store(&mut self, part: &AccessPart, data: &[u8]) -> Option<WcBuffer> {
        let place = self.open.iter().position(|b| b.line == part.line);
        let place = place.unwrap_or_else(|| {
            self.open.push_back(WcBuffer {
                line: part.line,
                data: [0; LINE],
                valid: 0,
            });
            self.open.len() - 1
        });
        let buffer = self.open.get_mut(place)?;
        buffer.data[part.start..part.start + part.len].copy_from_slice(data);
        buffer.valid |= mask(part.start, part.len);
        match buffer.valid == u64::MAX {
            true => self.open.remove(place),
            false => None,
        }
    }

    /// Marks a sent buffer as busy.
    pub fn mark_busy(&mut self, busy_until: Time) {
        self.leaving.push(busy_until);
    }

    /// Removes the buffer of a line, or the oldest.
    pub fn take_buffer(&mut self, line: Option<&CacheLine>) -> Option<WcBuffer> {
        let place = match line {
            Some(line) => self.open.iter().position(|b| b.line == *line)?,
            None => 0,
        };
        self.open.remove(place)
    }

    /// Whether a buffer collects stores to this line.
    pub fn contains(&self, line: &CacheLine) -> bool {
        self.open.iter().any(|b| b.line == *line)
    }

    /// Whether no buffer collects stores.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes all buffers at a power cut.
    pub fn clear(&mut self) -> Vec<WcBuffer> {
        self.leaving.clear();
        self.open.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, MemoryType};

    fn parts(offset: u64, len: usize) -> Vec<AccessPart> {
        let mapping = Mapping::pm(0, MemoryType::WriteCombining);
        mapping.parts(offset, len).unwrap().collect()
    }

    #[test]
    fn write_combining_partial_lines_leave_in_8_byte_chunks() {
        let mut buffers = WcBuffers::new(2);
        for (offset, len) in [(3, 10), (20, 1), (22, 2), (48, 16)] {
            let part = parts(offset, len)[0];
            assert!(buffers.store(&part, &[offset as u8; 64][..len]).is_none());
        }
        let buffer = buffers.take_buffer(None).unwrap();
        let writes: Vec<(usize, usize)> =
            buffer.writes().iter().map(|w| (w.0, w.1.len())).collect();
        assert_eq!(writes, [(3, 5), (8, 5), (20, 1), (22, 2), (48, 8), (56, 8)]);
    }

    #[test]
    fn write_combining_full_line_leaves_in_one_write() {
        let mut buffers = WcBuffers::new(2);
        for n in 0..7 {
            assert!(buffers.store(&parts(8 * n, 8)[0], &[1; 8]).is_none());
        }
        let full = buffers.store(&parts(56, 8)[0], &[1; 8]).unwrap();
        assert_eq!(full.writes(), [(0, &[1; 64][..])]);
        assert!(buffers.is_empty());
    }

    #[test]
    fn mapping_access_across_a_line_has_two_parts() {
        let parts = parts(60, 10);
        let found: Vec<_> = parts.iter().map(|p| (p.offset(), p.len, p.from)).collect();
        assert_eq!(found, [(60, 4, 0), (64, 6, 4)]);
        let mapping = Mapping::pm(0, MemoryType::Uncached);
        for (offset, len) in [(0, 0), (0, 65), (u64::MAX, 2)] {
            assert!(mapping.parts(offset, len).is_err());
        }
    }
}
