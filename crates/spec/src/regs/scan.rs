//! Counts the values in a range of the media that lie between two bounds, and writes a bitmap of them. Generated from hw/engine/scan/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x88;
/// The return value.
pub mod result {
    use super::Field;
    /// A part of the range could not be read. The scan ended there.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// The job was stopped before all values were counted.
    pub const STOPPED: Field = Field::new(1, 1, 0);
    /// Nothing was done: a range wraps at 2^64, has no bytes or no whole values; unknown kind; bad bitmap address.
    pub const INVALID: Field = Field::new(2, 1, 0);
    /// A part of the bitmap could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0);
}
/// Fields of `kind`.
pub mod kind {
    use super::Field;
    /// 0: 32 bits, 1: 64 bits.
    pub const WIDE: Field = Field::new(0, 1, 0);
    /// 0: unsigned, 1: two's complement.
    pub const IS_SIGNED: Field = Field::new(1, 1, 0);
    /// Write a bitmap, one bit per value.
    pub const FILTER: Field = Field::new(2, 1, 0);
}
