// SPDX-License-Identifier: Apache-2.0

//! A command for a unit: translated and checked, so that it does not depend on later changes of
//! pools and logs.

use spec::nearpm::{padded, Operation, HEADER_BYTES, LINE};

use sim::OrderedCommand;

use super::bits::{Reader, Writer};

/// Bits of a media address.
const MEDIA_BITS: u32 = 44;
/// Number of records of a log that only the media know.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// `job_t` of hw/engine/nearpm/rtl/nearpm_pkg.sv, with media addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitCommand {
    pub(crate) operation: Operation,
    /// 16 * pool + thread.
    pub(crate) log: u8,
    /// Source of a copy or record; apply: the record's header.
    pub(crate) source: u64,
    /// Target of a copy, apply or switch; undo, redo, checkpoint: the record's header.
    pub(crate) target: u64,
    pub(crate) bytes: u32,
    /// Offset in the pool, for the header; bytes of the log for operations on the whole log.
    pub(crate) object: u64,
    /// Switch: the value. Otherwise the generation of the log at acceptance.
    pub(crate) value: u64,
    pub(crate) transaction: u64,
    /// Number of the record, or of records in the log for operations that end it.
    pub(crate) number: u32,
    /// Offset of the previous record, or of the last one for operations that end the log; 0: none.
    /// Recover of a closed log: 1 if it is inconsistent.
    pub(crate) previous: u32,
    /// Address of the log's descriptor.
    pub(crate) base: u64,
    /// Address of the pool, and of its last byte.
    pub(crate) pool: u64,
    pub(crate) pool_last: u64,
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
    /// The accessed ranges: README.md of the engine, "Order".
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

    /// The saved line.
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

    /// The command of a saved line; `None`: the operation is unknown.
    pub(crate) fn from_line(line: &[u8]) -> Option<UnitCommand> {
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        };
        let line = job.to_line();
        assert_eq!(UnitCommand::from_line(&line), Some(job));
        // 509 bits in total.
        assert_eq!(line[63], 0x21 >> 3);
        assert_eq!(line[62] >> 5, 0x21 & 7);
        assert_eq!(line[0], 8);
    }
}
