//! Register: Message upper address

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Message upper address
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct AddressHigh(u32);

unsafe impl Send for AddressHigh {}
unsafe impl Sync for AddressHigh {}

impl core::default::Default for AddressHigh {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for AddressHigh {
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

impl AddressHigh {
    pub const ADDRESS_OFFSET: usize = 0;
    pub const ADDRESS_WIDTH: usize = 32;
    pub const ADDRESS_MASK: u32 = 0xFFFF_FFFF;

    /// address
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn address(&self) -> u32 {
        let val = (self.0 >> Self::ADDRESS_OFFSET) & Self::ADDRESS_MASK;
        val
    }

    /// address
    #[inline(always)]
    pub fn set_address(&mut self, val: u32) {
        let val = val as u32;
        self.0 = (self.0 & !(Self::ADDRESS_MASK << Self::ADDRESS_OFFSET))
            | ((val & Self::ADDRESS_MASK) << Self::ADDRESS_OFFSET);
    }
}

impl core::fmt::Debug for AddressHigh {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AddressHigh")
            .field("address", &self.address())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = AddressHigh::default();
        assert_eq!(reg.address(), 0);
    }
}
