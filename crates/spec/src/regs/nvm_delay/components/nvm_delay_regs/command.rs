//! Register: Command

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Command
///
/// Each bit starts an action when written 1 and reads as 0; bits written together act in the same cycle.
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Command(u32);

unsafe impl Send for Command {}
unsafe impl Sync for Command {}

impl core::default::Default for Command {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Command {
    type Regwidth = u32;
    type Accesswidth = u32;
    type Access = peakrdl_rust::access::RW;
    type ByteEndian = peakrdl_rust::endian::LittleEndian;
    type WordEndian = peakrdl_rust::endian::LittleEndian;

    unsafe fn from_raw(val: Self::Regwidth) -> Self {
        Self(val)
    }

    fn to_raw(self) -> Self::Regwidth {
        self.0
    }
}

impl Command {
    pub const COMMIT_OFFSET: usize = 0;
    pub const COMMIT_WIDTH: usize = 1;
    pub const COMMIT_MASK: u32 = 0x1;

    /// commit
    ///
    /// All shadow registers take effect
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn commit(&self) -> bool {
        let val = (self.0 >> Self::COMMIT_OFFSET) & Self::COMMIT_MASK;
        val != 0
    }

    /// commit
    ///
    /// All shadow registers take effect
    #[inline(always)]
    pub fn set_commit(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::COMMIT_MASK << Self::COMMIT_OFFSET))
            | ((val & Self::COMMIT_MASK) << Self::COMMIT_OFFSET);
    }

    pub const SNAPSHOT_OFFSET: usize = 1;
    pub const SNAPSHOT_WIDTH: usize = 1;
    pub const SNAPSHOT_MASK: u32 = 0x1;

    /// snapshot
    ///
    /// Freeze a copy of all counters at 0x800
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn snapshot(&self) -> bool {
        let val = (self.0 >> Self::SNAPSHOT_OFFSET) & Self::SNAPSHOT_MASK;
        val != 0
    }

    /// snapshot
    ///
    /// Freeze a copy of all counters at 0x800
    #[inline(always)]
    pub fn set_snapshot(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::SNAPSHOT_MASK << Self::SNAPSHOT_OFFSET))
            | ((val & Self::SNAPSHOT_MASK) << Self::SNAPSHOT_OFFSET);
    }

    pub const CLEAR_OFFSET: usize = 2;
    pub const CLEAR_WIDTH: usize = 1;
    pub const CLEAR_MASK: u32 = 0x1;

    /// clear
    ///
    /// Set all live counters to their initial values, after the snapshot if both are written
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn clear(&self) -> bool {
        let val = (self.0 >> Self::CLEAR_OFFSET) & Self::CLEAR_MASK;
        val != 0
    }

    /// clear
    ///
    /// Set all live counters to their initial values, after the snapshot if both are written
    #[inline(always)]
    pub fn set_clear(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::CLEAR_MASK << Self::CLEAR_OFFSET))
            | ((val & Self::CLEAR_MASK) << Self::CLEAR_OFFSET);
    }
}

impl core::fmt::Debug for Command {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Command")
            .field("commit", &self.commit())
            .field("snapshot", &self.snapshot())
            .field("clear", &self.clear())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Command::default();
        assert_eq!(reg.commit(), false);
        assert_eq!(reg.snapshot(), false);
        assert_eq!(reg.clear(), false);
    }
}
