// SPDX-License-Identifier: Apache-2.0

//! Dataset Management (NVMe 1.4, 6.7): its fields, and the ranges of its list.

use spec::nvme::Sqe;

/// Bytes of a range.
pub const RANGE: usize = 16;

/// Ranges of the list (NR), the number itself.
pub fn ranges(sqe: &Sqe) -> u64 {
    u64::from(sqe.dw[10] & 0xFF) + 1
}

/// Bytes of the list.
pub fn list_bytes(sqe: &Sqe) -> u64 {
    ranges(sqe) * RANGE as u64
}

/// Attribute - Deallocate (AD).
pub fn deallocates(sqe: &Sqe) -> bool {
    sqe.dw[11] >> 2 & 1 == 1
}

/// A range of a list. Its context attributes are hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Length in logical blocks, the number itself.
    pub blocks: u32,
    /// Starting LBA.
    pub lba: u64,
}

impl Range {
    /// A range from its bytes in a list.
    pub fn from_bytes(bytes: &[u8; RANGE]) -> Range {
        let value = u128::from_le_bytes(*bytes);
        Range {
            blocks: (value >> 32) as u32,
            lba: (value >> 64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dataset_fields_are_at_the_offsets_of_the_specification() {
        let sqe = Sqe::deallocate(1, 256);
        assert_eq!((ranges(&sqe), list_bytes(&sqe)), (256, 4096));
        assert!(deallocates(&sqe) && !deallocates(&sqe.with_cdw(11, 3)));
        let mut bytes = [0xFF; RANGE];
        bytes[4..8].copy_from_slice(&7u32.to_le_bytes());
        bytes[8..].copy_from_slice(&9u64.to_le_bytes());
        assert_eq!(Range::from_bytes(&bytes), Range { blocks: 7, lba: 9 });
    }
}
