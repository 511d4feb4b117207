// SPDX-License-Identifier: Apache-2.0

//! Block commands that write no host data to the media: Write Zeroes, Verify, Compare, Dataset
//! Management.

use spec::nvme::identify::DatasetLimits;
use spec::nvme::{io, oncs, status, Sqe, PAGE_BYTES};

use crate::{Buffer, Error, Host, IoCommand, NvmeDriver, Result};

/// Bytes of a range in the list of Dataset Management.
const RANGE_BYTES: usize = 16;
/// Most blocks of a command that is not limited by the transfer size.
const MAX_BLOCKS: u64 = 65536;

/// A range of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First logical block.
    pub lba: u64,
    /// The number of blocks; 0 is allowed.
    pub blocks: u32,
}

impl BlockRange {
    fn to_bytes(self) -> [u8; RANGE_BYTES] {
        let mut bytes = [0; RANGE_BYTES]; // no context attributes
        bytes[4..8].copy_from_slice(&self.blocks.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lba.to_le_bytes());
        bytes
    }
}

/// Splits ranges into lists within the controller's limits, one per command.
pub fn split_ranges(ranges: &[BlockRange], limits: DatasetLimits) -> Vec<Vec<BlockRange>> {
    let mut lists: Vec<Vec<BlockRange>> = Vec::new();
    let mut room = 0; // blocks that the last list may still take
    for range in ranges {
        let mut rest = *range;
        loop {
            let full = lists.last().is_none_or(|list| list.len() >= limits.ranges);
            if full || (rest.blocks > 0 && room == 0) {
                lists.push(Vec::new());
                room = limits.blocks;
            }
            let most = room.min(limits.range_blocks.into());
            let blocks = most.min(rest.blocks.into()) as u32;
            if let Some(list) = lists.last_mut() {
                list.push(BlockRange { blocks, ..rest });
            }
            room -= u64::from(blocks);
            rest.lba = rest.lba.wrapping_add(blocks.into());
            rest.blocks -= blocks;
            if rest.blocks == 0 {
                break;
            }
        }
    }
    lists
}

impl<H: Host> NvmeDriver<H> {
    /// Zeroes `blocks` blocks from `lba`, with as many commands as necessary.
    pub fn write_zeroes(&mut self, lba: u64, blocks: u64) -> Result<()> {
        self.require_oncs(oncs::WRITE_ZEROES, "Write Zeroes")?;
        self.run_in_chunks(io::WRITE_ZEROES, "Write Zeroes", lba, blocks)
    }

    /// Makes the controller read `blocks` blocks from `lba`, and report whether it can.
    pub fn verify(&mut self, lba: u64, blocks: u64) -> Result<()> {
        self.require_oncs(oncs::VERIFY, "Verify")?;
        self.run_in_chunks(io::VERIFY, "Verify", lba, blocks)
    }

    /// Whether the media hold `data`, whole blocks from `lba`.
    pub fn compare(&mut self, lba: u64, data: &[u8]) -> Result<bool> {
        self.require_oncs(oncs::COMPARE, "Compare")?;
        let mut equal = true;
        self.transfer(lba, data.len(), |this, at, part, buffer| {
            this.host_mut().dma_write(buffer, &data[at..at + part]);
            let block = this.namespace().block_bytes as usize;
            let lba = lba + (at / block) as u64;
            let blocks = (part / block) as u32;
            let compare = IoCommand::Compare { lba, blocks };
            let completion = this.execute(0, compare, &Buffer::Contiguous(buffer))?;
            if completion.status.bare() == status::COMPARE_FAILURE {
                equal = false;
                return Ok(());
            }
            completion.check()
        })?;
        Ok(equal)
    }

    /// Deallocates ranges, with as many commands as the controller's limits require.
    pub fn deallocate(&mut self, ranges: &[BlockRange]) -> Result<()> {
        self.require_oncs(oncs::DATASET_MANAGEMENT, "Dataset Management")?;
        let parts = split_ranges(ranges, self.dataset_limits());
        let list = self.host_mut().alloc(PAGE_BYTES, PAGE_BYTES)?;
        let mut outcome = Ok(());
        for part in parts {
            let bytes: Vec<u8> = part.iter().flat_map(|range| range.to_bytes()).collect();
            self.host_mut().dma_write(list, &bytes);
            let sqe = Sqe::deallocate(self.nsid(), part.len()).with_prps(list, 0);
            outcome = self.run_raw(sqe, "Dataset Management");
            if outcome.is_err() {
                break;
            }
        }
        self.free_buffer(list, PAGE_BYTES);
        outcome
    }

    fn run_in_chunks(
        &mut self,
        opcode: u8,
        name: &'static str,
        lba: u64,
        blocks: u64,
    ) -> Result<()> {
        let end = lba
            .checked_add(blocks)
            .ok_or_else(|| Error::Invalid(format!("LBA {lba} + {blocks} overflows")))?;
        let mut at = lba;
        while at < end {
            let here = (end - at).min(MAX_BLOCKS);
            let sqe = Sqe::of_blocks(opcode, self.nsid(), at, here as u32);
            self.run_raw(sqe, name)?;
            at += here;
        }
        Ok(())
    }

    fn run_raw(&mut self, sqe: Sqe, name: &'static str) -> Result<()> {
        let mut completion = self.execute_raw(0, sqe)?;
        completion.command = name;
        completion.check()
    }

    fn require_oncs(&self, bit: u16, name: &str) -> Result<()> {
        if self.identity().oncs & bit == 0 {
            return Err(Error::Unsupported(format!("ONCS lacks {name}")));
        }
        Ok(())
    }
}
