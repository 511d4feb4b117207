//! Register: Control (shadow)

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Control (shadow)
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Control(u32);

unsafe impl Send for Control {}
unsafe impl Sync for Control {}

impl core::default::Default for Control {
    fn default() -> Self {
        Self(0x0)
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
    pub const ENABLE_OFFSET: usize = 0;
    pub const ENABLE_WIDTH: usize = 1;
    pub const ENABLE_MASK: u32 = 0x1;

    /// enable
    ///
    /// 1: emulate; 0: off, a register slice without delays and caps
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn enable(&self) -> bool {
        let val = (self.0 >> Self::ENABLE_OFFSET) & Self::ENABLE_MASK;
        val != 0
    }

    /// enable
    ///
    /// 1: emulate; 0: off, a register slice without delays and caps
    #[inline(always)]
    pub fn set_enable(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::ENABLE_MASK << Self::ENABLE_OFFSET))
            | ((val & Self::ENABLE_MASK) << Self::ENABLE_OFFSET);
    }

    pub const REGION_ENABLE_OFFSET: usize = 4;
    pub const REGION_ENABLE_WIDTH: usize = 4;
    pub const REGION_ENABLE_MASK: u32 = 0xF;

    /// region_enable
    ///
    /// Bit r enables address region r
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn region_enable(&self) -> u8 {
        let val = (self.0 >> Self::REGION_ENABLE_OFFSET) & Self::REGION_ENABLE_MASK;
        val as u8
    }

    /// region_enable
    ///
    /// Bit r enables address region r
    #[inline(always)]
    pub fn set_region_enable(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::REGION_ENABLE_MASK << Self::REGION_ENABLE_OFFSET))
            | ((val & Self::REGION_ENABLE_MASK) << Self::REGION_ENABLE_OFFSET);
    }
}

impl core::fmt::Debug for Control {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Control")
            .field("enable", &self.enable())
            .field("region_enable", &self.region_enable())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Control::default();
        assert_eq!(reg.enable(), false);
        assert_eq!(reg.region_enable(), 0);
    }
}
