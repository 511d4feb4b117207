// SPDX-License-Identifier: Apache-2.0

//! Fields of Identify (NVMe 1.4, 5.15.1). CNS values are [`spec::nvme::cns`]'s.

use spec::nvme::Sqe;

/// The fields of an Identify command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identify {
    /// Controller or Namespace Structure (CNS).
    pub cns: u8,
    /// Namespace.
    pub nsid: u32,
    /// Controller Identifier (CNTID), the first one in a list of controllers.
    pub cntid: u16,
    /// Command Set Identifier (CSI), of NVMe 2.0.
    pub csi: u8,
}

impl Identify {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> Identify {
        Identify {
            cns: sqe.dw[10] as u8,
            nsid: sqe.nsid(),
            cntid: (sqe.dw[10] >> 16) as u16,
            csi: (sqe.dw[11] >> 24) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identify_fields_are_at_the_offsets_of_the_specification() {
        let sqe = Sqe::identify(0x13, 5).with_cdw(10, 0xBEEF_FF13);
        let expected = Identify {
            cns: 0x13,
            nsid: 5,
            cntid: 0xBEEF,
            csi: 7,
        };
        assert_eq!(Identify::of(&sqe.with_cdw(11, 0x07FF_FFFF)), expected);
    }
}
