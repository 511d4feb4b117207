// SPDX-License-Identifier: Apache-2.0

//! The TLPs of a link, and the splitting of accesses.

use crate::{Bar, Mmio, ReadData, Time};

/// Splits an access of `len` bytes at `addr` at multiples of `unit`, a power of two. Yields the
/// address of each part, its offset within the access, and its length.
///
/// Address and length are never added, because the last page ends at 2^64. An access past that end,
/// which no device may make, gets the last address, where nothing is mapped.
pub(super) fn split_at_boundaries(
    addr: u64,
    len: usize,
    unit: u32,
) -> impl Iterator<Item = (u64, usize, usize)> {
    let unit = unit as usize;
    let mut done = 0;
    std::iter::from_fn(move || {
        let left = len - done;
        if left == 0 {
            return None;
        }
        let room = unit - (addr.wrapping_add(done as u64) as usize & (unit - 1));
        let piece = (addr.saturating_add(done as u64), done, room.min(left));
        done += piece.2;
        Some(piece)
    })
}

/// A TLP of the device on its way to the root complex.
pub(crate) struct UpstreamTlp {
    pub arrival: Time,
    pub(super) start: Time,
    pub kind: UpstreamKind,
}

/// The kind of a TLP of the device.
pub(crate) enum UpstreamKind {
    /// Posted write; the bytes lie in the link's `slot`.
    Write { addr: u64, slot: u32, len: u32 },
    /// Read request.
    Read(ReadRequest),
    /// One completion of an MMIO read; `last` marks the final one. `None`: the read has failed.
    Answer {
        tag: u32,
        data: Option<Vec<u8>>,
        last: bool,
    },
}

/// One read request TLP of the device.
#[derive(Clone, Copy)]
pub(crate) struct ReadRequest {
    pub addr: u64,
    pub len: u32,
    /// The link's entry of the read that this request belongs to.
    pub(super) read: u32,
    /// Its place among the requests of that read.
    pub(super) place: u32,
    /// The last request of that read.
    pub(super) last: bool,
}

/// A read of the device, which may be several requests.
pub(super) struct DeviceRead {
    pub(super) tag: u32,
    pub(super) failed: bool,
    /// When the latest piece so far was ready, to keep pieces in order.
    pub(super) ready: Time,
    /// Requests that have been answered in order.
    pub(super) answered: u32,
    /// Answers that wait for those to requests before them: peers answer in any order.
    pub(super) early: Vec<(Time, ReadRequest, Option<Vec<u8>>)>,
    pub(super) live: bool,
}

/// A completion that waits for the wire to the device.
pub(super) struct QueuedCompletion {
    pub(super) ready: Time,
    /// The device's read.
    pub(super) read: u32,
    /// `None`: unsupported request.
    pub(super) data: Option<Vec<u8>>,
    pub(super) payload: u64,
    /// The last completion of its request: frees its tag and `frees` bytes of buffer.
    pub(super) ends_request: bool,
    pub(super) frees: u32,
    /// The last of the whole read.
    pub(super) last: bool,
}

/// What the device finds in its receive buffer.
pub(super) struct ReceivedCompletion {
    pub(super) at: Time,
    pub(super) piece: Option<ReadData>,
    pub(super) ends_request: bool,
    pub(super) frees: u32,
}

/// Cuts a host's access of `data` into TLPs for the device.
pub(crate) fn split_write(
    bar: Bar,
    offset: u64,
    data: &[u8],
    unit: u32,
) -> impl Iterator<Item = Mmio> + '_ {
    split_at_boundaries(offset, data.len(), unit).map(move |(offset, from, len)| Mmio::Write {
        bar,
        offset,
        data: data[from..from + len].to_vec(),
    })
}
