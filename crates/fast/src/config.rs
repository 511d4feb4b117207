//! The parameters of a device, as its design says.

use std::path::PathBuf;

use design::{Design, Identity, Profile};
use std::sync::Arc;

use nvme::Namespaces;
use sim::memctrl::MemoryModel;
use sim::Clock;

/// One memory: channels that take turns every `granule` bytes.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// Channels.
    pub channels: u32,
    /// Bytes that go to one channel before the next one's turn.
    pub granule: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// What is behind each channel.
    pub dram: MemoryModel,
    /// Sizes of each channel's `nvm_delay`.
    pub delay: design::media::Sizes,
    /// A file that keeps the data.
    pub file: Option<PathBuf>,
}

/// What device to build.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is.
    pub identity: Identity,
    /// The clock.
    pub clock: Clock,
    /// I/O queue pairs.
    pub io_queues: u16,
    /// Entries of the longest I/O queue.
    pub queue_entries: u32,
    /// Commands in flight inside the controller.
    pub slots: u16,
    /// Namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Beats of 64 bytes of each channel's media that are read ahead.
    pub media_read_beats: u32,
    /// Reads in flight in each channel.
    pub media_reads: u32,
    /// Bytes of the longest write burst to the media.
    pub media_write_bytes: u32,
    /// Write bursts in flight in each channel.
    pub media_writes: u32,
    /// The storage.
    pub storage: MemoryConfig,
    /// The local memory, if there is one.
    pub local: Option<MemoryConfig>,
    /// Where the local memory is in the PM window.
    pub local_base: u64,
    /// Bytes of the PM window.
    pub window_bytes: u64,
    /// Engines, in the order of the design.
    pub engines: Vec<design::engine::Plugged>,
    /// Reads of host memory that may be outstanding.
    pub host_reads: u32,
    /// Largest payload of the link, bytes: answers to loads leave in such pieces.
    pub host_chunk: u32,
    /// What it leaves out, for tests that have to find that.
    pub omits: Option<Omission>,
}

/// Something that a device leaves out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Omission {
    /// Waiting at the access hook of `nearpm`: stores and loads pass, whatever they overlap.
    Hook,
    /// The order of commands of `nearpm`: none waits for an older one.
    Commands,
    /// What `nearpm` saves when the power fails.
    Domain,
}

impl Config {
    /// The device that a design describes: the first one of its process, unless the design says who it is. `root` is the repository, which
    /// holds profiles and engines.
    pub fn of(design: &Design, root: &std::path::Path) -> Result<Config, design::Error> {
        let profile = |name: &str| Profile::find(root, name);
        let storage = profile(&design.media.profile)?;
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
                delay: design.local_sizes(memory, &profile(&memory.profile)?),
                file: design.local_file(),
            }),
        };
        Ok(Config {
            identity: Identity::of(design, design::Place::Number(0))?,
            clock: design.clock(),
            io_queues: design.nvme.io_queues as u16,
            queue_entries: design.nvme.queue_entries,
            slots: design.nvme.slots as u16,
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
            engines: design.engines(root)?,
            host_reads: design.pcie.tags.min(256),
            host_chunk: design.pcie.max_payload_bytes,
            omits: None,
        })
    }

    /// Queues, the admin queue included.
    pub fn queues(&self) -> usize {
        usize::from(self.io_queues) + 1
    }

    /// All memory channels.
    pub fn channels(&self) -> u32 {
        self.storage.channels + self.local.as_ref().map_or(0, |local| local.channels)
    }
}
