//! Registers of an engine. Generated from hw/ip/engine_launch/regs/engine_map.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x90;
/// Control.
pub const CONTROL: u64 = 0x0;
/// Inside of `CONTROL`.
pub mod control {
    use super::Field;
    /// Write 1 to start a job; ignored while the engine is busy.
    pub const START: Field = Field::new(0, 1, 0x0);
    /// Write 1 to end the job early; with start, the job that it starts.
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
    /// Result of the job; each bit is an error, and 0 is success.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Arguments, 64 bits each.
pub const ARGUMENTS: u64 = 0x20;
/// From one to the next: Arguments, 64 bits each.
pub const ARGUMENTS_STRIDE: u64 = 0x10;
/// How many there are: Arguments, 64 bits each.
pub const ARGUMENTS_COUNT: u64 = 7;
/// Inside of `ARGUMENTS`.
pub mod arguments {
    use super::Field;
    /// Low word.
    pub const LOW: u64 = 0x0;
    /// Inside of `LOW`.
    pub mod low {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// High word.
    pub const HIGH: u64 = 0x4;
    /// Inside of `HIGH`.
    pub mod high {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
}
