//! Register: Persistent memory region control

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Persistent memory region control
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Pmrctl(u32);

unsafe impl Send for Pmrctl {}
unsafe impl Sync for Pmrctl {}

impl core::default::Default for Pmrctl {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Pmrctl {
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

impl Pmrctl {
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
}

impl core::fmt::Debug for Pmrctl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pmrctl").field("en", &self.en()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Pmrctl::default();
        assert_eq!(reg.en(), false);
    }
}
