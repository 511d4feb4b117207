// SPDX-License-Identifier: Apache-2.0

//! The trace of NVMe commands: combines the events of a device and its host to commands and writes
//! them to a file, which `docs/trace.md` describes.
//!
//! Reading order:
//! - `command`: a command and its trace points;
//! - `collect`: events to commands;
//! - `json`, `chrome`: the two formats;
//! - `file`: [`TraceFile`], a [`sim::TraceSink`];
//! - `summary`: [`TraceSummary`], a sink that keeps durations only.
//!
//! Memory is bounded by the commands in flight, and the same events give the same bytes. Left out:
//! events of the memory channels, of the PM window and of the link.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chrome;
mod collect;
mod command;
mod file;
mod json;
mod summary;

pub use collect::Collector;
pub use command::{Command, TracePoint, TRACE_POINTS};
pub use file::TraceFile;
pub use summary::{CommandTimes, Phase, TraceSummary};
