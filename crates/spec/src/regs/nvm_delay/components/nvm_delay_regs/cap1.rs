//! Register: Capabilities 1

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Capabilities 1
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Cap1(u32);

unsafe impl Send for Cap1 {}
unsafe impl Sync for Cap1 {}

impl core::default::Default for Cap1 {
    fn default() -> Self {
        Self(0x0)
    }
}

impl peakrdl_rust::reg::Register for Cap1 {
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

impl Cap1 {
    pub const BUFFER_BEATS_OFFSET: usize = 0;
    pub const BUFFER_BEATS_WIDTH: usize = 16;
    pub const BUFFER_BEATS_MASK: u32 = 0xFFFF;

    /// buffer_beats
    ///
    /// Beats that the read buffer holds
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn buffer_beats(&self) -> u16 {
        let val = (self.0 >> Self::BUFFER_BEATS_OFFSET) & Self::BUFFER_BEATS_MASK;
        val as u16
    }

    pub const BEAT_BYTES_OFFSET: usize = 16;
    pub const BEAT_BYTES_WIDTH: usize = 8;
    pub const BEAT_BYTES_MASK: u32 = 0xFF;

    /// beat_bytes
    ///
    /// Bytes of a beat
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn beat_bytes(&self) -> u8 {
        let val = (self.0 >> Self::BEAT_BYTES_OFFSET) & Self::BEAT_BYTES_MASK;
        val as u8
    }

    pub const BUCKETS_OFFSET: usize = 24;
    pub const BUCKETS_WIDTH: usize = 8;
    pub const BUCKETS_MASK: u32 = 0xFF;

    /// buckets
    ///
    /// Histogram buckets of a direction
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn buckets(&self) -> u8 {
        let val = (self.0 >> Self::BUCKETS_OFFSET) & Self::BUCKETS_MASK;
        val as u8
    }
}

impl core::fmt::Debug for Cap1 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cap1")
            .field("buffer_beats", &self.buffer_beats())
            .field("beat_bytes", &self.beat_bytes())
            .field("buckets", &self.buckets())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Cap1::default();
        assert_eq!(reg.buffer_beats(), 0);
        assert_eq!(reg.beat_bytes(), 0);
        assert_eq!(reg.buckets(), 0);
    }
}
