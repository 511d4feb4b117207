//! The trace of every command: what a device and its host tell of it, put together and written to a file.
//!
//! [`TraceFile`] is a [`sim::TraceSink`]; what it writes is described in `docs/trace.md`. Memory is bounded by the commands in
//! flight, and the same events give the same bytes.
#![warn(missing_docs)]

mod chrome;
mod collect;
mod command;
mod file;
mod json;

pub use collect::Collector;
pub use command::{Command, TracePoint, TRACE_POINTS};
pub use file::TraceFile;
