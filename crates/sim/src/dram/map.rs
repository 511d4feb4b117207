// SPDX-License-Identifier: Apache-2.0

//! The mapping of addresses to banks, rows and columns.

/// Bank groups of an x8 device.
pub const GROUPS: usize = 4;
/// Banks of a device.
pub const BANKS: usize = 16;
/// 64-byte lines in a row of a bank.
pub const LINES: u64 = 128;

/// The bank and row of a line. Lines of a row that differ only in their column have the same
/// timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankRow {
    /// Bank in its channel; the low two bits are the bank group.
    pub bank: usize,
    /// Row in its bank.
    pub row: u32,
}

/// The bank and row of the line at byte `addr`, in a channel with `rows` rows a bank (a power of
/// two; addresses past the end wrap around).
///
/// From the low bits: line offset 6, bank group 2, column 7, bank 2, row. Successive lines go to
/// successive bank groups, which need only tCCD_S between them, and 32 KiB lie in four open rows.
/// Bank and group are permuted by the row's low bits, so that strides of powers of two use several
/// banks.
#[inline]
pub fn bank_row(addr: u64, rows: u64) -> BankRow {
    let line = addr >> 6;
    let row = (line / (BANKS as u64 * LINES)) & (rows - 1);
    let group = (line ^ (row >> 2)) & 3;
    let bank = ((line / (GROUPS as u64 * LINES)) ^ row) & 3;
    BankRow {
        bank: (bank << 2 | group) as usize,
        row: row as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn dram_map_fills_every_bank_row_once() {
        let mut lines: HashMap<(usize, u32), u64> = HashMap::new();
        let rows = 64;
        for line in 0..rows * BANKS as u64 * LINES {
            let at = bank_row(line << 6, rows);
            *lines.entry((at.bank, at.row)).or_default() += 1;
            assert_eq!(
                bank_row((line << 6) + rows * BANKS as u64 * LINES * 64, rows),
                at
            );
        }
        assert_eq!(lines.len() as u64, rows * BANKS as u64);
        assert!(lines.values().all(|&n| n == LINES));
    }

    #[test]
    fn dram_map_puts_neighbours_in_different_groups() {
        for line in 0..10_000u64 {
            let (a, b) = (
                bank_row(line << 6, 1 << 15),
                bank_row((line + 1) << 6, 1 << 15),
            );
            assert!(a.bank & 3 != b.bank & 3 || a.row != b.row);
        }
    }
}
