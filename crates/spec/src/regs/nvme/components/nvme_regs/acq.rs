//! Register: Admin completion queue base address

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Admin completion queue base address
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Acq(u64);

unsafe impl Send for Acq {}
unsafe impl Sync for Acq {}

impl core::default::Default for Acq {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Acq {
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

impl Acq {
    pub const ACQB_LOW_OFFSET: usize = 12;
    pub const ACQB_LOW_WIDTH: usize = 20;
    pub const ACQB_LOW_MASK: u64 = 0xF_FFFF;

    /// acqb_low
    ///
    /// Address bits 31:12
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn acqb_low(&self) -> u32 {
        let val = (self.0 >> Self::ACQB_LOW_OFFSET) & Self::ACQB_LOW_MASK;
        val as u32
    }

    /// acqb_low
    ///
    /// Address bits 31:12
    #[inline(always)]
    pub fn set_acqb_low(&mut self, val: u32) {
        let val = val as u64;
        self.0 = (self.0 & !(Self::ACQB_LOW_MASK << Self::ACQB_LOW_OFFSET))
            | ((val & Self::ACQB_LOW_MASK) << Self::ACQB_LOW_OFFSET);
    }

    pub const ACQB_HIGH_OFFSET: usize = 32;
    pub const ACQB_HIGH_WIDTH: usize = 32;
    pub const ACQB_HIGH_MASK: u64 = 0xFFFF_FFFF;

    /// acqb_high
    ///
    /// Address bits 63:32
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn acqb_high(&self) -> u32 {
        let val = (self.0 >> Self::ACQB_HIGH_OFFSET) & Self::ACQB_HIGH_MASK;
        val as u32
    }

    /// acqb_high
    ///
    /// Address bits 63:32
    #[inline(always)]
    pub fn set_acqb_high(&mut self, val: u32) {
        let val = val as u64;
        self.0 = (self.0 & !(Self::ACQB_HIGH_MASK << Self::ACQB_HIGH_OFFSET))
            | ((val & Self::ACQB_HIGH_MASK) << Self::ACQB_HIGH_OFFSET);
    }
}

impl core::fmt::Debug for Acq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Acq")
            .field("acqb_low", &self.acqb_low())
            .field("acqb_high", &self.acqb_high())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Acq::default();
        assert_eq!(reg.acqb_low(), 0);
        assert_eq!(reg.acqb_high(), 0);
    }
}
