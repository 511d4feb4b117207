//! Register: Version

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Version
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Vs(u32);

unsafe impl Send for Vs {}
unsafe impl Sync for Vs {}

impl core::default::Default for Vs {
    fn default() -> Self {
        Self(0x1_0400)
    }
}

impl peakrdl_rust::reg::Register for Vs {
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

impl Vs {
    pub const TER_OFFSET: usize = 0;
    pub const TER_WIDTH: usize = 8;
    pub const TER_MASK: u32 = 0xFF;

    /// ter
    ///
    /// Tertiary
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn ter(&self) -> u8 {
        let val = (self.0 >> Self::TER_OFFSET) & Self::TER_MASK;
        val as u8
    }

    pub const MNR_OFFSET: usize = 8;
    pub const MNR_WIDTH: usize = 8;
    pub const MNR_MASK: u32 = 0xFF;

    /// mnr
    ///
    /// Minor
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mnr(&self) -> u8 {
        let val = (self.0 >> Self::MNR_OFFSET) & Self::MNR_MASK;
        val as u8
    }

    pub const MJR_OFFSET: usize = 16;
    pub const MJR_WIDTH: usize = 16;
    pub const MJR_MASK: u32 = 0xFFFF;

    /// mjr
    ///
    /// Major
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mjr(&self) -> u16 {
        let val = (self.0 >> Self::MJR_OFFSET) & Self::MJR_MASK;
        val as u16
    }
}

impl core::fmt::Debug for Vs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Vs")
            .field("ter", &self.ter())
            .field("mnr", &self.mnr())
            .field("mjr", &self.mjr())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Vs::default();
        assert_eq!(reg.ter(), 0);
        assert_eq!(reg.mnr(), 4);
        assert_eq!(reg.mjr(), 1);
    }
}
