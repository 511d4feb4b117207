// SPDX-License-Identifier: Apache-2.0

//! AXI4 transactions as plain data.

/// Bytes of a beat on a device's buses.
pub const BEAT: usize = 64;

/// Response codes.
pub mod resp {
    /// Success.
    pub const OKAY: u8 = 0;
    /// The slave reports an error.
    pub const SLVERR: u8 = 2;
    /// Nothing is at this address.
    pub const DECERR: u8 = 3;
}

/// Burst types.
pub mod burst {
    /// Every beat at one address.
    pub const FIXED: u8 = 0;
    /// Each beat follows the one before it in the address space.
    pub const INCR: u8 = 1;
    /// Like INCR, but wraps around at the size of the burst.
    pub const WRAP: u8 = 2;
}

/// An address beat: AW or AR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ax {
    /// Transaction ID.
    pub id: u16,
    /// Start address.
    pub addr: u64,
    /// Beats - 1.
    pub len: u8,
    /// log2 of the bytes of a beat.
    pub size: u8,
    /// Burst type, see [`burst`].
    pub burst: u8,
}

impl Ax {
    /// An incrementing burst of `beats` full beats.
    pub fn incr(id: u16, addr: u64, beats: u32) -> Ax {
        Ax {
            id,
            addr,
            len: (beats.clamp(1, 256) - 1) as u8,
            size: 6,
            burst: burst::INCR,
        }
    }

    /// Number of beats.
    pub fn beats(&self) -> u32 {
        u32::from(self.len) + 1
    }

    /// Address of beat `i`.
    #[inline]
    pub fn beat_addr(&self, i: u32) -> u64 {
        let size = 1u64 << self.size;
        let aligned = self.addr & !(size - 1);
        match self.burst {
            burst::FIXED => self.addr,
            burst::WRAP => {
                let span = size * u64::from(self.beats());
                let base = self.addr & !(span - 1);
                base + (aligned - base + u64::from(i) * size) % span
            }
            _ if i == 0 => self.addr,
            // A burst that breaks the rules may reach past the last address; its receiver checks
            // the rules.
            _ => aligned.wrapping_add(u64::from(i) * size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axi_beat_addresses_follow_the_burst_type() {
        let at = |burst, addr, len, size| -> Vec<u64> {
            let ax = Ax {
                id: 0,
                addr,
                len,
                size,
                burst,
            };
            (0..ax.beats()).map(|i| ax.beat_addr(i)).collect()
        };
        assert_eq!(at(burst::INCR, 0x1004, 2, 6), [0x1004, 0x1040, 0x1080]);
        assert_eq!(at(burst::INCR, 0x1004, 2, 2), [0x1004, 0x1008, 0x100C]);
        assert_eq!(at(burst::FIXED, 0x1004, 1, 2), [0x1004, 0x1004]);
        assert_eq!(
            at(burst::WRAP, 0x10C0, 3, 6),
            [0x10C0, 0x1000, 0x1040, 0x1080]
        );
        assert_eq!(
            at(burst::WRAP, 0x1008, 3, 2),
            [0x1008, 0x100C, 0x1000, 0x1004]
        );
    }
}
