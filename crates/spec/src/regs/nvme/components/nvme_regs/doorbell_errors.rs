//! Register: Doorbell errors

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Doorbell errors
///
/// Not part of NVM Express (command-set specific area): doorbell writes ignored since the last controller reset.
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct DoorbellErrors(u32);

unsafe impl Send for DoorbellErrors {}
unsafe impl Sync for DoorbellErrors {}

impl core::default::Default for DoorbellErrors {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for DoorbellErrors {
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

impl DoorbellErrors {
    pub const BAD_REGISTER_OFFSET: usize = 0;
    pub const BAD_REGISTER_WIDTH: usize = 1;
    pub const BAD_REGISTER_MASK: u32 = 0x1;

    /// bad_register
    ///
    /// A doorbell of a queue that does not exist was written
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn bad_register(&self) -> bool {
        let val = (self.0 >> Self::BAD_REGISTER_OFFSET) & Self::BAD_REGISTER_MASK;
        val != 0
    }

    pub const BAD_VALUE_OFFSET: usize = 1;
    pub const BAD_VALUE_WIDTH: usize = 1;
    pub const BAD_VALUE_MASK: u32 = 0x1;

    /// bad_value
    ///
    /// A value out of range was written
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn bad_value(&self) -> bool {
        let val = (self.0 >> Self::BAD_VALUE_OFFSET) & Self::BAD_VALUE_MASK;
        val != 0
    }
}

impl core::fmt::Debug for DoorbellErrors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DoorbellErrors")
            .field("bad_register", &self.bad_register())
            .field("bad_value", &self.bad_value())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = DoorbellErrors::default();
        assert_eq!(reg.bad_register(), false);
        assert_eq!(reg.bad_value(), false);
    }
}
