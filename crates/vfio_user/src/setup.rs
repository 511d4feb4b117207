// SPDX-License-Identifier: Apache-2.0

//! The register writes that a device gets from its server.

use sim::{Bar, Mmio, MSI_BASE};

use crate::config::MSIX_TABLE;
use crate::RegisterWrite;

/// The writes after a reset: the set-up that the client expects, and the MSI-X table. The client's
/// table maps to eventfds. The device's table sends a message with the number of the vector.
pub(crate) fn after_reset(
    setup: &[RegisterWrite],
    vectors: u16,
) -> impl Iterator<Item = Mmio> + use<'_> {
    let registers = setup.iter();
    let registers = registers.map(|write| write32(write.bar, write.offset, write.value));
    let table = (0..u64::from(vectors)).flat_map(|vector| {
        let entry = MSIX_TABLE + 16 * vector;
        let words = [(0, MSI_BASE as u32), (4, 0), (8, vector as u32)];
        words.map(|(at, value)| write32(Bar::Nvme, entry + at, value))
    });
    registers.chain(table)
}

/// Masks or unmasks a vector in the device's MSI-X table.
pub(crate) fn mask_vector(vector: usize, masked: bool) -> Mmio {
    let control = MSIX_TABLE + 16 * vector as u64 + 12;
    write32(Bar::Nvme, control, u32::from(masked))
}

/// A write of a 32-bit register.
pub(crate) fn write32(bar: Bar, offset: u64, value: u32) -> Mmio {
    Mmio::Write {
        bar,
        offset,
        data: value.to_le_bytes().to_vec(),
    }
}
