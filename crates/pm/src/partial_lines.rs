// SPDX-License-Identifier: Apache-2.0

//! Lines that a log record covers only in part. Other threads may use the rest of such a line, so
//! what the engine writes there has to go through the cache as well.

use std::ops::Range;

use spec::nearpm::{Header, LINE};

use crate::memory::Memory;
use crate::{Error, Result};

/// The lines that a range covers completely.
pub(crate) fn whole_lines(range: &Range<u64>) -> Range<u64> {
    let start = range.start.next_multiple_of(LINE).min(range.end);
    start..(range.end - range.end % LINE).max(start)
}

/// The parts of a range outside of its whole lines.
pub(crate) fn partial_ranges(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let whole = whole_lines(range);
    [range.start..whole.start, whole.end..range.end]
        .into_iter()
        .filter(|edge| !edge.is_empty())
}

/// Writes back the partial lines of the engine's records. `records` has the place and the range of
/// each, the newest first. Returns the lines.
pub(crate) fn write_back(
    m: &mut Memory,
    generation: u64,
    records: &[(u64, Range<u64>)],
) -> Result<Vec<u64>> {
    // All loads are issued at once. A load of a record that the engine still makes waits for the
    // record.
    let mut asked = Vec::new();
    for (record, range) in records {
        let mut olds = Vec::new();
        for edge in partial_ranges(range) {
            let from = record + LINE + (edge.start - range.start);
            olds.push((m.issue_load(from, edge.end - edge.start)?, edge));
        }
        if !olds.is_empty() {
            asked.push((range, m.issue_load(*record, LINE)?, olds));
        }
    }
    let mut lines = Vec::new();
    for (range, header, olds) in asked {
        let mut line = [0; LINE as usize];
        line.copy_from_slice(&m.cpu.finish_load(header)?);
        let is_of = |header: &Header| {
            header.generation == generation
                && header.object == range.start
                && u64::from(header.bytes) == range.end - range.start
        };
        if !Header::from_line(&line).is_some_and(|header| is_of(&header)) {
            return Err(Error::Corrupt(format!(
                "the engine has no record of the {} bytes at {:#x} that are to be written back",
                range.end - range.start,
                range.start
            )));
        }
        for (old, edge) in olds {
            let bytes = m.cpu.finish_load(old)?;
            m.write(edge.start, &bytes)?;
            m.flush(edge.clone())?;
            lines.push(edge.start - edge.start % LINE);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_lines_and_whole_lines_make_up_a_range() {
        for (start, end) in [
            (64, 192),
            (60, 200),
            (8, 64),
            (0, 16),
            (8, 16),
            (8, 100),
            (0, 0),
        ] {
            let range = start..end;
            let inner = whole_lines(&range);
            assert!(inner.start % LINE == 0 && inner.end % LINE == 0 || inner.is_empty());
            let edges: Vec<_> = partial_ranges(&range).collect();
            assert!(edges.iter().all(|edge| edge.end - edge.start < LINE));
            let all = |byte: &u64| inner.contains(byte) || edges.iter().any(|e| e.contains(byte));
            let bytes: u64 = edges.iter().chain([&inner]).map(|r| r.end - r.start).sum();
            assert!(range.clone().all(|byte| all(&byte)) && end - start == bytes);
        }
    }
}
