//! Register: Completion queue head

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Completion queue head
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Cq(u32);

unsafe impl Send for Cq {}
unsafe impl Sync for Cq {}

impl core::default::Default for Cq {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Cq {
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

impl Cq {
    pub const HEAD_OFFSET: usize = 0;
    pub const HEAD_WIDTH: usize = 16;
    pub const HEAD_MASK: u32 = 0xFFFF;

    /// head
    ///
    /// New head
    #[inline(always)]
    pub fn set_head(&mut self, val: u16) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::HEAD_MASK << Self::HEAD_OFFSET))
            | ((val & Self::HEAD_MASK) << Self::HEAD_OFFSET);
    }
}

impl core::fmt::Debug for Cq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cq").finish()
    }
}
