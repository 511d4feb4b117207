//! Pipeline. Generated from hw/engine/pipeline/regs/pipeline_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x180;
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
    /// The list, or a part of an entry's input, could not be read.
    pub const READ_ERROR: Field = Field::new(0, 1, 0x0);
    /// Stopped before all entries were done.
    pub const STOPPED: Field = Field::new(1, 1, 0x0);
    /// Nothing was done: unsupported addresses, count or kind.
    pub const INVALID: Field = Field::new(2, 1, 0x0);
    /// Reports, or a part of an entry's output, could not be written.
    pub const WRITE_ERROR: Field = Field::new(3, 1, 0x0);
    /// An entry is invalid: unknown opcode, reserved bits, or arguments that its engine rejects.
    pub const BAD_ENTRY: Field = Field::new(4, 1, 0x0);
    /// An entry's input is invalid: a key, an index, a run.
    pub const BAD_DATA: Field = Field::new(5, 1, 0x0);
}
/// List, low.
pub const LIST_LO: u64 = 0x20;
/// Inside of `LIST_LO`.
pub mod list_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// List, high.
pub const LIST_HI: u64 = 0x24;
/// Inside of `LIST_HI`.
pub mod list_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, low.
pub const COUNT_LO: u64 = 0x30;
/// Inside of `COUNT_LO`.
pub mod count_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Count, high.
pub const COUNT_HI: u64 = 0x34;
/// Inside of `COUNT_HI`.
pub mod count_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Base, low.
pub const BASE_LO: u64 = 0x40;
/// Inside of `BASE_LO`.
pub mod base_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Base, high.
pub const BASE_HI: u64 = 0x44;
/// Inside of `BASE_HI`.
pub mod base_hi {
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
/// Kind, low.
pub const KIND_LO: u64 = 0x60;
/// Inside of `KIND_LO`.
pub mod kind_lo {
    use super::Field;
    /// 1: write a report of each entry after the list.
    pub const REPORT: Field = Field::new(0, 1, 0x0);
    /// 0.
    pub const RESERVED: Field = Field::new(1, 31, 0x0);
}
/// Kind, high.
pub const KIND_HI: u64 = 0x64;
/// Inside of `KIND_HI`.
pub mod kind_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Done, low.
pub const DONE_LO: u64 = 0x70;
/// Inside of `DONE_LO`.
pub mod done_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Done, high.
pub const DONE_HI: u64 = 0x74;
/// Inside of `DONE_HI`.
pub mod done_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Progress.
pub const PROGRESS: u64 = 0x100;
/// Inside of `PROGRESS`.
pub mod progress {
    use super::Field;
    /// Current or last entry, from 0.
    pub const ENTRY: Field = Field::new(0, 4, 0x0);
    /// A list is in progress.
    pub const RUNNING: Field = Field::new(8, 1, 0x0);
}
/// Items, low.
pub const ITEMS_LO: u64 = 0x104;
/// Inside of `ITEMS_LO`.
pub mod items_lo {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Items, high.
pub const ITEMS_HI: u64 = 0x108;
/// Inside of `ITEMS_HI`.
pub mod items_hi {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Cycles.
pub const CYCLES: u64 = 0x140;
/// From one to the next: Cycles.
pub const CYCLES_STRIDE: u64 = 0x4;
/// How many there are: Cycles.
pub const CYCLES_COUNT: u64 = 16;
/// Inside of `CYCLES`.
pub mod cycles {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
