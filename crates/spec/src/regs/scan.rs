//! Scan engine. Generated from hw/engine/scan/regs/scan_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x88;
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
    /// A part of the range could not be read; the count is undefined.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// Stopped before all values were counted; the count is undefined.
    pub const STOPPED: Field = Field::new(1, 1, 0x0);
    /// Nothing was done: a range wraps at 2^64, has no bytes or no whole values; unknown kind; bad bitmap address.
    pub const INVALID: Field = Field::new(2, 1, 0x0);
    /// A part of the bitmap could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0x0);
}
/// Source, low.
pub const SRC_LO: u64 = 0x20;
/// Inside of `SRC_LO`.
pub mod src_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Source, high.
pub const SRC_HI: u64 = 0x24;
/// Inside of `SRC_HI`.
pub mod src_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bytes, low.
pub const BYTES_LO: u64 = 0x30;
/// Inside of `BYTES_LO`.
pub mod bytes_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bytes, high.
pub const BYTES_HI: u64 = 0x34;
/// Inside of `BYTES_HI`.
pub mod bytes_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Lower bound, low.
pub const LOW_LO: u64 = 0x40;
/// Inside of `LOW_LO`.
pub mod low_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Lower bound, high.
pub const LOW_HI: u64 = 0x44;
/// Inside of `LOW_HI`.
pub mod low_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Upper bound, low.
pub const HIGH_LO: u64 = 0x50;
/// Inside of `HIGH_LO`.
pub mod high_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Upper bound, high.
pub const HIGH_HI: u64 = 0x54;
/// Inside of `HIGH_HI`.
pub mod high_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Kind of values, low.
pub const KIND_LO: u64 = 0x60;
/// Inside of `KIND_LO`.
pub mod kind_lo {
    use super::Field;
    /// 0: 32 bits, 1: 64 bits.
    pub const WIDE: Field = Field::new(0, 1, 0x0);
    /// 0: unsigned, 1: two's complement.
    pub const IS_SIGNED: Field = Field::new(1, 1, 0x0);
    /// 1: write a bitmap, one bit per value.
    pub const FILTER: Field = Field::new(2, 1, 0x0);
    /// 0.
    pub const RESERVED: Field = Field::new(3, 29, 0x0);
}
/// Kind of values, high.
pub const KIND_HI: u64 = 0x64;
/// Inside of `KIND_HI`.
pub mod kind_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bitmap, low.
pub const DST_LO: u64 = 0x70;
/// Inside of `DST_LO`.
pub mod dst_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bitmap, high.
pub const DST_HI: u64 = 0x74;
/// Inside of `DST_HI`.
pub mod dst_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, low.
pub const COUNT_LO: u64 = 0x80;
/// Inside of `COUNT_LO`.
pub mod count_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, high.
pub const COUNT_HI: u64 = 0x84;
/// Inside of `COUNT_HI`.
pub mod count_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
