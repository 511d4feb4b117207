//! Unmodified programs with libpmemobj whose transactions a served device's engine keeps logs for. See `README.md`.

/// The shared library that is preloaded into such a program.
pub const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnearside_pmdk.so"));
