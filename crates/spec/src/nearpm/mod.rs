//! The crash-consistency engine `nearpm`: its commands, its logs on the media, and what it keeps when the power fails.
//!
//! `hw/engine/nearpm/README.md` says what all of it means; `hw/engine/nearpm/rtl/nearpm_pkg.sv` has the same numbers.

mod command;
mod log;
mod peers;

pub use command::{Command, ErrorBit, Operation, ReturnValue};
pub use log::{
    next_record, padded, payload_crc, Descriptor, Header, LogState, RecordKind, RecordWriter,
    DESCRIPTOR_BYTES, FIRST_RECORD, HEADER_BYTES, INCOMPLETE,
};
pub use peers::{register, Completion, DEVICES, SEQUENCE_BITS};

/// Pools of a device.
pub const POOLS: u8 = 16;
/// Threads of a pool.
pub const THREADS: u8 = 16;
/// Commands under way.
pub const COMMANDS: usize = 64;
/// Bytes of a line, the unit of order and of atomic writes.
pub const LINE: u64 = 64;
/// Most bytes of a copy or record.
pub const MAX_BYTES: u64 = 65_536;
/// Least bytes of a log.
pub const MIN_LOG_BYTES: u64 = 192;
/// What places and sizes of pools and logs are multiples of.
pub const ALIGN: u64 = 4096;
/// Bytes at the end of the media that are the engine's alone.
pub const RESERVED_BYTES: u64 = 128 << 10;
/// Lines of the hook's queue in each channel.
pub const QUEUE_LINES: usize = 64;
/// Loads that may wait in each channel.
pub const WAITING_LOADS: usize = 16;
