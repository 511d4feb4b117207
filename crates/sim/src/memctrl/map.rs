// SPDX-License-Identifier: Apache-2.0

//! Addresses of interleaved channels.

use crate::InvalidValue;

/// Maps a channel's local addresses to the media: channels interleave every `granule` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    channel: u64,
    channels: u64,
    shift: u32,
    bytes: u64, // of the whole media
}

impl AddressMap {
    /// Channel `channel` of `channels`, on media of `bytes`.
    pub fn new(
        channel: u32,
        channels: u32,
        granule: u64,
        bytes: u64,
    ) -> Result<AddressMap, InvalidValue> {
        if !granule.is_power_of_two() || granule < 4096 {
            let rule = "a power of two, at least 4096, is needed";
            return Err(InvalidValue::new("granule", granule, rule));
        }
        if channels == 0 || channel >= channels {
            let rule = "at least 1 is needed";
            return Err(InvalidValue::new("channels", channels, rule));
        }
        Ok(AddressMap {
            channel: u64::from(channel),
            channels: u64::from(channels),
            shift: granule.trailing_zeros(),
            bytes,
        })
    }

    /// Media address of local address `local`, or `None` past the end of the media.
    #[inline]
    pub fn media(&self, local: u64) -> Option<u64> {
        let granule = (local >> self.shift)
            .checked_mul(self.channels)?
            .checked_add(self.channel)?;
        if granule > u64::MAX >> self.shift {
            return None;
        }
        let addr = granule << self.shift | local & ((1 << self.shift) - 1);
        (addr < self.bytes).then_some(addr)
    }
}
