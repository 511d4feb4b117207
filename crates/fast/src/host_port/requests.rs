// SPDX-License-Identifier: Apache-2.0

//! Accesses to host memory as blocks request them: purposes of reads, owners of writes.

/// The block that has requested host memory, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    /// The submission queue entry of the command in this slot.
    Fetch(u16),
    /// A part of the PRP list or SGL segment of the command in this slot.
    List(u16),
    /// Write data: descriptor number, PRP segment within it, channel of the mover.
    Data(u32, u16, u8),
    /// A shadow doorbell.
    Shadow,
    /// Data of a Set Features: the segment with this number.
    AdminData(u8),
    /// A line of a list of ranges.
    RangeList,
    /// A line of a PRP list or SGL segment that describes where a list of ranges is.
    RangeListPointer,
}

impl ReadPurpose {
    /// The stream whose answers arrive in order. The RTL has an AXI ID for each.
    pub(super) fn stream(self) -> ReadStream {
        match self {
            ReadPurpose::Fetch(_) => ReadStream::Fetch,
            ReadPurpose::List(slot) => ReadStream::List(slot),
            ReadPurpose::Data(_, _, channel) => ReadStream::Data(channel),
            ReadPurpose::Shadow => ReadStream::Shadow,
            ReadPurpose::AdminData(_) => ReadStream::AdminData,
            ReadPurpose::RangeList | ReadPurpose::RangeListPointer => ReadStream::Ranges,
        }
    }
}

/// Reads whose answers arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadStream {
    /// Submission queue entries.
    Fetch,
    /// The PRP list or SGL segments of the command in this slot.
    List(u16),
    /// Write data for the mover of this channel.
    Data(u8),
    /// Shadow doorbells.
    Shadow,
    /// Data of a Set Features.
    AdminData,
    /// Lists of ranges.
    Ranges,
}

/// Read data that has arrived from the host.
pub(crate) struct HostReadData {
    pub(crate) purpose: ReadPurpose,
    /// The edge at which its last beat has passed the port.
    pub(crate) cycle: u64,
    /// Its place in the requested data.
    pub(crate) offset: u32,
    /// The bytes; `None` if the read has failed.
    pub(crate) data: Option<Vec<u8>>,
    /// Beats at the port.
    pub(crate) beats: u32,
    /// Set with the last data of a read.
    pub(crate) last: bool,
}

/// The block that is notified once the link has accepted a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BurstOwner {
    /// A descriptor of the data path.
    Descriptor(u32),
    /// The admin queue, for the entry of its command in progress.
    AdminEntry,
    /// The shadow doorbells.
    EventIdx,
}
