// SPDX-License-Identifier: Apache-2.0

//! Commands and their return values.

use std::fmt;

/// The operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Maps a pool to a process.
    PoolMap = 0x01,
    /// Unmaps a pool.
    PoolUnmap = 0x02,
    /// Opens an empty log of a generation.
    LogOpen = 0x03,
    /// Ends when the older commands of the log have ended.
    Sync = 0x04,
    /// Records the old bytes of a range.
    Undo = 0x10,
    /// Records the new bytes of a range.
    Redo = 0x11,
    /// Records pages.
    Checkpoint = 0x12,
    /// Records the old bytes of up to [`RANGES`] ranges: all or none.
    UndoRanges = 0x13,
    /// Records pages of up to [`RANGES`] ranges: all or none.
    CheckpointRanges = 0x14,
    /// Ends the transaction: its records are no longer valid.
    Commit = 0x18,
    /// Marks the redo records to be applied.
    CommitRedo = 0x19,
    /// Applies a redo record.
    Apply = 0x1A,
    /// Deletes the records after they were applied.
    Delete = 0x1B,
    /// Writes undo records and checkpoints back.
    Abort = 0x1C,
    /// Completes or rolls back the transaction of a log.
    Recover = 0x1D,
    /// Makes a shadow copy.
    Copy = 0x20,
    /// Writes 8 bytes.
    Switch = 0x21,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 17] = [
        Operation::PoolMap,
        Operation::PoolUnmap,
        Operation::LogOpen,
        Operation::Sync,
        Operation::Undo,
        Operation::Redo,
        Operation::Checkpoint,
        Operation::UndoRanges,
        Operation::CheckpointRanges,
        Operation::Commit,
        Operation::CommitRedo,
        Operation::Apply,
        Operation::Delete,
        Operation::Abort,
        Operation::Recover,
        Operation::Copy,
        Operation::Switch,
    ];

    /// The operation of a number.
    pub fn from_number(number: u8) -> Option<Operation> {
        Operation::ALL.into_iter().find(|op| *op as u8 == number)
    }

    /// Its command has ranges instead of an address and bytes.
    pub fn has_ranges(self) -> bool {
        matches!(self, Operation::UndoRanges | Operation::CheckpointRanges)
    }
}

/// Most ranges of a command.
pub const RANGES: usize = 7;
/// Bits of the offset of a range in its pool.
pub const OFFSET_BITS: u32 = 40;
/// Bits of the length of a range.
const LENGTH_BITS: u32 = 16;
/// Most bytes of a range.
pub const MAX_RANGE_BYTES: u64 = (1 << LENGTH_BITS) - 1;
/// The transaction of a command with ranges has this number of bits, a byte from each range.
pub const RANGES_TRANSACTION_BITS: u32 = 8 * RANGES as u32;
/// Lowest bit of a range's byte of the transaction.
const TRANSACTION: u32 = OFFSET_BITS + LENGTH_BITS;
/// Lowest bit of the number of ranges in the operation's word, and its mask.
const COUNT: u32 = 24;
const COUNT_MASK: u64 = 7 << COUNT;
/// Words of the ranges in a line, in the order of the ranges. Word 1 has the operation.
const RANGE_WORDS: [usize; RANGES] = [0, 2, 3, 4, 5, 6, 7];

/// A range of a command with several ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectRange {
    /// Offset in the pool, of at most [`OFFSET_BITS`] bits.
    pub offset: u64,
    /// Bytes, at most [`MAX_RANGE_BYTES`]; 0: there is no range.
    pub bytes: u64,
}

/// A command: the contents of its line in the command page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub operation: Operation,
    /// Pool, 0 to 15.
    pub pool: u8,
    /// Thread, 0 to 15.
    pub thread: u8,
    /// Process that owns the pool.
    pub process: u16,
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Virtual address to write to; for `PoolMap` the media address.
    pub target: u64,
    /// Number of the transaction.
    pub transaction: u64,
    /// Depends on the operation.
    pub value: u64,
    /// Depends on the operation.
    pub extra: u64,
    /// The ranges of an operation that has them, from the first one on. Its transaction has at most
    /// [`RANGES_TRANSACTION_BITS`] bits.
    pub ranges: [ObjectRange; RANGES],
}

impl Command {
    /// A command of a log without other arguments.
    pub fn new(operation: Operation, process: u16, pool: u8, thread: u8) -> Command {
        Command {
            operation,
            pool,
            thread,
            process,
            address: 0,
            bytes: 0,
            target: 0,
            transaction: 0,
            value: 0,
            extra: 0,
            ranges: [ObjectRange::default(); RANGES],
        }
    }

    /// The ranges that it has.
    pub fn used_ranges(&self) -> &[ObjectRange] {
        let used = self.ranges.iter().take_while(|range| range.bytes != 0);
        &self.ranges[..used.count()]
    }

    /// The words of its line.
    pub fn words(&self) -> [u64; 8] {
        let operation = self.operation as u64
            | u64::from(self.pool) << 8
            | u64::from(self.thread) << 16
            | u64::from(self.process) << 32;
        if !self.operation.has_ranges() {
            return [
                0,
                operation,
                self.address,
                self.bytes,
                self.target,
                self.transaction,
                self.value,
                self.extra,
            ];
        }
        let mut words = [0; 8];
        words[1] = operation | (self.used_ranges().len() as u64) << COUNT;
        let transaction = self.transaction.to_le_bytes();
        for ((word, range), byte) in RANGE_WORDS.iter().zip(&self.ranges).zip(transaction) {
            words[*word] =
                range.offset | range.bytes << OFFSET_BITS | u64::from(byte) << TRANSACTION;
        }
        words
    }

    /// The bytes of its line.
    pub fn to_line(&self) -> [u8; 64] {
        let words = self.words();
        std::array::from_fn(|n| words[n / 8].to_le_bytes()[n % 8])
    }

    /// The arguments of the command page, for operations without ranges.
    pub fn arguments(&self) -> [u64; 7] {
        let words = self.words();
        std::array::from_fn(|n| words[n + 1])
    }

    /// The command of a line's words; `None` if the operation is unknown, or bits are set that are
    /// reserved.
    pub fn from_words(words: &[u64; 8]) -> Option<Command> {
        let [first, word, address, bytes, target, transaction, value, extra] = *words;
        let operation = Operation::from_number(word as u8)?;
        let (pool, thread) = ((word >> 8) as u8, (word >> 16) as u8);
        let count = match operation.has_ranges() {
            true => COUNT_MASK,
            false => 0,
        };
        if word & 0xFFFF_0000_FF00_0000 & !count != 0
            || pool >= super::POOLS
            || thread >= super::THREADS
        {
            return None;
        }
        let command = Command::new(operation, (word >> 32) as u16, pool, thread);
        if operation.has_ranges() {
            return command.with_ranges((word & COUNT_MASK) >> COUNT, words);
        }
        (first == 0).then_some(Command {
            address,
            bytes,
            target,
            transaction,
            value,
            extra,
            ..command
        })
    }

    /// The command with the ranges of a line's words. `None`: there are not `count` of them.
    fn with_ranges(mut self, count: u64, words: &[u64; 8]) -> Option<Command> {
        for (n, word) in RANGE_WORDS.into_iter().enumerate() {
            let word = words[word];
            self.transaction |= (word >> TRANSACTION) << (8 * n);
            self.ranges[n] = ObjectRange {
                offset: word & ((1 << OFFSET_BITS) - 1),
                bytes: word >> OFFSET_BITS & MAX_RANGE_BYTES,
            };
        }
        let (used, others) = self.ranges.split_at(count as usize);
        let given = !used.is_empty() && used.iter().all(|range| range.bytes != 0);
        let clear = others.iter().all(|range| *range == ObjectRange::default());
        (given && clear).then_some(self)
    }
}

/// A bit of the return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorBit {
    /// The memory could not be read.
    ReadError = 1 << 0,
    /// The memory could not be written.
    WriteError = 1 << 1,
    /// Invalid operation, length or alignment, reserved bits that are set, or ranges that overlap.
    Invalid = 1 << 2,
    /// The pool is not mapped, or the thread has no open log.
    Unmapped = 1 << 3,
    /// The pool belongs to another process.
    WrongProcess = 1 << 4,
    /// A range is outside the pool, a pool or log is outside the media, or an offset is outside the
    /// log.
    OutOfPool = 1 << 5,
    /// The record does not fit.
    LogFull = 1 << 6,
    /// A record is incomplete.
    Torn = 1 << 7,
    /// The pool is mapped in another way, or the log is open.
    Busy = 1 << 8,
}

impl ErrorBit {
    const ALL: [(ErrorBit, &'static str); 9] = [
        (ErrorBit::ReadError, "the memory could not be read"),
        (ErrorBit::WriteError, "the memory could not be written"),
        (
            ErrorBit::Invalid,
            "invalid operation, length, alignment or overlap",
        ),
        (
            ErrorBit::Unmapped,
            "the pool is not mapped, or the log is not open",
        ),
        (
            ErrorBit::WrongProcess,
            "the pool belongs to another process",
        ),
        (
            ErrorBit::OutOfPool,
            "a range outside of the pool or the log",
        ),
        (ErrorBit::LogFull, "the log is full"),
        (ErrorBit::Torn, "a record of the log is torn"),
        (
            ErrorBit::Busy,
            "the pool is mapped otherwise, or the log is open already",
        ),
    ];
}

/// A return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReturnValue(pub u32);

impl ReturnValue {
    /// No error bit is set.
    pub fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// An error bit is set.
    pub fn has(self, refusal: ErrorBit) -> bool {
        self.0 & refusal as u32 != 0
    }
}

impl From<ErrorBit> for ReturnValue {
    fn from(refusal: ErrorBit) -> ReturnValue {
        ReturnValue(refusal as u32)
    }
}

impl fmt::Display for ReturnValue {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_ok() {
            return f.write_str("all is well");
        }
        let known = ErrorBit::ALL.iter().filter(|(bit, _)| self.has(*bit));
        let mut texts: Vec<String> = known.map(|(_, text)| (*text).to_string()).collect();
        let rest = self.0 & !0x1FF;
        if rest != 0 {
            texts.push(format!("bits {rest:#x}, which no engine sets"));
        }
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearpm_operations_have_the_numbers_of_the_rtl() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../hw/engine/nearpm/rtl/nearpm_pkg.sv"
        );
        let package = std::fs::read_to_string(path).expect("the package");
        for operation in Operation::ALL {
            let name = format!("Op{operation:?}");
            let line = package
                .lines()
                .find(|line| line.trim_start().starts_with(&format!("{name} ")))
                .unwrap_or_else(|| panic!("{name} is not in the package"));
            let number = line.split("8'h").nth(1).and_then(|text| text.get(..2));
            let expected = format!("{:02X}", operation as u8);
            assert_eq!(number, Some(&expected[..]), "{name}");
        }
        assert_eq!(package.matches("8'h").count(), Operation::ALL.len());
    }

    #[test]
    fn nearpm_command_words_are_read_as_written() {
        let command = Command {
            address: 1,
            bytes: 2,
            target: 3,
            transaction: 4,
            value: 5,
            extra: 6,
            ..Command::new(Operation::Redo, 0xABCD, 15, 14)
        };
        let words = command.words();
        assert_eq!(Command::from_words(&words), Some(command));
        assert_eq!(command.arguments(), words[1..]);
        for bit in (24..32).chain(48..64) {
            let mut wrong = words;
            wrong[1] ^= 1 << bit;
            assert_eq!(Command::from_words(&wrong), None);
        }
        assert_eq!(Command::from_words(&[1, words[1], 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn nearpm_command_ranges_are_read_as_written() {
        for count in 1..=RANGES {
            let mut command = Command::new(Operation::UndoRanges, 0xABCD, 15, 14);
            command.transaction = 0x77_6655_4433_2211;
            for (n, range) in command.ranges[..count].iter_mut().enumerate() {
                range.offset = (1 << OFFSET_BITS) - 1 - n as u64;
                range.bytes = MAX_RANGE_BYTES - n as u64;
            }
            let words = command.words();
            assert_eq!(Command::from_words(&words), Some(command));
            assert_eq!(words[1] >> 24 & 0xFF, count as u64);
            let last = words[RANGE_WORDS[count - 1]];
            assert_eq!(last >> 56, 0x11 * count as u64);
            // Another count, a range without bytes, and one after the last range.
            for wrong in 0..8 {
                let mut words = words;
                words[1] = words[1] & !COUNT_MASK | wrong << COUNT;
                let found = Command::from_words(&words);
                assert_eq!(found.is_some(), wrong == count as u64, "{count} {wrong}");
            }
            for (n, word) in RANGE_WORDS.into_iter().enumerate() {
                let mut words = words;
                words[word] ^= MAX_RANGE_BYTES << OFFSET_BITS;
                words[word] |= 1;
                let found = Command::from_words(&words);
                let kept = n < count && n > 0;
                assert_eq!(found.is_some(), kept, "{count} {n}");
            }
            for bit in (27..32).chain(48..64) {
                let mut words = words;
                words[1] ^= 1 << bit;
                assert_eq!(Command::from_words(&words), None);
            }
        }
    }
}
