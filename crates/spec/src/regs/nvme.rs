//! NVMe controller. Generated from hw/ip/nvme_ctrl/regs/nvme_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x3010;
/// Controller capabilities.
pub const CAP: u64 = 0x0;
/// Inside of `CAP`.
pub mod cap {
    use super::Field;
    /// Maximum queue entries supported, 0-based.
    pub const MQES: Field = Field::new(0, 16, 0x0);
    /// Contiguous queues required.
    pub const CQR: Field = Field::new(16, 1, 0x1);
    /// Arbitration mechanisms supported besides round robin: bit 17, weighted with urgent priority class.
    pub const AMS: Field = Field::new(17, 2, 0x1);
    /// Worst-case time to become ready, in 500 ms.
    pub const TO: Field = Field::new(24, 8, 0xa);
    /// Doorbell stride: 4 bytes << DSTRD.
    pub const DSTRD: Field = Field::new(32, 4, 0x0);
    /// NVM subsystem reset supported.
    pub const NSSRS: Field = Field::new(36, 1, 0x1);
    /// Command sets supported: bit 0 is the NVM command set.
    pub const CSS: Field = Field::new(37, 8, 0x1);
    /// Boot partition support.
    pub const BPS: Field = Field::new(45, 1, 0x0);
    /// Smallest host page: 4 KiB << MPSMIN.
    pub const MPSMIN: Field = Field::new(48, 4, 0x0);
    /// Largest host page: 4 KiB << MPSMAX.
    pub const MPSMAX: Field = Field::new(52, 4, 0x0);
    /// Persistent memory region supported.
    pub const PMRS: Field = Field::new(56, 1, 0x1);
    /// Controller memory buffer supported.
    pub const CMBS: Field = Field::new(57, 1, 0x0);
}
/// Version.
pub const VS: u64 = 0x8;
/// Inside of `VS`.
pub mod vs {
    use super::Field;
    /// Tertiary.
    pub const TER: Field = Field::new(0, 8, 0x0);
    /// Minor.
    pub const MNR: Field = Field::new(8, 8, 0x4);
    /// Major.
    pub const MJR: Field = Field::new(16, 16, 0x1);
}
/// Interrupt mask set.
pub const INTMS: u64 = 0xc;
/// Inside of `INTMS`.
pub mod intms {
    use super::Field;
    /// Mask, write 1 to set.
    pub const IVMS: Field = Field::new(0, 32, 0x0);
}
/// Interrupt mask clear.
pub const INTMC: u64 = 0x10;
/// Inside of `INTMC`.
pub mod intmc {
    use super::Field;
    /// Mask, write 1 to clear.
    pub const IVMC: Field = Field::new(0, 32, 0x0);
}
/// Controller configuration.
pub const CC: u64 = 0x14;
/// Inside of `CC`.
pub mod cc {
    use super::Field;
    /// Enable.
    pub const EN: Field = Field::new(0, 1, 0x0);
    /// I/O command set selected: 0, NVM.
    pub const CSS: Field = Field::new(4, 3, 0x0);
    /// Memory page size: 0, 4 KiB.
    pub const MPS: Field = Field::new(7, 4, 0x0);
    /// Arbitration mechanism: 0 round robin, 1 weighted round robin with urgent priority class.
    pub const AMS: Field = Field::new(11, 3, 0x0);
    /// Shutdown notification.
    pub const SHN: Field = Field::new(14, 2, 0x0);
    /// I/O submission queue entry size, log2: 6.
    pub const IOSQES: Field = Field::new(16, 4, 0x0);
    /// I/O completion queue entry size, log2: 4.
    pub const IOCQES: Field = Field::new(20, 4, 0x0);
}
/// Controller status.
pub const CSTS: u64 = 0x1c;
/// Inside of `CSTS`.
pub mod csts {
    use super::Field;
    /// Ready.
    pub const RDY: Field = Field::new(0, 1, 0x0);
    /// Controller fatal status.
    pub const CFS: Field = Field::new(1, 1, 0x0);
    /// Shutdown status: 0 normal, 1 in progress, 2 complete.
    pub const SHST: Field = Field::new(2, 2, 0x0);
    /// NVM subsystem reset occurred, write 1 to clear.
    pub const NSSRO: Field = Field::new(4, 1, 0x0);
    /// Processing paused.
    pub const PP: Field = Field::new(5, 1, 0x0);
}
/// NVM subsystem reset.
pub const NSSR: u64 = 0x20;
/// Inside of `NSSR`.
pub mod nssr {
    use super::Field;
    /// 4E564D65h ("NVMe") resets the subsystem; reads as 0.
    pub const NSSRC: Field = Field::new(0, 32, 0x0);
}
/// Admin queue attributes.
pub const AQA: u64 = 0x24;
/// Inside of `AQA`.
pub mod aqa {
    use super::Field;
    /// Admin submission queue size, 0-based.
    pub const ASQS: Field = Field::new(0, 12, 0x0);
    /// Admin completion queue size, 0-based.
    pub const ACQS: Field = Field::new(16, 12, 0x0);
}
/// Admin submission queue base address.
pub const ASQ: u64 = 0x28;
/// Inside of `ASQ`.
pub mod asq {
    use super::Field;
    /// Address bits 31:12.
    pub const ASQB_LOW: Field = Field::new(12, 20, 0x0);
    /// Address bits 63:32.
    pub const ASQB_HIGH: Field = Field::new(32, 32, 0x0);
}
/// Admin completion queue base address.
pub const ACQ: u64 = 0x30;
/// Inside of `ACQ`.
pub mod acq {
    use super::Field;
    /// Address bits 31:12.
    pub const ACQB_LOW: Field = Field::new(12, 20, 0x0);
    /// Address bits 63:32.
    pub const ACQB_HIGH: Field = Field::new(32, 32, 0x0);
}
/// Persistent memory region capabilities.
pub const PMRCAP: u64 = 0xe00;
/// Inside of `PMRCAP`.
pub mod pmrcap {
    use super::Field;
    /// Data of Reads and Compares may lie in it.
    pub const RDS: Field = Field::new(3, 1, 0x0);
    /// Data of Writes may lie in it.
    pub const WDS: Field = Field::new(4, 1, 0x0);
    /// BAR.
    pub const BIR: Field = Field::new(5, 3, 0x2);
    /// Unit of PMRTO: 500 ms.
    pub const PMRTU: Field = Field::new(8, 2, 0x0);
    /// Write barriers; bit 0: a read of the region ends when all writes before it are persistent.
    pub const PMRWBM: Field = Field::new(10, 4, 0x1);
    /// Time to become ready or not ready.
    pub const PMRTO: Field = Field::new(16, 8, 0x1);
    /// Controller memory space supported.
    pub const CMSS: Field = Field::new(24, 1, 0x0);
}
/// Persistent memory region control.
pub const PMRCTL: u64 = 0xe04;
/// Inside of `PMRCTL`.
pub mod pmrctl {
    use super::Field;
    /// Enable.
    pub const EN: Field = Field::new(0, 1, 0x0);
}
/// Persistent memory region status.
pub const PMRSTS: u64 = 0xe08;
/// Inside of `PMRSTS`.
pub mod pmrsts {
    use super::Field;
    /// Error.
    pub const ERR: Field = Field::new(0, 8, 0x0);
    /// Not ready: not enabled.
    pub const NRDY: Field = Field::new(8, 1, 0x0);
    /// Health: 0, normal.
    pub const HSTS: Field = Field::new(9, 3, 0x0);
}
/// Persistent memory region elasticity buffer size.
pub const PMREBS: u64 = 0xe0c;
/// Inside of `PMREBS`.
pub mod pmrebs {
    use super::Field;
    /// None is reported.
    pub const PMREBS: Field = Field::new(0, 32, 0x0);
}
/// Persistent memory region sustained write throughput.
pub const PMRSWTP: u64 = 0xe10;
/// Inside of `PMRSWTP`.
pub mod pmrswtp {
    use super::Field;
    /// None is reported.
    pub const PMRSWTP: Field = Field::new(0, 32, 0x0);
}
/// Doorbells.
pub const DOORBELLS: u64 = 0x1000;
/// Inside of `DOORBELLS`.
pub mod doorbells {
    use super::Field;
    /// queue.
    pub const QUEUE: u64 = 0x0;
    /// From one to the next: queue.
    pub const QUEUE_STRIDE: u64 = 0x8;
    /// How many there are: queue.
    pub const QUEUE_COUNT: u64 = 512;
    /// Inside of `QUEUE`.
    pub mod queue {
        use super::Field;
        /// Submission queue tail.
        pub const SQ: u64 = 0x0;
        /// Inside of `SQ`.
        pub mod sq {
            use super::Field;
            /// New tail.
            pub const TAIL: Field = Field::new(0, 16, 0x0);
        }
        /// Completion queue head.
        pub const CQ: u64 = 0x4;
        /// Inside of `CQ`.
        pub mod cq {
            use super::Field;
            /// New head.
            pub const HEAD: Field = Field::new(0, 16, 0x0);
        }
    }
}
/// MSI-X table.
pub const MSIX_TABLE: u64 = 0x2000;
/// Inside of `MSIX_TABLE`.
pub mod msix_table {
    use super::Field;
    /// vector.
    pub const VECTOR: u64 = 0x0;
    /// From one to the next: vector.
    pub const VECTOR_STRIDE: u64 = 0x10;
    /// How many there are: vector.
    pub const VECTOR_COUNT: u64 = 256;
    /// Inside of `VECTOR`.
    pub mod vector {
        use super::Field;
        /// Message address.
        pub const ADDRESS_LOW: u64 = 0x0;
        /// Inside of `ADDRESS_LOW`.
        pub mod address_low {
            use super::Field;
            /// address.
            pub const ADDRESS: Field = Field::new(2, 30, 0x0);
        }
        /// Message upper address.
        pub const ADDRESS_HIGH: u64 = 0x4;
        /// Inside of `ADDRESS_HIGH`.
        pub mod address_high {
            use super::Field;
            /// address.
            pub const ADDRESS: Field = Field::new(0, 32, 0x0);
        }
        /// Message data.
        pub const DATA: u64 = 0x8;
        /// Inside of `DATA`.
        pub mod data {
            use super::Field;
            /// data.
            pub const DATA: Field = Field::new(0, 32, 0x0);
        }
        /// Vector control.
        pub const CONTROL: u64 = 0xc;
        /// Inside of `CONTROL`.
        pub mod control {
            use super::Field;
            /// Masked.
            pub const MASK: Field = Field::new(0, 1, 0x1);
        }
    }
}
/// MSI-X pending bits.
pub const MSIX_PENDING: u64 = 0x3000;
/// Inside of `MSIX_PENDING`.
pub mod msix_pending {
    use super::Field;
    /// word.
    pub const WORD: u64 = 0x0;
    /// From one to the next: word.
    pub const WORD_STRIDE: u64 = 0x4;
    /// How many there are: word.
    pub const WORD_COUNT: u64 = 4;
    /// Inside of `WORD`.
    pub mod word {
        use super::Field;
        /// Pending, a bit a vector.
        pub const PENDING: Field = Field::new(0, 32, 0x0);
    }
}
