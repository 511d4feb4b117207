//! What makes a transaction whole.

mod in_place;
mod pages;
mod redo;
mod shadow;

use std::ops::Range;

use crate::memory::Memory;
use crate::Result;

pub(crate) use in_place::InPlace;
pub(crate) use pages::Pages;
pub(crate) use redo::Redo;
pub(crate) use shadow::Shadow;

/// One of them, for the transactions of one thread. Offsets are those that programs use.
pub(crate) trait Mechanism: Send {
    /// A transaction begins.
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()>;

    /// A range is going to be changed.
    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()>;

    /// A range that nobody has used before belongs to the transaction: what stands there is of no use.
    fn mark_fresh(&mut self, range: Range<u64>);

    /// Reads what the transaction has stored, or what was there before.
    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Stores.
    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()>;

    /// All that was stored stays, whatever happens.
    fn commit(&mut self, m: &mut Memory) -> Result<()>;

    /// All is as it was before.
    fn abort(&mut self, m: &mut Memory) -> Result<()>;

    /// What is left to an engine has ended well.
    fn finish(&mut self, m: &mut Memory) -> Result<()>;
}

/// The lines that a range is in.
fn covering_lines(range: Range<u64>) -> Range<u64> {
    use spec::nearpm::LINE;
    range.start - range.start % LINE..range.end.next_multiple_of(LINE)
}

impl Memory {
    /// Does something that is there for crash consistency.
    fn count_consistency_time<R>(
        &mut self,
        what: impl FnOnce(&mut Memory) -> Result<R>,
    ) -> Result<R> {
        let begin = self.cpu.now();
        let result = what(self);
        self.counts.consistency += self.cpu.now().saturating_sub(begin);
        result
    }
}
