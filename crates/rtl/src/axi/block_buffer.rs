// SPDX-License-Identifier: Apache-2.0

//! Lines of write bursts on their way to the media.

use sim::Media;

use super::BEAT;

/// Bytes of a block.
pub(super) const BLOCK: u64 = 512;
const LINES: usize = BLOCK as usize / BEAT;

/// The lines of a block that a burst has brought so far. They go to the media together. So a
/// process that is killed between two beats leaves no block half written in a media file.
pub(super) struct BlockBuffer {
    /// Address of the first line.
    addr: u64,
    lines: [[u8; BEAT]; LINES],
    strobes: [u64; LINES],
    count: usize,
}

impl BlockBuffer {
    /// A buffer without lines.
    pub fn new() -> BlockBuffer {
        BlockBuffer {
            addr: 0,
            lines: [[0; BEAT]; LINES],
            strobes: [0; LINES],
            count: 0,
        }
    }

    /// Adds the next line of a burst; `last` ends the burst. Returns false if lines were due to be
    /// written and the media had no room for some.
    pub fn add_line(
        &mut self,
        media: &mut Media,
        addr: u64,
        data: &[u8; BEAT],
        strobe: u64,
        last: bool,
    ) -> bool {
        let next = self.addr + (self.count * BEAT) as u64;
        let mut ok = true;
        if self.count > 0 && (addr != next || addr % BLOCK == 0) {
            ok = self.write(media);
        }
        if self.count == 0 {
            self.addr = addr;
        }
        self.lines[self.count] = *data;
        self.strobes[self.count] = strobe;
        self.count += 1;
        if last || (addr + BEAT as u64) % BLOCK == 0 {
            ok &= self.write(media);
        }
        ok
    }

    fn write(&mut self, media: &mut Media) -> bool {
        let count = std::mem::take(&mut self.count);
        let (lines, strobes) = (&self.lines[..count], &self.strobes[..count]);
        if strobes.iter().all(|&strobe| strobe == u64::MAX) {
            return media.write(self.addr, lines.as_flattened());
        }
        let mut ok = true;
        for (i, (line, &strobe)) in lines.iter().zip(strobes).enumerate() {
            ok &= media.write_line(self.addr + (i * BEAT) as u64, line, strobe);
        }
        ok
    }
}
