//! Register: Controller status

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Controller status
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Csts(u32);

unsafe impl Send for Csts {}
unsafe impl Sync for Csts {}

impl core::default::Default for Csts {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Csts {
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

impl Csts {
    pub const RDY_OFFSET: usize = 0;
    pub const RDY_WIDTH: usize = 1;
    pub const RDY_MASK: u32 = 0x1;

    /// rdy
    ///
    /// Ready
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn rdy(&self) -> bool {
        let val = (self.0 >> Self::RDY_OFFSET) & Self::RDY_MASK;
        val != 0
    }

    pub const CFS_OFFSET: usize = 1;
    pub const CFS_WIDTH: usize = 1;
    pub const CFS_MASK: u32 = 0x1;

    /// cfs
    ///
    /// Controller fatal status
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn cfs(&self) -> bool {
        let val = (self.0 >> Self::CFS_OFFSET) & Self::CFS_MASK;
        val != 0
    }

    pub const SHST_OFFSET: usize = 2;
    pub const SHST_WIDTH: usize = 2;
    pub const SHST_MASK: u32 = 0x3;

    /// shst
    ///
    /// Shutdown status: 0 normal, 1 in progress, 2 complete
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn shst(&self) -> u8 {
        let val = (self.0 >> Self::SHST_OFFSET) & Self::SHST_MASK;
        val as u8
    }

    pub const NSSRO_OFFSET: usize = 4;
    pub const NSSRO_WIDTH: usize = 1;
    pub const NSSRO_MASK: u32 = 0x1;

    /// nssro
    ///
    /// NVM subsystem reset occurred, write 1 to clear
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn nssro(&self) -> bool {
        let val = (self.0 >> Self::NSSRO_OFFSET) & Self::NSSRO_MASK;
        val != 0
    }

    /// nssro
    ///
    /// NVM subsystem reset occurred, write 1 to clear
    #[inline(always)]
    pub fn set_nssro(&mut self, val: bool) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::NSSRO_MASK << Self::NSSRO_OFFSET))
            | ((val & Self::NSSRO_MASK) << Self::NSSRO_OFFSET);
    }

    pub const PP_OFFSET: usize = 5;
    pub const PP_WIDTH: usize = 1;
    pub const PP_MASK: u32 = 0x1;

    /// pp
    ///
    /// Processing paused
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pp(&self) -> bool {
        let val = (self.0 >> Self::PP_OFFSET) & Self::PP_MASK;
        val != 0
    }
}

impl core::fmt::Debug for Csts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Csts")
            .field("rdy", &self.rdy())
            .field("cfs", &self.cfs())
            .field("shst", &self.shst())
            .field("nssro", &self.nssro())
            .field("pp", &self.pp())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Csts::default();
        assert_eq!(reg.rdy(), false);
        assert_eq!(reg.cfs(), false);
        assert_eq!(reg.shst(), 0);
        assert_eq!(reg.nssro(), false);
        assert_eq!(reg.pp(), false);
    }
}
