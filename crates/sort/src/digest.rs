// SPDX-License-Identifier: Apache-2.0

//! 64-bit digests that detect changed data.

/// The golden ratio as an odd 64-bit constant: its bits are evenly distributed.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(STEP);
    (value ^ value >> 29).wrapping_mul(STEP) ^ value >> 32
}

/// The digest of bytes. It depends on their order.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut state = mix(bytes.len() as u64 ^ STEP);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        state = mix(state.wrapping_add(word));
    }
    let rest = words.remainder().iter().rev();
    mix(state.wrapping_add(rest.fold(0, |n, &b| n << 8 | u64::from(b))))
}

/// The digest of rows of one size. It does not depend on their order, and differs if a row is lost,
/// doubled or changed.
pub fn digest_of_rows(rows: &[u8], row_bytes: usize) -> u64 {
    let rows = rows.chunks_exact(row_bytes.max(1));
    rows.fold(0, |sum, row| sum.wrapping_add(digest(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_differs_for_other_bytes() {
        let bytes: Vec<u8> = (0..40).collect();
        let whole = digest(&bytes);
        for n in 0..bytes.len() {
            assert_ne!(digest(&bytes[..n]), whole);
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[n] ^= 1 << bit;
                assert_ne!(digest(&other), whole);
            }
        }
    }

    #[test]
    fn digest_of_rows_ignores_order_but_counts_rows() {
        let rows: Vec<u8> = (0..30).collect();
        let turned = [&rows[10..], &rows[..10]].concat();
        assert_eq!(digest_of_rows(&rows, 5), digest_of_rows(&turned, 5));
        let doubled = [&rows[..25], &rows[..5]].concat();
        assert_ne!(digest_of_rows(&rows, 5), digest_of_rows(&doubled, 5));
    }
}
