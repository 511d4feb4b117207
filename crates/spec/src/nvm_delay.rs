// SPDX-License-Identifier: Apache-2.0

//! The parameters of an `nvm_delay` as its registers hold them, and the channels of a memory.

use crate::regs::nvm_delay::REGION_COUNT;

/// Number of address regions of `nvm_delay`.
pub const MAX_REGIONS: usize = REGION_COUNT as usize;
/// Regions are in units of 4 KiB.
pub const REGION_PAGE: u64 = 4096;

/// The registers of one channel's `nvm_delay`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// `control`: enable in bit 0, region enables from bit 4 on.
    pub control: u32,
    /// `read_cap`, Q8.16 bytes per cycle.
    pub read_cap: u32,
    /// `write_cap`, Q8.16 bytes per cycle.
    pub write_cap: u32,
    /// `calibration`: subtracted from all times, in the order of `timing`.
    pub calibration: [u32; 4],
    /// `timing`: read base, read beat, write base, write beat, Q20.12 cycles.
    pub timing: [u32; 4],
    /// `region`: first page, last page, and the four times.
    pub regions: Vec<[u32; 6]>,
}

/// The interleaving of the channels: each has `granule` bytes of the media, then the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleave {
    /// Memory channels, at least 1.
    pub channels: u32,
    /// Bytes, a multiple of 4 KiB.
    pub granule: u64,
}

impl Interleave {
    /// Number of a channel's pages below a media address. A channel's pages have the order of their
    /// media addresses, so a media range is a channel range.
    pub fn pages_before(self, channel: u32, addr: u64) -> u32 {
        let round = self.granule * u64::from(self.channels);
        let within = (addr % round).saturating_sub(self.granule * u64::from(channel));
        let bytes = addr / round * self.granule + within.min(self.granule);
        u32::try_from(bytes / REGION_PAGE).unwrap_or(u32::MAX)
    }
}
