//! Copies a range of the device's memories to another range. Generated from hw/engine/copy/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x48;
/// The return value.
pub mod result {
    use super::Field;
    /// A part of the source could not be read. Target lines of 64 bytes with any byte of it were not written.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(1, 1, 0);
    /// The job was stopped before everything was copied. Whole segments from the start are copied.
    pub const STOPPED: Field = Field::new(2, 1, 0);
    /// Nothing was done: a range wraps at 2^64, is empty, or is longer than the PM window.
    pub const INVALID: Field = Field::new(3, 1, 0);
}
