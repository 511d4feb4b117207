// SPDX-License-Identifier: Apache-2.0

//! The errors of pools, transactions and allocations.

use spec::nearpm::{Operation, ReturnValue};

/// Why an operation on a pool failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An error of the host: a power cut, a failed access.
    Host(host::Error),
    /// The power has failed; the text says how to continue.
    Power(String),
    /// No pool at this place, or another one than requested.
    NoPool(String),
    /// A pool whose metadata are damaged.
    Corrupt(String),
    /// No room: in the heap, in a log, among the threads.
    Full(String),
    /// An invalid argument or state; the text says what is allowed.
    Invalid(String),
    /// The device has refused a command.
    Refused(Operation, ReturnValue),
    /// The transaction was aborted although its closure succeeded: a nested one had failed.
    Aborted,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Host(error) => write!(f, "{error}"),
            Error::Power(text)
            | Error::NoPool(text)
            | Error::Corrupt(text)
            | Error::Full(text)
            | Error::Invalid(text) => f.write_str(text),
            Error::Refused(operation, results) => {
                write!(f, "the device refused {operation:?}: {results}")
            }
            Error::Aborted => {
                f.write_str("the transaction was aborted: one that was nested in it had failed")
            }
        }
    }
}

impl Error {
    /// True if the power has failed before or during the operation.
    pub fn is_power_loss(&self) -> bool {
        matches!(
            self,
            Error::Power(_) | Error::Host(host::Error::PowerCut(_))
        )
    }
}

impl std::error::Error for Error {}

impl From<host::Error> for Error {
    fn from(error: host::Error) -> Error {
        Error::Host(error)
    }
}
