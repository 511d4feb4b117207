//! Sorter. Generated from hw/engine/sorter/regs/sorter_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x78;
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
    /// A part of source or scratch could not be read.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// Stopped before everything was sorted.
    pub const STOPPED: Field = Field::new(1, 1, 0x0);
    /// Nothing was done: unsupported addresses, count or kind, or overlapping ranges.
    pub const INVALID: Field = Field::new(2, 1, 0x0);
    /// A part of target or scratch could not be written.
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
/// Target, low.
pub const DST_LO: u64 = 0x30;
/// Inside of `DST_LO`.
pub mod dst_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Target, high.
pub const DST_HI: u64 = 0x34;
/// Inside of `DST_HI`.
pub mod dst_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Scratch, low.
pub const TMP_LO: u64 = 0x40;
/// Inside of `TMP_LO`.
pub mod tmp_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Scratch, high.
pub const TMP_HI: u64 = 0x44;
/// Inside of `TMP_HI`.
pub mod tmp_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, low.
pub const COUNT_LO: u64 = 0x50;
/// Inside of `COUNT_LO`.
pub mod count_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, high.
pub const COUNT_HI: u64 = 0x54;
/// Inside of `COUNT_HI`.
pub mod count_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Kind, low.
pub const KIND_LO: u64 = 0x60;
/// Inside of `KIND_LO`.
pub mod kind_lo {
    use super::Field;
    /// Keys of 0: 32, 1: 64, 2: 128 bits.
    pub const WIDTH: Field = Field::new(0, 2, 0x0);
    /// 0: unsigned, 1: two's complement, 2: IEEE 754 totalOrder.
    pub const ORDER: Field = Field::new(2, 2, 0x0);
    /// 1: descending.
    pub const DESCENDING: Field = Field::new(4, 1, 0x0);
    /// 1: write only indexes of 4 bytes.
    pub const INDEXES: Field = Field::new(5, 1, 0x0);
    /// 1: passes after the first one merge two runs at a time, for comparison.
    pub const PAIRS: Field = Field::new(6, 1, 0x0);
    /// 0.
    pub const RESERVED: Field = Field::new(7, 25, 0x0);
}
/// Kind, high.
pub const KIND_HI: u64 = 0x64;
/// Inside of `KIND_HI`.
pub mod kind_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Passes, low.
pub const PASSES_LO: u64 = 0x70;
/// Inside of `PASSES_LO`.
pub mod passes_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Passes, high.
pub const PASSES_HI: u64 = 0x74;
/// Inside of `PASSES_HI`.
pub mod passes_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
