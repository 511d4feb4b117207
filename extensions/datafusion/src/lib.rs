//! Nearside's sort in plans of DataFusion: a rule that puts it where a plan sorts, and a provider of tables that stand on devices.
//! Python loads it into a session of the unmodified package `datafusion`; what it does on devices it asks of Python's `nearside.sql`.

mod declined;
mod devices;
mod order;
mod provider;
mod rule;
mod scan;
mod sort;

use pyo3::prelude::*;

/// Rule and provider, as `nearside.sql` makes them.
#[pymodule]
fn nearside_datafusion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<rule::Rule>()?;
    module.add_class::<provider::Provider>()
}
