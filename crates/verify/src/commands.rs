// SPDX-License-Identifier: Apache-2.0

//! Commands of the engines in `hw/engine`, and classes of NVM commands.

use spec::nvme::{io, Sqe};

/// Opcode of the scan engine that counts values between bounds.
pub const COUNT: u8 = 0xC0;
/// Opcode of the scan engine that also writes a bitmap of these values.
pub const FILTER: u8 = 0xC8;
/// Opcode of the copy engine.
pub const COPY: u8 = 0xC4;
/// Opcode of the sorter.
pub const SORT: u8 = 0xD0;
/// Opcode of the gather engine.
pub const SHUFFLE: u8 = 0xD8;
/// Opcode of the dictionary decoder.
pub const DECODE: u8 = 0xD4;
/// Opcode of the pipeline: a list of commands of the sorter, gather engine and decoder.
pub const PIPELINE: u8 = 0xDC;
/// Opcodes of the engines that sort tables.
pub const TABLES: [u8; 3] = [SORT, SHUFFLE, DECODE];
/// Opcodes of the engines that copy and scan.
pub const BLOCKS: [u8; 3] = [COUNT, COPY, FILTER];
/// All opcodes of engines that the model knows.
pub const COMMANDS: [u8; 7] = [COUNT, COPY, FILTER, SORT, SHUFFLE, DECODE, PIPELINE];

/// The unit of a bitmap's place, in blocks.
pub const BITMAP_UNIT: u64 = 8;

/// Values of 32 or 64 bits between two bounds, both included, as the scan engine's commands name
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    wide: bool,
    signed: bool,
    low: u64,
    high: u64,
}

impl Bounds {
    /// The bounds that a command names.
    pub fn of(sqe: &Sqe) -> Bounds {
        Bounds::new(sqe.dw[13].into(), double(sqe, 2), double(sqe, 14))
    }

    /// The bounds of a job: its `kind`, without the bit for a bitmap, and its limits.
    pub fn new(kind: u64, low: u64, high: u64) -> Bounds {
        Bounds {
            wide: kind & 1 == 1,
            signed: kind & 2 == 2,
            low,
            high,
        }
    }

    /// Bytes of a value.
    pub fn bytes(&self) -> usize {
        if self.wide {
            8
        } else {
            4
        }
    }

    /// True if a value, least significant byte first, lies between the bounds.
    pub fn hold(&self, value: &[u8]) -> bool {
        let value = value.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        // Maps the order to that of unsigned 64-bit numbers.
        let key = |v: u64| match (self.wide, self.signed) {
            (true, false) => v,
            (true, true) => v ^ 1 << 63,
            (false, false) => u64::from(v as u32),
            (false, true) => u64::from(v as u32 ^ 1 << 31),
        };
        (key(self.low)..=key(self.high)).contains(&key(value))
    }
}

/// A value in two dwords of a command, from dword `n` on.
pub fn double(sqe: &Sqe, n: usize) -> u64 {
    u64::from(sqe.dw[n + 1]) << 32 | u64::from(sqe.dw[n])
}

/// True for commands that move data between host and media.
pub fn moves(opcode: u8) -> bool {
    matches!(opcode, io::READ | io::WRITE | io::COMPARE)
}

/// True for commands with a range of blocks.
pub fn has_range(opcode: u8) -> bool {
    moves(opcode) || matches!(opcode, io::WRITE_ZEROES | io::VERIFY)
}
