//! Gatherer of rows. Generated from hw/engine/row_shuffle/regs/row_shuffle_regs.rdl by tools/regs.py: `make regs`.

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
    /// A part of the indexes or rows could not be read, and was not written.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// Stopped before all rows were copied.
    pub const STOPPED: Field = Field::new(1, 1, 0x0);
    /// Nothing was done: unsupported addresses, counts or kind, or overlapping ranges.
    pub const INVALID: Field = Field::new(2, 1, 0x0);
    /// A part of the target could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0x0);
    /// An index is past the table; the rows before it are copied, see Position.
    pub const BAD_INDEX: Field = Field::new(4, 1, 0x0);
}
/// Indexes, low.
pub const INDEX_LO: u64 = 0x20;
/// Inside of `INDEX_LO`.
pub mod index_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Indexes, high.
pub const INDEX_HI: u64 = 0x24;
/// Inside of `INDEX_HI`.
pub mod index_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Source, low.
pub const SRC_LO: u64 = 0x30;
/// Inside of `SRC_LO`.
pub mod src_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Source, high.
pub const SRC_HI: u64 = 0x34;
/// Inside of `SRC_HI`.
pub mod src_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Target, low.
pub const DST_LO: u64 = 0x40;
/// Inside of `DST_LO`.
pub mod dst_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Target, high.
pub const DST_HI: u64 = 0x44;
/// Inside of `DST_HI`.
pub mod dst_hi {
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
/// Row's bytes, low.
pub const ROW_BYTES_LO: u64 = 0x60;
/// Inside of `ROW_BYTES_LO`.
pub mod row_bytes_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Row's bytes, high.
pub const ROW_BYTES_HI: u64 = 0x64;
/// Inside of `ROW_BYTES_HI`.
pub mod row_bytes_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Rows, low.
pub const ROWS_LO: u64 = 0x70;
/// Inside of `ROWS_LO`.
pub mod rows_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Rows, high.
pub const ROWS_HI: u64 = 0x74;
/// Inside of `ROWS_HI`.
pub mod rows_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Kind, low.
pub const KIND_LO: u64 = 0x80;
/// Inside of `KIND_LO`.
pub mod kind_lo {
    use super::Field;
    /// 0: bare indexes; 1, 2, 3: indexes in the sorter's records of 8, 16, 32 bytes.
    pub const RECORDS: Field = Field::new(0, 2, 0x0);
    /// 0.
    pub const RESERVED: Field = Field::new(2, 30, 0x0);
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
