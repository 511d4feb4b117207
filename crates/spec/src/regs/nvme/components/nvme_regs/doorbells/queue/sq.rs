//! Register: Submission queue tail

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Submission queue tail
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Sq(u32);

unsafe impl Send for Sq {}
unsafe impl Sync for Sq {}

impl core::default::Default for Sq {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Sq {
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

impl Sq {
    pub const TAIL_OFFSET: usize = 0;
    pub const TAIL_WIDTH: usize = 16;
    pub const TAIL_MASK: u32 = 0xFFFF;

    /// tail
    ///
    /// New tail
    #[inline(always)]
    pub fn set_tail(&mut self, val: u16) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::TAIL_MASK << Self::TAIL_OFFSET))
            | ((val & Self::TAIL_MASK) << Self::TAIL_OFFSET);
    }
}

impl core::fmt::Debug for Sq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sq").finish()
    }
}
