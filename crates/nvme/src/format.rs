// SPDX-License-Identifier: Apache-2.0

//! Fields of Format NVM (NVMe 1.4, 5.23, figure 328).

use spec::nvme::Sqe;

/// The fields of a Format NVM command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// LBA Format (LBAF).
    pub lbaf: u8,
    /// Protection Information (PI).
    pub pi: u8,
    /// Secure Erase Settings (SES).
    pub ses: u8,
    /// Namespace, or all namespaces.
    pub nsid: u32,
}

impl Format {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> Format {
        let w = sqe.dw[10];
        Format {
            lbaf: (w & 0xF) as u8,
            pi: (w >> 5 & 7) as u8,
            ses: (w >> 9 & 7) as u8,
            nsid: sqe.nsid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_fields_are_at_the_offsets_of_the_specification() {
        let sqe = Sqe::format_nvm(3, 1);
        let format = Format::of(&sqe.with_cdw(10, sqe.dw[10] | 2 << 5 | 1 << 4 | 5));
        let expected = Format {
            lbaf: 5,
            pi: 2,
            ses: 1,
            nsid: 3,
        };
        assert_eq!(format, expected);
    }
}
