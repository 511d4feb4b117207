// SPDX-License-Identifier: Apache-2.0

//! Progress words: the last transaction that each log has completed, written to host memory. See
//! docs/hardware/nearpm.md, "Progress words".

use std::collections::VecDeque;

use spec::nearpm::{progress_word, Operation, POOLS, THREADS};

use super::unit_command::UnitCommand;
use crate::context::SimContext;

const LOGS: usize = POOLS as usize * THREADS as usize;
/// Valid bits of the address: the words are aligned to 4 KiB.
const ADDRESS: u64 = !0xFFF;
/// Cycles from a completion to its write at the host port, and between two of them.
const WRITE_CYCLES: u64 = 4;

pub(super) struct Progress {
    /// The address as written, and the valid one: of an address of which only one half was written
    /// nothing is used.
    written: u64,
    address: u64,
    /// The last transaction of each log since it was opened.
    completed: Vec<u64>,
    /// Logs whose word is to be written, each at most once.
    queue: VecDeque<u8>,
    /// A fault injection: words are ahead by a transaction.
    is_early: bool,
}

impl Progress {
    pub(super) fn new(is_early: bool) -> Progress {
        Progress {
            written: 0,
            address: 0,
            completed: vec![0; LOGS],
            queue: VecDeque::new(),
            is_early,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Reads a dword of the address.
    pub(super) fn read(&self, upper: bool) -> u32 {
        (self.written >> (32 * u32::from(upper))) as u32
    }

    /// Writes the bits `bits` of a dword of the address. All words are written to a new address.
    pub(super) fn write(&mut self, upper: bool, value: u32, bits: u32) {
        let shift = 32 * u32::from(upper);
        self.written =
            self.written & !(u64::from(bits) << shift) | u64::from(value & bits) << shift;
        if !upper {
            return;
        }
        self.address = self.written & ADDRESS;
        self.queue.clear();
        for log in 0..=(LOGS - 1) as u8 {
            if self.completed[usize::from(log)] > 0 {
                self.queue_word(log);
            }
        }
    }

    /// A command has ended without an error. Its log is not that of a later owner.
    pub(super) fn command_ended(&mut self, job: &UnitCommand) {
        match job.operation {
            Operation::LogOpen => {
                self.completed[usize::from(job.log)] = 0;
                self.queue.retain(|log| *log != job.log);
            }
            Operation::Commit
            | Operation::CommitRedo
            | Operation::Delete
            | Operation::Abort
            | Operation::Switch => {
                // The fault injection counts the transaction that follows, too.
                let transaction = job.transaction.saturating_add(u64::from(self.is_early));
                let completed = &mut self.completed[usize::from(job.log)];
                if transaction > *completed {
                    *completed = transaction;
                    self.queue_word(job.log);
                }
            }
            _ => {}
        }
    }

    /// A pool is mapped or unmapped: no words of its logs are written until they are opened again.
    pub(super) fn pool_changed(&mut self, pool: u8) {
        let threads = usize::from(THREADS);
        self.completed[usize::from(pool) * threads..][..threads].fill(0);
        self.queue.retain(|log| log >> 4 != pool);
    }

    fn queue_word(&mut self, log: u8) {
        if self.address != 0 && !self.queue.contains(&log) {
            self.queue.push_back(log);
        }
    }

    /// Writes the word of one log, with its value at this time. A busy host port delays it.
    pub(super) fn write_next(&mut self, ctx: &mut SimContext) {
        if !ctx.port.has_room() {
            return;
        }
        let Some(log) = self.queue.pop_front() else {
            return;
        };
        let value = self.completed[usize::from(log)].to_le_bytes();
        ctx.post_write(ctx.now, progress_word(self.address, log), &value, None);
    }

    /// The edge of the next write, if one is pending.
    pub(super) fn next_write(&self, now: u64) -> Option<u64> {
        (!self.queue.is_empty()).then_some(now + WRITE_CYCLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_takes_an_address_when_its_upper_half_is_written() {
        let mut progress = Progress::new(false);
        progress.completed[17] = 5;
        progress.write(false, 0x1234_5678, u32::MAX);
        assert_eq!((progress.address, progress.is_idle()), (0, true));
        progress.write(true, 1, u32::MAX);
        assert_eq!(progress.address, 0x1_1234_5000);
        assert_eq!(progress.queue, [17], "it is written again");
        assert_eq!(
            (progress.read(false), progress.read(true)),
            (0x1234_5678, 1)
        );
        progress.pool_changed(1);
        assert!(progress.is_idle());
        progress.write(false, 0, u32::MAX);
        progress.write(true, 0, u32::MAX);
        progress.completed[17] = 5;
        progress.queue_word(17);
        assert!(progress.is_idle(), "no address");
    }
}
