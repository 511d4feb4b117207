// SPDX-License-Identifier: Apache-2.0

//! NVMe 1.4: controller properties, queue entries, Identify data, status codes.

pub mod command;
pub mod identify;
pub mod properties;
pub mod status;

pub use command::{Cqe, Priority, Sqe, Weights};
pub use status::Status;

/// Opcodes of the admin command set.
pub mod admin {
    /// Delete I/O Submission Queue.
    pub const DELETE_IO_SQ: u8 = 0x00;
    /// Create I/O Submission Queue.
    pub const CREATE_IO_SQ: u8 = 0x01;
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Delete I/O Completion Queue.
    pub const DELETE_IO_CQ: u8 = 0x04;
    /// Create I/O Completion Queue.
    pub const CREATE_IO_CQ: u8 = 0x05;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0A;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0C;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Doorbell Buffer Config.
    pub const DOORBELL_BUFFER_CONFIG: u8 = 0x7C;
    /// Format NVM.
    pub const FORMAT_NVM: u8 = 0x80;
}

/// Optional Admin Command Support: bits of OACS in Identify Controller.
pub mod oacs {
    /// Format NVM.
    pub const FORMAT_NVM: u16 = 1 << 1;
    /// Doorbell Buffer Config.
    pub const DOORBELL_BUFFER_CONFIG: u16 = 1 << 8;
}

/// The namespace identifier that stands for all namespaces.
pub const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;

/// Opcodes of the NVM command set.
pub mod io {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Write Uncorrectable.
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0C;
}

/// SGL descriptor types with sub type 0, an address (NVMe 1.4, figures 117 to 121).
pub mod sgl_type {
    /// Data Block.
    pub const DATA_BLOCK: u8 = 0x00;
    /// Bit Bucket.
    pub const BIT_BUCKET: u8 = 0x10;
    /// Segment.
    pub const SEGMENT: u8 = 0x20;
    /// Last Segment.
    pub const LAST_SEGMENT: u8 = 0x30;
}

/// Optional NVM Command Support: bits of ONCS in Identify Controller.
pub mod oncs {
    /// Compare.
    pub const COMPARE: u16 = 1 << 0;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// Verify.
    pub const VERIFY: u16 = 1 << 7;
}

/// Feature identifiers of Get and Set Features.
pub mod feature {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power Management.
    pub const POWER_MANAGEMENT: u8 = 0x02;
    /// Temperature Threshold.
    pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
    /// Error Recovery.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Volatile Write Cache.
    pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
    /// Number of Queues.
    pub const NUMBER_OF_QUEUES: u8 = 0x07;
    /// Interrupt Coalescing.
    pub const INTERRUPT_COALESCING: u8 = 0x08;
    /// Interrupt Vector Configuration.
    pub const INTERRUPT_VECTOR_CONFIGURATION: u8 = 0x09;
    /// Write Atomicity Normal.
    pub const WRITE_ATOMICITY_NORMAL: u8 = 0x0A;
    /// Asynchronous Event Configuration.
    pub const ASYNC_EVENT_CONFIGURATION: u8 = 0x0B;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 0x0E;
    /// Keep Alive Timer.
    pub const KEEP_ALIVE_TIMER: u8 = 0x0F;
    /// Host Behavior Support.
    pub const HOST_BEHAVIOR_SUPPORT: u8 = 0x16;
}

/// Controller or Namespace Structure (CNS) values of Identify.
pub mod cns {
    /// Identify Namespace.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify Controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Active Namespace ID list.
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    /// Namespace Identification Descriptor list.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// I/O command set specific Identify Controller.
    pub const COMMAND_SET: u8 = 0x06;
    /// I/O command set independent Identify Namespace (NVMe 2.0).
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// Controllers that are attached to a namespace.
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    /// Controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
}

/// Bytes of a submission queue entry.
pub const SQE_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE_BYTES: usize = 16;
/// Bytes of an Identify data structure.
pub const IDENTIFY_BYTES: usize = 4096;
/// The memory page size that Nearside's controllers and drivers use (CC.MPS 0).
pub const PAGE_BYTES: u64 = 4096;
