// SPDX-License-Identifier: Apache-2.0

//! Identify (NVMe 1.4, 5.15; CNS 06h and 08h of 2.0): pages and errors.

use std::sync::Arc;

use design::{Design, Identity};
use nvme::identify::Identify;
use nvme::{Namespaces, BLOCK_BYTES};
use spec::nvme::{cns, oacs, oncs, status, Status, ALL_NAMESPACES, IDENTIFY_BYTES};

use super::events::MAX_PARKED;
use super::{error_log, smart};

/// PCI Vendor ID and Subsystem Vendor ID.
pub const VENDOR_ID: u16 = 0x4E53;
/// Controller ID (CNTLID). Each device is a separate subsystem.
pub const CONTROLLER_ID: u16 = 1;
/// Firmware Revision (FR), also in the Firmware Slot log.
pub const FIRMWARE_REVISION: &[u8; 8] = b"1.0     ";
/// Recommended limit of the blocks of a Dataset Management (DMRSL, DMSL).
pub const MAX_DEALLOCATE: u32 = 131_072;
/// MDTS: a transfer has at most 2^MDTS pages.
pub const MDTS: u8 = 8;
const MODEL: &[u8] = b"Nearside NVMe controller";

/// An Identify page.
pub type Page = Box<[u8; IDENTIFY_BYTES]>;

/// What the pages depend on.
#[derive(Clone, Debug)]
pub struct Config {
    /// Serial number and identifiers.
    pub identity: Identity,
    /// Namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Doorbell Buffer Config is supported.
    pub doorbell_buffer: bool,
}

impl Config {
    /// The configuration of a design's device.
    pub fn of(design: &Design, identity: Identity) -> Config {
        let media = design.media.bytes.0;
        let sizes: Vec<u64> = match design.nvme.namespaces.as_slice() {
            [] => vec![media / BLOCK_BYTES],
            some => some.iter().map(|bytes| bytes.0 / BLOCK_BYTES).collect(),
        };
        Config {
            identity,
            namespaces: Arc::new(Namespaces::new(&sizes)),
            doorbell_buffer: design.nvme.doorbell_buffer,
        }
    }
}

/// The page that an Identify requests, or its error.
pub fn answer(config: &Config, request: Identify) -> Result<Page, Status> {
    let Identify {
        cns,
        nsid,
        cntid,
        csi,
    } = request;
    page(config, cns, nsid, cntid, csi)
}

/// The page for CNS, NSID, CNTID and CSI.
pub fn page(config: &Config, cns: u8, nsid: u32, cntid: u16, csi: u8) -> Result<Page, Status> {
    let namespace = config.namespaces.get(nsid);
    let valid = namespace.ok_or(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
    // An inactive namespace has no descriptors. Its other pages are zeros (figure 244).
    let active = namespace.filter(|n| n.is_active());
    match cns {
        cns::NAMESPACE => {
            valid?;
            Ok(active.map_or_else(empty_page, |n| namespace_page(config, n)))
        }
        cns::CONTROLLER => Ok(controller(config)),
        cns::ACTIVE_NAMESPACES if nsid >= ALL_NAMESPACES - 1 => {
            Err(status::INVALID_NAMESPACE_OR_FORMAT.dnr())
        }
        cns::ACTIVE_NAMESPACES => Ok(page_with(&[(0, &config.namespaces.list_above(nsid))])),
        cns::NAMESPACE_DESCRIPTORS => {
            valid?;
            active.ok_or(status::INVALID_FIELD.dnr())?;
            Ok(descriptors(config, nsid))
        }
        cns::COMMAND_SET if csi == 0 => Ok(command_set()),
        cns::INDEPENDENT_NAMESPACE => {
            valid?;
            // NSTAT: ready.
            Ok(active.map_or_else(empty_page, |_| page_with(&[(14, &[1])])))
        }
        cns::ATTACHED_CONTROLLERS if nsid == ALL_NAMESPACES => Err(status::INVALID_FIELD.dnr()),
        cns::ATTACHED_CONTROLLERS => {
            valid?;
            Ok(controllers(cntid, active.is_some()))
        }
        cns::CONTROLLERS => Ok(controllers(cntid, true)),
        _ => Err(status::INVALID_FIELD.dnr()),
    }
}

fn empty_page() -> Page {
    Box::new([0; IDENTIFY_BYTES])
}

/// A page of zeros with bytes at offsets.
fn page_with(fields: &[(usize, &[u8])]) -> Page {
    let mut page = empty_page();
    for &(at, bytes) in fields {
        page[at..at + bytes.len()].copy_from_slice(bytes);
    }
    page
}

/// ASCII, padded with spaces.
fn text<const N: usize>(value: &[u8]) -> [u8; N] {
    let mut bytes = [b' '; N];
    for (byte, character) in bytes.iter_mut().zip(value) {
        *byte = *character;
    }
    bytes
}

/// Identify Controller (figure 247).
fn controller(config: &Config) -> Page {
    // Compare, Dataset Management, Write Zeroes, Verify; Save and Select (bit 4), Timestamp (bit
    // 6).
    let commands = oncs::COMPARE | oncs::DATASET_MANAGEMENT | oncs::WRITE_ZEROES | oncs::VERIFY;
    let oncs = commands | 1 << 4 | 1 << 6;
    let doorbell_buffer = match config.doorbell_buffer {
        true => oacs::DOORBELL_BUFFER_CONFIG,
        false => 0,
    };
    let oacs = oacs::FORMAT_NVM | doorbell_buffer;
    page_with(&[
        (0, &VENDOR_ID.to_le_bytes()),
        (2, &VENDOR_ID.to_le_bytes()),
        (4, &config.identity.serial_bytes()),
        (24, &text::<40>(MODEL)),
        (64, FIRMWARE_REVISION),
        (77, &[MDTS]),
        (78, &CONTROLLER_ID.to_le_bytes()),
        (80, &0x0001_0400u32.to_le_bytes()), // VER
        (84, &100_000u32.to_le_bytes()),     // RTD3R, us
        (88, &1_000_000u32.to_le_bytes()),   // RTD3E, us
        (92, &(1u32 << 8).to_le_bytes()),    // OAES: namespace attribute notices
        (111, &[1]),                         // CNTRLTYPE: I/O controller
        (128, &1u16.to_le_bytes()),          // CRDT1: 100 ms, the only one in use
        (256, &oacs.to_le_bytes()),
        (258, &[3]),                            // ACL
        (259, &[MAX_PARKED as u8 - 1]),         // AERL
        (260, &[0x03]),                         // FRMW: one slot, read only
        (261, &[0x06]),                         // LPA: log 05h; offsets and 32-bit lengths
        (262, &[error_log::ENTRIES as u8 - 1]), // ELPE
        (266, &smart::WARNING_TEMPERATURE.to_le_bytes()),
        (268, &smart::CRITICAL_TEMPERATURE.to_le_bytes()),
        (320, &1u16.to_le_bytes()), // KAS: 100 ms
        (512, &[0x66]),             // SQES
        (513, &[0x44]),             // CQES
        (516, &config.namespaces.count().to_le_bytes()),
        (520, &oncs.to_le_bytes()),
        (522, &1u16.to_le_bytes()),           // FUSES: Compare and Write
        (525, &[0x06]),                       // VWC: no cache; flush of all namespaces
        (532, &2047u16.to_le_bytes()),        // ACWU: 1 MiB; AWUN and AWUPF are one block: 0
        (536, &0x0005_0002u32.to_le_bytes()), // SGLS: dwords, bit buckets, longer than the data
        (768, config.identity.subnqn().as_bytes()),
        (2048, &2500u16.to_le_bytes()), // power state 0: 25 W
    ])
}

/// Identify Namespace (figure 245). NAWUN, NAWUPF and NACWU are valid and 0. There are no atomic
/// boundaries.
fn namespace_page(config: &Config, namespace: nvme::Namespace) -> Page {
    let blocks = namespace.blocks.to_le_bytes();
    page_with(&[
        (0, &blocks),
        (8, &blocks),
        (16, &blocks),
        (24, &[0x02]), // NSFEAT
        (33, &[0x09]), // DLFEAT: deallocated blocks read as zeros; Write Zeroes may deallocate
        (104, &config.identity.nguid(namespace.nsid)),
        (120, &config.identity.eui64(namespace.nsid).to_be_bytes()),
        (130, &[9]), // LBAF0.LBADS
    ])
}

/// Namespace Identification Descriptors (figure 249): type and length, then the identifier.
fn descriptors(config: &Config, nsid: u32) -> Page {
    page_with(&[
        (0, &[1, 8]),
        (4, &config.identity.eui64(nsid).to_be_bytes()),
        (12, &[2, 16]),
        (16, &config.identity.nguid(nsid)),
        (32, &[3, 16]),
        (36, &config.identity.uuid(nsid)),
    ])
}

/// I/O Command Set specific Identify Controller, NVM command set. Verify and Write Zeroes are
/// limited by NLB only.
fn command_set() -> Page {
    page_with(&[
        (0, &[13]),  // VSL: 2^13 pages are 65536 blocks
        (1, &[13]),  // WZSL
        (3, &[255]), // DMRL
        (4, &MAX_DEALLOCATE.to_le_bytes()),
        (8, &u64::from(MAX_DEALLOCATE).to_le_bytes()),
    ])
}

/// A Controller List (4.9) from an identifier on, with this controller if it is in range.
fn controllers(from: u16, attached: bool) -> Page {
    match attached && from <= CONTROLLER_ID {
        true => page_with(&[(0, &[1, 0]), (2, &CONTROLLER_ID.to_le_bytes())]),
        false => empty_page(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::nvme::identify::{Controller, DatasetLimits, Namespace};

    fn config() -> Config {
        Config {
            identity: Identity::new("bench-1").unwrap(),
            namespaces: Arc::new(Namespaces::new(&[2048, 9, 0, 16])),
            doorbell_buffer: true,
        }
    }

    fn get(cns: u8, nsid: u32) -> Page {
        page(&config(), cns, nsid, 0, 0).unwrap()
    }

    /// Checks bytes at offsets; all others have to be 0.
    fn only(page: &Page, fields: &[(usize, &[u8])]) {
        let mut expected = vec![0; IDENTIFY_BYTES];
        for &(at, bytes) in fields {
            expected[at..at + bytes.len()].copy_from_slice(bytes);
        }
        assert_eq!(page[..], expected[..]);
    }

    #[test]
    fn identify_controller_is_that_of_the_rtl_test_bench() {
        // As `controller` in hw/ip/nvme_ctrl/dv/identify_model.py.
        only(
            &get(1, 0),
            &[
                (0, &[0x53, 0x4E, 0x53, 0x4E]),
                (4, b"bench-1             "),
                (24, b"Nearside NVMe controller                "),
                (64, b"1.0     "),
                (77, &[8]),
                (78, &[1, 0]),
                (80, &[0, 4, 1, 0]),
                (84, &100_000u32.to_le_bytes()),
                (88, &1_000_000u32.to_le_bytes()),
                (92, &[0, 1, 0, 0]),
                (111, &[1]),
                (128, &[1, 0]),
                (256, &[2, 1]),
                (258, &[3, 3, 3, 6, 63]),
                (266, &343u16.to_le_bytes()),
                (268, &353u16.to_le_bytes()),
                (320, &[1, 0]),
                (512, &[0x66, 0x44]),
                (516, &[4]),
                (520, &[0xDD, 0]),
                (522, &[1, 0]),
                (524, &[0, 6]),
                (532, &2047u16.to_le_bytes()),
                (536, &[2, 0, 5, 0]),
                (768, b"nqn.2026-11.example.nearside:nvme_ctrl:snbench-1"),
                (2048, &2500u16.to_le_bytes()),
            ],
        );
        let parsed = Controller::parse(&get(1, 0));
        assert_eq!((parsed.serial.as_str(), parsed.namespaces), ("bench-1", 4));
        assert_eq!(parsed.max_transfer, Some(1 << 20));
    }

    #[test]
    fn identify_controller_differs_only_in_oacs_without_doorbell_buffer_config() {
        let without = Config {
            doorbell_buffer: false,
            ..config()
        };
        let mut expected = get(1, 0);
        expected[256..258].copy_from_slice(&[2, 0]);
        assert_eq!(page(&without, 1, 0, 0, 0).unwrap()[..], expected[..]);
    }

    #[test]
    fn identify_namespace_has_its_identifiers_and_zeros_if_inactive() {
        let eui = config().identity.eui64(2).to_be_bytes();
        let nguid = [&[0x02, 0x00, 0x4E, 0x56, 0x4D, 0x45, 0, 0][..], &eui].concat();
        only(
            &get(0, 2),
            &[
                (0, &[9]),
                (8, &[9]),
                (16, &[9]),
                (24, &[2]),
                (33, &[9]),
                (104, &nguid),
                (120, &eui),
                (130, &[9]),
            ],
        );
        assert_eq!(Namespace::parse(&get(0, 1)).unwrap().bytes(), 1 << 20);
        only(&get(0, 3), &[]);
        let mut uuid = [&b"Nearsi\x84\x65"[..], &eui].concat();
        uuid[8] = uuid[8] & 0x3F | 0x80;
        only(
            &get(3, 2),
            &[
                (0, &[1, 8]),
                (4, &eui),
                (12, &[2, 16]),
                (16, &nguid),
                (32, &[3, 16]),
                (36, &uuid),
            ],
        );
        only(&get(8, 2), &[(14, &[1])]);
        only(&get(8, 3), &[]);
    }

    #[test]
    fn identify_lists_and_limits() {
        only(&get(2, 0), &[(0, &[1]), (4, &[2]), (8, &[4])]);
        only(&get(2, 2), &[(0, &[4])]);
        only(&get(2, 0xFFFF_FFFD), &[]);
        let limits = DatasetLimits::parse(&get(6, 0));
        assert_eq!((limits.ranges, limits.blocks), (255, 131_072));
        only(&get(0x13, 0), &[(0, &[1, 0, 1, 0])]);
        only(&get(0x12, 1), &[(0, &[1, 0, 1, 0])]);
        only(&get(0x12, 3), &[]);
        only(&page(&config(), 0x13, 0, 2, 0).unwrap(), &[]);
        only(&page(&config(), 0x13, 7, 1, 9).unwrap(), &[(0, &[1, 0, 1])]);
    }

    #[test]
    fn identify_errors_are_those_of_the_contract() {
        let refused = |cns, nsid, csi| page(&config(), cns, nsid, 0, csi).unwrap_err();
        let no_namespace = status::INVALID_NAMESPACE_OR_FORMAT.dnr();
        for cns in [0, 3, 8, 0x12] {
            assert_eq!(refused(cns, 0, 0), no_namespace);
            assert_eq!(refused(cns, 5, 0), no_namespace);
        }
        for cns in [0, 2, 3, 8] {
            assert_eq!(refused(cns, ALL_NAMESPACES, 0), no_namespace);
        }
        assert_eq!(refused(2, 0xFFFF_FFFE, 0), no_namespace);
        let field = status::INVALID_FIELD.dnr();
        assert_eq!(refused(3, 3, 0), field);
        assert_eq!(refused(0x12, ALL_NAMESPACES, 0), field);
        assert_eq!(refused(6, 0, 1), field);
        assert_eq!(refused(4, 1, 0), field);
        assert_eq!(refused(0xFF, 1, 0), field);
    }
}
