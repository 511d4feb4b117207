// SPDX-License-Identifier: Apache-2.0

//! Scoreboard of a Read: the delivered bytes of each block must belong to one content.

use crate::oracle::media::Media;
use crate::BLOCK;

/// The delivered bytes of a Read.
#[derive(Debug)]
pub(super) struct ReadScoreboard {
    lba: u64,
    /// The start of the Read, in media time.
    since: u64,
    bytes: Vec<Option<u8>>,
}

impl ReadScoreboard {
    /// An empty scoreboard of `count` blocks.
    pub(super) fn new(lba: u64, count: u64, since: u64) -> ReadScoreboard {
        let bytes = vec![None; (count * BLOCK) as usize];
        ReadScoreboard { lba, since, bytes }
    }

    /// Records delivered bytes. Returns a block whose bytes belong to no single content, if there
    /// is one.
    pub(super) fn record(&mut self, media: &Media, from: u64, data: &[u8]) -> Option<u64> {
        let from = from as usize;
        let place = self.bytes.get_mut(from..from + data.len())?;
        for (byte, &new) in place.iter_mut().zip(data) {
            *byte = Some(new);
        }
        let unit = BLOCK as usize;
        let blocks = from / unit..(from + data.len()).div_ceil(unit);
        blocks
            .map(|n| (self.lba + n as u64, n * unit))
            .find_map(|(lba, at)| {
                let bytes = self.bytes[at..at + unit].iter().enumerate();
                let known = bytes.filter_map(|(n, byte)| byte.map(|b| (n, b)));
                (!media.permits_some(lba, known)).then_some(lba)
            })
    }

    /// The command has succeeded: blocks that it has delivered completely are determined.
    pub(super) fn learn(&self, media: &mut Media) {
        for (lba, block) in (self.lba..).zip(self.bytes.chunks(BLOCK as usize)) {
            let block: Option<Vec<u8>> = block.iter().copied().collect();
            if let Some(block) = block {
                media.learn(lba, &block, self.since);
            }
        }
    }
}
