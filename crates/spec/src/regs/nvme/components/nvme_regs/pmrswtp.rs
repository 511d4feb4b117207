//! Register: Persistent memory region sustained write throughput

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Persistent memory region sustained write throughput
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Pmrswtp(u32);

unsafe impl Send for Pmrswtp {}
unsafe impl Sync for Pmrswtp {}

impl core::default::Default for Pmrswtp {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Pmrswtp {
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

impl Pmrswtp {
    pub const PMRSWTP_OFFSET: usize = 0;
    pub const PMRSWTP_WIDTH: usize = 32;
    pub const PMRSWTP_MASK: u32 = 0xFFFF_FFFF;

    /// pmrswtp
    ///
    /// None is reported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrswtp(&self) -> u32 {
        let val = (self.0 >> Self::PMRSWTP_OFFSET) & Self::PMRSWTP_MASK;
        val
    }
}

impl core::fmt::Debug for Pmrswtp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pmrswtp")
            .field("pmrswtp", &self.pmrswtp())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Pmrswtp::default();
        assert_eq!(reg.pmrswtp(), 0);
    }
}
