//! Register: Beats, high

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Beats, high
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct BeatsHi(u32);

unsafe impl Send for BeatsHi {}
unsafe impl Sync for BeatsHi {}

impl core::default::Default for BeatsHi {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for BeatsHi {
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

impl BeatsHi {
    pub const VALUE_OFFSET: usize = 0;
    pub const VALUE_WIDTH: usize = 16;
    pub const VALUE_MASK: u32 = 0xFFFF;

    /// value
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn value(&self) -> u16 {
        let val = (self.0 >> Self::VALUE_OFFSET) & Self::VALUE_MASK;
        val as u16
    }
}

impl core::fmt::Debug for BeatsHi {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BeatsHi")
            .field("value", &self.value())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = BeatsHi::default();
        assert_eq!(reg.value(), 0);
    }
}
