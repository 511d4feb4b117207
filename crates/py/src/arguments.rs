// SPDX-License-Identifier: Apache-2.0

//! Checks of arguments: spans of time, ranges of bytes.

use driver::Namespace;
use pyo3::prelude::*;
use sim::Time;

use crate::error::raise;

/// The latest time that a caller may name: half of the range (106 days), so work in flight can
/// still end.
pub const END_OF_TIME: Time = Time(u64::MAX / 2);

/// LBA and number of blocks of `length` bytes from byte `offset` on, which must be in the
/// namespace.
pub fn whole_range(namespace: &Namespace, offset: u64, length: u64) -> PyResult<(u64, u64)> {
    within_namespace(namespace, offset, length)?;
    let block = namespace.block_bytes as usize;
    Ok((
        whole_block("offset", offset, block)?,
        whole_block("length", length, block)?,
    ))
}

/// Refuses a range that ends beyond a namespace.
pub fn within_namespace(namespace: &Namespace, offset: u64, length: u64) -> PyResult<()> {
    let size = namespace.bytes();
    within("the namespace", size, offset, length)
}

/// Refuses a range that ends beyond `size`.
pub fn within(what: &str, size: u64, offset: u64, length: u64) -> PyResult<()> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(raise(format!(
            "{length} bytes from {offset} on reach beyond {what} of {size} bytes"
        ))),
    }
}

/// Zeros. It is an error if there is no memory for `length` of them.
pub fn zeroed(length: usize) -> PyResult<Vec<u8>> {
    let mut data = Vec::new();
    data.try_reserve_exact(length)
        .map_err(|_| raise(format!("this machine has no memory for {length} bytes")))?;
    data.resize(length, 0);
    Ok(data)
}

/// A span of simulated time, given in ns.
pub fn span_ns(name: &str, ns: u64) -> PyResult<Time> {
    let most = END_OF_TIME.0 / 1000;
    if ns > most {
        return Err(raise(format!("{name} = {ns} ns: allowed are 0 to {most}")));
    }
    Ok(Time::ns(ns))
}

/// The number of blocks in `bytes`.
pub fn whole_block(name: &str, bytes: u64, block: usize) -> PyResult<u64> {
    let block = block as u64;
    if bytes % block != 0 {
        return Err(raise(format!(
            "{name} = {bytes}: allowed are multiples of {block}"
        )));
    }
    Ok(bytes / block)
}
