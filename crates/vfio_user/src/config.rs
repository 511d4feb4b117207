// SPDX-License-Identifier: Apache-2.0

//! PCI configuration space of an NVMe function: read-only and writable bits, and the effects of
//! writes.

use crate::Function;

/// Bytes of the configuration space of a PCI Express function.
pub(crate) const BYTES: usize = 4096;

/// Offsets of the MSI-X table and the pending bits in BAR0.
pub(crate) use spec::nvme::properties::{MSIX_PENDING, MSIX_TABLE};

/// Vendor and device of the function. The vendor is that of the controller's Identify page.
const VENDOR: u16 = 0x4E53;
const DEVICE: u16 = 0x0001;
/// Mass storage, non-volatile memory, NVM Express.
const CLASS: u32 = 0x01_08_02;

const COMMAND: usize = 0x04;
/// The upper byte of the Status register.
const STATUS: usize = 0x07;
const BAR: usize = 0x10;
const POWER: usize = 0x40;
const EXPRESS: usize = 0x60;
const MSIX: usize = 0xB0;

const BUS_MASTER: u8 = 1 << 2;
/// Received Master Abort: a read of the function was not answered. A write of 1 clears it.
const MASTER_ABORT: u8 = 1 << 5;
/// Initiate Function Level Reset, in the upper byte of Device Control.
const FLR: u8 = 1 << 7;

/// The state that software sets in configuration space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    pub bus_master: bool,
    pub msix_enable: bool,
    pub msix_mask: bool,
}

pub(crate) struct ConfigSpace {
    bytes: Vec<u8>,
    /// Bits that a write changes.
    writable: Vec<u8>,
    /// The content after a reset.
    initial: Vec<u8>,
}

impl ConfigSpace {
    pub(crate) fn new(function: &Function) -> ConfigSpace {
        let mut c = ConfigSpace {
            bytes: vec![0; BYTES],
            writable: vec![0; BYTES],
            initial: Vec::new(),
        };
        c.set16(0x00, VENDOR);
        c.set16(0x02, DEVICE);
        // I/O and memory decoding, bus master, parity and SERR enables, interrupt disable. All are
        // stored, but only some have an effect.
        c.writable[COMMAND..COMMAND + 2].copy_from_slice(&0x0547u16.to_le_bytes());
        c.set16(0x06, 0x0010); // capabilities list
        c.set32(0x08, CLASS << 8 | 1);
        c.writable[0x0C] = 0xFF; // cache line size: no effect
        for (index, bytes, kind) in [
            (0, crate::BAR0_BYTES, 0x4), // 64 bit
            (2, function.pm_bytes, 0xC), // 64 bit, prefetchable
            (4, crate::BAR4_BYTES, 0x4), // 64 bit
        ] {
            let at = BAR + 4 * index;
            c.bytes[at] = kind;
            let mask = !(bytes - 1) & !0xF;
            c.writable[at..at + 8].copy_from_slice(&mask.to_le_bytes());
        }
        c.set16(0x2C, VENDOR);
        c.set16(0x2E, DEVICE);
        c.bytes[0x34] = POWER as u8;
        c.writable[0x3C] = 0xFF; // interrupt line: used by firmware only; there is no interrupt pin

        // Power management, version 3: D0 and D3hot, and no reset between them.
        c.set16(POWER, 0x01 | (EXPRESS as u16) << 8);
        c.set16(POWER + 2, 0x0003);
        c.set16(POWER + 4, 0x0008);
        c.writable[POWER + 4] = 0x03;

        // PCI Express, version 2, endpoint.
        c.set16(EXPRESS, 0x10 | (MSIX as u16) << 8);
        c.set16(EXPRESS + 2, 0x0002);
        let payload = function.link.max_payload_bytes.max(128).ilog2() - 7;
        c.set32(EXPRESS + 4, payload | 1 << 15 | 1 << 28); // role-based errors, FLR
        c.set16(EXPRESS + 8, 0x2810); // relaxed order, no snoop, 512-byte reads
        c.writable[EXPRESS + 8] = 0xFF;
        c.writable[EXPRESS + 9] = 0x7F; // FLR is not stored
        let speed = u32::from(function.link.generation.clamp(1, 5));
        let width = u32::from(function.link.lanes);
        c.set32(EXPRESS + 0x0C, speed | width << 4);
        c.writable[EXPRESS + 0x10] = 0xC3;
        c.set16(EXPRESS + 0x12, (speed | width << 4) as u16);
        c.set32(EXPRESS + 0x24, 1 << 4); // completion timeout can be disabled
        c.writable[EXPRESS + 0x28] = 0x10;
        c.set32(EXPRESS + 0x2C, ((1 << speed) - 1) << 1);
        c.set16(EXPRESS + 0x30, speed as u16);

        // MSI-X, table and pending bits in BAR0.
        c.set16(MSIX, 0x11);
        c.set16(MSIX + 2, function.vectors.saturating_sub(1));
        c.writable[MSIX + 3] = 0xC0;
        c.set32(MSIX + 4, MSIX_TABLE as u32);
        c.set32(MSIX + 8, MSIX_PENDING as u32);
        c.initial = c.bytes.clone();
        c
    }

    fn set16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn set32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Reads. Returns false beyond the end.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let Some(bytes) = range(offset, out.len()).and_then(|r| self.bytes.get(r)) else {
            return false;
        };
        out.copy_from_slice(bytes);
        true
    }

    /// Writes the writable bits. `None`: beyond the end. Else true if the write requests a function
    /// level reset.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Option<bool> {
        let range = range(offset, data.len()).filter(|r| r.end <= BYTES)?;
        let mut reset = false;
        for (at, new) in range.zip(data) {
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | new & mask;
            if at == STATUS {
                self.bytes[at] &= !(new & MASTER_ABORT);
            }
            reset |= at == EXPRESS + 9 && new & FLR != 0;
        }
        Some(reset)
    }

    /// Records that a read of the function ended as an unsupported request.
    pub(crate) fn receive_master_abort(&mut self) {
        self.bytes[STATUS] |= MASTER_ABORT;
    }

    /// Restores the state after power-on.
    pub(crate) fn reset(&mut self) {
        self.bytes.clone_from(&self.initial);
    }

    /// The state that software has set.
    pub(crate) fn control(&self) -> Control {
        Control {
            bus_master: self.bytes[COMMAND] & BUS_MASTER != 0,
            msix_enable: self.bytes[MSIX + 3] & 0x80 != 0,
            msix_mask: self.bytes[MSIX + 3] & 0x40 != 0,
        }
    }
}

fn range(offset: u64, len: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(len)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> ConfigSpace {
        ConfigSpace::new(&Function {
            pm_bytes: 1 << 30,
            pm_file: None,
            vectors: 17,
            link: sim::LinkConfig::default(),
        })
    }

    fn get32(c: &ConfigSpace, at: u64) -> u32 {
        let mut out = [0; 4];
        assert!(c.read(at, &mut out));
        u32::from_le_bytes(out)
    }

    #[test]
    fn config_describes_an_nvme_controller_with_three_windows() {
        let mut c = space();
        assert_eq!(get32(&c, 0x08) >> 8, 0x01_08_02);
        for (bar, size, kind) in [
            (0x10, 1u64 << 16, 4),
            (0x18, 1 << 30, 0xC),
            (0x20, 1 << 20, 4),
        ] {
            c.write(bar, &[0xFF; 8]).unwrap();
            let both = u64::from(get32(&c, bar)) | u64::from(get32(&c, bar + 4)) << 32;
            assert_eq!((both & 0xF, !(both & !0xF) + 1), (kind, size));
        }
    }

    #[test]
    fn config_capability_list_is_complete() {
        let c = space();
        let mut ids = Vec::new();
        let mut at = u64::from(get32(&c, 0x34) & 0xFF);
        while at != 0 && ids.len() < 10 {
            let word = get32(&c, at);
            ids.push(word & 0xFF);
            at = u64::from(word >> 8 & 0xFF);
        }
        assert_eq!(ids, [0x01, 0x10, 0x11]);
        assert_eq!(get32(&c, MSIX as u64) >> 16 & 0x7FF, 16);
        assert_eq!(get32(&c, EXPRESS as u64 + 4) >> 28 & 1, 1, "FLR");
    }

    #[test]
    fn config_writes_change_writable_bits_until_a_reset() {
        let mut c = space();
        let before = c.bytes.clone();
        c.write(0, &[0xFF; BYTES]).unwrap();
        for at in [0x00, 0x08, 0x2C, 0x34, POWER, EXPRESS, MSIX, 0x100, 0xFFC] {
            assert_eq!(
                get32(&c, at as u64) & 0xFF,
                u32::from(before[at]),
                "{at:#x}"
            );
        }
        assert_eq!(
            c.control(),
            Control {
                bus_master: true,
                msix_enable: true,
                msix_mask: true
            }
        );
        c.reset();
        assert_eq!(c.bytes, before);
        assert_eq!(c.write(EXPRESS as u64 + 8, &[0, 0x80]), Some(true));
        assert_eq!(get32(&c, EXPRESS as u64 + 8) >> 15 & 1, 0);
        assert_eq!(c.write(EXPRESS as u64 + 8, &[0, 0x20]), Some(false));
    }

    #[test]
    fn config_keeps_a_master_abort_until_cleared() {
        let mut c = space();
        let before = get32(&c, 4);
        c.receive_master_abort();
        assert_eq!(get32(&c, 4), before | 1 << 29);
        c.write(7, &[0xDF]).unwrap();
        assert_eq!(get32(&c, 4), before | 1 << 29);
        c.write(6, &[0, 0x20]).unwrap();
        assert_eq!(get32(&c, 4), before);
        c.receive_master_abort();
        c.reset();
        assert_eq!(get32(&c, 4), before);
    }

    #[test]
    fn config_rejects_accesses_beyond_its_end() {
        let mut c = space();
        assert!(!c.read(4093, &mut [0; 4]) && !c.read(u64::MAX, &mut [0; 4]));
        assert_eq!(c.write(4093, &[0; 4]), None);
        assert_eq!(c.write(u64::MAX, &[0; 4]), None);
        assert!(c.read(4092, &mut [0; 4]));
    }
}
