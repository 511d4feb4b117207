// SPDX-License-Identifier: Apache-2.0

//! Get Log Page (NVMe 1.4, 5.14): its fields, and the supported logs.

use spec::nvme::Sqe;

/// Supported Log Pages (NVMe 2.0).
pub const SUPPORTED: u8 = 0x00;
/// Error Information.
pub const ERROR: u8 = 0x01;
/// SMART / Health Information.
pub const SMART: u8 = 0x02;
/// Firmware Slot Information.
pub const FIRMWARE: u8 = 0x03;
/// Changed Namespace List.
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// Commands Supported and Effects.
pub const EFFECTS: u8 = 0x05;
/// All supported logs.
pub const ALL: [u8; 6] = [
    SUPPORTED,
    ERROR,
    SMART,
    FIRMWARE,
    CHANGED_NAMESPACES,
    EFFECTS,
];

/// Bytes of an entry of the Error Information log (5.14.1.1).
pub const ERROR_ENTRY: u64 = 64;

/// Bytes of a log; the Error Information log has 64 entries. `None` if the log is not supported.
pub fn size(lid: u8) -> Option<u64> {
    match lid {
        SUPPORTED => Some(1024),
        SMART | FIRMWARE => Some(512),
        ERROR | CHANGED_NAMESPACES | EFFECTS => Some(4096),
        _ => None,
    }
}

/// The fields of a Get Log Page command (figures 188 to 190).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// Log Page Identifier (LID).
    pub lid: u8,
    /// Retain Asynchronous Event (RAE).
    pub retain: bool,
    /// Bytes: dwords (NUMDL, NUMDU) times four.
    pub bytes: u64,
    /// Log Page Offset (LPOL, LPOU), including its two lowest bits.
    pub offset: u64,
    /// Namespace.
    pub nsid: u32,
}

impl GetLogPage {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> GetLogPage {
        let dwords = u64::from(sqe.dw[11] & 0xFFFF) << 16 | u64::from(sqe.dw[10] >> 16);
        GetLogPage {
            lid: sqe.dw[10] as u8,
            retain: sqe.dw[10] >> 15 & 1 == 1,
            bytes: (dwords + 1) * 4,
            offset: u64::from(sqe.dw[12]) | u64::from(sqe.dw[13]) << 32,
            nsid: sqe.nsid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::nvme::admin;

    #[test]
    fn log_page_fields_are_at_the_offsets_of_the_specification() {
        let sqe = Sqe::new(admin::GET_LOG_PAGE)
            .with_cdw(10, 0xFFFF_8002)
            .with_cdw(11, 0xABCD_FFFF)
            .with_cdw(12, 4)
            .with_cdw(13, 1);
        let request = GetLogPage::of(&sqe);
        assert_eq!((request.lid, request.retain), (SMART, true));
        assert_eq!((request.bytes, request.offset), (1 << 34, 1 << 32 | 4));
        assert!(ALL.iter().all(|&lid| size(lid).is_some()));
        assert!(size(6).is_none());
    }
}
