//! NVM timing emulator. Generated from hw/ip/nvm_delay/regs/nvm_delay_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0xb00;
/// Identification.
pub const ID: u64 = 0x0;
/// Inside of `ID`.
pub mod id {
    use super::Field;
    /// 0x4E56_444C, "NVDL".
    pub const MAGIC: Field = Field::new(0, 32, 0x4e56444c);
}
/// Version of this block.
pub const VERSION: u64 = 0x4;
/// Inside of `VERSION`.
pub mod version {
    use super::Field;
    /// Minor: compatible additions.
    pub const MINOR: Field = Field::new(0, 16, 0x1);
    /// Major: incompatible changes.
    pub const MAJOR: Field = Field::new(16, 16, 0x1);
}
/// Capabilities 0.
pub const CAP0: u64 = 0x8;
/// Inside of `CAP0`.
pub mod cap0 {
    use super::Field;
    /// Transactions in flight, reads.
    pub const READ_SLOTS: Field = Field::new(0, 8, 0x0);
    /// Transactions in flight, writes; 255: at least as many.
    pub const WRITE_SLOTS: Field = Field::new(8, 8, 0x0);
    /// Fractional bits of a time.
    pub const FRAC_BITS: Field = Field::new(16, 4, 0x0);
    /// Integer bits of a time.
    pub const INT_BITS: Field = Field::new(20, 6, 0x0);
    /// Address regions.
    pub const REGIONS: Field = Field::new(28, 4, 0x0);
}
/// Capabilities 1.
pub const CAP1: u64 = 0xc;
/// Inside of `CAP1`.
pub mod cap1 {
    use super::Field;
    /// Beats of the read buffer.
    pub const BUFFER_BEATS: Field = Field::new(0, 16, 0x0);
    /// Bytes of a beat.
    pub const BEAT_BYTES: Field = Field::new(16, 8, 0x0);
    /// Histogram buckets of a direction.
    pub const BUCKETS: Field = Field::new(24, 8, 0x0);
}
/// Control (shadow).
pub const CONTROL: u64 = 0x10;
/// Inside of `CONTROL`.
pub mod control {
    use super::Field;
    /// 1: emulate; 0: off, a register slice without delays and caps.
    pub const ENABLE: Field = Field::new(0, 1, 0x0);
    /// Bit r enables address region r.
    pub const REGION_ENABLE: Field = Field::new(4, 4, 0x0);
}
/// Command.
pub const COMMAND: u64 = 0x14;
/// Inside of `COMMAND`.
pub mod command {
    use super::Field;
    /// All shadow registers take effect.
    pub const COMMIT: Field = Field::new(0, 1, 0x0);
    /// Take a snapshot of all counters at 0x800.
    pub const SNAPSHOT: Field = Field::new(1, 1, 0x0);
    /// Set all live counters to their initial values, after the snapshot if both are written.
    pub const CLEAR: Field = Field::new(2, 1, 0x0);
}
/// Status.
pub const STATUS: u64 = 0x18;
/// Inside of `STATUS`.
pub mod status {
    use super::Field;
    /// Commits since reset, modulo 256.
    pub const COMMITS: Field = Field::new(0, 8, 0x0);
    /// Emulation is on, as last committed.
    pub const ACTIVE: Field = Field::new(8, 1, 0x0);
    /// Reads in flight.
    pub const READS: Field = Field::new(16, 8, 0x0);
    /// Writes in flight; 255: at least as many.
    pub const WRITES: Field = Field::new(24, 8, 0x0);
}
/// Read bandwidth cap (shadow).
pub const READ_CAP: u64 = 0x20;
/// Inside of `READ_CAP`.
pub mod read_cap {
    use super::Field;
    /// Bytes per cycle, Q8.16; 0: none.
    pub const RATE: Field = Field::new(0, 24, 0x0);
}
/// Write bandwidth cap (shadow).
pub const WRITE_CAP: u64 = 0x24;
/// Inside of `WRITE_CAP`.
pub mod write_cap {
    use super::Field;
    /// Bytes per cycle, Q8.16; 0: none.
    pub const RATE: Field = Field::new(0, 24, 0x0);
}
/// Times of a region, or of all addresses outside of them, or what is taken off all of those (shadow).
pub const CALIBRATION: u64 = 0x30;
/// Inside of `CALIBRATION`.
pub mod calibration {
    use super::Field;
    /// read_base.
    pub const READ_BASE: u64 = 0x0;
    /// Inside of `READ_BASE`.
    pub mod read_base {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// read_beat.
    pub const READ_BEAT: u64 = 0x4;
    /// Inside of `READ_BEAT`.
    pub mod read_beat {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// write_base.
    pub const WRITE_BASE: u64 = 0x8;
    /// Inside of `WRITE_BASE`.
    pub mod write_base {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// write_beat.
    pub const WRITE_BEAT: u64 = 0xc;
    /// Inside of `WRITE_BEAT`.
    pub mod write_beat {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
}
/// Times of a region, or of all addresses outside of them, or what is taken off all of those (shadow).
pub const TIMING: u64 = 0x40;
/// Inside of `TIMING`.
pub mod timing {
    use super::Field;
    /// read_base.
    pub const READ_BASE: u64 = 0x0;
    /// Inside of `READ_BASE`.
    pub mod read_base {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// read_beat.
    pub const READ_BEAT: u64 = 0x4;
    /// Inside of `READ_BEAT`.
    pub mod read_beat {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// write_base.
    pub const WRITE_BASE: u64 = 0x8;
    /// Inside of `WRITE_BASE`.
    pub mod write_base {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
    /// write_beat.
    pub const WRITE_BEAT: u64 = 0xc;
    /// Inside of `WRITE_BEAT`.
    pub mod write_beat {
        use super::Field;
        /// Cycles, Q20.12.
        pub const CYCLES: Field = Field::new(0, 32, 0x0);
    }
}
/// Address region (shadow).
pub const REGION: u64 = 0x80;
/// From one to the next: Address region (shadow).
pub const REGION_STRIDE: u64 = 0x20;
/// How many there are: Address region (shadow).
pub const REGION_COUNT: u64 = 4;
/// Inside of `REGION`.
pub mod region {
    use super::Field;
    /// first.
    pub const FIRST: u64 = 0x0;
    /// Inside of `FIRST`.
    pub mod first {
        use super::Field;
        /// Byte address divided by 4096.
        pub const PAGE: Field = Field::new(0, 32, 0x0);
    }
    /// last.
    pub const LAST: u64 = 0x4;
    /// Inside of `LAST`.
    pub mod last {
        use super::Field;
        /// Byte address divided by 4096.
        pub const PAGE: Field = Field::new(0, 32, 0x0);
    }
    /// Times of a region, or of all addresses outside of them, or what is taken off all of those (shadow).
    pub const TIMING: u64 = 0x10;
    /// Inside of `TIMING`.
    pub mod timing {
        use super::Field;
        /// read_base.
        pub const READ_BASE: u64 = 0x0;
        /// Inside of `READ_BASE`.
        pub mod read_base {
            use super::Field;
            /// Cycles, Q20.12.
            pub const CYCLES: Field = Field::new(0, 32, 0x0);
        }
        /// read_beat.
        pub const READ_BEAT: u64 = 0x4;
        /// Inside of `READ_BEAT`.
        pub mod read_beat {
            use super::Field;
            /// Cycles, Q20.12.
            pub const CYCLES: Field = Field::new(0, 32, 0x0);
        }
        /// write_base.
        pub const WRITE_BASE: u64 = 0x8;
        /// Inside of `WRITE_BASE`.
        pub mod write_base {
            use super::Field;
            /// Cycles, Q20.12.
            pub const CYCLES: Field = Field::new(0, 32, 0x0);
        }
        /// write_beat.
        pub const WRITE_BEAT: u64 = 0xc;
        /// Inside of `WRITE_BEAT`.
        pub mod write_beat {
            use super::Field;
            /// Cycles, Q20.12.
            pub const CYCLES: Field = Field::new(0, 32, 0x0);
        }
    }
}
/// Counters as of the last snapshot.
pub const COUNTERS: u64 = 0x800;
/// Inside of `COUNTERS`.
pub mod counters {
    use super::Field;
    /// read.
    pub const READ: u64 = 0x0;
    /// Inside of `READ`.
    pub mod read {
        use super::Field;
        /// Transactions, low.
        pub const TRANSACTIONS_LO: u64 = 0x0;
        /// Inside of `TRANSACTIONS_LO`.
        pub mod transactions_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Transactions, high.
        pub const TRANSACTIONS_HI: u64 = 0x4;
        /// Inside of `TRANSACTIONS_HI`.
        pub mod transactions_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Beats, low.
        pub const BEATS_LO: u64 = 0x8;
        /// Inside of `BEATS_LO`.
        pub mod beats_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Beats, high.
        pub const BEATS_HI: u64 = 0xc;
        /// Inside of `BEATS_HI`.
        pub mod beats_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Late responses, low.
        pub const LATE_LO: u64 = 0x10;
        /// Inside of `LATE_LO`.
        pub mod late_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Late responses, high.
        pub const LATE_HI: u64 = 0x14;
        /// Inside of `LATE_HI`.
        pub mod late_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Sum of latencies in cycles, low.
        pub const SUM_LO: u64 = 0x18;
        /// Inside of `SUM_LO`.
        pub mod sum_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Sum of latencies in cycles, high.
        pub const SUM_HI: u64 = 0x1c;
        /// Inside of `SUM_HI`.
        pub mod sum_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Smallest latency in cycles, all ones if there was none.
        pub const MIN: u64 = 0x20;
        /// Inside of `MIN`.
        pub mod min {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Largest latency in cycles.
        pub const MAX: u64 = 0x24;
        /// Inside of `MAX`.
        pub mod max {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
    }
    /// write.
    pub const WRITE: u64 = 0x40;
    /// Inside of `WRITE`.
    pub mod write {
        use super::Field;
        /// Transactions, low.
        pub const TRANSACTIONS_LO: u64 = 0x0;
        /// Inside of `TRANSACTIONS_LO`.
        pub mod transactions_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Transactions, high.
        pub const TRANSACTIONS_HI: u64 = 0x4;
        /// Inside of `TRANSACTIONS_HI`.
        pub mod transactions_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Beats, low.
        pub const BEATS_LO: u64 = 0x8;
        /// Inside of `BEATS_LO`.
        pub mod beats_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Beats, high.
        pub const BEATS_HI: u64 = 0xc;
        /// Inside of `BEATS_HI`.
        pub mod beats_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Late responses, low.
        pub const LATE_LO: u64 = 0x10;
        /// Inside of `LATE_LO`.
        pub mod late_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Late responses, high.
        pub const LATE_HI: u64 = 0x14;
        /// Inside of `LATE_HI`.
        pub mod late_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 16, 0x0);
        }
        /// Sum of latencies in cycles, low.
        pub const SUM_LO: u64 = 0x18;
        /// Inside of `SUM_LO`.
        pub mod sum_lo {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Sum of latencies in cycles, high.
        pub const SUM_HI: u64 = 0x1c;
        /// Inside of `SUM_HI`.
        pub mod sum_hi {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Smallest latency in cycles, all ones if there was none.
        pub const MIN: u64 = 0x20;
        /// Inside of `MIN`.
        pub mod min {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
        /// Largest latency in cycles.
        pub const MAX: u64 = 0x24;
        /// Inside of `MAX`.
        pub mod max {
            use super::Field;
            /// value.
            pub const VALUE: Field = Field::new(0, 32, 0x0);
        }
    }
    /// Read transactions in a latency bucket.
    pub const READ_BUCKET: u64 = 0x100;
    /// From one to the next: Read transactions in a latency bucket.
    pub const READ_BUCKET_STRIDE: u64 = 0x4;
    /// How many there are: Read transactions in a latency bucket.
    pub const READ_BUCKET_COUNT: u64 = 64;
    /// Inside of `READ_BUCKET`.
    pub mod read_bucket {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
    /// Write transactions in a latency bucket.
    pub const WRITE_BUCKET: u64 = 0x200;
    /// From one to the next: Write transactions in a latency bucket.
    pub const WRITE_BUCKET_STRIDE: u64 = 0x4;
    /// How many there are: Write transactions in a latency bucket.
    pub const WRITE_BUCKET_COUNT: u64 = 64;
    /// Inside of `WRITE_BUCKET`.
    pub mod write_bucket {
        use super::Field;
        /// value.
        pub const VALUE: Field = Field::new(0, 32, 0x0);
    }
}
