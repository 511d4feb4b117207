//! Register: Admin submission queue base address

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Admin submission queue base address
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Asq(u64);

unsafe impl Send for Asq {}
unsafe impl Sync for Asq {}

impl core::default::Default for Asq {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Asq {
    type Regwidth = u64;
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

impl Asq {
    pub const ASQB_LOW_OFFSET: usize = 12;
    pub const ASQB_LOW_WIDTH: usize = 20;
    pub const ASQB_LOW_MASK: u64 = 0xF_FFFF;

    /// asqb_low
    ///
    /// Address bits 31:12
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn asqb_low(&self) -> u32 {
        let val = (self.0 >> Self::ASQB_LOW_OFFSET) & Self::ASQB_LOW_MASK;
        val as u32
    }

    /// asqb_low
    ///
    /// Address bits 31:12
    #[inline(always)]
    pub fn set_asqb_low(&mut self, val: u32) {
        let val = val as u64;
        self.0 = (self.0 & !(Self::ASQB_LOW_MASK << Self::ASQB_LOW_OFFSET))
            | ((val & Self::ASQB_LOW_MASK) << Self::ASQB_LOW_OFFSET);
    }

    pub const ASQB_HIGH_OFFSET: usize = 32;
    pub const ASQB_HIGH_WIDTH: usize = 32;
    pub const ASQB_HIGH_MASK: u64 = 0xFFFF_FFFF;

    /// asqb_high
    ///
    /// Address bits 63:32
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn asqb_high(&self) -> u32 {
        let val = (self.0 >> Self::ASQB_HIGH_OFFSET) & Self::ASQB_HIGH_MASK;
        val as u32
    }

    /// asqb_high
    ///
    /// Address bits 63:32
    #[inline(always)]
    pub fn set_asqb_high(&mut self, val: u32) {
        let val = val as u64;
        self.0 = (self.0 & !(Self::ASQB_HIGH_MASK << Self::ASQB_HIGH_OFFSET))
            | ((val & Self::ASQB_HIGH_MASK) << Self::ASQB_HIGH_OFFSET);
    }
}

impl core::fmt::Debug for Asq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Asq")
            .field("asqb_low", &self.asqb_low())
            .field("asqb_high", &self.asqb_high())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Asq::default();
        assert_eq!(reg.asqb_low(), 0);
        assert_eq!(reg.asqb_high(), 0);
    }
}
