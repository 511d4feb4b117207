// SPDX-License-Identifier: Apache-2.0

//! Tracked pools: the engine makes a record of each line before the first store to it, without a
//! command. The CPU stores in place.

use std::ops::Range;

use spec::nearpm::LINE;

use super::{covering_lines, Mechanism};
use crate::log::Log;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::{Error, Result};

pub(crate) struct Tracked {
    log: Log,
    /// Lines that the transaction stores to.
    dirty: Ranges,
    /// Their number, and the most that the engine records.
    lines: u64,
    most: u64,
}

impl Tracked {
    /// For transactions of at most `most` lines.
    pub fn new(log: Log, most: u64) -> Tracked {
        Tracked {
            log,
            dirty: Ranges::default(),
            lines: 0,
            most,
        }
    }

    /// Adds the lines of a store. One that the engine could not record is refused, since the engine
    /// would close the log.
    fn admit(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        m.spend(m.options.costs.range)?;
        let range = covering_lines(range);
        let missing = self.dirty.missing(range.clone());
        let more: u64 = missing.iter().map(|part| part.end - part.start).sum();
        let lines = self.lines + more / LINE;
        if lines > self.most {
            return Err(Error::Full(format!(
                "transaction has {lines} lines: allowed are {} in this tracked pool",
                self.most
            )));
        }
        self.lines = lines;
        self.dirty.add(range);
        Ok(())
    }

    fn clear(&mut self) {
        self.dirty.clear();
        self.lines = 0;
    }
}

impl Mechanism for Tracked {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.count_consistency_time(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, _: &mut Memory, _: Range<u64>) -> Result<()> {
        // Only stores make records.
        Ok(())
    }

    fn mark_fresh(&mut self, _: Range<u64>) {
        // The engine does not know which lines are new.
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        m.read(offset, out)
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        m.count_consistency_time(|m| m.count_creation_time(|m| self.admit(m, range)))?;
        m.write(offset, data)
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        m.counts.records += self.lines;
        m.counts.payload += self.lines * LINE;
        m.count_consistency_time(|m| self.log.commit(m, &self.dirty))?;
        self.clear();
        Ok(())
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        m.count_consistency_time(|m| self.log.abort(m, &self.dirty))?;
        self.clear();
        Ok(())
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
