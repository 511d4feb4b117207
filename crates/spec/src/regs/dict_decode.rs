//! Decodes a dictionary-encoded column into plain values. Generated from hw/engine/dict_decode/engine.toml by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x98;
/// The return value.
pub mod result {
    use super::Field;
    /// A part of dictionary or source could not be read. `position` is 0 for the dictionary. Else it is the first value that needed the bytes: of a run with a missing header, a row of up to 16 keys, or a beat of plain values.
    pub const READ_ERROR: Field = Field::new(0, 1, 0);
    /// The job was stopped before everything was decoded. `position` is approximate.
    pub const STOPPED: Field = Field::new(1, 1, 0);
    /// Nothing was done, and `position` is 0: misaligned address, count, entries or size out of range, unknown kind, ranges that overlap or wrap at 2^64.
    pub const INVALID: Field = Field::new(2, 1, 0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0);
    /// A key is not in the dictionary. `position` is its number.
    pub const BAD_KEY: Field = Field::new(4, 1, 0);
    /// The source ends too early, a run has length 0, or a length has more than 5 bytes. `position` is the first value of the run or group.
    pub const TRUNCATED: Field = Field::new(5, 1, 0);
    /// An RLE run, or a group of 8 packed keys, begins or ends after the last value. Padding of the last group is allowed. `position` is the first value of the run.
    pub const OVERRUN: Field = Field::new(6, 1, 0);
}
/// Fields of `kind`.
pub mod kind {
    use super::Field;
    /// Bits of a key, 0 to 32.
    pub const WIDTH: Field = Field::new(0, 6, 0);
    /// log2 of a value's bytes.
    pub const SIZE: Field = Field::new(8, 2, 0);
    /// The source holds values, which are copied; there is no dictionary.
    pub const PLAIN: Field = Field::new(16, 1, 0);
    /// The source holds keys of 8, 16 or 32 bits without runs.
    pub const PACKED_KEYS: Field = Field::new(17, 1, 0);
}
