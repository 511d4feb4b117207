//! Register: Admin queue attributes

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Admin queue attributes
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Aqa(u32);

unsafe impl Send for Aqa {}
unsafe impl Sync for Aqa {}

impl core::default::Default for Aqa {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Aqa {
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

impl Aqa {
    pub const ASQS_OFFSET: usize = 0;
    pub const ASQS_WIDTH: usize = 12;
    pub const ASQS_MASK: u32 = 0xFFF;

    /// asqs
    ///
    /// Admin submission queue size, 0-based
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn asqs(&self) -> u16 {
        let val = (self.0 >> Self::ASQS_OFFSET) & Self::ASQS_MASK;
        val as u16
    }

    /// asqs
    ///
    /// Admin submission queue size, 0-based
    #[inline(always)]
    pub fn set_asqs(&mut self, val: u16) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::ASQS_MASK << Self::ASQS_OFFSET))
            | ((val & Self::ASQS_MASK) << Self::ASQS_OFFSET);
    }

    pub const ACQS_OFFSET: usize = 16;
    pub const ACQS_WIDTH: usize = 12;
    pub const ACQS_MASK: u32 = 0xFFF;

    /// acqs
    ///
    /// Admin completion queue size, 0-based
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn acqs(&self) -> u16 {
        let val = (self.0 >> Self::ACQS_OFFSET) & Self::ACQS_MASK;
        val as u16
    }

    /// acqs
    ///
    /// Admin completion queue size, 0-based
    #[inline(always)]
    pub fn set_acqs(&mut self, val: u16) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::ACQS_MASK << Self::ACQS_OFFSET))
            | ((val & Self::ACQS_MASK) << Self::ACQS_OFFSET);
    }
}

impl core::fmt::Debug for Aqa {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Aqa")
            .field("asqs", &self.asqs())
            .field("acqs", &self.acqs())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Aqa::default();
        assert_eq!(reg.asqs(), 0);
        assert_eq!(reg.acqs(), 0);
    }
}
