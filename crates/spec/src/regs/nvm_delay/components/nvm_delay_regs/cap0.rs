//! Register: Capabilities 0

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Capabilities 0
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Cap0(u32);

unsafe impl Send for Cap0 {}
unsafe impl Sync for Cap0 {}

impl core::default::Default for Cap0 {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Cap0 {
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

impl Cap0 {
    pub const READ_SLOTS_OFFSET: usize = 0;
    pub const READ_SLOTS_WIDTH: usize = 8;
    pub const READ_SLOTS_MASK: u32 = 0xFF;

    /// read_slots
    ///
    /// Transactions in flight, reads
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn read_slots(&self) -> u8 {
        let val = (self.0 >> Self::READ_SLOTS_OFFSET) & Self::READ_SLOTS_MASK;
        val as u8
    }

    pub const WRITE_SLOTS_OFFSET: usize = 8;
    pub const WRITE_SLOTS_WIDTH: usize = 8;
    pub const WRITE_SLOTS_MASK: u32 = 0xFF;

    /// write_slots
    ///
    /// Transactions in flight, writes
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn write_slots(&self) -> u8 {
        let val = (self.0 >> Self::WRITE_SLOTS_OFFSET) & Self::WRITE_SLOTS_MASK;
        val as u8
    }

    pub const FRAC_BITS_OFFSET: usize = 16;
    pub const FRAC_BITS_WIDTH: usize = 4;
    pub const FRAC_BITS_MASK: u32 = 0xF;

    /// frac_bits
    ///
    /// Fractional bits of a time
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn frac_bits(&self) -> u8 {
        let val = (self.0 >> Self::FRAC_BITS_OFFSET) & Self::FRAC_BITS_MASK;
        val as u8
    }

    pub const INT_BITS_OFFSET: usize = 20;
    pub const INT_BITS_WIDTH: usize = 6;
    pub const INT_BITS_MASK: u32 = 0x3F;

    /// int_bits
    ///
    /// Integer bits of a time
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn int_bits(&self) -> u8 {
        let val = (self.0 >> Self::INT_BITS_OFFSET) & Self::INT_BITS_MASK;
        val as u8
    }

    pub const REGIONS_OFFSET: usize = 28;
    pub const REGIONS_WIDTH: usize = 4;
    pub const REGIONS_MASK: u32 = 0xF;

    /// regions
    ///
    /// Address regions
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn regions(&self) -> u8 {
        let val = (self.0 >> Self::REGIONS_OFFSET) & Self::REGIONS_MASK;
        val as u8
    }
}

impl core::fmt::Debug for Cap0 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cap0")
            .field("read_slots", &self.read_slots())
            .field("write_slots", &self.write_slots())
            .field("frac_bits", &self.frac_bits())
            .field("int_bits", &self.int_bits())
            .field("regions", &self.regions())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Cap0::default();
        assert_eq!(reg.read_slots(), 0);
        assert_eq!(reg.write_slots(), 0);
        assert_eq!(reg.frac_bits(), 0);
        assert_eq!(reg.int_bits(), 0);
        assert_eq!(reg.regions(), 0);
    }
}
