// SPDX-License-Identifier: Apache-2.0

//! The parameters of a device, taken from its design.

use std::path::PathBuf;

use design::{Design, Identity, Profile};
use std::sync::Arc;

use nvme::Namespaces;
use sim::memctrl::MemoryModel;
use sim::Clock;

/// One memory, interleaved over its channels.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// Number of channels.
    pub channels: u32,
    /// Bytes in a row that stay in one channel.
    pub granule: u64,
    /// Size of the memory in bytes.
    pub bytes: u64,
    /// The memory controller of each channel.
    pub dram: MemoryModel,
    /// Sizes of each channel's `nvm_delay`.
    pub delay: design::media::DelaySizes,
    /// The file that keeps the content, if there is one.
    pub file: Option<PathBuf>,
}

/// The parameters of one device.
#[derive(Clone, Debug)]
pub struct Config {
    /// Serial number and the identifiers that follow from it.
    pub identity: Identity,
    /// The device's clock.
    pub clock: Clock,
    /// I/O queue pairs.
    pub io_queues: u16,
    /// Entries of the longest I/O queue.
    pub queue_entries: u32,
    /// Commands in flight inside the controller.
    pub slots: u16,
    /// The controller offers Doorbell Buffer Config.
    pub doorbell_buffer: bool,
    /// Namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Beats of 64 bytes that the controller reads ahead from each channel.
    pub media_read_beats: u32,
    /// Reads of the controller in flight in each channel.
    pub media_reads: u32,
    /// Bytes of the controller's longest write burst.
    pub media_write_bytes: u32,
    /// Write bursts of the controller in flight in each channel.
    pub media_writes: u32,
    /// The storage.
    pub storage: MemoryConfig,
    /// The local memory, if there is one.
    pub local: Option<MemoryConfig>,
    /// Start of the local memory in the PM window.
    pub local_base: u64,
    /// Bytes of the PM window.
    pub window_bytes: u64,
    /// Engines, in the order of the design.
    pub engines: Vec<design::engine::EngineInstance>,
    /// Reads of host memory that may be outstanding, one for each tag.
    pub host_reads: u32,
    /// Largest payload of the link in bytes. Answers to loads are split at its multiples.
    pub max_payload: u32,
    /// A fault injection, for tests that have to find it.
    pub fault_injection: Option<FaultInjection>,
}

/// A step of a protocol that the device leaves out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultInjection {
    /// The conflict filter of `nearpm` holds no access, whatever it overlaps.
    ConflictFilter,
    /// No command of `nearpm` waits for an older one.
    CommandOrder,
    /// `nearpm` saves nothing when the power fails.
    PersistenceDomain,
    /// Stores to tracked pools of `nearpm` make no records.
    Tracking,
    /// Progress words of `nearpm` are ahead by a transaction.
    ProgressWords,
}

impl Config {
    /// The parameters of the device that a design describes. Without a serial number in the design
    /// it is the first device of its process.
    pub fn of(design: &Design) -> Result<Config, design::Error> {
        let storage = Profile::find(&design.media.profile)?;
        let movers = design.mover_sizes(&storage);
        let media = design.media.bytes.0;
        let sizes: Vec<u64> = match design.nvme.namespaces.is_empty() {
            true => vec![media / nvme::BLOCK_BYTES],
            false => {
                let sizes = design.nvme.namespaces.iter();
                sizes.map(|bytes| bytes.0 / nvme::BLOCK_BYTES).collect()
            }
        };
        let local = match design.local() {
            None => None,
            Some(memory) => Some(MemoryConfig {
                channels: memory.channels,
                granule: memory.granule.0,
                bytes: memory.bytes.0,
                dram: MemoryModel::Ddr4(design.local_dram(memory).clone()),
                delay: design.local_sizes(memory, &Profile::find(&memory.profile)?),
                file: design.local_file(),
            }),
        };
        Ok(Config {
            identity: Identity::of(design, design::DeviceInstance::Number(0))?,
            clock: design.clock(),
            io_queues: design.nvme.io_queues as u16,
            queue_entries: design.nvme.queue_entries,
            slots: design.nvme.slots as u16,
            doorbell_buffer: design.nvme.doorbell_buffer,
            namespaces: Arc::new(Namespaces::new(&sizes)),
            media_read_beats: movers.read_beats,
            media_reads: movers.reads,
            media_write_bytes: movers.write_bytes,
            media_writes: movers.writes,
            storage: MemoryConfig {
                channels: design.channels,
                granule: design.granule.0,
                bytes: media,
                dram: MemoryModel::Ddr4(design.dram.clone()),
                delay: design.delay_sizes(&storage),
                file: None,
            },
            local,
            local_base: design.local_base().unwrap_or(0),
            window_bytes: design.window_bytes(),
            engines: design.engines()?,
            host_reads: design.pcie.tags.min(256),
            max_payload: design.pcie.max_payload_bytes,
            fault_injection: None,
        })
    }

    /// Queues, including the admin queue.
    pub fn queues(&self) -> usize {
        usize::from(self.io_queues) + 1
    }

    /// Channels of all memories.
    pub fn channels(&self) -> u32 {
        self.storage.channels + self.local.as_ref().map_or(0, |local| local.channels)
    }
}
