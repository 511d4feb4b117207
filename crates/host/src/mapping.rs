// SPDX-License-Identifier: Apache-2.0

//! A CPU's view of a part of a device's window.

use sim::{Bar, System};

use crate::{Error, Result};

/// Bytes of a line, of a write-combining buffer, and of the longest access.
pub const LINE: usize = 64;

/// The memory type of a mapping, as on x86 (Intel SDM volume 3A, "Methods of Caching Available").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryType {
    /// Every access goes to the device, in program order; loads run one at a time.
    Uncached,
    /// Stores are collected in write-combining buffers; loads go to the device, several at a time.
    WriteCombining,
    /// Loads and stores use the host's cache.
    WriteBack,
}

/// A window of a device as mapped by a CPU. The same bytes must not be accessed through mappings of
/// different memory types, unless the lines were flushed and fenced in between. As on x86, nothing
/// keeps these coherent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The device's number in the system.
    pub device: usize,
    /// The window.
    pub bar: Bar,
    /// The memory type.
    pub kind: MemoryType,
}

/// An aligned line of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheLine {
    /// The device's number in the system.
    pub device: usize,
    /// The window.
    pub bar: Bar,
    /// The offset in the window: a multiple of 64.
    pub offset: u64,
}

/// The part of an access within one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPart {
    pub line: CacheLine,
    /// First byte within the line.
    pub start: usize,
    pub len: usize,
    /// First byte within the access.
    pub from: usize,
}

impl AccessPart {
    pub fn offset(&self) -> u64 {
        self.line.offset + self.start as u64
    }
}

impl Mapping {
    /// The persistent-memory window of a device.
    pub fn pm(device: usize, kind: MemoryType) -> Mapping {
        Mapping {
            device,
            bar: Bar::Pm,
            kind,
        }
    }

    /// The line that a byte is in.
    pub fn line(&self, offset: u64) -> CacheLine {
        CacheLine {
            device: self.device,
            bar: self.bar,
            offset: offset - offset % LINE as u64,
        }
    }

    /// The lines of an access of 1 to 64 bytes within the window: one or two.
    pub(crate) fn parts_in(&self, system: &System, offset: u64, len: usize) -> Result<AccessParts> {
        let parts = self.parts(offset, len)?;
        system.check_access(self.device, self.bar, offset, len as u64)?;
        Ok(parts)
    }

    /// The lines of an access of 1 to 64 bytes.
    pub(crate) fn parts(&self, offset: u64, len: usize) -> Result<AccessParts> {
        if !(1..=LINE).contains(&len) || offset.checked_add(len as u64).is_none() {
            return Err(Error::Access(format!(
                "an access of {len} bytes at {offset:#x}: allowed are 1 to {LINE} bytes"
            )));
        }
        Ok(AccessParts {
            mapping: *self,
            offset,
            len,
            from: 0,
        })
    }
}

/// See [`Mapping::parts`].
#[derive(Clone)]
pub(crate) struct AccessParts {
    mapping: Mapping,
    offset: u64,
    len: usize,
    from: usize,
}

impl Iterator for AccessParts {
    type Item = AccessPart;
    fn next(&mut self) -> Option<AccessPart> {
        let left = self.len - self.from;
        let at = self.offset + self.from as u64;
        let start = (at % LINE as u64) as usize;
        let len = left.min(LINE - start);
        let from = self.from;
        self.from += len;
        (len > 0).then(|| AccessPart {
            line: self.mapping.line(at),
            start,
            len,
            from,
        })
    }
}
