// SPDX-License-Identifier: Apache-2.0

//! Fields of Set and Get Features (NVMe 1.4, 5.13 and 5.21). Identifiers are
//! [`spec::nvme::feature`]'s.

use spec::nvme::feature::*;
use spec::nvme::{admin, Sqe};

/// Bytes of the Timestamp's data structure (figure 291).
pub const TIMESTAMP_BYTES: u64 = 8;
/// Bytes of Host Behavior Support (5.21.1.22).
pub const BEHAVIOR_BYTES: u64 = 512;
/// Granularity of the Keep Alive Timer (KAS) in ms.
pub const KEEP_ALIVE_GRANULARITY: u32 = 100;

/// Select of Get Features (figure 187).
pub mod select {
    /// Current.
    pub const CURRENT: u32 = 0;
    /// Default.
    pub const DEFAULT: u32 = 1;
    /// Saved.
    pub const SAVED: u32 = 2;
    /// Supported capabilities.
    pub const CAPABILITIES: u32 = 3;
}

/// Bits of dword 0 that Select 011b returns (5.13).
pub mod capability {
    /// Saveable.
    pub const SAVEABLE: u32 = 1 << 0;
    /// Namespace specific.
    pub const NAMESPACE: u32 = 1 << 1;
    /// Changeable.
    pub const CHANGEABLE: u32 = 1 << 2;
}

/// The fields of a Set Features or Get Features command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureRequest {
    /// Set Features; otherwise Get Features.
    pub set: bool,
    /// Command dword 10.
    pub cdw10: u32,
    /// Command dword 11.
    pub cdw11: u32,
    /// Namespace.
    pub nsid: u32,
}

impl FeatureRequest {
    /// The request of a command with one of the two opcodes.
    pub fn of(sqe: &Sqe) -> FeatureRequest {
        FeatureRequest {
            set: sqe.opcode() == admin::SET_FEATURES,
            cdw10: sqe.dw[10],
            cdw11: sqe.dw[11],
            nsid: sqe.nsid(),
        }
    }

    /// Feature Identifier (FID).
    pub fn fid(self) -> u8 {
        self.cdw10 as u8
    }

    /// Select (SEL); Set Features has no such field and is about the current value.
    pub fn select(self) -> u32 {
        match self.set {
            true => select::CURRENT,
            false => self.cdw10 >> 8 & 7,
        }
    }

    /// Save (SV); Get Features has no such field.
    pub fn save(self) -> bool {
        self.set && self.cdw10 >> 31 == 1
    }
}

/// The bits of a feature's value that a controller stores and returns. The other bits are reserved
/// or select the value. 0 for features whose value is not a dword.
pub fn mask(fid: u8) -> u32 {
    match fid {
        // AB, LPW, MPW, HPW.
        ARBITRATION => 0xFFFF_FF07,
        // WH; there is only power state 0.
        POWER_MANAGEMENT => 0xE0,
        // TMPTH; TLER; THR and TIME.
        TEMPERATURE_THRESHOLD | ERROR_RECOVERY | INTERRUPT_COALESCING => 0xFFFF,
        // DN.
        WRITE_ATOMICITY_NORMAL => 1,
        // SMART critical warnings, namespace attribute notices.
        ASYNC_EVENT_CONFIGURATION => 0x1FF,
        _ => 0,
    }
}

/// Power State (PS) of Power Management.
pub fn power_state(cdw11: u32) -> u32 {
    cdw11 & 0x1F
}

/// Temperature Threshold (5.21.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold(pub u32);

impl Threshold {
    /// Threshold Temperature Select (TMPSEL): 0 is the composite temperature.
    pub fn sensor(self) -> u32 {
        self.0 >> 16 & 0xF
    }

    /// Threshold Type Select (THSEL): 0 over, 1 under, others are reserved.
    pub fn kind(self) -> u32 {
        self.0 >> 20 & 3
    }
}

/// Interrupt Coalescing (5.21.1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing(pub u32);

impl Coalescing {
    /// Aggregation Threshold (THR): completions, the number itself.
    pub fn threshold(self) -> u32 {
        (self.0 & 0xFF) + 1
    }

    /// Aggregation Time (TIME) in units of 100 us; 0 is none.
    pub fn time(self) -> u32 {
        self.0 >> 8 & 0xFF
    }
}

/// Interrupt Vector Configuration (5.21.1.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub u32);

impl Vector {
    /// Interrupt Vector (IV).
    pub fn vector(self) -> u16 {
        self.0 as u16
    }

    /// Coalescing Disable (CD).
    pub fn uncoalesced(self) -> bool {
        self.0 >> 16 & 1 == 1
    }
}

/// Arbitration (5.21.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arbitration(pub u32);

impl Arbitration {
    /// Weights of the classes.
    pub fn weights(self) -> spec::nvme::Weights {
        let weight = |at: u32| (self.0 >> at & 0xFF) as u16 + 1;
        spec::nvme::Weights {
            high: weight(24),
            medium: weight(16),
            low: weight(8),
        }
    }

    /// Maximum number of commands fetched at a time (AB); `None` is no limit.
    pub fn burst(self) -> Option<u32> {
        (self.0 & 7 != 7).then_some(1 << (self.0 & 7))
    }
}

/// Deallocated or Unwritten Logical Block Error Enable (DULBE) of Error Recovery.
pub fn deallocated_error(cdw11: u32) -> bool {
    cdw11 >> 16 & 1 == 1
}

/// Requested numbers of submission and completion queues, 0's based (NSQR, NCQR).
pub fn queues(cdw11: u32) -> (u16, u16) {
    (cdw11 as u16, (cdw11 >> 16) as u16)
}

/// A Keep Alive Timeout in ms, rounded up to the granularity; `None` if it does not fit in 32 bits
/// (5.21.1.15).
pub fn keep_alive(ms: u32) -> Option<u32> {
    ms.checked_next_multiple_of(KEEP_ALIVE_GRANULARITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::nvme::Weights;

    #[test]
    fn feature_fields_are_at_the_offsets_of_the_specification() {
        let weights = Weights {
            high: 256,
            medium: 3,
            low: 1,
        };
        let sqe = Sqe::arbitration(weights);
        let request = FeatureRequest::of(&sqe);
        assert!(request.set && request.fid() == ARBITRATION && !request.save());
        let arbitration = Arbitration(request.cdw11);
        assert_eq!(
            (arbitration.weights(), arbitration.burst()),
            (weights, None)
        );
        assert_eq!(Arbitration(3).burst(), Some(8));
        let get = FeatureRequest {
            set: false,
            cdw10: 1 << 31 | 3 << 8 | 5,
            ..request
        };
        assert_eq!((get.select(), get.save()), (select::CAPABILITIES, false));
        let coalescing = Coalescing(0x0A03);
        assert_eq!((coalescing.threshold(), coalescing.time()), (4, 10));
        assert_eq!(Threshold(1 << 20 | 0xF << 16 | 300).kind(), 1);
        assert_eq!(queues(Sqe::number_of_queues(9).dw[11]), (8, 8));
        assert_eq!(keep_alive(u32::MAX - 95), Some(u32::MAX - 95));
        assert_eq!(
            (keep_alive(1), keep_alive(u32::MAX - 94)),
            (Some(100), None)
        );
    }
}
