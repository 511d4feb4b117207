// SPDX-License-Identifier: Apache-2.0

//! Random commands that create queues.

use spec::nvme::{Sqe, PAGE_BYTES};

use super::{Buffer, Command, Generator};

impl Generator<'_> {
    /// A page for a queue, filled with zeros; its address, or an offset within it.
    fn queue_page(&mut self) -> Option<(u64, Buffer)> {
        let mut buffer = Buffer::default();
        let page = self.host.alloc_queue(self.random)?;
        buffer.pages.push(page);
        buffer.stores.push((page, vec![0; PAGE_BYTES as usize]));
        let offset = match self.is_wrong(5) {
            true => 1 << self.random.below(12),
            false => 0,
        };
        Some((page + offset, buffer))
    }

    fn queue_entries(&mut self) -> u32 {
        match self.is_wrong(10) {
            // All entries of a queue lie in one page.
            false => {
                2 + self
                    .random
                    .below(u64::from(self.limits.entries.min(64)) - 1) as u32
            }
            true => self.pick(&[1, self.limits.entries + 1, 65536]),
        }
    }

    /// The identifier of a queue that exists or not, or sometimes any.
    pub fn queue_id(&mut self, existing: &[u16], exists: bool) -> u16 {
        let mut fit: Vec<u16> = (1..=self.limits.queues).collect();
        fit.retain(|qid| existing.contains(qid) == exists);
        match fit.is_empty() || self.is_wrong(12) {
            true => self.random.below(u64::from(self.limits.queues) + 3) as u16,
            false => self.pick(&fit),
        }
    }

    /// Create I/O Completion Queue, mostly with an unused identifier.
    pub fn create_cq(&mut self, cqs: &[u16]) -> Option<Command> {
        let (base, buffer) = self.queue_page()?;
        let qid = self.queue_id(cqs, false);
        let vectors = u64::from(self.limits.queues) + if self.is_wrong(5) { 9 } else { 1 };
        let vector = self.chance(80).then(|| self.random.below(vectors) as u16);
        let mut sqe = Sqe::create_io_cq(qid, self.queue_entries(), base, vector);
        sqe.dw[11] ^= u32::from(self.is_wrong(4));
        let command = self.with_admin_flags(sqe);
        Some(Command { buffer, ..command })
    }

    /// Create I/O Submission Queue, mostly with an unused identifier and an existing completion
    /// queue. With hostile input its address may have no memory: the first fetch is fatal.
    pub fn create_sq(&mut self, sqs: &[u16], cqs: &[u16]) -> Option<Command> {
        let (base, buffer) = match self.is_hostile() && self.chance(2) {
            true => {
                let base = (1 << 45) + self.random.below(1 << 30) * PAGE_BYTES;
                (base, Buffer::default())
            }
            false => self.queue_page()?,
        };
        let (qid, cqid) = (self.queue_id(sqs, false), self.queue_id(cqs, true));
        let mut sqe = Sqe::create_io_sq(qid, self.queue_entries(), base, cqid);
        // Any priority.
        sqe.dw[11] |= (self.random.below(4) as u32) << 1;
        sqe.dw[11] ^= u32::from(self.is_wrong(4));
        let command = self.with_admin_flags(sqe);
        Some(Command { buffer, ..command })
    }
}
