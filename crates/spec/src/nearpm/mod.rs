// SPDX-License-Identifier: Apache-2.0

//! The crash-consistency engine `nearpm`: its commands, its logs on the media, and its state at a
//! power loss.
//!
//! `docs/hardware/nearpm.md` defines their meaning; `hw/engine/nearpm/rtl/nearpm_pkg.sv` has the
//! same numbers.

mod command;
mod log;
mod peers;
mod tracking;

pub use command::{
    Command, ErrorBit, ObjectRange, Operation, ReturnValue, MAX_RANGE_BYTES, OFFSET_BITS, RANGES,
    RANGES_TRANSACTION_BITS,
};
pub use log::{
    next_record, padded, payload_crc, seal, Descriptor, Header, LogState, RecordKind, RecordWriter,
    DESCRIPTOR_BYTES, FIRST_RECORD, HEADER_BYTES, INCOMPLETE,
};
pub use peers::{progress_word, register, Completion, DEVICES, PROGRESS_BYTES, SEQUENCE_BITS};
pub use tracking::{Tracking, INTERNAL_RECORDS, TRACKED_LINES};

/// Pools of a device.
pub const POOLS: u8 = 16;
/// Threads of a pool.
pub const THREADS: u8 = 16;
/// Maximum number of the host's commands in flight.
pub const COMMANDS: usize = 64;
/// Bytes of a line, the unit of order and of atomic writes.
pub const LINE: u64 = 64;
/// Maximum bytes of a copy or record.
pub const MAX_BYTES: u64 = 65_536;
/// Minimum bytes of a log.
pub const MIN_LOG_BYTES: u64 = 192;
/// Alignment of the addresses and sizes of pools and logs.
pub const ALIGN: u64 = 4096;
/// Bytes at the end of the media that are reserved for the engine.
pub const RESERVED_BYTES: u64 = 128 << 10;
/// Lines of the access filter's queue in each channel.
pub const QUEUE_LINES: usize = 64;
/// Maximum number of waiting loads in each channel.
pub const WAITING_LOADS: usize = 16;
