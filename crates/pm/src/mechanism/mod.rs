// SPDX-License-Identifier: Apache-2.0

//! The mechanisms that make transactions atomic.

mod group;
mod in_place;
mod pages;
mod redo;
mod shadow;
mod tracked;

use std::ops::Range;

use crate::memory::Memory;
use crate::Result;

pub(crate) use group::Group;
pub(crate) use in_place::InPlace;
pub(crate) use pages::Pages;
pub(crate) use redo::Redo;
pub(crate) use shadow::Shadow;
pub(crate) use tracked::Tracked;

/// A mechanism, for the transactions of one thread. Offsets are those of programs.
pub(crate) trait Mechanism: Send {
    /// Begins a transaction.
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()>;

    /// Announces changes to a range.
    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()>;

    /// A newly allocated range belongs to the transaction: its old content is of no use.
    fn mark_fresh(&mut self, range: Range<u64>);

    /// Reads bytes, with the stores of the transaction.
    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Stores bytes.
    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()>;

    /// Commits: all stores are durable, and those of earlier transactions.
    fn commit(&mut self, m: &mut Memory) -> Result<()>;

    /// Commits: the transactions up to this one become durable in their order, at the latest with
    /// [`Mechanism::settle`].
    fn commit_later(&mut self, m: &mut Memory) -> Result<()> {
        m.waits = false;
        let done = self.commit(m);
        m.waits = true;
        done
    }

    /// Makes all committed transactions durable. A transaction may be under way.
    fn settle(&mut self, m: &mut Memory) -> Result<()> {
        m.count_consistency_time(Memory::prove_commands)
    }

    /// True if committed transactions are a group, which a power loss would undo as a whole. Their
    /// stores may be in host memory only.
    fn has_group(&self) -> bool {
        false
    }

    /// True if all committed transactions are durable.
    fn is_settled(&self, m: &Memory) -> bool {
        !m.unproven
    }

    /// Aborts: all is as before the transaction.
    fn abort(&mut self, m: &mut Memory) -> Result<()>;

    /// Waits until all offloaded work has ended; an error if any was refused.
    fn finish(&mut self, m: &mut Memory) -> Result<()>;
}

/// The lines that cover a range.
fn covering_lines(range: Range<u64>) -> Range<u64> {
    use spec::nearpm::LINE;
    range.start - range.start % LINE..range.end.next_multiple_of(LINE)
}

impl Memory {
    /// Runs an action that copies old content, and counts its time.
    fn count_creation_time<R>(&mut self, what: impl FnOnce(&mut Memory) -> Result<R>) -> Result<R> {
        let begin = self.cpu.now();
        let result = what(self);
        self.counts.creation += self.cpu.now().saturating_sub(begin);
        result
    }

    /// Runs an action for crash consistency, and counts its time, once.
    fn count_consistency_time<R>(
        &mut self,
        what: impl FnOnce(&mut Memory) -> Result<R>,
    ) -> Result<R> {
        if std::mem::replace(&mut self.counts_time, true) {
            return what(self);
        }
        let begin = self.cpu.now();
        let result = what(self);
        self.counts.consistency += self.cpu.now().saturating_sub(begin);
        self.counts_time = false;
        result
    }
}
