// SPDX-License-Identifier: Apache-2.0

//! Fused Compare and Write.

use spec::nvme::{io, status, Sqe};

use crate::{Buffer, Error, Host, NvmeDriver, Result};

impl<H: Host> NvmeDriver<H> {
    /// Writes `data`, whole blocks from `lba`, if the media hold `expected` there, in one atomic
    /// step. Returns whether they did.
    pub fn compare_and_write(&mut self, lba: u64, expected: &[u8], data: &[u8]) -> Result<bool> {
        if self.identity().fuses & 1 == 0 {
            return Err(Error::Unsupported("FUSES lacks Compare and Write".into()));
        }
        let block = self.namespace().block_bytes as usize;
        let blocks = data.len() / block;
        let most = self
            .max_blocks()
            .min(self.identity().compare_and_write_unit) as usize;
        if data.len() % block != 0 || expected.len() != data.len() || !(1..=most).contains(&blocks)
        {
            return Err(Error::Invalid(format!(
                "{} and {} bytes: must be the same number of blocks, 1 to {most}",
                expected.len(),
                data.len()
            )));
        }
        let room = 2 * data.len() as u64;
        let buffer = self.host_mut().alloc(room, spec::nvme::PAGE_BYTES)?;
        self.host_mut().dma_write(buffer, expected);
        self.host_mut().dma_write(buffer + data.len() as u64, data);
        let outcome = self.fused(lba, blocks as u32, buffer, data.len() as u64);
        self.free_buffer(buffer, room);
        outcome
    }

    fn fused(&mut self, lba: u64, blocks: u32, buffer: u64, bytes: u64) -> Result<bool> {
        let compare = Sqe::of_blocks(io::COMPARE, self.nsid(), lba, blocks).with_fuse(false);
        let write = Sqe::of_blocks(io::WRITE, self.nsid(), lba, blocks).with_fuse(true);
        let (compare, first) = self.describe(compare, &Buffer::Contiguous(buffer), bytes)?;
        let (write, second) = self.describe(write, &Buffer::Contiguous(buffer + bytes), bytes)?;
        let [compare, write] =
            self.execute_pair(0, [(compare, "Compare", first), (write, "Write", second)])?;
        if compare.status.bare() == status::COMPARE_FAILURE
            && write.status.bare() == status::ABORTED_FAILED_FUSED
        {
            return Ok(false);
        }
        compare.check()?;
        write.check()?;
        Ok(true)
    }
}
