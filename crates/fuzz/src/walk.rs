//! A transfer as pieces of host pages: what PRPs and SGLs come to.

use spec::nvme::{status, Status};

use crate::memory::Memory;

/// A piece of a transfer in one host page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub addr: u64,
    /// Its bytes.
    pub len: u64,
    /// Where it begins in the transfer.
    pub offset: u64,
}

/// What stops a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An entry with an offset that it may not have.
    Offset,
    /// A list that cannot be read.
    Host,
    /// A segment descriptor that is none.
    Segment,
    /// A segment descriptor where none may be, or too many that move nothing.
    Count,
    /// An SGL that ends before the data.
    Length,
    /// A descriptor of another type.
    Type,
    /// Addresses or lengths that are no dwords.
    Granularity,
}

impl Fault {
    /// The status of the command.
    pub fn status(self) -> Status {
        match self {
            Fault::Offset => status::PRP_OFFSET_INVALID.dnr(),
            Fault::Host => status::DATA_TRANSFER_ERROR,
            Fault::Segment => status::INVALID_SGL_SEGMENT_DESCRIPTOR.dnr(),
            Fault::Count => status::INVALID_NUMBER_OF_SGL_DESCRIPTORS.dnr(),
            Fault::Length => status::DATA_SGL_LENGTH_INVALID.dnr(),
            Fault::Type => status::SGL_DESCRIPTOR_TYPE_INVALID.dnr(),
            Fault::Granularity => status::SGL_DATA_BLOCK_GRANULARITY_INVALID.dnr(),
        }
    }
}

/// The pages of a transfer, up to the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// In the order of the transfer.
    pub segments: Vec<Segment>,
    /// Parts of list pages that may be read, each within a page.
    pub lists: Vec<(u64, u64)>,
    /// A list may be read further than it is needed, to where nothing is.
    pub unsure: bool,
    /// Some of the data goes nowhere.
    pub dropped: bool,
    /// What stopped it.
    pub fault: Option<Fault>,
}

impl Walk {
    /// Bytes up to the end or the error.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.len).sum()
    }

    /// True if every page of it exists.
    pub fn exists(&self, memory: &Memory) -> bool {
        self.segments.iter().all(|s| memory.exists(s.addr, s.len))
    }

    /// The bytes of the transfer; those at addresses that do not exist are `None`.
    pub fn gather(&self, memory: &Memory) -> Vec<Option<u8>> {
        let mut out = Vec::with_capacity(self.bytes() as usize);
        for s in &self.segments {
            match memory.get(s.addr, s.len) {
                Some(bytes) => out.extend(bytes.iter().map(|&b| Some(b))),
                None => out.resize(out.len() + s.len as usize, None),
            }
        }
        out
    }
}
