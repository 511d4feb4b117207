// SPDX-License-Identifier: Apache-2.0

//! The meaning of NVMe commands, for models of controllers: host addresses of a transfer,
//! namespaces, and the fields of commands.
//!
//! ListReader order:
//! - `transfer`: a transfer as segments of host pages, from the PRPs ([`prp`]) or the SGL
//!   ([`sgl`]) of a command; `list`: lists in host memory;
//! - [`namespaces`]: the namespaces and their addresses on the media;
//! - [`identify`], [`log`], [`feature`], [`queue`], [`format`](mod@format), [`dataset`]: the fields
//!   of commands.
//!
//! Left out: queue entries, opcodes, identifiers and status codes, which are in [`spec::nvme`]; and
//! the checks of a command, their order and the resulting status, which each controller model has.

#![forbid(unsafe_code)]
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
pub use transfer::{Segment, WalkError, WalkStep, Walker};

/// Bytes of a logical block (LBADS 9).
pub const BLOCK_BYTES: u64 = 512;
