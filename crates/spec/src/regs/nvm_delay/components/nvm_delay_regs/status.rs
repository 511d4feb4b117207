//! Register: Status

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Status
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Status(u32);

unsafe impl Send for Status {}
unsafe impl Sync for Status {}

impl core::default::Default for Status {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Status {
    type Regwidth = u32;
    type Accesswidth = u32;
    type Access = peakrdl_rust::access::R;
    type ByteEndian = peakrdl_rust::endian::LittleEndian;
    type WordEndian = peakrdl_rust::endian::LittleEndian;

    unsafe fn from_raw(val: Self::Regwidth) -> Self {
        Self(val)
    }

    fn to_raw(self) -> Self::Regwidth {
        self.0
    }
}

impl Status {
    pub const COMMITS_OFFSET: usize = 0;
    pub const COMMITS_WIDTH: usize = 8;
    pub const COMMITS_MASK: u32 = 0xFF;

    /// commits
    ///
    /// Commits since reset, modulo 256
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn commits(&self) -> u8 {
        let val = (self.0 >> Self::COMMITS_OFFSET) & Self::COMMITS_MASK;
        val as u8
    }

    pub const ACTIVE_OFFSET: usize = 8;
    pub const ACTIVE_WIDTH: usize = 1;
    pub const ACTIVE_MASK: u32 = 0x1;

    /// active
    ///
    /// Emulation is on, as last committed
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn active(&self) -> bool {
        let val = (self.0 >> Self::ACTIVE_OFFSET) & Self::ACTIVE_MASK;
        val != 0
    }

    pub const READS_OFFSET: usize = 16;
    pub const READS_WIDTH: usize = 8;
    pub const READS_MASK: u32 = 0xFF;

    /// reads
    ///
    /// Reads in flight
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn reads(&self) -> u8 {
        let val = (self.0 >> Self::READS_OFFSET) & Self::READS_MASK;
        val as u8
    }

    pub const WRITES_OFFSET: usize = 24;
    pub const WRITES_WIDTH: usize = 8;
    pub const WRITES_MASK: u32 = 0xFF;

    /// writes
    ///
    /// Writes in flight
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn writes(&self) -> u8 {
        let val = (self.0 >> Self::WRITES_OFFSET) & Self::WRITES_MASK;
        val as u8
    }
}

impl core::fmt::Debug for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Status")
            .field("commits", &self.commits())
            .field("active", &self.active())
            .field("reads", &self.reads())
            .field("writes", &self.writes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Status::default();
        assert_eq!(reg.commits(), 0);
        assert_eq!(reg.active(), false);
        assert_eq!(reg.reads(), 0);
        assert_eq!(reg.writes(), 0);
    }
}
