// SPDX-License-Identifier: Apache-2.0

//! The results of engines, computed by their documentation.

use sim::Random;
use spec::tables::ONE_PASS_KEYS;

use crate::commands::Bounds;
use crate::lockstep::engines::EngineKind;

/// Bits of return values: of all three engines, and of those that report a position.
pub const WRONG: u32 = 4;
const BAD: u32 = 16;
const TRUNCATED: u32 = 32;
const OVERRUN: u32 = 64;
/// Bits of the pipeline's return value: an invalid entry, and an entry that has read invalid data.
pub const BAD_ENTRY: u32 = 16;
pub const BAD_DATA: u32 = 32;
/// Bits of the decoder's `kind`.
pub const PLAIN: u64 = 1 << 16;
pub const PACKED: u64 = 1 << 17;

/// True if the output is defined with this return value.
pub fn output_is_defined(kind: EngineKind, result: u32) -> bool {
    match kind {
        EngineKind::Shuffle => [0, BAD].contains(&result),
        EngineKind::Decode => [0, WRONG, BAD, TRUNCATED, OVERRUN].contains(&result),
        EngineKind::Pipeline => [0, WRONG, BAD_ENTRY, BAD_DATA].contains(&result),
        _ => result == 0,
    }
}

fn low_bits(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |v, &b| v << 8 | u128::from(b))
}

/// Parameters of a sort.
pub struct Sort {
    pub kind: u64,
    pub count: u64,
}

impl Sort {
    /// A sort of a random kind.
    pub fn generate(random: &mut Random, count: u64) -> Sort {
        let kind = random.below(3) | random.below(3) << 2 | random.below(8) << 4;
        Sort { kind, count }
    }

    fn key(&self) -> u64 {
        4 << (self.kind & 3)
    }

    /// Bytes of source, target and scratch.
    pub fn sizes(&self) -> [u64; 3] {
        let record = 2 * self.key();
        let out = if self.kind & 32 == 0 { record } else { 4 };
        let tmp = if self.count > ONE_PASS_KEYS {
            record
        } else {
            0
        };
        [self.key(), out, tmp].map(|each| each * self.count)
    }

    pub fn passes(&self) -> u64 {
        1 + u64::from(self.count > ONE_PASS_KEYS)
    }

    fn rank(&self, key: &[u8]) -> i128 {
        let above = 128 - 8 * self.key();
        let signed = (low_bits(key) << above) as i128 >> above;
        match self.kind >> 2 & 3 {
            0 => (low_bits(key) ^ 1 << 127) as i128,
            2 if signed < 0 => signed ^ i128::MAX,
            _ => signed,
        }
    }

    /// The output.
    pub fn made(&self, source: &[u8]) -> Vec<u8> {
        let keys = source.chunks(self.key() as usize);
        let mut all: Vec<(i128, usize, &[u8])> = keys
            .enumerate()
            .map(|(n, key)| (self.rank(key), n, key))
            .collect();
        match self.kind & 16 {
            0 => all.sort_by_key(|(rank, _, _)| *rank),
            _ => all.sort_by_key(|(rank, _, _)| !*rank),
        }
        let mut out = Vec::with_capacity(self.sizes()[1] as usize);
        for (_, index, key) in all {
            if self.kind & 32 == 0 {
                out.extend_from_slice(key);
            }
            out.extend_from_slice(&(index as u32).to_le_bytes());
            if self.kind & 32 == 0 {
                out.resize(out.len() + key.len() - 4, 0);
            }
        }
        out
    }
}

/// Rows to gather.
pub struct Rows {
    pub kind: u64,
    pub count: u64,
    pub row: u64,
    pub rows: u64,
}

impl Rows {
    pub fn each(&self) -> u64 {
        4 << self.kind
    }

    /// Bytes of list, table and target.
    pub fn sizes(&self) -> [u64; 3] {
        [
            self.count * self.each(),
            self.rows * self.row,
            self.count * self.row,
        ]
    }

    /// The copied rows.
    pub fn made(&self, list: &[u8], table: &[u8]) -> Vec<u8> {
        let at = if self.kind == 0 { 0 } else { self.each() / 2 } as usize;
        let places = list.chunks(self.each() as usize);
        let indexes = places.map(|place| low_bits(&place[at..at + 4]) as u64);
        let good = indexes.take_while(|&index| index < self.rows);
        let rows = good.map(|n| &table[(n * self.row) as usize..][..self.row as usize]);
        rows.flatten().copied().collect()
    }

    /// Return value and position.
    pub fn ends(&self, made: &[u8]) -> (u32, u64) {
        match made.len() as u64 / self.row {
            all if all == self.count => (0, all),
            some => (BAD, some),
        }
    }
}

/// A column to decode.
pub struct Column {
    pub kind: u64,
    pub entries: u64,
    pub count: u64,
}

impl Column {
    pub fn size(&self) -> u64 {
        1 << (self.kind >> 8 & 3)
    }

    pub fn width(&self) -> u64 {
        self.kind & 63
    }

    /// True for plain values instead of keys.
    pub fn is_plain(&self) -> bool {
        self.kind & PLAIN != 0
    }

    /// The output up to the first error, with return value and position.
    pub fn made(&self, dict: &[u8], source: &[u8]) -> (Vec<u8>, (u32, u64)) {
        let size = self.size();
        if self.kind & PLAIN != 0 {
            let here = source.len() as u64 / size;
            return match here < self.count {
                true => (Vec::new(), (TRUNCATED, here)),
                false => (
                    source[..(self.count * size) as usize].to_vec(),
                    (0, self.count),
                ),
            };
        }
        let mut keys = Vec::new();
        let result = match self.kind & PACKED != 0 {
            true => self.packed(source, &mut keys),
            false => self.runs(source, &mut keys),
        };
        let values = keys
            .iter()
            .map(|&key| &dict[(key * size) as usize..][..size as usize]);
        let position = keys.len() as u64;
        (values.flatten().copied().collect(), (result, position))
    }

    fn packed(&self, source: &[u8], keys: &mut Vec<u64>) -> u32 {
        for key in source.chunks_exact(self.width() as usize / 8) {
            if keys.len() as u64 == self.count {
                break;
            }
            match low_bits(key) as u64 {
                key if key < self.entries => keys.push(key),
                _ => return BAD,
            }
        }
        match keys.len() as u64 == self.count {
            true => 0,
            false => TRUNCATED,
        }
    }

    fn runs(&self, mut source: &[u8], keys: &mut Vec<u64>) -> u32 {
        let width = self.width();
        if width == 0 {
            keys.resize(self.count as usize, 0);
            return 0;
        }
        while (keys.len() as u64) < self.count {
            let left = self.count - keys.len() as u64;
            let head = source.iter().take(5).position(|byte| byte & 0x80 == 0);
            let Some(last) = head else {
                return TRUNCATED;
            };
            let bytes = source[..=last].iter().rev();
            let head = bytes.fold(0, |v, &byte| v << 7 | u64::from(byte & 0x7F));
            source = &source[last + 1..];
            let (literal, length) = (head & 1 == 1, head >> 1);
            if length == 0 {
                return TRUNCATED;
            }
            if length > if literal { left.div_ceil(8) } else { left } {
                return OVERRUN;
            }
            if !literal {
                let bytes = width.div_ceil(8) as usize;
                if source.len() < bytes {
                    return TRUNCATED;
                }
                let key = low_bits(&source[..bytes]) as u64;
                source = &source[bytes..];
                if key >= self.entries {
                    return BAD;
                }
                keys.resize(keys.len() + length as usize, key);
                continue;
            }
            for _ in 0..length {
                if (source.len() as u64) < width {
                    return TRUNCATED;
                }
                for n in 0..8.min(self.count - keys.len() as u64) {
                    let bit = |at: u64| u64::from(source[at as usize / 8] >> (at % 8) & 1);
                    let bits = (0..width).rev();
                    let key = bits.fold(0, |key, at| key << 1 | bit(n * width + at));
                    if key >= self.entries {
                        return BAD;
                    }
                    keys.push(key);
                }
                source = &source[width as usize..];
            }
        }
        0
    }
}

/// The number of values between the bounds, and the bitmap.
pub fn scanned(bounds: &Bounds, source: &[u8]) -> (u64, Vec<u8>) {
    let values = source.chunks(bounds.bytes());
    let mut bits = vec![0; values.len().div_ceil(8)];
    let mut count = 0;
    for (n, value) in values.enumerate() {
        if bounds.hold(value) {
            bits[n / 8] |= 1 << (n % 8);
            count += 1;
        }
    }
    // Values of 32 bits: an even number of bytes.
    if bounds.bytes() == 4 {
        bits.resize(bits.len().next_multiple_of(2), 0);
    }
    (count, bits)
}
