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
    pub const ALL: [Operation; 15] = [
        Operation::PoolMap,
        Operation::PoolUnmap,
        Operation::LogOpen,
        Operation::Sync,
        Operation::Undo,
        Operation::Redo,
        Operation::Checkpoint,
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
}

/// A command: the arguments of its line in the command page.
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
        }
    }

    /// The arguments of the command page.
    pub fn arguments(&self) -> [u64; 7] {
        let operation = self.operation as u64
            | u64::from(self.pool) << 8
            | u64::from(self.thread) << 16
            | u64::from(self.process) << 32;
        [
            operation,
            self.address,
            self.bytes,
            self.target,
            self.transaction,
            self.value,
            self.extra,
        ]
    }

    /// The command of arguments; `None` if the operation is unknown.
    pub fn from_arguments(arguments: &[u64; 7]) -> Option<Command> {
        let [operation, address, bytes, target, transaction, value, extra] = *arguments;
        let number = operation as u8;
        let (pool, thread) = ((operation >> 8) as u8, (operation >> 16) as u8);
        if operation & 0xFFFF_0000_FF00_0000 != 0
            || pool >= super::POOLS
            || thread >= super::THREADS
        {
            return None;
        }
        Some(Command {
            operation: Operation::from_number(number)?,
            pool,
            thread,
            process: (operation >> 32) as u16,
            address,
            bytes,
            target,
            transaction,
            value,
            extra,
        })
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
    fn nearpm_command_arguments_are_read_as_written() {
        let command = Command {
            address: 1,
            bytes: 2,
            target: 3,
            transaction: 4,
            value: 5,
            extra: 6,
            ..Command::new(Operation::Redo, 0xABCD, 15, 14)
        };
        let arguments = command.arguments();
        assert_eq!(Command::from_arguments(&arguments), Some(command));
        for bit in (24..32).chain(48..64) {
            let mut wrong = arguments;
            wrong[0] ^= 1 << bit;
            assert_eq!(Command::from_arguments(&wrong), None);
        }
    }
}
