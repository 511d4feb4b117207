// SPDX-License-Identifier: Apache-2.0

//! The errors of pools, transactions and allocations.

use spec::nearpm::{Operation, ReturnValue};

/// Why an operation on a pool failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An error of the host: a power cut, a failed access.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The power has failed; the text says how to continue.
    #[error("{0}")]
    Power(String),
    /// No pool at this place, or another one than requested.
    #[error("{0}")]
    NoPool(String),
    /// A pool whose metadata are damaged.
    #[error("{0}")]
    Corrupt(String),
    /// No room: in the heap, in a log, among the threads.
    #[error("{0}")]
    Full(String),
    /// An invalid argument or state; the text says what is allowed.
    #[error("{0}")]
    Invalid(String),
    /// The device has refused a command.
    #[error("the device refused {0:?}: {1}")]
    Refused(Operation, ReturnValue),
    /// The transaction was aborted although its closure succeeded: a nested one had failed.
    #[error("the transaction was aborted: one that was nested in it had failed")]
    Aborted,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// True if the power has failed before or during the operation.
    pub fn is_power_loss(&self) -> bool {
        matches!(
            self,
            Error::Power(_) | Error::Host(host::Error::PowerCut(_))
        )
    }
}
