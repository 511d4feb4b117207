// SPDX-License-Identifier: Apache-2.0

//! What can go wrong before a model runs.

use std::path::{Path, PathBuf};

/// A failure to build or load a bitstream, in one line that says what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A program that the build needs is missing.
    MissingTool {
        /// The program.
        tool: &'static str,
        /// What to do about it.
        advice: String,
    },
    /// A file list or a source can't be read or understood.
    FileList(String),
    /// A file operation failed.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        message: String,
    },
    /// Verilator or the C++ compiler refused the sources.
    Build {
        /// Which step failed.
        step: &'static str,
        /// The first error that it reported.
        message: String,
        /// Where the whole log is.
        log: PathBuf,
    },
    /// The training run of a trained build failed.
    Training {
        /// The top module.
        top: String,
        /// Why.
        message: String,
    },
    /// A shared object is not a bitstream of this version.
    NotABitstream(String),
    /// The design lacks a port that a driver needs, or the port's width does not fit.
    Port(String),
    /// A configuration value is impossible.
    Config(String),
    /// The caller asked to stop.
    Interrupted,
}

impl Error {
    pub(crate) fn io(path: &Path, error: impl std::fmt::Display) -> Error {
        Error::Io {
            path: path.to_path_buf(),
            message: error.to_string(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::MissingTool { tool, advice } => write!(f, "{tool} was not found: {advice}"),
            Error::FileList(message) => f.write_str(message),
            Error::Io { path, message } => write!(f, "{}: {message}", path.display()),
            Error::Build { step, message, log } => {
                write!(f, "{step} failed: {message} (log: {})", log.display())
            }
            Error::Training { top, message } => {
                let first = message.lines().next().unwrap_or_default();
                write!(
                    f,
                    "training {top} failed, so nothing is kept: {first} (`nearside build` without \
                        --train compiles it untrained)"
                )
            }
            Error::NotABitstream(message) => f.write_str(message),
            Error::Port(message) => f.write_str(message),
            Error::Config(message) => f.write_str(message),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of building or loading.
pub type Result<T> = std::result::Result<T, Error>;
