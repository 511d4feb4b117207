//! Dictionary decoder. Generated from hw/engine/dict_decode/regs/dict_decode_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x98;
/// Control.
pub const CONTROL: u64 = 0x0;
/// Inside of `CONTROL`.
pub mod control {
    use super::Field;
    /// Write 1 to start a job; ignored while the engine is busy.
    pub const START: Field = Field::new(0, 1, 0x0);
    /// Write 1 to end the job early.
    pub const STOP: Field = Field::new(1, 1, 0x0);
    /// The engine is idle.
    pub const IDLE: Field = Field::new(2, 1, 0x0);
}
/// Interrupt enable.
pub const INTERRUPT: u64 = 0x4;
/// Inside of `INTERRUPT`.
pub mod interrupt {
    use super::Field;
    /// Interrupts of this engine are enabled.
    pub const ENABLE: Field = Field::new(0, 1, 0x0);
}
/// Interrupt sources.
pub const SOURCES: u64 = 0x8;
/// Inside of `SOURCES`.
pub mod sources {
    use super::Field;
    /// Raise an interrupt while Status.done is 1.
    pub const DONE: Field = Field::new(0, 1, 0x0);
}
/// Status.
pub const STATUS: u64 = 0xc;
/// Inside of `STATUS`.
pub mod status {
    use super::Field;
    /// A job has ended; write 1 to clear.
    pub const DONE: Field = Field::new(0, 1, 0x0);
}
/// Return value.
pub const RESULT: u64 = 0x10;
/// Inside of `RESULT`.
pub mod result {
    use super::Field;
    /// A part of dictionary or source could not be read.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// Stopped before everything was decoded.
    pub const STOPPED: Field = Field::new(1, 1, 0x0);
    /// Nothing was done: unsupported addresses, counts or kind, or overlapping ranges.
    pub const INVALID: Field = Field::new(2, 1, 0x0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0x0);
    /// A key that is not in the dictionary.
    pub const BAD_KEY: Field = Field::new(4, 1, 0x0);
    /// The source ends too early, or has a run without a length.
    pub const TRUNCATED: Field = Field::new(5, 1, 0x0);
    /// A run is longer than the rest of the column.
    pub const OVERRUN: Field = Field::new(6, 1, 0x0);
}
/// Dictionary, low.
pub const DICT_LO: u64 = 0x20;
/// Inside of `DICT_LO`.
pub mod dict_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Dictionary, high.
pub const DICT_HI: u64 = 0x24;
/// Inside of `DICT_HI`.
pub mod dict_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Entries, low.
pub const ENTRIES_LO: u64 = 0x30;
/// Inside of `ENTRIES_LO`.
pub mod entries_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Entries, high.
pub const ENTRIES_HI: u64 = 0x34;
/// Inside of `ENTRIES_HI`.
pub mod entries_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Source, low.
pub const SRC_LO: u64 = 0x40;
/// Inside of `SRC_LO`.
pub mod src_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Source, high.
pub const SRC_HI: u64 = 0x44;
/// Inside of `SRC_HI`.
pub mod src_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bytes, low.
pub const BYTES_LO: u64 = 0x50;
/// Inside of `BYTES_LO`.
pub mod bytes_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bytes, high.
pub const BYTES_HI: u64 = 0x54;
/// Inside of `BYTES_HI`.
pub mod bytes_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Target, low.
pub const DST_LO: u64 = 0x60;
/// Inside of `DST_LO`.
pub mod dst_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Target, high.
pub const DST_HI: u64 = 0x64;
/// Inside of `DST_HI`.
pub mod dst_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, low.
pub const COUNT_LO: u64 = 0x70;
/// Inside of `COUNT_LO`.
pub mod count_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, high.
pub const COUNT_HI: u64 = 0x74;
/// Inside of `COUNT_HI`.
pub mod count_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Kind, low.
pub const KIND_LO: u64 = 0x80;
/// Inside of `KIND_LO`.
pub mod kind_lo {
    use super::Field;
    /// Bits of a key, 0 to 32.
    pub const WIDTH: Field = Field::new(0, 6, 0x0);
    /// 0.
    pub const RESERVED0: Field = Field::new(6, 2, 0x0);
    /// log2 of a value's bytes.
    pub const SIZE: Field = Field::new(8, 2, 0x0);
    /// 0.
    pub const RESERVED1: Field = Field::new(10, 6, 0x0);
    /// 1: the source holds plain values; there is no dictionary.
    pub const PLAIN: Field = Field::new(16, 1, 0x0);
    /// 1: the source holds keys of 8, 16 or 32 bits, without runs.
    pub const PACKED_KEYS: Field = Field::new(17, 1, 0x0);
    /// 0.
    pub const RESERVED2: Field = Field::new(18, 14, 0x0);
}
/// Kind, high.
pub const KIND_HI: u64 = 0x84;
/// Inside of `KIND_HI`.
pub mod kind_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Position, low.
pub const POSITION_LO: u64 = 0x90;
/// Inside of `POSITION_LO`.
pub mod position_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Position, high.
pub const POSITION_HI: u64 = 0x94;
/// Inside of `POSITION_HI`.
pub mod position_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
