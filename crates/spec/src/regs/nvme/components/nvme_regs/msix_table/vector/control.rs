//! Register: Vector control

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Vector control
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Control(u32);

unsafe impl Send for Control {}
unsafe impl Sync for Control {}

impl core::default::Default for Control {
    fn default() -> Self {
        Self(0x1)
    }
}

impl peakrdl_rust::reg::Register for Control {
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

impl Control {
    pub const MASK_OFFSET: usize = 0;
    pub const MASK_WIDTH: usize = 1;
    pub const MASK_MASK: u32 = 0x1;

    /// mask
    ///
    /// Masked
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mask(&self) -> bool {
        let val = (self.0 >> Self::MASK_OFFSET) & Self::MASK_MASK;
        val != 0
    }

    /// mask
    ///
    /// Masked
    #[inline(always)]
    pub fn set_mask(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::MASK_MASK << Self::MASK_OFFSET))
            | ((val & Self::MASK_MASK) << Self::MASK_OFFSET);
    }
}

impl core::fmt::Debug for Control {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Control")
            .field("mask", &self.mask())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Control::default();
        assert_eq!(reg.mask(), true);
    }
}
