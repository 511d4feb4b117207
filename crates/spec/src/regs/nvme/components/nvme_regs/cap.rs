//! Register: Controller capabilities

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

/// Controller capabilities
#[repr(transparent)]
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct Cap(u64);

unsafe impl Send for Cap {}
unsafe impl Sync for Cap {}

impl core::default::Default for Cap {
    fn default() -> Self {
        Self(0x100_0030_0A03_0000)
    }
}

impl peakrdl_rust::reg::Register for Cap {
    type Regwidth = u64;
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

impl Cap {
    pub const MQES_OFFSET: usize = 0;
    pub const MQES_WIDTH: usize = 16;
    pub const MQES_MASK: u64 = 0xFFFF;

    /// mqes
    ///
    /// Maximum queue entries supported, 0-based
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mqes(&self) -> u16 {
        let val = (self.0 >> Self::MQES_OFFSET) & Self::MQES_MASK;
        val as u16
    }

    pub const CQR_OFFSET: usize = 16;
    pub const CQR_WIDTH: usize = 1;
    pub const CQR_MASK: u64 = 0x1;

    /// cqr
    ///
    /// Contiguous queues required
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn cqr(&self) -> bool {
        let val = (self.0 >> Self::CQR_OFFSET) & Self::CQR_MASK;
        val != 0
    }

    pub const AMS_OFFSET: usize = 17;
    pub const AMS_WIDTH: usize = 2;
    pub const AMS_MASK: u64 = 0x3;

    /// ams
    ///
    /// Arbitration mechanisms supported besides round robin: bit 17, weighted with urgent priority class
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn ams(&self) -> u8 {
        let val = (self.0 >> Self::AMS_OFFSET) & Self::AMS_MASK;
        val as u8
    }

    pub const TO_OFFSET: usize = 24;
    pub const TO_WIDTH: usize = 8;
    pub const TO_MASK: u64 = 0xFF;

    /// to
    ///
    /// Worst-case time to become ready, in 500 ms
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn to(&self) -> u8 {
        let val = (self.0 >> Self::TO_OFFSET) & Self::TO_MASK;
        val as u8
    }

    pub const DSTRD_OFFSET: usize = 32;
    pub const DSTRD_WIDTH: usize = 4;
    pub const DSTRD_MASK: u64 = 0xF;

    /// dstrd
    ///
    /// Doorbell stride: 4 bytes << DSTRD
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn dstrd(&self) -> u8 {
        let val = (self.0 >> Self::DSTRD_OFFSET) & Self::DSTRD_MASK;
        val as u8
    }

    pub const NSSRS_OFFSET: usize = 36;
    pub const NSSRS_WIDTH: usize = 1;
    pub const NSSRS_MASK: u64 = 0x1;

    /// nssrs
    ///
    /// NVM subsystem reset supported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn nssrs(&self) -> bool {
        let val = (self.0 >> Self::NSSRS_OFFSET) & Self::NSSRS_MASK;
        val != 0
    }

    pub const CSS_OFFSET: usize = 37;
    pub const CSS_WIDTH: usize = 8;
    pub const CSS_MASK: u64 = 0xFF;

    /// css
    ///
    /// Command sets supported: bit 0 is the NVM command set
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn css(&self) -> u8 {
        let val = (self.0 >> Self::CSS_OFFSET) & Self::CSS_MASK;
        val as u8
    }

    pub const BPS_OFFSET: usize = 45;
    pub const BPS_WIDTH: usize = 1;
    pub const BPS_MASK: u64 = 0x1;

    /// bps
    ///
    /// Boot partition support
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn bps(&self) -> bool {
        let val = (self.0 >> Self::BPS_OFFSET) & Self::BPS_MASK;
        val != 0
    }

    pub const MPSMIN_OFFSET: usize = 48;
    pub const MPSMIN_WIDTH: usize = 4;
    pub const MPSMIN_MASK: u64 = 0xF;

    /// mpsmin
    ///
    /// Smallest host page: 4 KiB << MPSMIN
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mpsmin(&self) -> u8 {
        let val = (self.0 >> Self::MPSMIN_OFFSET) & Self::MPSMIN_MASK;
        val as u8
    }

    pub const MPSMAX_OFFSET: usize = 52;
    pub const MPSMAX_WIDTH: usize = 4;
    pub const MPSMAX_MASK: u64 = 0xF;

    /// mpsmax
    ///
    /// Largest host page: 4 KiB << MPSMAX
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn mpsmax(&self) -> u8 {
        let val = (self.0 >> Self::MPSMAX_OFFSET) & Self::MPSMAX_MASK;
        val as u8
    }

    pub const PMRS_OFFSET: usize = 56;
    pub const PMRS_WIDTH: usize = 1;
    pub const PMRS_MASK: u64 = 0x1;

    /// pmrs
    ///
    /// Persistent memory region supported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn pmrs(&self) -> bool {
        let val = (self.0 >> Self::PMRS_OFFSET) & Self::PMRS_MASK;
        val != 0
    }

    pub const CMBS_OFFSET: usize = 57;
    pub const CMBS_WIDTH: usize = 1;
    pub const CMBS_MASK: u64 = 0x1;

    /// cmbs
    ///
    /// Controller memory buffer supported
    #[inline(always)]
    #[allow(clippy::missing_panics_doc)]
    #[must_use]
    pub fn cmbs(&self) -> bool {
        let val = (self.0 >> Self::CMBS_OFFSET) & Self::CMBS_MASK;
        val != 0
    }
}

impl core::fmt::Debug for Cap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cap")
            .field("mqes", &self.mqes())
            .field("cqr", &self.cqr())
            .field("ams", &self.ams())
            .field("to", &self.to())
            .field("dstrd", &self.dstrd())
            .field("nssrs", &self.nssrs())
            .field("css", &self.css())
            .field("bps", &self.bps())
            .field("mpsmin", &self.mpsmin())
            .field("mpsmax", &self.mpsmax())
            .field("pmrs", &self.pmrs())
            .field("cmbs", &self.cmbs())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_default() {
        let reg = Cap::default();
        assert_eq!(reg.mqes(), 0);
        assert_eq!(reg.cqr(), true);
        assert_eq!(reg.ams(), 1);
        assert_eq!(reg.to(), 10);
        assert_eq!(reg.dstrd(), 0);
        assert_eq!(reg.nssrs(), true);
        assert_eq!(reg.css(), 1);
        assert_eq!(reg.bps(), false);
        assert_eq!(reg.mpsmin(), 0);
        assert_eq!(reg.mpsmax(), 0);
        assert_eq!(reg.pmrs(), true);
        assert_eq!(reg.cmbs(), false);
    }
}
