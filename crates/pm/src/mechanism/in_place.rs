// SPDX-License-Identifier: Apache-2.0

//! Undo logs and checkpoints: old bytes go to the log, new ones to their place.

use std::ops::Range;

use spec::nearpm::RecordKind;

use super::{covering_lines, Mechanism};
use crate::log::Log;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::units::PAGE;
use crate::Result;

pub(crate) struct InPlace {
    kind: RecordKind,
    log: Log,
    /// Ranges that need no further record.
    logged: Ranges,
    /// The part of it without useful old content.
    fresh: Ranges,
    /// Lines that were stored to.
    dirty: Ranges,
}

impl InPlace {
    /// With undo records of ranges, or checkpoints of pages.
    pub fn new(kind: RecordKind, log: Log) -> InPlace {
        InPlace {
            kind,
            log,
            logged: Ranges::default(),
            fresh: Ranges::default(),
            dirty: Ranges::default(),
        }
    }

    fn snapshot(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        let range = match self.kind {
            RecordKind::Checkpoint => {
                range.start - range.start % PAGE..range.end.next_multiple_of(PAGE)
            }
            _ => range,
        };
        m.spend(m.options.costs.range)?;
        for missing in self.logged.missing(range) {
            if self.kind == RecordKind::Checkpoint {
                let pages = (missing.end - missing.start) / PAGE;
                m.spend(sim::Time(m.options.costs.trap.0 * pages))?;
            }
            self.log.snapshot(m, self.kind, missing.clone())?;
            self.logged.add(missing);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.logged.clear();
        self.fresh.clear();
        self.dirty.clear();
    }
}

impl Mechanism for InPlace {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.count_consistency_time(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        m.count_consistency_time(|m| m.count_creation_time(|m| self.snapshot(m, range)))
    }

    fn mark_fresh(&mut self, range: Range<u64>) {
        // Checkpoints log pages, without regard to objects.
        if self.kind != RecordKind::Checkpoint {
            self.logged.add(range.clone());
            self.fresh.add(range);
        }
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        m.read(offset, out)
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        let create = |m: &mut Memory| {
            self.snapshot(m, range.clone())?;
            // Fresh bytes may change before the records are persistent.
            match self.fresh.missing(range.clone()).is_empty() {
                true => Ok(()),
                false => self.log.persist_records(m, range.clone()),
            }
        };
        m.count_consistency_time(|m| m.count_creation_time(create))?;
        m.write(offset, data)?;
        self.dirty.add(covering_lines(range));
        Ok(())
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
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
