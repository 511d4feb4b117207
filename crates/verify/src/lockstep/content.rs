// SPDX-License-Identifier: Apache-2.0

//! Blocks of the media and their content.

use std::ops::Range;

use crate::BLOCK;

/// Blocks and their content; empty where it is unknown.
pub type Blocks = Vec<(u64, Vec<u8>)>;

/// Blocks from `first` on, and their content.
pub fn blocks_of(first: u64, data: &[u8]) -> Blocks {
    let contents = data.chunks(BLOCK as usize).map(<[u8]>::to_vec);
    (first..).zip(contents).collect()
}

/// Blocks of zeros.
pub fn zeros(blocks: Range<u64>) -> Blocks {
    blocks
        .map(|block| (block, vec![0; BLOCK as usize]))
        .collect()
}

/// Merges ranges that meet.
pub fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// Bytes of the media. An empty range may lie anywhere.
pub fn held(media: &[u8], at: u64, bytes: u64) -> &[u8] {
    match bytes {
        0 => &[],
        _ => &media[at as usize..(at + bytes) as usize],
    }
}

/// Blocks that contain a byte range.
pub fn around(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)
}

/// The blocks around some bytes, with these bytes replaced.
pub fn laid(media: &[u8], at: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let blocks = around(&(at..at + data.len() as u64));
    let first = blocks.start * BLOCK;
    let mut bytes = media[first as usize..(blocks.end * BLOCK) as usize].to_vec();
    bytes[(at - first) as usize..][..data.len()].copy_from_slice(data);
    blocks
        .zip(bytes.chunks(BLOCK as usize).map(<[u8]>::to_vec))
        .collect()
}

/// Blocks around a byte range, with unknown content.
pub fn unknown(bytes: Range<u64>) -> Blocks {
    around(&bytes).map(|block| (block, Vec::new())).collect()
}
