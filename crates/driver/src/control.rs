// SPDX-License-Identifier: Apache-2.0

//! The control bus (BAR4): the list of the device's blocks, and the timing emulators.

use sim::{Bar, Clock};
use spec::bar4;
use spec::nvm_delay::{Interleave, Registers, MAX_REGIONS};
use spec::regs::nvm_delay::{self, command, control, counters, status, timing};

use crate::{Error, Host, Qos, Result};

const MAGIC: u32 = 0x4E53_4456;
const BLOCK_TABLE: u64 = 0x100;
const BLOCK_BYTES: u64 = 32;
const MOST_BLOCKS: u32 = 120;

/// Type numbers of blocks.
pub mod block {
    /// `nvme_ctrl`.
    pub const NVME_CTRL: u32 = 1;
    /// `nvm_delay`.
    pub const NVM_DELAY: u32 = 2;
    /// The PM window.
    pub const PM_WINDOW: u32 = 3;
    /// Credits and weights of the masters of a channel.
    pub const QOS: u32 = 4;
    /// An engine's command page.
    pub const COMMAND_PAGE: u32 = 5;
    /// A memory.
    pub const MEMORY: u32 = 6;
    /// The copy engine.
    pub const COPY: u32 = 16;
    /// The scan engine.
    pub const SCAN: u32 = 17;
    /// The dictionary decoder.
    pub const DICT_DECODE: u32 = 18;
    /// The sorter.
    pub const SORTER: u32 = 19;
    /// The row gatherer.
    pub const ROW_SHUFFLE: u32 = 20;
    /// The pipeline.
    pub const PIPELINE: u32 = 21;
    /// Crash consistency near memory.
    pub const NEARPM: u32 = 22;

    /// The name of a type.
    pub fn name(kind: u32) -> &'static str {
        match kind {
            NVME_CTRL => "nvme_ctrl",
            NVM_DELAY => "nvm_delay",
            PM_WINDOW => "pm_window",
            QOS => "qos",
            COMMAND_PAGE => "command_page",
            MEMORY => "memory",
            COPY => "copy",
            SCAN => "scan",
            DICT_DECODE => "dict_decode",
            SORTER => "sorter",
            ROW_SHUFFLE => "row_shuffle",
            PIPELINE => "pipeline",
            NEARPM => "nearpm",
            _ => "unknown",
        }
    }
}

/// A block of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBlock {
    /// See [`block`].
    pub kind: u32,
    /// Major and minor version.
    pub version: (u16, u16),
    /// The instance number among blocks of the same type.
    pub instance: u32,
    /// The BAR of its registers: 0, 2 or 4.
    pub bar: u32,
    /// The offset in that BAR.
    pub offset: u32,
    /// Size in bytes; a PM window reports its size in the capabilities.
    pub size: u32,
    /// Values whose meaning depends on the type.
    pub capabilities: [u32; 2],
}

/// A memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// 0 is the storage, 1 the local memory.
    pub number: u32,
    /// The offset in the PM window.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its first channel among those of the device, which is the number of its `nvm_delay`.
    pub first_channel: u32,
    /// The interleaving of its channels.
    pub turns: Interleave,
}

impl MemoryInfo {
    /// The name in designs.
    pub fn name(&self) -> &'static str {
        match self.number {
            0 => STORAGE,
            1 => LOCAL,
            _ => "unknown",
        }
    }
}

/// The name of the memory of the namespaces.
pub const STORAGE: &str = "storage";
/// The name of the engines' memory.
const LOCAL: &str = "local";
/// Unit of a memory's address and size.
const MEMORY_UNIT: u64 = 4096;

/// The content of the status block at BAR4 offset 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Version of the layout.
    pub version: u32,
    /// The clock.
    pub clock: Clock,
    /// Bytes of the media.
    pub media_bytes: u64,
    /// Memory channels.
    pub channels: u32,
    /// Bytes in a row that stay in one channel.
    pub granule: u32,
    /// Every block.
    pub blocks: Vec<DeviceBlock>,
}

impl Inventory {
    /// Reads it from the device.
    pub fn read<H: Host>(host: &mut H) -> Result<Inventory> {
        host.run_on(0);
        let mut word = |offset: u64| host.read32(Bar::Control, offset);
        let magic = word(0x00)?;
        if magic == u32::MAX {
            return Err(Error::Gone);
        }
        if magic != MAGIC {
            return Err(Error::Unsupported(format!(
                "BAR4 begins with {magic:#x}, not with {MAGIC:#x}"
            )));
        }
        let (version, count) = (word(0x04)?, word(0x08)?);
        if count > MOST_BLOCKS {
            return Err(Error::Misbehaviour(format!(
                "the status block lists {count} blocks"
            )));
        }
        let khz = word(0x0C)?;
        let clock = Clock::from_khz(khz).ok_or_else(|| {
            Error::Misbehaviour(format!("the status block reports a clock of {khz} kHz"))
        })?;
        let mut inventory = Inventory {
            version,
            clock,
            media_bytes: u64::from(word(0x10)?) | u64::from(word(0x14)?) << 32,
            channels: word(0x18)?,
            granule: word(0x1C)?,
            blocks: Vec::new(),
        };
        let (channels, granule) = (inventory.channels, inventory.granule);
        if channels == 0 || granule == 0 || granule % 4096 != 0 {
            return Err(Error::Misbehaviour(format!(
                "the status block reports {channels} channels that take turns every {granule} bytes"
            )));
        }
        for i in 0..u64::from(count) {
            let mut words = [0; 8];
            for (n, w) in words.iter_mut().enumerate() {
                *w = word(BLOCK_TABLE + BLOCK_BYTES * i + 4 * n as u64)?;
            }
            let [kind, version, instance, bar, offset, size, a, b] = words;
            let version = ((version >> 16) as u16, version as u16);
            inventory.blocks.push(DeviceBlock {
                kind,
                version,
                instance,
                bar,
                offset,
                size,
                capabilities: [a, b],
            });
        }
        Ok(inventory)
    }

    /// The interleaving of the channels.
    pub fn turns(&self) -> Interleave {
        Interleave {
            channels: self.channels,
            granule: self.granule.into(),
        }
    }

    /// The QoS registers, if present.
    pub fn qos(&self) -> Option<Qos> {
        let block = self.blocks.iter().find(|b| b.kind == block::QOS)?;
        Some(Qos {
            base: block.offset.into(),
            masters: block.capabilities[0],
        })
    }

    /// The memories, the storage first.
    pub fn memories(&self) -> Vec<MemoryInfo> {
        let blocks = self.blocks.iter().filter(|b| b.kind == block::MEMORY);
        let mut memories: Vec<MemoryInfo> = blocks
            .map(|b| {
                let [channels, granule] = b.capabilities;
                MemoryInfo {
                    number: b.instance,
                    base: u64::from(b.offset) * MEMORY_UNIT,
                    bytes: u64::from(b.size) * MEMORY_UNIT,
                    first_channel: channels & 0xFFFF,
                    turns: Interleave {
                        channels: channels >> 16,
                        granule: granule.into(),
                    },
                }
            })
            .collect();
        memories.sort_by_key(|memory| memory.number);
        memories
    }

    /// The timing emulator of each channel, in order: the storage's, then the local memory's.
    pub fn delays(&self) -> Vec<DelayRegisters> {
        let mut blocks: Vec<&DeviceBlock> = self
            .blocks
            .iter()
            .filter(|b| b.kind == block::NVM_DELAY)
            .collect();
        blocks.sort_by_key(|b| b.instance);
        blocks
            .iter()
            .map(|b| DelayRegisters {
                base: b.offset.into(),
            })
            .collect()
    }
}

/// Offsets of a region's registers, in the order of [`Registers`].
const REGION: [u64; 6] = [
    nvm_delay::region::FIRST,
    nvm_delay::region::LAST,
    nvm_delay::region::TIMING + TIMING[0],
    nvm_delay::region::TIMING + TIMING[1],
    nvm_delay::region::TIMING + TIMING[2],
    nvm_delay::region::TIMING + TIMING[3],
];
/// Offsets of the times of a region, or of those outside of all regions.
const TIMING: [u64; 4] = [
    timing::READ_BASE,
    timing::READ_BEAT,
    timing::WRITE_BASE,
    timing::WRITE_BEAT,
];

/// The registers of one `nvm_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRegisters {
    base: u64,
}

/// Counters of one direction of an `nvm_delay`. Latencies are in clock cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayCounters {
    /// Transactions.
    pub transactions: u64,
    /// Beats.
    pub beats: u64,
    /// Responses that the memory gave later than the target.
    pub late: u64,
    /// Sum of all latencies.
    pub latency_sum: u64,
    /// The smallest latency; all ones if there was no transaction.
    pub latency_min: u32,
    /// The largest latency.
    pub latency_max: u32,
    /// Transactions by latency.
    pub buckets: Vec<u32>,
}

impl DelayRegisters {
    /// The registers of a channel's `nvm_delay`.
    pub fn of_channel(channel: u32) -> DelayRegisters {
        DelayRegisters {
            base: bar4::DELAY + bar4::DELAY_STEP * u64::from(channel),
        }
    }

    /// Checks that the `nvm_delay` is present.
    pub fn check<H: Host>(&self, host: &mut H) -> Result<()> {
        let id = host.read32(Bar::Control, self.base + nvm_delay::ID)?;
        if u64::from(id) != nvm_delay::id::MAGIC.reset() {
            let at = self.base;
            return Err(Error::Misbehaviour(format!(
                "no nvm_delay at BAR4 {at:#x}: it reads {id:#x}"
            )));
        }
        Ok(())
    }

    /// The register writes that set all parameters: offset in BAR4, and value.
    pub fn writes(&self, registers: &Registers) -> Result<Vec<(u64, u32)>> {
        if registers.regions.len() > MAX_REGIONS {
            return Err(Error::Invalid("nvm_delay has 4 regions".into()));
        }
        let mut writes = Vec::new();
        let mut write = |offset: u64, value: u32| writes.push((self.base + offset, value));
        write(nvm_delay::CONTROL, registers.control);
        write(nvm_delay::READ_CAP, registers.read_cap);
        write(nvm_delay::WRITE_CAP, registers.write_cap);
        for (offset, &value) in TIMING.into_iter().zip(&registers.calibration) {
            write(nvm_delay::CALIBRATION + offset, value);
        }
        for (offset, &value) in TIMING.into_iter().zip(&registers.timing) {
            write(nvm_delay::TIMING + offset, value);
        }
        for (r, values) in registers.regions.iter().enumerate() {
            let region = nvm_delay::REGION + nvm_delay::REGION_STRIDE * r as u64;
            for (offset, &value) in REGION.into_iter().zip(values) {
                write(region + offset, value);
            }
        }
        write(nvm_delay::COMMAND, command::COMMIT.mask() as u32);
        Ok(writes)
    }

    /// Sets all parameters, without stopping traffic. They take effect together, for transactions
    /// accepted after the commit.
    pub fn set<H: Host>(&self, host: &mut H, registers: &Registers) -> Result<()> {
        host.run_on(0);
        for (offset, value) in self.writes(registers)? {
            host.write32(Bar::Control, offset, value)?;
        }
        // The read pushes the posted writes: once it is answered, the commit has happened.
        host.read32(Bar::Control, self.base + nvm_delay::STATUS)
            .map(drop)
    }

    /// The parameters as they were last written.
    pub fn get<H: Host>(&self, host: &mut H) -> Result<Registers> {
        host.run_on(0);
        let mut read = |offset: u64| host.read32(Bar::Control, self.base + offset);
        let mut registers = Registers {
            control: read(nvm_delay::CONTROL)?,
            read_cap: read(nvm_delay::READ_CAP)?,
            write_cap: read(nvm_delay::WRITE_CAP)?,
            ..Registers::default()
        };
        for (offset, value) in TIMING.into_iter().zip(&mut registers.calibration) {
            *value = read(nvm_delay::CALIBRATION + offset)?;
        }
        for (offset, value) in TIMING.into_iter().zip(&mut registers.timing) {
            *value = read(nvm_delay::TIMING + offset)?;
        }
        let enabled = control::REGION_ENABLE.get(registers.control.into());
        for r in 0..nvm_delay::REGION_COUNT {
            if enabled >> r & 1 == 0 {
                break;
            }
            let region = nvm_delay::REGION + nvm_delay::REGION_STRIDE * r;
            let mut values = [0; 6];
            for (offset, value) in REGION.into_iter().zip(&mut values) {
                *value = read(region + offset)?;
            }
            registers.regions.push(values);
        }
        Ok(registers)
    }

    /// Commits since reset, modulo 256.
    pub fn commits<H: Host>(&self, host: &mut H) -> Result<u8> {
        let status = host.read32(Bar::Control, self.base + nvm_delay::STATUS)?;
        Ok(status::COMMITS.get(status.into()) as u8)
    }

    /// Takes a snapshot of the counters (reads, writes), and clears the live ones if requested.
    pub fn counters<H: Host>(&self, host: &mut H, clear: bool) -> Result<[DelayCounters; 2]> {
        host.run_on(0);
        let bits = command::SNAPSHOT.mask() | command::CLEAR.of(clear.into());
        host.write32(Bar::Control, self.base + nvm_delay::COMMAND, bits as u32)?;
        Ok([
            self.direction_counters(host, counters::READ, counters::READ_BUCKET)?,
            self.direction_counters(host, counters::WRITE, counters::WRITE_BUCKET)?,
        ])
    }

    /// Beats read and written since reset. Takes a snapshot of the counters on the present CPU.
    pub fn beats<H: Host>(&self, host: &mut H) -> Result<[u64; 2]> {
        let bits = command::SNAPSHOT.mask() as u32;
        host.write32(Bar::Control, self.base + nvm_delay::COMMAND, bits)?;
        let mut of = |direction: u64| {
            let at = self.base + nvm_delay::COUNTERS + direction;
            host.read64(Bar::Control, at + counters::read::BEATS_LO)
        };
        Ok([of(counters::READ)?, of(counters::WRITE)?])
    }

    fn direction_counters<H: Host>(
        &self,
        host: &mut H,
        at: u64,
        buckets: u64,
    ) -> Result<DelayCounters> {
        use counters::read as of;
        let base = self.base + nvm_delay::COUNTERS;
        let at = base + at;
        let mut wide = |offset: u64| host.read64(Bar::Control, at + offset);
        let mut out = DelayCounters {
            transactions: wide(of::TRANSACTIONS_LO)?,
            beats: wide(of::BEATS_LO)?,
            late: wide(of::LATE_LO)?,
            latency_sum: wide(of::SUM_LO)?,
            ..DelayCounters::default()
        };
        out.latency_min = host.read32(Bar::Control, at + of::MIN)?;
        out.latency_max = host.read32(Bar::Control, at + of::MAX)?;
        for n in 0..counters::READ_BUCKET_COUNT {
            out.buckets.push(host.read32(
                Bar::Control,
                base + buckets + counters::READ_BUCKET_STRIDE * n,
            )?);
        }
        Ok(out)
    }
}
