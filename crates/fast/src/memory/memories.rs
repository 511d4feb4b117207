//! Memories of the device: what they hold, and the timing of their channels.

use sim::Media;

use super::{Channel, ChannelConfig, Stages};
use crate::config::{Config, MemoryConfig};

/// Who accesses a channel: the order of the registers of `qos`.
pub(crate) mod master {
    /// The PM window.
    pub(crate) const PM: usize = 0;
    /// The NVMe controller.
    pub(crate) const NVME: usize = 1;
    /// The first engine.
    pub(crate) const ENGINES: usize = 2;
}

/// A place in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelAddress {
    pub(crate) channel: usize,
    /// Address in the channel.
    pub(crate) addr: u64,
    /// Bytes to the end of what lies together in the channel.
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
        // A division is as slow as all the rest.
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

/// All memories; addresses are those of the PM window.
pub(crate) struct Memories {
    regions: Vec<MemoryRegion>,
    pub(crate) channels: Vec<Channel>,
    /// PM window and controller get errors from the storage: the access hook stays closed.
    pub(crate) storage_closed: bool,
    /// Stores of the host that were taken, queued, and could not be written.
    pub(crate) lost_writes: u64,
}

impl Memories {
    /// The storage and, behind it, the local memory from `local_base` on.
    pub(crate) fn new(config: &Config, storage: Media, local: Option<(Media, u64)>) -> Memories {
        let channel = |memory: &MemoryConfig, stages: Stages| {
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
        channels.extend((0..storage_of.channels).map(|_| channel(storage_of, Stages::DEVICE)));
        if let Some(local) = &config.local {
            channels.extend((0..local.channels).map(|_| channel(local, Stages::LOCAL)));
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

    /// What the storage holds.
    pub(crate) fn storage(&self) -> &Media {
        &self.regions[0].media
    }

    /// The same, to be changed.
    pub(crate) fn storage_mut(&mut self) -> &mut Media {
        &mut self.regions[0].media
    }

    /// Some of it is kept in files.
    pub(crate) fn has_file(&self) -> bool {
        self.regions.iter().any(|part| part.media.is_file())
    }

    /// What the local memory holds.
    pub(crate) fn local(&self) -> Option<&Media> {
        self.regions.get(1).map(|part| &part.media)
    }

    fn find(&self, addr: u64) -> Option<(usize, u64)> {
        self.regions.iter().enumerate().find_map(|(n, part)| {
            let at = addr.checked_sub(part.base)?;
            (at < part.media.size()).then_some((n, at))
        })
    }

    /// Where an address lies; `None` outside of all memories.
    pub(crate) fn locate(&self, addr: u64) -> Option<ChannelAddress> {
        self.find(addr).map(|(n, at)| self.regions[n].locate(at))
    }

    /// Reads what lies in one granule, as the PM window and the controller do. False: it could not be had.
    pub(crate) fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        !self.is_closed(addr) && self.read_unfiltered(addr, out)
    }

    /// Writes what lies in one granule, the same. False: there was no room for it.
    pub(crate) fn write(&mut self, addr: u64, data: &[u8]) -> bool {
        !self.is_closed(addr) && self.write_unfiltered(addr, data)
    }

    fn is_closed(&self, addr: u64) -> bool {
        self.storage_closed && self.find(addr).is_some_and(|(part, _)| part == 0)
    }

    /// Reads as engines do, which do not pass through the access hook.
    pub(crate) fn read_unfiltered(&self, addr: u64, out: &mut [u8]) -> bool {
        match self.find(addr) {
            Some((n, at)) => self.regions[n].media.read(at, out),
            None => false,
        }
    }

    /// Writes as engines do.
    pub(crate) fn write_unfiltered(&mut self, addr: u64, data: &[u8]) -> bool {
        match self.find(addr) {
            Some((n, at)) => self.regions[n].media.write(at, data),
            None => false,
        }
    }

    /// What lies there is read or written when its burst is over: long enough ahead for the machine to fetch it meanwhile.
    pub(crate) fn prefetch(&self, addr: u64, len: u32) {
        if let Some((n, at)) = self.find(addr) {
            self.regions[n].media.prefetch(at, len as usize);
        }
    }

    /// Makes a range of the storage zeros.
    pub(crate) fn zero(&mut self, addr: u64, len: u64) -> bool {
        !self.storage_closed && self.regions[0].media.zero(addr, len)
    }

    /// The function is reset: nothing is under way any more.
    pub(crate) fn reset(&mut self) {
        self.channels.iter_mut().for_each(Channel::reset);
    }

    /// Brings files to the disk.
    pub(crate) fn flush(&self) -> Result<(), sim::MediaError> {
        self.regions.iter().try_for_each(|part| part.media.flush())
    }

    /// Accesses that files had no room for, or could not give.
    pub(crate) fn failures(&self) -> u64 {
        self.regions.iter().map(|part| part.media.failures()).sum()
    }
}
