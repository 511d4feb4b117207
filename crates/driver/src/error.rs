// SPDX-License-Identifier: Apache-2.0

//! Errors of the driver.

use std::sync::Arc;

use sim::Time;
use spec::nvme::Status;

/// A failed operation of the driver. The text is one line, unless it carries a dump of the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The controller completed a command with an error status.
    #[error("{command} failed: {status}")]
    Status {
        /// The command, such as `Write` or `Create I/O Submission Queue`.
        command: String,
        /// Its status.
        status: Status,
    },
    /// Nothing happened within the time allowed (simulated time).
    #[error("{what} did not happen within {after} of simulated time")]
    Timeout {
        /// The awaited event.
        what: String,
        /// The time allowed.
        after: Time,
    },
    /// CSTS.CFS is set: only a reset helps.
    #[error("the controller reports a fatal error (CSTS.CFS)")]
    Fatal,
    /// Registers read all ones: no device answers.
    #[error("the controller does not answer: registers read all ones")]
    Gone,
    /// The controller violated the specification.
    #[error("the controller misbehaves: {0}")]
    Misbehaviour(String),
    /// The controller lacks what this driver needs.
    #[error("the controller is not usable: {0}")]
    Unsupported(String),
    /// The arguments are invalid.
    #[error("{0}")]
    Invalid(String),
    /// The host failed, for example as it has no memory.
    #[error("{0}")]
    Host(String),
    /// An error of the simulated system, for example a device that stopped with a fault.
    #[error(transparent)]
    System(#[from] sim::Error),
    /// An error of the CPU that drives the device.
    #[error(transparent)]
    Machine(#[from] host::Error),
    /// The caller's source of commands failed.
    #[error(transparent)]
    Caller(CallerError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// An error of the driver's caller. Only its copies equal it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CallerError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for CallerError {
    fn eq(&self, other: &CallerError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CallerError {}

impl Error {
    /// An error of the caller, which ends the operation.
    pub fn caller(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Caller(CallerError(Arc::new(error)))
    }
}

/// The result type of the driver.
pub type Result<T> = std::result::Result<T, Error>;
