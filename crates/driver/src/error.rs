// SPDX-License-Identifier: Apache-2.0

//! Errors of the driver.

use std::fmt;

use sim::Time;
use spec::nvme::Status;

/// A failed operation of the driver. The text is one line, unless it carries a dump of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The controller completed a command with an error status.
    Status {
        /// The command, such as `Write` or `Create I/O Submission Queue`.
        command: String,
        /// Its status.
        status: Status,
    },
    /// Nothing happened within the time allowed (simulated time).
    Timeout {
        /// The awaited event.
        what: String,
        /// The time allowed.
        after: Time,
    },
    /// CSTS.CFS is set: only a reset helps.
    Fatal,
    /// Registers read all ones: no device answers.
    Gone,
    /// The controller violated the specification.
    Misbehaviour(String),
    /// The controller lacks what this driver needs.
    Unsupported(String),
    /// The arguments are invalid.
    Invalid(String),
    /// The host failed: no memory, or a device that stopped with a fault.
    Host(String),
    /// The caller asked to stop.
    Interrupted,
}

/// The result type of the driver.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Status { command, status } => write!(f, "{command} failed: {status}"),
            Error::Timeout { what, after } => {
                write!(f, "{what} did not happen within {after} of simulated time")
            }
            Error::Fatal => f.write_str("the controller reports a fatal error (CSTS.CFS)"),
            Error::Gone => f.write_str("the controller does not answer: registers read all ones"),
            Error::Misbehaviour(what) => write!(f, "the controller misbehaves: {what}"),
            Error::Unsupported(what) => write!(f, "the controller is not usable: {what}"),
            Error::Invalid(what) => f.write_str(what),
            Error::Host(what) => f.write_str(what),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
