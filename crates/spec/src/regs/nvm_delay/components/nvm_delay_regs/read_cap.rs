//! Register: Read bandwidth cap (shadow)

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Read bandwidth cap (shadow)
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct ReadCap(u32);

unsafe impl Send for ReadCap {}
unsafe impl Sync for ReadCap {}

impl core::default::Default for ReadCap {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for ReadCap {
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

impl ReadCap {
    pub const RATE_OFFSET: usize = 0;
    pub const RATE_WIDTH: usize = 24;
    pub const RATE_MASK: u32 = 0xFF_FFFF;

    /// rate
    ///
    /// Bytes per cycle, Q8.16; 0: none
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn rate(&self) -> u32 {
        let val = (self.0 >> Self::RATE_OFFSET) & Self::RATE_MASK;
        val
    }

    /// rate
    ///
    /// Bytes per cycle, Q8.16; 0: none
    #[inline(always)]
    pub fn set_rate(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::RATE_MASK << Self::RATE_OFFSET))
            | ((val & Self::RATE_MASK) << Self::RATE_OFFSET);
    }
}

impl core::fmt::Debug for ReadCap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReadCap")
            .field("rate", &self.rate())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = ReadCap::default();
        assert_eq!(reg.rate(), 0);
    }
}
