//! Copies rows of a table in the order of an index list. Generated from hw/engine/row_shuffle/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x98;
/// The return value.
pub mod result {
    use super::Field;
    /// A part of the list or of the rows could not be read, and was not written.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// The job was stopped before all rows were copied.
    pub const STOPPED: Field = Field::new(1, 1, 0);
    /// Nothing was done: unsupported addresses, counts or kind, ranges that overlap or wrap at 2^64.
    pub const INVALID: Field = Field::new(2, 1, 0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0);
    /// The index at `position` is not less than `rows`. The rows before it are copied, and nothing after them is written.
    pub const BAD_INDEX: Field = Field::new(4, 1, 0);
}
/// Fields of `kind`.
pub mod kind {
    use super::Field;
    /// Indexes of 32 bits. 0: one after another. 1, 2, 3: in the middle of 8, 16, 32 bytes, as in the sorter's records.
    pub const RECORDS: Field = Field::new(0, 2, 0);
}
