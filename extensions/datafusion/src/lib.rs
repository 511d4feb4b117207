// SPDX-License-Identifier: Apache-2.0

//! Nearside's sort in plans of DataFusion.
//!
//! An optimizer rule replaces sort nodes of a plan, and a provider makes resident tables available
//! to queries. Python loads the extension into a session of the unmodified package `datafusion`.
//! All work on devices is done by Python's `nearside.sql`, which this extension calls.
//!
//! Modules in reading order: `rule` (the optimizer rule), `order` (orders as columns), `sort`,
//! `scan` and `declined` (plan nodes), `provider` (tables), `devices` (calls of Python).
//!
//! It leaves out everything below the plan: formats, partitions and devices are those of the crate
//! `sort`.

mod declined;
mod devices;
mod order;
mod provider;
mod rule;
mod scan;
mod sort;

use pyo3::prelude::*;

/// The module that `nearside.sql` imports.
#[pymodule]
fn nearside_datafusion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<rule::Rule>()?;
    module.add_class::<provider::Provider>()
}
