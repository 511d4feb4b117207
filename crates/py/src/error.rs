// SPDX-License-Identifier: Apache-2.0

//! The exception class of all errors.

use pyo3::prelude::*;

pyo3::create_exception!(
    nearside._native,
    NearsideError,
    pyo3::exceptions::PyException,
    "What went wrong, in clear words."
);

/// An error of another crate as a Python exception.
pub fn raise(error: impl std::fmt::Display) -> PyErr {
    NearsideError::new_err(error.to_string())
}
