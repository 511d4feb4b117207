//! Register: read_base

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// read_base
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct TimeR(u32);

unsafe impl Send for TimeR {}
unsafe impl Sync for TimeR {}

impl core::default::Default for TimeR {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for TimeR {
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

impl TimeR {
    pub const CYCLES_OFFSET: usize = 0;
    pub const CYCLES_WIDTH: usize = 32;
    pub const CYCLES_MASK: u32 = 0xFFFF_FFFF;

    /// cycles
    ///
    /// Cycles, Q20.12
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn cycles(&self) -> u32 {
        let val = (self.0 >> Self::CYCLES_OFFSET) & Self::CYCLES_MASK;
        val
    }

    /// cycles
    ///
    /// Cycles, Q20.12
    #[inline(always)]
    pub fn set_cycles(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::CYCLES_MASK << Self::CYCLES_OFFSET))
            | ((val & Self::CYCLES_MASK) << Self::CYCLES_OFFSET);
    }
}

impl core::fmt::Debug for TimeR {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TimeR")
            .field("cycles", &self.cycles())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = TimeR::default();
        assert_eq!(reg.cycles(), 0);
    }
}
