// SPDX-License-Identifier: Apache-2.0

//! Identify data structures.

use std::fmt;

use super::IDENTIFY_BYTES;

/// Identify Controller (CNS 01h): the fields that hosts use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// PCI Vendor ID (VID).
    pub vendor_id: u16,
    /// Serial Number (SN).
    pub serial: String,
    /// Model Number (MN).
    pub model: String,
    /// Firmware Revision (FR).
    pub firmware: String,
    /// Maximum Data Transfer Size in bytes, at the 4 KiB minimum page; `None` is no limit (MDTS).
    pub max_transfer: Option<u64>,
    /// Controller ID (CNTLID).
    pub controller_id: u16,
    /// Version (VER).
    pub version: Version,
    /// Controller Type (CNTRLTYPE).
    pub controller_type: u8,
    /// Abort Command Limit (ACL), the number itself.
    pub abort_limit: u16,
    /// Asynchronous Event Request Limit (AERL), the number itself.
    pub async_event_limit: u16,
    /// log2 of the required submission queue entry size (SQES).
    pub sqe_size_log2: u8,
    /// log2 of the required completion queue entry size (CQES).
    pub cqe_size_log2: u8,
    /// Number of Namespaces (NN).
    pub namespaces: u32,
    /// Optional Admin Command Support (OACS).
    pub oacs: u16,
    /// Optional NVM Command Support (ONCS).
    pub oncs: u16,
    /// Fused Operation Support (FUSES).
    pub fuses: u16,
    /// Atomic Write Unit Normal (AWUN) in logical blocks, the number itself: other commands see
    /// such a write completely or not at all.
    pub atomic_write_unit: u32,
    /// Atomic Write Unit Power Fail (AWUPF) in logical blocks, the number itself: such a write is
    /// complete or absent after a power loss.
    pub atomic_write_unit_power_fail: u32,
    /// Atomic Compare & Write Unit (ACWU) in logical blocks, the number itself.
    pub compare_and_write_unit: u32,
    /// Volatile Write Cache (VWC) present.
    pub volatile_write_cache: bool,
    /// SGL Support (SGLS).
    pub sgls: u32,
    /// NVM Subsystem NVMe Qualified Name (SUBNQN).
    pub subnqn: String,
}

/// Identify Namespace (CNS 00h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Namespace Size (NSZE) in logical blocks.
    pub size: u64,
    /// Namespace Capacity (NCAP) in logical blocks.
    pub capacity: u64,
    /// Namespace Utilization (NUSE) in logical blocks.
    pub utilization: u64,
    /// Bytes of a logical block in the format in use.
    pub block_bytes: u32,
    /// Metadata bytes of a logical block in the format in use.
    pub metadata_bytes: u16,
    /// NAWUN in logical blocks, the number itself; `None`: AWUN of the controller.
    pub atomic_write_unit: Option<u32>,
    /// NAWUPF in logical blocks, the number itself; `None`: AWUPF of the controller.
    pub atomic_write_unit_power_fail: Option<u32>,
    /// Namespace Globally Unique Identifier (NGUID).
    pub nguid: [u8; 16],
}

/// A specification version, as in VS and VER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 >> 8 & 0xFF)?;
        if self.0 & 0xFF != 0 {
            write!(f, ".{}", self.0 & 0xFF)?;
        }
        Ok(())
    }
}

/// The reason why an Identify structure can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed Identify data: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl Controller {
    /// Reads the structure.
    pub fn parse(b: &[u8; IDENTIFY_BYTES]) -> Controller {
        let mdts = b[77];
        Controller {
            vendor_id: u16_at(b, 0),
            serial: text(&b[4..24]),
            model: text(&b[24..64]),
            firmware: text(&b[64..72]),
            max_transfer: match mdts {
                0 => None,
                n => 4096u64.checked_shl(u32::from(n)).filter(|&size| size != 0),
            },
            controller_id: u16_at(b, 78),
            version: Version(u32_at(b, 80)),
            controller_type: b[111],
            abort_limit: u16::from(b[258]) + 1,
            async_event_limit: u16::from(b[259]) + 1,
            sqe_size_log2: b[512] & 0xF,
            cqe_size_log2: b[513] & 0xF,
            namespaces: u32_at(b, 516),
            oacs: u16_at(b, 256),
            oncs: u16_at(b, 520),
            fuses: u16_at(b, 522),
            atomic_write_unit: u32::from(u16_at(b, 526)) + 1,
            atomic_write_unit_power_fail: u32::from(u16_at(b, 528)) + 1,
            compare_and_write_unit: u32::from(u16_at(b, 532)) + 1,
            volatile_write_cache: b[525] & 1 == 1,
            sgls: u32_at(b, 536),
            subnqn: text(&b[768..1024]),
        }
    }
}

impl Namespace {
    /// Reads the structure; an impossible LBA format is an error.
    pub fn parse(b: &[u8; IDENTIFY_BYTES]) -> Result<Namespace, Malformed> {
        let format = usize::from(b[26] & 0xF);
        if format > usize::from(b[25]) {
            return Err(Malformed(format!(
                "FLBAS names LBA format {format}, NLBAF is {}",
                b[25]
            )));
        }
        let lbaf = u32_at(b, 128 + 4 * format);
        let lbads = lbaf >> 16 & 0xFF;
        if !(9..=31).contains(&lbads) {
            return Err(Malformed(format!("LBA data size of 2^{lbads} bytes")));
        }
        let mut nguid = [0; 16];
        nguid.copy_from_slice(&b[104..120]);
        // NSFEAT bit 1: the namespace has separate units; 0 means those of the controller.
        let own_unit = |at| match u16_at(b, at) {
            n if b[24] >> 1 & 1 == 1 && n != 0 => Some(u32::from(n) + 1),
            _ => None,
        };
        Ok(Namespace {
            size: u64_at(b, 0),
            capacity: u64_at(b, 8),
            utilization: u64_at(b, 16),
            block_bytes: 1 << lbads,
            metadata_bytes: lbaf as u16,
            atomic_write_unit: own_unit(34),
            atomic_write_unit_power_fail: own_unit(36),
            nguid,
        })
    }

    /// Bytes of the whole namespace.
    pub fn bytes(&self) -> u64 {
        self.size.saturating_mul(u64::from(self.block_bytes))
    }
}

/// Limits of Dataset Management (CNS 06h of the NVM command set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetLimits {
    /// Ranges of a command (DMRL).
    pub ranges: usize,
    /// Blocks of a range (DMRSL).
    pub range_blocks: u32,
    /// Blocks of a command (DMSL).
    pub blocks: u64,
}

impl DatasetLimits {
    /// No limits except those of the command's fields.
    pub const NONE: DatasetLimits = DatasetLimits {
        ranges: 256,
        range_blocks: u32::MAX,
        blocks: u64::MAX,
    };

    /// Parses the 4096 bytes; a field that is 0 sets no limit.
    pub fn parse(b: &[u8; IDENTIFY_BYTES]) -> DatasetLimits {
        let none = DatasetLimits::NONE;
        let or = |value: u64, most: u64| if value == 0 { most } else { value };
        DatasetLimits {
            ranges: or(b[3].into(), none.ranges as u64) as usize,
            range_blocks: or(u32_at(b, 4).into(), none.range_blocks.into()) as u32,
            blocks: or(u64_at(b, 8), none.blocks),
        }
    }
}

/// Active Namespace ID list (CNS 02h).
pub fn active_namespaces(b: &[u8; IDENTIFY_BYTES]) -> Vec<u32> {
    (0..1024)
        .map(|i| u32_at(b, 4 * i))
        .take_while(|&nsid| nsid != 0)
        .collect()
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from(u16_at(b, at)) | u32::from(u16_at(b, at + 2)) << 16
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

/// ASCII up to the first NUL, without padding; characters that are not printable become `?`.
fn text(b: &[u8]) -> String {
    let printable = |&c: &u8| {
        if (0x20..0x7F).contains(&c) {
            c as char
        } else {
            '?'
        }
    };
    let end = b.iter().position(|&c| c == 0).unwrap_or(b.len());
    b[..end]
        .iter()
        .map(printable)
        .collect::<String>()
        .trim()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identify_controller_fields_at_their_offsets() {
        let mut b = [0; IDENTIFY_BYTES];
        b[4..24].copy_from_slice(b"NS0000000001        ");
        b[24..34].copy_from_slice(b"Nearside  ");
        b[77] = 5;
        b[80..84].copy_from_slice(&0x0001_0400u32.to_le_bytes());
        b[258] = 3;
        b[512] = 0x66;
        b[513] = 0x44;
        b[516] = 1;
        b[526] = 7;
        b[768..780].copy_from_slice(b"nqn.2014-08.");
        let id = Controller::parse(&b);
        assert_eq!(
            (id.serial.as_str(), id.model.as_str()),
            ("NS0000000001", "Nearside")
        );
        assert_eq!(id.max_transfer, Some(128 << 10));
        assert_eq!(id.version.to_string(), "1.4");
        assert_eq!((id.abort_limit, id.namespaces), (4, 1));
        assert_eq!((id.sqe_size_log2, id.cqe_size_log2), (6, 4));
        assert_eq!(id.subnqn, "nqn.2014-08.");
        assert_eq!(
            (id.atomic_write_unit, id.atomic_write_unit_power_fail),
            (8, 1)
        );
    }

    #[test]
    fn identify_parsers_accept_hostile_values() {
        let id = Controller::parse(&[0xFF; IDENTIFY_BYTES]);
        assert_eq!(id.max_transfer, None);
        assert!(id.serial.chars().all(|c| c == '?'));
        assert!(Namespace::parse(&[0xFF; IDENTIFY_BYTES]).is_err());
        assert!(Namespace::parse(&[0; IDENTIFY_BYTES]).is_err(), "LBADS 0");
    }

    #[test]
    fn identify_namespace_of_512_byte_blocks() {
        let mut b = [0; IDENTIFY_BYTES];
        b[0..8].copy_from_slice(&2048u64.to_le_bytes());
        b[8..16].copy_from_slice(&2048u64.to_le_bytes());
        b[128 + 2] = 9;
        let ns = Namespace::parse(&b).unwrap();
        assert_eq!((ns.block_bytes, ns.bytes()), (512, 1 << 20));
        b[34] = 7;
        assert_eq!(Namespace::parse(&b).unwrap().atomic_write_unit, None);
        b[24] = 2;
        let ns = Namespace::parse(&b).unwrap();
        assert_eq!(ns.atomic_write_unit, Some(8));
        assert_eq!(ns.atomic_write_unit_power_fail, None);
        b[26] = 1;
        assert!(Namespace::parse(&b).is_err(), "a format beyond NLBAF");
    }

    #[test]
    fn identify_active_namespace_list_ends_at_zero() {
        let mut b = [0; IDENTIFY_BYTES];
        b[0] = 1;
        b[4] = 3;
        assert_eq!(active_namespaces(&b), [1, 3]);
    }
}
