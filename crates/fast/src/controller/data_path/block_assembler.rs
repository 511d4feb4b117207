// SPDX-License-Identifier: Apache-2.0

//! Groups PRP segments to whole logical blocks (nvme_block_assembler).

use std::collections::VecDeque;

use nvme::BLOCK_BYTES;

use super::{DataSource, SEGMENT_BYTES};

/// A part of a transfer segment in one host page. Without an address its data is discarded.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrpSegment {
    pub(super) host: Option<u64>,
    pub(super) len: u32,
}

/// In most cases one.
#[derive(Clone, Debug)]
pub(super) enum PrpSegments {
    One(PrpSegment),
    Many(Vec<PrpSegment>),
}

impl PrpSegments {
    pub(super) fn as_slice(&self) -> &[PrpSegment] {
        match self {
            PrpSegments::One(segment) => std::slice::from_ref(segment),
            PrpSegments::Many(segments) => segments,
        }
    }
}

/// A part of a transfer for one mover: address on the media or in the page, bytes, PRP segments.
pub(super) struct TransferSegment {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) segments: PrpSegments,
}

/// The PRP segments of a transfer that do not make whole blocks yet, and the transfer segments that
/// wait for room in a mover.
#[derive(Default)]
pub(super) struct BlockAssembler {
    group: Vec<PrpSegment>,
    /// Start of the group in the transfer.
    group_at: u64,
    group_len: u64,
    pub(super) ready: VecDeque<TransferSegment>,
}

impl BlockAssembler {
    /// Drops an incomplete group.
    pub(super) fn drop_group(&mut self) {
        self.group.clear();
    }

    /// Splits a PRP segment at multiples of 4 KiB of the media, and makes transfer segments of the
    /// groups that are whole blocks. Returns the number of segments in the group.
    pub(super) fn push(
        &mut self,
        source: &DataSource,
        host: Option<u64>,
        len: u64,
        offset: u64,
    ) -> usize {
        let mut parts = self.group.len();
        let (mut host, mut left, mut at) = (host, len, offset);
        let (base, media) = match source {
            DataSource::Media(addr) => (*addr, true),
            DataSource::Page(_) => (0, false),
        };
        while left > 0 {
            if self.group.is_empty() {
                (self.group_at, self.group_len) = (at, 0);
            }
            parts += 1;
            let part = left.min(SEGMENT_BYTES - (base + at) % SEGMENT_BYTES);
            self.group.push(PrpSegment {
                host,
                len: part as u32,
            });
            self.group_len += part;
            host = host.map(|host| host.wrapping_add(part));
            (left, at) = (left - part, at + part);
            if !media || at % BLOCK_BYTES == 0 {
                let segments = match self.group[..] {
                    [segment] => PrpSegments::One(segment),
                    _ => PrpSegments::Many(self.group.clone()),
                };
                self.group.clear();
                self.ready.push_back(TransferSegment {
                    at: base + self.group_at,
                    len: self.group_len as u32,
                    segments,
                });
            }
        }
        parts
    }
}
