//! What NVMe commands mean: walkers of PRPs and SGLs, namespaces, fields of commands. For models of
//! controllers, which decide by themselves what they do about it: which status a command gets, and which check comes first.
//!
//! Queue entries, opcodes, identifiers and status codes are [`spec::nvme`]'s.

#![warn(missing_docs)]

pub mod dataset;
pub mod feature;
pub mod format;
pub mod identify;
mod list;
pub mod log;
mod namespaces;
pub mod prp;
pub mod queue;
pub mod sgl;
mod transfer;

pub use list::List;
pub use namespaces::{Namespace, Namespaces};
pub use transfer::{Fault, Segment, Step, Walker};

/// Bytes of a logical block (LBADS 9).
pub const BLOCK_BYTES: u64 = 512;
