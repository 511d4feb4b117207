// SPDX-License-Identifier: Apache-2.0

//! Errors, and the class of their exceptions.

use std::io;

use pyo3::prelude::*;
use sim::escape_controls;

pyo3::create_exception!(
    nearside._native,
    NearsideError,
    pyo3::exceptions::PyException,
    "What went wrong, in clear words."
);

/// An error of this module or of a crate that it calls.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument that is not allowed, or a call at the wrong time.
    #[error("{0}")]
    Call(String),
    /// A file that can't be written. The message is without the system's number of the error.
    #[error("{}: {source}", escape_controls(name))]
    Output {
        /// The file's name for messages.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// An exception of Python, such as KeyboardInterrupt.
    #[error(transparent)]
    Python(#[from] PyErr),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Value(#[from] sim::InvalidValue),
    #[error(transparent)]
    System(#[from] sim::Error),
    #[error(transparent)]
    Media(#[from] sim::MediaError),
    #[error(transparent)]
    Fault(#[from] sim::Fault),
    #[error(transparent)]
    Design(#[from] design::Error),
    #[error(transparent)]
    Rtl(#[from] rtl::Error),
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    Driver(#[from] driver::Error),
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    #[error(transparent)]
    Pm(#[from] pm::Error),
    #[error(transparent)]
    PmBench(#[from] pm_bench::Error),
    #[error(transparent)]
    Served(#[from] vfio_user::Error),
    #[error(transparent)]
    Access(#[from] kv_server::AccessError),
    #[error(transparent)]
    Crash(#[from] crash::Error),
    #[error(transparent)]
    Sort(sort::Error),
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::Call(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error::Call(text.into())
    }
}

impl From<sort::Error> for Error {
    fn from(error: sort::Error) -> Error {
        match error {
            sort::Error::Sink(error) => match error.downcast() {
                Ok(own) => *own,
                Err(other) => Error::Sort(sort::Error::Sink(other)),
            },
            other => Error::Sort(other),
        }
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let error = match error {
            Error::Python(exception) => return exception,
            other => other,
        };
        let text = match &error {
            Error::Output { name, source } => match source.raw_os_error() {
                Some(code) => Python::attach(|py| {
                    let reason = py.import("os")?.call_method1("strerror", (code,))?;
                    Ok::<_, PyErr>(format!("{}: {reason}", escape_controls(name)))
                }),
                None => Ok(error.to_string()),
            },
            _ => Ok(error.to_string()),
        };
        text.map_or_else(|error| error, NearsideError::new_err)
    }
}

/// An error as a Python exception.
pub fn raise(error: impl Into<Error>) -> PyErr {
    error.into().into()
}
