//! Register: Persistent memory region elasticity buffer size

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Persistent memory region elasticity buffer size
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Pmrebs(u32);

unsafe impl Send for Pmrebs {}
unsafe impl Sync for Pmrebs {}

impl core::default::Default for Pmrebs {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Pmrebs {
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

impl Pmrebs {
    pub const PMREBS_OFFSET: usize = 0;
    pub const PMREBS_WIDTH: usize = 32;
    pub const PMREBS_MASK: u32 = 0xFFFF_FFFF;

    /// pmrebs
    ///
    /// None is reported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrebs(&self) -> u32 {
        let val = (self.0 >> Self::PMREBS_OFFSET) & Self::PMREBS_MASK;
        val
    }
}

impl core::fmt::Debug for Pmrebs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pmrebs")
            .field("pmrebs", &self.pmrebs())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Pmrebs::default();
        assert_eq!(reg.pmrebs(), 0);
    }
}
