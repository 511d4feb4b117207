//! Copy engine. Generated from hw/engine/copy/regs/copy_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x48;
/// Control.
pub const CONTROL: u64 = 0x0;
/// Inside of `CONTROL`.
pub mod control {
    use super::Field;
    /// Write 1 to start a job; ignored while the engine is busy.
    pub const START: Field = Field::new(0, 1, 0x0);
    /// Write 1 to end the job early; segments in flight are completed.
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
    /// A part of the source could not be read, and was not written.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(1, 1, 0x0);
    /// Stopped before all was copied.
    pub const STOPPED: Field = Field::new(2, 1, 0x0);
    /// Nothing was done: a range wraps at 2^64, has no bytes, or is longer than the PM window.
    pub const INVALID: Field = Field::new(3, 1, 0x0);
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
/// Bytes, low.
pub const BYTES_LO: u64 = 0x40;
/// Inside of `BYTES_LO`.
pub mod bytes_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Bytes, high.
pub const BYTES_HI: u64 = 0x44;
/// Inside of `BYTES_HI`.
pub mod bytes_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
