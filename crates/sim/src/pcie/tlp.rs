//! What travels on a link, and how accesses are cut into it.

use crate::{Bar, Mmio, ReadData, Time};

/// The end of the next piece of `addr..end` when cut at multiples of `unit`.
#[inline]
pub(super) fn cut(addr: u64, end: u64, unit: u64) -> u64 {
    end.min((addr | (unit - 1)) + 1)
}

/// A TLP of the device on its way to the root complex.
pub(crate) struct UpTlp {
    pub arrival: Time,
    pub(super) start: Time,
    pub kind: Up,
}

/// What the device sends.
pub(crate) enum Up {
    /// Posted write; the bytes lie in the link's `slot`.
    Write { addr: u64, slot: u32, len: u32 },
    /// Read request.
    Read(Request),
    /// The whole answer to an MMIO read; the time is that of its last TLP.
    Answer { tag: u32, data: Option<Vec<u8>> },
}

/// One read request TLP of the device.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub addr: u64,
    pub len: u32,
    /// The link's entry of the read that this is a part of.
    pub(super) read: u32,
    /// The last request of that read.
    pub(super) last: bool,
}

/// A read of the device, which may be several requests.
pub(super) struct DeviceRead {
    pub(super) tag: u32,
    pub(super) failed: bool,
    /// When the latest piece so far was ready, to keep pieces in order.
    pub(super) ready: Time,
    pub(super) live: bool,
}

/// A completion that waits for the wire to the device.
pub(super) struct Completion {
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
pub(super) struct Arrived {
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
    let end = offset + data.len() as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let next = cut(at, end, unit.into());
        let data = data[(at - offset) as usize..(next - offset) as usize].to_vec();
        let mmio = Mmio::Write {
            bar,
            offset: at,
            data,
        };
        at = next;
        Some(mmio)
    })
}
