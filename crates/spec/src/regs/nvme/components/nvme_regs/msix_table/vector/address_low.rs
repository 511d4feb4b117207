//! Register: Message address

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Message address
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct AddressLow(u32);

unsafe impl Send for AddressLow {}
unsafe impl Sync for AddressLow {}

impl core::default::Default for AddressLow {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for AddressLow {
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

impl AddressLow {
    pub const ADDRESS_OFFSET: usize = 2;
    pub const ADDRESS_WIDTH: usize = 30;
    pub const ADDRESS_MASK: u32 = 0x3FFF_FFFF;

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

impl core::fmt::Debug for AddressLow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AddressLow")
            .field("address", &self.address())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = AddressLow::default();
        assert_eq!(reg.address(), 0);
    }
}
