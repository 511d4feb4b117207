//! Register: Interrupt mask set

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Interrupt mask set
///
/// For pin-based and MSI interrupts, of which there are none: it is stored, and masks nothing.
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Intms(u32);

unsafe impl Send for Intms {}
unsafe impl Sync for Intms {}

impl core::default::Default for Intms {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Intms {
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

impl Intms {
    pub const IVMS_OFFSET: usize = 0;
    pub const IVMS_WIDTH: usize = 32;
    pub const IVMS_MASK: u32 = 0xFFFF_FFFF;

    /// ivms
    ///
    /// Mask, write 1 to set
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn ivms(&self) -> u32 {
        let val = (self.0 >> Self::IVMS_OFFSET) & Self::IVMS_MASK;
        val
    }

    /// ivms
    ///
    /// Mask, write 1 to set
    #[inline(always)]
    pub fn set_ivms(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::IVMS_MASK << Self::IVMS_OFFSET))
            | ((val & Self::IVMS_MASK) << Self::IVMS_OFFSET);
    }
}

impl core::fmt::Debug for Intms {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Intms").field("ivms", &self.ivms()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Intms::default();
        assert_eq!(reg.ivms(), 0);
    }
}
