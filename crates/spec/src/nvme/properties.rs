// SPDX-License-Identifier: Apache-2.0

//! Controller properties: the registers in BAR0.

use crate::regs::nvme;
use crate::regs::nvme::{aqa as aqa_fields, cap, cc, csts};

pub use crate::regs::nvme::{
    ACQ, AQA, ASQ, CAP, CC, CSTS, DOORBELLS, INTMC, INTMS, MSIX_PENDING, MSIX_TABLE, NSSR, VS,
};

/// Bytes of an entry of the MSI-X table.
pub const MSIX_ENTRY: u64 = nvme::msix_table::VECTOR_STRIDE;

/// Controller Capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u64);

impl Cap {
    /// Maximum entries of an I/O queue (MQES plus one).
    pub fn max_queue_entries(self) -> u32 {
        cap::MQES.get(self.0) as u32 + 1
    }
    /// Contiguous Queues Required (CQR).
    pub fn contiguous_queues_required(self) -> bool {
        cap::CQR.is_set(self.0)
    }
    /// Weighted round robin with urgent priority class can be selected (AMS bit 17).
    pub fn weighted_round_robin(self) -> bool {
        cap::AMS.get(self.0) & 1 == 1
    }
    /// Worst-case time to become ready, in units of 500 ms (TO).
    pub fn timeout_500ms(self) -> u32 {
        cap::TO.get(self.0) as u32
    }
    /// Bytes between doorbells (2^(2 + DSTRD)).
    pub fn doorbell_stride(self) -> u64 {
        4 << cap::DSTRD.get(self.0)
    }
    /// The NVM command set is supported (CSS bit 0).
    pub fn nvm_command_set(self) -> bool {
        cap::CSS.get(self.0) & 1 == 1
    }
    /// Smallest memory page in bytes (MPSMIN).
    pub fn min_page(self) -> u64 {
        4096 << cap::MPSMIN.get(self.0)
    }
    /// Largest memory page in bytes (MPSMAX).
    pub fn max_page(self) -> u64 {
        4096 << cap::MPSMAX.get(self.0)
    }
    /// Persistent Memory Region Supported (PMRS).
    pub fn persistent_memory_region(self) -> bool {
        cap::PMRS.is_set(self.0)
    }
}

/// Shutdown Notification (CC.SHN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownNotification {
    /// 00b.
    None = 0,
    /// 01b.
    Normal = 1,
    /// 10b.
    Abrupt = 2,
}

/// Controller Configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cc(pub u32);

impl Cc {
    /// Enable (EN).
    pub const EN: u32 = cc::EN.mask() as u32;

    /// 4 KiB pages, NVM command set, round robin, entry sizes of 64 and 16 bytes; not enabled.
    pub const DEFAULT: Cc = Cc((cc::IOCQES.of(4) | cc::IOSQES.of(6)) as u32);

    /// The same with EN as given.
    pub fn with_enable(self, on: bool) -> Cc {
        self.put(cc::EN, on.into())
    }
    /// The same with AMS for weighted round robin with urgent priority class, or for plain round
    /// robin.
    pub fn with_weighted_round_robin(self, on: bool) -> Cc {
        self.put(cc::AMS, on.into())
    }
    /// The same with SHN as given.
    pub fn with_shutdown(self, shn: ShutdownNotification) -> Cc {
        self.put(cc::SHN, shn as u64)
    }
    fn put(self, field: crate::regs::Field, value: u64) -> Cc {
        Cc(field.put(self.0.into(), value) as u32)
    }
    /// EN.
    pub fn enabled(self) -> bool {
        self.0 & Cc::EN != 0
    }
}

/// Controller Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csts(pub u32);

impl Csts {
    /// Ready (RDY).
    pub fn ready(self) -> bool {
        csts::RDY.is_set(self.0.into())
    }
    /// Controller Fatal Status (CFS).
    pub fn fatal(self) -> bool {
        csts::CFS.is_set(self.0.into())
    }
    /// Shutdown processing complete (SHST 10b).
    pub fn shutdown_complete(self) -> bool {
        csts::SHST.get(self.0.into()) == 2
    }
    /// All ones: no device answers.
    pub fn device_removed(self) -> bool {
        self.0 == u32::MAX
    }
}

/// Admin Queue Attributes for queues of the given entries (2 to 4096).
pub fn aqa(sq_entries: u32, cq_entries: u32) -> u32 {
    let (sq, cq) = (sq_entries.wrapping_sub(1), cq_entries.wrapping_sub(1));
    (aqa_fields::ASQS.of(sq.into()) | aqa_fields::ACQS.of(cq.into())) as u32
}

/// Offset of the tail doorbell of submission queue `qid`.
pub fn sq_doorbell(qid: u16, stride: u64) -> u64 {
    DOORBELLS + 2 * u64::from(qid) * stride
}

/// Offset of the head doorbell of completion queue `qid`.
pub fn cq_doorbell(qid: u16, stride: u64) -> u64 {
    DOORBELLS + (2 * u64::from(qid) + 1) * stride
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_cap_fields() {
        let cap = Cap(1 << 37 | 2 << 24 | 1 << 16 | 1023);
        assert_eq!(cap.max_queue_entries(), 1024);
        assert!(cap.contiguous_queues_required() && cap.nvm_command_set());
        assert_eq!((cap.timeout_500ms(), cap.doorbell_stride()), (2, 4));
        assert_eq!((cap.min_page(), cap.max_page()), (4096, 4096));
    }

    #[test]
    fn properties_cc_and_csts_fields() {
        assert_eq!(Cc::DEFAULT.with_enable(true).0, 0x0046_0001);
        let off = Cc(0x0046_0001).with_shutdown(ShutdownNotification::Normal);
        assert_eq!(off.0, 0x0046_4001);
        assert!(off.enabled());
        assert!(Csts(0b1001).shutdown_complete() && Csts(1).ready() && Csts(2).fatal());
        assert!(Csts(u32::MAX).device_removed());
    }

    #[test]
    fn properties_doorbells_and_admin_queues() {
        assert_eq!((sq_doorbell(0, 4), cq_doorbell(0, 4)), (0x1000, 0x1004));
        assert_eq!((sq_doorbell(3, 4), cq_doorbell(3, 4)), (0x1018, 0x101C));
        assert_eq!(aqa(32, 64), 63 << 16 | 31);
    }
}
