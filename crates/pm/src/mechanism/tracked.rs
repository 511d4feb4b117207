// SPDX-License-Identifier: Apache-2.0

//! Tracked pools: the engine makes a record of each line before the first store to it, without a
//! command. The CPU stores in place.

use std::collections::VecDeque;
use std::ops::Range;

use spec::nearpm::LINE;

use super::{covering_lines, Mechanism};
use crate::log::Log;
use crate::memory::{self, Memory};
use crate::ranges::Ranges;
use crate::{Error, Result};

/// Lines that stay in the cache until the commit: those stored to last, which a transaction often
/// stores to again. Others are written back during the transaction, so that the engine makes their
/// records meanwhile.
const KEPT_LINES: usize = 2;

pub(crate) struct Tracked {
    log: Log,
    /// Lines that the transaction stores to.
    dirty: Ranges,
    /// Those that have not been written back since the last store, in the order of the stores.
    unflushed: VecDeque<u64>,
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
            unflushed: VecDeque::new(),
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
        self.dirty.add(range.clone());
        for line in memory::lines(range) {
            if self.unflushed.back() != Some(&line) {
                self.unflushed.retain(|one| *one != line);
                self.unflushed.push_back(line);
            }
        }
        Ok(())
    }

    /// Writes back all but the last `kept` lines.
    fn flush(&mut self, m: &mut Memory, kept: usize) -> Result<()> {
        while self.unflushed.len() > kept {
            if let Some(line) = self.unflushed.pop_front() {
                m.flush(line..line + LINE)?;
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.dirty.clear();
        self.unflushed.clear();
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
        m.write(offset, data)?;
        m.count_consistency_time(|m| self.flush(m, KEPT_LINES))
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        m.counts.records += self.lines;
        m.counts.payload += self.lines * LINE;
        m.count_consistency_time(|m| {
            self.flush(m, 0)?;
            self.log.commit_flushed(m, &self.dirty)
        })?;
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
