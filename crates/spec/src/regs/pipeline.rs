//! Executes a list of decode, sort and gather commands. Generated from hw/engine/pipeline/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x180;
/// Progress of the list.
pub const PROGRESS: u64 = 0x100;
/// Progress of the current entry, low word: values decoded, records merged in all passes of a sort, or rows whose copy has begun.
pub const ITEMS_LO: u64 = 0x104;
/// Progress of the current entry, high word.
pub const ITEMS_HI: u64 = 0x108;
/// Clock cycles of each entry so far, saturating at 2^32 - 1.
pub const CYCLES: u64 = 0x140;
/// Distance between two of them.
pub const CYCLES_STRIDE: u64 = 4;
/// Number of them.
pub const CYCLES_COUNT: u64 = 16;
/// The return value.
pub mod result {
    use super::Field;
    /// The list, or a part of an entry's input, could not be read.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// The job was stopped before all entries were done.
    pub const STOPPED: Field = Field::new(1, 1, 0);
    /// Nothing was done: unsupported addresses, count or kind, ranges that wrap at 2^64.
    pub const INVALID: Field = Field::new(2, 1, 0);
    /// Reports, or a part of an entry's output, could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0);
    /// An entry is invalid: its opcode, reserved bits, a range past `bytes`, or arguments that are `invalid` to its engine.
    pub const BAD_ENTRY: Field = Field::new(4, 1, 0);
    /// An entry's input is invalid: a key outside the dictionary, an index outside the table, runs that are too short or too long.
    pub const BAD_DATA: Field = Field::new(5, 1, 0);
}
/// Fields of `kind`.
pub mod kind {
    use super::Field;
    /// Write a report of each entry after the list.
    pub const REPORT: Field = Field::new(0, 1, 0);
}
/// Fields of `progress`.
pub mod progress {
    use super::Field;
    /// Current or last entry, from 0. It is current as soon as it is checked, even if it is invalid or a stop precedes it.
    pub const ENTRY: Field = Field::new(0, 4, 0);
    /// A list is in progress.
    pub const RUNNING: Field = Field::new(8, 1, 0);
}
