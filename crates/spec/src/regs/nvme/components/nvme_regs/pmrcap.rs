//! Register: Persistent memory region capabilities

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Persistent memory region capabilities
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Pmrcap(u32);

unsafe impl Send for Pmrcap {}
unsafe impl Sync for Pmrcap {}

impl core::default::Default for Pmrcap {
    fn default() -> Self {
        Self(0x1_0440)
    }
}

impl peakrdl_rust::reg::Register for Pmrcap {
    type Regwidth = u32;
    type Accesswidth = u32;
    type Access = peakrdl_rust::access::R;
    type ByteEndian = peakrdl_rust::endian::LittleEndian;
    type WordEndian = peakrdl_rust::endian::LittleEndian;

    unsafe fn from_raw(val: Self::Regwidth) -> Self {
        Self(val)
    }

    fn to_raw(self) -> Self::Regwidth {
        self.0
    }
}

impl Pmrcap {
    pub const RDS_OFFSET: usize = 3;
    pub const RDS_WIDTH: usize = 1;
    pub const RDS_MASK: u32 = 0x1;

    /// rds
    ///
    /// Data of Reads and Compares may lie in it
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn rds(&self) -> bool {
        let val = (self.0 >> Self::RDS_OFFSET) & Self::RDS_MASK;
        val != 0
    }

    pub const WDS_OFFSET: usize = 4;
    pub const WDS_WIDTH: usize = 1;
    pub const WDS_MASK: u32 = 0x1;

    /// wds
    ///
    /// Data of Writes may lie in it
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn wds(&self) -> bool {
        let val = (self.0 >> Self::WDS_OFFSET) & Self::WDS_MASK;
        val != 0
    }

    pub const BIR_OFFSET: usize = 5;
    pub const BIR_WIDTH: usize = 3;
    pub const BIR_MASK: u32 = 0x7;

    /// bir
    ///
    /// BAR
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn bir(&self) -> u8 {
        let val = (self.0 >> Self::BIR_OFFSET) & Self::BIR_MASK;
        val as u8
    }

    pub const PMRTU_OFFSET: usize = 8;
    pub const PMRTU_WIDTH: usize = 2;
    pub const PMRTU_MASK: u32 = 0x3;

    /// pmrtu
    ///
    /// Unit of PMRTO: 500 ms
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrtu(&self) -> u8 {
        let val = (self.0 >> Self::PMRTU_OFFSET) & Self::PMRTU_MASK;
        val as u8
    }

    pub const PMRWBM_OFFSET: usize = 10;
    pub const PMRWBM_WIDTH: usize = 4;
    pub const PMRWBM_MASK: u32 = 0xF;

    /// pmrwbm
    ///
    /// Write barriers; bit 0: a read of the region ends when all writes before it are persistent
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrwbm(&self) -> u8 {
        let val = (self.0 >> Self::PMRWBM_OFFSET) & Self::PMRWBM_MASK;
        val as u8
    }

    pub const PMRTO_OFFSET: usize = 16;
    pub const PMRTO_WIDTH: usize = 8;
    pub const PMRTO_MASK: u32 = 0xFF;

    /// pmrto
    ///
    /// Time to become ready or not ready
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrto(&self) -> u8 {
        let val = (self.0 >> Self::PMRTO_OFFSET) & Self::PMRTO_MASK;
        val as u8
    }

    pub const CMSS_OFFSET: usize = 24;
    pub const CMSS_WIDTH: usize = 1;
    pub const CMSS_MASK: u32 = 0x1;

    /// cmss
    ///
    /// Controller memory space supported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn cmss(&self) -> bool {
        let val = (self.0 >> Self::CMSS_OFFSET) & Self::CMSS_MASK;
        val != 0
    }
}

impl core::fmt::Debug for Pmrcap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pmrcap")
            .field("rds", &self.rds())
            .field("wds", &self.wds())
            .field("bir", &self.bir())
            .field("pmrtu", &self.pmrtu())
            .field("pmrwbm", &self.pmrwbm())
            .field("pmrto", &self.pmrto())
            .field("cmss", &self.cmss())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Pmrcap::default();
        assert_eq!(reg.rds(), false);
        assert_eq!(reg.wds(), false);
        assert_eq!(reg.bir(), 2);
        assert_eq!(reg.pmrtu(), 0);
        assert_eq!(reg.pmrwbm(), 1);
        assert_eq!(reg.pmrto(), 1);
        assert_eq!(reg.cmss(), false);
    }
}
