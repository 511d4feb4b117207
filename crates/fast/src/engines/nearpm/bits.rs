// SPDX-License-Identifier: Apache-2.0

//! Packed SystemVerilog structures, from bit 0 upwards.

pub(super) struct Writer<'a> {
    line: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Writes into bytes that are 0.
    pub(super) fn new(line: &'a mut [u8]) -> Writer<'a> {
        Writer { line, at: 0 }
    }

    /// Writes the next bits.
    pub(super) fn write(&mut self, value: u64, width: u32) {
        for bit in 0..width {
            self.line[self.at / 8] |= ((value >> bit & 1) as u8) << (self.at % 8);
            self.at += 1;
        }
    }
}

pub(super) struct Reader<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(line: &'a [u8]) -> Reader<'a> {
        Reader { line, at: 0 }
    }

    /// Reads the next bits, at most 64.
    pub(super) fn read(&mut self, width: u32) -> u64 {
        (0..width).fold(0, |value, bit| {
            let set = u64::from(self.line[self.at / 8] >> (self.at % 8) & 1);
            self.at += 1;
            value | set << bit
        })
    }
}
