//! Quality of service. Generated from hw/ip/qos/regs/qos_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x80;
/// pm.
pub const PM: u64 = 0x0;
/// Inside of `PM`.
pub mod pm {
    use super::Field;
    /// Read credits.
    pub const READS: u64 = 0x0;
    /// Inside of `READS`.
    pub mod reads {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
    /// Write credits.
    pub const WRITES: u64 = 0x4;
    /// Inside of `WRITES`.
    pub mod writes {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
    /// Weight.
    pub const WEIGHT: u64 = 0x8;
    /// Inside of `WEIGHT`.
    pub mod weight {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 8, 0x0);
    }
    /// Credits beside the controller.
    pub const BESIDE: u64 = 0xc;
    /// Inside of `BESIDE`.
    pub mod beside {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
}
/// nvme.
pub const NVME: u64 = 0x10;
/// Inside of `NVME`.
pub mod nvme {
    use super::Field;
    /// Read credits.
    pub const READS: u64 = 0x0;
    /// Inside of `READS`.
    pub mod reads {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
    /// Write credits.
    pub const WRITES: u64 = 0x4;
    /// Inside of `WRITES`.
    pub mod writes {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
    /// Weight.
    pub const WEIGHT: u64 = 0x8;
    /// Inside of `WEIGHT`.
    pub mod weight {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 8, 0x80);
    }
    /// Credits beside the controller.
    pub const BESIDE: u64 = 0xc;
    /// Inside of `BESIDE`.
    pub mod beside {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x0);
    }
}
/// engine.
pub const ENGINE: u64 = 0x20;
/// From one to the next: engine.
pub const ENGINE_STRIDE: u64 = 0x10;
/// How many there are: engine.
pub const ENGINE_COUNT: u64 = 6;
/// Inside of `ENGINE`.
pub mod engine {
    use super::Field;
    /// Read credits.
    pub const READS: u64 = 0x0;
    /// Inside of `READS`.
    pub mod reads {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x20);
    }
    /// Write credits.
    pub const WRITES: u64 = 0x4;
    /// Inside of `WRITES`.
    pub mod writes {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x20);
    }
    /// Weight.
    pub const WEIGHT: u64 = 0x8;
    /// Inside of `WEIGHT`.
    pub mod weight {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 8, 0x20);
    }
    /// Credits beside the controller.
    pub const BESIDE: u64 = 0xc;
    /// Inside of `BESIDE`.
    pub mod beside {
        use super::Field;
        /// lines.
        pub const LINES: Field = Field::new(0, 10, 0x10);
    }
}
