// SPDX-License-Identifier: Apache-2.0

//! Programs on persistent memory, for crash tests and measurements: index structures, and
//! benchmarks over them.
//!
//! A [`Workload`] is the logic of a benchmark ([`logic`]) over tables whose index is one of several
//! structures ([`map`]). The logic is written once, over a [`Store`]: tables of a pool, or a map in
//! host memory, which is the oracle. So the oracle shares only the logic with the program. It has
//! no index, object, transaction, mechanism or device.
//!
//! Modules in reading order:
//!
//! - `workload`: [`Workload`] by name, [`Scale`], and the content of a pool as an [`Inspection`].
//! - `store`: [`Store`], and the oracle's [`Contents`] after n transactions.
//! - `operations`: the [`Operation`]s of transactions, for other programs to repeat.
//! - [`logic`]: the transactions of each benchmark.
//! - [`map`]: the index structures, in the manner of PMDK's examples and of pmemkv.
//!
//! It leaves out network protocols, which crate `kv_server` has, and power losses: crate `crash`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod logic;
pub mod map;
mod operations;
mod store;
mod workload;

pub use operations::Operation;
pub use store::{Contents, Store};
pub use workload::{Inspection, Scale, Workload, NAMES};
