// SPDX-License-Identifier: Apache-2.0

//! The errors of measurements.

use std::fmt::Debug;

use sim::InvalidValue;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter that is not allowed.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// A design of this name without the engine.
    #[error(
        "the design {0:?} has no crash-consistency engine: allowed are designs that have one, as \
         \"nearpm\""
    )]
    NoEngine(String),
    /// The program has left other data than it should have; the text says which program.
    #[error("{0}")]
    WrongData(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The devices can't be set up.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// A CPU can't continue.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// An operation on a pool failed.
    #[error(transparent)]
    Pm(#[from] pm::Error),
}

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A value that is not allowed.
    pub(crate) fn refused(name: &str, value: impl Debug, allowed: &str) -> Error {
        let (value, rule) = (
            format_args!("{value:?}"),
            format_args!("allowed are {allowed}"),
        );
        InvalidValue::new(name, value, rule).into()
    }
}
