// SPDX-License-Identifier: Apache-2.0

//! Redo logs: new bytes stay in host memory until the commit. The commit writes them to the log,
//! and from there to their place.

use std::collections::BTreeMap;
use std::ops::Range;

use spec::nearpm::LINE;

use super::{covering_lines, Mechanism};
use crate::log::Log;
use crate::memory::{lines, Memory};
use crate::ranges::Ranges;
use crate::Result;

/// New bytes of a line, and a bit for each valid one.
#[derive(Clone)]
struct NewLine {
    data: [u8; LINE as usize],
    valid: u64,
}

pub(crate) struct Redo {
    log: Log,
    new_lines: BTreeMap<u64, NewLine>,
    /// Newly allocated ranges, which may be changed in place.
    fresh: Ranges,
    /// Lines that were stored to in place.
    dirty: Ranges,
}

/// The overlap of a range with a line: positions in the range, and in the line.
fn line_overlap(line: u64, range: &Range<u64>) -> (Range<usize>, Range<usize>) {
    let (start, end) = (line.max(range.start), (line + LINE).min(range.end));
    let of = |base: u64| (start - base) as usize..(end - base) as usize;
    (of(range.start), of(line))
}

impl Redo {
    pub fn new(log: Log) -> Redo {
        Redo {
            log,
            new_lines: BTreeMap::new(),
            fresh: Ranges::default(),
            dirty: Ranges::default(),
        }
    }

    /// The new bytes, as ranges.
    fn new_ranges(&self) -> Vec<(u64, Vec<u8>)> {
        let mut out: Vec<(u64, Vec<u8>)> = Vec::new();
        for (line, new) in &self.new_lines {
            for n in (0..LINE).filter(|n| new.valid >> n & 1 != 0) {
                let byte = new.data[n as usize];
                match out.last_mut() {
                    Some((at, data)) if *at + data.len() as u64 == line + n => data.push(byte),
                    _ => out.push((line + n, vec![byte])),
                }
            }
        }
        out
    }

    /// Stores to newly allocated ranges.
    fn store_in_place(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        m.write(offset, data)?;
        self.dirty
            .add(covering_lines(offset..offset + data.len() as u64));
        Ok(())
    }

    /// Buffers new bytes of existing objects.
    fn buffer_new(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        m.count_consistency_time(|m| Ok(m.cpu.spend_copy(data.len() as u64)?))?;
        for line in lines(range.clone()) {
            let new = self.new_lines.entry(line).or_insert(NewLine {
                data: [0; LINE as usize],
                valid: 0,
            });
            let (of_range, of_line) = line_overlap(line, &range);
            new.data[of_line.clone()].copy_from_slice(&data[of_range]);
            of_line.for_each(|at| new.valid |= 1 << at);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.new_lines.clear();
        self.fresh.clear();
        self.dirty.clear();
    }
}

impl Mechanism for Redo {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.count_consistency_time(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, _: &mut Memory, _: Range<u64>) -> Result<()> {
        Ok(())
    }

    fn mark_fresh(&mut self, range: Range<u64>) {
        self.fresh.add(range);
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        m.read(offset, out)?;
        if self.new_lines.is_empty() {
            return Ok(());
        }
        let range = offset..offset + out.len() as u64;
        m.count_consistency_time(|m| m.spend(m.options.costs.range))?;
        for line in lines(range.clone()) {
            let Some(new) = self.new_lines.get(&line) else {
                continue;
            };
            let (of_range, of_line) = line_overlap(line, &range);
            for (n, at) in of_line.enumerate() {
                if new.valid >> at & 1 != 0 {
                    out[of_range.start + n] = new.data[at];
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        m.count_consistency_time(|m| m.spend(m.options.costs.range))?;
        let of = |part: Range<u64>| (part.start - offset) as usize..(part.end - offset) as usize;
        let mut at = range.start;
        for old in self.fresh.missing(range.clone()) {
            if at < old.start {
                self.store_in_place(m, at, &data[of(at..old.start)])?;
            }
            at = old.end;
            self.buffer_new(m, old.start, &data[of(old)])?;
        }
        match at < range.end {
            true => self.store_in_place(m, at, &data[of(at..range.end)]),
            false => Ok(()),
        }
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        let new_lines = self.new_ranges();
        m.count_consistency_time(|m| self.log.redo(m, &self.dirty, &new_lines))?;
        self.clear();
        Ok(())
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        // Nothing has been changed; written records belong to no transaction.
        let none = Ranges::default();
        m.count_consistency_time(|m| self.log.abort(m, &none))?;
        self.clear();
        Ok(())
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
