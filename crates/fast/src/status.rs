// SPDX-License-Identifier: Apache-2.0

//! The status block at the start of BAR4: the list of the device's blocks (hw/ip/status).

use spec::bar4;

use crate::config::Config;

/// "NSDV".
const MAGIC: u32 = 0x4E53_4456;
const LAYOUT: u32 = 1;
/// Words before the first block.
const FIRST: usize = 64;
/// Bytes of a block of registers.
const BLOCK_BYTES: u32 = 0x1000;
/// Version 1.0 of a block.
const VERSION: u32 = 0x0001_0000;
/// Unit of places and sizes in the PM window.
const PLACE: u64 = 4096;
/// BARs.
const BAR0: u32 = 0;
const BAR2: u32 = 2;
const BAR4: u32 = 4;
/// Types of blocks (docs/architecture.md, "BARs").
mod kind {
    pub const NVME_CTRL: u32 = 1;
    pub const NVM_DELAY: u32 = 2;
    pub const PM_WINDOW: u32 = 3;
    pub const QOS: u32 = 4;
    pub const COMMAND_PAGE: u32 = 5;
    pub const MEMORY: u32 = 6;
}

/// Type, version, instance, BAR, offset, size, two capability words.
type BlockEntry = [u32; 8];

/// The words of the status block.
pub(crate) struct StatusBlock(Vec<u32>);

impl StatusBlock {
    pub(crate) fn new(config: &Config) -> StatusBlock {
        let mut blocks: Vec<BlockEntry> = Vec::new();
        let nvme = [config.io_queues.into(), config.queue_entries];
        let block = |kind, instance, bar, offset, size, capabilities: [u32; 2]| {
            let [first, second] = capabilities;
            [kind, VERSION, instance, bar, offset, size, first, second]
        };
        blocks.push(block(kind::NVME_CTRL, 0, BAR0, 0, 0x1_0000, nvme));
        let window = config.window_bytes;
        let halves = [window as u32, (window >> 32) as u32];
        blocks.push(block(kind::PM_WINDOW, 0, BAR2, 0, 0, halves));
        for channel in 0..config.channels() {
            let memory = match &config.local {
                Some(local) if channel >= config.storage.channels => local,
                _ => &config.storage,
            };
            let offset = bar4::DELAY as u32 + bar4::DELAY_STEP as u32 * channel;
            let of = [channel, memory.delay.buffer_beats];
            blocks.push(block(
                kind::NVM_DELAY,
                channel,
                BAR4,
                offset,
                BLOCK_BYTES,
                of,
            ));
        }
        let masters = 2 + config.engines.len() as u32;
        let offset = bar4::QOS as u32;
        blocks.push(block(kind::QOS, 0, BAR4, offset, BLOCK_BYTES, [masters, 0]));
        for engine in &config.engines {
            let size = engine.manifest.registers.0 as u32;
            let mut block = block(
                engine.manifest.kind,
                engine.instance,
                BAR4,
                engine.offset as u32,
                size,
                [engine.manifest.reserved.0 as u32, 0],
            );
            block[1] = version(&engine.manifest.version);
            blocks.push(block);
        }
        let pages = config.engines.iter().filter_map(|e| Some((e, e.page?)));
        for (n, (engine, page)) in (0..).zip(pages) {
            let of = [engine.manifest.kind, engine.instance];
            blocks.push(block(
                kind::COMMAND_PAGE,
                n,
                BAR4,
                page as u32,
                BLOCK_BYTES,
                of,
            ));
        }
        let mut first = 0;
        let memories = [
            Some((&config.storage, 0)),
            config.local.as_ref().map(|l| (l, config.local_base)),
        ];
        for (n, (memory, base)) in (0..).zip(memories.into_iter().flatten()) {
            let (place, size) = ((base / PLACE) as u32, (memory.bytes / PLACE) as u32);
            let of = [memory.channels << 16 | first, memory.granule as u32];
            blocks.push(block(kind::MEMORY, n, BAR2, place, size, of));
            first += memory.channels;
        }
        let media = config.storage.bytes;
        let mut words = vec![
            MAGIC,
            LAYOUT,
            blocks.len() as u32,
            config.clock.khz(),
            media as u32,
            (media >> 32) as u32,
            config.storage.channels,
            config.storage.granule as u32,
        ];
        words.resize(FIRST, 0);
        words.extend(blocks.iter().flatten());
        StatusBlock(words)
    }

    /// Reads a word; words past the table read 0.
    pub(crate) fn read(&self, offset: u64) -> u32 {
        self.0.get((offset / 4) as usize).copied().unwrap_or(0)
    }
}

/// `major.minor` in the encoding of the list.
fn version(text: &str) -> u32 {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    major << 16 | minor & 0xFFFF
}
