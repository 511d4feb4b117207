// SPDX-License-Identifier: Apache-2.0

//! Values between two bounds, both included (scan_count).

/// Type of the values, and the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    wide: bool,
    /// Maps two's complement to the order of unsigned numbers.
    sign: u64,
    low: u64,
    /// Distance from the lower to the upper bound; `None`: no value is between them.
    span: Option<u64>,
}

impl Bounds {
    /// For 32-bit values only the lower half of a bound counts.
    pub(super) fn new(wide: bool, signed: bool, low: u64, high: u64) -> Bounds {
        let sign = match (signed, wide) {
            (false, _) => 0,
            (true, false) => 1 << 31,
            (true, true) => 1 << 63,
        };
        let key = |value: u64| match wide {
            true => value ^ sign,
            false => u64::from(value as u32) ^ sign,
        };
        Bounds {
            wide,
            sign,
            low: key(low),
            span: key(high).checked_sub(key(low)),
        }
    }

    /// Bytes of values for each byte of the bitmap.
    pub(super) fn per_map_byte(&self) -> u64 {
        if self.wide {
            64
        } else {
            32
        }
    }

    /// One bit for each of up to 64 values: it is between the bounds.
    pub(super) fn hits(&self, data: &[u8]) -> u64 {
        let Some(span) = self.span else { return 0 };
        let mut hits = 0;
        if self.wide {
            for (n, bytes) in data.chunks_exact(8).take(64).enumerate() {
                let value = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
                let hit = (value ^ self.sign).wrapping_sub(self.low) <= span;
                hits |= u64::from(hit) << n;
            }
        } else {
            let (sign, low, span) = (self.sign as u32, self.low as u32, span as u32);
            for (n, bytes) in data.chunks_exact(4).take(64).enumerate() {
                let value = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
                hits |= u64::from((value ^ sign).wrapping_sub(low) <= span) << n;
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn scan_hits_are_those_of_a_plain_comparison() {
        let mut random = Random::new(3);
        let near = [
            0,
            1,
            1 << 31,
            (1 << 31) - 1,
            1 << 32,
            1 << 63,
            (1 << 63) - 1,
        ];
        for turn in 0..20_000 {
            let mut value = || {
                let near = near[random.below(near.len() as u64) as usize];
                let away = random.below(5);
                u64::wrapping_add(near, away).wrapping_sub(2)
            };
            let (low, high, values) = (value(), value(), [value(), value(), value()]);
            let (wide, signed) = (turn % 2 == 1, turn / 2 % 2 == 1);
            let lies = |v: u64| match (wide, signed) {
                (true, false) => (low..=high).contains(&v),
                (true, true) => (low as i64..=high as i64).contains(&(v as i64)),
                (false, false) => (low as u32..=high as u32).contains(&(v as u32)),
                (false, true) => (low as i32..=high as i32).contains(&(v as i32)),
            };
            let size = if wide { 8 } else { 4 };
            let bytes = values
                .iter()
                .flat_map(|v| v.to_le_bytes().into_iter().take(size));
            let bytes: Vec<u8> = bytes.collect();
            let expected = (0..)
                .zip(values)
                .fold(0, |h, (n, v)| h | u64::from(lies(v)) << n);
            assert_eq!(Bounds::new(wide, signed, low, high).hits(&bytes), expected);
        }
    }
}
