// SPDX-License-Identifier: Apache-2.0

//! The memories of the device: their content, and the timing of their channels.

use sim::Media;

use super::{Channel, ChannelConfig, ChannelStages};
use crate::config::{Config, MemoryConfig};

/// Masters of a channel, in the order of the `qos` registers.
pub(crate) mod master {
    /// The PM window.
    pub(crate) const PM: usize = 0;
    /// The NVMe controller.
    pub(crate) const NVME: usize = 1;
    /// The first engine.
    pub(crate) const ENGINES: usize = 2;
}

/// An address within a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelAddress {
    pub(crate) channel: usize,
    /// Address in the channel.
    pub(crate) addr: u64,
    /// Bytes to the end of the granule.
    pub(crate) left: u64,
}

/// One memory in the PM window.
struct MemoryRegion {
    media: Media,
    /// Its first address in the window.
    base: u64,
    first_channel: usize,
    channels: u64,
    /// A power of two.
    granule: u64,
    granule_bits: u32,
}

impl MemoryRegion {
    #[inline]
    fn locate(&self, at: u64) -> ChannelAddress {
        let granule = at >> self.granule_bits;
        let within = at & (self.granule - 1);
        // Division is as slow as everything else here.
        let (row, channel) = match self.channels {
            1 => (granule, 0),
            2 => (granule / 2, granule % 2),
            channels => (granule / channels, granule % channels),
        };
        ChannelAddress {
            channel: self.first_channel + channel as usize,
            addr: row << self.granule_bits | within,
            left: self.granule - within,
        }
    }
}

/// All memories. Addresses are those of the PM window.
pub(crate) struct Memories {
    regions: Vec<MemoryRegion>,
    pub(crate) channels: Vec<Channel>,
    /// Accesses of PM window and controller to the storage fail, because the conflict filter stays
    /// closed.
    pub(crate) storage_closed: bool,
    /// Stores of the host that were accepted and queued, and could not be written; and times that
    /// the media could not keep what was accepted.
    pub(crate) lost_writes: u64,
}

impl Memories {
    /// The storage, and the local memory from its address on.
    pub(crate) fn new(config: &Config, storage: Media, local: Option<(Media, u64)>) -> Memories {
        let channel = |memory: &MemoryConfig, stages: ChannelStages| {
            Channel::new(ChannelConfig {
                masters: master::ENGINES + config.engines.len(),
                sizes: memory.delay,
                clock: config.clock,
                memory: memory.dram.clone(),
                stages,
            })
        };
        let mut channels: Vec<Channel> = Vec::new();
        let storage_of = &config.storage;
        channels
            .extend((0..storage_of.channels).map(|_| channel(storage_of, ChannelStages::DEVICE)));
        if let Some(local) = &config.local {
            channels.extend((0..local.channels).map(|_| channel(local, ChannelStages::LOCAL)));
        }
        let part = |config: &MemoryConfig, media, base, first_channel| MemoryRegion {
            media,
            base,
            first_channel,
            channels: config.channels.into(),
            granule: config.granule,
            granule_bits: config.granule.trailing_zeros(),
        };
        let mut regions = vec![part(&config.storage, storage, 0, 0)];
        if let (Some(config_of), Some((media, base))) = (&config.local, local) {
            regions.push(part(
                config_of,
                media,
                base,
                config.storage.channels as usize,
            ));
        }
        Memories {
            regions,
            channels,
            storage_closed: false,
            lost_writes: 0,
        }
    }

    /// The content of the storage.
    pub(crate) fn storage(&self) -> &Media {
        &self.regions[0].media
    }

    /// The content of the storage, to be changed.
    pub(crate) fn storage_mut(&mut self) -> &mut Media {
        &mut self.regions[0].media
    }

    /// A memory is kept in a file.
    pub(crate) fn has_file(&self) -> bool {
        self.regions.iter().any(|part| part.media.is_file())
    }

    /// The content of the local memory.
    pub(crate) fn local(&self) -> Option<&Media> {
        self.regions.get(1).map(|part| &part.media)
    }

    fn find(&self, addr: u64) -> Option<(usize, u64)> {
        self.regions.iter().enumerate().find_map(|(n, part)| {
            let at = addr.checked_sub(part.base)?;
            (at < part.media.size()).then_some((n, at))
        })
    }

    /// The channel and address of an address in the window; `None` outside of all memories.
    pub(crate) fn locate(&self, addr: u64) -> Option<ChannelAddress> {
        self.find(addr).map(|(n, at)| self.regions[n].locate(at))
    }

    /// The address in its channel of an address that lies in a memory.
    pub(crate) fn channel_address(&self, addr: u64) -> u64 {
        self.locate(addr).expect("the range was checked").addr
    }

    /// Reads within one granule for PM window and controller; false if the read fails.
    pub(crate) fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        !self.is_closed(addr) && self.read_unfiltered(addr, out)
    }

    /// Writes within one granule for PM window and controller; false if the write fails.
    pub(crate) fn write(&mut self, addr: u64, data: &[u8]) -> bool {
        !self.is_closed(addr) && self.write_unfiltered(addr, data)
    }

    fn is_closed(&self, addr: u64) -> bool {
        self.storage_closed && self.find(addr).is_some_and(|(part, _)| part == 0)
    }

    /// Reads for engines, whose accesses bypass the conflict filter.
    pub(crate) fn read_unfiltered(&self, addr: u64, out: &mut [u8]) -> bool {
        match self.find(addr) {
            Some((n, at)) => self.regions[n].media.read(at, out),
            None => false,
        }
    }

    /// Writes for engines.
    pub(crate) fn write_unfiltered(&mut self, addr: u64, data: &[u8]) -> bool {
        match self.find(addr) {
            Some((n, at)) => self.regions[n].media.write(at, data),
            None => false,
        }
    }

    /// Prefetches bytes that are accessed when their burst ends.
    pub(crate) fn prefetch(&self, addr: u64, len: u32) {
        if let Some((n, at)) = self.find(addr) {
            self.regions[n].media.prefetch(at, len as usize);
        }
    }

    /// Fills a range of the storage with zeros.
    pub(crate) fn zero(&mut self, addr: u64, len: u64) -> bool {
        !self.storage_closed && self.regions[0].media.zero(addr, len)
    }

    /// Resets the channels; nothing is in flight after that.
    pub(crate) fn reset(&mut self) {
        self.channels.iter_mut().for_each(Channel::reset);
    }

    /// Writes files to the disk.
    pub(crate) fn flush(&self) -> Result<(), sim::MediaError> {
        self.regions.iter().try_for_each(|part| part.media.flush())
    }

    /// Accesses that failed because of their files.
    pub(crate) fn failures(&self) -> u64 {
        self.regions.iter().map(|part| part.media.failures()).sum()
    }
}
