//! The shared library that is preloaded into programs with libpmemobj.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The library, as the bytes of its file.
#[pyfunction]
pub fn pmdk_shim(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, ::pmdk::SHIM)
}
