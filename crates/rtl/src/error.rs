// SPDX-License-Identifier: Apache-2.0

//! What can go wrong before a model runs.

use std::path::{Path, PathBuf};

use sim::{escape_controls, Fault, InvalidValue, MediaError};

/// A failure to build or load a bitstream, in one line that says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that the build needs is missing.
    #[error("{tool} was not found: {}", escape_controls(advice))]
    MissingTool {
        /// The program.
        tool: &'static str,
        /// What to do about it.
        advice: String,
    },
    /// A file list or a source can't be read or understood.
    #[error("{}", escape_controls(.0))]
    FileList(String),
    /// A file operation failed.
    #[error("{}: {source}", escape_controls(path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Waveforms can't be written to this file.
    #[error("{}: {reason}", escape_controls(path.display()))]
    Waveform {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// Verilator or the C++ compiler refused the sources.
    #[error("{step} failed: {message} (log: {})", escape_controls(log.display()))]
    Build {
        /// Which step failed.
        step: &'static str,
        /// The first error that it reported.
        message: String,
        /// Where the whole log is.
        log: PathBuf,
    },
    /// The training run of a trained build failed.
    #[error(
        "training {top} failed, so nothing is kept: {} (`nearside build` without --train compiles \
         it untrained)",
        source.to_string().lines().next().unwrap_or_default()
    )]
    Training {
        /// The top module.
        top: String,
        /// Why.
        source: TrainingError,
    },
    /// A shared object is not a bitstream of this version.
    #[error("{}", escape_controls(.0))]
    NotABitstream(String),
    /// The design lacks a port that a driver needs, or the port's width does not fit.
    #[error("{}", escape_controls(.0))]
    Port(String),
    /// A value of the configuration is not allowed.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// The environment variable `POWER_UP` names nothing that registers could hold.
    #[error("POWER_UP: {0}")]
    PowerUp(#[source] InvalidValue),
    /// The design, its media profile or an engine is not usable.
    #[error(transparent)]
    Design(#[from] design::Error),
    /// The media can't be opened.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The model stopped while it came up.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Why a training run failed.
pub type TrainingError = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    pub(crate) fn io(path: &Path, source: impl Into<std::io::Error>) -> Error {
        Error::Io {
            path: path.to_path_buf(),
            source: source.into(),
        }
    }
}

/// The fault of a model that came up before and does not any more.
impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Fault(fault) => fault,
            other => Fault::Assertion(other.to_string()),
        }
    }
}

/// The result of building or loading.
pub type Result<T> = std::result::Result<T, Error>;
