// SPDX-License-Identifier: Apache-2.0

//! The Python module `nearside._native`.
//!
//! It gives the package `nearside` devices, sorts, crash campaigns, persistent memory, fuzzing and
//! servers. Results are dictionaries; tables cross by the Arrow PyCapsule interface.
//!
//! Modules in reading order:
//!
//! 1. Devices: `build` (designs and compilation), `device` and `session` (a device with its host
//!    and driver), `report`, `trace`, `single`, `serve`.
//! 2. Tables: `arrow`, `sort`, `sharded_merge`.
//! 3. Persistent memory: `pm`, `pm_bench`, `pmdk`, `crash`, `kv_server`.
//! 4. Checks and measurements of models: `fuzz`, `diff`, `dram`, `delay_bench`.
//! 5. Helpers: `arguments`, `document`, `error`, `memory`, `process`, `progress`.
//!
//! It leaves out all logic of its Rust crates: it converts arguments and results, and checks for
//! Ctrl-C.

mod arguments;
mod arrow;
mod build;
mod campaign;
mod crash;
mod delay_bench;
mod device;
mod diff;
mod document;
mod dram;
mod error;
mod fuzz;
mod kv_server;
mod memory;
mod pm;
mod pm_bench;
mod pmdk;
mod process;
mod progress;
mod report;
mod serve;
mod session;
mod sharded_merge;
mod single;
mod sort;
mod trace;

use pyo3::prelude::*;

/// Compiled part of the package `nearside`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add(
        "NearsideError",
        module.py().get_type::<error::NearsideError>(),
    )?;
    module.add("LEAVES", spec::tables::LEAVES)?;
    module.add("ONE_PASS_KEYS", spec::tables::ONE_PASS_KEYS)?;
    module.add_class::<arrow::ArrowTable>()?;
    module.add_class::<build::Design>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<dram::DramChannel>()?;
    module.add_class::<delay_bench::DelayBench>()?;
    module.add_class::<serve::Server>()?;
    module.add_class::<kv_server::Front>()?;
    module.add_class::<pm::PmSystem>()?;
    module.add_class::<pm::PmPool>()?;
    module.add_class::<pm::PmThread>()?;
    module.add_function(wrap_pyfunction!(build::root, module)?)?;
    module.add_function(wrap_pyfunction!(build::profile, module)?)?;
    module.add_function(wrap_pyfunction!(build::guest_cpu, module)?)?;
    module.add_function(wrap_pyfunction!(build::compile, module)?)?;
    module.add_function(wrap_pyfunction!(build::model, module)?)?;
    module.add_function(wrap_pyfunction!(fuzz::fuzz, module)?)?;
    module.add_function(wrap_pyfunction!(pm_bench::pm_copies, module)?)?;
    module.add_function(wrap_pyfunction!(pm_bench::pm_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(pm_bench::pm_benchmark, module)?)?;
    module.add_function(wrap_pyfunction!(pm_bench::pm_timeline, module)?)?;
    module.add_function(wrap_pyfunction!(diff::diff, module)?)?;
    module.add_function(wrap_pyfunction!(crash::crash_test, module)?)?;
    module.add_function(wrap_pyfunction!(crash::crash_names, module)?)?;
    module.add_function(wrap_pyfunction!(pmdk::pmdk_cost, module)?)?;
    module.add_function(wrap_pyfunction!(pmdk::pmdk_events, module)?)?;
    module.add_function(wrap_pyfunction!(pmdk::pmdk_instructions, module)?)?;
    module.add_function(wrap_pyfunction!(pmdk::pmdk_shim, module)?)?;
    module.add_function(wrap_pyfunction!(sort::sort_table, module)?)?;
    module.add_function(wrap_pyfunction!(sharded_merge::merge_tables, module)?)?;
    module.add_function(wrap_pyfunction!(sort::explain_sort, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_put, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_list, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_get, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_explain, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_schema, module)?)?;
    module.add_function(wrap_pyfunction!(sort::table_drop, module)?)?;
    module.add_function(wrap_pyfunction!(device::check_timeout, module)?)?;
    Ok(())
}
