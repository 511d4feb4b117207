//! Register: word

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// word
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Word(u32);

unsafe impl Send for Word {}
unsafe impl Sync for Word {}

impl core::default::Default for Word {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Word {
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

impl Word {
    pub const PENDING_OFFSET: usize = 0;
    pub const PENDING_WIDTH: usize = 32;
    pub const PENDING_MASK: u32 = 0xFFFF_FFFF;

    /// pending
    ///
    /// Pending, a bit a vector
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pending(&self) -> u32 {
        let val = (self.0 >> Self::PENDING_OFFSET) & Self::PENDING_MASK;
        val
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Word")
            .field("pending", &self.pending())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Word::default();
        assert_eq!(reg.pending(), 0);
    }
}
