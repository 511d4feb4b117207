//! One exception class for everything that can go wrong.

use pyo3::prelude::*;

pyo3::create_exception!(
    nearside._native,
    NearsideError,
    pyo3::exceptions::PyException,
    "What went wrong, in clear words."
);

/// Any error of the crates below as a Python exception.
pub fn raise(error: impl std::fmt::Display) -> PyErr {
    NearsideError::new_err(error.to_string())
}
