//! Sorts a column of keys, and writes the original index of each key. Generated from hw/engine/sorter/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x78;
/// The return value.
pub mod result {
    use super::Field;
    /// A part of source or scratch could not be read.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// The job was stopped before everything was sorted.
    pub const STOPPED: Field = Field::new(1, 1, 0);
    /// Nothing was done: misaligned address, count out of range, unknown kind, ranges that overlap or wrap at 2^64.
    pub const INVALID: Field = Field::new(2, 1, 0);
    /// A part of target or scratch could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0);
}
/// Fields of `kind`.
pub mod kind {
    use super::Field;
    /// Keys of 0: 32, 1: 64, 2: 128 bits.
    pub const WIDTH: Field = Field::new(0, 2, 0);
    /// 0: unsigned, 1: two's complement, 2: IEEE 754 totalOrder.
    pub const ORDER: Field = Field::new(2, 2, 0);
    /// Descending order.
    pub const DESCENDING: Field = Field::new(4, 1, 0);
    /// Write only indexes of 4 bytes.
    pub const INDEXES: Field = Field::new(5, 1, 0);
    /// Passes after the first one merge two runs at a time, for comparison.
    pub const PAIRS: Field = Field::new(6, 1, 0);
}
