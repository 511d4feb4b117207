// SPDX-License-Identifier: Apache-2.0

//! Keys of the sorter: their encoding and their order.

use spec::regs::sorter::kind;

/// Bytes of an index.
pub(super) const INDEX_BYTES: usize = 4;

/// The decoded `kind` of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortKind {
    /// Bytes of a key (4, 8 or 16), and their log2 minus 2.
    pub(super) bytes: usize,
    pub(super) width: u64,
    order: u64,
    descending: bool,
    /// Only indexes are written at the end.
    pub(super) indexes: bool,
    /// Two runs are merged at a time, for comparison.
    pub(super) pairs: bool,
}

/// Values of `kind::ORDER`.
const COMPLEMENT: u64 = 1;
const TOTAL_ORDER: u64 = 2;

impl SortKind {
    /// `None`: the kind is invalid.
    pub(super) fn of(kind: u64) -> Option<SortKind> {
        let known = kind::WIDTH.mask()
            | kind::ORDER.mask()
            | kind::DESCENDING.mask()
            | kind::INDEXES.mask()
            | kind::PAIRS.mask();
        let (width, order) = (kind::WIDTH.get(kind), kind::ORDER.get(kind));
        (kind & !known == 0 && width <= 2 && order <= TOTAL_ORDER).then_some(SortKind {
            bytes: 4 << width,
            width,
            order,
            descending: kind::DESCENDING.is_set(kind),
            indexes: kind::INDEXES.is_set(kind),
            pairs: kind::PAIRS.is_set(kind),
        })
    }

    /// Bytes of a record.
    pub(super) fn record(&self) -> usize {
        2 * self.bytes
    }

    /// A number that has the order of the keys.
    pub(super) fn rank(&self, key: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        bytes[..self.bytes].copy_from_slice(key);
        let key = u128::from_le_bytes(bytes);
        let top = 1 << (8 * self.bytes - 1);
        let all = top | (top - 1);
        let rank = match (self.order, key & top != 0) {
            (COMPLEMENT, _) | (TOTAL_ORDER, false) => key ^ top,
            (TOTAL_ORDER, true) => key ^ all,
            _ => key,
        };
        match self.descending {
            true => rank ^ all,
            false => rank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ranks_follow_the_requested_order() {
        let order = |kind: u64, keys: &[f64]| {
            let kind = SortKind::of(kind).expect("a kind");
            let ranks = keys.iter().map(|key| kind.rank(&key.to_le_bytes()));
            ranks
                .collect::<Vec<u128>>()
                .windows(2)
                .all(|pair| pair[0] < pair[1])
        };
        let keys = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            1e-320,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(order(0b0_10_01, &keys));
        let mut reversed = keys;
        reversed.reverse();
        assert!(order(0b1_10_01, &reversed));
        let signed = SortKind::of(0b0_01_00).expect("a kind");
        assert!(signed.rank(&(-1i32).to_le_bytes()) < signed.rank(&0i32.to_le_bytes()));
        for unknown in [3, 0b11_00, 1 << 7, 1 << 63] {
            assert!(SortKind::of(unknown).is_none(), "{unknown:#x}");
        }
    }
}
