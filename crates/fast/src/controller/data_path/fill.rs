// SPDX-License-Identifier: Apache-2.0

//! Fills: the memories zero a range of the media at their full speed (nvme_fill).

use nvme::BLOCK_BYTES;

use crate::host_port::BEAT;

/// A fill of the memories that is in progress.
#[derive(Clone, Copy)]
pub(super) struct MemoryFill {
    pub(super) number: u32,
    pub(super) since: u64,
    pub(super) addr: u64,
    pub(super) bytes: u64,
    pub(super) cycles: u64,
}

impl MemoryFill {
    /// Bytes that are zero by now. The memories stop at the end of a block.
    pub(super) fn done(&self, now: u64, line_cycles: u64, channels: u64) -> u64 {
        let lines = now.saturating_sub(self.since) * 256 / line_cycles * channels;
        (lines * BEAT / BLOCK_BYTES * BLOCK_BYTES).min(self.bytes)
    }
}
