//! The control bus (BAR4): what the device is made of, and the timing emulators.

use design::media::Registers;
use sim::Bar;

use crate::{Error, Host, Result};

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

    /// The name of a type.
    pub fn name(kind: u32) -> &'static str {
        match kind {
            NVME_CTRL => "nvme_ctrl",
            NVM_DELAY => "nvm_delay",
            PM_WINDOW => "pm_window",
            _ => "unknown",
        }
    }
}

/// A block of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// See [`block`].
    pub kind: u32,
    /// Major and minor version.
    pub version: (u16, u16),
    /// Which of its kind.
    pub instance: u32,
    /// The BAR that it is in: 0, 2 or 4.
    pub bar: u32,
    /// Where in it.
    pub offset: u32,
    /// Bytes; a PM window reports its size in the capabilities.
    pub size: u32,
    /// What its kind says here.
    pub capabilities: [u32; 2],
}

/// What the status block at BAR4 offset 0 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Version of the layout.
    pub version: u32,
    /// The clock in kHz.
    pub clock_khz: u32,
    /// Bytes of the media.
    pub media_bytes: u64,
    /// Memory channels.
    pub channels: u32,
    /// Bytes that go to one channel before the next one's turn.
    pub granule: u32,
    /// Every block.
    pub blocks: Vec<Block>,
}

impl Inventory {
    /// Asks the device.
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
        let mut inventory = Inventory {
            version,
            clock_khz: word(0x0C)?,
            media_bytes: u64::from(word(0x10)?) | u64::from(word(0x14)?) << 32,
            channels: word(0x18)?,
            granule: word(0x1C)?,
            blocks: Vec::new(),
        };
        if inventory.clock_khz == 0 || inventory.channels == 0 {
            return Err(Error::Misbehaviour(
                "the status block reports no clock or no channel".into(),
            ));
        }
        for i in 0..u64::from(count) {
            let mut words = [0; 8];
            for (n, w) in words.iter_mut().enumerate() {
                *w = word(BLOCK_TABLE + BLOCK_BYTES * i + 4 * n as u64)?;
            }
            let [kind, version, instance, bar, offset, size, a, b] = words;
            let version = ((version >> 16) as u16, version as u16);
            inventory.blocks.push(Block {
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

    /// The clock period in picoseconds.
    pub fn period_ps(&self) -> u64 {
        1_000_000_000 / u64::from(self.clock_khz)
    }

    /// The timing emulator of each channel, in order.
    pub fn delays(&self) -> Vec<Delay> {
        let mut blocks: Vec<&Block> = self
            .blocks
            .iter()
            .filter(|b| b.kind == block::NVM_DELAY)
            .collect();
        blocks.sort_by_key(|b| b.instance);
        blocks
            .iter()
            .map(|b| Delay {
                base: b.offset.into(),
            })
            .collect()
    }
}

/// Offsets in `nvm_delay`'s registers.
mod reg {
    pub const FIRST: u64 = 0x1_0000;
    pub const STEP: u64 = 0x1000;

    pub const ID: u64 = 0x000;
    pub const CONTROL: u64 = 0x010;
    pub const COMMAND: u64 = 0x014;
    pub const STATUS: u64 = 0x018;
    pub const READ_CAP: u64 = 0x020;
    pub const WRITE_CAP: u64 = 0x024;
    pub const TIMING: u64 = 0x040;
    pub const REGION: u64 = 0x080;
    pub const REGION_BYTES: u64 = 0x20;
    pub const COUNTERS: u64 = 0x800;
    pub const WRITE_COUNTERS: u64 = 0x040;
    pub const READ_BUCKETS: u64 = 0x100;
    pub const WRITE_BUCKETS: u64 = 0x200;

    pub const MAGIC: u32 = 0x4E56_444C;
    pub const COMMIT: u32 = 1;
    pub const SNAPSHOT: u32 = 2;
    pub const CLEAR: u32 = 4;
    pub const BUCKETS: u64 = 64;
}

/// One `nvm_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
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

impl Delay {
    /// The one of a channel, where the control bus has it.
    pub fn of_channel(channel: u32) -> Delay {
        Delay {
            base: reg::FIRST + reg::STEP * u64::from(channel),
        }
    }

    /// Checks that there is one.
    pub fn check<H: Host>(&self, host: &mut H) -> Result<()> {
        let id = host.read32(Bar::Control, self.base + reg::ID)?;
        if id != reg::MAGIC {
            let at = self.base;
            return Err(Error::Misbehaviour(format!(
                "no nvm_delay at BAR4 {at:#x}: it reads {id:#x}"
            )));
        }
        Ok(())
    }

    /// The register writes, as offsets in BAR4 and values, that set all parameters.
    pub fn writes(&self, registers: &Registers) -> Result<Vec<(u64, u32)>> {
        if registers.regions.len() > design::media::MAX_REGIONS {
            return Err(Error::Invalid("nvm_delay has 4 regions".into()));
        }
        let mut writes = Vec::new();
        let mut write = |offset: u64, value: u32| writes.push((self.base + offset, value));
        write(reg::CONTROL, registers.control);
        write(reg::READ_CAP, registers.read_cap);
        write(reg::WRITE_CAP, registers.write_cap);
        for (n, &value) in registers.timing.iter().enumerate() {
            write(reg::TIMING + 4 * n as u64, value);
        }
        for (r, values) in registers.regions.iter().enumerate() {
            let region = reg::REGION + reg::REGION_BYTES * r as u64;
            let offsets = [0x00, 0x04, 0x10, 0x14, 0x18, 0x1C];
            for (offset, &value) in offsets.into_iter().zip(values) {
                write(region + offset, value);
            }
        }
        write(reg::COMMAND, reg::COMMIT);
        Ok(writes)
    }

    /// Sets all parameters, without stopping traffic: they hold together for transactions accepted after the commit.
    pub fn set<H: Host>(&self, host: &mut H, registers: &Registers) -> Result<()> {
        host.run_on(0);
        for (offset, value) in self.writes(registers)? {
            host.write32(Bar::Control, offset, value)?;
        }
        // The read pushes the posted writes: with its answer the commit has happened.
        host.read32(Bar::Control, self.base + reg::STATUS).map(drop)
    }

    /// The parameters as they were last written.
    pub fn get<H: Host>(&self, host: &mut H) -> Result<Registers> {
        host.run_on(0);
        let mut read = |offset: u64| host.read32(Bar::Control, self.base + offset);
        let mut registers = Registers {
            control: read(reg::CONTROL)?,
            read_cap: read(reg::READ_CAP)?,
            write_cap: read(reg::WRITE_CAP)?,
            ..Registers::default()
        };
        for (n, value) in registers.timing.iter_mut().enumerate() {
            *value = read(reg::TIMING + 4 * n as u64)?;
        }
        for r in 0..design::media::MAX_REGIONS as u64 {
            if registers.control >> (4 + r) & 1 == 0 {
                break;
            }
            let region = reg::REGION + reg::REGION_BYTES * r;
            let mut values = [0; 6];
            for (offset, value) in [0x00, 0x04, 0x10, 0x14, 0x18, 0x1C]
                .into_iter()
                .zip(&mut values)
            {
                *value = read(region + offset)?;
            }
            registers.regions.push(values);
        }
        Ok(registers)
    }

    /// Commits since reset, modulo 256.
    pub fn commits<H: Host>(&self, host: &mut H) -> Result<u8> {
        Ok(host.read32(Bar::Control, self.base + reg::STATUS)? as u8)
    }

    /// Takes a snapshot of the counters (reads, writes), and sets the live ones back if asked to.
    pub fn counters<H: Host>(&self, host: &mut H, clear: bool) -> Result<[DelayCounters; 2]> {
        host.run_on(0);
        let command = reg::SNAPSHOT | if clear { reg::CLEAR } else { 0 };
        host.write32(Bar::Control, self.base + reg::COMMAND, command)?;
        Ok([
            self.direction(host, 0, reg::READ_BUCKETS)?,
            self.direction(host, reg::WRITE_COUNTERS, reg::WRITE_BUCKETS)?,
        ])
    }

    fn direction<H: Host>(&self, host: &mut H, at: u64, buckets: u64) -> Result<DelayCounters> {
        let base = self.base + reg::COUNTERS;
        let at = base + at;
        let mut wide = |offset: u64| host.read64(Bar::Control, at + offset);
        let mut counters = DelayCounters {
            transactions: wide(0x00)?,
            beats: wide(0x08)?,
            late: wide(0x10)?,
            latency_sum: wide(0x18)?,
            ..DelayCounters::default()
        };
        counters.latency_min = host.read32(Bar::Control, at + 0x20)?;
        counters.latency_max = host.read32(Bar::Control, at + 0x24)?;
        for n in 0..reg::BUCKETS {
            counters
                .buckets
                .push(host.read32(Bar::Control, base + buckets + 4 * n)?);
        }
        Ok(counters)
    }
}
