//! Register: Persistent memory region status

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Persistent memory region status
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Pmrsts(u32);

unsafe impl Send for Pmrsts {}
unsafe impl Sync for Pmrsts {}

impl core::default::Default for Pmrsts {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Pmrsts {
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

impl Pmrsts {
    pub const ERR_OFFSET: usize = 0;
    pub const ERR_WIDTH: usize = 8;
    pub const ERR_MASK: u32 = 0xFF;

    /// err
    ///
    /// Error
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn err(&self) -> u8 {
        let val = (self.0 >> Self::ERR_OFFSET) & Self::ERR_MASK;
        val as u8
    }

    pub const NRDY_OFFSET: usize = 8;
    pub const NRDY_WIDTH: usize = 1;
    pub const NRDY_MASK: u32 = 0x1;

    /// nrdy
    ///
    /// Not ready: not enabled
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn nrdy(&self) -> bool {
        let val = (self.0 >> Self::NRDY_OFFSET) & Self::NRDY_MASK;
        val != 0
    }

    pub const HSTS_OFFSET: usize = 9;
    pub const HSTS_WIDTH: usize = 3;
    pub const HSTS_MASK: u32 = 0x7;

    /// hsts
    ///
    /// Health: 0, normal
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn hsts(&self) -> u8 {
        let val = (self.0 >> Self::HSTS_OFFSET) & Self::HSTS_MASK;
        val as u8
    }
}

impl core::fmt::Debug for Pmrsts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pmrsts")
            .field("err", &self.err())
            .field("nrdy", &self.nrdy())
            .field("hsts", &self.hsts())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Pmrsts::default();
        assert_eq!(reg.err(), 0);
        assert_eq!(reg.nrdy(), false);
        assert_eq!(reg.hsts(), 0);
    }
}
