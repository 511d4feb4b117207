//! Register: NVM subsystem reset

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// NVM subsystem reset
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Nssr(u32);

unsafe impl Send for Nssr {}
unsafe impl Sync for Nssr {}

impl core::default::Default for Nssr {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Nssr {
    type Regwidth = u32;
    type Accesswidth = u32;
    type Access = peakrdl_rust::access::W;
    type ByteEndian = peakrdl_rust::endian::LittleEndian;
    type WordEndian = peakrdl_rust::endian::LittleEndian;

    unsafe fn from_raw(val: Self::Regwidth) -> Self {
        Self(val)
    }

    fn to_raw(self) -> Self::Regwidth {
        self.0
    }
}

impl Nssr {
    pub const NSSRC_OFFSET: usize = 0;
    pub const NSSRC_WIDTH: usize = 32;
    pub const NSSRC_MASK: u32 = 0xFFFF_FFFF;

    /// nssrc
    ///
    /// 4E564D65h ("NVMe") resets the subsystem; reads as 0
    #[inline(always)]
    pub fn set_nssrc(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::NSSRC_MASK << Self::NSSRC_OFFSET))
            | ((val & Self::NSSRC_MASK) << Self::NSSRC_OFFSET);
    }
}

impl core::fmt::Debug for Nssr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nssr").finish()
    }
}
