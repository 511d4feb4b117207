//! Undo logs and checkpoints: old bytes go to the log, new ones to their place.

use std::ops::Range;

use spec::nearpm::RecordKind;

use super::{whole_lines, Mechanism};
use crate::header::PAGE;
use crate::log::Log;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::Result;

pub(crate) struct InPlace {
    kind: RecordKind,
    log: Log,
    /// What needs not be kept any more.
    kept: Ranges,
    /// The part of it that nobody needs.
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
            kept: Ranges::default(),
            fresh: Ranges::default(),
            dirty: Ranges::default(),
        }
    }

    fn keep(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        let range = match self.kind {
            RecordKind::Checkpoint => {
                range.start - range.start % PAGE..range.end.next_multiple_of(PAGE)
            }
            _ => range,
        };
        m.spend(m.options.costs.range)?;
        for missing in self.kept.missing(range) {
            if self.kind == RecordKind::Checkpoint {
                let pages = (missing.end - missing.start) / PAGE;
                m.spend(sim::Time(m.options.costs.trap.0 * pages))?;
            }
            self.log.keep(m, self.kind, missing.clone())?;
            self.kept.add(missing);
        }
        Ok(())
    }

    fn end(&mut self) {
        self.kept.clear();
        self.fresh.clear();
        self.dirty.clear();
    }
}

impl Mechanism for InPlace {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.consistently(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        m.consistently(|m| self.keep(m, range))
    }

    fn fresh(&mut self, range: Range<u64>) {
        // Pages are kept by who doesn't know of objects.
        if self.kind != RecordKind::Checkpoint {
            self.kept.add(range.clone());
            self.fresh.add(range);
        }
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        m.read(offset, out)
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        m.consistently(|m| {
            self.keep(m, range.clone())?;
            // Records need not be persistent before that changes which nobody needs.
            match self.fresh.missing(range.clone()).is_empty() {
                true => Ok(()),
                false => self.log.settle(m),
            }
        })?;
        m.write(offset, data)?;
        self.dirty.add(whole_lines(range));
        Ok(())
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        m.consistently(|m| self.log.commit(m, &self.dirty))?;
        self.end();
        Ok(())
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        m.consistently(|m| self.log.abort(m, &self.dirty))?;
        self.end();
        Ok(())
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
