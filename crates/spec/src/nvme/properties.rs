//! Controller properties: what stands in BAR0.

/// Controller Capabilities, 64 bits.
pub const CAP: u64 = 0x00;
/// Version.
pub const VS: u64 = 0x08;
/// Interrupt Mask Set.
pub const INTMS: u64 = 0x0C;
/// Interrupt Mask Clear.
pub const INTMC: u64 = 0x10;
/// Controller Configuration.
pub const CC: u64 = 0x14;
/// Controller Status.
pub const CSTS: u64 = 0x1C;
/// NVM Subsystem Reset.
pub const NSSR: u64 = 0x20;
/// Admin Queue Attributes.
pub const AQA: u64 = 0x24;
/// Admin Submission Queue Base Address, 64 bits.
pub const ASQ: u64 = 0x28;
/// Admin Completion Queue Base Address, 64 bits.
pub const ACQ: u64 = 0x30;
/// The first doorbell, Submission Queue 0 Tail.
pub const DOORBELLS: u64 = 0x1000;
/// The MSI-X table of Nearside's devices, 16 bytes an entry.
pub const MSIX_TABLE: u64 = 0x2000;
/// The MSI-X pending bits of Nearside's devices.
pub const MSIX_PBA: u64 = 0x3000;

/// Controller Capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u64);

impl Cap {
    /// Maximum entries of an I/O queue (MQES plus one).
    pub fn max_queue_entries(self) -> u32 {
        (self.0 & 0xFFFF) as u32 + 1
    }
    /// Contiguous Queues Required (CQR).
    pub fn contiguous_queues_required(self) -> bool {
        self.0 >> 16 & 1 == 1
    }
    /// Weighted round robin with urgent priority class can be selected (AMS bit 17).
    pub fn weighted_round_robin(self) -> bool {
        self.0 >> 17 & 1 == 1
    }
    /// Worst-case time to become ready, in units of 500 ms (TO).
    pub fn timeout_500ms(self) -> u32 {
        (self.0 >> 24 & 0xFF) as u32
    }
    /// Bytes between doorbells (2^(2 + DSTRD)).
    pub fn doorbell_stride(self) -> u64 {
        4 << (self.0 >> 32 & 0xF)
    }
    /// The NVM command set is supported (CSS bit 0).
    pub fn nvm_command_set(self) -> bool {
        self.0 >> 37 & 1 == 1
    }
    /// Smallest memory page in bytes (MPSMIN).
    pub fn min_page(self) -> u64 {
        4096 << (self.0 >> 48 & 0xF)
    }
    /// Largest memory page in bytes (MPSMAX).
    pub fn max_page(self) -> u64 {
        4096 << (self.0 >> 52 & 0xF)
    }
    /// Persistent Memory Region Supported (PMRS).
    pub fn persistent_memory_region(self) -> bool {
        self.0 >> 56 & 1 == 1
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
    pub const EN: u32 = 1;

    /// 4 KiB pages, NVM command set, round robin, entry sizes of 64 and 16 bytes; not enabled.
    pub const DEFAULT: Cc = Cc(4 << 20 | 6 << 16);

    /// The same with EN as given.
    pub fn with_enable(self, on: bool) -> Cc {
        Cc(self.0 & !Cc::EN | u32::from(on))
    }
    /// The same with AMS for weighted round robin with urgent priority class, or for plain round robin.
    pub fn with_weighted_round_robin(self, on: bool) -> Cc {
        Cc(self.0 & !(7 << 11) | u32::from(on) << 11)
    }
    /// The same with SHN as given.
    pub fn with_shutdown(self, shn: ShutdownNotification) -> Cc {
        Cc(self.0 & !(3 << 14) | (shn as u32) << 14)
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
        self.0 & 1 == 1
    }
    /// Controller Fatal Status (CFS).
    pub fn fatal(self) -> bool {
        self.0 >> 1 & 1 == 1
    }
    /// Shutdown processing complete (SHST 10b).
    pub fn shutdown_complete(self) -> bool {
        self.0 >> 2 & 3 == 2
    }
    /// All ones: nothing answers behind the register.
    pub fn gone(self) -> bool {
        self.0 == u32::MAX
    }
}

/// Admin Queue Attributes for queues of the given entries (2 to 4096).
pub fn aqa(sq_entries: u32, cq_entries: u32) -> u32 {
    (cq_entries.wrapping_sub(1) & 0xFFF) << 16 | sq_entries.wrapping_sub(1) & 0xFFF
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
    fn capabilities() {
        let cap = Cap(1 << 37 | 2 << 24 | 1 << 16 | 1023);
        assert_eq!(cap.max_queue_entries(), 1024);
        assert!(cap.contiguous_queues_required() && cap.nvm_command_set());
        assert_eq!((cap.timeout_500ms(), cap.doorbell_stride()), (2, 4));
        assert_eq!((cap.min_page(), cap.max_page()), (4096, 4096));
    }

    #[test]
    fn configuration() {
        assert_eq!(Cc::DEFAULT.with_enable(true).0, 0x0046_0001);
        let off = Cc(0x0046_0001).with_shutdown(ShutdownNotification::Normal);
        assert_eq!(off.0, 0x0046_4001);
        assert!(off.enabled());
        assert!(Csts(0b1001).shutdown_complete() && Csts(1).ready() && Csts(2).fatal());
        assert!(Csts(u32::MAX).gone());
    }

    #[test]
    fn doorbells_and_admin_queues() {
        assert_eq!((sq_doorbell(0, 4), cq_doorbell(0, 4)), (0x1000, 0x1004));
        assert_eq!((sq_doorbell(3, 4), cq_doorbell(3, 4)), (0x1018, 0x101C));
        assert_eq!(aqa(32, 64), 63 << 16 | 31);
    }
}
