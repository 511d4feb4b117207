// SPDX-License-Identifier: Apache-2.0

//! Measures the cost of crash consistency for a program, by the CPU and offloaded to the device's
//! engine. All times are simulated.
//!
//! The experiments `nearpm_*` and `nearside timeline` are made of these measurements, each on a new
//! device of a design, on either model. Modules in reading order:
//!
//! - `devices`: [`testbed`], a host with new devices that have the engine.
//! - `copy`: [`Copies`] of persistent data, one at a time, by four methods.
//! - `transactions`: [`Transactions`], insertions into a B-tree by 1 to 16 threads, each with a
//!   separate pool, over 1, 2 or 4 devices.
//! - `benchmark`: [`Benchmark`], transactions of a program of [`workloads`], and the time in which
//!   CPU and units work in parallel. Only the fast model reports the activity of its units.
//! - `timeline`: [`Timeline`], the activity of CPU, units and devices in a few transactions.
//! - `latency`: the latency of transactions until they are acknowledged.
//! - `activity`: records that activity.
//!
//! # Baselines
//!
//! The CPU copies with non-temporal stores after loads, up to the number of its fill buffers at a
//! time. It flushes all changed lines of a transaction at once, as PMDK does. Its fences read back.
//! On a device with several channels posted writes may become persistent in any order, so only a
//! completed read-back proves an order. With `Fence::Posted` no fence reads back, as PMDK does on a
//! memory bus; over PCIe such a fence proves nothing, and it is measured as the cost of the fences.
//! With an `ordered` device, fences between stores are an `sfence`, and the last fence of a
//! transaction reads back. That is enough on one channel, which has a single path for stores, and
//! refused elsewhere. Over several devices the better of two baselines counts: a pool on one
//! device, or on as many as the engines have.
//!
//! With a group, transactions become durable later, on either side, and both promise the same: what
//! was acknowledged, and a prefix. The latency until then is beside each time.
//!
//! # What it leaves out
//!
//! It measures no wall-clock time, and checks no crash: crate `crash` does. The programs are those
//! of crate `workloads`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod activity;
mod benchmark;
mod copy;
mod devices;
mod error;
mod latency;
mod timeline;
mod transactions;

pub use benchmark::{Benchmark, BenchmarkResult};
pub use copy::{Copies, CopyMethod, CopyResult};
pub use devices::testbed;
pub use error::{Error, Result};
pub use timeline::{Mark, Span, Timeline, TimelineResult};
pub use transactions::{parse_fence, parse_fence_and_order, Transactions, TransactionsResult};

/// Is called with the finished and the total amount of work; stops the measurement by returning
/// false.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) -> bool + Send);

fn report_progress(
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    done: u64,
    total: u64,
) -> Result<()> {
    match progress(done, total) {
        true => Ok(()),
        false => Err(Error::Interrupted),
    }
}
