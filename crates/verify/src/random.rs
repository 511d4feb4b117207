// SPDX-License-Identifier: Apache-2.0

//! Random choices.

use sim::Random;

/// True with a probability of `percent`.
pub fn chance(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

/// A random element.
pub fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len().max(1) as u64) as usize]
}

/// Random bytes.
pub fn bytes(random: &mut Random, len: u64) -> Vec<u8> {
    let words = 0..len.div_ceil(8);
    let mut data: Vec<u8> = words.flat_map(|_| random.next().to_le_bytes()).collect();
    data.truncate(len as usize);
    data
}
