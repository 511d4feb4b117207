//! Register: Interrupt mask clear

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Interrupt mask clear
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Intmc(u32);

unsafe impl Send for Intmc {}
unsafe impl Sync for Intmc {}

impl core::default::Default for Intmc {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Intmc {
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

impl Intmc {
    pub const IVMC_OFFSET: usize = 0;
    pub const IVMC_WIDTH: usize = 32;
    pub const IVMC_MASK: u32 = 0xFFFF_FFFF;

    /// ivmc
    ///
    /// Mask, write 1 to clear
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn ivmc(&self) -> u32 {
        let val = (self.0 >> Self::IVMC_OFFSET) & Self::IVMC_MASK;
        val
    }

    /// ivmc
    ///
    /// Mask, write 1 to clear
    #[inline(always)]
    pub fn set_ivmc(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::IVMC_MASK << Self::IVMC_OFFSET))
            | ((val & Self::IVMC_MASK) << Self::IVMC_OFFSET);
    }
}

impl core::fmt::Debug for Intmc {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Intmc").field("ivmc", &self.ivmc()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Intmc::default();
        assert_eq!(reg.ivmc(), 0);
    }
}
