//! Command page. Generated from hw/ip/command_page/regs/command_page_map.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x1000;
/// Line.
pub const LINE: u64 = 0x0;
/// From one to the next: Line.
pub const LINE_STRIDE: u64 = 0x40;
/// How many there are: Line.
pub const LINE_COUNT: u64 = 64;
/// Inside of `LINE`.
pub mod line {
    use super::Field;
    /// State.
    pub const STATE: u64 = 0x0;
    /// Inside of `STATE`.
    pub mod state {
        use super::Field;
        /// Its command has not ended: writes are dropped.
        pub const BUSY: Field = Field::new(0, 1, 0x0);
        /// The last command has ended.
        pub const DONE: Field = Field::new(1, 1, 0x0);
    }
    /// Return value of that command.
    pub const RESULT: u64 = 0x4;
    /// Inside of `RESULT`.
    pub mod result {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Further output of that command, low.
    pub const VALUE_LO: u64 = 0x8;
    /// Inside of `VALUE_LO`.
    pub mod value_lo {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Further output of that command, high.
    pub const VALUE_HI: u64 = 0xc;
    /// Inside of `VALUE_HI`.
    pub mod value_hi {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Commands accepted, of all lines.
    pub const ACCEPTED: u64 = 0x10;
    /// Inside of `ACCEPTED`.
    pub mod accepted {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Commands ended, of all lines.
    pub const ENDED: u64 = 0x14;
    /// Inside of `ENDED`.
    pub mod ended {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Writes dropped, of all lines.
    pub const DROPPED: u64 = 0x18;
    /// Inside of `DROPPED`.
    pub mod dropped {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Busy lines, 0 to 31.
    pub const BUSY_LO: u64 = 0x20;
    /// Inside of `BUSY_LO`.
    pub mod busy_lo {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Busy lines, 32 to 63.
    pub const BUSY_HI: u64 = 0x24;
    /// Inside of `BUSY_HI`.
    pub mod busy_hi {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Succeeded lines, 0 to 31.
    pub const SUCCEEDED_LO: u64 = 0x28;
    /// Inside of `SUCCEEDED_LO`.
    pub mod succeeded_lo {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Succeeded lines, 32 to 63.
    pub const SUCCEEDED_HI: u64 = 0x2c;
    /// Inside of `SUCCEEDED_HI`.
    pub mod succeeded_hi {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
}
