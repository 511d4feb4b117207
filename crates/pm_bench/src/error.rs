// SPDX-License-Identifier: Apache-2.0

//! The errors of measurements.

use std::fmt;

/// A one-line message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error of this text.
    pub(crate) fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }

    /// A value that is not allowed.
    pub(crate) fn refused(name: &str, value: impl fmt::Debug, allowed: &str) -> Error {
        Error(format!("{name} = {value:?}: allowed are {allowed}"))
    }
}

macro_rules! from {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Error {
            fn from(error: $kind) -> Error {
                Error(error.to_string())
            }
        })*
    };
}

from!(host::Error, pm::Error, testbed::Error);
