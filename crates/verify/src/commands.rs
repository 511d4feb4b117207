// SPDX-License-Identifier: Apache-2.0

//! Commands of the engines in `hw/engine`, and classes of NVM commands.

use spec::nvme::{io, Sqe};
use spec::tables::ONE_PASS_KEYS;

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

/// Blocks of values that one block of a bitmap covers. `kind` is that of the scan's command.
pub fn values_per_block(kind: u32) -> u64 {
    match kind & 1 {
        1 => 64,
        _ => 32,
    }
}

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

/// FUSE of the first command of a fused pair.
pub const FUSED_FIRST: u32 = 1;
/// FUSE of its second command.
pub const FUSED_SECOND: u32 = 2;

/// The unit of places in commands of the engines of tables, in bytes.
pub const UNIT: u64 = 4096;
/// Most entries of a list of the pipeline.
pub const MOST_ENTRIES: u64 = 16;
/// Bytes of an entry, and of a report.
pub const ENTRY: u64 = 64;

/// Bytes of the keys, of the output, and of the scratch range.
pub fn sort_bytes(count: u64, kind: u32) -> [u64; 3] {
    let width = u64::from(kind & 3);
    let records = count << (3 + width);
    let passes = sort_passes(count, kind);
    let indexes = kind >> 5 & 1 == 1 && passes <= 2;
    [
        count << (2 + width),
        if indexes { 4 * count } else { records },
        if passes == 1 { 0 } else { records },
    ]
}

/// Passes of a sort.
pub fn sort_passes(count: u64, kind: u32) -> u64 {
    // Runs that each pass but the first merges into one.
    let group = if kind >> 6 & 1 == 1 { 2 } else { 64 };
    let (mut passes, mut most) = (1, ONE_PASS_KEYS);
    while count > most {
        (passes, most) = (passes + 1, most * group);
    }
    passes
}

/// A command of an engine of tables: its opcode, and its dwords from dword 10 on.
pub fn table_command(opcode: u8, dwords: [u32; 6]) -> Sqe {
    let numbered = dwords.into_iter().zip(10..);
    numbered.fold(Sqe::new(opcode), |sqe, (value, n)| sqe.with_cdw(n, value))
}
