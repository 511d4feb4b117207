//! A command on its way to a unit: translated and checked, so that it does not depend on what pools and logs become.

use spec::nearpm::{padded, Operation, HEADER_BYTES, LINE};

use sim::OrderedCommand;

use super::bits::{Reader, Writer};

/// Bits of an address of the media.
const MEDIA_BITS: u32 = 44;
/// The number of records of a log of which only the media know it.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// `job_t` of hw/engine/nearpm/rtl/nearpm_pkg.sv. Addresses are those of the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) operation: Operation,
    /// 16 * pool + thread.
    pub(crate) log: u8,
    /// Of a copy or record; apply: the record's header.
    pub(crate) source: u64,
    /// Of a copy, apply, switch; undo, redo, checkpoint: the record's header.
    pub(crate) target: u64,
    pub(crate) bytes: u32,
    /// Offset in the pool, for the header; bytes of the log for all that touches it as a whole.
    pub(crate) object: u64,
    /// Switch: the value; else the generation of the log as the command finds it.
    pub(crate) value: u64,
    pub(crate) transaction: u64,
    /// Of the record; of records in the log for all that ends it.
    pub(crate) number: u32,
    /// Offset of the record before; for all that ends the log, of its last record; 0: none. Recover of a closed log: 1 if it is spoiled.
    pub(crate) previous: u32,
    /// Of the log: its descriptor.
    pub(crate) base: u64,
    /// Of the pool, and its last byte.
    pub(crate) pool: u64,
    pub(crate) pool_last: u64,
}

/// Lines of the media, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Lines {
    /// Those of a byte at least.
    pub(crate) fn of(addr: u64, bytes: u64) -> Lines {
        Lines {
            first: addr / LINE,
            last: (addr + bytes.max(1) - 1) / LINE,
        }
    }

    pub(crate) fn overlaps(&self, other: &Lines) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    pub(crate) fn count(&self) -> usize {
        (self.last - self.first) as usize + 1
    }
}

/// What a command reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    pub(crate) reads: Option<Lines>,
    pub(crate) writes: Option<Lines>,
}

impl Ranges {
    pub(crate) fn write(&self, lines: &Lines) -> bool {
        self.writes.is_some_and(|own| own.overlaps(lines))
    }

    pub(crate) fn touch(&self, lines: &Lines) -> bool {
        self.write(lines) || self.reads.is_some_and(|own| own.overlaps(lines))
    }
}

impl Job {
    /// What it touches: README.md of the engine, "Order".
    pub(crate) fn ranges(&self) -> Ranges {
        use Operation::*;
        let bytes = u64::from(self.bytes);
        let record = |at| Some(Lines::of(at, HEADER_BYTES + padded(bytes)));
        let log = Some(Lines::of(self.base, self.object));
        let (reads, writes) = match self.operation {
            PoolMap => (None, None),
            Undo | Redo | Checkpoint => (Some(Lines::of(self.source, bytes)), record(self.target)),
            Commit | CommitRedo | Delete | LogOpen | Sync => (None, log),
            Apply => (record(self.source), Some(Lines::of(self.target, bytes))),
            Abort | Recover | PoolUnmap => {
                let bytes = self.pool_last - self.pool + 1;
                (None, Some(Lines::of(self.pool, bytes)))
            }
            Copy => (
                Some(Lines::of(self.source, bytes)),
                Some(Lines::of(self.target, bytes)),
            ),
            Switch => (None, Some(Lines::of(self.target, 8))),
        };
        Ranges { reads, writes }
    }

    /// What is told of its order.
    pub(super) fn ordered(&self, number: u8) -> OrderedCommand {
        let Ranges { reads, writes } = self.ranges();
        let told = |lines: Lines| sim::LineRange {
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
            reads: reads.map(told),
            writes: writes.map(told),
        }
    }

    /// When it fails its thread's log is closed.
    pub(crate) fn closes_log(&self) -> bool {
        use Operation::*;
        !matches!(self.operation, PoolMap | PoolUnmap | Sync)
    }

    /// It is not to begin once its thread's log has been closed by an error since it was taken.
    pub(crate) fn builds_on_log(&self) -> bool {
        use Operation::{Copy, Recover};
        self.closes_log() && !matches!(self.operation, Recover | Copy)
    }

    /// The line that it is saved in.
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
            bits.put(value, width);
        }
        line
    }

    /// The job of such a line; `None` if there is no such operation.
    pub(crate) fn from_line(line: &[u8]) -> Option<Job> {
        let mut bits = Reader::new(line);
        let pool_last = bits.take(MEDIA_BITS);
        let pool = bits.take(MEDIA_BITS);
        let base = bits.take(MEDIA_BITS);
        let previous = bits.take(32) as u32;
        let number = bits.take(32) as u32;
        let transaction = bits.take(64);
        let value = bits.take(64);
        let object = bits.take(64);
        let bytes = bits.take(17) as u32;
        let target = bits.take(MEDIA_BITS);
        let source = bits.take(MEDIA_BITS);
        let log = bits.take(8) as u8;
        let operation = Operation::from_number(bits.take(8) as u8)?;
        Some(Job {
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
    fn a_job_is_read_as_written_with_its_operation_on_top() {
        let most = (1 << MEDIA_BITS) - 1;
        let job = Job {
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
        assert_eq!(Job::from_line(&line), Some(job));
        // 509 bits in all.
        assert_eq!(line[63], 0x21 >> 3);
        assert_eq!(line[62] >> 5, 0x21 & 7);
        assert_eq!(line[0], 8);
    }
}
