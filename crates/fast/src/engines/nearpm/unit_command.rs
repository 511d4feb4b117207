// SPDX-License-Identifier: Apache-2.0

//! A command for a unit: translated and checked, so that it does not depend on later changes of
//! pools and logs.

use spec::nearpm::{
    next_record, padded, ObjectRange, Operation, HEADER_BYTES, LINE, MAX_RANGE_BYTES, OFFSET_BITS,
    RANGES,
};

use sim::OrderedCommand;

use super::bits::{Reader, Writer};

/// Bits of a media address.
const MEDIA_BITS: u32 = 44;
/// Bytes of a range in the second saved line, and the places of those after the first one.
const RANGE_BYTES: usize = 7;
const MORE: [usize; RANGES - 1] = [1, 24, 31, 38, 45, 52];
/// Maximum number of parts of a copy, and the minimum number of lines of its target for each.
const MAX_PARTS: u64 = 4;
const PART_LINES: u64 = 64;
/// Number of records of a log that only the media know.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Bits of a range.
const RANGE_BITS: u32 = 56;

/// `object_range_t` of hw/engine/nearpm/rtl/nearpm_pkg.sv.
fn pack(range: ObjectRange) -> u64 {
    range.offset | range.bytes << OFFSET_BITS
}

fn unpack(bits: u64) -> ObjectRange {
    ObjectRange {
        offset: bits & ((1 << OFFSET_BITS) - 1),
        bytes: bits >> OFFSET_BITS & MAX_RANGE_BYTES,
    }
}

/// A record that a command makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewRecord {
    /// First byte to be recorded.
    pub(crate) source: u64,
    pub(crate) bytes: u32,
    /// Address of the header.
    pub(crate) header: u64,
    /// Offset of the object in the pool.
    pub(crate) object: u64,
    pub(crate) number: u32,
    /// Offset of the previous record in the log; 0: there is none.
    pub(crate) previous: u32,
}

/// `job_t` of hw/engine/nearpm/rtl/nearpm_pkg.sv, with media addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitCommand {
    pub(crate) operation: Operation,
    /// 16 * pool + thread.
    pub(crate) log: u8,
    /// Source of a copy or record; apply: the record's header. Several ranges: their first byte.
    pub(crate) source: u64,
    /// Target of a copy, apply or switch; undo, redo, checkpoint: the record's header.
    pub(crate) target: u64,
    /// Bytes of a copy or record. Several ranges: the lines that their records take.
    pub(crate) bytes: u32,
    /// Offset in the pool, for the header; bytes of the log for operations on the whole log.
    /// Several ranges: the first one.
    pub(crate) object: u64,
    /// Switch: the value. Otherwise the generation of the log at acceptance.
    pub(crate) value: u64,
    pub(crate) transaction: u64,
    /// Number of the (first) record, or of records in the log for operations that end it.
    pub(crate) number: u32,
    /// Offset of the previous record, or of the last one for operations that end the log; 0: none.
    /// Recover of a closed log: 1 if it is inconsistent.
    pub(crate) previous: u32,
    /// Address of the log's descriptor.
    pub(crate) base: u64,
    /// Address of the pool, and of its last byte. Several ranges: of the last byte of any.
    pub(crate) pool: u64,
    pub(crate) pool_last: u64,
    /// Ranges after the first one.
    pub(crate) more: [u64; RANGES - 1],
}

/// Lines of the media, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl LineRange {
    /// The lines of at least one byte.
    pub(crate) fn of(addr: u64, bytes: u64) -> LineRange {
        LineRange {
            first: addr / LINE,
            last: (addr + bytes.max(1) - 1) / LINE,
        }
    }

    pub(crate) fn overlaps(&self, other: &LineRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    pub(crate) fn count(&self) -> usize {
        (self.last - self.first) as usize + 1
    }
}

/// The ranges that a command reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessRanges {
    pub(crate) reads: Option<LineRange>,
    pub(crate) writes: Option<LineRange>,
}

impl AccessRanges {
    pub(crate) fn writes_overlap(&self, lines: &LineRange) -> bool {
        self.writes.is_some_and(|own| own.overlaps(lines))
    }

    pub(crate) fn accesses_overlap(&self, lines: &LineRange) -> bool {
        self.writes_overlap(lines) || self.reads.is_some_and(|own| own.overlaps(lines))
    }
}

impl UnitCommand {
    /// Sets several ranges, which are inside the pool.
    pub(crate) fn set_ranges(&mut self, ranges: &[ObjectRange]) {
        let mut packed = ranges.iter().map(|range| pack(*range));
        self.object = packed.next().unwrap_or(0);
        for (to, range) in self.more.iter_mut().zip(packed) {
            *to = range;
        }
        let first = ranges.iter().map(|range| range.offset).min();
        let last = ranges.iter().map(|range| range.offset + range.bytes - 1);
        (self.source, self.pool_last) = (
            self.pool + first.unwrap_or(0),
            self.pool + last.max().unwrap_or(0),
        );
        let bytes: u64 = ranges.iter().map(|range| next_record(0, range.bytes)).sum();
        self.bytes = (bytes / LINE) as u32;
    }

    /// The record that the command makes first.
    pub(crate) fn first_record(&self) -> NewRecord {
        let one = match self.operation.has_ranges() {
            true => unpack(self.object),
            false => ObjectRange {
                offset: self.object,
                bytes: self.bytes.into(),
            },
        };
        NewRecord {
            source: match self.operation.has_ranges() {
                true => self.pool + one.offset,
                false => self.source,
            },
            bytes: one.bytes as u32,
            header: self.target,
            object: one.offset,
            number: self.number,
            previous: self.previous,
        }
    }

    /// All records that the command makes.
    pub(crate) fn records(&self) -> impl Iterator<Item = NewRecord> + '_ {
        let after = |record: &NewRecord| self.record_after(record);
        std::iter::successors(Some(self.first_record()), after)
    }

    /// The record that follows one of the command's.
    pub(crate) fn record_after(&self, record: &NewRecord) -> Option<NewRecord> {
        let n = record.number.wrapping_sub(self.number) as usize;
        let range = unpack(*self.more.get(n).filter(|range| **range != 0)?);
        Some(NewRecord {
            source: self.pool + range.offset,
            bytes: range.bytes as u32,
            header: next_record(record.header, record.bytes.into()),
            object: range.offset,
            number: record.number.wrapping_add(1),
            previous: (record.header - self.base) as u32,
        })
    }

    /// The accessed ranges: docs/hardware/nearpm.md, "Order".
    pub(crate) fn ranges(&self) -> AccessRanges {
        use Operation::*;
        let bytes = u64::from(self.bytes);
        let record = |at| Some(LineRange::of(at, HEADER_BYTES + padded(bytes)));
        let log = Some(LineRange::of(self.base, self.object));
        let (reads, writes) = match self.operation {
            PoolMap => (None, None),
            Undo | Redo | Checkpoint => {
                (Some(LineRange::of(self.source, bytes)), record(self.target))
            }
            UndoRanges | CheckpointRanges => (
                Some(LineRange {
                    first: self.source / LINE,
                    last: self.pool_last / LINE,
                }),
                Some(LineRange::of(self.target, bytes * LINE)),
            ),
            Commit | CommitRedo | Delete | LogOpen | Sync => (None, log),
            Apply => (record(self.source), Some(LineRange::of(self.target, bytes))),
            Abort | Recover | PoolUnmap => {
                let bytes = self.pool_last - self.pool + 1;
                (None, Some(LineRange::of(self.pool, bytes)))
            }
            Copy => (
                Some(LineRange::of(self.source, bytes)),
                Some(LineRange::of(self.target, bytes)),
            ),
            Switch => (None, Some(LineRange::of(self.target, 8))),
        };
        AccessRanges { reads, writes }
    }

    /// The command as the order check sees it.
    pub(super) fn ordered(&self, number: u8) -> OrderedCommand {
        let AccessRanges { reads, writes } = self.ranges();
        let to_sim = |lines: LineRange| sim::LineRange {
            first: lines.first,
            last: lines.last,
        };
        OrderedCommand {
            number,
            operation: self.operation as u8,
            log: self.log,
            transaction: self.transaction,
            participants: match self.operation {
                Operation::Commit => self.bytes as u8,
                _ => 0,
            },
            reads: reads.map(to_sim),
            writes: writes.map(to_sim),
        }
    }

    /// The parts of a copy, for one unit each, if this number of units is idle. One idle unit is
    /// left for other commands. A part ends with a line of the target.
    pub(crate) fn parts(self, idle: u64) -> impl Iterator<Item = UnitCommand> {
        let (offset, bytes) = (self.target % LINE, u64::from(self.bytes));
        let lines = (offset + bytes).div_ceil(LINE);
        let most = (idle - 1).min(MAX_PARTS).min(lines / PART_LINES);
        let divided = self.operation == Operation::Copy && most > 1;
        let part_lines = lines.div_ceil(if divided { most } else { 1 });
        let mut left = Some(self);
        std::iter::from_fn(move || {
            let mut part = left.take()?;
            let bytes = (part_lines * LINE - part.target % LINE) as u32;
            if divided && bytes < part.bytes {
                left = Some(UnitCommand {
                    source: part.source + u64::from(bytes),
                    target: part.target + u64::from(bytes),
                    bytes: part.bytes - bytes,
                    ..part
                });
                part.bytes = bytes;
            }
            Some(part)
        })
    }

    /// If it fails, its thread's log is closed.
    pub(crate) fn closes_log(&self) -> bool {
        use Operation::*;
        !matches!(self.operation, PoolMap | PoolUnmap | Sync)
    }

    /// It does not start if its thread's log was closed by an error after acceptance.
    pub(crate) fn builds_on_log(&self) -> bool {
        use Operation::{Copy, Recover};
        self.closes_log() && !matches!(self.operation, Recover | Copy)
    }

    /// The saved line. Of several ranges it has the first one.
    pub(crate) fn to_line(self) -> [u8; 64] {
        let mut line = [0; 64];
        let mut bits = Writer::new(&mut line);
        // The last field of the structure is the lowest one.
        for (value, width) in [
            (self.pool_last, MEDIA_BITS),
            (self.pool, MEDIA_BITS),
            (self.base, MEDIA_BITS),
            (self.previous.into(), 32),
            (self.number.into(), 32),
            (self.transaction, 64),
            (self.value, 64),
            (self.object, 64),
            (self.bytes.into(), 17),
            (self.target, MEDIA_BITS),
            (self.source, MEDIA_BITS),
            (self.log.into(), 8),
            (self.operation as u64, 8),
        ] {
            bits.write(value, width);
        }
        line
    }

    /// Writes the ranges after the first one into the second saved line.
    pub(crate) fn write_more(&self, line: &mut [u8]) {
        for (range, at) in self.more.iter().zip(MORE) {
            line[at..at + RANGE_BYTES].copy_from_slice(&range.to_le_bytes()[..RANGE_BYTES]);
        }
    }

    /// The command of two saved lines; `None`: the operation is unknown.
    pub(crate) fn from_lines(line: &[u8], second: &[u8]) -> Option<UnitCommand> {
        let mut bits = Reader::new(line);
        let pool_last = bits.read(MEDIA_BITS);
        let pool = bits.read(MEDIA_BITS);
        let base = bits.read(MEDIA_BITS);
        let previous = bits.read(32) as u32;
        let number = bits.read(32) as u32;
        let transaction = bits.read(64);
        let value = bits.read(64);
        let object = bits.read(64);
        let bytes = bits.read(17) as u32;
        let target = bits.read(MEDIA_BITS);
        let source = bits.read(MEDIA_BITS);
        let log = bits.read(8) as u8;
        let operation = Operation::from_number(bits.read(8) as u8)?;
        Some(UnitCommand {
            operation,
            log,
            source,
            target,
            bytes,
            object,
            value,
            transaction,
            number,
            previous,
            base,
            pool,
            pool_last,
            more: MORE.map(|at| Reader::new(&second[at..]).read(RANGE_BITS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: UnitCommand = UnitCommand {
        operation: Operation::Copy,
        log: 0,
        source: 7,
        target: 0,
        bytes: 1,
        object: 0,
        value: 0,
        transaction: 0,
        number: 0,
        previous: 0,
        base: 0,
        pool: 0,
        pool_last: 0,
        more: [0; RANGES - 1],
    };

    #[test]
    fn copy_parts_are_consecutive_and_end_with_lines_of_the_target() {
        let mut random = sim::Random::new(1);
        for _ in 0..1000 {
            let job = UnitCommand {
                source: random.below(1 << 20),
                target: random.below(1 << 20),
                bytes: 1 + random.below(1 << 16) as u32,
                ..JOB
            };
            let idle = 1 + random.below(16);
            let parts: Vec<_> = job.parts(idle).collect();
            let lines = LineRange::of(job.target, job.bytes.into()).count() as u64;
            let most = (idle - 1).min(4).min(lines / 64).max(1);
            assert_eq!(parts.len() as u64, most, "{job:?}, {idle} idle");
            let mut at = 0;
            for (n, part) in parts.iter().enumerate() {
                assert_eq!(part.source, job.source + at);
                assert_eq!(part.target, job.target + at);
                at += u64::from(part.bytes);
                if n + 1 < parts.len() {
                    assert_eq!((job.target + at) % LINE, 0);
                    let lines = LineRange::of(part.target, part.bytes.into());
                    assert!(lines.count() >= 64);
                }
            }
            assert_eq!(at, u64::from(job.bytes));
        }
    }

    #[test]
    fn only_copies_are_divided() {
        let job = UnitCommand {
            operation: Operation::Checkpoint,
            bytes: 1 << 16,
            ..JOB
        };
        assert_eq!(job.parts(16).collect::<Vec<_>>(), [job]);
        let record = UnitCommand { bytes: 0, ..job };
        assert_eq!(record.parts(16).collect::<Vec<_>>(), [record]);
    }

    #[test]
    fn unit_command_is_read_as_written_with_its_operation_on_top() {
        let most = (1 << MEDIA_BITS) - 1;
        let job = UnitCommand {
            operation: Operation::Switch,
            log: 0xA5,
            source: most - 1,
            target: most - 2,
            bytes: 0x1_0000,
            object: u64::MAX,
            value: 3,
            transaction: u64::MAX - 4,
            number: 5,
            previous: u32::MAX - 6,
            base: 7,
            pool: most,
            pool_last: 8,
            more: [1, 2, 3, 4, 5, 6].map(|n| n << 53 | n),
        };
        let line = job.to_line();
        let mut second = [0xFF; 64];
        job.write_more(&mut second);
        assert_eq!(UnitCommand::from_lines(&line, &second), Some(job));
        assert_eq!((second[0], &second[8..24]), (0xFF, &[0xFF; 16][..]));
        // 509 bits in total.
        assert_eq!(line[63], 0x21 >> 3);
        assert_eq!(line[62] >> 5, 0x21 & 7);
        assert_eq!(line[0], 8);
    }
}
