//! Register: Controller configuration

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Controller configuration
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Cc(u32);

unsafe impl Send for Cc {}
unsafe impl Sync for Cc {}

impl core::default::Default for Cc {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Cc {
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

impl Cc {
    pub const EN_OFFSET: usize = 0;
    pub const EN_WIDTH: usize = 1;
    pub const EN_MASK: u32 = 0x1;

    /// en
    ///
    /// Enable
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn en(&self) -> bool {
        let val = (self.0 >> Self::EN_OFFSET) & Self::EN_MASK;
        val != 0
    }

    /// en
    ///
    /// Enable
    #[inline(always)]
    pub fn set_en(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::EN_MASK << Self::EN_OFFSET))
            | ((val & Self::EN_MASK) << Self::EN_OFFSET);
    }

    pub const CSS_OFFSET: usize = 4;
    pub const CSS_WIDTH: usize = 3;
    pub const CSS_MASK: u32 = 0x7;

    /// css
    ///
    /// I/O command set selected: 0, NVM
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn css(&self) -> u8 {
        let val = (self.0 >> Self::CSS_OFFSET) & Self::CSS_MASK;
        val as u8
    }

    /// css
    ///
    /// I/O command set selected: 0, NVM
    #[inline(always)]
    pub fn set_css(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::CSS_MASK << Self::CSS_OFFSET))
            | ((val & Self::CSS_MASK) << Self::CSS_OFFSET);
    }

    pub const MPS_OFFSET: usize = 7;
    pub const MPS_WIDTH: usize = 4;
    pub const MPS_MASK: u32 = 0xF;

    /// mps
    ///
    /// Memory page size: 0, 4 KiB
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mps(&self) -> u8 {
        let val = (self.0 >> Self::MPS_OFFSET) & Self::MPS_MASK;
        val as u8
    }

    /// mps
    ///
    /// Memory page size: 0, 4 KiB
    #[inline(always)]
    pub fn set_mps(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::MPS_MASK << Self::MPS_OFFSET))
            | ((val & Self::MPS_MASK) << Self::MPS_OFFSET);
    }

    pub const AMS_OFFSET: usize = 11;
    pub const AMS_WIDTH: usize = 3;
    pub const AMS_MASK: u32 = 0x7;

    /// ams
    ///
    /// Arbitration mechanism: 0 round robin, 1 weighted round robin with urgent priority class
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn ams(&self) -> u8 {
        let val = (self.0 >> Self::AMS_OFFSET) & Self::AMS_MASK;
        val as u8
    }

    /// ams
    ///
    /// Arbitration mechanism: 0 round robin, 1 weighted round robin with urgent priority class
    #[inline(always)]
    pub fn set_ams(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::AMS_MASK << Self::AMS_OFFSET))
            | ((val & Self::AMS_MASK) << Self::AMS_OFFSET);
    }

    pub const SHN_OFFSET: usize = 14;
    pub const SHN_WIDTH: usize = 2;
    pub const SHN_MASK: u32 = 0x3;

    /// shn
    ///
    /// Shutdown notification
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn shn(&self) -> u8 {
        let val = (self.0 >> Self::SHN_OFFSET) & Self::SHN_MASK;
        val as u8
    }

    /// shn
    ///
    /// Shutdown notification
    #[inline(always)]
    pub fn set_shn(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::SHN_MASK << Self::SHN_OFFSET))
            | ((val & Self::SHN_MASK) << Self::SHN_OFFSET);
    }

    pub const IOSQES_OFFSET: usize = 16;
    pub const IOSQES_WIDTH: usize = 4;
    pub const IOSQES_MASK: u32 = 0xF;

    /// iosqes
    ///
    /// I/O submission queue entry size, log2: 6
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn iosqes(&self) -> u8 {
        let val = (self.0 >> Self::IOSQES_OFFSET) & Self::IOSQES_MASK;
        val as u8
    }

    /// iosqes
    ///
    /// I/O submission queue entry size, log2: 6
    #[inline(always)]
    pub fn set_iosqes(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::IOSQES_MASK << Self::IOSQES_OFFSET))
            | ((val & Self::IOSQES_MASK) << Self::IOSQES_OFFSET);
    }

    pub const IOCQES_OFFSET: usize = 20;
    pub const IOCQES_WIDTH: usize = 4;
    pub const IOCQES_MASK: u32 = 0xF;

    /// iocqes
    ///
    /// I/O completion queue entry size, log2: 4
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn iocqes(&self) -> u8 {
        let val = (self.0 >> Self::IOCQES_OFFSET) & Self::IOCQES_MASK;
        val as u8
    }

    /// iocqes
    ///
    /// I/O completion queue entry size, log2: 4
    #[inline(always)]
    pub fn set_iocqes(&mut self, val: u8) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::IOCQES_MASK << Self::IOCQES_OFFSET))
            | ((val & Self::IOCQES_MASK) << Self::IOCQES_OFFSET);
    }
}

impl core::fmt::Debug for Cc {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cc")
            .field("en", &self.en())
            .field("css", &self.css())
            .field("mps", &self.mps())
            .field("ams", &self.ams())
            .field("shn", &self.shn())
            .field("iosqes", &self.iosqes())
            .field("iocqes", &self.iocqes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Cc::default();
        assert_eq!(reg.en(), false);
        assert_eq!(reg.css(), 0);
        assert_eq!(reg.mps(), 0);
        assert_eq!(reg.ams(), 0);
        assert_eq!(reg.shn(), 0);
        assert_eq!(reg.iosqes(), 0);
        assert_eq!(reg.iocqes(), 0);
    }
}
