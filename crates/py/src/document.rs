// SPDX-License-Identifier: Apache-2.0

//! Results as objects of Python.

use pyo3::prelude::*;
use pythonize::pythonize;
use serde::Serialize;
use serde_json::Value;

/// A result as an object of Python: dictionaries, lists, texts, numbers and `None`.
pub struct Document<T = Value>(pub T);

impl<'py, T: Serialize> IntoPyObject<'py> for Document<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.0)?)
    }
}
