// SPDX-License-Identifier: Apache-2.0

//! Written data. The content of a place follows from how often it has been written, so every read
//! of it can be compared.

use sim::Random;

/// Places in the pool.
const POOL: usize = 1 << 16;

/// Random bytes. Each write uses those from a different offset.
pub struct Content {
    pool: Vec<u8>,
    bytes: usize,
}

impl Content {
    /// For writes of `bytes` bytes.
    pub fn new(bytes: usize) -> Content {
        let mut random = Random::new(9);
        Content {
            pool: (0..bytes + POOL).map(|_| random.below(256) as u8).collect(),
            bytes,
        }
    }

    /// Data of a place's write with this number, counted from 1.
    pub fn of(&self, place: u64, version: u32) -> &[u8] {
        let mixed = (place << 24 | u64::from(version)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let from = (mixed >> 48) as usize;
        &self.pool[from..from + self.bytes]
    }
}
